/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls are made and canceled: the functions that users call, on any
 * thread. */
#include <errno.h>
#include <string.h>

#include "rpc/client/bulks.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/lent.h"
#include "rpc/context/context.h"
#include "rpc/stats/spans.h"
#include "rpc/text.h"

#define REPLY_MAX 4096
/* bytes: longer bodies may have to be lent (lent.h) */
#define BODY_USUAL 65536

/* Takes memory from the slab of the CPT, or from malloc() if other threads may
 * get references. */
static in_line struct ulrpc_call *call_alloc(struct ulrpc_client *c,
					     size_t size, bool shared)
{
	struct ulrpc_call *call =
		shared ? malloc(size)
		       : slab_get(&c->shard->imports->slab, size);

	if (!call)
		return NULL;
	call->class = (uint8_t)slab_class_of(size);
	call->shared = shared;
	return call;
}

/* Checks what the caller has passed to ulrpc_call(). */
static in_line int call_conf_check(const struct ulrpc_call_conf *conf,
				   ulrpc_done_fn done)
{
	if (!conf || !done || !conf->deadline ||
	    (unsigned int)conf->priority > ULRPC_PRIORITY_BACKGROUND ||
	    (unsigned int)conf->semantics > ULRPC_EXACTLY_ONCE)
		return -EINVAL;
	return conf->reply_max > ULRPC_BODY_MAX ? -EMSGSIZE : 0;
}

static in_line unsigned int rpc_state(const struct ulrpc *rpc)
{
	return atomic_load_explicit(&rpc->state, memory_order_relaxed);
}

/* Does @c take further calls? Returns 0; -ESHUTDOWN, -EAGAIN. */
static int client_check(struct ulrpc_client *c)
{
	if (rpc_state(c->rpc) != RPC_OPEN || client_marks(c) & CLIENT_CLOSED)
		return -ESHUTDOWN;
	return backlog_is_full(&c->backlog) ? backlog_refuse(&c->backlog) : 0;
}

/* Returns the scope of the request that a call is made for; NULL: there is
 * none. */
static struct scope *conf_scope(const struct ulrpc_call_conf *conf)
{
	return conf->context ? conf->context->scope : NULL;
}

/* Gives @call a rule of its own. A call with a context has one, too, even if it
 * says what the client's says: call_free() tells such calls by it. */
static int retry_claim(struct ulrpc_call *call,
		       const struct ulrpc_call_conf *conf)
{
	const struct ulrpc_client *c = call->client;

	if (retry_check(conf->retry) ||
	    (unsigned int)conf->wait_for_ready > ULRPC_WAIT_NOT)
		return -EINVAL;
	call->retry = malloc(sizeof(*call->retry));
	if (!call->retry)
		return -ENOMEM;
	*call->retry = c->retry;
	if (conf->retry)
		retry_rule_init(call->retry, conf->retry,
				c->rpc->conf.force_policy);
	call->retry->wait =
		conf->wait_for_ready ? conf->wait_for_ready : c->retry.wait;
	return 0;
}

/* Adds a trace, a retry rule and bulks, which few calls have. */
static out_of_line int call_load(struct ulrpc_call *call,
				 const struct ulrpc_call_conf *conf, bool root)
{
	int rc = 0;

	if (conf->trace) {
		rc = trace_parse(conf->trace, call_trace(call));
		if (rc)
			return rc;
		call->flags |= CALL_TRACED;
	}
	if (!conf->trace && conf_scope(conf) && conf_scope(conf)->traced) {
		memcpy(call_trace(call), conf_scope(conf)->trace, TRACE_LENGTH);
		call->flags |= CALL_TRACED;
	}
	if (root) {
		spans_root(call->shard, call_trace(call));
		call->flags |= CALL_TRACED;
	}
	if (call->flags & CALL_TRACED)
		(void)spans_begin(call->shard, call_trace(call),
				  call_trace(call) + TRACE_LENGTH);
	if (conf->retry || conf->wait_for_ready || conf->context ||
	    call->flags & CALL_LENT)
		rc = retry_claim(call, conf);
	if (!rc && conf->context)
		rc = call_context_take(call, conf->context);
	if (!rc)
		rc = bulks_claim(call, conf);
	if (!rc && conf->nbulks)
		call->flags |= CALL_BULKS;
	if (!rc && call->flags & CALL_LENT) {
		rc = lent_claim(call);
		if (rc)
			bulks_give_back(call);
	}
	return rc;
}

