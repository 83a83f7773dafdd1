/* SPDX-License-Identifier: BSD-3-Clause */
/* How sessions begin: for messages, for users, by pushes of peers, by changes
 * of this node, and for gateways. And when sessions have their turn. */
#include "lnet/discovery/discovery.h"

#include <errno.h>

#include "lnet/discovery/info.h"
#include "lnet/discovery/recovery.h"
#include "lnet/discovery/session.h"
#include "lnet/message/out.h"
#include "lnet/message/reroute.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

/* Most sessions that have their turn in one turn of the loop, so that other
 * work is done in between. */
#define TURNS_SLICE 16

/* Begins a session if the peer of @p is not up to date. Returns true if @msg
 * waits for the session. It does if the peer was never discovered, so that the
 * peer will know from whom @msg is; or if @p is unverified and has to be asked
 * first, unless @msg can go to no other NID. */
static bool disc_wait_for(struct msg_out *msg, struct lnet_peer_ni *p)
{
	struct lnet_peer *peer = p->peer;
	bool unverified = provenance_is_unverified(p);
	struct discovery *d;
	bool waits;

	if (!unverified && peer->settled && disc_is_up_to_date(msg->cpt, peer))
		return false;
	d = disc_get(msg->cpt, peer);
	if (!d)
		return false;
	if (!peer->merged && peer->fsm.state == PEER_UNKNOWN)
		d->pid = msg->hdr.dest_pid;
	if (unverified)
		provenance_question(msg->cpt, p);
	waits = (!peer->settled || (unverified && !out_keeps_path(msg))) &&
		peer->fsm.state != PEER_FAILED;
	if (waits)
		out_discovery_wait(msg, &d->waiting);
	disc_event(d, DISC_ON_WANTED);
	return waits;
}

/* The function msg_discovery.waits. */
static bool disc_waits(struct msg_out *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct lnet_peer_ni *p;
	bool waits;

	if (pid_only_calls(msg->hdr.dest_pid) ||
	    !disc_may_ask(cpt, &msg->target))
		return false;
	p = peer_get(cpt, &msg->target);
	if (!p)
		return false;
	p->used = true;
	waits = disc_wait_for(msg, p);
	peer_unref(p);
	return waits;
}

/* ---- claims of NIDs that cannot be asked yet ---- */

/* A claim of a NID that cannot be asked yet; at most one for each peer NI. The
 * peer NI may be forgotten, or move to another CPT, meanwhile. */
struct delayed_claim {
	struct list link;
	struct timer timer;
	struct lnet_cpt *cpt;
	struct ulnet_nid nid;
};

static void delayed_free(struct delayed_claim *late)
{
	list_del(&late->link);
	free(late);
}

static void delayed_over(struct timer *t)
{
	struct delayed_claim *late =
		container_of(t, struct delayed_claim, timer);
	struct lnet_cpt *cpt = late->cpt;
	struct lnet_peer_ni *p = peer_find(cpt, &late->nid);

	delayed_free(late);
	if (!p)
		return;
	p->claim_delayed = false;
	peer_cpt(cpt)->question(cpt, p);
}

/* Without memory nothing is done: the next claim tries again. */
static void delayed_claim(struct lnet_cpt *cpt, struct lnet_peer_ni *p)
{
	struct delayed_claim *late;

	if (p->claim_delayed || cpt->closing)
		return;
	late = calloc(1, sizeof(*late));
	if (!late)
		return;
	p->claim_delayed = true;
	late->cpt = cpt;
	late->nid = p->nid;
	list_add_tail(&disc_cpt(cpt)->late, &late->link);
	timer_init(&late->timer, delayed_over);
	loop_timer_arm(cpt->loop, &late->timer, p->claims_after);
}

/* Pauses of 1 s, 2 s, ... up to a minute: three minutes in all. */
#define ASK_LATER_MAX 8

void disc_ask_later(struct lnet_cpt *cpt, struct lnet_peer_ni *p)
{
	if (p->claims_denied >= ASK_LATER_MAX)
		return;
	disc_claim_denied(cpt, p);
	delayed_claim(cpt, p);
}

/* The function peer_cpt.question. */
static void disc_question(struct lnet_cpt *cpt, struct lnet_peer_ni *p)
{
	struct discovery *d;

	if (disc_mode(cpt) != LNET_DISCOVERY_ON || p->peer->configured ||
	    p->place.state != PEER_HERE || !disc_may_ask(cpt, &p->nid))
		return;
	if (!provenance_is_unverified(p) &&
	    loop_now(cpt->loop) < p->claims_after) {
		cpt_stat(cpt, STAT_claims_paused);
		delayed_claim(cpt, p);
		return;
	}
	d = disc_get(cpt, p->peer);
	if (!d)
		return;
	provenance_question(cpt, p);
	/* The answer to the ping under way may be older than the claim. */
	if (p->peer->fsm.state == PEER_DISCOVERING &&
	    lnet_nid_eq(&d->asked, &p->nid))
		d->ask_again = true;
	disc_event(d, DISC_ON_WANTED);
}

