/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/replicas/verdict.h"

#include "rpc/client/retry.h"

/* ns: the end of a shorter call at its deadline says nothing of the server, if
 * it is not known how long calls of the method take. */
#define TIME_ENOUGH (100 * NSEC_PER_MSEC)

enum verdict verdict_of(enum ulrpc_cause cause)
{
	switch (cause) {
	case ULRPC_CAUSE_CANCELED:
	case ULRPC_CAUSE_NO_MEMORY:
	case ULRPC_CAUSE_NAME:
	case ULRPC_CAUSE_INTERCEPTED:
		return VERDICT_NONE;
	case ULRPC_CAUSE_EXPIRED:
	case ULRPC_CAUSE_OVERLOADED:
		return VERDICT_BUSY;
	case ULRPC_CAUSE_DEADLINE:
	case ULRPC_CAUSE_NO_SERVICE:
	case ULRPC_CAUSE_UNREACHABLE:
	case ULRPC_CAUSE_REFUSED:
	case ULRPC_CAUSE_RESTARTED:
	case ULRPC_CAUSE_SHUTDOWN:
	case ULRPC_CAUSE_STALLED:
	case ULRPC_CAUSE_LOST:
	case ULRPC_CAUSE_FORGOTTEN:
		return VERDICT_FAILED;
	default:
		return VERDICT_ANSWERED;
	}
}

static void replica_on_end(struct replica *r, enum verdict v, bool trial)
{
	struct ulrpc_replicas *rs = r->all;

	if (v == VERDICT_ANSWERED || v == VERDICT_BUSY) {
		r->answered = shard_now(rs->shard);
		replica_on_answer(r, trial);
	} else if (v == VERDICT_FAILED && r->fsm.state != REPLICA_LEFT &&
		   replica_on_failure(r) &&
		   (trial || replica_may_leave(rs->all, rs->n))) {
		replica_give_up(r, true);
	}
	/* If the trial has shown nothing, the server stays left. */
	if (trial && r->fsm.state == REPLICA_TRIED)
		replica_give_up(r, r->outlier);
}

bool verdict_is_last(const struct attempt *a, enum ulrpc_cause cause)
{
	return cause == ULRPC_CAUSE_REFUSED && client_is_well(a->at->client);
}

/* Does a failure with @cause, after @ns, say nothing of the server? */
static bool is_of_call(const struct attempt *a, enum ulrpc_cause cause,
		       uint64_t ns)
{
	uint64_t most;

	if (cause == ULRPC_CAUSE_REFUSED)
		return verdict_is_last(a, cause);
	if (cause != ULRPC_CAUSE_DEADLINE)
		return false;
	/* Meanwhile the server has answered others. */
	if (a->at->answered > a->began)
		return true;
	/* The call had less time than such calls take. */
	most = times_most(&a->at->all->times, a->of->method);
	return ns < (most != TIME_NEVER ? most : TIME_ENOUGH);
}

void verdict_take(const struct attempt *a, const struct ulrpc_outcome *o)
{
	struct replica *r = a->at;
	struct ulrpc_replicas *rs = r->all;
	uint64_t now = shard_now(rs->shard), ns = now - a->began;
	uint64_t connecting = MIN(rpc_ns(o->connecting), ns);
	uint64_t usual;
	/* The call was canceled here because another server was faster. */
	bool lost = a->of->ended && o->cause == ULRPC_CAUSE_CANCELED &&
		    !a->of->canceled;

	if (o->cause == ULRPC_CAUSE_OVERLOADED)
		replica_on_full(r, rpc_at(now, retry_after_ns(o->retry_after)));
	replica_on_end(r,
		       is_of_call(a, o->cause, ns) ? VERDICT_NONE
						   : verdict_of(o->cause),
		       a->trial);
	if (o->cause != ULRPC_CAUSE_OK && !lost)
		return;
	/* Until a method has answered, its calls have earned nothing. */
	if (!lost &&
	    times_add(&rs->times, a->of->method, ns - connecting,
		      rs->hedge && replica_is_slower(r, rs->all, rs->n)))
		replicas_hedge_earn(a->of);
	usual = times_usual(&rs->times, a->of->method);
	if (!usual)
		return;
	replica_on_time(r, ns - connecting, usual);
	if (replica_is_slow(r, rs->all, rs->n) &&
	    replica_may_leave(rs->all, rs->n))
		replica_give_up(r, true);
}