/* Moves the call from NEW to QUEUED, but into no queue yet. */
static in_line void call_enter(struct ulrpc_call *call)
{
	struct ulrpc_client *c = call->client;

	c->ncalls++;
	c->backlog.bytes += call->length;
	shard_work_begin(call->shard);
	call_move(call, CALL_QUEUED);
	if (call->deadline != TIME_NEVER)
		client_watch(c, call);
}

/* Does what call_enter() does, for a call whose body may be lent. Such a body
 * counts at once: the call is submitted only when its checksums have been
 * computed, and a callback can make any number of them before. */
static void call_enter_lent(struct ulrpc_call *call)
{
	struct ulrpc_client *c = call->client;

	call_enter(call);
	if (!(call->flags & CALL_LENT))
		return;
	c->backlog.bytes += call_size(call);
	/* The call whose callback has made this one is counted still. */
	if (unlikely(backlog_is_over(&c->backlog, c->ncalls - 1)))
		client_look(c);
}

static in_line void call_start(struct ulrpc_call *call)
{
	call_enter(call);
	client_submit(call->client, call);
}

/* The function for scope_link.cancel. */
static void on_scope_canceled(struct scope_link *l)
{
	ulrpc_cancel(container_of(l, struct call_context, in)->call);
}

/* Ends @call, which has just come to its CPT. */
static void call_reject_new(struct ulrpc_call *call, enum ulrpc_cause cause)
{
	call->client->ncalls++;
	call->client->backlog.bytes += call_size(call);
	shard_work_begin(call->shard);
	call_fail(call, cause);
}

/* Called when a call that another thread has made comes to its CPT. */
static void on_arrival(struct ulnet_work *work)
{
	struct ulrpc_call *call = container_of(work, struct ulrpc_call, work);
	struct shard *s = call->shard;

	/* The clock of the thread that made the call may be ahead of this one.
	 */
	call->began = call->queued = MIN(call->began, shard_now(s));
	if (s->closing || client_marks(call->client) & CLIENT_CLOSED) {
		call_reject_new(call, ULRPC_CAUSE_CANCELED);
	} else if (unlikely(call->nbulks)) {
		call_enter_lent(call);
		call_sum(call);
	} else {
		call_start(call);
	}
	shard_taken(s);
}

/* As on_arrival(), for a call that is made for a request. */
static void on_scoped_arrival(struct ulnet_work *work)
{
	struct ulrpc_call *call = container_of(work, struct ulrpc_call, work);
	struct shard *s = call->shard;

	if (!call_context_enter(call, on_scope_canceled)) {
		on_arrival(work);
		return;
	}
	call->began = call->queued = MIN(call->began, shard_now(s));
	call_reject_new(call, ULRPC_CAUSE_CANCELED);
	shard_taken(s);
}

/* As on_arrival(), for a call that an interceptor has refused. */
static void on_refused_arrival(struct ulnet_work *work)
{
	struct ulrpc_call *call = container_of(work, struct ulrpc_call, work);
	struct shard *s = call->shard;

	call->began = call->queued = MIN(call->began, shard_now(s));
	call_reject_new(call, ULRPC_CAUSE_INTERCEPTED);
	shard_taken(s);
}

/* Gives @call, which was made on another thread, to its CPT. */
static out_of_line int call_give(struct ulrpc_call *call,
				 struct ulrpc_call **call_p)
{
	if (lnet_is_forked(call->shard->node)) {
		atomic_init(&call->refs, 1);
		call_put(call);
		return -ESHUTDOWN;
	}
	/* Sets *call_p before the call can end. */
	if (call_p)
		*call_p = call;
	shard_give(call->shard, &call->work);
	return 0;
}

static void call_on_cancel(struct ulnet_work *work)
{
	struct ulrpc_call *call = container_of(work, struct ulrpc_call, cancel);
	struct shard *s = call->shard;

	if (call->fsm.state != CALL_DONE)
		call_fail(call, ULRPC_CAUSE_CANCELED);
	call_put(call);
	shard_taken(s);
}

