/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/bulk/transfer_priv.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "rpc/bulk/bulk.h"
#include "rpc/conn_event.h"
#include "rpc/stats/stat.h"

static const struct fsm_state chunk_states[CHUNK_STATES] = {
	[CHUNK_FREE] = { "free", FSM_TO(CHUNK_WAITING) },
	[CHUNK_FLYING] = { "flying", FSM_TO(CHUNK_FREE) | FSM_TO(CHUNK_LATE) |
					     FSM_TO(CHUNK_WAITING) },
	[CHUNK_LATE] = { "late", FSM_TO(CHUNK_FREE) | FSM_TO(CHUNK_WAITING) },
	[CHUNK_WAITING] = { "waiting",
			    FSM_TO(CHUNK_FREE) | FSM_TO(CHUNK_FLYING) },
};

static void transfers_go(struct transfers *t);

/* ---- the end ---- */

/* Calls @done, which may reply to the request. If this was the last transfer,
 * calls the function of transfer_on_done(), too. */
static void transfers_tell(struct transfers *t, ulrpc_bulk_fn done, void *arg,
			   int status, uint64_t moved)
{
	void (*on_done)(void *arg) = NULL;

	if (atomic_fetch_sub(&t->pending, 1) == 1) {
		on_done = t->on_done;
		t->on_done = NULL;
	}
	if (!shard_is_mute(t->conf.shard))
		done(arg, status, moved);
	if (on_done)
		on_done(t->on_done_arg);
}

/* Has the service canceled @x? Then the end of @x is no failure. */
static bool is_canceled(const struct transfer *x)
{
	return x->cancels != atomic_load(&x->r->cancels);
}

static void transfer_end(struct ulnet_work *w)
{
	struct transfer *x = container_of(w, struct transfer, work);
	struct transfers *t = x->t;
	struct shard *shard = t->conf.shard;
	ulrpc_bulk_fn done = x->done;
	void *arg = x->arg;
	int status = x->status;
	uint64_t moved;

	if (status)
		transfer_sum_forget(x);
	if (status && !t->failed && !is_canceled(x))
		t->failed = status;
	*(x->r->access == ULRPC_BULK_SOURCE ? &t->in : &t->out) += x->moved;
	moved = status ? MIN(x->low, x->next.offset) : x->span.length;
	list_del(&x->link);
	if (list_empty(&t->active)) {
		t->time += shard_now(shard) - t->since;
		list_del(&t->link);
	}
	free(x);
	transfers_go(t);
	transfers_tell(t, done, arg, status, moved);
	transfers_free(t);
	shard_release(shard);
}

/* Schedules the end of @x, if none of its chunks is under way, and none is left
 * to send. */
static void transfer_settle(struct transfer *x)
{
	if (x->busy || x->ending ||
	    (x->status == 0 && x->next.offset < x->span.length))
		return;
	x->ending = true;
	shard_cancel(x->t->conf.shard, &x->timer);
	x->work.fn = transfer_end;
	shard_defer(x->t->conf.shard, &x->work);
}

/* Moves @p to FREE. */
static void chunk_free(struct chunk *p)
{
	fsm_move(&p->fsm, chunk_states, CHUNK_FREE);
	p->x->busy--;
	p->x->t->busy--;
}

/* @p was not moved, and is not repeated. */
static void chunk_lost(struct chunk *p)
{
	stat_count(p->x->t->conf.shard, RPC_STAT_segments_failed);
	p->x->low = MIN(p->x->low, p->at.offset);
	chunk_free(p);
}

static void chunk_give_up(const struct chunk *p)
{
	LNetMDUnlink(p->md); /* -ENOENT: its last event is on the way */
}

/* Ends @x with @status, by work, unless all of it was moved. Sends no more
 * chunks, and gives up those that are under way. */
static void transfer_fail(struct transfer *x, int status)
{
	if (x->ending)
		return;
	if (x->status == 0)
		x->status = status;
	for (unsigned int i = 0; i < x->nchunks; i++) {
		struct chunk *p = &x->chunks[i];

		if (p->fsm.state == CHUNK_WAITING)
			chunk_lost(p);
		else if (p->fsm.state == CHUNK_FLYING)
			chunk_give_up(p);
	}
	transfer_settle(x);
}

