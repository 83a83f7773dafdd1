/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/recovery.h"

#include <stdlib.h>

#include "base/log.h"
#include "lnet/discovery/ask.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/target.h"
#include "lnet/message/out.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"
#include "lnet/route/route.h"

#define PING_SIZE 272 /* what kernel nodes ask for */
#define FIRST	  (100 * NSEC_PER_MSEC)
/* How long an answer is waited for, and until where the interval doubles. */
#define ANSWER_WITHIN NSEC_PER_SEC
/* Later, the interval is this part of the outage. */
#define INTERVAL_PART 32
#define ANSWERED      (20 * NSEC_PER_MSEC)
/* A router that hears nobody on one side drops what others send through it, so
 * the first pings wait less long. An answer that comes later is heard, too. */
#define DEAF_AFTER  2 /* pings without an answer, and nobody was heard */
#define DEAF_WITHIN (150 * NSEC_PER_MSEC)

struct recovery {
	struct list link; /* discovery_cpt.ill */
	struct lnet_cpt *cpt;
	bool local; /* of this node, else of a peer */
	struct ulnet_nid nid;
	struct peer_recovery pings;
	struct timer timer;    /* armed unless a ping is under way, or @away */
	uint64_t since;	       /* ns: it is ill */
	uint64_t heard;	       /* ns: last sign of life; or since */
	uint64_t began;	       /* ns: the last ping */
	uint64_t silent_since; /* ns: began the first that was not answered */
	uint64_t interval;     /* ns: from one ping to the next */
	struct ask ask;
	/* Of a local one: CPTs look for somebody to ask, one after the other.
	 * While @away is set, what stands below is with the CPT that looks. */
	bool away;
	struct work work;
	unsigned int turn;	/* its remainder says which CPT looks next */
	unsigned int looked;	/* CPTs, for this ping */
	struct ulnet_nid found; /* ANY: nobody */
};

/* ---- who is ill ---- */

static struct lnet_ni *ni_of_mine(const struct recovery *r)
{
	struct lnet_ni *ni = config_ni(r->cpt->config, &r->nid);

	return ni && atomic_load(&ni->recovering) ? ni : NULL;
}

static struct lnet_peer_ni *ni_of_peer(const struct recovery *r)
{
	struct lnet_peer_ni *lpni = peer_find(r->cpt, &r->nid);

	return lpni && lpni->recovery == &r->pings ? lpni : NULL;
}

/* An alias is not pinged here: its answers may come in on the CPT that owns the
 * NID, where they gain nothing for this one; and that CPT pings, too. */
static bool peer_ni_is_ill(const struct lnet_peer_ni *lpni)
{
	return lpni->health < LNET_HEALTH_MAX && lpni->place.state == PEER_HERE;
}

static bool is_given_up(const struct recovery *r)
{
	uint64_t limit = settings_recovery_limit(&r->cpt->node->settings);

	return limit && loop_now(r->cpt->loop) - r->since >= limit;
}

/* Is it still there, and still ill? */
static bool is_ill(const struct recovery *r)
{
	const struct lnet_peer_ni *lpni;
	const struct lnet_ni *ni;

	if (is_given_up(r))
		return false;
	if (r->local) {
		ni = ni_of_mine(r);
		return ni && ni_health(ni) < LNET_HEALTH_MAX;
	}
	lpni = ni_of_peer(r);
	return lpni && peer_ni_is_ill(lpni);
}

/* The neighbours of a router cannot see that its interface on the other side is
 * deaf: the router takes what they send, and drops it. So they are told. Nodes
 * that do not route have nobody to tell. */
static void ni_set_deaf(struct lnet_ni *ni, bool deaf)
{
	if (deaf && !atomic_load(&ni->node->routing))
		return;
	if (atomic_exchange(&ni->deaf, deaf) != deaf)
		targets_changed(ni->node);
}

