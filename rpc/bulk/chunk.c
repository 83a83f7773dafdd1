/* SPDX-License-Identifier: BSD-3-Clause */
/* The chunks of transfers: sends them, repeats those that are lost, and ends a
 * transfer that has no chunk left. How transfers begin, and who waits for them,
 * is in transfer.c. */
#include "rpc/bulk/transfer_priv.h"

#include <errno.h>

#include "rpc/bulk/bulk.h"
#include "rpc/conn_event.h"
#include "rpc/stats/stat.h"

static const struct fsm_state chunk_states[CHUNK_STATES] = {
	[CHUNK_FREE] = { "free", FSM_TO(CHUNK_WAITING) | FSM_TO(CHUNK_AWAY) },
	[CHUNK_FLYING] = { "flying", FSM_TO(CHUNK_FREE) | FSM_TO(CHUNK_LATE) |
					     FSM_TO(CHUNK_WAITING) |
					     FSM_TO(CHUNK_AWAY) },
	[CHUNK_LATE] = { "late", FSM_TO(CHUNK_FREE) | FSM_TO(CHUNK_WAITING) |
					 FSM_TO(CHUNK_AWAY) },
	[CHUNK_WAITING] = { "waiting",
			    FSM_TO(CHUNK_FREE) | FSM_TO(CHUNK_FLYING) },
	[CHUNK_AWAY] = { "away", FSM_TO(CHUNK_FREE) | FSM_TO(CHUNK_WAITING) },
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
	if (status && !t->failed && !transfer_is_canceled(x))
		t->failed = status;
	*(x->r->access == ULRPC_BULK_SOURCE ? &t->in : &t->out) += x->moved;
	moved = status ? MIN(x->low, x->next.offset) : x->span.length;
	moved = MIN(moved - MIN(moved, x->skip), x->wanted);
	list_del(&x->link);
	list_del(&x->slice);
	if (list_empty(&t->active)) {
		t->time += shard_now(shard) - t->since;
		list_del(&t->link);
	}
	bulk_room_give(shard, &x->rest);
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

/* Moves @p to the state FREE. */
static void chunk_free(struct chunk *p)
{
	if (unlikely(p->sealed.bytes))
		bulk_room_give(p->x->t->conf.shard, &p->sealed);
	fsm_move(&p->fsm, chunk_states, CHUNK_FREE);
	p->x->busy--;
	p->x->t->busy--;
}

/* Counts @p as not moved, and does not repeat it. */
static void chunk_lost(struct chunk *p)
{
	stat_count(p->x->t->conf.shard, RPC_STAT_segments_failed);
	p->x->low = MIN(p->x->low, p->at.offset);
	chunk_free(p);
}

void chunk_give_up(const struct chunk *p)
{
	/* -ENOENT means that the MD's last event is on its way */
	LNetMDUnlink(p->md);
}

void transfer_fail(struct transfer *x, int status)
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

/* Returns how long (ns) a try usually takes that is not lost; 0: that is not
 * known. */
static uint64_t chunk_usual(const struct chunk *p)
{
	const struct transfers *t = p->x->t;
	uint64_t slowest = atomic_load_explicit(&t->progress.slowest,
						memory_order_relaxed);

	if (unlikely(!t->conf.pace))
		return slowest;
	return bulk_pace_usual(t->conf.pace, p->length, slowest,
			       p->schedule.lossy);
}

/* Is the network known to lose messages of @t? */
static bool transfers_are_lossy(const struct transfers *t, uint64_t now)
{
	return t->lossy ||
	       (t->conf.pace && bulk_pace_is_lossy(t->conf.pace, now));
}

/* Returns the time, ns, for a try that begins at @now; 0: none is left. */
static uint64_t chunk_time(const struct chunk *p, uint64_t now)
{
	const struct transfers_conf *c = &p->x->t->conf;
	uint64_t deadline = c->deadline == TIME_NEVER
				    ? rpc_at(p->first, c->retry_time)
				    : c->deadline;

	return retry_schedule_time(&p->schedule, now,
				   MIN(deadline, p->x->deadline),
				   chunk_usual(p));
}

static int chunk_bind(struct chunk *p, uint64_t time)
{
	struct transfer *x = p->x;
	struct iovec iov[LNET_MAX_IOV];
	uint32_t length;
	struct ulnet_md md = {
		/* two operations: the GET or PUT, and its answer */
		.threshold = 2,
		.options = LNET_MD_PREFER_PATH | LNET_MD_OF_LAYER,
		.user_ptr = p,
		.handler = chunk_on_event,
		.timeout = time / NSEC_PER_USEC,
	};
	unsigned int n = cursor_slice(&x->span, &p->at, p->length, iov,
				      LNET_MAX_IOV, &length);

	if (unlikely(p->sealed.bytes)) {
		md.start = p->sealed.bytes;
		md.length = p->length;
	} else if (n == 1) {
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

/* Called when nothing was heard of the last try of @p, or nothing true. If that
 * try took the usual way, the next one takes another rail; otherwise the next
 * one takes the usual way. The usual way is not always the best: short messages
 * may get through on it while all longer ones are lost, or somebody may have
 * withheld the request, and delivered it by his own NID. */
static void chunk_turn(struct chunk *p)
{
	const struct transfers_conf *c = &p->x->t->conf;

	p->elsewhere = lnet_nid_is_any(&p->rail) ||
		       (lnet_nid_eq(&p->rail, &c->peer.nid) &&
			lnet_nid_eq(&p->local, &c->self));
}

/* Is there another way than the usual one? Then sets *@nid to the NID to which
 * it goes. If LNet knows several NIDs of the caller, LNet chooses by health;
 * otherwise it is another NID from which the caller has sent. That NID has
 * precedence if LNet does not know it as the caller's: for then the one of the
 * usual way need not be the caller's, either, however many NIDs are there. */
static bool chunk_other_way(const struct transfers_conf *c,
			    struct ulnet_nid *nid)
{
	struct ulnet_nid other = c->peer.nid;
	bool has_other = c->other && c->other(c->caller, &other);

	if (lnet_is_multi_rail(c->shard->node, nid) &&
	    (!has_other || shard_same_peer(c->shard, nid, &other)))
		return true;
	*nid = other;
	return has_other;
}

/* Sets the NIDs between which this try of @p goes. *@self: the NID of this
 * node; ANY: LNet chooses it. The usual way is the one by which the request
 * came, until another one has shown to be better: chunk_found_way(). */
static void chunk_way(const struct chunk *p, struct ulnet_nid *self,
		      struct ulnet_id *peer)
{
	const struct transfers_conf *c = &p->x->t->conf;
	bool any = chunk_is_spread(p);

	*peer = c->peer;
	if (unlikely(p->elsewhere))
		any = chunk_other_way(c, &peer->nid);
	*self = any ? LNET_NID_ANY : c->self;
}

/* Called when @p was moved by another way than the usual one, on which nothing
 * was heard of it, or nothing true: from now on that way is the usual one. If
 * each chunk tried both, it would take too long. */
static out_of_line void chunk_found_way(struct chunk *p)
{
	struct transfers_conf *c = &p->x->t->conf;

	if (lnet_nid_is_any(&p->rail) || lnet_nid_is_any(&p->local))
		return;
	c->peer.nid = p->rail;
	c->self = p->local;
	p->elsewhere = false;
}

/* Returns the header data of a PUT. */
static uint64_t chunk_proof(const struct chunk *p, uint64_t match)
{
	if (likely(!p->x->crc))
		return 0;
	return bulk_proof(p->x->r->protection ? transfer_seal_proof(p, match)
					      : p->crc);
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
		       match, p->at.in_segment, chunk_proof(p, match));
}

/* Returns from when on (ns) the try of @p, which is FLYING, is late.
 * TIME_NEVER: its MD ends the try. */
static uint64_t chunk_late_at(const struct chunk *p)
{
	const struct transfers *t = p->x->t;

	if (p->order >= t->passed)
		return TIME_NEVER;
	return p->began + retry_schedule_limit(&p->schedule, chunk_usual(p));
}

/* Returns when (ns) something is to be done about @p; TIME_NEVER: nothing. */
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

void transfer_arm(struct transfer *x)
{
	uint64_t at = MIN(MIN(x->deadline, x->sweep), x->starved);

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
	if (p->status == -ETIMEDOUT)
		p->waited = now - p->began;
	if (p->status == -ETIMEDOUT || p->status == -EBADMSG)
		chunk_turn(p);
	/* If the match values differ, the attempt that @p belonged to was over,
	 * and the network has not failed. */
	if (p->match == x->r->match)
		pause = retry_schedule_pause(&p->schedule, p->status,
					     p->order < x->t->passed,
					     shard_random(s, UINT64_MAX));
	x->t->lossy |= p->schedule.lossy;
	p->schedule.lossy = transfers_are_lossy(x->t, now);
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

	if (!p->first) {
		p->first = now;
		p->schedule.lossy = transfers_are_lossy(p->x->t, now);
	}
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

/* Called in a new turn: lets the transfers go on for which there was no time in
 * the last turn, in their order, as far as there is time now. */
static void on_next_turn(struct ulnet_work *w)
{
	struct bulk_pool *pool = container_of(w, struct bulk_pool, work);
	struct shard *s = pool->shard;
	struct list waiting;
	struct transfer *x;

	pool->posted = false;
	pool->sealed = 0;
	list_init(&waiting);
	list_splice_tail(&waiting, &pool->waiting);
	while ((x = list_pop(&waiting, struct transfer, slice)))
		transfer_go(x);
	shard_release(s);
}

/* Called when transfer_seal_pause() has returned @pause: @x makes no more
 * chunks before the next turn, or before @pause ns are over. */
static void transfer_starve(struct transfer *x, uint64_t pause)
{
	struct shard *s = x->t->conf.shard;
	struct bulk_pool *pool = s->bulk_pool;

	if (pause != SEAL_NEXT_TURN) {
		x->starved = shard_now(s) + pause;
		transfer_arm(x);
		return;
	}
	if (!pool->posted) {
		pool->posted = true;
		pool->work.fn = on_next_turn;
		shard_hold(s);
		shard_post(s, &pool->work);
	}
	list_del(&x->slice);
	list_add_tail(&pool->waiting, &x->slice);
}

/* Seals @p, a new chunk of a sealed sink. Returns what transfer_seal_chunk()
 * does; after an error @p cannot be sent, at least not now. */
static out_of_line int chunk_seal(struct chunk *p)
{
	struct transfer *x = p->x;
	int rc = transfer_seal_chunk(x, p);

	if (rc < 0 && rpc_is_short(rc))
		transfer_starve(x, SEAL_PAUSE);
	else if (rc < 0)
		transfer_fail(x, rc);
	return rc;
}

void transfer_go(struct transfer *x)
{
	struct iovec iov[LNET_MAX_IOV];
	uint64_t pause;
	int rc = 0;

	x->starved = TIME_NEVER;
	for (unsigned int i = 0; i < x->nchunks; i++) {
		struct chunk *p = &x->chunks[i];

		if (x->status || x->next.offset == x->span.length ||
		    x->t->busy == x->t->conf.window)
			break;
		if (p->fsm.state != CHUNK_FREE)
			continue;
		pause = transfer_seal_pause(x);
		if (unlikely(pause)) {
			transfer_starve(x, pause);
			break;
		}
		*p = (struct chunk){ .x = x, .at = x->next };
		cursor_slice(&x->span, &p->at, cursor_room(&x->span, &p->at),
			     iov, LNET_MAX_IOV, &p->length);
		if (unlikely(x->r->protection) && x->crc)
			rc = chunk_seal(p);
		if (unlikely(rc < 0))
			break;
		cursor_move(&x->span, &x->next, p->length);
		transfer_sum_chunk(x, p);
		x->busy++;
		x->t->busy++;
		fsm_move(&p->fsm, chunk_states,
			 rc ? CHUNK_AWAY : CHUNK_WAITING);
		if (likely(!rc))
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

void transfer_on_timer(struct ulnet_timer *timer)
{
	struct transfer *x = container_of(timer, struct transfer, timer);
	uint64_t now = shard_now(x->t->conf.shard);

	if (unlikely(x->deadline <= now)) {
		transfer_fail(x, -ETIMEDOUT);
		return;
	}
	if (unlikely(x->sweep <= now))
		transfer_sweep(x);
	if (unlikely(x->starved <= now) && x->t->conf.deadline <= now) {
		transfer_fail(x, -ETIMEDOUT);
		return;
	}
	if (unlikely(x->starved <= now))
		transfer_go(x);
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

/* Called when the chunk of the try @order was moved, and there are older tries,
 * whose chunks are perhaps lost. */
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

/* How often a segment is got again. If it is still wrong after that, the caller
 * has probably changed the memory. */
#define DAMAGES_MAX 8

/* Called when the segment of @p, a source, has arrived changed: gets all of the
 * segment again. That is safe for every call, because the handler has seen
 * nothing of it. */
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

/* If the segment of @p is being got again, and is not complete, goes on with
 * the next part of it, and returns true. */
static bool chunk_goes_on(struct chunk *p)
{
	struct transfer *x = p->x;

	if (likely(!p->damages) || x->status || !transfer_sum_next(x, p))
		return false;
	fsm_move(&p->fsm, chunk_states, CHUNK_WAITING);
	chunk_send(p);
	return true;
}

/* Called when @p has come at @now, ns, and is as it should be. */
static void chunk_is_good(struct chunk *p, uint64_t now)
{
	struct transfer *x = p->x;
	struct bulk_pace *pace = x->t->conf.pace;

	stat_count(x->t->conf.shard, RPC_STAT_segments_moved);
	progress_note(&x->t->progress, p->began, now);
	if (likely(pace))
		bulk_pace_note(pace, now - p->began, p->length);
	if (unlikely(p->waited) && pace)
		bulk_pace_note_loss(pace, p->waited, now - p->began, now);
	x->moved += p->length;
	x->t->segments++;
	x->t->conn_losses = 0;
	if (unlikely(p->elsewhere))
		chunk_found_way(p);
	if (chunk_goes_on(p))
		return;
	chunk_free(p);
	if (likely(p->order == x->t->oldest))
		x->t->oldest++;
	else
		transfers_on_passed(x->t, p->order);
	transfer_settle(x);
}

static void chunk_moved(struct chunk *p)
{
	struct transfer *x = p->x;
	int rc = 0;

	if (x->left)
		rc = transfer_sum_check(x, p);
	if (likely(!rc))
		chunk_is_good(p, shard_now(x->t->conf.shard));
	else if (rc > 0)
		fsm_move(&p->fsm, chunk_states, CHUNK_AWAY);
	else
		chunk_damaged(p);
}

void chunk_on_away(struct chunk *p, int rc, uint64_t at)
{
	struct transfer *x = p->x;

	if (x->r->access == ULRPC_BULK_SOURCE && rc) {
		chunk_damaged(p);
	} else if (x->r->access == ULRPC_BULK_SOURCE) {
		chunk_is_good(p, at);
	} else if (rc || x->status) {
		chunk_lost(p);
		transfer_fail(x, rc);
	} else {
		fsm_move(&p->fsm, chunk_states, CHUNK_WAITING);
		chunk_send(p);
	}
	transfers_go(x->t);
}

/* Called after the last event of a try. */
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

/* Called by LNet. SEND may come before the answer or after it; after the answer
 * it does not count. */
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
		/* This node has unlinked the MD, but all bytes had been moved
		 * before. */
		if (ev->cause == LNET_CAUSE_CANCELED &&
		    ev->outcome == LNET_OUTCOME_DELIVERED && ev->mlength)
			p->status = 0;
		if (p->status == 0 && ev->mlength != p->length) {
			/* Sealed bulk is moved again, whether the payload or
			 * its header was changed. */
			p->status = -EPROTO;
			p->final = !p->x->r->protection;
		}
	} else if (ev->terminal && !p->answered) {
		p->status = ev->status ? ev->status : -EIO;
	}
	if (ev->unlinked)
		chunk_on_last(p);
	else if (ev->terminal)
		LNetMDUnlink(ev->md);
}
