/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Suspects: clients that may be gone, because the LND's connection with them
 * was lost while requests of theirs were under way. A client that is alive
 * learns of the loss, too, and asks over a new connection what has become of
 * its calls. If nothing comes from it for two seconds, the server probes it
 * with a message. If all rails of the client (rails.h) refuse the probe, or the
 * client does not listen and so cannot be reached any more, it is gone. The
 * server then forgets it at once instead of after its lease: its requests are
 * canceled, and no worker waits for its bulk.
 *
 * A client whose host answers nothing at all may be cut off for a while only,
 * and is forgotten after its lease. So is one that vanishes without the loss of
 * a connection, for example because its host loses power.
 *
 * Bulk that was being moved over the lost connection is moved again at once.
 *
 * Owner: the CPT of the export.
 */
#include <errno.h>

#include "rpc/bulk/transfer.h"
#include "rpc/conn_event.h"
#include "rpc/control.h"
#include "rpc/server/session/export.h"
#include "rpc/wire/wire.h"

/* ns: a client that is alive is heard within this time after the loss. (The
 * clients of a busy server spread their queries over up to one second.) */
#define GRACE (2 * NSEC_PER_SEC)

static bool was_heard(const struct export *e)
{
	return e->heard > e->suspect_at;
}

void suspect_end(struct export *e)
{
	list_del(&e->suspect_link);
	e->suspect_at = 0;
}

static void suspects_arm(struct exports *x)
{
	const struct export *first;

	if (list_empty(&x->suspects) || lnet_timer_armed(&x->suspect_timer))
		return;
	first = list_first(&x->suspects, struct export, suspect_link);
	shard_arm(x->shard, &x->suspect_timer, first->suspect_at + GRACE);
}

/* A client without requests does not become a suspect. It is forgotten after
 * its lease. */
static void suspect_begin(struct exports *x, struct export *e)
{
	if (e->refs == 1 || (!list_empty(&e->suspect_link) && !was_heard(e)))
		return;
	e->suspect_at = MAX(shard_now(x->shard), 1);
	list_del(&e->suspect_link);
	list_add_tail(&x->suspects, &e->suspect_link);
	suspects_arm(x);
}

struct suspect_search {
	struct exports *exports;
	const struct conn_event *event;
};

/* Called for each export that was heard from the NID of the event. */
static void export_on_conn_event(struct export *e, void *arg)
{
	const struct suspect_search *search = arg;
	const struct conn_event *event = search->event;

	if (event->peer.pid != e->peer.pid && event->peer.pid != LNET_PID_ANY)
		return;
	transfers_on_conn_loss(&e->bulk, rpc_ns(e->rtt), &event->peer.nid);
	if (event->kind == CONN_LOST)
		suspect_begin(search->exports, e);
}

/* Called when a connection was lost or fell silent and its NID is not known: a
 * CPT that has too many such events to report loses the names. The connection
 * may be a rail of @e that another CPT owns, so the bulk of @e over such rails
 * is moved again. No suspect is made of @e: if its client has gone, it is
 * forgotten after its lease. */
static void export_on_nameless(struct export *e, void *arg)
{
	const struct export_rail *rail;

	(void)arg;
	list_for_each_entry (rail, &e->rails, link)
		if (rail->far)
			transfers_on_conn_loss(&e->bulk, rpc_ns(e->rtt),
					       &rail->nid);
}

void suspects_on_conn_event(struct shard *s, const struct conn_event *event)
{
	struct suspect_search search = { s->exports, event };

	if (!s->exports)
		return;
	if (lnet_nid_is_any(&event->peer.nid))
		exports_each(s->exports, export_on_nameless, NULL);
	else
		rails_each_at(&s->exports->rails, &event->peer.nid,
			      export_on_conn_event, &search);
}

/* ---- probes ---- */

/* Does @ev, with which a probe was not delivered, show that the client has
 * gone? If the client does not listen, the lack of a connection shows it:
 * nobody but the client can make one. Any other failure may be a fault of this
 * node, or of a router. */
static bool suspect_is_refusal(const struct export *e,
			       const struct ulnet_event *ev)
{
	if (!lnet_nid_eq(&ev->path_hop, &ev->path_peer))
		return false;
	return ev->status == -ECONNREFUSED ||
	       (e->peer.pid & LNET_PID_USERFLAG && ev->status == -EHOSTUNREACH);
}

static void suspect_probe(struct exports *x, struct export *e);

/* If one rail refuses the probe, the next rail of the client is probed. */
static void on_probe_sent(struct shard *s, uint64_t id, uint64_t tag,
			  const struct ulnet_event *ev)
{
	struct exports *x = s->exports;
	struct export *e = id_slot_obj(&x->table, (uint32_t)id);

	if (!e || e->handle != id || e->suspect_at != tag)
		return;
	if (was_heard(e) || ev->outcome != LNET_OUTCOME_NOT_DELIVERED ||
	    !suspect_is_refusal(e, ev))
		suspect_end(e);
	else if (rails_leave(&x->rails, e, &e->rail))
		suspect_probe(x, e);
	else
		export_vanished(x, e);
}

/* Sends the client an Alive as the probe, because an Alive changes nothing at
 * the client. */
static void suspect_probe(struct exports *x, struct export *e)
{
	const struct ulnet_id to = { e->rail, e->peer.pid };
	const struct wire_control m = {
		.kind = WIRE_ALIVE,
		.alive = { .client = e->client,
			   .epoch = e->epoch,
			   .status = WIRE_OK },
	};
	int rc = control_send_tracked(x->shard, export_seal(e), LNET_NID_ANY,
				      to, &m, on_probe_sent, e->handle,
				      e->suspect_at);

	if (rpc_is_short(rc))
		/* the client is probed again after GRACE */
		suspect_begin(x, e);
	else if (rc)
		suspect_end(e);
}

void suspects_look(struct ulnet_timer *t)
{
	struct exports *x = container_of(t, struct exports, suspect_timer);
	uint64_t now = shard_now(x->shard);

	while (!list_empty(&x->suspects)) {
		struct export *e =
			list_first(&x->suspects, struct export, suspect_link);

		if (e->suspect_at + GRACE > now)
			break;
		list_del(&e->suspect_link);
		if (was_heard(e) || e->refs == 1)
			suspect_end(e);
		else
			suspect_probe(x, e);
	}
	suspects_arm(x);
}