void ulrpc_cancel(struct ulrpc_call *call)
{
	/* Posts the work once, and not after the end of the call, when the
	 * shard may be gone. */
	if (atomic_exchange(&call->canceling, true))
		return;
	if (unlikely(lnet_is_forked(call->shard->node)))
		return;
	call_get(call);
	shard_give(call->shard, &call->cancel);
}

static in_line void call_init(struct ulrpc_call *call, struct ulrpc_client *c,
			      const struct ulrpc_call_conf *conf, uint64_t now)
{
	call->client = c;
	call->shard = c->shard;
	list_init(&call->link);
	call->began = call->queued = now;
	call->deadline = rpc_at(call->began, rpc_ns(conf->deadline));
	call->reply_max = conf->reply_max ? conf->reply_max : REPLY_MAX;
	call->reply_limit = conf->reply_limit;
	call->progress = conf->progress;
	if (unlikely(conf->progress))
		call->progress_arg = conf->progress_arg;
	call->nbulks = (uint8_t)conf->nbulks;
	call->priority = (uint8_t)conf->priority;
	call->semantics = (uint8_t)conf->semantics;
	call->flags = 0;
	/* Sets the fields in the order of the structure, so that the compiler
	 * needs few stores. */
	call->xid = 0;
	call->out.batch = call->query.batch = NULL;
	call->fsm.state = CALL_NEW;
	call->crashed = call->alone = false;
	call->watch = WATCH_NONE;
	call->unknown = call->bulk_failed = call->orphaned = false;
	call->losses = 0;
	call->slot = SLOT_NONE;
	call->attempts = call->retries = 0;
	call->queries = call->extensions = 0;
	call->refusals = call->unanswered = 0;
	call->paths = 0;
	call->connecting = call->window = 0;
	call->retry = NULL;
	if (call->shared) {
		call->work.fn = on_arrival;
		call->cancel.fn = call_on_cancel;
		atomic_init(&call->canceling, false);
	}
}

/* Makes a call, of @size bytes with its body. @shared: threads other than the
 * owner may use it. Returns NULL if there is no memory. */
static in_line struct ulrpc_call *call_make(struct ulrpc_client *c, size_t size,
					    bool shared,
					    const struct ulrpc_call_conf *conf,
					    uint64_t now)
{
	struct ulrpc_call *call = call_alloc(c, size, shared);

	if (call)
		call_init(call, c, conf, now);
	return call;
}

/* Sets what the caller has passed to ulrpc_call(), without the body, of @length
 * bytes. Returns where the body belongs. */
static in_line uint8_t *call_fill_head(struct ulrpc_call *call, uint32_t method,
				       size_t length, ulrpc_done_fn done,
				       void *arg, struct ulrpc_call **call_p)
{
	call->method = method;
	call->length = (uint32_t)length;
	call->done = done;
	call->arg = arg;
	atomic_init(&call->refs, call_p ? 2 : 1);
	return call_body(call);
}

static in_line void call_fill(struct ulrpc_call *call, uint32_t method,
			      const void *body, size_t length,
			      ulrpc_done_fn done, void *arg,
			      struct ulrpc_call **call_p)
{
	uint8_t *to = call_fill_head(call, method, length, done, arg, call_p);

	if (length)
		memcpy(to, body, length);
}

/* Not 0: there is something in @conf that few calls have. */
static in_line uintptr_t conf_load(const struct ulrpc_call_conf *conf)
{
	return conf->nbulks | (unsigned int)conf->wait_for_ready |
	       (uintptr_t)conf->retry | (uintptr_t)conf->trace |
	       (uintptr_t)conf->context | conf->reply_limit;
}

static in_line bool samples(const struct shard *s)
{
	return atomic_load_explicit(&s->samples, memory_order_relaxed);
}

_Static_assert(RPC_OPEN == 0, "an open node has nothing rare");

/* Does a call with @conf need call_begin_rare()? All that is looked at is put
 * into one number, which takes one branch, and no more for what nobody uses. */
static in_line bool call_is_rare(const struct ulrpc_client *c,
				 const struct ulrpc_call_conf *conf)
{
	return conf_load(conf) | (uintptr_t)c->chain |
	       (rpc_state(c->rpc) | client_marks(c) |
		backlog_is_full(&c->backlog) | samples(c->shard));
}

