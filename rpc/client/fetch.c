/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/fetch.h"

#include <errno.h>
#include <string.h>

#include "base/share.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/sync.h"
#include "rpc/wire/wire.h"

/* Bytes that one GET gets, at most. */
#define PIECE_MAX ULRPC_BODY_MAX
/* Time-out of the message of fetch_release(), in us. */
#define RELEASE_TIMEOUT UINT64_C(1000000)
/* How long a GET of a reply probably takes, as long as none has succeeded. */
#define TIME_UNKNOWN (250 * NSEC_PER_MSEC)
/* After so long without any answer, the server has probably dropped the reply.
 */
#define HOPELESS_AFTER (600 * NSEC_PER_SEC)

static const struct fsm_state fetch_states[FETCH_STATES] = {
	[FETCH_QUEUED] = { "queued",
			   FSM_TO(FETCH_WAITING) | FSM_TO(FETCH_OVER) },
	[FETCH_WAITING] = { "waiting",
			    FSM_TO(FETCH_FLYING) | FSM_TO(FETCH_OVER) },
	[FETCH_FLYING] = { "flying", FSM_TO(FETCH_WAITING) |
					     FSM_TO(FETCH_LANDED) |
					     FSM_TO(FETCH_OVER) },
	[FETCH_LANDED] = { "landed", FSM_TO(FETCH_OVER) },
	[FETCH_OVER] = { "over", 0 },
};

static void fetch_move(struct fetch *f, enum fetch_state to)
{
	fsm_move(&f->fsm, fetch_states, to);
}

static bool fetch_begins(struct fetch *f);

/* ---- room ---- */

/* Returns the fetch that waits since others, which came later, have taken as
 * much as all of the room: they have to leave room for it. NULL: none. */
static const struct fetch *room_owed(const struct reply_room *room)
{
	const struct fetch *f;

	if (likely(list_empty(&room->waiting)))
		return NULL;
	f = list_first(&room->waiting, const struct fetch, wait);
	return room->taken - f->before >= room->max ? f : NULL;
}

/* Is there room for @f in the share of its server? */
static bool share_has_room(const struct reply_room *room, const struct fetch *f)
{
	const struct fetch *owed = room_owed(room);
	uint64_t used = room->used;

	if (f == owed)
		used -= room->extra;
	else if (owed)
		used += owed->length;
	return share_allows(f->call->client->imp->reply_bytes, used, room->max,
			    f->length);
}

/* Is there room for @f? Each server has its share; and of a server of which
 * nothing is held, what fits into one message may come always, so that others
 * cannot stop it altogether. */
static bool room_allows(const struct reply_room *room, const struct fetch *f)
{
	return share_has_room(room, f) || (!f->call->client->imp->reply_bytes &&
					   f->length <= ULRPC_BODY_MAX);
}

static void room_take(struct fetch *f)
{
	struct reply_room *room = &f->shard->imports->reply_room;

	f->extra = !share_has_room(room, f);
	f->room = f->length;
	room->taken += f->room;
	room->used += f->room;
	if (f->extra)
		room->extra += f->room;
	f->call->client->imp->reply_bytes += f->room;
}

static void room_give(struct fetch *f)
{
	struct reply_room *room = &f->shard->imports->reply_room;

	room->used -= f->room;
	if (f->extra)
		room->extra -= f->room;
}

/* Called when @f waits for room no more. */
static void room_leave(struct fetch *f)
{
	list_del(&f->wait);
	f->call->client->imp->replies_waiting--;
}

static void on_room(struct ulnet_work *work);

/* Looks at the end of this turn whether one that waits may begin. */
static void room_look(struct shard *s)
{
	struct reply_room *room = &s->imports->reply_room;

	if (likely(list_empty(&room->waiting)) || room->given)
		return;
	room->given = true;
	room->work.fn = on_room;
	shard_hold(s);
	shard_defer(s, &room->work);
}

/* Begins those fetches that there is room for now: of each server in the order
 * in which they came. */
static void on_room(struct ulnet_work *work)
{
	struct reply_room *room = container_of(work, struct reply_room, work);
	struct fetch *f, *next;

	room->given = false;
	room->looks++;
	list_for_each_entry_safe (f, next, &room->waiting, wait) {
		struct import *imp = f->call->client->imp;

		if (imp->replies_looked == room->looks)
			continue;
		if (!room_allows(room, f)) {
			imp->replies_looked = room->looks;
			continue;
		}
		room_take(f);
		room_leave(f);
		if (fetch_begins(f))
			continue;
		/* The callback of the call may end others. */
		room_look(f->shard);
		f->users->no_memory(f->call);
		break;
	}
	shard_release(container_of(room, struct imports, reply_room)->shard);
}

