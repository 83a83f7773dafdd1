/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct merge_work {
	const struct merge_known *known;
	const struct merge_came *came;
	const struct ulnet_ping_info *info;
	struct merge_plan *plan;
	/* the elements of info->ni, sorted by NID */
	const struct ulnet_ping_ni **sorted;
};

const char *merge_why_text(enum merge_why why)
{
	static const char *const texts[MERGE_WHYS] = {
		[MERGE_WHY_CUT] = "it did not fit",
		[MERGE_WHY_OLD] = "it is older than what is known",
		[MERGE_WHY_EMPTY] = "it names no interface",
		[MERGE_WHY_PLAIN_PUSH] = "only multi-rail nodes push",
		[MERGE_WHY_CONFIGURED] = "the peer is configured otherwise",
		[MERGE_WHY_PRIMARY_TAKEN] = "its primary NID is another's",
		[MERGE_WHY_VERIFY] = "discovery is to verify only",
	};

	return texts[why];
}

static bool is_multi_rail(const struct ulnet_ping_info *info)
{
	return info->features & LNET_PING_MULTI_RAIL;
}

static bool does_discovery(const struct ulnet_ping_info *info)
{
	return is_multi_rail(info) && info->features & LNET_PING_DISCOVERY;
}

/* ---- is the information of use? ---- */

static bool plan_ends(struct merge_plan *plan, enum merge_verdict verdict,
		      enum merge_why why)
{
	plan->verdict = verdict;
	plan->why = why;
	return true;
}

/* Is the information older than what is known? A reply never is, whatever its
 * number: it was made after this node had asked, and a node that has restarted
 * counts anew. A push with the same number as before reports new states. */
static bool is_old(const struct merge_work *w)
{
	return w->came->source == MERGE_PUSH && w->known->discovered &&
	       disc_later(w->known->sequence, w->info->sequence);
}

/* Returns true if the plan can be completed without comparing NIDs. */
static bool plan_early(struct merge_work *w)
{
	struct merge_plan *plan = w->plan;

	if (w->came->source == MERGE_PUSH && !is_multi_rail(w->info))
		return plan_ends(plan, MERGE_DROP, MERGE_WHY_PLAIN_PUSH);
	if (w->came->cut) {
		plan->ask = w->came->cut;
		return plan_ends(plan, MERGE_ASK, MERGE_WHY_CUT);
	}
	if (is_old(w))
		return plan_ends(plan, MERGE_ASK, MERGE_WHY_OLD);
	if (!w->info->nnis)
		return plan_ends(plan, MERGE_DROP, MERGE_WHY_EMPTY);
	return false;
}

/* ---- comparing NIDs and their states ---- */

static int nid_order(const struct ulnet_nid *a, const struct ulnet_nid *b)
{
	return memcmp(a, b, sizeof(*a));
}

static int by_nid(const void *a, const void *b)
{
	const struct ulnet_ping_ni *x = *(const struct ulnet_ping_ni *const *)a;
	const struct ulnet_ping_ni *y = *(const struct ulnet_ping_ni *const *)b;
	int d = nid_order(&x->nid, &y->nid);

	return d ? d : (x > y) - (x < y);
}

static int to_nid(const void *key, const void *elem)
{
	const struct ulnet_ping_ni *y =
		*(const struct ulnet_ping_ni *const *)elem;

	return nid_order(key, &y->nid);
}

static unsigned int index_of(const struct merge_work *w,
			     const struct ulnet_ping_ni *ni)
{
	return (unsigned int)(ni - w->info->ni);
}

/* Sorts the NIDs of the information. They all become MERGE_ADD for now; but if
 * a NID is named twice, its second entry is left out. */
static void sort_named(struct merge_work *w)
{
	for (unsigned int i = 0; i < w->info->nnis; i++) {
		w->sorted[i] = &w->info->ni[i];
		w->plan->named[i] = MERGE_ADD;
	}
	qsort(w->sorted, w->info->nnis, sizeof(*w->sorted), by_nid);
	for (unsigned int i = 1; i < w->info->nnis; i++)
		if (lnet_nid_eq(&w->sorted[i]->nid, &w->sorted[i - 1]->nid))
			w->plan->named[index_of(w, w->sorted[i])] = MERGE_LEAVE;
}

static void compare_known(struct merge_work *w)
{
	const struct merge_known *k = w->known;

	for (unsigned int i = 0; i < k->nnis; i++) {
		const struct ulnet_ping_ni **at =
			bsearch(&k->ni[i].nid, w->sorted, w->info->nnis,
				sizeof(*w->sorted), to_nid);

		if (!at) {
			w->plan->known[i] = MERGE_UNNAMED;
			continue;
		}
		/* If the NID is named twice, goes to its first entry. */
		while (at > w->sorted && lnet_nid_eq(&at[-1]->nid, &at[0]->nid))
			at--;
		w->plan->named[index_of(w, *at)] = MERGE_HAS;
		if (k->ni[i].down == (*at)->up)
			w->plan->known[i] = (*at)->up ? MERGE_UP : MERGE_DOWN;
		else
			w->plan->known[i] = 0;
	}
}

/* ---- which NIDs come and go ---- */

static void plan_goes(struct merge_work *w, unsigned int i)
{
	w->plan->known[i] |= MERGE_GOES;
	w->plan->go++;
}

