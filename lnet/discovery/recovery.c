/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/recovery.h"

#include <stdlib.h>

#include "base/log.h"
#include "lnet/discovery/ask.h"
#include "lnet/discovery/discovery.h"
#include "lnet/message/end.h"
#include "lnet/message/out.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

#define PING_SIZE 272 /* bytes that a ping asks for, as in kernel nodes */
/* ns from one ping to the next: before the first answer is missed, and after an
 * answer. */
#define FIRST	 (100 * NSEC_PER_MSEC)
#define ANSWERED (20 * NSEC_PER_MSEC)
/* ns: the timeout of a ping, and the interval up to which intervals double. */
#define ANSWER_WITHIN NSEC_PER_SEC
/* Number of answers in a row after which the next ping follows quickly, after
 * ANSWERED: enough for full health with the default health_gain. After further
 * answers it follows after ANSWER_WITHIN. */
#define QUICK_ANSWERS 16
/* ns of silence after which a gateway through which this node sends is pinged.
 */
#define GATEWAY_SILENT NSEC_PER_SEC
/* ns: a ping that is answered after this time shows that the path had stopped
 * working: TCP has sent the ping or its answer again. */
#define ANSWERED_SOON (150 * NSEC_PER_MSEC)
/* Later the interval is this part of the time since the last sign of life. */
#define INTERVAL_PART 32
/* An NI of a router is deaf after this number of pings without an answer, each
 * with this timeout (ns). The timeout is short because the router drops
 * messages meanwhile. An answer that comes after it counts, too. */
#define DEAF_AFTER  2
#define DEAF_WITHIN (150 * NSEC_PER_MSEC)

struct recovery {
	struct list link; /* in discovery_cpt.ill */
	struct lnet_cpt *cpt;
	bool local; /* an NI of this node; false: of a peer */
	struct ulnet_nid nid;
	struct peer_recovery pings;
	/* armed, except while a ping is under way or @away is set */
	struct timer timer;
	uint64_t since; /* ns: when the NI became unhealthy */
	/* ns: the last sign of life; without one, @since */
	uint64_t heard;
	uint64_t began; /* ns: when the last ping began */
	/* ns: when the first of the pings that were not answered began */
	uint64_t silent_since;
	uint64_t interval;    /* ns: from one ping to the next */
	unsigned int answers; /* number of answers in a row */
	bool failed;	      /* a ping was not answered soon */
	/* The peer NI is a gateway's, and not ill. It is pinged once, unless
	 * its peer has sent messages by then: more than @received, the number
	 * of them when the watching began. */
	bool watching;
	uint64_t received;
	struct ask ask;
	/* With @local: CPTs look for a peer to ping, one after the other. While
	 * @away is set, the fields below belong to the CPT that looks. */
	bool away;
	struct work work;
	/* modulo the number of CPTs: the CPT that looks next */
	unsigned int turn;
	/* number of CPTs that have looked for this ping */
	unsigned int looked;
	/* the peer NI that was found; LNET_NID_ANY: none */
	struct ulnet_nid found;
};

/* ---- which NIs ---- */

/* Returns the local NI of @r, or NULL if it is gone. */
static struct lnet_ni *ni_of_mine(const struct recovery *r)
{
	struct lnet_ni *ni = config_ni(r->cpt->config, &r->nid);

	return ni && atomic_load(&ni->recovering) ? ni : NULL;
}

/* Returns the peer NI of @r, or NULL if it is gone. */
static struct lnet_peer_ni *ni_of_peer(const struct recovery *r)
{
	struct lnet_peer_ni *lpni = peer_find(r->cpt, &r->nid);

	return lpni && lpni->recovery == &r->pings ? lpni : NULL;
}

