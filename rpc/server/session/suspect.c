/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/suspect.h"

#include <errno.h>

#include "rpc/bulk/transfer.h"
#include "rpc/control.h"
#include "rpc/ends.h"
#include "rpc/server/session/export.h"
#include "rpc/wire/wire.h"

/* A client that is alive has been heard by then. */
#define GRACE (2 * NSEC_PER_SEC)

static bool was_heard(const struct export *e)
{
	return e->heard > e->suspect.at;
}

void suspect_end(struct export *e)
{
	list_del(&e->suspect.link);
	e->suspect.at = 0;
}

static void suspects_arm(struct suspects *ds)
{
	const struct export *first;

	if (list_empty(&ds->open) || lnet_timer_armed(&ds->timer))
		return;
	first = list_first(&ds->open, struct export, suspect.link);
	shard_arm(ds->exports->shard, &ds->timer, first->suspect.at + GRACE);
}

/* A client without requests is not suspected: its lease will do. */
static void suspect_open(struct suspects *ds, struct export *e)
{
	if (e->refs == 1 || (!list_empty(&e->suspect.link) && !was_heard(e)))
		return;
	e->suspect.at = MAX(shard_now(ds->exports->shard), 1);
	list_del(&e->suspect.link);
	list_add_tail(&ds->open, &e->suspect.link);
	suspects_arm(ds);
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
	transfers_on_conn_loss(&e->bulk, rpc_ns(e->rtt), &end->peer.nid);
	if (end->kind == END_DISCONNECTED)
		suspect_open(&by->exports->suspects, e);
}

/* A connection has ended, but not known whose. It may be that of any client
 * heard from a NID of another CPT: the bulk of these is moved again, and their
 * leases do the rest. */
static void export_perhaps_severed(struct export *e, void *arg)
{
	const struct export_rail *rail;

	(void)arg;
	list_for_each_entry (rail, &e->rails, link)
		if (rail->far)
			transfers_on_conn_loss(&e->bulk, rpc_ns(e->rtt),
					       &rail->nid);
}

void suspects_on_end(struct shard *s, const struct end *end)
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

/* Does @status of a message that was not delivered show that the client has
 * gone? A client that does not listen cannot be reached without a connection:
 * it connects itself, or not at all. Any other failure may be one of this
 * node. */
static bool suspect_is_refusal(const struct export *e, int status)
{
	return status == -ECONNREFUSED ||
	       (e->peer.pid & LNET_PID_USERFLAG && status == -EHOSTUNREACH);
}

static void suspect_ask(struct suspects *ds, struct export *e);

/* If one rail refuses the message, it is sent by the client's other rails. */
static void on_word_sent(struct shard *s, uint64_t id, uint64_t tag,
			 const struct ulnet_event *ev)
{
	struct exports *x = s->exports;
	struct export *e = id_slot_obj(&x->table, (uint32_t)id);

	if (!e || e->handle != id || e->suspect.at != tag)
		return;
	if (was_heard(e) || ev->outcome != LNET_OUTCOME_NOT_DELIVERED ||
	    !suspect_is_refusal(e, ev->status))
		suspect_end(e);
	else if (rails_leave(&x->rails, e, &e->rail))
		suspect_ask(&x->suspects, e);
	else
		export_vanished(x, e);
}

/* Sends the client an Alive, which never does any harm. */
static void suspect_ask(struct suspects *ds, struct export *e)
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
				      on_word_sent, e->handle, e->suspect.at);

	if (rpc_is_short(rc))
		suspect_open(ds, e); /* later */
	else if (rc)
		suspect_end(e);
}

static void suspects_look(struct ulnet_timer *t)
{
	struct suspects *ds = container_of(t, struct suspects, timer);
	uint64_t now = shard_now(ds->exports->shard);

	while (!list_empty(&ds->open)) {
		struct export *e =
			list_first(&ds->open, struct export, suspect.link);

		if (e->suspect.at + GRACE > now)
			break;
		list_del(&e->suspect.link);
		if (was_heard(e) || e->refs == 1)
			suspect_end(e);
		else
			suspect_ask(ds, e);
	}
	suspects_arm(ds);
}

/* ---- life ---- */

void suspects_init(struct suspects *ds, struct exports *x)
{
	ds->exports = x;
	list_init(&ds->open);
	lnet_timer_init(&ds->timer, suspects_look);
}

void suspects_stop(struct suspects *ds)
{
	shard_cancel(ds->exports->shard, &ds->timer);
}
