/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls leave a server that cannot be connected to, and go to one that
 * can. */
#include "rpc/client/attempt.h"
#include "rpc/replicas/call.h"
#include "rpc/text.h"

/* ns: a call leaves a server that is not connected for so long */
#define PATIENCE (100 * NSEC_PER_MSEC)

/* Is there a server beside that of the attempt? */
static bool attempt_has_others(const struct attempt *a)
{
	return a->of->all->n > list_empty(&a->at->gone);
}

void replicas_attempt_wait(struct attempt *a)
{
	struct ulrpc_replicas *rs = a->of->all;

	if (!list_empty(&a->waiting))
		return;
	a->waits_since = shard_now(rs->shard);
	list_add_tail(&rs->waiting, &a->waiting);
	if (attempt_has_others(a) && !lnet_timer_armed(&rs->waiting_timer))
		shard_arm(rs->shard, &rs->waiting_timer,
			  rpc_at(a->waits_since, PATIENCE));
}

static enum ulrpc_cause down_cause(const struct ulrpc_client *c)
{
	if (c->imp->fsm.state != IMPORT_FULL)
		return client_down_cause(c);
	return c->refusal ? c->refusal : ULRPC_CAUSE_UNREACHABLE;
}

/* Ends the attempt, so that the call goes on elsewhere, if it was not sent;
 * with @sent, also if it was, provided that the call may be executed twice.
 * Returns whether it has. */
static bool attempt_withdraw(const struct attempt *a, bool sent)
{
	const struct ulrpc_call_conf *conf = &a->of->conf;
	const struct ulrpc_client *c = a->at->client;

	/* That there is no connection yet does not say that there is no server.
	 */
	if (!c->refusal && !c->imp->unreached)
		a->of->away = false;
	sent = sent && conf->semantics == ULRPC_IDEMPOTENT;
	return call_withdraw(a->handle, sent, down_cause(c));
}

static bool has_others(const struct ulrpc_replicas *rs, const struct replica *r)
{
	for (unsigned int i = 0; i < rs->n; i++)
		if (rs->all[i] != r && replica_is_used(rs->all[i]))
			return true;
	return false;
}

/* Calls @fn for the attempts at @r whose calls have not ended. It may end any
 * of them. */
static void each_attempt(struct replica *r,
			 void (*fn)(struct attempt *a, bool others),
			 bool others)
{
	struct list attempts;

	list_init(&attempts);
	list_splice_tail(&attempts, &r->attempts);
	while (!list_empty(&attempts)) {
		struct attempt *a =
			list_first(&attempts, struct attempt, of_replica);

		list_del(&a->of_replica);
		list_add_tail(&r->attempts, &a->of_replica);
		if (!a->of->ended)
			fn(a, others);
	}
}

/* @others: there are servers that are in use. */
static void attempt_leave(struct attempt *a, bool others)
{
	if (!others || !attempt_withdraw(a, true))
		replicas_attempt_wait(a);
}

void calls_leave(struct replica *r)
{
	each_attempt(r, attempt_leave, has_others(r->all, r));
}

static void opening_lose(struct attempt *a, bool others)
{
	(void)others;
	if (a->of->opening)
		call_lose(a->handle, ULRPC_CAUSE_UNREACHABLE);
}

void openings_lose(struct replica *r)
{
	each_attempt(r, opening_lose, false);
}

/* Makes attempts that have waited since @since, or longer, go elsewhere. @left:
 * only those at servers that are left. */
static void waiting_leave(struct ulrpc_replicas *rs, uint64_t since, bool left)
{
	struct list waiting;

	list_init(&waiting);
	list_splice_tail(&waiting, &rs->waiting);
	while (!list_empty(&waiting)) {
		struct attempt *a =
			list_first(&waiting, struct attempt, waiting);
		struct replica *r = a->at;

		list_del(&a->waiting);
		if (a->waits_since > since ||
		    (left && r->fsm.state != REPLICA_LEFT)) {
			list_add_tail(&rs->waiting, &a->waiting);
			continue;
		}
		if (client_is_well(r->client) || a->of->ended)
			continue;
		if (!attempt_has_others(a)) {
			list_add_tail(&rs->waiting, &a->waiting);
			continue;
		}
		if (list_empty(&r->gone))
			replica_give_up(r, false);
		(void)attempt_withdraw(a, false);
	}
}

/* Arms the timer for the first attempt that may go elsewhere. */
static void waiting_arm(struct ulrpc_replicas *rs)
{
	struct attempt *a;

	if (lnet_timer_armed(&rs->waiting_timer))
		return;
	list_for_each_entry (a, &rs->waiting, waiting)
		if (attempt_has_others(a)) {
			shard_arm(rs->shard, &rs->waiting_timer,
				  rpc_at(a->waits_since, PATIENCE));
			return;
		}
}

void calls_on_waiting(struct ulnet_timer *timer)
{
	struct ulrpc_replicas *rs =
		container_of(timer, struct ulrpc_replicas, waiting_timer);

	rs->busy++;
	waiting_leave(rs, shard_now(rs->shard) - PATIENCE, false);
	waiting_arm(rs);
	rs->busy--;
	replicas_on_quiet(rs);
}

void calls_on_server(struct ulrpc_replicas *rs)
{
	struct list parked;

	list_init(&parked);
	list_splice_tail(&parked, &rs->parked);
	while (!list_empty(&parked)) {
		struct ulrpc_replicas_call *call =
			list_first(&parked, struct ulrpc_replicas_call, parked);

		list_del(&call->parked);
		if (call->over || call->last.cause == ULRPC_CAUSE_OVERLOADED) {
			list_add_tail(&rs->parked, &call->parked);
			continue;
		}
		shard_cancel(rs->shard, &call->timer);
		replicas_call_go_on(call);
	}
	if (has_others(rs, NULL))
		waiting_leave(rs, TIME_NEVER, true);
	waiting_arm(rs); /* some may have had no other server before */
}

void calls_on_no_address(struct ulrpc_replicas *rs)
{
	struct ulrpc_replicas_call *call, *next;
	struct list some;

	if (rs->n)
		return;
	list_init(&some);
	list_for_each_entry_safe (call, next, &rs->parked, parked)
		if (!call->waits && !call->over) {
			list_del(&call->parked);
			list_add_tail(&some, &call->parked);
		}
	while (!list_empty(&some)) {
		call = list_first(&some, struct ulrpc_replicas_call, parked);
		replicas_call_end(call, ULRPC_CAUSE_NAME);
	}
}
