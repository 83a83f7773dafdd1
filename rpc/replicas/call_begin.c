/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls to one of several servers are made. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/replicas/call.h"
#include "rpc/text.h"

void ulrpc_replicas_call_conf_init(struct ulrpc_replicas_call_conf *conf)
{
	*conf = (struct ulrpc_replicas_call_conf){ 0 };
}

/* Checks what has to be right before the call can be copied; ulrpc_call()
 * checks the rest. Returns 0 or -EINVAL. */
static int call_check(const struct ulrpc_replicas_call_conf *conf,
		      size_t length, ulrpc_replicas_done_fn done)
{
	if (!conf || !done || !conf->call.deadline ||
	    conf->call.nbulks > ULRPC_BULKS_MAX ||
	    (conf->call.nbulks && !conf->call.bulks) ||
	    (conf->call.trace &&
	     strlen(conf->call.trace) >= ULRPC_TRACE_SIZE) ||
	    (unsigned int)conf->call.wait_for_ready > ULRPC_WAIT_NOT ||
	    retry_check(conf->call.retry))
		return -EINVAL;
	return length > ULRPC_LENT_MAX ? -EMSGSIZE : 0;
}

/* Does a call with @conf wait for a server if all are away? */
static bool conf_waits(const struct ulrpc_replicas *rs,
		       const struct ulrpc_call_conf *conf)
{
	const struct ulrpc_retry *retry =
		conf->retry ? conf->retry : &rs->retry;
	enum ulrpc_wait wait = conf->wait_for_ready ? conf->wait_for_ready
						    : rs->conf.wait_for_ready;

	return wait ? wait == ULRPC_WAIT_READY : retry->max != 0;
}

/* Copies what the user's configuration refers to, and claims its bulks. Returns
 * 0, -EBUSY, -EINVAL or -ENOMEM. */
static int call_take_conf(struct ulrpc_replicas_call *call,
			  const struct ulrpc_replicas_call_conf *conf)
{
	const struct ulrpc_retry *retry = conf->call.retry;
	struct ulrpc_call_conf *own = &call->conf;
	int rc;

	*own = conf->call;
	if (own->trace) {
		strcpy(call->trace, own->trace);
		own->trace = call->trace;
	}
	call->retries = retry ? retry->max : call->all->retry.max;
	call->waits = conf_waits(call->all, &conf->call);
	call->away = true;
	call->tell_overloaded =
		retry ? retry->tell_overloaded : call->all->tell_overloaded;
	if (retry) {
		call->retry = *retry;
		call->retry.tell_overloaded = true;
		own->retry = &call->retry;
	}
	call->keyed = conf->key != NULL;
	if (conf->key)
		call->key = replica_key(conf->key, conf->key_length);
	rc = replicas_bulks_take(call, &conf->call);
	if (!rc && own->context)
		rc = replicas_context_take(call, own->context);
	if (rc)
		(void)replicas_bulks_release(call);
	return rc;
}

static void call_enter(struct ulrpc_replicas_call *call)
{
	list_add_tail(&call->all->calls, &call->link);
	call->all->backlog.bytes += call->length;
	backlog_look(&call->all->backlog, ++call->all->ncalls, call->shard);
	replicas_hedge_earn(call);
	shard_work_begin(call->shard);
}

/* Called when a call that another thread has made comes to its CPT. */
static void call_on_arrival(struct ulnet_work *work)
{
	struct ulrpc_replicas_call *call =
		container_of(work, struct ulrpc_replicas_call, work);
	struct shard *s = call->shard;

	/* The clock of the thread that made the call may be ahead of this one.
	 */
	call->began = MIN(call->began, shard_now(s));
	call_enter(call);
	if (replicas_are_open(call->all) && !replicas_context_enter(call))
		replicas_call_go_on(call);
	else
		replicas_call_end(call, ULRPC_CAUSE_CANCELED);
	shard_taken(s);
}

