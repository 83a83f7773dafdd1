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
	const struct ulnet_ping_ni **sorted; /* info->ni, by NID */
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

static bool takes_part(const struct ulnet_ping_info *info)
{
	return is_multi_rail(info) && info->features & LNET_PING_DISCOVERY;
}

/* May discovery say which NIDs the peer has? */
static bool is_free(const struct merge_known *k)
{
	return k->mode == LNET_DISCOVERY_ON && !k->configured;
}

/* ---- is it worth anything? ---- */

static bool plan_ends(struct merge_plan *plan, enum merge_verdict verdict,
		      enum merge_why why)
{
	plan->verdict = verdict;
	plan->why = why;
	return true;
}

/* A reply was made after we had asked, so it is not old, whatever its number: a
 * node that has restarted begins to count anew. A push of the same number tells
 * of states that have changed. */
static bool is_old(const struct merge_work *w)
{
	return w->came->source == MERGE_PUSH && w->known->discovered &&
	       disc_later(w->known->sequence, w->info->sequence);
}

/* Is the plan made, without a look at the NIDs? */
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

/* ---- which NIDs are in both, and their states ---- */

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

/* For now all NIDs are new to the peer; of a NID that is named twice, the
 * second is left out. */
static void sort_theirs(struct merge_work *w)
{
	for (unsigned int i = 0; i < w->info->nnis; i++) {
		w->sorted[i] = &w->info->ni[i];
		w->plan->theirs[i] = MERGE_ADD;
	}
	qsort(w->sorted, w->info->nnis, sizeof(*w->sorted), by_nid);
	for (unsigned int i = 1; i < w->info->nnis; i++)
		if (lnet_nid_eq(&w->sorted[i]->nid, &w->sorted[i - 1]->nid))
			w->plan->theirs[index_of(w, w->sorted[i])] =
				MERGE_LEAVE;
}

static uint8_t merge_state_of(const struct merge_ni *was, bool up)
{
	if (was->down == !up)
		return 0;
	return up ? MERGE_UP : MERGE_DOWN;
}

static void compare_ours(struct merge_work *w)
{
	const struct merge_known *k = w->known;

	for (unsigned int i = 0; i < k->nnis; i++) {
		const struct ulnet_ping_ni **at =
			bsearch(&k->ni[i].nid, w->sorted, w->info->nnis,
				sizeof(*w->sorted), to_nid);

		if (!at) {
			w->plan->ours[i] = MERGE_UNNAMED;
			continue;
		}
		/* The first entry of a NID that is named twice. */
		while (at > w->sorted && lnet_nid_eq(&at[-1]->nid, &at[0]->nid))
			at--;
		w->plan->theirs[index_of(w, *at)] = MERGE_HAS;
		w->plan->ours[i] = merge_state_of(&k->ni[i], (*at)->up);
	}
}

/* ---- what comes and goes ---- */

static void plan_goes(struct merge_work *w, unsigned int i)
{
	w->plan->ours[i] |= MERGE_GOES;
	w->plan->go++;
}

/* A peer that takes no part is one peer for each of its NIDs. */
static void plan_single(struct merge_work *w)
{
	const struct merge_known *k = w->known;
	const struct ulnet_nid *stays = &w->came->from;

	w->plan->primary = *stays;
	for (unsigned int i = 0; i < k->nnis; i++)
		if (!lnet_nid_eq(&k->ni[i].nid, stays))
			plan_goes(w, i);
	for (unsigned int i = 0; i < w->info->nnis; i++)
		if (w->plan->theirs[i] != MERGE_HAS)
			w->plan->theirs[i] = MERGE_LEAVE;
}

static void plan_theirs(struct merge_work *w)
{
	struct merge_plan *plan = w->plan;

	for (unsigned int i = 0; i < w->info->nnis; i++) {
		if (plan->theirs[i] != MERGE_ADD)
			continue;
		plan->theirs[i] = w->came->fate[i];
		if (plan->theirs[i] == MERGE_LEAVE)
			plan->left++;
		else if (plan->theirs[i] != MERGE_CLAIM)
			plan->come++;
	}
}

