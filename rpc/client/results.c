/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for the end of calls: of a set of them, or of a single one. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fork.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/fetch.h"
#include "rpc/sync.h"

/* ---- sets ---- */

/* A set of calls, which may belong to any CPTs: keeps their results until the
 * user takes them. When the user frees the set, calls that are under way are
 * canceled, and the last of them frees the memory. */
struct ulrpc_set {
	struct ulrpc *rpc;
	/* fork_generation() when the set was made */
	unsigned int generation;
	struct wait wait;	    /* the lock in it guards what follows */
	struct list pending, ended; /* of member.link */
	unsigned int npending, nended;
	unsigned int ngood; /* how many calls in @ended went well */
	/* what ulrpc_set_fd() returns, readable while nended is not 0; -1: not
	 * asked for */
	int fd;
	bool freed; /* the user has freed the set */
};

/* A call of a set. It has up to two users: the set, until the result is taken
 * or dropped; and ulrpc_set_call(), until it returns, as the call may end
 * before that on another thread. */
struct member {
	struct list link;
	struct ulrpc_set *set;
	struct ulrpc_call *call;
	unsigned int users;
	struct ulrpc_result result;
};

int ulrpc_set_new(struct ulrpc *rpc, struct ulrpc_set **set_p)
{
	struct ulrpc_set *set = calloc(1, sizeof(*set));
	int rc;

	if (!set)
		return -ENOMEM;
	rc = wait_init(&set->wait);
	if (rc) {
		free(set);
		return rc;
	}
	set->rpc = rpc;
	set->generation = fork_generation();
	set->fd = -1;
	list_init(&set->pending);
	list_init(&set->ended);
	*set_p = set;
	return 0;
}

/* Is this process a child of fork(), and the set its parent's? RPC may be gone.
 */
static bool set_is_forked(const struct ulrpc_set *set)
{
	return set->generation != fork_generation();
}

static void set_destroy(struct ulrpc_set *set)
{
	if (set->fd >= 0)
		close(set->fd);
	wait_fini(&set->wait);
	free(set);
}

/* Called when one user of @m does not need it any more; frees @m with its last
 * user. The caller holds the lock, unless nobody else has @m. */
static void member_put(struct member *m)
{
	if (--m->users)
		return;
	ulrpc_call_put(m->call);
	free(m->result.reply);
	free(m);
}

/* Makes set->fd readable, if there is one. The caller holds the lock. */
static void fd_raise(struct ulrpc_set *set)
{
	uint64_t one = 1;

	/* The counter is 0 or 1, so this cannot fail. */
	if (set->fd >= 0 && write(set->fd, &one, sizeof(one)) < 0)
		BUG_ON(errno != EAGAIN);
}

/* Makes set->fd unreadable, if there is one. The caller holds the lock. */
static void fd_clear(struct ulrpc_set *set)
{
	uint64_t count;

	if (set->fd >= 0 && read(set->fd, &count, sizeof(count)) < 0)
		BUG_ON(errno != EAGAIN);
}

int ulrpc_set_fd(struct ulrpc_set *set)
{
	int fd;

	if (set_is_forked(set))
		return -ESHUTDOWN;
	pthread_mutex_lock(&set->wait.lock);
	if (set->fd < 0) {
		set->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (set->fd < 0) {
			fd = -errno;
			pthread_mutex_unlock(&set->wait.lock);
			return fd;
		}
		if (set->nended)
			fd_raise(set);
	}
	fd = set->fd;
	pthread_mutex_unlock(&set->wait.lock);
	return fd;
}

static bool result_is_good(const struct ulrpc_result *result)
{
	return result->outcome.cause == ULRPC_CAUSE_OK;
}

static void on_member_done(void *arg, const struct ulrpc_outcome *outcome,
			   const void *reply, size_t length)
{
	struct member *m = arg;
	struct ulrpc_set *set = m->set;
	bool last = false;

	m->result.outcome = *outcome;
	if (reply)
		m->result.reply = fetch_take(m->call->shard, reply, length);
	if (reply && !m->result.reply)
		m->result.reply = reply_copy(reply, length, &m->result.outcome);
	if (m->result.reply)
		m->result.length = length;
	pthread_mutex_lock(&set->wait.lock);
	list_del(&m->link);
	set->npending--;
	if (set->freed) {
		last = !set->npending;
		member_put(m);
	} else {
		list_add_tail(&set->ended, &m->link);
		set->ngood += result_is_good(&m->result);
		if (set->nended++ == 0)
			fd_raise(set);
		wait_wake(&set->wait);
	}
	pthread_mutex_unlock(&set->wait.lock);
	if (last)
		set_destroy(set);
}

