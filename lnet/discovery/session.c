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

/* Sink of a first question: what kernel nodes use. */
#define SINK_NIS  16
#define SINK_SIZE (PING_HEADER_SIZE + SINK_NIS * PING_ENTRY_SIZE)

/* After that many failures in a row a peer is left alone, until it is wanted
 * again: within some ten minutes. */
#define FAILURES_MAX 10

/* How long the first question waits for its answer. */
#define TRY_MIN NSEC_PER_SEC

static const struct backoff_law pauses = {
	.policy = BACKOFF_EQUAL,
	.max = FAILURES_MAX,
	.base = NSEC_PER_SEC,
	.cap = 128 * NSEC_PER_SEC,
};

/* NIDs that are in use may be idle in a moment. */
static const struct backoff_law pauses_held_up = {
	.policy = BACKOFF_EQUAL,
	.max = 16,
	.base = 16 * NSEC_PER_MSEC,
	.cap = 128 * NSEC_PER_SEC,
};

/* ---- what is known ---- */

/* An NI of @peer that is to be asked itself whose it is, or NULL. */
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
		.told_us = d && d->told,
		.questioned = d && questioned_ni(peer),
		.calls_only = pid_only_calls(cpt->node->conf.pid),
		.up_to_date = peer->merged,
		.of_old = peer->merged_in != disc_cpt(cpt)->era,
		.force_ping = d && d->force_ping,
		.force_push = d && d->force_push,
		.multi_rail = peer->multi_rail,
		.no_discovery = peer->no_discovery,
		.told = peer->told,
		.own = disc_cpt(cpt)->version,
	};
}

bool disc_may_ask(const struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	return (config_net(cpt->config, nid_segment(nid)) ||
		route_exists(cpt->routes, lnet_nid_net(nid))) &&
	       !lnet_nid_is_lo(nid) && !config_is_mine(cpt->config, nid);
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

static void turn_over(struct discovery *d)
{
	struct disc_cpt *dc = disc_cpt(d->cpt);

	if (!d->turn)
		return;
	d->turn = false;
	dc->turns--;
	disc_kick(dc);
}

/* ---- the end ---- */

/* The NID that @a asked for may have said by now that it is another peer's.
 * Then @a waits for the discovery of that peer. */
static bool pass_asker_on(struct lnet_cpt *cpt, const struct lnet_peer *peer,
			  struct asker *a)
{
	const struct lnet_peer_ni *p = peer_find(cpt, &a->nid);
	struct discovery *its;

	if (a->passed_on || !p || p->peer == peer ||
	    p->place.state != PEER_HERE || disc_is_up_to_date(cpt, p->peer))
		return false;
	its = disc_get(cpt, p->peer);
	if (!its)
		return false;
	a->passed_on = true;
	list_add_tail(&its->askers, &a->link);
	disc_event(its, DISC_ON_NEWS);
	return true;
}

/* What to tell @a. If the NID that @a asked for is still unverified, it has not
 * answered, however well the session has ended (@status). */
static int status_for(const struct discovery *d, const struct asker *a,
		      int status)
{
	const struct lnet_peer_ni *p = peer_find(d->cpt, &a->nid);

	if (status || !p || !provenance_is_unverified(p) ||
	    disc_mode(d->cpt) != LNET_DISCOVERY_ON)
		return status;
	return d->status ? d->status : -ETIMEDOUT;
}

/* Those who ask again, in done(), are told the next time. */
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
	announcement_free(d->told);
	announcement_free(d->merging);
	ask_fini(&d->ask);
	free(d);
}

/* Whoever waits goes on; nothing is left of @d but what the LND has. */
static void disc_over(struct discovery *d, int status)
{
	struct lnet_cpt *cpt = d->cpt;
	struct lnet_peer *peer = d->peer;
	struct lnet_peer_ni *p;

	turn_over(d);
	while ((p = questioned_ni(peer)))
		provenance_unquestion(cpt, p);
	list_del(&d->queued);
	if (timer_armed(&d->timer))
		loop_timer_cancel(cpt->loop, &d->timer);
	d->peer = NULL;
	peer->discovery = NULL;
	out_await_over(&d->waiting);
	tell_askers(d, peer, status);
	peer_drop(cpt, peer);
	if (!ask_is_under_way(&d->ask) && !d->claiming)
		disc_free(d);
}

