/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/discover.h"

#include <errno.h>

#include "base/backoff.h"
#include "base/log.h"
#include "base/mutation.h"
#include "lnet/discovery/ask.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/info.h"
#include "lnet/discovery/merging.h"
#include "lnet/discovery/witness.h"
#include "lnet/message/await.h"
#include "lnet/message/msg.h"
#include "lnet/net/config.h"
#include "lnet/nid/nid.h"
#include "lnet/peer/claim.h"
#include "lnet/peer/word.h"

/* Sink of a first question: what kernel nodes use. */
#define SINK_NIS  16
#define SINK_SIZE (PING_HEADER_SIZE + SINK_NIS * PING_ENTRY_SIZE)

/* Turns begun, and peers looked at, in one turn of the loop: between two of
 * them messages go on. */
#define TURNS_SLICE 16
#define SWEEP_SLICE 256

/* After that many failures in a row a peer is left alone, until it is wanted
 * again: within some ten minutes. */
#define FAILURES_MAX 10

static const struct backoff_law pauses = {
	.policy = BACKOFF_EQUAL,
	.max = FAILURES_MAX,
	.base = NSEC_PER_SEC,
	.cap = 128 * NSEC_PER_SEC,
};

/* Somebody who asked for a discovery. */
struct asker {
	struct list link;
	ulnet_discover_fn done;
	void *arg;
};

/* Of a peer that is not PEER_UNKNOWN or PEER_DISCOVERED: until then. */
struct discovery {
	struct lnet_cpt *cpt;
	struct lnet_peer *peer;	 /* held; NULL: over, but for the question that
				 * is under way */
	struct list all;	 /* disc_cpt.all */
	struct list queued;	 /* disc_cpt.first or .others */
	bool turn;		 /* ... or it has one */
	struct list waiting;	 /* of lnet_msg.link */
	struct list askers;	 /* of asker.link */
	struct told *told;	 /* to be merged, or NULL */
	struct told *merging;	 /* PEER_MERGING: being merged; or NULL */
	struct peer_claim claim; /* for that, ... */
	bool claiming;		 /* ... while it is under way */
	struct ulnet_nid told_by; /* which NI has told what is merged */
	struct ulnet_nid asked;	 /* PEER_DISCOVERING: that NI */
	bool force_ping, force_push;
	uint32_t pid;	   /* of the process to be asked */
	uint32_t silent;   /* NIs of the peer that gave no answer this time */
	uint32_t failures; /* in a row */
	struct list lost;  /* disc_cpt.lost */
	uint32_t pushing;  /* PEER_PUSHING: that version */
	int status;	   /* of the last failure */
	struct ulnet_nid ni, lpni; /* by which the peer has answered; ANY */
	struct timer timer;	   /* PEER_FAILED */
	struct ask ask;
};

static struct disc_cpt *disc_cpt(const struct lnet_cpt *cpt)
{
	return &discovery_cpt(cpt)->disc;
}

static enum ulnet_discovery disc_mode(const struct lnet_cpt *cpt)
{
	return settings_discovery(&cpt->node->settings);
}

/* ---- what is known ---- */

/* One that is to be asked itself whose it is, or NULL. */
static struct lnet_peer_ni *doubted_ni(const struct lnet_peer *peer)
{
	const struct lnet_peer_net *pn;
	struct lnet_peer_ni *p;

	list_for_each_entry (pn, &peer->nets, link)
		list_for_each_entry (p, &pn->nis, link)
			if (word_is_doubted(p))
				return p;
	return NULL;
}

static struct disc_facts facts_of(const struct lnet_cpt *cpt,
				  const struct lnet_peer *peer)
{
	const struct discovery *d = peer->discovery;

	return (struct disc_facts){
		.mode = disc_mode(cpt),
		.told_us = d && d->told,
		.doubted = d && doubted_ni(peer),
		.calls_only = cpt->node->conf.accept == LNET_ACCEPT_NONE,
		.up_to_date = peer->merged &&
			      peer->merged_in == disc_cpt(cpt)->modes,
		.force_ping = d && d->force_ping,
		.force_push = d && d->force_push,
		.multi_rail = peer->multi_rail,
		.no_discovery = peer->no_discovery,
		.told = peer->told,
		.own = disc_cpt(cpt)->version,
	};
}