/* Returns an NI of the same peer that can speak for @p, or NULL. */
static const struct lnet_peer_ni *speaker_for(const struct lnet_peer_ni *p)
{
	const struct lnet_peer_ni *other;

	peer_for_each_ni (other, p->peer)
		if (other != p && !provenance_is_unverified(other))
			return other;
	return NULL;
}

void disc_disconnected(struct lnet_cpt *cpt, const struct lnet_ni *ni,
		       const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *p = ni->lnd.host ? peer_find(cpt, nid) : NULL;
	const struct lnet_peer_ni *other;

	if (!p || p->place.state != PEER_HERE || p->peer->configured ||
	    p->provenance.state != PEER_VERIFIED)
		return;
	other = speaker_for(p);
	if (!other)
		return;
	provenance_unverify(cpt, p, &other->nid);
	reroute_peer_ni_down(cpt, p);
	disc_question(cpt, p);
}

/* The function peer_cpt.moved. From now on the CPT that owns @p discovers its
 * peer. */
static void disc_moved(struct lnet_cpt *cpt, struct lnet_peer_ni *p)
{
	if (p->peer->discovery)
		disc_hand_over(p->peer->discovery);
	reroute_peer_ni(cpt, p);
}

/* The function peer_cpt.freed. Peers are asked again when something is sent to
 * them. */
static void disc_freed(struct lnet_cpt *cpt)
{
	disc_cpt(cpt)->era++;
	cpt_topology_changed(cpt);
}

static const struct msg_discovery messages = { disc_waits };

/* ---- lnet_discover() ---- */

/* Begins a session for @a, and takes over @a; or returns -ENOMEM. If the NID is
 * unverified, that NID itself is asked, since it may belong to another peer. */
static int discover_nid(struct asker *a, struct lnet_peer_ni *p)
{
	struct discovery *d = disc_get(a->cpt, p->peer);

	if (!d)
		return -ENOMEM;
	list_add_tail(&d->askers, &a->link);
	if (a->flags & LNET_DISCOVER_FORCE)
		d->force_ping = d->force_push = true;
	if (!p->peer->merged)
		d->force_ping = true;
	if (p->provenance.state == PEER_UNVERIFIED)
		disc_question(a->cpt, p);
	disc_event(d, DISC_ON_NEWS);
	return 0;
}

static int discover_begin(void *arg)
{
	struct asker *a = arg;
	struct lnet_cpt *cpt = a->cpt;
	struct lnet_peer_ni *p;
	int rc;

	if (cpt->closing)
		return -ESHUTDOWN;
	if (node_cpt_of(cpt->node, &a->nid) != cpt->index)
		return -EAGAIN;
	if (lnet_nid_is_lo(&a->nid) || disc_is_self(cpt, &a->nid))
		return -EINVAL;
	if (!disc_may_ask(cpt, &a->nid))
		return -EHOSTUNREACH;
	p = peer_get(cpt, &a->nid);
	if (!p)
		return -ENOBUFS;
	rc = discover_nid(a, p);
	peer_unref(p);
	return rc;
}

int lnet_discover(struct lnet *node, const struct ulnet_nid *nid,
		  unsigned int flags, ulnet_discover_fn done, void *arg)
{
	struct asker *a;
	int rc;

	if (!done || lnet_nid_is_any(nid) || flags & ~LNET_DISCOVER_FORCE)
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct asker){
		.nid = *nid, .flags = flags, .done = done, .arg = arg
	};
	/* The peer may move to another CPT before the call is made. */
	do {
		a->cpt = node->cpt[node_cpt_of(node, nid)];
		rc = loop_call(a->cpt->loop, discover_begin, a);
	} while (rc == -EAGAIN);
	if (rc)
		free(a);
	return rc;
}

/* ---- pushes of peers ---- */

