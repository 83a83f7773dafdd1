/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/session.h"

#include <errno.h>

#include "base/backoff.h"
#include "lnet/discovery/info.h"
#include "lnet/message/out.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"
#include "lnet/path/health.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

/* NIDs that fit into the buffer of the first ping, as in kernel nodes. */
#define SINK_NIS  16
#define SINK_SIZE (PING_HEADER_SIZE + SINK_NIS * PING_ENTRY_SIZE)

/* After this many failures in a row, in about ten minutes, discovery gives up
 * until there is another message for the peer. */
#define FAILURES_MAX 10

/* ns: how long to wait for the answer to the first ping. */
#define PING_TIMEOUT_MIN NSEC_PER_SEC

static const struct backoff_law pauses = {
	.policy = BACKOFF_EQUAL,
	.max = FAILURES_MAX,
	.base = NSEC_PER_SEC,
	.cap = 128 * NSEC_PER_SEC,
};

/* Short, since NIDs that are in use may be idle in a moment. */
static const struct backoff_law pauses_in_use = {
	.policy = BACKOFF_EQUAL,
	.max = 16,
	.base = 16 * NSEC_PER_MSEC,
	.cap = 128 * NSEC_PER_SEC,
};

/* ---- what is known ---- */

/* Returns an NI of @peer that is to be asked whose it is, or NULL. */
static struct lnet_peer_ni *questioned_ni(const struct lnet_peer *peer)
{
	struct lnet_peer_ni *p;

	peer_for_each_ni (p, peer)
		if (provenance_is_open(p))
			return p;
	return NULL;
}

struct disc_facts disc_facts_of(const struct lnet_cpt *cpt,
				const struct lnet_peer *peer)
{
	const struct discovery *d = peer->discovery;

	return (struct disc_facts){
		.mode = disc_mode(cpt),
		.announced = d && d->announced,
		.questioned = d && questioned_ni(peer),
		.calls_only = pid_only_calls(cpt->node->conf.pid),
		.up_to_date = peer->merged,
		.old_era = peer->merged_in != disc_cpt(cpt)->era,
		.force_ping = d && d->force_ping,
		.force_push = d && d->force_push,
		.multi_rail = peer->multi_rail,
		.no_discovery = peer->no_discovery,
		.acked_version = peer->acked_version,
		.own_version = disc_cpt(cpt)->version,
	};
}

bool disc_may_ask(const struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	return (config_net(cpt->config, nid_segment(nid)) ||
		route_exists(cpt->routes, lnet_nid_net(nid))) &&
	       !lnet_nid_is_lo(nid) && !disc_is_self(cpt, nid);
}

bool disc_is_self(const struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	return config_is_mine(cpt->config, nid) &&
	       !pid_only_calls(cpt->node->conf.pid);
}

bool disc_is_up_to_date(const struct lnet_cpt *cpt,
			const struct lnet_peer *peer)
{
	struct disc_facts facts = disc_facts_of(cpt, peer);

	return disc_up_to_date(&facts);
}

/* ---- turns ---- */

void disc_kick(struct disc_cpt *dc)
{
	if (dc->posted || dc->cpt->closing)
		return;
	dc->posted = true;
	loop_post(dc->cpt->loop, &dc->work);
}

static void turn_end(struct discovery *d)
{
	struct disc_cpt *dc = disc_cpt(d->cpt);

	if (!d->turn)
		return;
	d->turn = false;
	dc->turns--;
	disc_kick(dc);
}

/* ---- the end ---- */

/* If the NID that @a asked for belongs to another peer now, and that peer is
 * not up to date, @a waits for the discovery of that peer. Returns true if it
 * does. */
static bool pass_asker_on(struct lnet_cpt *cpt, const struct lnet_peer *peer,
			  struct asker *a)
{
	const struct lnet_peer_ni *p = peer_find(cpt, &a->nid);
	struct discovery *other;

	if (a->passed_on || !p || p->peer == peer ||
	    p->place.state != PEER_HERE || disc_is_up_to_date(cpt, p->peer))
		return false;
	other = disc_get(cpt, p->peer);
	if (!other)
		return false;
	a->passed_on = true;
	list_add_tail(&other->askers, &a->link);
	disc_event(other, DISC_ON_NEWS);
	return true;
}

/* Returns the result for @a of a session that has ended with @status. It is an
 * error if the NID that @a asked for is still unverified, because then that NID
 * itself has not answered. */
