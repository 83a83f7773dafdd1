/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/doubt.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/bulk/transfer.h"
#include "rpc/control.h"
#include "rpc/server/export.h"
#include "rpc/wire/wire.h"

/* A client that is there has been heard by then. */
#define GRACE (2 * NSEC_PER_SEC)

static uint64_t doubt_hash(const struct doubts *ds, const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), ds->seed);
}

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

static void on_disconnected(struct ulnet_peer_watch *watch,
			    const struct ulnet_id *peer)
{
	struct doubts *ds = container_of(watch, struct doubts, watch);
	struct hash_node *n =
		hash_first(&ds->by_nid, doubt_hash(ds, &peer->nid));

	for (; n; n = hash_next(n)) {
		struct export *e = container_of(n, struct export, by_nid);

		if (!lnet_nid_eq(&e->source, &peer->nid) ||
		    (peer->pid != e->peer.pid && peer->pid != LNET_PID_ANY))
			continue;
		transfers_severed(&e->bulk, rpc_ns(e->rtt));
		doubt_open(ds, e);
	}
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

static void on_word_sent(struct shard *s, uint64_t id, uint64_t tag,
			 const struct ulnet_event *ev)
{
	struct exports *x = s->exports;
	struct export *e = id_slot_obj(&x->table, (uint32_t)id);

	if (!e || e->handle != id || !e->doubt || e->doubt->at != tag)
		return;
	if (!was_heard(e->doubt) && ev->outcome == LNET_OUTCOME_NOT_DELIVERED &&
	    is_refusal(e, ev->status))
		export_vanished(x, e);
	else
		doubt_close(e->doubt);
}

/* It says that the connection is there, for which a client never minds. */
static void doubt_ask(struct doubts *ds, struct export *e)
{
	struct exports *x = ds->exports;
	const struct ulnet_id to = { e->source, e->peer.pid };
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

void doubt_begin(struct doubts *ds, struct export *e)
{
	e->sourced =
		!hash_add(&ds->by_nid, &e->by_nid, doubt_hash(ds, &e->source));
}

void doubt_end(struct doubts *ds, struct export *e)
{
	if (e->doubt)
		doubt_close(e->doubt);
	if (e->sourced)
		hash_del(&ds->by_nid, &e->by_nid);
	e->sourced = false;
}

void doubts_init(struct doubts *ds, struct exports *x, uint64_t seed)
{
	ds->seed = seed;
	ds->exports = x;
	hash_init(&ds->by_nid);
	list_init(&ds->open);
	lnet_timer_init(&ds->timer, doubts_look);
	ds->watch.disconnected = on_disconnected;
	lnet_peer_watch_add(x->shard->node, x->shard->cpt, &ds->watch);
}

void doubts_stop(struct doubts *ds)
{
	struct shard *s = ds->exports->shard;

	shard_cancel(s, &ds->timer);
	lnet_peer_watch_del(s->node, s->cpt, &ds->watch);
}

void doubts_fini(struct doubts *ds)
{
	hash_fini(&ds->by_nid);
}