/* ---- chunks ---- */

static void chunk_on_event(const struct ulnet_event *ev);

/* How long, ns, tries take that are not lost; 0: not known. */
static uint64_t chunk_usual(const struct chunk *p, uint64_t now)
{
	const struct transfers *t = p->x->t;
	uint64_t slowest = atomic_load_explicit(&t->progress.slowest,
						memory_order_relaxed);

	if (slowest || !t->conf.loss)
		return slowest;
	return bulk_loss_usual(t->conf.loss, p->length, now);
}

/* Time, ns, for a try that begins at @now; 0: none is left. */
static uint64_t chunk_time(const struct chunk *p, uint64_t now)
{
	const struct transfers_conf *c = &p->x->t->conf;
	uint64_t deadline = c->deadline == TIME_NEVER
				    ? rpc_at(p->first, c->retry_time)
				    : c->deadline;

	return retry_schedule_time(&p->schedule, now,
				   MIN(deadline, p->x->deadline),
				   chunk_usual(p, now));
}

static int chunk_bind(struct chunk *p, uint64_t time)
{
	struct transfer *x = p->x;
	struct iovec iov[LNET_MAX_IOV];
	uint32_t length;
	struct ulnet_md md = {
		.threshold = 2, /* the GET or PUT, and its answer */
		.options = LNET_MD_PREFER_PATH | LNET_MD_OF_LAYER,
		.user_ptr = p,
		.handler = chunk_on_event,
		.timeout = time / NSEC_PER_USEC,
	};
	unsigned int n = cursor_slice(&x->span, &p->at, p->length, iov,
				      LNET_MAX_IOV, &length);

	if (n == 1) {
		md.start = iov[0].iov_base;
		md.length = length;
	} else {
		md.start = iov;
		md.length = n;
		md.options |= LNET_MD_IOVEC;
	}
	return LNetMDBind(x->t->conf.shard->node, &md, LNET_UNLINK, &p->md);
}

/* May LNet choose the rail for this try of @p? Only for the first try of a
 * chunk that is not the whole transfer, and to a peer with several rails. Such
 * a peer probably knows the other NIDs of this node; if it does not, it refuses
 * messages from them. A process that only calls is known by the NID that it has
 * called from. */
static bool chunk_is_spread(const struct chunk *p)
{
	const struct transfers_conf *c = &p->x->t->conf;

	return p->length < p->x->span.length && !p->status &&
	       !(c->peer.pid & LNET_PID_USERFLAG) &&
	       lnet_is_multi_rail(c->shard->node, &c->peer.nid);
}

/* Nothing was heard of the last try of @p. If that took the way by which the
 * request came, the next one takes another, and the other way round: a rail by
 * which requests and extensions get through may lose all that is longer. */
static void chunk_turn(struct chunk *p)
{
	const struct transfers_conf *c = &p->x->t->conf;

	p->elsewhere = lnet_nid_is_any(&p->rail) ||
		       (lnet_nid_eq(&p->rail, &c->peer.nid) &&
			lnet_nid_eq(&p->local, &c->self));
}

/* Chooses from where (ANY: LNet chooses) to where this try of @p goes. If LNet
 * knows the caller by several NIDs, it takes one whose health has not just
 * suffered; if it does not, RPC knows by which the caller has sent. */
static void chunk_way(const struct chunk *p, struct ulnet_nid *self,
		      struct ulnet_id *peer)
{
	const struct transfers_conf *c = &p->x->t->conf;
	bool any = chunk_is_spread(p);

	*peer = c->peer;
	if (unlikely(p->elsewhere))
		any = lnet_is_multi_rail(c->shard->node, &c->peer.nid) ||
		      (c->other && c->other(c->caller, &peer->nid));
	*self = any ? LNET_NID_ANY : c->self;
}