static int status_for(const struct discovery *d, const struct asker *a,
		      int status)
{
	const struct lnet_peer_ni *p = peer_find(d->cpt, &a->nid);

	if (status || !p || !provenance_is_unverified(p) ||
	    disc_mode(d->cpt) != LNET_DISCOVERY_ON)
		return status;
	return d->status ? d->status : -ETIMEDOUT;
}

/* Calls of lnet_discover() that begin in done() wait for the end of another
 * session. */
static void tell_askers(struct discovery *d, const struct lnet_peer *peer,
			int status)
{
	struct list askers;

	list_init(&askers);
	list_splice_tail(&askers, &d->askers);
	while (!list_empty(&askers)) {
		struct asker *a = list_first(&askers, struct asker, link);

		list_del(&a->link);
		if (pass_asker_on(d->cpt, peer, a))
			continue;
		if (!d->cpt->node->crashed)
			a->done(a->arg, status_for(d, a, status));
		free(a);
	}
}

void disc_free(struct discovery *d)
{
	list_del(&d->all);
	announcement_free(d->announced);
	announcement_free(d->merging);
	ask_fini(&d->ask);
	free(d);
}

/* Ends @d: messages and askers go on. Frees @d now, or when @ask or @claim has
 * ended. */
static void disc_over(struct discovery *d, int status)
{
	struct lnet_cpt *cpt = d->cpt;
	struct lnet_peer *peer = d->peer;
	struct lnet_peer_ni *p;

	turn_end(d);
	while ((p = questioned_ni(peer)))
		provenance_unquestion(cpt, p);
	list_del(&d->queued);
	if (timer_armed(&d->timer))
		loop_timer_cancel(cpt->loop, &d->timer);
	d->peer = NULL;
	peer->discovery = NULL;
	out_discovery_over(&d->waiting);
	tell_askers(d, peer, status);
	peer_drop(cpt, peer);
	if (!ask_is_under_way(&d->ask) && !d->claiming)
		disc_free(d);
}

/* ---- actions ---- */

static void act_enqueue(struct discovery *d)
{
	struct disc_cpt *dc = disc_cpt(d->cpt);

	if (timer_armed(&d->timer))
		loop_timer_cancel(d->cpt->loop, &d->timer);
	list_add_tail(list_empty(&d->waiting) && list_empty(&d->askers)
			      ? &dc->others
			      : &dc->first,
		      &d->queued);
	disc_kick(dc);
}

/* As disc_hear(), but without an event. */
static void session_keep(struct discovery *d, struct announcement *ann)
{
	enum announcement_order order =
		d->announced ? announcement_order(d->announced, ann)
			     : ANNOUNCED_LATER;

	if (order != ANNOUNCED_LATER && disc_mode(d->cpt) != LNET_DISCOVERY_OFF)
		d->force_ping = true;
	if (order == ANNOUNCED_PERHAPS_EARLIER) {
		announcement_free(ann);
		return;
	}
	announcement_free(d->announced);
	d->announced = ann;
	if (d->peer->fsm.state == PEER_QUEUED ||
	    d->peer->fsm.state == PEER_DISCOVERING ||
	    d->peer->fsm.state == PEER_PUSHING)
		reconcile_losses(d->cpt, d->peer, ann);
}

void disc_hear(struct discovery *d, struct announcement *ann)
{
	bool nids_in_use = d->peer->fsm.state == PEER_FAILED && d->nids_in_use;

	session_keep(d, ann);
	disc_event(d, nids_in_use ? DISC_ON_WANTED : DISC_ON_NEWS);
}

void disc_pass_on(struct lnet_cpt *cpt, struct announcement *ann,
		  struct lnet_peer *of)
{
	struct discovery *other = of ? disc_get(cpt, of) : NULL;

	if (other)
		disc_hear(other, ann);
	else
		announcement_free(ann);
}

void disc_ask_heir(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	const struct lnet_peer_ni *p = peer_find(cpt, nid);
	struct discovery *heir = p && p->place.state == PEER_HERE
					 ? disc_get(cpt, p->peer)
					 : NULL;

	if (!heir)
		return;
	heir->force_ping = disc_mode(cpt) != LNET_DISCOVERY_OFF;
	disc_event(heir, DISC_ON_NEWS);
}

