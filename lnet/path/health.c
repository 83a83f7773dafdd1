/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/health.h"

#include <errno.h>

#include "lnet/core/cpt.h"
#include "lnet/net/net.h"
#include "lnet/path/path.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

/* an NI never gets less than 1/16 of the health that it lacks: gain_of() */
#define LEAST_PART 16

static int32_t health_add(int32_t health, int32_t change)
{
	return MAX(0, MIN(health + change, LNET_HEALTH_MAX));
}

static void health_ni_add(struct lnet_ni *ni, int32_t change)
{
	int32_t old = ni_health(ni);

	/* Relaxed: nobody reads other memory because of this number. */
	while (!atomic_compare_exchange_weak_explicit(
		&ni->health, &old, health_add(old, change),
		memory_order_relaxed, memory_order_relaxed))
		;
}

/* Is this the first loss of health in this turn? If so, remembers the turn. */
static bool first_loss(const struct lnet_cpt *cpt, uint64_t *lost_in)
{
	uint64_t turn = cpt->loop->turns + 1;

	if (*lost_in == turn)
		return false;
	*lost_in = turn;
	return true;
}

static int32_t loss(const struct lnet_cpt *cpt)
{
	return -settings_health_loss(&cpt->node->settings);
}

/* To be called after the health of the NI was decreased or set. */
static void ni_changed(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	const struct health_watch *watch = path_cpt(cpt)->watch;

	if (watch && ni_health(ni) < LNET_HEALTH_MAX)
		watch->ni_ill(cpt, ni);
}

static void peer_ni_changed(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	const struct health_watch *watch = path_cpt(cpt)->watch;

	routes_health(cpt, lpni);
	if (watch && lpni->health < LNET_HEALTH_MAX)
		watch->peer_ni_ill(cpt, lpni);
}

void health_lose_ni(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	if (!first_loss(cpt, &ni->cpt[cpt->index].lost_in))
		return;
	health_ni_add(ni, loss(cpt));
	ni_changed(cpt, ni);
}

void health_lose_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (!first_loss(cpt, &lpni->lost_in))
		return;
	lpni->health = health_add(lpni->health, loss(cpt));
	peer_ni_changed(cpt, lpni);
}

void health_lose_both(struct lnet_cpt *cpt, struct lnet_ni *ni,
		      struct lnet_peer_ni *lpni)
{
	if (!provenance_is_unverified(lpni))
		health_lose_ni(cpt, ni);
	health_lose_peer_ni(cpt, lpni);
}

bool health_ni_hears(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
		     uint64_t ns)
{
	uint64_t now = loop_now(cpt->loop);

	for (unsigned int i = 0; i < cpt->node->cpts; i++) {
		uint64_t heard = atomic_load_explicit(&ni->cpt[i].heard,
						      memory_order_relaxed);

		if (heard && now - MIN(heard, now) < ns)
			return true;
	}
	return false;
}

void health_lose_silent(struct lnet_cpt *cpt, struct lnet_ni *ni,
			struct lnet_peer_ni *lpni, uint64_t ns)
{
	if (health_ni_hears(cpt, ni, ns))
		health_lose_peer_ni(cpt, lpni);
	else
		health_lose_both(cpt, ni, lpni);
}

void health_lose_unanswered(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
			    bool routed)
{
	const struct health_watch *watch = path_cpt(cpt)->watch;
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	/* An alias is not pinged, so its health would not come back. */
	if (!lpni || lpni->place.state != PEER_HERE)
		return;
	if (routed && watch)
		watch->gateway_doubted(cpt, lpni);
	else if (!routed && !provenance_is_unverified(lpni))
		health_lose_peer_ni(cpt, lpni);
}

void health_gain_ni(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	const struct health_watch *watch = path_cpt(cpt)->watch;

	health_ni_add(ni, settings_health_gain(&cpt->node->settings));
	if (watch)
		watch->ni_hears(cpt, ni);
}

