/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/fetch.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
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

_Static_assert(offsetof(struct fetch, body) ==
		       offsetof(struct fetch, room) + SEAL_HEAD,
	       "the body is behind the room");

/* ---- the end ---- */

static void fetch_free(struct fetch *f)
{
	struct shard *s = f->shard;

	list_del(&f->link);
	slab_put(&s->imports->slab, f, f->size);
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

/* Is the body that has come the one that the server holds? Decrypts it if it
 * was sealed. */
static bool fetch_is_genuine(struct fetch *f)
{
	uint8_t digest[DIGEST_SIZE];

	if (likely(!f->nproof))
		return true;
	if (f->nproof == ONCE_SIZE)
		return !once_open(f->proof, f->room, f->length);
	return !digest_make(f->body, f->length, digest) &&
	       !memcmp(digest, f->proof, DIGEST_SIZE);
}

/* Was the reply that has come changed on its way? */
static bool fetch_is_damaged(struct fetch *f)
{
	if (f->too_short)
		/* a sealed message of the server has said how long the body is
		 */
		return f->nproof;
	if (!fetch_is_genuine(f))
		return true;
	return f->checksum &&
	       wire_checksum(crc32c(0, f->body, f->length)) != f->checksum;
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
	if (f->fsm.state != FETCH_OVER && !f->status && fetch_goes_on(f)) {
		fetch_next(f);
		return;
	}
	if (f->fsm.state != FETCH_OVER && !f->status && fetch_is_damaged(f)) {
		stat_count(f->shard, RPC_STAT_replies_damaged);
		f->status = -EBADMSG; /* the reply will be got again */
		/* That each piece has come says nothing: the pauses grow. */
		f->schedule.refusals = f->damaged++;
		f->come = 0;
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

int fetch_start(struct ulrpc_call *call, const struct holder *holder,
		const struct wire_reply *r, const struct fetch_users *users)
{
	struct shard *s = call->shard;
	size_t size = sizeof(struct fetch) + r->needed;
	struct fetch *f = slab_get(&s->imports->slab, size);

	if (!f)
		return -ENOMEM;
	*f = (struct fetch){
		.users = users,
		.shard = s,
		.call = call,
		.fsm.state = FETCH_WAITING,
		.holder = *holder,
		.match = r->held,
		.deadline = call->deadline,
		.since = shard_now(s),
		.queue = r->queue,
		.service = r->service,
		.length = r->needed,
		.annexed = r->status == WIRE_HELD_ANNEXED,
		.checksum = r->checksum,
		.size = size,
	};
	if (r->length == DIGEST_SIZE || r->length == ONCE_SIZE) {
		f->nproof = r->length;
		memcpy(f->proof, r->body, r->length);
	}
	lnet_timer_init(&f->timer, fetch_on_timer);
	list_add_tail(&s->imports->fetches, &f->link);
	shard_hold(s);
	stat_count(s, RPC_STAT_replies_fetched);
	call->fetch = f;
	fetch_send(f, false);
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