/* What this node has no net to, it has no way to ask; and it need not ask
 * itself, nor other processes that have its own NIDs. */
static bool may_be_asked(const struct lnet_cpt *cpt,
			 const struct ulnet_nid *nid)
{
	return config_has_net(cpt->config, lnet_nid_net(nid)) &&
	       !lnet_nid_is_lo(nid) && !config_is_mine(cpt->config, nid);
}

static bool is_up_to_date(const struct lnet_cpt *cpt,
			  const struct lnet_peer *peer)
{
	struct disc_facts facts = facts_of(cpt, peer);

	return disc_up_to_date(&facts);
}

/* ---- turns ---- */

/* At the end of this turn of the loop, or in the next one. */
static void disc_kick(struct disc_cpt *dc)
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

static void tell_askers(struct discovery *d, int status)
{
	while (!list_empty(&d->askers)) {
		struct asker *a = list_first(&d->askers, struct asker, link);

		list_del(&a->link);
		if (!d->cpt->node->crashed)
			a->done(a->arg, status);
		free(a);
	}
}

static void disc_free(struct discovery *d)
{
	list_del(&d->all);
	told_free(d->told);
	told_free(d->merging);
	ask_fini(&d->ask);
	free(d);
}

/* Whoever waits goes on; nothing is left of it but what the LND has. */
static void disc_over(struct discovery *d, int status)
{
	struct lnet_cpt *cpt = d->cpt;
	struct lnet_peer *peer = d->peer;
	struct lnet_peer_ni *p;

	turn_over(d);
	while ((p = doubted_ni(peer)))
		word_undoubted(cpt, p);
	list_del(&d->queued);
	if (timer_armed(&d->timer))
		loop_timer_cancel(cpt->loop, &d->timer);
	d->peer = NULL;
	peer->discovery = NULL;
	peer_drop(cpt, peer);
	await_over(&d->waiting);
	tell_askers(d, status);
	if (!ask_is_under_way(&d->ask) && !d->claiming)
		disc_free(d);
}

/* ---- actions of the table ---- */

static void disc_event(struct discovery *d, enum disc_event ev);
static struct discovery *disc_get(struct lnet_cpt *cpt, struct lnet_peer *peer);

static void act_ignore(struct discovery *d)
{
	(void)d;
}

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

/* What is merged next, of what waits for that and @told. Either may have been
 * overtaken on its way by the other, for instance a push by the reply to a
 * ping: the peer is asked then which of them is so. */
static void keep_told(struct discovery *d, struct told *told)
{
	enum told_order order = d->told ? told_order(d->told, told)
					: TOLD_LATER;

	if (order != TOLD_LATER && disc_mode(d->cpt) != LNET_DISCOVERY_OFF)
		d->force_ping = true;
	if (order == TOLD_PERHAPS_EARLIER) {
		told_free(told);
		return;
	}
	told_free(d->told);
	d->told = told;
}

/* What has come to a peer is that of another one, or nobody's here (NULL). */
static void pass_on(struct lnet_cpt *cpt, struct told *told,
		    struct lnet_peer *of)
{
	struct discovery *its = of ? disc_get(cpt, of) : NULL;

	if (!its) {
		told_free(told);
		return;
	}
	keep_told(its, told);
	disc_event(its, DISC_ON_NEWS);
}

/* Who has the NID now from which something came, that was acknowledged but not
 * merged, is asked: what came may be older than what is known of the peer, of
 * whatever number. */
static void ask_heir(struct discovery *d)
{
	const struct lnet_peer_ni *p =
		d->told ? peer_find(d->cpt, &d->told->from) : NULL;
	struct discovery *heir = p && p->place.state == PEER_HERE
					 ? disc_get(d->cpt, p->peer)
					 : NULL;

	if (!heir || MUTATE(unit_word_lost))
		return;
	heir->force_ping = disc_mode(d->cpt) != LNET_DISCOVERY_OFF;
	disc_event(heir, DISC_ON_NEWS);
}

