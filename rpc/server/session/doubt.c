/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/doubt.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/bulk/transfer.h"
#include "rpc/control.h"
#include "rpc/ends.h"
#include "rpc/server/session/export.h"
#include "rpc/wire/wire.h"

/* A client that is there has been heard by then. */
#define GRACE (2 * NSEC_PER_SEC)

static bool was_heard(const struct doubt *d)
{
	return d->export->heard > d->at;
}

static void doubt_close(struct doubt *d)
{
	list_del(&d->link);
	d->export->doubt = NULL;
	free(d);
}

static void doubts_arm(struct doubts *ds)
{
	const struct doubt *first;

	if (list_empty(&ds->open) || lnet_timer_armed(&ds->timer))
		return;
	first = list_first(&ds->open, struct doubt, link);
	shard_arm(ds->exports->shard, &ds->timer, first->at + GRACE);
}

static struct doubt *doubt_of(struct export *e)
{
	struct doubt *d = e->doubt ? e->doubt : malloc(sizeof(*d));

	if (d && !e->doubt) {
		*d = (struct doubt){ .export = e };
		list_init(&d->link);
		e->doubt = d;
	}
	return d;
}

/* Nobody minds what becomes of one without requests: its lease ends it. */
static void doubt_open(struct doubts *ds, struct export *e)
{
	struct doubt *d = e->refs > 1 ? doubt_of(e) : NULL;

	if (!d || (!list_empty(&d->link) && !was_heard(d)))
		return;
	d->at = shard_now(ds->exports->shard);
	list_del(&d->link);
	list_add_tail(&ds->open, &d->link);
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
static void export_perhaps_severed(struct export *e)
{
	const struct export_rail *rail;

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
		exports_each(s->exports, export_perhaps_severed);
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

	if (!e || e->handle != id || !e->doubt || e->doubt->at != tag)
		return;
	if (was_heard(e->doubt) || ev->outcome != LNET_OUTCOME_NOT_DELIVERED ||
	    !is_refusal(e, ev->status))
		doubt_close(e->doubt);
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
				      on_word_sent, e->handle, e->doubt->at);

	if (rpc_is_short(rc))
		doubt_open(ds, e); /* later */
	else if (rc)
		doubt_close(e->doubt);
}

static void doubts_look(struct ulnet_timer *t)
{
	struct doubts *ds = container_of(t, struct doubts, timer);
	uint64_t now = shard_now(ds->exports->shard);

	while (!list_empty(&ds->open)) {
		struct doubt *d = list_first(&ds->open, struct doubt, link);

		if (d->at + GRACE > now)
			break;
		list_del(&d->link);
		if (was_heard(d) || d->export->refs == 1)
			doubt_close(d);
		else
			doubt_ask(ds, d->export);
	}
	doubts_arm(ds);
}

/* ---- life ---- */

void doubt_end(struct export *e)
{
	if (e->doubt)
		doubt_close(e->doubt);
}

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
