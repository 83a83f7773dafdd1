/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/conn_event.h"

#include <pthread.h>

#include "rpc/rpc.h"
#include "rpc/stats/stat.h"

struct conn_events {
	struct shard *shard;
	struct ulnet_peer_watch watch;
	uint64_t logged_at; /* ns: when the last warning was logged; 0: never */

	/* set by other CPTs: */
	pthread_mutex_t lock;
	struct ulnet_work work;
	bool scheduled; /* is the work posted? */
	/* is there a CONN_LOST, or a CONN_SILENT, for which there was no room?
	 */
	bool nameless[2];
	unsigned int n;
	struct conn_event event[CONN_EVENTS_MAX];
};

static void conn_event_take(struct shard *s, const struct conn_event *event)
{
	switch (event->kind) {
	case CONN_HEARD:
		s->rpc->client->on_heard(s, &event->peer.nid);
		break;
	case CONN_SUSPECT:
		lnet_peer_suspect(s->node, s->cpt, &event->local, &event->peer);
		break;
	default:
		s->rpc->client->on_conn_event(s, event);
		s->rpc->server->on_conn_event(s, event);
	}
}

/* ---- from other CPTs ---- */

static void conn_events_take_nameless(struct shard *s, const bool nameless[2])
{
	for (unsigned int kind = 0; kind < 2; kind++) {
		struct conn_event any = { .kind = (enum conn_event_kind)kind,
					  .peer = { LNET_NID_ANY,
						    LNET_PID_ANY } };

		if (!nameless[kind])
			continue;
		stat_count(s, RPC_STAT_ends_nameless);
		conn_event_take(s, &any);
	}
}

static void on_conn_events(struct ulnet_work *work)
{
	struct conn_events *events =
		container_of(work, struct conn_events, work);
	struct shard *s = events->shard;
	struct conn_event event[CONN_EVENTS_MAX];
	bool nameless[2];
	unsigned int n;

	pthread_mutex_lock(&events->lock);
	n = events->n;
	memcpy(event, events->event, n * sizeof(event[0]));
	memcpy(nameless, events->nameless, sizeof(nameless));
	events->n = 0;
	events->nameless[0] = events->nameless[1] = false;
	events->scheduled = false;
	pthread_mutex_unlock(&events->lock);
	for (unsigned int i = 0; i < n; i++)
		conn_event_take(s, &event[i]);
	conn_events_take_nameless(s, nameless);
	shard_taken(s);
}

/* Is @event CONN_LOST or CONN_SILENT? If there is no room for such an event,
 * the CPT is told of it without a NID. */
static bool conn_event_is_loss(const struct conn_event *event)
{
	return event->kind <= CONN_SILENT;
}

/* Adds @event. Returns false if there is no room. */
static bool conn_events_add(struct conn_events *to,
			    const struct conn_event *event)
{
	bool loss = conn_event_is_loss(event), fits, schedule;

	pthread_mutex_lock(&to->lock);
	fits = to->n < (loss ? CONN_EVENTS_MAX : CONN_EVENTS_MAX / 2);
	if (fits)
		to->event[to->n++] = *event;
	else if (loss)
		to->nameless[event->kind] = true;
	schedule = !to->scheduled;
	to->scheduled = true;
	pthread_mutex_unlock(&to->lock);
	if (schedule)
		shard_give(to->shard, &to->work);
	return fits;
}

/* Passes @event on to the CPT @cpt. */
static void conn_event_post(struct shard *s, unsigned int cpt,
			    const struct conn_event *event)
{
	char text[LNET_NIDSTR_SIZE];

	if (conn_events_add(s->rpc->shards[cpt].conn_events, event))
		return;
	if (!conn_event_is_loss(event))
		stat_count(s, RPC_STAT_ends_untold);
	if (!rpc_may_log(&s->conn_events->logged_at, shard_now(s)))
		return;
	lnet_log(LNET_LOG_WARN, "rpc",
		 "CPT %u has no room for more events of connections, the last "
		 "one with %s: it learns of some of them late",
		 cpt, lnet_nid_format(&event->peer.nid, text, sizeof(text)));
}