/* Messages of a peer that is no more wait for the one that has its NIDs. */
static void hand_over(struct discovery *d)
{
	struct lnet_msg *msg;

	list_for_each_entry (msg, &d->waiting, link)
		msg->flags &= (uint8_t)~MSG_AWAITED;
	ask_heir(d);
	d->status = 0;
	disc_event(d, DISC_ON_OVER);
}

static void act_look(struct discovery *d)
{
	struct disc_facts facts = facts_of(d->cpt, d->peer);

	/* An administrator may have taken all NIDs that it had. */
	if (d->peer->nnis)
		disc_event(d, disc_step(&facts));
	else
		hand_over(d);
}

/* The NI that is asked next. Of those that are as good, those that were silent
 * come last. */
static const struct lnet_peer_ni *ni_to_ask(const struct discovery *d)
{
	uint32_t skip = d->silent % d->peer->nnis;
	const struct lnet_peer_ni *p = doubted_ni(d->peer);
	const struct lnet_peer_net *pn;

	if (p)
		return p;

	list_for_each_entry (pn, &d->peer->nets, link)
		list_for_each_entry (p, &pn->nis, link)
			if (skip-- == 0)
				return p;
	BUG_ON(true);
	return NULL;
}

static struct ulnet_id disc_target(const struct discovery *d,
				   const struct ulnet_nid *nid)
{
	return (struct ulnet_id){ *nid, d->pid };
}

static uint64_t try_timeout(const struct discovery *d)
{
	return settings_lnd_timeout(&d->cpt->node->settings);
}

/* Room for what the peer is known to have. */
static size_t sink_size(const struct lnet_peer *peer)
{
	size_t size =
		PING_HEADER_SIZE + ((size_t)peer->nnis + 1) * PING_LARGE_SIZE;

	return peer->nnis < SINK_NIS ? SINK_SIZE : size;
}

/* Who was asked whose it is does not say. It is asked again when it is used, or
 * claimed, once more. Was that all the question was for? */
static bool undoubted(struct discovery *d)
{
	struct lnet_peer_ni *p = peer_find(d->cpt, &d->asked);

	if (!p || p->peer != d->peer || !word_is_doubted(p))
		return false;
	word_undoubted(d->cpt, p);
	return d->peer->merged && !d->force_ping;
}

/* The NI that was asked has not answered: others may. */
static void pinged_in_vain(struct discovery *d, int status)
{
	d->status = status;
	if (undoubted(d))
		disc_event(d, DISC_ON_ANSWER);
	else if (++d->silent < d->peer->nnis)
		disc_event(d, DISC_ON_SILENT);
	else
		disc_event(d, d->told ? DISC_ON_ANSWER : DISC_ON_PING_FAILED);
}

static void act_ping(struct discovery *d)
{
	struct ulnet_id target = disc_target(d, &ni_to_ask(d)->nid);
	const struct ulnet_nid any = LNET_NID_ANY;
	int rc = ask_reserve(&d->ask, sink_size(d->peer));

	d->asked = target.nid;
	/* The NID may have become one of this node's, or its net is gone. */
	if (!rc && !may_be_asked(d->cpt, &target.nid))
		rc = -EHOSTUNREACH;
	if (!rc)
		rc = ask_get(&d->ask, &any, &target, try_timeout(d));
	if (rc)
		pinged_in_vain(d, rc);
}

/* @from has lost NIDs to a peer that is being merged, to the end of which it is
 * put off to look at @from. */
static void disc_lost(struct lnet_peer *from)
{
	struct discovery *d = from->discovery;

	if (!d)
		return;
	list_del(&d->lost);
	list_add_tail(&disc_cpt(d->cpt)->lost, &d->lost);
}

static void look_at_lost(struct disc_cpt *dc)
{
	while (!list_empty(&dc->lost)) {
		struct discovery *d =
			list_first(&dc->lost, struct discovery, lost);

		list_del(&d->lost);
		if (d->peer->nnis)
			disc_event(d, DISC_ON_NEWS);
		else
			hand_over(d);
	}
}