static int chunk_launch(struct chunk *p)
{
	struct remote *r = p->x->r;
	uint64_t match = r->match + p->at.segment;
	struct ulnet_nid self;
	struct ulnet_id peer;

	chunk_way(p, &self, &peer);
	if (r->access == ULRPC_BULK_SOURCE)
		return LNetGet(self, p->md, peer, ULRPC_PORTAL_BULK, match,
			       p->at.in_segment);
	r->tried = true;
	return LNetPut(self, p->md, LNET_ACK_REQ, peer, ULRPC_PORTAL_BULK,
		       match, p->at.in_segment,
		       p->x->crc ? bulk_proof(p->crc) : 0);
}

/* When, ns, the try of @p, which is FLYING, is late. TIME_NEVER: its MD ends
 * the try. */
static uint64_t chunk_late_at(const struct chunk *p)
{
	const struct transfers *t = p->x->t;

	if (p->order >= t->passed)
		return TIME_NEVER;
	return p->began +
	       retry_schedule_limit(&p->schedule, chunk_usual(p, p->began));
}

/* When, ns, something is to be done about @p; TIME_NEVER: nothing. */
static uint64_t chunk_next(const struct chunk *p)
{
	switch (p->fsm.state) {
	case CHUNK_WAITING:
		return p->again;
	case CHUNK_FLYING:
		return chunk_late_at(p);
	default:
		return TIME_NEVER;
	}
}

static void transfer_arm(struct transfer *x)
{
	uint64_t at = MIN(x->deadline, x->sweep);

	if (x->status || x->ending)
		return;
	for (unsigned int i = 0; i < x->nchunks; i++)
		at = MIN(at, chunk_next(&x->chunks[i]));
	if (at != TIME_NEVER)
		shard_arm(x->t->conf.shard, &x->timer, at);
}

/* Repeats @p, whose try has failed or could not begin. LNet has no MD of it. */
static void chunk_retry(struct chunk *p)
{
	struct transfer *x = p->x;
	struct shard *s = x->t->conf.shard;
	uint64_t now = shard_now(s), pause = 0;

	stat_count(s, RPC_STAT_segments_retried);
	if (p->status == -ETIMEDOUT) {
		p->waited = now - p->began;
		chunk_turn(p);
	}
	/* If the match values differ, the caller's attempt was over, and
	 * nothing failed in the network. */
	if (p->match == x->r->match)
		pause = retry_schedule_pause(&p->schedule, p->status,
					     p->order < x->t->passed,
					     shard_random(s, UINT64_MAX));
	x->t->lossy |= p->schedule.lossy;
	p->again = MAX(now, p->began + pause);
	if (p->fsm.state != CHUNK_WAITING)
		fsm_move(&p->fsm, chunk_states, CHUNK_WAITING);
	if (chunk_time(p, p->again) == 0) {
		transfer_fail(x, p->status);
		return;
	}
	transfer_arm(x);
}

/* Begins a try of @p, which is WAITING. */
static void chunk_send(struct chunk *p)
{
	uint64_t now = shard_now(p->x->t->conf.shard);
	uint64_t time;
	int rc;

	if (!p->first)
		p->first = now;
	time = chunk_time(p, now);
	if (time == 0) {
		transfer_fail(p->x, p->status ? p->status : -ETIMEDOUT);
		return;
	}
	p->began = now;
	p->order = p->x->t->tries++;
	p->answered = false;
	p->rail = p->local = p->hop = LNET_NID_ANY;
	p->match = p->x->r->match;
	rc = chunk_bind(p, time);
	if (rc) {
		p->status = rc;
		if (rpc_is_short(rc))
			chunk_retry(p);
		else
			transfer_fail(p->x, rc);
		return;
	}
	fsm_move(&p->fsm, chunk_states, CHUNK_FLYING);
	p->status = chunk_launch(p);
	if (p->status) {
		p->final = !rpc_is_short(p->status);
		LNetMDUnlink(p->md);
	}
}

/* Makes chunks of the bytes that are next, and sends them, as many as the
 * window allows. */