/* ---- of this CPT ---- */

static void conn_event_tell(struct shard *s, const struct conn_event *event)
{
	struct ulrpc *rpc = s->rpc;

	conn_event_take(s, event);
	for (unsigned int i = 0; i < rpc->ncpts && !s->aborted; i++)
		if (i != s->cpt && atomic_load(&rpc->shards[i].far))
			conn_event_post(s, i, event);
}

void conn_event_heard(struct shard *s, const struct ulnet_nid *nid)
{
	const struct conn_event event = { .kind = CONN_HEARD,
					  .peer = { *nid, LNET_PID_ANY } };

	conn_event_tell(s, &event);
}

/* Does more than one rail lead to @nid? There is more than one if its node is
 * known to have several NIs, or if this node has several. */
static bool has_rails(struct shard *s, const struct ulnet_nid *nid)
{
	struct ulnet_id second;

	/* NI 0 of a node is 0@lo. */
	return lnet_is_multi_rail(s->node, nid) ||
	       LNetGetId(s->node, 2, &second) == 0;
}

void conn_event_suspect(struct shard *s, const struct ulnet_nid *local,
			const struct ulnet_id *peer,
			const struct ulnet_nid *hop)
{
	bool routed = !lnet_nid_eq(hop, &peer->nid);
	const struct conn_event event = {
		.kind = CONN_SUSPECT,
		.peer = { *hop, routed ? LNET_PID_ANY : peer->pid },
		.local = *local,
	};
	int cpt;

	if (lnet_nid_is_any(local) || lnet_nid_is_any(&peer->nid) ||
	    lnet_nid_is_any(hop))
		return;
	if (!routed && !has_rails(s, &peer->nid))
		return;
	stat_count(s, RPC_STAT_rails_suspected);
	cpt = lnet_cpt_of(s->node, hop);
	if ((unsigned int)cpt == s->cpt)
		conn_event_take(s, &event);
	else if (!s->aborted)
		conn_event_post(s, (unsigned int)cpt, &event);
}

void conn_event_suspect_send(struct shard *s, struct ulnet_md_handle md,
			     const struct ulnet_nid *nid)
{
	if (!has_rails(s, nid))
		return;
	stat_count(s, RPC_STAT_rails_suspected);
	lnet_send_suspect(s->node, s->cpt, md);
}

static void conn_event_on_disconnected(struct ulnet_peer_watch *watch,
				       const struct ulnet_id *peer)
{
	const struct conn_event event = { .kind = CONN_LOST, .peer = *peer };

	conn_event_tell(container_of(watch, struct conn_events, watch)->shard,
			&event);
}

static void conn_event_on_silent(struct ulnet_peer_watch *watch,
				 const struct ulnet_id *peer)
{
	const struct conn_event event = { .kind = CONN_SILENT, .peer = *peer };

	conn_event_tell(container_of(watch, struct conn_events, watch)->shard,
			&event);
}

static void conn_event_on_changed(struct ulnet_peer_watch *watch)
{
	struct shard *s = container_of(watch, struct conn_events, watch)->shard;

	s->rpc->server->on_changed(s);
}

/* ---- the part ---- */

static int conn_events_shard_open(struct shard *s)
{
	struct conn_events *events = s->conn_events;

	events->shard = s;
	events->work.fn = on_conn_events;
	pthread_mutex_init(&events->lock, NULL);
	events->watch.disconnected = conn_event_on_disconnected;
	events->watch.silent = conn_event_on_silent;
	events->watch.changed = conn_event_on_changed;
	lnet_peer_watch_add(s->node, s->cpt, &events->watch);
	return 0;
}

static void conn_events_shard_stop(struct shard *s)
{
	lnet_peer_watch_del(s->node, s->cpt, &s->conn_events->watch);
}

static void conn_events_shard_free(struct shard *s)
{
	pthread_mutex_destroy(&s->conn_events->lock);
}

const struct rpc_part conn_event_part = {
	RPC_PART_STATE(struct conn_events, conn_events),
	.shard_open = conn_events_shard_open,
	.shard_stop = conn_events_shard_stop,
	.shard_free = conn_events_shard_free,
};