static bool conf_is_refused(const struct ulrpc_call_conf *conf)
{
	return conf->context && conf->context->refused;
}

/* Is a body of @length bytes lent from the beginning? */
static bool is_lent(const struct ulrpc_client *c, size_t length)
{
	return length > BODY_USUAL &&
	       length > atomic_load_explicit(&c->lent_from,
					     memory_order_relaxed);
}

/* Checks what only such calls have. @length: bytes of the body, with its annex.
 * @nlent: how many bulks it is; 0: it is not lent. */
static int loaded_check(const struct ulrpc_call_conf *conf, size_t length,
			unsigned int nlent)
{
	if (conf->nbulks && (conf->nbulks > ULRPC_BULKS_MAX || !conf->bulks))
		return -EINVAL;
	return length > ULRPC_LENT_MAX || conf->nbulks + nlent > ULRPC_BULKS_MAX
		       ? -EMSGSIZE
		       : 0;
}

/* Makes @call of what the caller has passed to ulrpc_call(). @lent: for the
 * body, which is lent; NULL: it is in the call. */
static int call_fill_loaded(struct ulrpc_call *call, struct lent *lent,
			    uint32_t method, const void *body, size_t length,
			    size_t annex, const struct ulrpc_call_conf *conf,
			    bool root, ulrpc_done_fn done, void *arg,
			    struct ulrpc_call **call_p)
{
	uint8_t *to =
		call_fill_head(call, method, annex + length, done, arg, call_p);

	if (lent) {
		to = lent->body;
		lent->trace =
			(size_t)((uint8_t *)&call
					 ->bulks[call->nbulks +
						 lent_bulks(call->client->rpc,
							    lent->length)] -
				 (uint8_t *)call);
		call->lent = lent;
		call->flags |= CALL_LENT;
	}
	if (annex) {
		to = annex_put(to, &conf->context->sent);
		call->flags |= WIRE_CALL_ANNEX;
	}
	if (length)
		memcpy(to, body, length);
	return call_load(call, conf, root);
}

/* ulrpc_call() for those few calls that need call_load(). */
static out_of_line int call_begin_loaded(struct ulrpc_client *client,
					 uint32_t method, const void *body,
					 size_t length,
					 const struct ulrpc_call_conf *conf,
					 bool root, ulrpc_done_fn done,
					 void *arg, struct ulrpc_call **call_p)
{
	struct shard *s = client->shard;
	bool refused = conf_is_refused(conf);
	bool owned = shard_owned(s) && !refused;
	size_t annex = conf->context ? annex_size(&conf->context->sent) : 0;
	unsigned int nlent = is_lent(client, annex + length)
				     ? lent_bulks(client->rpc, annex + length)
				     : 0;
	size_t size =
		sizeof(struct ulrpc_call) +
		(conf->nbulks + nlent) * sizeof(struct ulrpc_bulk *) +
		(nlent ? 0 : annex + length) +
		(conf->trace || conf_scope(conf) || root ? CALL_TRACE : 0) +
		(conf->context ? CALL_CONTEXT_SIZE : 0);
	int rc = loaded_check(conf, annex + length, nlent);
	struct lent *lent = NULL;
	struct ulrpc_call *call;

	if (rc)
		return rc;
	if (nlent) {
		lent = lent_new((uint32_t)(annex + length));
		if (!lent)
			return -ENOMEM;
	}
	/* Any thread may cancel the calls of a scope. */
	call = call_make(client, size, call_p || !owned || conf_scope(conf),
			 conf, shard_now(s));
	if (!call) {
		if (lent)
			lent_put(lent);
		return -ENOMEM;
	}
	if (conf->reply_limit)
		call->priority |= CALL_LIMITED;
	rc = call_fill_loaded(call, lent, method, body, length, annex, conf,
			      root, done, arg, call_p);
	if (!rc && owned) {
		rc = call_context_enter(call, on_scope_canceled);
		if (rc)
			bulks_give_back(call);
	}
	if (rc) {
		/* call_free() looks at calls with a rule of their own only. */
		if (lent && !call->retry)
			lent_put(lent);
		atomic_init(&call->refs, 1);
		call_put(call);
		return rc;
	}
	if (!owned) {
		/* computed here, to spare the owner the work */
		if (!refused)
			(void)bulks_sum(call, UINT64_MAX);
		if (refused)
			call->work.fn = on_refused_arrival;
		else if (conf_scope(conf))
			call->work.fn = on_scoped_arrival;
		return call_give(call, call_p);
	}
	/* Sets *call_p before the call can end. */
	if (call_p)
		*call_p = call;
	call_enter_lent(call);
	call_sum(call);
	return 0;
}