/* ---- the end ---- */

void fetch_on_given(struct give_back *g, void *holder, size_t bytes)
{
	struct reply_room *room = container_of(g, struct reply_room, bodies);

	(void)holder;
	room->used -= bytes;
	room_look(container_of(room, struct imports, reply_room)->shard);
}

void *fetch_take(struct shard *s, const void *reply, size_t length)
{
	struct fetch *f = s->imports->told;
	void *body;

	if (!f || f->body != reply || f->length != length)
		return NULL;
	body = f->body;
	f->body = NULL;
	slab_disown(&s->imports->slab);
	return body;
}

void fetch_give(struct shard *s, struct sync *sync, const void *reply,
		size_t length, struct ulrpc_outcome *o)
{
	void *body = sync->alloc || length > ULRPC_BODY_MAX
			     ? fetch_take(s, reply, length)
			     : NULL;

	if (body)
		sync_give(sync, body, length);
	else
		sync_take(sync, reply, length, o);
}

/* Gives the body back, and then its room. What is so long is longer than what
 * counts in reply_room.extra. */
static void body_free(struct fetch *f)
{
	struct imports *x = f->shard->imports;

	_Static_assert(GIVE_BACK_MIN > ULRPC_BODY_MAX, "extra is short");
	if (f->body && f->length >= GIVE_BACK_MIN) {
		slab_disown(&x->slab);
		give_back(&x->reply_room.bodies, f->body, f->length, NULL);
		return;
	}
	if (f->body)
		slab_put(&x->slab, f->body, f->length);
	if (f->room) {
		room_give(f);
		room_look(f->shard);
	}
}

static void fetch_free(struct fetch *f)
{
	struct shard *s = f->shard;

	list_del(&f->link);
	body_proof_drop(&f->check);
	body_free(f);
	slab_put(&s->imports->slab, f, sizeof(*f));
	shard_release(s);
}

static void on_fetch_over(struct ulnet_work *work)
{
	fetch_free(container_of(work, struct fetch, work));
}

/* Sends an empty PUT, which may be lost. */
void fetch_release(struct shard *s, const struct holder *holder, uint64_t match)
{
	struct ulnet_md md = { .threshold = 1,
			       .options = LNET_MD_PREFER_PATH,
			       .timeout = RELEASE_TIMEOUT };
	struct ulnet_md_handle h;

	if (LNetMDBind(s->node, &md, LNET_UNLINK, &h))
		return;
	if (LNetPut(holder->self, h, LNET_NOACK_REQ, holder->peer,
		    ULRPC_PORTAL_BULK, match, 0, 0))
		LNetMDUnlink(h);
}

void fetch_drop(struct fetch *f)
{
	struct shard *s = f->shard;
	bool linked = f->fsm.state == FETCH_FLYING;

	/* What LNet still uses counts for the CPT, but for no server. */
	if (f->fsm.state == FETCH_QUEUED) {
		room_leave(f);
		room_look(s); /* others may have left room for it */
	} else {
		f->call->client->imp->reply_bytes -= f->room;
	}
	f->call = NULL;
	fetch_move(f, FETCH_OVER);
	shard_cancel(s, &f->timer);
	fetch_release(s, &f->holder, f->match);
	if (linked) {
		/* -ENOENT means that the last event of the MD is on its way */
		LNetMDUnlink(f->md);
		return;
	}
	f->work.fn = on_fetch_over;
	shard_defer(s, &f->work);
}

/* ---- tries ---- */

static void fetch_on_event(const struct ulnet_event *ev);

static int fetch_bind(struct fetch *f, uint64_t time)
{
	struct ulnet_md md = {
		.start = f->body + f->come,
		.length = f->piece,
		.threshold = 2, /* two operations: the GET, and its answer */
		.options = LNET_MD_PREFER_PATH | LNET_MD_OF_LAYER,
		.user_ptr = f,
		.handler = fetch_on_event,
		.timeout = time / NSEC_PER_USEC,
	};

	return LNetMDBind(f->shard->node, &md, LNET_UNLINK, &f->md);
}