static void transfer_go(struct transfer *x)
{
	struct iovec iov[LNET_MAX_IOV];

	for (unsigned int i = 0; i < x->nchunks; i++) {
		struct chunk *p = &x->chunks[i];

		if (x->status || x->next.offset == x->span.length ||
		    x->t->busy == x->t->conf.window)
			break;
		if (p->fsm.state != CHUNK_FREE)
			continue;
		*p = (struct chunk){ .x = x,
				     .at = x->next,
				     .schedule.lossy = x->t->lossy };
		cursor_slice(&x->span, &p->at, cursor_room(&x->span, &p->at),
			     iov, LNET_MAX_IOV, &p->length);
		cursor_move(&x->span, &x->next, p->length);
		transfer_sum_chunk(x, p);
		fsm_move(&p->fsm, chunk_states, CHUNK_WAITING);
		x->busy++;
		x->t->busy++;
		chunk_send(p);
	}
	transfer_settle(x);
}

/* Lets transfers go on, in the order in which they began. */
static void transfers_go(struct transfers *t)
{
	struct transfer *x;

	list_for_each_entry (x, &t->active, link) {
		if (t->busy == t->conf.window)
			break;
		transfer_go(x);
	}
}

/* Gives up the chunks that may be lost with the connection of x->conn_loss. */
static void transfer_sweep(struct transfer *x)
{
	x->sweep = TIME_NEVER;
	for (unsigned int i = 0; i < x->nchunks; i++)
		if (x->chunks[i].fsm.state == CHUNK_FLYING &&
		    conn_loss_covers(&x->conn_loss, x->chunks[i].began,
				     &x->chunks[i].rail))
			chunk_give_up(&x->chunks[i]);
}

/* Gives up the try of @p, which is probably lost. LNet cannot know that: its
 * time-out is that of the MD. */
static void chunk_is_late(struct chunk *p)
{
	const struct transfers_conf *c = &p->x->t->conf;
	const struct ulnet_id peer = { p->rail, c->peer.pid };

	conn_event_suspect(c->shard, &p->local, &peer, &p->hop);
	fsm_move(&p->fsm, chunk_states, CHUNK_LATE);
	chunk_give_up(p);
}

static void transfer_on_timer(struct ulnet_timer *timer)
{
	struct transfer *x = container_of(timer, struct transfer, timer);
	uint64_t now = shard_now(x->t->conf.shard);

	if (unlikely(x->deadline <= now)) {
		transfer_fail(x, -ETIMEDOUT);
		return;
	}
	if (unlikely(x->sweep <= now))
		transfer_sweep(x);
	for (unsigned int i = 0; i < x->nchunks; i++) {
		struct chunk *p = &x->chunks[i];

		if (p->fsm.state == CHUNK_WAITING && p->again <= now) {
			chunk_send(p);
		} else if (p->fsm.state == CHUNK_FLYING &&
			   chunk_late_at(p) <= now) {
			chunk_is_late(p);
		}
	}
	transfer_arm(x);
	transfer_settle(x);
}

static void progress_note(struct bulk_progress *progress, uint64_t began,
			  uint64_t now)
{
	uint64_t slowest =
		atomic_load_explicit(&progress->slowest, memory_order_relaxed);

	atomic_store_explicit(&progress->slowest, MAX(slowest, now - began),
			      memory_order_relaxed);
	atomic_store_explicit(&progress->last, now, memory_order_relaxed);
}

static bool chunk_is_under_way(const struct chunk *p)
{
	return p->fsm.state == CHUNK_FLYING || p->fsm.state == CHUNK_LATE;
}

/* The chunk of the try @order was moved, and that is not the oldest try. Those
 * that began earlier are perhaps lost. */
static out_of_line void transfers_on_passed(struct transfers *t, uint64_t order)
{
	struct transfer *x;

	t->passed = MAX(t->passed, order);
	t->oldest = t->tries;
	list_for_each_entry (x, &t->active, link) {
		for (unsigned int i = 0; i < x->nchunks; i++)
			if (chunk_is_under_way(&x->chunks[i]))
				t->oldest = MIN(t->oldest, x->chunks[i].order);
		transfer_arm(x);
	}
}

/* How often a segment is got again. If it is still wrong then, it is probably
 * the caller who has changed it. */
#define DAMAGES_MAX 8

/* The segment of @p, a source, has arrived changed: gets all of it again. That
 * is safe for every call, as the handler has not seen any of it. */