static void recovery_free(struct recovery *r)
{
	bool known = !r->cpt->closing;
	struct lnet_ni *ni = known && r->local ? ni_of_mine(r) : NULL;
	struct lnet_peer_ni *lpni = known && !r->local ? ni_of_peer(r) : NULL;

	if (ni) {
		ni_set_deaf(ni, false);
		atomic_store(&ni->recovering, false);
		atomic_store(&ni->recovery_silent, 0);
		atomic_store(&ni->recovery_next, 0);
	}
	if (lpni)
		lpni->recovery = NULL;
	ask_fini(&r->ask);
	list_del(&r->link);
	free(r);
}

/* ---- one ping ---- */

/* Notes in the NI how its pings go, for those who look at it. */
static void recovery_note(const struct recovery *r)
{
	struct lnet_ni *ni = r->local ? ni_of_mine(r) : NULL;

	if (!ni)
		return;
	atomic_store(&ni->recovery_silent, r->pings.silent);
	atomic_store(&ni->recovery_next, r->pings.next);
}

static void recovery_wait(struct recovery *r, uint64_t ns)
{
	r->pings.next = loop_now(r->cpt->loop) + ns;
	loop_timer_arm(r->cpt->loop, &r->timer, r->pings.next);
	recovery_note(r);
}

/* The longer the outage, the longer the interval. */
static void recovery_not_heard(struct recovery *r)
{
	uint64_t max = settings_recovery_max(&r->cpt->node->settings);
	uint64_t part = (loop_now(r->cpt->loop) - r->heard) / INTERVAL_PART;

	if (!r->pings.silent++)
		r->silent_since = r->began;
	r->interval = MIN(2 * r->interval, ANSWER_WITHIN);
	r->interval = MIN(MAX(r->interval, part), max);
}

static void recovery_heard(struct recovery *r)
{
	r->heard = loop_now(r->cpt->loop);
	r->pings.silent = 0;
	r->interval = FIRST;
}

static bool is_deaf(const struct recovery *r, const struct lnet_ni *ni)
{
	uint64_t ns = loop_now(r->cpt->loop) - r->silent_since;

	return r->pings.silent >= DEAF_AFTER &&
	       !health_ni_hears(r->cpt, ni, ns);
}

/* A ping has ended. */
static void recovery_go_on(struct recovery *r, bool answered)
{
	uint64_t took = loop_now(r->cpt->loop) - r->began;
	struct lnet_ni *ni;

	if (r->cpt->closing || !is_ill(r)) {
		recovery_free(r);
		return;
	}
	if (answered) {
		recovery_heard(r);
		recovery_wait(r, ANSWERED);
		return;
	}
	recovery_not_heard(r);
	ni = r->local ? ni_of_mine(r) : NULL;
	if (ni && is_deaf(r, ni))
		ni_set_deaf(ni, true);
	recovery_wait(r, r->interval - MIN(took, r->interval));
}

static void recovery_asked(struct ask *ask)
{
	recovery_go_on(container_of(ask, struct recovery, ask), !ask->status);
}

static uint64_t answer_within(const struct recovery *r)
{
	bool quick = r->local && r->pings.silent < DEAF_AFTER &&
		     atomic_load(&r->cpt->node->routing);

	return quick ? DEAF_WITHIN : ANSWER_WITHIN;
}

/* On error the next one is tried as if this one had not been answered. */
static void recovery_ping(struct recovery *r, const struct ulnet_nid *from,
			  const struct ulnet_nid *to)
{
	const struct ulnet_id target = { *to, LNET_PID_LUSTRE };

	r->began = loop_now(r->cpt->loop);
	r->pings.next = 0;
	recovery_note(r);
	/* One try only; a ping without an answer costs nobody any health. */
	if (ask_get(&r->ask, from, &target, MSG_ONCE | MSG_EXACT | MSG_PROBE,
		    answer_within(r)))
		recovery_wait(r, r->interval);
}

/* ---- who is asked ---- */

/* Silence of a NID that may not exist proves nothing. */
static bool is_known(const struct lnet_peer_ni *lpni)
{
	struct ulnet_counts counts = { 0 };

	if (lpni->peer->multi_rail)
		return true;
	traffic_sum(&lpni->traffic.recv, &counts);
	return counts_total(&counts) != 0;
}