/* 0, or why what was told is of no use. */
static int merged(struct discovery *d, const struct told_result *result)
{
	switch (result->verdict) {
	case MERGE_ASK:
		/* Who has been given the room that he needs, and does not use
		 * it, would be asked for ever. */
		if (result->ask && result->ask <= d->ask.size)
			return -EPROTO;
		d->force_ping = true;
		return ask_reserve(&d->ask, result->ask);
	case MERGE_DROP:
		return d->peer->merged ? 0 : -EPROTO;
	case MERGE_REFUSE:
		cpt_stat(d->cpt, STAT_discoveries_refused);
		return 0;
	case MERGE_NONE:
	case MERGE_APPLY:
		break;
	}
	return 0;
}

static void disc_claimed(struct peer_claim *claim, int rc);

/* What one claim has led to: 0, or why nothing can be merged. */
static int claim_over(struct discovery *d, int rc)
{
	struct told *told = d->merging;
	struct lnet_peer_ni *p = peer_find(d->cpt, &d->claim.nid);

	switch (rc) {
	case 0:
		if (p && p->peer == d->peer)
			word_hearsay(d->cpt, p, &d->told_by);
		return 0;
	case -EBUSY:
	case -EAGAIN:
		told->kept++;
		told->keeps[told->claimed - 1] = true;
		return 0;
	case -EPERM:
		told->keeps[told->claimed - 1] = true;
		return 0;
	case -EEXIST:
		return 0;
	default:
		return rc;
	}
}

/* NIDs that other CPTs own are claimed, one after the other. -EINPROGRESS:
 * disc_claimed() goes on. */
static int claim_all(struct discovery *d)
{
	struct told_nid nid;
	int rc;

	while ((rc = told_foreign(d->cpt, d->peer, d->merging, &nid)) > 0) {
		d->claim.done = disc_claimed;
		d->claim.nid = nid.nid;
		d->claim.by = nid.agreed ? LNET_NID_ANY : nid.by;
		d->told_by = nid.by;
		rc = peer_claim(d->cpt, d->peer, &nid.nid, &d->claim);
		if (rc == -EINPROGRESS) {
			d->claiming = true;
			peer_hold(d->peer);
			return rc;
		}
		rc = claim_over(d, rc);
		if (rc)
			return rc;
	}
	return rc;
}

/* NIDs that are in use elsewhere may be had later: it is asked again. */
static int merge_told(struct discovery *d)
{
	struct told_result result;
	int rc = told_merge(d->cpt, d->peer, d->merging, disc_lost, &result);

	if (!rc)
		rc = merged(d, &result);
	if (!rc && d->merging->kept) {
		d->peer->merged = false;
		rc = -EBUSY;
	}
	return rc;
}

static void merge_go_on(struct discovery *d, int rc)
{
	struct disc_cpt *dc = disc_cpt(d->cpt);

	if (!rc)
		rc = claim_all(d);
	if (rc == -EINPROGRESS)
		return;
	if (!rc && d->peer->nnis)
		rc = merge_told(d);
	told_free(d->merging);
	d->merging = NULL;
	d->status = rc;
	look_at_lost(dc);
	disc_event(d, rc ? DISC_ON_MERGE_FAILED : DISC_ON_MERGED);
}

static void disc_claimed(struct peer_claim *claim, int rc)
{
	struct discovery *d = container_of(claim, struct discovery, claim);
	struct lnet_cpt *cpt = d->cpt;

	d->claiming = false;
	peer_drop(cpt, claim->peer);
	if (d->peer) {
		merge_go_on(d, claim_over(d, rc));
		return;
	}
	disc_free(d);
	cpt_ended_one(cpt);
}

static void act_merge(struct discovery *d)
{
	bool answer = d->told->source == MERGE_REPLY;
	struct told *told = d->told;
	uint32_t nnis = d->peer->nnis;
	struct lnet_peer *of;
	int rc = witness_hear(d->cpt, d->peer, told, &of);

	d->told = NULL;
	if (rc || of == d->peer) {
		d->merging = told;
		merge_go_on(d, rc);
		return;
	}
	pass_on(d->cpt, told, of);
	/* Who answers for another one, and stays what it is, would be asked
	 * again at once. */
	d->status = -EPROTO;
	disc_event(d, answer && d->peer->nnis == nnis ? DISC_ON_MERGE_FAILED
						      : DISC_ON_MERGED);
}