static void chunk_damaged(struct chunk *p)
{
	struct transfer *x = p->x;

	stat_count(x->t->conf.shard, RPC_STAT_segments_damaged);
	if (x->status || p->damages == DAMAGES_MAX) {
		chunk_lost(p);
		transfer_fail(x, -EBADMSG);
		return;
	}
	p->damages++;
	transfer_sum_again(x, p);
	p->status = -EBADMSG;
	chunk_retry(p);
}

/* Does @p, of a segment that is got again, have more to get? Then it goes on
 * with that. */
static bool chunk_goes_on(struct chunk *p)
{
	struct transfer *x = p->x;

	if (likely(!p->damages) || x->status || !transfer_sum_next(x, p))
		return false;
	fsm_move(&p->fsm, chunk_states, CHUNK_WAITING);
	chunk_send(p);
	return true;
}

static void chunk_moved(struct chunk *p)
{
	struct transfer *x = p->x;
	uint64_t now = shard_now(x->t->conf.shard);

	if (x->left && unlikely(transfer_sum_check(x, p))) {
		chunk_damaged(p);
		return;
	}
	stat_count(x->t->conf.shard, RPC_STAT_segments_moved);
	progress_note(&x->t->progress, p->began, now);
	if (unlikely(p->waited) && x->t->conf.loss)
		bulk_loss_note(x->t->conf.loss, p->waited, now - p->began,
			       p->length, now);
	x->moved += p->length;
	x->t->segments++;
	x->t->conn_losses = 0;
	if (chunk_goes_on(p))
		return;
	chunk_free(p);
	if (likely(p->order == x->t->oldest))
		x->t->oldest++;
	else
		transfers_on_passed(x->t, p->order);
	transfer_settle(x);
}

/* After the last event of a try. */
static void chunk_on_last(struct chunk *p)
{
	struct transfer *x = p->x;

	if (p->status == 0) {
		chunk_moved(p);
	} else if (x->status) {
		chunk_lost(p);
		transfer_settle(x);
	} else if (p->final) {
		int status = p->status;

		chunk_lost(p);
		transfer_fail(x, status);
	} else {
		if (p->fsm.state == CHUNK_LATE)
			p->status = -ETIMEDOUT;
		chunk_retry(p);
	}
	transfers_go(x->t);
}

/* The event SEND may come before the answer or after it; then it does not
 * count. */
static void chunk_on_event(const struct ulnet_event *ev)
{
	struct chunk *p = ev->user_ptr;
	const struct transfers_conf *c = &p->x->t->conf;

	if (ev->type == LNET_EVENT_SEND) {
		p->rail = ev->path_peer;
		p->local = ev->path_local;
		p->hop = ev->path_hop;
	}
	if (ev->type == LNET_EVENT_ACK || ev->type == LNET_EVENT_REPLY) {
		if (c->heard)
			*c->heard = shard_now(c->shard);
		p->answered = true;
		p->status = ev->status;
		/* This node has unlinked the MD, but all had been moved. */
		if (ev->cause == LNET_CAUSE_CANCELED &&
		    ev->outcome == LNET_OUTCOME_DELIVERED && ev->mlength)
			p->status = 0;
		if (p->status == 0 && ev->mlength != p->length) {
			p->status = -EPROTO;
			p->final = true;
		}
	} else if (ev->terminal && !p->answered) {
		p->status = ev->status ? ev->status : -EIO;
	}
	if (ev->unlinked)
		chunk_on_last(p);
	else if (ev->terminal)
		LNetMDUnlink(ev->md);
}

/* ---- beginning ---- */

static void transfer_begin(struct transfer *x)
{
	struct transfers *t = x->t;
	uint64_t now = shard_now(t->conf.shard);
	int rc = t->aborted;

	if (list_empty(&t->active))
		t->since = now;
	list_add_tail(&t->active, &x->link);
	if (t->conf.busy && !t->aborted && list_empty(&t->link))
		list_add_tail(t->conf.busy, &t->link);
	shard_hold(t->conf.shard);
	if (!rc && is_canceled(x))
		rc = -ECANCELED;
	if (!rc && x->crc)
		rc = transfer_sum_begin(x);
	if (!rc && t->conf.deadline <= now)
		rc = -ETIMEDOUT;
	x->status = rc;
	x->deadline = rpc_at(now, x->timeout);
	transfer_arm(x);
	transfer_go(x);
}