static int call_new(struct ulrpc_replicas *rs, uint32_t method,
		    const void *body, size_t length,
		    const struct ulrpc_replicas_call_conf *conf,
		    struct ulrpc_replicas_call **call_p)
{
	struct ulrpc_replicas_call *call = malloc(sizeof(*call) + length);
	int rc;

	if (!call)
		return -ENOMEM;
	memset(call, 0, sizeof(*call));
	call->all = rs;
	call->shard = rs->shard;
	list_init(&call->link);
	list_init(&call->parked);
	for (int i = 0; i < CALL_ATTEMPTS; i++) {
		call->attempts[i].of = call;
		list_init(&call->attempts[i].of_replica);
		list_init(&call->attempts[i].waiting);
	}
	call->began = shard_now(rs->shard);
	call->deadline = rpc_at(call->began, rpc_ns(conf->call.deadline));
	call->retry_after = TIME_NEVER;
	lnet_timer_init(&call->timer, replicas_call_on_timer);
	call->work.fn = call_on_arrival;
	call->cancel.fn = replicas_call_on_cancel;
	call->server = call->last.local = call->last.target = LNET_NID_ANY;
	/* for a call whose deadline passes before it was at any server */
	replicas_call_set_last(call, ULRPC_CAUSE_DEADLINE,
			       cause_status(ULRPC_CAUSE_DEADLINE));
	call->method = method;
	call->length = length;
	if (length)
		memcpy(call->body, body, length);
	rc = call_take_conf(call, conf);
	if (rc)
		free(call);
	else
		*call_p = call;
	return rc;
}

/* Begins the call. Called by the owner. Returns 0, or -errno: then the call is
 * over, and nobody has a reference but those who are canceling it. */
static int call_begin(struct ulrpc_replicas_call *call)
{
	int rc;

	call_enter(call);
	rc = replicas_context_enter(call);
	if (!rc)
		rc = replicas_call_go(call);
	if (!rc)
		return 0;
	call->ended = true;
	call->opening = NULL; /* it stays the caller's */
	replicas_context_release(call);
	(void)replicas_bulks_release(call);
	backlog_left(&call->all->backlog, call->length, --call->all->ncalls,
		     call->shard);
	list_del(&call->link);
	shard_work_end(call->shard);
	ulrpc_replicas_call_put(call);
	return rc;
}

int replicas_call_make(struct ulrpc_replicas *rs, uint32_t method,
		       const void *body, size_t length,
		       const struct ulrpc_replicas_call_conf *conf,
		       struct stream_opening *opening,
		       ulrpc_replicas_done_fn done, void *arg,
		       struct ulrpc_replicas_call **call_p)
{
	struct shard *s = rs->shard;
	struct ulrpc_replicas_call *call;
	int rc = call_check(conf, length, done);

	if (rc)
		return rc;
	if (atomic_load(&rs->rpc->state) != RPC_OPEN ||
	    lnet_is_forked(s->node) || (shard_owned(s) && rs->closed))
		return -ESHUTDOWN;
	if (backlog_is_full(&rs->backlog))
		return backlog_refuse(&rs->backlog);
	rc = call_new(rs, method, body, length, conf, &call);
	if (rc)
		return rc;
	call->done = done;
	call->arg = arg;
	call->opening = opening;
	atomic_init(&call->refs, call_p ? 2 : 1);
	if (shard_owned(s)) {
		rc = call_begin(call);
		if (call_p && !rc)
			*call_p = call;
		else if (call_p)
			ulrpc_replicas_call_put(call);
		return rc;
	}
	/* Sets *call_p before the call can end. */
	if (call_p)
		*call_p = call;
	shard_give(s, &call->work);
	return 0;
}

int ulrpc_replicas_call(struct ulrpc_replicas *rs, uint32_t method,
			const void *body, size_t length,
			const struct ulrpc_replicas_call_conf *conf,
			ulrpc_replicas_done_fn done, void *arg,
			struct ulrpc_replicas_call **call_p)
{
	return replicas_call_make(rs, method, body, length, conf, NULL, done,
				  arg, call_p);
}