/* Does the NI of @r still exist, and must it still be pinged? */
static bool is_ill(const struct recovery *r)
{
	const struct settings *set = &r->cpt->node->settings;
	uint64_t limit = settings_recovery_limit(set);
	const struct lnet_peer_ni *lpni;
	const struct lnet_ni *ni;

	if (limit && loop_now(r->cpt->loop) - r->since >= limit)
		return false;
	if (!settings_health_is_on(set))
		return false;
	if (r->local) {
		ni = ni_of_mine(r);
		return ni && ni_health(ni) < LNET_HEALTH_MAX;
	}
	lpni = ni_of_peer(r);
	/* An alias is not pinged: the CPT that owns the NID pings it, and may
	 * receive the answers. Nor is an NI pinged that its peer does not
	 * name any more. */
	return lpni && (lpni->health < LNET_HEALTH_MAX || r->watching) &&
	       lpni->place.state == PEER_HERE && !lpni->peer->abandoned;
}

/* Returns how many messages the peer of @lpni has sent or passed on. */
static uint64_t received_from(const struct lnet_peer_ni *lpni)
{
	struct ulnet_counts counts = { 0 };
	const struct lnet_peer_ni *p;

	peer_for_each_ni (p, lpni->peer)
		traffic_sum(&p->traffic.recv, &counts);
	return counts_total(&counts);
}

/* Sets whether @ni receives nothing. A router announces such an NI as down,
 * because nodes on its other nets cannot see that it has to drop their
 * messages. */
static void ni_set_deaf(struct lnet_ni *ni, bool deaf)
{
	if (deaf && !atomic_load(&ni->node->routing))
		return;
	if (atomic_exchange(&ni->deaf, deaf) != deaf)
		targets_changed(ni->node, deaf);
}

/* A peer NI never keeps a record that is gone, not even while the node closes:
 * messages to it still end then, and health.c tells of that. */
static void recovery_free(struct recovery *r)
{
	bool mine = r->local && !r->cpt->closing;
	struct lnet_ni *ni = mine ? ni_of_mine(r) : NULL;
	struct lnet_peer_ni *lpni = r->local ? NULL : ni_of_peer(r);

	if (ni) {
		ni_set_deaf(ni, false);
		atomic_store(&ni->recovering, false);
		atomic_store(&ni->recovery_silent, 0);
		atomic_store(&ni->recovery_next, 0);
	}
	if (lpni) {
		lpni->recovery = NULL;
		if (lpni->health == LNET_HEALTH_MAX)
			health_well(r->cpt, lpni, r->answers && !r->failed);
	}
	BUG_ON(timer_armed(&r->timer));
	ask_fini(&r->ask);
	list_del(&r->link);
	free(r);
}

/* ---- one ping ---- */

/* Stores in the local NI how its pings go, for users. */
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