int ulrpc_set_call(struct ulrpc_set *set, struct ulrpc_client *client,
		   uint32_t method, const void *body, size_t length,
		   const struct ulrpc_call_conf *conf, void *arg,
		   struct ulrpc_call **call_p)
{
	struct member *m;
	int rc;

	if (set_is_forked(set))
		return -ESHUTDOWN;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->set = set;
	m->users = 2;
	m->result.arg = arg;
	m->result.method = method;
	/* Of a set's calls, the last one is likely to be waited for longest. */
	atomic_store_explicit(&set->wait.cpt, client->shard->cpt,
			      memory_order_relaxed);
	pthread_mutex_lock(&set->wait.lock);
	list_add_tail(&set->pending, &m->link);
	set->npending++;
	pthread_mutex_unlock(&set->wait.lock);
	rc = ulrpc_call(client, method, body, length, conf, on_member_done, m,
			&m->call);
	if (!rc && call_p) {
		call_get(m->call);
		*call_p = m->call;
	}
	pthread_mutex_lock(&set->wait.lock);
	if (rc) {
		list_del(&m->link);
		set->npending--;
		m->users = 1;
	}
	member_put(m);
	pthread_mutex_unlock(&set->wait.lock);
	return rc;
}

struct set_wait {
	struct ulrpc_set *set;
	unsigned int n;
	bool good; /* only results of calls that went well count */
};

static bool set_ready(void *arg)
{
	struct set_wait *w = arg;

	if (w->n == ULRPC_SET_ALL)
		return w->set->npending == 0;
	if (!w->good)
		return w->set->nended >= w->n;
	/* Also true if fewer calls are pending than good results are missing:
	 * more waiting would be of no use. */
	return w->set->ngood >= w->n || w->set->npending < w->n - w->set->ngood;
}

static int set_wait(struct set_wait *w, uint64_t timeout)
{
	struct ulrpc_set *set = w->set;
	struct lnet *node = set->rpc->node;
	unsigned int n;
	int rc = wait_until(&set->wait, node, set_ready, w,
			    rpc_at(lnet_now(node, 0), rpc_ns(timeout)));

	if (rc)
		return rc;
	pthread_mutex_lock(&set->wait.lock);
	n = w->good ? set->ngood : set->nended;
	pthread_mutex_unlock(&set->wait.lock);
	return (int)MIN(n, (unsigned int)INT_MAX);
}

int ulrpc_set_wait(struct ulrpc_set *set, unsigned int n, uint64_t timeout)
{
	struct set_wait w = { .set = set, .n = n };

	return set_wait(&w, timeout);
}

int ulrpc_set_wait_good(struct ulrpc_set *set, unsigned int n, uint64_t timeout)
{
	struct set_wait w = { .set = set, .n = n, .good = true };

	return set_wait(&w, timeout);
}

int ulrpc_set_next(struct ulrpc_set *set, struct ulrpc_result *result)
{
	struct member *m;

	if (set_is_forked(set))
		return -ESHUTDOWN;
	pthread_mutex_lock(&set->wait.lock);
	if (!set->nended) {
		pthread_mutex_unlock(&set->wait.lock);
		return -EAGAIN;
	}
	m = list_pop(&set->ended, struct member, link);
	set->ngood -= result_is_good(&m->result);
	if (--set->nended == 0)
		fd_clear(set);
	*result = m->result;
	m->result.reply = NULL;
	member_put(m);
	pthread_mutex_unlock(&set->wait.lock);
	return 0;
}