/* Is a call with @conf, which has no trace, to begin one? */
static bool is_root(struct shard *s, const struct ulrpc_call_conf *conf)
{
	return unlikely(samples(s)) && !conf->trace &&
	       !(conf_scope(conf) && conf_scope(conf)->traced) && spans_lot(s);
}

/* Returns @conf, or *@own if the client has a limit for replies and @conf has
 * none. */
static const struct ulrpc_call_conf *conf_limited(
	const struct ulrpc_client *c, const struct ulrpc_call_conf *conf,
	struct ulrpc_call_conf *own)
{
	uint32_t limit =
		atomic_load_explicit(&c->reply_limit, memory_order_relaxed);

	if (likely(!limit) || conf->reply_limit)
		return conf;
	*own = *conf;
	own->reply_limit = limit;
	return own;
}

int call_begin_checked(struct ulrpc_client *client, uint32_t method,
		       const void *body, size_t length,
		       const struct ulrpc_call_conf *conf, ulrpc_done_fn done,
		       void *arg, struct ulrpc_call **call_p)
{
	struct ulrpc_call_conf own;
	int rc = call_conf_check(conf, done);

	if (!rc)
		rc = client_check(client);
	conf = conf_limited(client, conf, &own);
	return rc ? rc
		  : call_begin_loaded(client, method, body, length, conf,
				      is_root(client->shard, conf), done, arg,
				      call_p);
}

/* What ulrpc_call() does in rare cases: outside of a turn of the client's CPT,
 * with options that few calls have, or when the client takes no calls. */
static out_of_line int call_begin_rare(struct ulrpc_client *client,
				       uint32_t method, const void *body,
				       size_t length,
				       const struct ulrpc_call_conf *conf,
				       ulrpc_done_fn done, void *arg,
				       struct ulrpc_call **call_p)
{
	struct shard *s = client->shard;
	struct ulrpc_call_conf own;
	bool owned, root;
	struct ulrpc_call *call;
	int rc = client_check(client);

	if (rc)
		return rc;
	if (unlikely(client->chain))
		return call_begin_intercepted(client, method, body, length,
					      conf, done, arg, call_p);
	conf = conf_limited(client, conf, &own);
	root = is_root(s, conf);
	if (unlikely(root || conf_load(conf) || is_lent(client, length)))
		return call_begin_loaded(client, method, body, length, conf,
					 root, done, arg, call_p);
	owned = shard_owned(s);
	call = call_make(client, sizeof(*call) + length, call_p || !owned, conf,
			 shard_now(s));
	if (!call)
		return -ENOMEM;
	call_fill(call, method, body, length, done, arg, call_p);
	if (!owned)
		return call_give(call, call_p);
	/* Sets *call_p before the call can end. */
	if (call_p)
		*call_p = call;
	call_start(call);
	return 0;
}

int ulrpc_call(struct ulrpc_client *client, uint32_t method, const void *body,
	       size_t length, const struct ulrpc_call_conf *conf,
	       ulrpc_done_fn done, void *arg, struct ulrpc_call **call_p)
{
	struct shard *s = client->shard;
	/* 0: the thread is not in a turn of this CPT */
	uint64_t now = lnet_turn(s->node, s->cpt);
	struct ulrpc_call *call;
	int rc = call_conf_check(conf, done);

	if (rc)
		return rc;
	if (unlikely(!now || length > BODY_USUAL || call_is_rare(client, conf)))
		return call_begin_rare(client, method, body, length, conf, done,
				       arg, call_p);
	call = call_make(client, sizeof(*call) + length, call_p, conf, now);
	if (!call)
		return -ENOMEM;
	call_fill(call, method, body, length, done, arg, call_p);
	/* Sets *call_p before the call can end. */
	if (call_p)
		*call_p = call;
	call_start(call);
	return 0;
}
