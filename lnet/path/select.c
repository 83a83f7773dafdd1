/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/select.h"

#include <errno.h>

#include "lnet/net/net.h"
#include "lnet/path/path.h"

struct candidate {
	struct lnet_ni *ni;
	bool preferred;
	int32_t credits;
	uint64_t use; /* when last chosen */
};

/* > 0: @a is better. In the order in which they decide. */
static int by_preference(const struct candidate *a, const struct candidate *b)
{
	return a->preferred - b->preferred;
}

static int by_credits(const struct candidate *a, const struct candidate *b)
{
	return (a->credits > b->credits) - (a->credits < b->credits);
}

static int by_turn(const struct candidate *a, const struct candidate *b)
{
	return (a->use < b->use) - (a->use > b->use);
}

static int (*const criteria[])(const struct candidate *,
			       const struct candidate *) = {
	by_preference,
	by_credits,
	by_turn,
};

static bool better(const struct candidate *a, const struct candidate *b)
{
	if (!b->ni)
		return true;
	for (unsigned int i = 0; i < ARRAY_SIZE(criteria); i++) {
		int d = criteria[i](a, b);

		if (d)
			return d > 0;
	}
	return false;
}

static struct candidate candidate_of(struct lnet_ni *ni,
				     const struct lnet_cpt *cpt,
				     const struct select_want *want)
{
	const struct ni_cpt *nc = &ni->cpt[cpt->index];

	return (struct candidate){
		.ni = ni,
		.preferred = lnet_nid_eq(&ni->lnd.nid, want->preferred),
		.credits = credits_get(&nc->credits),
		.use = nc->use,
	};
}

static int select_given(const struct lnet_config *config,
			const struct select_want *want, struct lnet_ni **ni_p)
{
	struct lnet_ni *ni = config_ni(config, want->src);

	if (!ni)
		return -EINVAL;
	if (ni_net(ni) != lnet_nid_net(want->dst))
		return config_has_net(config, lnet_nid_net(want->dst))
			       ? -EINVAL
			       : -EHOSTUNREACH;
	if (!ni_is_up(ni))
		return -ENETDOWN;
	*ni_p = ni;
	return 0;
}

int select_ni(struct lnet_cpt *cpt, const struct select_want *want,
	      struct lnet_ni **ni_p)
{
	const struct lnet_config *config = cpt->config;
	uint32_t net = lnet_nid_net(want->dst);
	struct candidate best = { .ni = NULL };
	bool has_net = false;

	/* What is for this node goes no path; there is nobody else. */
	if (unlikely(lnet_nid_is_lo(want->dst)))
		return -EHOSTUNREACH;
	if (!lnet_nid_is_any(want->src))
		return select_given(config, want, ni_p);
	for (unsigned int i = 0; i < config->nnis; i++) {
		struct lnet_ni *ni = config->ni[i];
		struct candidate c;

		if (ni_net(ni) != net)
			continue;
		has_net = true;
		if (!ni_is_up(ni))
			continue;
		c = candidate_of(ni, cpt, want);
		if (better(&c, &best))
			best = c;
	}
	if (!best.ni)
		return has_net ? -ENETDOWN : -EHOSTUNREACH;
	best.ni->cpt[cpt->index].use = ++path_cpt(cpt)->ni_uses;
	*ni_p = best.ni;
	return 0;
}