void ulrpc_set_free(struct ulrpc_set *set)
{
	struct list ended;
	struct member *m, *next;
	bool last;

	if (!set)
		return;
	if (set_is_forked(set)) {
		/* In a child of fork() the set's lists are not touched: another
		 * thread of the parent may have been changing them. */
		if (set->fd >= 0)
			close(set->fd);
		free(set);
		return;
	}
	list_init(&ended);
	pthread_mutex_lock(&set->wait.lock);
	list_splice_tail(&ended, &set->ended);
	set->nended = set->ngood = 0;
	set->freed = true;
	list_for_each_entry_safe (m, next, &set->pending, link) {
		ulrpc_cancel(m->call);
		if (!m->call->crashed)
			continue;
		/* The node has crashed: the callback never runs. */
		list_del(&m->link);
		list_add_tail(&ended, &m->link);
		set->npending--;
	}
	last = set->npending == 0;
	pthread_mutex_unlock(&set->wait.lock);
	while ((m = list_pop(&ended, struct member, link)))
		member_put(m);
	if (last)
		set_destroy(set);
}

/* ---- a call alone ---- */

struct call_sync {
	struct sync sync;
	struct shard *shard; /* the client's */
	struct ulrpc_outcome outcome;
	/* what the call is made of, and the call in virtual time, else NULL */
	struct ulrpc_client *client;
	uint32_t method;
	const void *body;
	size_t length;
	const struct ulrpc_call_conf *conf;
	struct ulrpc_call *call;
};

static void on_sync_done(void *arg, const struct ulrpc_outcome *outcome,
			 const void *reply, size_t length)
{
	struct call_sync *own = arg;

	own->outcome = *outcome;
	fetch_give(own->shard, &own->sync, reply, length, &own->outcome);
	sync_done(&own->sync);
}

static void sync_cancel(void *call)
{
	ulrpc_cancel(call);
}

/* The call is sent at once: its thread waits for it, and so makes no other
 * calls that could share the message. */
static int sync_call_begin(struct sync *sync)
{
	struct call_sync *own = container_of(sync, struct call_sync, sync);
	struct ulrpc_client *client = own->client;
	/* If not, RPC may be closed as soon as the call is on its way. */
	bool owned = shard_owned(own->shard);
	int rc = ulrpc_call(client, own->method, own->body, own->length,
			    own->conf, on_sync_done, own,
			    sync->is_virtual ? &own->call : NULL);

	if (!rc && owned)
		client_flush(client);
	return rc;
}

/* @own has what the call is made of. */
static int sync_call(struct call_sync *own, struct ulrpc_outcome *outcome)
{
	struct ulrpc_client *client = own->client;
	int rc = sync_init(&own->sync, client->shard);

	if (rc)
		return rc;
	own->shard = client->shard;
	/* Interceptors may wait on the caller's thread, which turns may not. */
	rc = client->chain ? sync_call_begin(&own->sync)
			   : sync_begin(&own->sync, sync_call_begin);
	if (!rc) {
		rc = sync_wait(&own->sync, sync_cancel, own->call);
		ulrpc_call_put(own->call);
	}
	sync_fini(&own->sync);
	if (!rc)
		*outcome = own->outcome;
	return rc;
}

int ulrpc_call_wait(struct ulrpc_client *client, uint32_t method,
		    const void *body, size_t length,
		    const struct ulrpc_call_conf *conf, void *reply,
		    size_t size, size_t *length_p,
		    struct ulrpc_outcome *outcome)
{
	struct call_sync own = {
		.sync = { .reply = reply, .size = size },
		.client = client,
		.method = method,
		.body = body,
		.length = length,
		.conf = conf,
	};
	int rc = sync_call(&own, outcome);

	if (!rc && length_p)
		*length_p = own.sync.length;
	return rc;
}

int ulrpc_call_wait_alloc(struct ulrpc_client *client, uint32_t method,
			  const void *body, size_t length,
			  const struct ulrpc_call_conf *conf, void **reply_p,
			  size_t *length_p, struct ulrpc_outcome *outcome)
{
	struct call_sync own = {
		.sync = { .alloc = true },
		.client = client,
		.method = method,
		.body = body,
		.length = length,
		.conf = conf,
	};
	int rc = sync_call(&own, outcome);

	if (!rc) {
		*reply_p = own.sync.reply;
		*length_p = own.sync.length;
	}
	return rc;
}
