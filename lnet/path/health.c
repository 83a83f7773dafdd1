/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/health.h"

#include "base/mutation.h"
#include "lnet/core/cpt.h"

static int32_t health_add(int32_t health, int32_t change)
{
	return MAX(0, MIN(health + change, LNET_HEALTH_MAX));
}

static void ni_add(struct lnet_ni *ni, int32_t change)
{
	int32_t old = ni_health(ni);

	/* Relaxed: nothing else is read by what the number says. */
	while (!atomic_compare_exchange_weak_explicit(
		&ni->health, &old, health_add(old, change),
		memory_order_relaxed, memory_order_relaxed))
		;
}

/* Is this the first loss in this turn? */
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

void health_lose_ni(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	if (first_loss(cpt, &ni->cpt[cpt->index].lost_in))
		ni_add(ni, loss(cpt));
}

void health_lose_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (first_loss(cpt, &lpni->lost_in))
		lpni->health = health_add(lpni->health, loss(cpt));
}

void health_gain_ni(struct lnet_cpt *cpt, struct lnet_ni *ni)
{
	if (MUTATE(no_gain))
		return;
	ni_add(ni, settings_health_gain(&cpt->node->settings));
}

void health_gain_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (MUTATE(no_gain))
		return;
	lpni->health = health_add(lpni->health,
				  settings_health_gain(&cpt->node->settings));
}