/* Called when a try has failed, and LNet has no MD of it: the next try begins
 * after a pause. */
static void fetch_retry(struct fetch *f)
{
	struct shard *s = f->shard;
	uint64_t pause = retry_schedule_pause(&f->schedule, f->status, false,
					      shard_random(s, UINT64_MAX));

	stat_count(s, RPC_STAT_fetches_retried);
	shard_arm(s, &f->timer, MAX(f->began + pause, shard_now(s)));
}

/* Returns how long (ns) nearly all GETs take. It limits the time of a try, as
 * LNet does not notice that a rail has failed while nothing is sent over it. */
static uint64_t fetch_usual(const struct import *imp)
{
	uint64_t usual = mean_upto(&imp->fetched, 4);

	return usual ? usual : TIME_UNKNOWN;
}

/* Begins a try to get the next piece. If no time is left, waits for the end of
 * the call. @again: an earlier try has failed. */
static void fetch_send(struct fetch *f, bool again)
{
	const struct import *imp = f->call->client->imp;
	uint64_t now = shard_now(f->shard);
	uint64_t time = retry_schedule_time(&f->schedule, now, f->deadline,
					    fetch_usual(imp));

	if (!time)
		return;
	/* LNet chooses the rail */
	if (again && import_is_up(imp))
		f->holder = (struct holder){ import_target(imp), LNET_NID_ANY };
	f->began = now;
	f->answered = f->too_short = false;
	f->piece = MIN(f->length - f->come, PIECE_MAX);
	f->status = fetch_bind(f, time);
	if (f->status) {
		fetch_retry(f);
		return;
	}
	fetch_move(f, FETCH_FLYING);
	f->status = LNetGet(f->holder.self, f->md, f->holder.peer,
			    ULRPC_PORTAL_BULK, f->match, f->come);
	if (f->status)
		LNetMDUnlink(f->md);
}

static void fetch_on_timer(struct ulnet_timer *timer)
{
	fetch_send(container_of(timer, struct fetch, timer), true);
}

/* Is the reply gone? For a call without a deadline, which would never end, that
 * is assumed after many time-outs. */
static bool fetch_is_hopeless(const struct fetch *f)
{
	return f->deadline == TIME_NEVER &&
	       f->schedule.timeouts > RETRY_DOUBLINGS &&
	       shard_now(f->shard) - f->since >= HOPELESS_AFTER;
}

/* Goes through the piece that has come. Returns 0 or -errno. */
static int fetch_check_piece(struct fetch *f)
{
	int rc = 0;

	if (!f->come)
		rc = body_proof_check(&f->check, f->proof, f->nproof,
				      f->checksum);
	if (!rc)
		body_proof_next(&f->check, f->body + f->come, f->piece);
	return rc;
}

/* Checks what has come, when a try has succeeded. Returns 0; -EBADMSG: it was
 * changed on its way; or other -errno. */
static int fetch_check(struct fetch *f)
{
	int rc;

	if (f->too_short)
		/* a sealed message of the server has said how long the body is
		 */
		return f->nproof ? -EBADMSG : 0;
	rc = fetch_check_piece(f);
	if (!rc && f->come + f->piece == f->length)
		rc = body_proof_checked(&f->check, f->proof, f->checksum);
	return rc;
}

/* Called when what has come is not what the server holds, or could not be
 * looked at, because of @rc: all of it is got again. */
static void fetch_anew(struct fetch *f, int rc)
{
	if (rc == -EBADMSG)
		stat_count(f->shard, RPC_STAT_replies_damaged);
	f->status = rc;
	/* That each piece has come says nothing: the pauses grow. */
	f->schedule.refusals = f->damaged++;
	f->come = 0;
	body_proof_drop(&f->check);
}

/* Called when a try has succeeded. Returns whether there are more pieces to
 * get. */
static bool fetch_goes_on(struct fetch *f)
{
	if (f->too_short)
		return false;
	f->come += f->piece;
	return f->come < f->length;
}

/* Gets the next piece. */
static void fetch_next(struct fetch *f)
{
	mean_add(&f->call->client->imp->fetched,
		 shard_now(f->shard) - f->began);
	f->schedule = (struct retry_schedule){ 0 };
	fetch_move(f, FETCH_WAITING);
	fetch_send(f, false);
}

