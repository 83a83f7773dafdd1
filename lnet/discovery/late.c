/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/late.h"

#include <stdlib.h>

#include "lnet/discovery/discovery.h"

/* The NID may be forgotten meanwhile, or another CPT's. */
struct late_claim {
	struct list link;
	struct timer timer;
	struct lnet_cpt *cpt;
	struct ulnet_nid nid;
};

static void late_free(struct late_claim *late)
{
	list_del(&late->link);
	free(late);
}

static void on_late(struct timer *t)
{
	struct late_claim *late = container_of(t, struct late_claim, timer);
	struct lnet_cpt *cpt = late->cpt;
	struct lnet_peer_ni *lpni = peer_find(cpt, &late->nid);

	late_free(late);
	if (!lpni)
		return;
	lpni->claim_late = false;
	peer_cpt(cpt)->doubt(cpt, lpni);
}

void late_claim(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct late_claim *late;

	if (lpni->claim_late || cpt->closing)
		return;
	late = calloc(1, sizeof(*late));
	if (!late)
		return;
	lpni->claim_late = true;
	late->cpt = cpt;
	late->nid = lpni->nid;
	list_add_tail(&discovery_cpt(cpt)->late.all, &late->link);
	timer_init(&late->timer, on_late);
	loop_timer_arm(cpt->loop, &late->timer, lpni->claims_after);
}

void late_init(struct lnet_cpt *cpt)
{
	list_init(&discovery_cpt(cpt)->late.all);
}

void late_stop(struct lnet_cpt *cpt)
{
	struct late_claim *late, *next;

	list_for_each_entry_safe (late, next, &discovery_cpt(cpt)->late.all,
				  link) {
		loop_timer_cancel(cpt->loop, &late->timer);
		late_free(late);
	}
}