/* ---- actions of the table ---- */

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

static void keep(struct discovery *d, struct announcement *told)
{
	enum announcement_order order =
		d->told ? announcement_order(d->told, told) : ANNOUNCED_LATER;

	if (order != ANNOUNCED_LATER && disc_mode(d->cpt) != LNET_DISCOVERY_OFF)
		d->force_ping = true;
	if (order == ANNOUNCED_PERHAPS_EARLIER) {
		announcement_free(told);
		return;
	}
	announcement_free(d->told);
	d->told = told;
}

void disc_hear(struct discovery *d, struct announcement *told)
{
	bool held_up = d->peer->fsm.state == PEER_FAILED && d->held_up;

	keep(d, told);
	disc_event(d, held_up ? DISC_ON_WANTED : DISC_ON_NEWS);
}

void disc_pass_on(struct lnet_cpt *cpt, struct announcement *told,
		  struct lnet_peer *of)
{
	struct discovery *its = of ? disc_get(cpt, of) : NULL;

	if (its)
		disc_hear(its, told);
	else
		announcement_free(told);
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

/* Messages of a peer that is no more wait for the one that has its NIDs. */
void disc_hand_over(struct discovery *d)
{
	struct msg_out *msg;

	list_for_each_entry (msg, &d->waiting, link)
		msg->flags &= (uint8_t)~MSG_AWAITED;
	/* What came may be older than what is known of the heir, and their
	 * numbers do not tell. */
	if (d->told)
		disc_ask_heir(d->cpt, &d->told->from);
	d->status = 0;
	disc_event(d, DISC_ON_OVER);
}

/* If the peer is known, and only some of its NIs are still to be asked, a
 * message waits for the answer of the NI that it names, and not for others. */
static void messages_go(struct discovery *d, struct disc_facts facts)
{
	struct msg_out *msg, *next;
	struct list out;

	facts.questioned = false;
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
	out_await_over(&out);
}

void disc_look(struct discovery *d)
{
	struct disc_facts facts = disc_facts_of(d->cpt, d->peer);

	messages_go(d, facts);
	/* An administrator may have taken all NIDs that it had. */
	if (d->peer->nnis)
		disc_event(d, disc_step(&facts));
	else
		disc_hand_over(d);
}

/* The first NI whose answer a message waits for, or NULL. */
static const struct lnet_peer_ni *awaited_ni(const struct discovery *d)
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

/* The NI that is asked next. If no NI in particular is to be asked, those that
 * were silent come last. */
static const struct lnet_peer_ni *ni_to_ask(const struct discovery *d)
{
	uint32_t skip = d->silent % d->peer->nnis;
	const struct lnet_peer_ni *p = awaited_ni(d);

	if (!p)
		p = questioned_ni(d->peer);
	if (p)
		return p;

	peer_for_each_ni (p, d->peer)
		if (skip-- == 0)
			return p;
	BUG_ON(true);
	return NULL;
}

/* Messages wait for the answer: if it is lost, that is to cost them little. A
 * peer that takes longer is given twice the time after each failure. */
static uint64_t try_timeout(const struct discovery *d)
{
	uint32_t failures = d->held_up ? 0 : d->failures;

	return MIN(TRY_MIN << MIN(failures, FAILURES_MAX),
		   settings_lnd_timeout(&d->cpt->node->settings));
}

/* Room for what the peer is known to have. */
static size_t sink_size(const struct lnet_peer *peer)
{
	size_t size =
		PING_HEADER_SIZE + ((size_t)peer->nnis + 1) * PING_LARGE_SIZE;

	return peer->nnis < SINK_NIS ? SINK_SIZE : size;
}

/* The NI that was asked whose it is has not answered. An unverified NI is asked
 * again when it is used once more, since nobody waits for its answer; a
 * disputed one as a peer of which nothing is known, since it may belong to the
 * peer that claims it. True: there was nothing else to ask. */
static bool unquestioned(struct discovery *d)
{
	struct lnet_peer_ni *p = peer_member(d->cpt, d->peer, &d->asked);

	if (!p || !provenance_is_open(p))
		return false;
	if (p->provenance.state == PEER_DISPUTED)
		d->peer->merged = false;
	provenance_unquestion(d->cpt, p);
	return d->peer->merged && !d->force_ping;
}

/* A gateway that does not answer loses health, as by a message that failed. */
static void gateway_silent(const struct discovery *d)
{
	struct lnet_peer_ni *p =
		d->cpt->routes->n ? peer_member(d->cpt, d->peer, &d->asked)
				  : NULL;

	if (p && routes_go_by(d->cpt, &p->nid, LNET_NET_ANY))
		health_lose_peer_ni(d->cpt, p);
}

/* The NI that was asked has not answered: others may. */
static void pinged_in_vain(struct discovery *d, int status)
{
	d->status = status;
	gateway_silent(d);
	if (d->told)
		d->told->unanswered = status;
	if (unquestioned(d))
		disc_event(d, DISC_ON_ANSWER);
	else if (++d->silent < d->peer->nnis)
		disc_event(d, DISC_ON_SILENT);
	else
		disc_event(d, d->told ? DISC_ON_ANSWER : DISC_ON_PING_FAILED);
}

/* Strangers name NIDs as they like, so a question that finds nobody says
 * nothing about our own NIs. To learn whose a NID is, that NID itself is asked,
 * and no other NID of the peer that has it. */
static uint8_t question_flags(const struct lnet_peer_ni *asked)
{
	return provenance_is_open(asked) ? MSG_PROBE | MSG_EXACT : MSG_PROBE;
}

static void act_ping(struct discovery *d)
{
	const struct lnet_peer_ni *p = ni_to_ask(d);
	struct ulnet_id target = { p->nid, d->pid };
	const struct ulnet_nid any = LNET_NID_ANY;
	int rc = ask_reserve(&d->ask, sink_size(d->peer));

	d->asked = target.nid;
	/* The NID may be one of this node's by now, or its net be gone. */
	if (!rc && !disc_may_ask(d->cpt, &target.nid))
		rc = -EHOSTUNREACH;
	if (!rc)
		rc = ask_get(&d->ask, &any, &target, question_flags(p),
			     try_timeout(d));
	if (rc)
		pinged_in_vain(d, rc);
}

/* Pushes by the path by which the peer has answered, or as any message goes. */
static void act_push(struct discovery *d)
{
	const struct lnet_cpt *cpt = d->cpt;
	bool way = config_ni(cpt->config, &d->ni);
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_id target = { way ? d->lpni : d->peer->primary,
					 d->pid };
	int rc;

	d->pushing = disc_cpt(cpt)->version;
	rc = ask_tell(&d->ask, way ? &d->ni : &any, &target, 0, try_timeout(d));
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
	return d->held_up ? &pauses_held_up : &pauses;
}

/* If NIDs are in use now, the peer has answered: its silence is over. */
static uint64_t pause_after_failure(struct discovery *d)
{
	bool held_up = d->status == -EBUSY;

	if (held_up != d->held_up)
		d->failures = 0;
	d->held_up = held_up;
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
	turn_over(d);
	loop_timer_arm(loop, &d->timer, loop_now(loop) + pause);
	out_await_over(&d->waiting);
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

/* ---- questions that have ended ---- */

static void session_pinged(struct discovery *d)
{
	struct announcement *told;
	int rc = d->ask.status;

	if (!rc) {
		d->ni = d->ask.ni;
		d->lpni = d->ask.lpni;
		rc = announcement_new(d->cpt, d->ask.buf, d->ask.length, &told);
	}
	if (rc) {
		pinged_in_vain(d, rc);
		return;
	}
	d->force_ping = d->again;
	d->again = false;
	d->silent = 0;
	told->source = MERGE_REPLY;
	told->from = d->lpni;
	/* The answer of another NI does not say whose this one is. */
	if (!lnet_nid_eq(&d->asked, &d->lpni))
		(void)unquestioned(d);
	keep(d, told);
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
	/* If discovery is off, the peer is told once that no more will come. */
	d->peer->told =
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