/* Called after the last event of a try. */
static void fetch_on_last(struct fetch *f)
{
	if (f->fsm.state != FETCH_OVER && !f->status) {
		int rc = fetch_check(f);

		if (rc) {
			fetch_anew(f, rc);
		} else if (fetch_goes_on(f)) {
			fetch_next(f);
			return;
		}
	}
	if (f->fsm.state == FETCH_OVER) {
		fetch_free(f);
	} else if (f->status == 0) {
		fetch_move(f, FETCH_LANDED);
		mean_add(&f->call->client->imp->fetched,
			 shard_now(f->shard) - f->began);
		f->users->fetched(f->call, f->too_short ? -EPROTO : 0);
	} else {
		fetch_move(f, FETCH_WAITING);
		if (fetch_is_hopeless(f))
			f->users->lost(f->call);
		else
			fetch_retry(f);
	}
}

/* Called by LNet. SEND may come before the answer or after it; after the answer
 * it does not count. */
static void fetch_on_event(const struct ulnet_event *ev)
{
	struct fetch *f = ev->user_ptr;

	if (ev->type == LNET_EVENT_REPLY) {
		f->answered = true;
		f->status = ev->status;
		f->too_short = ev->mlength != f->piece;
	} else if (ev->terminal && !f->answered) {
		f->status = ev->status ? ev->status : -EIO;
	}
	if (ev->unlinked)
		fetch_on_last(f);
	else if (ev->terminal)
		LNetMDUnlink(ev->md);
}

/* ---- the beginning ---- */

/* Begins to get what has taken its room. Returns false if there is no memory.
 */
static bool fetch_begins(struct fetch *f)
{
	fetch_move(f, FETCH_WAITING);
	f->body = slab_get(&f->shard->imports->slab, f->length);
	if (!f->body)
		return false;
	fetch_send(f, false);
	return true;
}

/* Makes @f wait for room. */
static void fetch_queue(struct fetch *f)
{
	struct reply_room *room = &f->shard->imports->reply_room;

	stat_count(f->shard, RPC_STAT_fetches_queued);
	f->before = room->taken;
	list_add_tail(&room->waiting, &f->wait);
	f->call->client->imp->replies_waiting++;
}

static struct fetch *fetch_new(struct ulrpc_call *call,
			       const struct holder *holder,
			       const struct wire_reply *r,
			       const struct fetch_users *users)
{
	struct shard *s = call->shard;
	struct fetch *f = slab_get(&s->imports->slab, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct fetch){
		.users = users,
		.shard = s,
		.call = call,
		.fsm.state = FETCH_QUEUED,
		.holder = *holder,
		.match = r->held,
		.deadline = call->deadline,
		.since = shard_now(s),
		.queue = r->queue,
		.service = r->service,
		.length = r->needed,
		.annexed = r->status == WIRE_HELD_ANNEXED,
		.checksum = r->checksum,
	};
	if (r->length == DIGEST_SIZE || r->length == ONCE_SIZE) {
		f->nproof = r->length;
		memcpy(f->proof, r->body, r->length);
	}
	lnet_timer_init(&f->timer, fetch_on_timer);
	list_add_tail(&s->imports->fetches, &f->link);
	list_init(&f->wait);
	shard_hold(s);
	return f;
}

int fetch_start(struct ulrpc_call *call, const struct holder *holder,
		const struct wire_reply *r, const struct fetch_users *users)
{
	struct import *imp = call->client->imp;
	struct fetch *f = fetch_new(call, holder, r, users);

	if (!f)
		return -ENOMEM;
	if (imp->replies_waiting ||
	    !room_allows(&call->shard->imports->reply_room, f)) {
		fetch_queue(f);
	} else {
		room_take(f);
		if (!fetch_begins(f)) {
			imp->reply_bytes -= f->room;
			fetch_free(f);
			return -ENOMEM;
		}
	}
	stat_count(call->shard, RPC_STAT_replies_fetched);
	call->fetch = f;
	return 0;
}

static bool fetch_is_lost(const struct fetch *f, const struct conn_loss *s)
{
	return f->fsm.state == FETCH_FLYING && f->began <= s->at;
}

void fetches_on_conn_loss(struct import *imp, const struct conn_loss *s)
{
	struct ulrpc_client *c;
	struct ulrpc_call *call;

	list_for_each_entry (c, &imp->clients, link)
		list_for_each_entry (call, &c->fetching, link)
			if (fetch_is_lost(call->fetch, s))
				(void)LNetMDUnlink(call->fetch->md);
}