/* A NID that somebody uses stays, since he wants the peer and not the address.
 * But it is down if the peer does not name it. */
static void plan_ours(struct merge_work *w)
{
	const struct merge_known *k = w->known;

	for (unsigned int i = 0; i < k->nnis; i++) {
		if (!(w->plan->ours[i] & MERGE_UNNAMED))
			continue;
		if (!k->ni[i].used)
			plan_goes(w, i);
		else if (!k->ni[i].down)
			w->plan->ours[i] |= MERGE_DOWN;
	}
}

/* While the new primary NID is asked whether it is the peer's, the peer keeps
 * its old one, and with it all other NIDs. */
static void plan_full(struct merge_work *w)
{
	plan_theirs(w);
	if (w->plan->theirs[0] == MERGE_CLAIM)
		return;
	w->plan->primary = w->info->ni[0].nid;
	plan_ours(w);
}

/* ---- nothing comes or goes ---- */

static bool differs(const struct merge_work *w)
{
	if (!lnet_nid_eq(&w->info->ni[0].nid, &w->known->primary))
		return true;
	for (unsigned int i = 0; i < w->info->nnis; i++)
		if (w->plan->theirs[i] == MERGE_ADD)
			return true;
	for (unsigned int i = 0; i < w->known->nnis; i++)
		if (w->plan->ours[i] & MERGE_UNNAMED)
			return true;
	return false;
}

/* A peer that was configured as not multi-rail has one NID by intent. */
static enum merge_why worth_a_warning(const struct merge_work *w)
{
	const struct merge_known *k = w->known;

	if (k->configured && k->multi_rail && differs(w))
		return MERGE_WHY_CONFIGURED;
	if (!k->configured && k->mode == LNET_DISCOVERY_VERIFY &&
	    takes_part(w->info) && differs(w))
		return MERGE_WHY_VERIFY;
	return MERGE_WHY_NOT;
}

static void merge_plan_nothing(struct merge_work *w, enum merge_why why)
{
	w->plan->why = why;
	w->plan->verdict = why ? MERGE_REFUSE : MERGE_NONE;
	for (unsigned int i = 0; i < w->info->nnis; i++)
		if (w->plan->theirs[i] != MERGE_HAS)
			w->plan->theirs[i] = MERGE_LEAVE;
}

/* Somebody keeps the NID that is to be the peer's primary one. */
static bool primary_is_taken(const struct merge_work *w)
{
	return w->plan->theirs[0] == MERGE_ADD &&
	       w->came->fate[0] == MERGE_LEAVE;
}

/* ---- the plan ---- */

static bool multi_rail_from_now_on(const struct merge_work *w)
{
	if (w->known->configured)
		return w->known->multi_rail;
	if (w->known->mode == LNET_DISCOVERY_ON)
		return takes_part(w->info);
	return w->known->multi_rail && is_multi_rail(w->info);
}

static void plan_nids(struct merge_work *w)
{
	struct merge_plan *plan = w->plan;

	sort_theirs(w);
	compare_ours(w);
	if (!is_free(w->known)) {
		merge_plan_nothing(w, worth_a_warning(w));
		return;
	}
	if (takes_part(w->info) && primary_is_taken(w)) {
		merge_plan_nothing(w, MERGE_WHY_PRIMARY_TAKEN);
		return;
	}
	if (takes_part(w->info))
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
	plan->theirs = malloc((size_t)w.info->nnis + known->nnis);
	w.sorted = malloc(w.info->nnis * sizeof(*w.sorted));
	if (!plan->theirs || !w.sorted) {
		free(w.sorted);
		merge_plan_fini(plan);
		return -ENOMEM;
	}
	plan->ours = plan->theirs + w.info->nnis;
	plan_nids(&w);
	free(w.sorted);
	return 0;
}

void merge_plan_fini(struct merge_plan *plan)
{
	free(plan->theirs);
	plan->theirs = NULL;
	plan->ours = NULL;
}