/* Can @lpni tell, by its answer, whether @ni works? */
static bool can_tell(const struct lnet_cpt *cpt,
		     const struct lnet_peer_ni *lpni, const struct lnet_ni *ni)
{
	return lpni->place.state == PEER_HERE && lpni->credits_max &&
	       nid_segment(&lpni->nid) == ni_segment(ni) && is_known(lpni) &&
	       !config_is_mine(cpt->config, &lpni->nid);
}

/* Counts the peers of @cpt that can tell, up to number @n, from 0 on, whose NID
 * becomes *@nid. */
static unsigned int count_peers(const struct lnet_cpt *cpt,
				const struct lnet_ni *ni, unsigned int n,
				struct ulnet_nid *nid)
{
	const struct hash *peers = &peer_cpt(cpt)->peers;
	struct hash_node *node = NULL;
	unsigned int counted = 0;
	uint32_t bucket = 0;

	while (counted <= n && (node = hash_walk(peers, &bucket, node))) {
		const struct lnet_peer_ni *lpni =
			container_of(node, struct lnet_peer_ni, hash);

		if (can_tell(cpt, lpni, ni) && counted++ == n)
			*nid = lpni->nid;
	}
	return counted;
}

/* Number @n of the peers of @cpt on the net of @r's NI, counted in a circle, so
 * that all have their turn while the table stays what it is. */
static void look_on(const struct lnet_cpt *cpt, struct recovery *r,
		    unsigned int n)
{
	const struct lnet_ni *ni = config_ni(cpt->config, &r->nid);
	unsigned int all;

	if (cpt->closing || !ni)
		return;
	all = count_peers(cpt, ni, n, &r->found);
	if (all && all <= n)
		count_peers(cpt, ni, n % all, &r->found);
}

static void recovery_found(struct work *w)
{
	struct recovery *r = container_of(w, struct recovery, work);
	struct lnet_cpt *cpt = r->cpt;

	r->away = false;
	if (cpt->closing || !is_ill(r)) {
		recovery_free(r);
		cpt_ended_one(cpt);
	} else if (lnet_nid_is_any(&r->found)) {
		health_gain_ni(cpt, ni_of_mine(r));
		recovery_go_on(r, true);
	} else {
		recovery_ping(r, &r->nid, &r->found);
	}
}

/* Looks for somebody to ask, on the CPT whose turn it is; if that CPT knows
 * nobody, the next one looks. Then @r goes on, on its own CPT. */
static void recovery_look(struct work *w)
{
	struct recovery *r = container_of(w, struct recovery, work);
	const struct lnet *node = r->cpt->node;
	struct lnet_cpt *cpt;

	for (;;) {
		cpt = node->cpt[r->turn % node->cpts];
		if (!loop_is_owner(cpt->loop))
			break;
		look_on(cpt, r, r->turn / node->cpts);
		r->turn++;
		if (++r->looked == node->cpts || !lnet_nid_is_any(&r->found)) {
			w->fn = recovery_found;
			cpt = r->cpt;
			break;
		}
	}
	if (loop_is_owner(cpt->loop))
		w->fn(w);
	else
		loop_post(cpt->loop, w);
}

/* The peers of all CPTs have their turn, since those of one CPT may all be the
 * interfaces of one dead host. */
static void ping_from(struct recovery *r)
{
	r->found = LNET_NID_ANY;
	r->looked = 0;
	r->away = true;
	r->work.fn = recovery_look;
	recovery_look(&r->work);
}

static void ping_to(struct recovery *r)
{
	const struct ulnet_nid any = LNET_NID_ANY;

	recovery_ping(r, &any, &r->nid);
}

static void recovery_due(struct timer *t)
{
	struct recovery *r = container_of(t, struct recovery, timer);
	struct lnet_ni *ni;

	if (!is_ill(r)) {
		recovery_free(r);
		return;
	}
	if (!r->local) {
		ping_to(r);
		return;
	}
	ni = ni_of_mine(r);
	if (ni_is_up(ni))
		ping_from(r);
	else
		recovery_wait(r, r->interval);
}

/* ---- falling ill ---- */