/* By the way by which it has answered; else as any message. */
static int push_begin(struct discovery *d)
{
	const struct lnet_cpt *cpt = d->cpt;
	const struct lnet_config *config = cpt->config;
	size_t size = ping_info_encode(cpt->node, config, NULL, 0);
	struct ulnet_nid self = d->ni;
	struct ulnet_id target;
	int rc = ask_reserve(&d->ask, size);

	if (rc)
		return rc;
	ping_info_encode(cpt->node, config, d->ask.buf, size);
	d->pushing = disc_cpt(cpt)->version;
	if (!config_ni(config, &self))
		self = LNET_NID_ANY;
	target = disc_target(d, lnet_nid_is_any(&self) ? &d->peer->primary
						       : &d->lpni);
	return ask_put(&d->ask, &self, &target, size, try_timeout(d));
}

static void act_push(struct discovery *d)
{
	int rc = push_begin(d);

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

static void act_pause(struct discovery *d)
{
	struct loop *loop = d->cpt->loop;
	uint64_t pause =
		backoff_pause(&pauses, ++d->failures, loop_random(loop));

	d->peer->settled = true;
	d->silent = 0;
	d->ni = LNET_NID_ANY;
	cpt_stat(d->cpt, STAT_discoveries_failed);
	turn_over(d);
	loop_timer_arm(loop, &d->timer, loop_now(loop) + pause);
	await_over(&d->waiting);
	tell_askers(d, d->status);
}

static void act_forget(struct discovery *d)
{
	d->peer->settled = false;
	d->peer->merged = false;
	cpt_topology_changed(d->cpt);
	disc_over(d, d->status);
}

static void disc_event(struct discovery *d, enum disc_event ev)
{
	static void (*const acts[DISC_ACTIONS])(struct discovery *) = {
		[DISC_IGNORE] = act_ignore, [DISC_ENQUEUE] = act_enqueue,
		[DISC_LOOK] = act_look,	    [DISC_PING] = act_ping,
		[DISC_MERGE] = act_merge,   [DISC_PUSH] = act_push,
		[DISC_END] = act_end,	    [DISC_PAUSE] = act_pause,
		[DISC_FORGET] = act_forget,
	};

	acts[disc_move(&d->peer->fsm, ev)](d);
}

/* ---- questions that have ended ---- */

static void pinged(struct discovery *d)
{
	struct told *told = NULL;
	int rc = d->ask.status;

	if (!rc) {
		d->ni = d->ask.ni;
		d->lpni = d->ask.lpni;
		rc = told_new(d->cpt, d->ask.buf, d->ask.length, &told);
	}
	if (!rc) {
		d->force_ping = false;
		d->silent = 0;
		told->source = MERGE_REPLY;
		told->from = d->lpni;
		keep_told(d, told);
		disc_event(d, DISC_ON_ANSWER);
		return;
	}
	pinged_in_vain(d, rc);
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
	/* Off: it is told once that there is nothing more to come. */
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
		pinged(d);
	else
		pushed(d);
}

/* ---- the beginning ---- */

static void disc_pause_over(struct timer *t)
{
	struct discovery *d = container_of(t, struct discovery, timer);

	disc_event(d, d->failures < FAILURES_MAX ? DISC_ON_PAUSE_OVER
						 : DISC_ON_GIVE_UP);
}

/* The discovery of @peer; NULL: no memory, or the CPT closes. */
static struct discovery *disc_get(struct lnet_cpt *cpt, struct lnet_peer *peer)
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

/* Nobody discovers processes that only call: others of the same host have the
 * same NIDs, and there is nobody to answer. */
static bool is_caller(uint32_t pid)
{
	return pid & LNET_PID_USERFLAG;
}

/* Messages to a peer wait if nobody has ever tried to discover it; those to a
 * NID that is hearsay, until it has been asked. */
static bool disc_for(struct lnet_msg *msg, struct lnet_peer_ni *p)
{
	struct lnet_peer *peer = p->peer;
	bool hearsay = word_is_hearsay(p);
	struct discovery *d;
	bool waits;

	if (!hearsay && peer->settled && is_up_to_date(msg->cpt, peer))
		return false;
	d = disc_get(msg->cpt, peer);
	if (!d)
		return false;
	if (!peer->merged && peer->fsm.state == PEER_UNKNOWN)
		d->pid = msg->hdr.dest_pid;
	if (hearsay)
		word_doubted(msg->cpt, p);
	waits = (hearsay || !peer->settled) && peer->fsm.state != PEER_FAILED;
	if (waits)
		msg_await(msg, &d->waiting);
	disc_event(d, DISC_ON_WANTED);
	return waits;
}

/* msg_discovery.waits */
static bool disc_waits(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct lnet_peer_ni *p;
	bool waits;

	if (is_caller(msg->hdr.dest_pid) || !may_be_asked(cpt, &msg->target))
		return false;
	p = peer_get(cpt, &msg->target);
	if (!p)
		return false;
	p->used = true;
	waits = disc_for(msg, p);
	peer_unref(cpt, p);
	return waits;
}

/* peer_cpt.doubt */
static void disc_doubt(struct lnet_cpt *cpt, struct lnet_peer_ni *p)
{
	struct discovery *d;

	if (disc_mode(cpt) != LNET_DISCOVERY_ON || p->peer->configured ||
	    p->place.state != PEER_HERE || !may_be_asked(cpt, &p->nid))
		return;
	d = disc_get(cpt, p->peer);
	if (!d)
		return;
	word_doubted(cpt, p);
	disc_event(d, DISC_ON_WANTED);
}

static const struct msg_discovery messages = { disc_waits };

/* ---- lnet_discover() ---- */

struct discover_call {
	struct lnet_cpt *cpt;
	struct ulnet_nid nid;
	unsigned int flags;
	ulnet_discover_fn done;
	void *arg;
};

static int discover_peer(struct discover_call *c, struct lnet_peer *peer)
{
	struct discovery *d = disc_get(c->cpt, peer);
	struct asker *a = malloc(sizeof(*a));

	if (!d || !a) {
		free(a);
		return -ENOMEM;
	}
	*a = (struct asker){ .done = c->done, .arg = c->arg };
	list_add_tail(&d->askers, &a->link);
	if (c->flags & LNET_DISCOVER_FORCE)
		d->force_ping = d->force_push = true;
	if (!peer->merged)
		d->force_ping = true;
	disc_event(d, DISC_ON_NEWS);
	return 0;
}

static int discover_begin(void *arg)
{
	struct discover_call *c = arg;
	struct lnet_cpt *cpt = c->cpt;
	struct lnet_peer_ni *p;
	int rc;

	if (cpt->closing)
		return -ESHUTDOWN;
	if (node_cpt_of(cpt->node, &c->nid) != cpt->index)
		return -EAGAIN;
	if (lnet_nid_is_lo(&c->nid) || config_is_mine(cpt->config, &c->nid))
		return -EINVAL;
	if (!may_be_asked(cpt, &c->nid))
		return -EHOSTUNREACH;
	p = peer_get(cpt, &c->nid);
	if (!p)
		return -ENOBUFS;
	rc = discover_peer(c, p->peer);
	peer_unref(cpt, p);
	return rc;
}

int lnet_discover(struct lnet *node, const struct ulnet_nid *nid,
		  unsigned int flags, ulnet_discover_fn done, void *arg)
{
	struct discover_call c = {
		.nid = *nid, .flags = flags, .done = done, .arg = arg
	};
	int rc;

	if (!done || lnet_nid_is_any(nid) || flags & ~LNET_DISCOVER_FORCE)
		return -EINVAL;
	/* The peer may move while the call does. */
	do {
		c.cpt = node->cpt[node_cpt_of(node, nid)];
		rc = loop_call(c.cpt->loop, discover_begin, &c);
	} while (rc == -EAGAIN);
	return rc;
}

/* ---- pushes of peers ---- */

void disc_pushed(struct lnet_cpt *cpt, const struct disc_push *push)
{
	struct lnet_peer_ni *p = peer_find(cpt, &push->from);
	struct discovery *d;
	struct told *told;
	int rc = told_new(cpt, push->bytes, push->length, &told);

	cpt_stat(cpt,
		 rc == -EPROTO || rc == -E2BIG ? STAT_pushes_bad : STAT_pushes);
	d = p && !is_caller(push->pid) && may_be_asked(cpt, &p->nid)
		    ? disc_get(cpt, p->peer)
		    : NULL;
	if (!d) {
		told_free(told);
		return;
	}
	/* The process that spoke last is the one that is answered. */
	d->pid = push->pid;
	if (rc) {
		/* It wants to tell something; perhaps it can be asked. But not
		 * sooner than if it had said nothing. */
		d->force_ping = disc_mode(cpt) != LNET_DISCOVERY_OFF;
		disc_event(d, DISC_ON_WANTED);
		return;
	}
	told->source = MERGE_PUSH;
	told->from = push->from;
	keep_told(d, told);
	disc_event(d, DISC_ON_NEWS);
}

/* ---- news of this node ---- */

static void sweep_look(struct lnet_cpt *cpt, struct lnet_peer_ni *p)
{
	struct lnet_peer *peer = p->peer;
	struct disc_facts facts = facts_of(cpt, peer);
	struct discovery *d;

	if (!lnet_nid_eq(&p->nid, &peer->primary) || !peer->settled ||
	    !disc_needs_push(&facts))
		return;
	d = disc_get(cpt, peer);
	if (d)
		disc_event(d, DISC_ON_WANTED);
}

/* A part of the peers; the rest when there are turns again for them. */
static void sweep(struct disc_cpt *dc)
{
	struct hash *peers = &peer_cpt(dc->cpt)->peers;
	struct hash_node *n = NULL;
	unsigned int seen = 0;

	if (dc->mask != peers->mask) {
		dc->mask = peers->mask;
		dc->bucket = 0;
	}
	do {
		n = hash_walk(peers, &dc->bucket, n);
		if (n)
			sweep_look(dc->cpt,
				   container_of(n, struct lnet_peer_ni, hash));
	} while (n && (++seen < SWEEP_SLICE || n->next));
	dc->sweeping = n != NULL;
}

void disc_news(struct lnet_cpt *cpt, uint32_t version)
{
	struct disc_cpt *dc = disc_cpt(cpt);

	if (dc->version == version)
		return;
	dc->version = version;
	dc->sweeping = true;
	dc->bucket = 0;
	disc_kick(dc);
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
	while (n < TURNS_SLICE && (d = disc_next(dc))) {
		n++;
		d->turn = true;
		dc->turns++;
		act_look(d);
	}
	if (dc->sweeping && list_empty(&dc->first) && list_empty(&dc->others))
		sweep(dc);
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
	dc->modes += !MUTATE(unit_modes_alike);
	if (on == peer_cpt(cpt)->discovery)
		return;
	msg_cpt(cpt)->discovery = on ? &messages : NULL;
	peer_cpt(cpt)->discovery = on;
	cpt_topology_changed(cpt);
	if (on)
		return;
	list_for_each_entry (d, &dc->all, all)
		await_over(&d->waiting);
}

void disc_init(struct lnet_cpt *cpt)
{
	struct disc_cpt *dc = disc_cpt(cpt);

	peer_cpt(cpt)->doubt = disc_doubt;
	dc->cpt = cpt;
	dc->version = 1;
	dc->mask = UINT32_MAX;
	dc->work.fn = disc_work;
	list_init(&dc->all);
	list_init(&dc->first);
	list_init(&dc->others);
	list_init(&dc->lost);
}

void disc_stop(struct lnet_cpt *cpt)
{
	struct disc_cpt *dc = disc_cpt(cpt);
	struct discovery *d, *next;

	dc->sweeping = false;
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