void disc_hand_over(struct discovery *d)
{
	struct msg_out *msg;

	/* The messages may have to wait again, for the peers that have the NIDs
	 * now. */
	list_for_each_entry (msg, &d->waiting, link)
		msg->flags &= (uint8_t)~MSG_DISCOVERY_WAITED;
	/* By sequence numbers it cannot be known whether the announcement is
	 * older than what is known of the peer that has the NID now. */
	if (d->announced)
		disc_ask_heir(d->cpt, &d->announced->from);
	d->status = 0;
	disc_event(d, DISC_ON_OVER);
}

/* Is an NI on a net of this host still to be asked? It answers at once, and the
 * messages would rather go there. */
static bool asks_neighbour(const struct discovery *d)
{
	const struct lnet_peer_ni *p;

	peer_for_each_ni (p, d->peer)
		if (provenance_is_open(p) &&
		    config_is_of_host(d->cpt->config, &p->nid))
			return true;
	return false;
}

/* If the peer is known, and only some of its NIs are still to be asked, sends
 * the messages that have another NI as their target. */
static void messages_go(struct discovery *d, struct disc_facts facts)
{
	struct msg_out *msg, *next;
	struct list out;

	facts.questioned = asks_neighbour(d);
	if (disc_up_to_date(&facts))
		d->peer->settled = true;
	if (!d->peer->settled)
		return;
	list_init(&out);
	list_for_each_entry_safe (msg, next, &d->waiting, link) {
		const struct lnet_peer_ni *p =
			peer_member(d->cpt, d->peer, &msg->target);

		if (p && !provenance_is_unverified(p)) {
			list_del(&msg->link);
			list_add_tail(&out, &msg->link);
		}
	}
	out_discovery_over(&out);
}

void disc_look(struct discovery *d)
{
	struct disc_facts facts = disc_facts_of(d->cpt, d->peer);

	messages_go(d, facts);
	/* An administrator may have given the NIDs of the peer to other peers.
	 */
	if (d->peer->nnis)
		disc_event(d, disc_step(&facts));
	else
		disc_hand_over(d);
}

/* Returns the first NI for whose answer a message waits, or NULL. */
static const struct lnet_peer_ni *ni_waited_for(const struct discovery *d)
{
	const struct msg_out *msg;

	list_for_each_entry (msg, &d->waiting, link) {
		const struct lnet_peer_ni *p =
			peer_member(d->cpt, d->peer, &msg->target);

		if (p && provenance_is_open(p))
			return p;
	}
	return NULL;
}

static uint32_t count_unverified(const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *p;
	uint32_t n = 0;

	peer_for_each_ni (p, peer)
		n += provenance_is_unverified(p);
	return n;
}

/* How many NIs are asked until the next pause, if all are silent. */
static uint32_t nis_to_ask(const struct lnet_peer *peer)
{
	uint32_t unverified = count_unverified(peer);

	return peer->nnis - unverified + MIN(unverified, UNCONFIRMED_MAX);
}

/* Returns the NI to be asked next. If any NI may be asked, NIs that were silent
 * come last. If there are more unverified NIs than are asked between two
 * pauses, they come after the others, and after each pause other ones of them
 * are asked. */
static const struct lnet_peer_ni *ni_to_ask(const struct discovery *d)
{
	uint32_t unverified = count_unverified(d->peer);
	uint32_t verified = d->peer->nnis - unverified;
	uint32_t skip = d->silent % nis_to_ask(d->peer);
	const struct lnet_peer_ni *p = ni_waited_for(d);
	bool many = unverified > UNCONFIRMED_MAX;
	bool late = many && skip >= verified;

	if (!p)
		p = questioned_ni(d->peer);
	if (p)
		return p;

	if (late)
		skip = (skip - verified + d->failures * UNCONFIRMED_MAX) %
		       unverified;
	peer_for_each_ni (p, d->peer)
		if ((!many || provenance_is_unverified(p) == late) &&
		    skip-- == 0)
			return p;
	BUG_ON(true);
	return NULL;
}

/* Returns ns. The timeout is short at first, since messages wait for the
 * answer, which may be lost. It doubles with each failure. */
static uint64_t ping_timeout(const struct discovery *d)
{
	uint32_t failures = d->nids_in_use ? 0 : d->failures;

	return MIN(PING_TIMEOUT_MIN << MIN(failures, FAILURES_MAX),
		   settings_lnd_timeout(&d->cpt->node->settings));
}

/* Returns the size of the buffer for the NIDs that the peer is known to have.
 */
static size_t sink_size(const struct lnet_peer *peer)
{
	size_t size =
		PING_HEADER_SIZE + ((size_t)peer->nnis + 1) * PING_LARGE_SIZE;

	return peer->nnis < SINK_NIS ? SINK_SIZE : size;
}