/* The last ping was not answered. */
static void recovery_not_heard(struct recovery *r)
{
	uint64_t max = settings_recovery_max(&r->cpt->node->settings);
	uint64_t part = (loop_now(r->cpt->loop) - r->heard) / INTERVAL_PART;

	if (!r->pings.silent++)
		r->silent_since = r->began;
	r->answers = 0;
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

static bool recovery_pass_on(struct recovery *r);

/* A ping has ended: frees @r, or waits for the time of the next ping. */
static void recovery_go_on(struct recovery *r, bool answered)
{
	uint64_t took = loop_now(r->cpt->loop) - r->began;
	struct lnet_ni *ni;

	r->failed |= !answered || took > ANSWERED_SOON;
	r->answers += answered;
	if (r->cpt->closing || !is_ill(r)) {
		recovery_free(r);
		return;
	}
	if (answered) {
		recovery_heard(r);
		recovery_wait(r, r->answers <= QUICK_ANSWERS ? ANSWERED
							     : ANSWER_WITHIN);
		return;
	}
	recovery_not_heard(r);
	if (recovery_pass_on(r))
		return;
	ni = r->local ? ni_of_mine(r) : NULL;
	if (ni && is_deaf(r, ni))
		ni_set_deaf(ni, true);
	recovery_wait(r, r->interval - MIN(took, r->interval));
}

/* A ping that fails costs the peer NI health, so that of two ill NIs the one
 * that answers is better. It costs our NIs none: that the peer is silent says
 * nothing of them. */
static void recovery_asked(struct ask *ask)
{
	struct recovery *r = container_of(ask, struct recovery, ask);
	struct lnet_peer_ni *lpni = r->local ? NULL : ni_of_peer(r);
	bool open = !r->cpt->closing;
	bool ill = open && is_ill(r);

	r->watching = false;
	if (open && !ask->status && lpni && provenance_is_unverified(lpni) &&
	    config_is_of_host(r->cpt->config, &lpni->nid))
		peer_cpt(r->cpt)->question(r->cpt, lpni);
	if (ask->status && lpni && ill &&
	    attempt_tells_of_peer(ask->status, ask->cause))
		health_lose_peer_ni(r->cpt, lpni);
	recovery_go_on(r, !ask->status);
}

static uint64_t answer_within(const struct recovery *r)
{
	bool quick = r->local && r->pings.silent < DEAF_AFTER &&
		     atomic_load(&r->cpt->node->routing);

	return quick ? DEAF_WITHIN : ANSWER_WITHIN;
}

/* Pings @to. If that fails at once, it counts as a ping without an answer. */
static void recovery_ping(struct recovery *r, const struct ulnet_nid *from,
			  const struct ulnet_nid *to)
{
	const struct ulnet_id target = { *to, LNET_PID_LUSTRE };

	r->began = loop_now(r->cpt->loop);
	r->pings.next = 0;
	recovery_note(r);
	/* The ping is sent only once; what follows if it fails, is decided by
	 * recovery_asked(). */
	if (ask_get(&r->ask, from, &target, MSG_ONCE | MSG_EXACT | MSG_PROBE,
		    answer_within(r)))
		recovery_wait(r, r->interval);
}

/* ---- which peers are pinged ---- */

/* Is it certain that @lpni exists? Only then its silence means something. */
static bool exists(const struct lnet_peer_ni *lpni)
{
	struct ulnet_counts counts = { 0 };

	if (lpni->peer->multi_rail)
		return true;
	traffic_sum(&lpni->traffic.recv, &counts);
	return counts_total(&counts) != 0;
}

/* Would an answer of @lpni show that @ni works? */
static bool can_tell(const struct lnet_cpt *cpt,
		     const struct lnet_peer_ni *lpni, const struct lnet_ni *ni)
{
	return lpni->place.state == PEER_HERE && lpni->credits_max &&
	       nid_segment(&lpni->nid) == ni->segment && exists(lpni) &&
	       !config_is_mine(cpt->config, &lpni->nid);
}

/* Counts the peer NIs of @cpt whose answer would show that @ni works. Stops at
 * number @n, counted from 0, and sets *@nid to its NID. */
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

/* Of the peer NIs of @cpt whose answer would show that the NI of @r works, sets
 * r->found to number @n, modulo their number. So all of them are used in turn,
 * as long as the table does not change. */
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

/* Looks for a peer to ping on the CPT whose turn it is; if that CPT knows none,
 * on the next CPT. Then returns to the CPT of @r. */
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

/* Looks for a peer, and then pings it from the local NI of @r. */
static void ping_from(struct recovery *r)
{
	r->found = LNET_NID_ANY;
	r->looked = 0;
	r->away = true;
	r->work.fn = recovery_look;
	recovery_look(&r->work);
}

static void recovery_due(struct timer *t)
{
	struct recovery *r = container_of(t, struct recovery, timer);
	const struct ulnet_nid any = LNET_NID_ANY;

	if (r->watching && ni_of_peer(r) &&
	    received_from(ni_of_peer(r)) != r->received)
		/* the peer has sent a message, so it is well */
		r->watching = false;
	if (!is_ill(r)) {
		recovery_free(r);
		return;
	}
	if (!r->local) {
		recovery_ping(r, &any, &r->nid);
		return;
	}
	if (ni_is_up(ni_of_mine(r)))
		ping_from(r);
	else
		recovery_wait(r, r->interval);
}

/* ---- the beginning ---- */

/* Returns NULL if there is no memory; the next failure tries again. */
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

/* The function health_watch.ni_ill. If this node has only 0@lo and @ni, it does
 * not ping. */
static void ni_ill(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	if (cpt->closing || cpt->config->nnis <= 2 ||
	    !settings_health_is_on(&cpt->node->settings) ||
	    atomic_exchange(&ni->recovering, true))
		return;
	if (!recovery_new(cpt, true, &ni->lnd.nid))
		atomic_store(&ni->recovering, false);
}

/* Does path selection depend on the health of @lpni? It does if its peer has
 * other NIs, or if it is a gateway; but not if it is behind gateways, since
 * their failures would count as those of @lpni. */
static bool health_matters(const struct lnet_cpt *cpt,
			   const struct lnet_peer_ni *lpni)
{
	if (!config_net(cpt->config, lpni->net->segment))
		return false;
	return (lpni->peer->multi_rail && lpni->peer->nnis > 1) ||
	       routes_go_by(cpt, &lpni->nid, LNET_NET_ANY);
}

static struct recovery *recovery_of(const struct lnet_peer_ni *lpni)
{
	return lpni->recovery
		       ? container_of(lpni->recovery, struct recovery, pings)
		       : NULL;
}

/* May @lpni be pinged, too? What a peer says of NIDs that have not confirmed it
 * may be made up, so of these only UNCONFIRMED_MAX are pinged at a time. */
static bool recovery_may_begin(const struct lnet_peer_ni *lpni)
{
	const struct lnet_peer_ni *p;
	unsigned int n = 0;

	if (!provenance_is_unverified(lpni))
		return true;
	peer_for_each_ni (p, lpni->peer)
		n += p->recovery && provenance_is_unverified(p);
	return n < UNCONFIRMED_MAX;
}

static struct recovery *peer_ni_ill_now(struct lnet_cpt *cpt,
					struct lnet_peer_ni *lpni)
{
	struct recovery *r = recovery_of(lpni);

	if (r && r->watching && !ask_is_under_way(&r->ask)) {
		r->watching = false;
		recovery_wait(r, FIRST);
	}
	if (cpt->closing || lpni->recovery ||
	    !settings_health_is_on(&cpt->node->settings) ||
	    !health_matters(cpt, lpni) || !recovery_may_begin(lpni))
		return NULL;
	health_ill(cpt, lpni);
	r = recovery_new(cpt, false, &lpni->nid);
	lpni->recovery = r ? &r->pings : NULL;
	return r;
}

static void peer_ni_ill(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	(void)peer_ni_ill_now(cpt, lpni);
}

/* An unverified NI of a peer has not answered: another one that is ill, and has
 * not been pinged for longer, takes its turn. Returns true, and has freed @r,
 * if there is one. */
static bool recovery_pass_on(struct recovery *r)
{
	const struct lnet_peer_ni *lpni = r->local ? NULL : ni_of_peer(r);
	struct lnet_cpt *cpt = r->cpt;
	struct lnet_peer_ni *p, *first = NULL, *next = NULL;
	struct recovery was;
	bool behind = false;

	if (!lpni || !provenance_is_unverified(lpni))
		return false;
	peer_for_each_ni (p, lpni->peer) {
		behind |= p == lpni;
		if (p->recovery || p->health == LNET_HEALTH_MAX ||
		    !provenance_is_unverified(p))
			continue;
		if (!first)
			first = p;
		if (behind && !next)
			next = p;
	}
	if (!first)
		return false;
	was = *r;
	recovery_free(r);
	r = peer_ni_ill_now(cpt, next ? next : first);
	if (r) {
		/* The pings of both NIs become rarer, and end, as if they were
		 * pings of one NI. */
		r->since = was.since;
		r->heard = was.heard;
		r->interval = was.interval;
		recovery_wait(r, MAX(was.interval, ANSWER_WITHIN));
	}
	return true;
}

/* ---- gateways ---- */

/* Lets the gateway of @lpni be pinged in @ns, unless something has come from it
 * by then. Without memory nothing is done: the next message tries again. */
static void gateway_watch(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			  uint64_t ns)
{
	struct recovery *r = recovery_of(lpni);

	if (cpt->closing || lpni->place.state != PEER_HERE ||
	    !settings_health_is_on(&cpt->node->settings))
		return;
	if (!r)
		r = recovery_new(cpt, false, &lpni->nid);
	if (!r || ask_is_under_way(&r->ask))
		return;
	lpni->recovery = &r->pings;
	r->watching = true;
	r->received = received_from(lpni);
	recovery_wait(r, ns);
}

/* The function health_watch.gateway_used. Finds a gateway whose process stands
 * still while its host goes on acknowledging what it gets. */
static void gateway_used(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	gateway_watch(cpt, lpni, GATEWAY_SILENT);
}

/* The function health_watch.gateway_doubted. */
static void gateway_doubted(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	gateway_watch(cpt, lpni, 0);
}

/* The function health_watch.ni_hears: @ni is not deaf any more. What has come
 * in may be a ping, so the ping target is updated at once. */
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

/* The function health_watch.peer_ni_heard: a message has come from @lpni, so
 * the next ping follows soon. */
static void peer_ni_heard(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct recovery *r;

	provenance_keep(cpt, lpni->peer);
	if (lpni->health == LNET_HEALTH_MAX)
		disc_gateway_suspect(cpt, &lpni->nid);
	else
		peer_ni_ill(cpt, lpni);
	r = recovery_of(lpni);
	if (!r)
		return;
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

/* ---- all NIs ---- */

/* As peers_fn. */
static void look_at_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			    void *arg)
{
	(void)arg;
	if (lpni && lpni->health < LNET_HEALTH_MAX)
		peer_ni_ill(cpt, lpni);
}

static void look_at_all(struct work *w)
{
	struct recovery_all *all = container_of(w, struct recovery_all, work);
	struct lnet_cpt *cpt = all->cpt;

	if (atomic_exchange(&all->anew, false)) {
		all->at = PEERS_FIRST;
		if (!cpt->closing)
			recovery_of_nis(cpt);
	}
	if (!cpt->closing && peers_some(cpt, &all->at, look_at_peer_ni, NULL)) {
		loop_post(cpt->loop, w);
		return;
	}
	atomic_store(&all->posted, false);
	/* recovery_of_all() was called since the look at @anew. */
	if (atomic_load(&all->anew) && !atomic_exchange(&all->posted, true))
		loop_post(cpt->loop, w);
	cpt_ended_one(cpt);
}

void recovery_of_all(struct lnet_cpt *cpt)
{
	struct recovery_all *all = &discovery_cpt(cpt)->all;

	atomic_store(&all->anew, true);
	if (!atomic_exchange(&all->posted, true))
		loop_post(cpt->loop, &all->work);
}

/* The function settings.health_is_on. Any thread. */
static void health_is_on(struct settings *s)
{
	struct lnet *node = container_of(s, struct lnet, settings);

	for (unsigned int i = 0; i < node->cpts; i++)
		recovery_of_all(node->cpt[i]);
}

static const struct health_watch watch = {
	.ni_ill = ni_ill,
	.peer_ni_ill = peer_ni_ill,
	.ni_hears = ni_hears,
	.peer_ni_heard = peer_ni_heard,
	.gateway_used = gateway_used,
	.gateway_doubted = gateway_doubted,
};

void recovery_init(struct lnet_cpt *cpt)
{
	struct discovery_cpt *dc = discovery_cpt(cpt);

	list_init(&dc->ill);
	dc->all.cpt = cpt;
	dc->all.work.fn = look_at_all;
	cpt->node->settings.health_is_on = health_is_on;
	path_cpt(cpt)->watch = &watch;
	peer_cpt(cpt)->came = recovery_of_peer;
}

/* A record whose ping is under way is freed when the ping ends; a record that
 * is away, when it returns. */
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
	const struct discovery_cpt *dc = discovery_cpt(cpt);
	const struct recovery *r;

	list_for_each_entry (r, &dc->ill, link)
		if (r->away)
			return false;
	return !atomic_load(&dc->all.posted);
}