/* NULL: no memory; the next failure tries again. */
static struct recovery *recovery_new(struct lnet_cpt *cpt, bool local,
				     const struct ulnet_nid *nid)
{
	struct recovery *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	ask_init(&r->ask, cpt, recovery_asked);
	if (ask_reserve(&r->ask, PING_SIZE)) {
		free(r);
		return NULL;
	}
	r->cpt = cpt;
	r->local = local;
	r->nid = *nid;
	r->turn = cpt->index;
	r->since = loop_now(cpt->loop);
	recovery_heard(r);
	timer_init(&r->timer, recovery_due);
	list_add_tail(&discovery_cpt(cpt)->ill, &r->link);
	recovery_wait(r, FIRST);
	return r;
}

/* 0@lo and one more NI are no choice. */
static void ni_ill(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	if (cpt->closing || cpt->config->nnis <= 2 ||
	    atomic_exchange(&ni->recovering, true))
		return;
	if (!recovery_new(cpt, true, &ni->lnd.nid))
		atomic_store(&ni->recovering, false);
}

/* Does the health of @lpni decide anything? Not if it is the only NI of its
 * peer, unless there are other gateways; and not if it is behind gateways, by
 * which pings would fail as well. */
static bool health_matters(const struct lnet_cpt *cpt,
			   const struct lnet_peer_ni *lpni)
{
	if (!config_net(cpt->config, lpni->net->segment))
		return false;
	return (lpni->peer->multi_rail && lpni->peer->nnis > 1) ||
	       routes_go_by(cpt, &lpni->nid, LNET_NET_ANY);
}

static void peer_ni_ill(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct recovery *r;

	if (cpt->closing || lpni->recovery || !health_matters(cpt, lpni))
		return;
	r = recovery_new(cpt, false, &lpni->nid);
	lpni->recovery = r ? &r->pings : NULL;
}

/* Its pings go on until it is well. What it has heard may be a ping, whose
 * answer is to say so; without memory, CPTs say so as soon as there is some. */
static void ni_hears(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	if (likely(!atomic_load_explicit(&ni->deaf, memory_order_relaxed)))
		return;
	ni_set_deaf(ni, false);
	if (!cpt->closing && targets_refresh(cpt))
		log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "ping",
				 "no memory: pings are answered with an older "
				 "state");
}

/* A message has come from @lpni: no long wait for its next ping any more. */
static void peer_ni_heard(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct recovery *r;

	if (lpni->health == LNET_HEALTH_MAX)
		disc_gateway_suspect(cpt, &lpni->nid);
	if (!lpni->recovery)
		return;
	r = container_of(lpni->recovery, struct recovery, pings);
	if (r->interval > FIRST && !ask_is_under_way(&r->ask))
		recovery_wait(r, FIRST);
	recovery_heard(r);
}

void recovery_of_nis(struct lnet_cpt *cpt)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++) {
		struct lnet_ni *ni = cpt->config->ni[i];

		if (ni_health(ni) < LNET_HEALTH_MAX)
			ni_ill(cpt, ni);
	}
}

void recovery_of_peer(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		if (lpni->health < LNET_HEALTH_MAX)
			peer_ni_ill(cpt, lpni);
}

static const struct health_watch watch = {
	.ni_ill = ni_ill,
	.peer_ni_ill = peer_ni_ill,
	.ni_hears = ni_hears,
	.peer_ni_heard = peer_ni_heard,
};

void recovery_init(struct lnet_cpt *cpt)
{
	list_init(&discovery_cpt(cpt)->ill);
	path_cpt(cpt)->watch = &watch;
	peer_cpt(cpt)->came = recovery_of_peer;
}

/* A record whose ping is under way ends with the ping, and one that is with
 * another CPT when it is back. */
void recovery_stop(struct lnet_cpt *cpt)
{
	struct recovery *r, *next;

	list_for_each_entry_safe (r, next, &discovery_cpt(cpt)->ill, link) {
		if (r->away || ask_is_under_way(&r->ask))
			continue;
		loop_timer_cancel(cpt->loop, &r->timer);
		recovery_free(r);
	}
}

bool recovery_is_idle(const struct lnet_cpt *cpt)
{
	const struct recovery *r;

	list_for_each_entry (r, &discovery_cpt(cpt)->ill, link)
		if (r->away)
			return false;
	return true;
}
