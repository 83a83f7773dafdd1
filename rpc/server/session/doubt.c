/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/doubt.h"

#include <errno.h>

#include "rpc/bulk/transfer.h"
#include "rpc/control.h"
#include "rpc/ends.h"
#include "rpc/server/session/export.h"
#include "rpc/wire/wire.h"

/* A client that is there has been heard by then. */
#define GRACE (2 * NSEC_PER_SEC)

static bool was_heard(const struct export *e)
{
	return e->heard > e->doubt.at;
}

void doubt_end(struct export *e)
{
	list_del(&e->doubt.link);
	e->doubt.at = 0;
}

static void doubts_arm(struct doubts *ds)
{
	const struct export *first;

	if (list_empty(&ds->open) || lnet_timer_armed(&ds->timer))
		return;
	first = list_first(&ds->open, struct export, doubt.link);
	shard_arm(ds->exports->shard, &ds->timer, first->doubt.at + GRACE);
}

/* Nobody minds what becomes of one without requests: its lease ends it. */
static void doubt_open(struct doubts *ds, struct export *e)
{
	if (e->refs == 1 || (!list_empty(&e->doubt.link) && !was_heard(e)))
		return;
	e->doubt.at = MAX(shard_now(ds->exports->shard), 1);
	list_del(&e->doubt.link);
	list_add_tail(&ds->open, &e->doubt.link);
	doubts_arm(ds);
}

struct severed_by {
	struct exports *exports;
	const struct end *end;
};

static void export_severed(struct export *e, void *arg)
{
	const struct severed_by *by = arg;
	const struct end *end = by->end;

	if (end->peer.pid != e->peer.pid && end->peer.pid != LNET_PID_ANY)
		return;
	transfers_severed(&e->bulk, rpc_ns(e->rtt), &end->peer.nid);
	if (end->kind == END_DISCONNECTED)
		doubt_open(&by->exports->doubts, e);
}

/* Perhaps it was the connection of any client that was heard from a NID of
 * another CPT: their bulk goes on, and the rest is for their leases. */
static void export_perhaps_severed(struct export *e, void *arg)
{
	const struct export_rail *rail;

	(void)arg;
	list_for_each_entry (rail, &e->rails, link)
		if (rail->far)
			transfers_severed(&e->bulk, rpc_ns(e->rtt), &rail->nid);
}

void doubts_on_end(struct shard *s, const struct end *end)
{
	struct severed_by by = { s->exports, end };

	if (!s->exports)
		return;
	if (lnet_nid_is_any(&end->peer.nid))
		exports_each(s->exports, export_perhaps_severed, NULL);
	else
		rails_each_at(&s->exports->rails, &end->peer.nid,
			      export_severed, &by);
}

/* ---- is it there? ---- */

/* Of one that was not delivered. There is no way to a client that does not
 * listen, and has no connection: it comes by itself, or not at all. Whatever
 * else is wrong may be wrong at this end. */
static bool is_refusal(const struct export *e, int status)
{
	return status == -ECONNREFUSED ||
	       (e->peer.pid & LNET_PID_USERFLAG && status == -EHOSTUNREACH);
}

static void doubt_ask(struct doubts *ds, struct export *e);

/* Whoever is refused by one rail is asked by the others. */
static void on_word_sent(struct shard *s, uint64_t id, uint64_t tag,
			 const struct ulnet_event *ev)
{
	struct exports *x = s->exports;
	struct export *e = id_slot_obj(&x->table, (uint32_t)id);

	if (!e || e->handle != id || e->doubt.at != tag)
		return;
	if (was_heard(e) || ev->outcome != LNET_OUTCOME_NOT_DELIVERED ||
	    !is_refusal(e, ev->status))
		doubt_end(e);
	else if (rails_leave(&x->rails, e, &e->rail))
		doubt_ask(&x->doubts, e);
	else
		export_vanished(x, e);
}

/* It says that the connection is there, for which a client never minds. */
static void doubt_ask(struct doubts *ds, struct export *e)
{
	struct exports *x = ds->exports;
	const struct ulnet_id to = { e->rail, e->peer.pid };
	const struct wire_control m = {
		.kind = WIRE_ALIVE,
		.alive = { .client = e->client,
			   .epoch = e->epoch,
			   .status = WIRE_OK },
	};
	int rc = control_send_tracked(x->shard, LNET_NID_ANY, to, &m,
				      on_word_sent, e->handle, e->doubt.at);

	if (rpc_is_short(rc))
		doubt_open(ds, e); /* later */
	else if (rc)
		doubt_end(e);
}

static void doubts_look(struct ulnet_timer *t)
{
	struct doubts *ds = container_of(t, struct doubts, timer);
	uint64_t now = shard_now(ds->exports->shard);

	while (!list_empty(&ds->open)) {
		struct export *e =
			list_first(&ds->open, struct export, doubt.link);

		if (e->doubt.at + GRACE > now)
			break;
		list_del(&e->doubt.link);
		if (was_heard(e) || e->refs == 1)
			doubt_end(e);
		else
			doubt_ask(ds, e);
	}
	doubts_arm(ds);
}

/* ---- life ---- */

void doubts_init(struct doubts *ds, struct exports *x)
{
	ds->exports = x;
	list_init(&ds->open);
	lnet_timer_init(&ds->timer, doubts_look);
}

void doubts_stop(struct doubts *ds)
{
	shard_cancel(ds->exports->shard, &ds->timer);
}