static void transfer_begin_posted(struct ulnet_work *w)
{
	struct transfer *x = container_of(w, struct transfer, work);
	struct shard *s = x->t->conf.shard;

	transfer_begin(x);
	shard_taken(s);
}

/* Copies the fragments that have bytes in them. */
static void span_set_iov(struct span *s, const struct iovec *iov,
			 unsigned int niov)
{
	for (unsigned int i = 0; i < niov; i++)
		if (iov[i].iov_len)
			s->iov[s->niov++] = iov[i];
}

/* Sets where in the segments @s begins; returns how many segments it meets. */
static unsigned int span_set_offset(struct span *s, uint64_t offset)
{
	uint64_t end;
	unsigned int n = 0;

	while (s->segment < s->nsegments && offset >= s->lengths[s->segment])
		offset -= s->lengths[s->segment++];
	s->in_segment = (uint32_t)offset;
	end = offset + s->length;
	for (unsigned int i = s->segment; s->length && i < s->nsegments; i++) {
		n++;
		if (end <= s->lengths[i])
			break;
		end -= s->lengths[i];
	}
	return n;
}

static struct transfer *transfer_alloc(struct transfers *t, struct remote *r,
				       uint64_t offset, uint64_t length,
				       unsigned int niov)
{
	struct transfer like = { .t = t,
				 .r = r,
				 .span = { .length = length,
					   .lengths = r->lengths,
					   .nsegments = r->n } };
	unsigned int segments = span_set_offset(&like.span, offset);
	/* Each chunk ends a segment, or has as many fragments as an MD may
	 * have. */
	uint64_t chunks = segments + (uint64_t)niov / LNET_MAX_IOV;
	uint64_t timeout = atomic_load(&r->timeout);
	size_t at, iov_at;
	struct transfer *x;

	chunks = MIN(chunks, t->conf.window);
	iov_at = sizeof(*x) + chunks * sizeof(x->chunks[0]);
	at = iov_at + niov * sizeof(struct iovec);
	x = malloc(at + segments * sizeof(uint32_t));
	if (!x)
		return NULL;
	memset(x, 0, iov_at);
	*x = like;
	x->low = UINT64_MAX;
	x->timeout = timeout ? rpc_ns(timeout) : TIME_NEVER;
	x->cancels = atomic_load(&r->cancels);
	x->nchunks = (unsigned int)chunks;
	x->span.iov = (struct iovec *)((char *)x + iov_at);
	if (r->checked && r->access == ULRPC_BULK_SOURCE)
		x->left = (uint32_t *)((char *)x + at);
	else if (r->checked)
		x->crc = (uint32_t *)((char *)x + at);
	x->sweep = TIME_NEVER;
	x->next = cursor_begin(&x->span);
	list_init(&x->link);
	lnet_timer_init(&x->timer, transfer_on_timer);
	return x;
}

int transfer_start(struct transfers *t, unsigned int index,
		   enum ulrpc_bulk_access access, uint64_t offset,
		   const struct iovec *iov, unsigned int niov,
		   ulrpc_bulk_fn done, void *arg)
{
	struct transfer *x;
	struct remote *r;
	uint64_t length;
	int rc;

	if (!t || index >= t->n)
		return -ENOENT;
	r = &t->remotes[index];
	if (r->access != access)
		return -EACCES;
	rc = iov_total(iov, niov, -ERANGE, &length);
	if (rc)
		return rc;
	if (!done)
		return -EINVAL;
	if (offset > r->length || length > r->length - offset)
		return -ERANGE;
	x = transfer_alloc(t, r, offset, length, niov);
	if (!x)
		return -ENOMEM;
	x->done = done;
	x->arg = arg;
	span_set_iov(&x->span, iov, niov);
	if (!transfer_checkable(x)) {
		free(x);
		return -EINVAL;
	}
	transfer_sum(x, shard_owned(t->conf.shard));
	atomic_fetch_add(&t->pending, 1);
	atomic_fetch_add(&t->refs, 1);
	if (shard_owned(t->conf.shard)) {
		transfer_begin(x);
	} else {
		x->work.fn = transfer_begin_posted;
		shard_give(t->conf.shard, &x->work);
	}
	return 0;
}