void disc_pushed(struct lnet_cpt *cpt, const struct disc_push *push)
{
	struct lnet_peer_ni *p = peer_find(cpt, &push->from);
	struct discovery *d;
	struct announcement *ann;
	int rc = announcement_new(cpt, push->bytes, push->length, &ann);

	cpt_stat(cpt,
		 rc == -EPROTO || rc == -E2BIG ? STAT_pushes_bad : STAT_pushes);
	d = p && !pid_only_calls(push->pid) && disc_may_ask(cpt, &p->nid)
		    ? disc_get(cpt, p->peer)
		    : NULL;
	if (!d) {
		announcement_free(ann);
		return;
	}
	/* If several processes share the NID, the one that has pushed last is
	 * answered. */
	d->pid = push->pid;
	if (rc) {
		/* The push was of no use, so the peer is asked; but not sooner
		 * than if it had not pushed at all. */
		d->force_ping = disc_mode(cpt) != LNET_DISCOVERY_OFF;
		disc_event(d, DISC_ON_WANTED);
		return;
	}
	ann->source = MERGE_PUSH;
	ann->from = push->from;
	disc_hear(d, ann);
}

/* ---- changes of this node ---- */

/* An NI of this node is down or gone, and the peer of @p, the primary NI, does
 * not know it. A session pushes over one path only; if that path is cut, too,
 * the push over another path follows a second later. So each NI of the peer, up
 * to TOLD_MAX, is told at once, outside of the session. */
#define TOLD_MAX 4

static void sweep_tell(struct lnet_cpt *cpt, const struct lnet_peer *peer)
{
	uint32_t lost = atomic_load(&cpt->node->info_lost);
	const struct lnet_peer_ni *p;
	unsigned int n = 0;

	if (!lost || peer->nnis < 2 || !peer->acked_version ||
	    !disc_later(lost, peer->acked_version))
		return;
	peer_for_each_ni (p, peer) {
		const struct ulnet_id to = { p->nid, peer->pid };

		if (p->down || provenance_is_unverified(p) ||
		    !disc_may_ask(cpt, &p->nid))
			continue;
		if (n++ == TOLD_MAX || ask_tell_once(cpt, &to))
			return;
	}
}

/* As peers_fn: begins a session for a peer that needs a push. */
static void sweep_look(struct lnet_cpt *cpt, struct lnet_peer_ni *p, void *arg)
{
	struct disc_facts facts;
	struct discovery *d;

	(void)arg;
	if (!p || !lnet_nid_eq(&p->nid, &p->peer->primary) ||
	    !p->peer->settled || p->place.state != PEER_HERE)
		return;
	facts = disc_facts_of(cpt, p->peer);
	if (!disc_needs_push(&facts))
		return;
	d = disc_get(cpt, p->peer);
	if (d)
		disc_event(d, DISC_ON_WANTED);
	sweep_tell(cpt, p->peer);
}

void disc_news(struct lnet_cpt *cpt, uint32_t version)
{
	struct disc_cpt *dc = disc_cpt(cpt);

	/* More peers may be within reach now. */
	if (cpt->config->nnets > dc->nets) {
		dc->era++;
		recovery_of_all(cpt);
	}
	dc->nets = cpt->config->nnets;
	if (dc->version == version)
		return;
	dc->version = version;
	dc->sweeping = true;
	dc->call_changed = true;
	dc->swept = PEERS_FIRST;
	disc_kick(dc);
}

/* ---- gateways ---- */

/* ns: how often a process that only calls discovers its gateways, since routers
 * push no changes to such a process. */
#define CHECK_CALLER NSEC_PER_SEC

static void gateway_ask(struct lnet_cpt *cpt, const struct ulnet_nid *gateway)
{
	struct lnet_peer_ni *p = peer_get(cpt, gateway);
	struct discovery *d = p ? disc_get(cpt, p->peer) : NULL;

	if (d) {
		d->force_ping = true;
		d->force_push = disc_mode(cpt) != LNET_DISCOVERY_OFF;
		disc_event(d, DISC_ON_NEWS);
	}
	if (p)
		peer_unref(p);
}

/* Most gateways that are asked in one turn of the loop. */
#define GATEWAYS_SLICE 256

/* The function of disc_cpt.gateways. A gateway of several routes has only one
 * session. */
static void gateways_ask(struct timer *t)
{
	struct disc_cpt *dc = container_of(t, struct disc_cpt, gateways);
	struct lnet_cpt *cpt = dc->cpt;
	uint64_t pause = settings_router_check(&cpt->node->settings);
	const struct route_table *routes = cpt->routes;
	unsigned int begin, i = 0, n = 0;

	if (pid_only_calls(cpt->node->conf.pid))
		pause = MIN(pause, CHECK_CALLER);
	if (!lnet_nid_is_any(&dc->gateway))
		i = routes_by(routes, &dc->gateway, &begin);
	dc->gateway = LNET_NID_ANY;
	for (; i < routes->n && n < GATEWAYS_SLICE; n++) {
		const struct ulnet_nid *gateway =
			&routes->by_gateway[i]->gateway;

		if (node_cpt_of(cpt->node, gateway) == cpt->index &&
		    disc_may_ask(cpt, gateway))
			gateway_ask(cpt, gateway);
		if (n + 1 == GATEWAYS_SLICE)
			dc->gateway = *gateway;
		i = routes_by(routes, gateway, &begin);
	}
	if (i < routes->n)
		pause = 0; /* further gateways in the next turn */
	else
		dc->gateway = LNET_NID_ANY;
	loop_timer_arm(cpt->loop, t, loop_now(cpt->loop) + pause);
}