/* Each NID of a peer that takes no part in discovery is a peer of its own. */
static void plan_single(struct merge_work *w)
{
	const struct merge_known *k = w->known;
	const struct ulnet_nid *stays = &w->came->from;

	w->plan->primary = *stays;
	for (unsigned int i = 0; i < k->nnis; i++)
		if (!lnet_nid_eq(&k->ni[i].nid, stays))
			plan_goes(w, i);
	for (unsigned int i = 0; i < w->info->nnis; i++)
		if (w->plan->named[i] != MERGE_HAS)
			w->plan->named[i] = MERGE_LEAVE;
}

static void plan_named(struct merge_work *w)
{
	struct merge_plan *plan = w->plan;

	for (unsigned int i = 0; i < w->info->nnis; i++) {
		if (plan->named[i] != MERGE_ADD)
			continue;
		plan->named[i] = w->came->fate[i];
		if (plan->named[i] == MERGE_LEAVE)
			plan->left++;
		else if (plan->named[i] != MERGE_CLAIM)
			plan->come++;
	}
}

/* The peer loses the NIDs that it does not name. But a NID that messages of
 * this node have named as their target stays, since those messages are meant
 * for this peer; it is marked as down. */
static void plan_known(struct merge_work *w)
{
	const struct merge_known *k = w->known;

	for (unsigned int i = 0; i < k->nnis; i++) {
		if (!(w->plan->known[i] & MERGE_UNNAMED))
			continue;
		if (!k->ni[i].used)
			plan_goes(w, i);
		else if (!k->ni[i].down)
			w->plan->known[i] |= MERGE_DOWN;
	}
}

/* The peer gets the NIDs that it names. As long as its new primary NID is being
 * asked whose it is, the peer keeps its old primary NID and all other NIDs. */
static void plan_full(struct merge_work *w)
{
	plan_named(w);
	if (w->plan->named[0] == MERGE_CLAIM)
		return;
	w->plan->primary = w->info->ni[0].nid;
	plan_known(w);
}

/* ---- no NID comes or goes ---- */

static bool differs(const struct merge_work *w)
{
	if (!lnet_nid_eq(&w->info->ni[0].nid, &w->known->primary))
		return true;
	for (unsigned int i = 0; i < w->info->nnis; i++)
		if (w->plan->named[i] == MERGE_ADD)
			return true;
	for (unsigned int i = 0; i < w->known->nnis; i++)
		if (w->plan->known[i] & MERGE_UNNAMED)
			return true;
	return false;
}

/* Returns why a difference is logged. It is not logged if the peer was
 * configured as not multi-rail: then the peer has one NID by intent. */
static enum merge_why worth_a_warning(const struct merge_work *w)
{
	const struct merge_known *k = w->known;

	if (k->configured && k->multi_rail && differs(w))
		return MERGE_WHY_CONFIGURED;
	if (!k->configured && k->mode == LNET_DISCOVERY_VERIFY &&
	    does_discovery(w->info) && differs(w))
		return MERGE_WHY_VERIFY;
	return MERGE_WHY_NOT;
}

static void merge_plan_nothing(struct merge_work *w, enum merge_why why)
{
	w->plan->why = why;
	w->plan->verdict = why ? MERGE_REFUSE : MERGE_NONE;
	for (unsigned int i = 0; i < w->info->nnis; i++)
		if (w->plan->named[i] != MERGE_HAS)
			w->plan->named[i] = MERGE_LEAVE;
}

/* ---- the plan ---- */

static bool multi_rail_from_now_on(const struct merge_work *w)
{
	if (w->known->configured)
		return w->known->multi_rail;
	if (w->known->mode == LNET_DISCOVERY_ON)
		return does_discovery(w->info);
	return w->known->multi_rail && is_multi_rail(w->info);
}

static void plan_nids(struct merge_work *w)
{
	struct merge_plan *plan = w->plan;

	sort_named(w);
	compare_known(w);
	if (w->known->mode != LNET_DISCOVERY_ON || w->known->configured) {
		merge_plan_nothing(w, worth_a_warning(w));
		return;
	}
	/* Does another peer keep the NID that is named as the primary one? */
	if (does_discovery(w->info) && plan->named[0] == MERGE_ADD &&
	    w->came->fate[0] == MERGE_LEAVE) {
		merge_plan_nothing(w, MERGE_WHY_PRIMARY_TAKEN);
		return;
	}
	if (does_discovery(w->info))
		plan_full(w);
	else
		plan_single(w);
	if (plan->come || plan->go ||
	    !lnet_nid_eq(&plan->primary, &w->known->primary))
		plan->verdict = MERGE_APPLY;
}

int merge_plan(const struct merge_known *known, const struct merge_came *came,
	       struct merge_plan *plan)
{
	struct merge_work w = {
		.known = known, .came = came, .info = came->info, .plan = plan
	};

	*plan = (struct merge_plan){ .primary = known->primary,
				     .sequence = came->info->sequence,
				     .multi_rail = multi_rail_from_now_on(&w),
				     .no_discovery = !(came->info->features &
						       LNET_PING_DISCOVERY) };
	if (plan_early(&w))
		return 0;
	plan->named = malloc((size_t)w.info->nnis + known->nnis);
	w.sorted = malloc(w.info->nnis * sizeof(*w.sorted));
	if (!plan->named || !w.sorted) {
		free(w.sorted);
		merge_plan_fini(plan);
		return -ENOMEM;
	}
	plan->known = plan->named + w.info->nnis;
	plan_nids(&w);
	free(w.sorted);
	return 0;
}

void merge_plan_fini(struct merge_plan *plan)
{
	free(plan->named);
	plan->named = NULL;
	plan->known = NULL;
}