void health_ill(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	uint64_t well = loop_now(cpt->loop) - lpni->well_since;

	if (!lpni->well_since)
		return;
	lpni->relapses -= (uint8_t)MIN(lpni->relapses, well / HEALTH_RELAPSE);
	if (!lpni->pings_passed)
		lpni->relapses = 0;
	else if (well < HEALTH_RELAPSE && lpni->relapses < HEALTH_RELAPSES)
		lpni->relapses++;
}

void health_well(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		 bool pings_passed)
{
	lpni->well_since = loop_now(cpt->loop);
	lpni->pings_passed = pings_passed;
}

/* Returns how many relapses @lpni has had more than another NI of its peer. */
static unsigned int relapses_more(const struct lnet_peer_ni *lpni)
{
	unsigned int least = lpni->relapses;
	const struct lnet_peer_ni *p;

	peer_for_each_ni (p, lpni->peer)
		if (!p->down)
			least = MIN(least, p->relapses);
	return lpni->relapses - least;
}

/* Returns what an answer gives to the health of @lpni: less after relapses, but
 * always a part of what @lpni lacks, so that it is not ill for more than a
 * minute after the network is whole again. */
static int32_t gain_of(const struct lnet_cpt *cpt,
		       const struct lnet_peer_ni *lpni)
{
	int32_t gain = settings_health_gain(&cpt->node->settings);
	int32_t least = (LNET_HEALTH_MAX - lpni->health) / LEAST_PART;

	return MAX(gain >> relapses_more(lpni), MIN(gain, MAX(least, 1)));
}

void health_gain_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	const struct health_watch *watch = path_cpt(cpt)->watch;

	lpni->down = false;
	lpni->health = health_add(lpni->health, gain_of(cpt, lpni));
	routes_health(cpt, lpni);
	if (watch)
		watch->peer_ni_heard(cpt, lpni);
}

/* ---- health set by the user ---- */

static bool is_health(int32_t health)
{
	return health >= 0 && health <= LNET_HEALTH_MAX;
}

struct set_call {
	struct lnet_cpt *cpt;
	/* the NI whose health is set; NULL: all NIs */
	const struct ulnet_nid *nid;
	int32_t health;
};

static int set_ni(void *arg)
{
	const struct set_call *c = arg;
	const struct lnet_config *config = c->cpt->config;
	int rc = c->nid ? -ENOENT : 0;

	if (c->cpt->closing)
		return -ESHUTDOWN;
	for (unsigned int i = 1; i < config->nnis; i++) {
		struct lnet_ni *ni = config->ni[i];

		if (c->nid && !lnet_nid_eq(&ni->lnd.nid, c->nid))
			continue;
		atomic_store_explicit(&ni->health, c->health,
				      memory_order_relaxed);
		ni_changed(c->cpt, ni);
		rc = 0;
	}
	return rc;
}

int lnet_ni_set_health(struct lnet *node, const struct ulnet_nid *nid,
		       int32_t health)
{
	struct set_call c = { node->cpt[0], nid, health };

	if (!is_health(health) || (nid && lnet_nid_is_lo(nid)))
		return -EINVAL;
	return loop_call(c.cpt->loop, set_ni, &c);
}

static void peer_ni_set_health(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			       int32_t health)
{
	lpni->health = health;
	peer_ni_changed(cpt, lpni);
}

void health_report_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			   bool down)
{
	lpni->down = down;
	peer_ni_set_health(cpt, lpni, down ? 0 : LNET_HEALTH_MAX);
}

static int health_set_one(void *arg)
{
	struct set_call *c = arg;
	struct lnet_peer_ni *lpni = peer_find(c->cpt, c->nid);

	if (!lpni)
		return -ENOENT;
	peer_ni_set_health(c->cpt, lpni, c->health);
	return 0;
}

static void set_each(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni, void *arg)
{
	if (lpni)
		peer_ni_set_health(cpt, lpni, *(int32_t *)arg);
}

int lnet_peer_set_health(struct lnet *node, const struct ulnet_nid *nid,
			 int32_t health)
{
	struct set_call c = { .nid = nid, .health = health };

	if (!is_health(health))
		return -EINVAL;
	if (!nid)
		return peers_each(node, set_each, &health);
	c.cpt = node->cpt[node_cpt_of(node, nid)];
	return loop_call(c.cpt->loop, health_set_one, &c);
}