/* An NI on a net of this host has not answered. If it was there before, it is
 * pinged until it is there again (recovery.c), and asked then. */
static void neighbour_silent(struct lnet_cpt *cpt, struct lnet_peer_ni *p)
{
	struct ulnet_counts heard = { 0 };

	traffic_sum(&p->traffic.recv, &heard);
	if (config_is_of_host(cpt->config, &p->nid) && counts_total(&heard))
		health_lose_peer_ni(cpt, p);
}

/* The NI that was asked has not answered. Does nothing unless it was asked
 * whose it is. If two peers claim the NI, its peer has to be discovered anew:
 * both may be one. If it is unverified, it is asked again when it is used; and,
 * if another peer has claimed it, also after a pause. Returns true if nothing
 * else has to be asked. */
static bool question_failed(struct discovery *d)
{
	struct lnet_peer_ni *p = peer_member(d->cpt, d->peer, &d->asked);

	if (!p || !provenance_is_open(p))
		return false;
	if (p->provenance.state == PEER_DISPUTED)
		d->peer->merged = false;
	else if (!directory_same(&d->cpt->node->directory, &p->claimed_by,
				 &p->nid))
		disc_ask_later(d->cpt, p);
	neighbour_silent(d->cpt, p);
	provenance_unquestion(d->cpt, p);
	return d->peer->merged && !d->force_ping &&
	       d->peer->merged_in == disc_cpt(d->cpt)->era;
}

/* If the NI that did not answer is a gateway, it loses health as if a message
 * had failed. */
static void gateway_silent(const struct discovery *d)
{
	struct lnet_peer_ni *p =
		d->cpt->routes->n ? peer_member(d->cpt, d->peer, &d->asked)
				  : NULL;

	if (p && routes_go_by(d->cpt, &p->nid, LNET_NET_ANY))
		health_lose_peer_ni(d->cpt, p);
}

/* The NI that was asked has not answered: asks another one, if there is one. */
static void ping_failed(struct discovery *d, int status)
{
	d->status = status;
	gateway_silent(d);
	if (d->announced)
		d->announced->unanswered = status;
	if (question_failed(d))
		disc_event(d, DISC_ON_ANSWER);
	else if (++d->silent < nis_to_ask(d->peer))
		disc_event(d, DISC_ON_SILENT);
	else
		disc_event(d,
			   d->announced ? DISC_ON_ANSWER : DISC_ON_PING_FAILED);
}

static void act_ping(struct discovery *d)
{
	const struct lnet_peer_ni *p = ni_to_ask(d);
	struct ulnet_id target = { p->nid, d->pid };
	const struct ulnet_nid any = LNET_NID_ANY;
	/* Strangers may name any NID, so a ping that fails says nothing about
	 * the NIs of this node. */
	uint8_t flags = MSG_PROBE;
	int rc = ask_reserve(&d->ask, sink_size(d->peer));

	/* Only that NID itself can say whose it is. */
	if (provenance_is_open(p))
		flags |= MSG_EXACT;
	d->asked = target.nid;
	/* By now the NID may belong to this node, or its net may be gone. */
	if (!rc && !disc_may_ask(d->cpt, &target.nid))
		rc = -EHOSTUNREACH;
	if (!rc)
		rc = ask_get(&d->ask, &any, &target, flags, ping_timeout(d));
	if (rc)
		ping_failed(d, rc);
}

/* Pushes over the path of the peer's answer, if it has answered, and over no
 * other: only there is it certain who acknowledges the push. */
static void act_push(struct discovery *d)
{
	const struct lnet_cpt *cpt = d->cpt;
	bool way = config_ni(cpt->config, &d->ni);
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_id target = { way ? d->lpni : d->peer->primary,
					 d->pid };
	int rc;

	d->pushing = disc_cpt(cpt)->version;
	rc = ask_tell(&d->ask, way ? &d->ni : &any, &target,
		      way ? MSG_EXACT : 0, ping_timeout(d));
	if (!rc)
		return;
	d->status = rc;
	disc_event(d, DISC_ON_PUSH_FAILED);
}

static void act_end(struct discovery *d)
{
	d->peer->settled = true;
	cpt_stat(d->cpt, STAT_discoveries);
	disc_over(d, 0);
}

static const struct backoff_law *session_law_of(const struct discovery *d)
{
	return d->nids_in_use ? &pauses_in_use : &pauses;
}