/* ---- waiting ---- */

static void waiter_done(void *arg, int status, uint64_t moved)
{
	struct transfer_waiter *w = arg;

	(void)moved;
	/* The waiting thread may free *@w as soon as the lock is free. */
	pthread_mutex_lock(&w->lock);
	w->status = status;
	w->done = true;
	lnet_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

int transfer_wait_begin(struct transfers *t, unsigned int index,
			enum ulrpc_bulk_access access, uint64_t offset,
			const struct iovec *iov, unsigned int niov,
			struct transfer_waiter *w)
{
	int rc;

	if (t && lnet_cpt_current(t->conf.shard->node) >= 0)
		return -EDEADLK;
	*w = (struct transfer_waiter){ .lock = PTHREAD_MUTEX_INITIALIZER };
	rc = lnet_cond_init(&w->cond);
	if (rc)
		return rc;
	rc = transfer_start(t, index, access, offset, iov, niov, waiter_done,
			    w);
	if (rc)
		lnet_cond_destroy(&w->cond);
	return rc;
}

bool transfer_wait(struct transfer_waiter *w, uint64_t until)
{
	int rc = 0;
	bool more;

	pthread_mutex_lock(&w->lock);
	while (!rc && !w->done && !w->woken)
		rc = lnet_cond_wait(&w->cond, &w->lock, until);
	w->woken = false;
	more = !w->done && rc != -ECANCELED;
	pthread_mutex_unlock(&w->lock);
	return more;
}

void transfer_wait_wake(struct transfer_waiter *w)
{
	pthread_mutex_lock(&w->lock);
	w->woken = true;
	lnet_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

int transfer_wait_end(struct transfer_waiter *w)
{
	while (transfer_wait(w, TIME_NEVER))
		;
	lnet_cond_destroy(&w->cond);
	return w->done ? w->status : -ECANCELED;
}

const struct bulk_progress *transfers_progress(const struct transfers *t)
{
	return &t->progress;
}

/* ---- later attempts ---- */

/* Does @s describe the same memory as @r? */
static bool remote_is_same(const struct remote *r,
			   const struct wire_segments_in *s)
{
	uint32_t values[ULRPC_SEGMENTS_MAX];
	size_t size = r->n * sizeof(values[0]);
	bool source = s->access == WIRE_ACCESS_SOURCE;

	if (s->n != r->n || source != (r->access == ULRPC_BULK_SOURCE) ||
	    (source ? s->has_checksums : s->checked) != r->checked)
		return false;
	wire_segments_lengths(s, values);
	if (size && memcmp(values, r->lengths, size) != 0)
		return false;
	if (!source || !r->checked)
		return true;
	wire_segments_checksums(s, values);
	return !size || memcmp(values, r->crc, size) == 0;
}

/* Repeats the chunks of @x at once, after giving up those that are under way.
 * @by_match: only those with an old match value. */
static void transfer_anew(struct transfer *x, bool by_match)
{
	for (unsigned int i = 0; i < x->nchunks; i++) {
		struct chunk *p = &x->chunks[i];

		if (by_match && p->match == x->r->match)
			continue;
		if (p->fsm.state == CHUNK_WAITING)
			p->again = shard_now(x->t->conf.shard);
		else if (p->fsm.state == CHUNK_FLYING)
			chunk_give_up(p);
	}
	transfer_arm(x);
}

void transfers_follow(struct transfers *t, const struct transfers_conf *conf)
{
	struct transfer *x;
	bool same;

	if (!t)
		return;
	same = shard_same_peer(t->conf.shard, &t->conf.peer.nid,
			       &conf->peer.nid);
	t->conf.self = conf->self;
	t->conf.peer = conf->peer;
	if (same)
		return;
	list_for_each_entry (x, &t->active, link)
		transfer_anew(x, false);
}

int transfers_refresh(struct transfers *t, const struct transfers_conf *conf,
		      const struct wire_call *call)
{
	struct wire_view bulks = call->bulks.view;
	struct wire_segments_in s[ULRPC_BULKS_MAX];
	struct transfer *x;

	if (call->bulks.n != transfers_count(t))
		return -EPROTO;
	for (unsigned int i = 0; i < call->bulks.n; i++)
		if (!wire_segments_next(&bulks, &s[i]) ||
		    !remote_is_same(&t->remotes[i], &s[i]))
			return -EPROTO;
	if (!t)
		return 0;
	t->conf.self = conf->self;
	t->conf.peer = conf->peer;
	t->conf.deadline = MAX(t->conf.deadline, conf->deadline);
	for (unsigned int i = 0; i < call->bulks.n; i++)
		t->remotes[i].match = s[i].match;
	list_for_each_entry (x, &t->active, link)
		transfer_anew(x, true);
	return 0;
}

/* ---- the loss of a connection ---- */

static void transfer_on_conn_loss(struct transfer *x,
				  const struct ulnet_nid *rail, uint64_t pause)
{
	uint64_t now = shard_now(x->t->conf.shard);
	bool pending = x->sweep != TIME_NEVER;

	conn_loss_note(&x->conn_loss, rail, now, pending);
	if (pending)
		return;
	x->sweep = now + pause;
	transfer_arm(x);
}

void transfers_on_conn_loss(const struct list *busy, uint64_t rtt,
			    const struct ulnet_nid *rail)
{
	struct transfers *t;
	struct transfer *x;

	list_for_each_entry (t, busy, link) {
		uint64_t pause = conn_loss_pause(
			rtt, 0, ++t->conn_losses,
			shard_random(t->conf.shard, UINT64_MAX));

		list_for_each_entry (x, &t->active, link)
			transfer_on_conn_loss(x, rail, pause);
	}
}

/* ---- cancellation ---- */

int transfer_timeout(struct transfers *t, unsigned int index, uint64_t us)
{
	if (index >= transfers_count(t))
		return -ENOENT;
	atomic_store(&t->remotes[index].timeout, us);
	return 0;
}

/* Has the thread that waits for @x given it up? */
static bool transfer_is_over(const struct transfer *x)
{
	const struct transfer_waiter *w = x->arg;

	return x->done == waiter_done && atomic_load(&w->over);
}

static void transfers_cancel(struct transfers *t)
{
	struct transfer *x;

	list_for_each_entry (x, &t->active, link) {
		if (is_canceled(x)) {
			transfer_fail(x, -ECANCELED);
		} else if (transfer_is_over(x)) {
			if (!x->status && !x->ending)
				stat_count(t->conf.shard,
					   RPC_STAT_transfers_given_up);
			transfer_fail(x, -ETIMEDOUT);
		}
	}
}

static void transfer_on_cancel(struct ulnet_work *w)
{
	struct transfers *t = container_of(w, struct transfers, cancel);
	struct shard *s = t->conf.shard;

	/* A cancellation that comes after this gives the work again. */
	atomic_store(&t->canceling, false);
	transfers_cancel(t);
	transfers_free(t);
	shard_taken(s);
}

/* For callers that may not be the owner. */
static void transfers_cancel_there(struct transfers *t)
{
	if (atomic_exchange(&t->canceling, true))
		return;
	t->cancel.fn = transfer_on_cancel;
	transfers_get(t);
	shard_give(t->conf.shard, &t->cancel);
}

int transfer_cancel(struct transfers *t, unsigned int index)
{
	if (index >= transfers_count(t))
		return -ENOENT;
	atomic_fetch_add(&t->remotes[index].cancels, 1);
	if (shard_owned(t->conf.shard))
		transfers_cancel(t);
	else
		transfers_cancel_there(t);
	return 0;
}

void transfer_wait_give_up(struct transfers *t, struct transfer_waiter *w)
{
	atomic_store(&w->over, true);
	transfers_cancel_there(t);
}

void transfer_abort(struct transfers *t, int status)
{
	struct transfer *x;

	if (!t || t->aborted)
		return;
	t->conf.heard = NULL;
	t->conf.busy = NULL;
	t->conf.loss = NULL;
	t->conf.other = NULL;
	list_del(&t->link);
	t->aborted = status;
	list_for_each_entry (x, &t->active, link)
		transfer_fail(x, status);
}