void disc_gateway_suspect(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	if (unlikely(routes_go_by(cpt, nid, LNET_NET_ANY)))
		gateway_ask(cpt, nid);
}

void disc_routes_changed(struct lnet_cpt *cpt)
{
	struct disc_cpt *dc = disc_cpt(cpt);

	dc->era++;
	if (cpt->closing)
		return;
	routes_added(cpt);
	/* the next time the gateways are asked from the first one on */
	dc->gateway = LNET_NID_ANY;
	if (timer_armed(&dc->gateways))
		loop_timer_cancel(cpt->loop, &dc->gateways);
	if (cpt->routes->n)
		loop_timer_arm(cpt->loop, &dc->gateways, loop_now(cpt->loop));
}

/* ---- the CPT ---- */

static struct discovery *disc_next(struct disc_cpt *dc)
{
	struct list *queue = list_empty(&dc->first) ? &dc->others : &dc->first;
	struct discovery *d;

	if (dc->turns == DISC_TURNS_MAX || list_empty(queue))
		return NULL;
	d = list_first(queue, struct discovery, queued);
	list_del(&d->queued);
	return d;
}

static void disc_work(struct work *w)
{
	struct disc_cpt *dc = container_of(w, struct disc_cpt, work);
	unsigned int n = 0;
	struct discovery *d;

	dc->posted = false;
	cpt_ended_one(dc->cpt);
	if (dc->cpt->closing)
		return;
	if (dc->call_changed)
		dc->changed(dc->cpt);
	dc->call_changed = false;
	while (n < TURNS_SLICE && (d = disc_next(dc))) {
		n++;
		d->turn = true;
		dc->turns++;
		disc_look(d);
	}
	if (dc->sweeping && list_empty(&dc->first) && list_empty(&dc->others))
		dc->sweeping =
			peers_some(dc->cpt, &dc->swept, sweep_look, NULL);
	if (n == TURNS_SLICE || (dc->sweeping && dc->turns < DISC_TURNS_MAX))
		disc_kick(dc);
}

void disc_mode_changed(struct lnet_cpt *cpt)
{
	enum ulnet_discovery mode = disc_mode(cpt);
	bool on = mode != LNET_DISCOVERY_OFF;
	struct disc_cpt *dc = disc_cpt(cpt);
	struct discovery *d;

	if (mode == dc->mode)
		return;
	dc->mode = mode;
	dc->era++;
	if (on == peer_cpt(cpt)->discovery)
		return;
	msg_cpt(cpt)->discovery = on ? &messages : NULL;
	peer_cpt(cpt)->discovery = on;
	cpt_topology_changed(cpt);
	if (on)
		return;
	list_for_each_entry (d, &dc->all, all)
		out_discovery_over(&d->waiting);
}

void disc_init(struct lnet_cpt *cpt)
{
	struct disc_cpt *dc = disc_cpt(cpt);

	peer_cpt(cpt)->question = disc_question;
	peer_cpt(cpt)->moved = disc_moved;
	peer_cpt(cpt)->freed = disc_freed;
	dc->cpt = cpt;
	dc->version = 1;
	dc->work.fn = disc_work;
	list_init(&dc->all);
	list_init(&dc->first);
	list_init(&dc->others);
	list_init(&dc->lost);
	list_init(&dc->late);
	timer_init(&dc->gateways, gateways_ask);
	dc->gateway = LNET_NID_ANY;
}

void disc_stop(struct lnet_cpt *cpt)
{
	struct disc_cpt *dc = disc_cpt(cpt);
	struct discovery *d, *next;

	dc->sweeping = false;
	if (timer_armed(&dc->gateways))
		loop_timer_cancel(cpt->loop, &dc->gateways);
	while (!list_empty(&dc->late)) {
		struct delayed_claim *late =
			list_first(&dc->late, struct delayed_claim, link);

		loop_timer_cancel(cpt->loop, &late->timer);
		delayed_free(late);
	}
	list_for_each_entry_safe (d, next, &dc->all, all) {
		if (!d->peer)
			continue;
		d->status = -ESHUTDOWN;
		disc_event(d, DISC_ON_OVER);
	}
}

bool disc_is_idle(const struct lnet_cpt *cpt)
{
	const struct disc_cpt *dc = disc_cpt(cpt);

	return !dc->posted && list_empty(&dc->all);
}