/* Returns the length of the pause, ns. If failures are of another kind than
 * before, they are counted from 1 again. */
static uint64_t pause_after_failure(struct discovery *d)
{
	bool nids_in_use = d->status == -EBUSY;

	if (nids_in_use != d->nids_in_use)
		d->failures = 0;
	d->nids_in_use = nids_in_use;
	return backoff_pause(session_law_of(d), ++d->failures,
			     loop_random(d->cpt->loop));
}

static void act_pause(struct discovery *d)
{
	struct loop *loop = d->cpt->loop;
	uint64_t pause = pause_after_failure(d);

	d->peer->settled = true;
	d->silent = 0;
	d->ni = LNET_NID_ANY;
	cpt_stat(d->cpt, STAT_discoveries_failed);
	turn_end(d);
	loop_timer_arm(loop, &d->timer, loop_now(loop) + pause);
	out_discovery_over(&d->waiting);
	tell_askers(d, d->peer, d->status);
}

static void act_forget(struct discovery *d)
{
	d->peer->settled = false;
	d->peer->merged = false;
	cpt_topology_changed(d->cpt);
	disc_over(d, d->status);
}

void disc_event(struct discovery *d, enum disc_event ev)
{
	static void (*const acts[DISC_ACTIONS])(struct discovery *) = {
		[DISC_IGNORE] = NULL,	    [DISC_ENQUEUE] = act_enqueue,
		[DISC_LOOK] = disc_look,    [DISC_PING] = act_ping,
		[DISC_MERGE] = disc_merge,  [DISC_PUSH] = act_push,
		[DISC_END] = act_end,	    [DISC_PAUSE] = act_pause,
		[DISC_FORGET] = act_forget,
	};

	enum disc_action action = disc_move(&d->peer->fsm, ev);

	if (acts[action])
		acts[action](d);
}

/* ---- pings and pushes that have ended ---- */

static void session_pinged(struct discovery *d)
{
	struct announcement *ann;
	int rc = d->ask.status;

	if (!rc) {
		d->ni = d->ask.ni;
		d->lpni = d->ask.lpni;
		rc = announcement_new(d->cpt, d->ask.buf, d->ask.length, &ann);
	}
	if (rc) {
		ping_failed(d, rc);
		return;
	}
	d->force_ping = d->ask_again;
	d->ask_again = false;
	d->silent = 0;
	ann->source = MERGE_REPLY;
	ann->from = d->lpni;
	/* If another NI than the one that was asked has answered, it is still
	 * unknown whose the asked one is. */
	if (!lnet_nid_eq(&d->asked, &d->lpni))
		(void)question_failed(d);
	session_keep(d, ann);
	disc_event(d, DISC_ON_ANSWER);
}

static void pushed(struct discovery *d)
{
	if (d->ask.status) {
		d->status = d->ask.status;
		disc_event(d, DISC_ON_PUSH_FAILED);
		return;
	}
	cpt_stat(d->cpt, STAT_pushes_sent);
	d->force_push = false;
	/* If discovery is off, this was the last push to the peer. */
	d->peer->acked_version =
		disc_mode(d->cpt) == LNET_DISCOVERY_OFF ? 0 : d->pushing;
	disc_event(d, DISC_ON_ACK);
}

static void disc_asked(struct ask *a)
{
	struct discovery *d = container_of(a, struct discovery, ask);

	if (!d->peer)
		disc_free(d);
	else if (d->peer->fsm.state == PEER_DISCOVERING)
		session_pinged(d);
	else
		pushed(d);
}

/* ---- the beginning ---- */

static void disc_pause_over(struct timer *t)
{
	struct discovery *d = container_of(t, struct discovery, timer);

	disc_event(d, d->failures < session_law_of(d)->max ? DISC_ON_PAUSE_OVER
							   : DISC_ON_GIVE_UP);
}

struct discovery *disc_get(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	struct discovery *d = peer->discovery;

	if (d || cpt->closing)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->cpt = cpt;
	d->peer = peer;
	d->pid = peer->merged ? peer->pid : LNET_PID_LUSTRE;
	d->ni = LNET_NID_ANY;
	list_init(&d->queued);
	list_init(&d->lost);
	list_init(&d->waiting);
	list_init(&d->askers);
	timer_init(&d->timer, disc_pause_over);
	ask_init(&d->ask, cpt, disc_asked);
	list_add_tail(&disc_cpt(cpt)->all, &d->all);
	peer_hold(peer);
	peer->discovery = d;
	return d;
}
