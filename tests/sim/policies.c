/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/policies.h"

#include <errno.h>
#include <string.h>
#include <ulnet/path.h>

#include "tests/sim/cluster.h"

#define POLICIES   8 /* of a node, at most */
#define CANDIDATES 128

/* ---- changes ---- */

/* Writes a pattern for the NID itself, for all NIDs of its net, or for the net.
 */
static void pattern(struct lnet_sim *sim, const struct ulnet_nid *nid,
		    bool nids, char buf[LNET_PATTERN_SIZE])
{
	char net[LNET_NIDSTR_SIZE];
	uint64_t what = lnet_sim_random(sim, nids ? 2 : 3);

	lnet_net_format(lnet_nid_net(nid), net, sizeof(net));
	if (what == 0)
		lnet_nid_format(nid, buf, LNET_PATTERN_SIZE);
	else
		snprintf(buf, LNET_PATTERN_SIZE, "%s%s", what == 1 ? "*@" : "",
			 net);
}

static void policy_add(struct lnet_sim *sim, struct lnet *node,
		       const struct ulnet_nid *mine,
		       const struct ulnet_nid *other,
		       const struct ulnet_nid *gateway)
{
	struct ulnet_policy p = { .priority = LNET_PRIORITY_NONE };
	/* Priorities matter only when there are several: they are drawn most
	 * often. */
	uint64_t kind = lnet_sim_random(sim, 6) % 4;
	uint32_t priority = (uint32_t)lnet_sim_random(sim, 3);
	unsigned int n = (unsigned int)lnet_policies(node, NULL, 0);
	int rc;

	if (kind == 0 || kind == 2)
		pattern(sim, mine, kind == 2, p.src);
	if (kind > 0)
		pattern(sim, other, kind == 2, p.dst);
	if (kind == 3)
		pattern(sim, gateway, true, p.rte);
	if (kind < 2)
		p.priority = priority;
	rc = lnet_policy_add(node, (unsigned int)lnet_sim_random(sim, n + 1),
			     &p, NULL);
	if (rc && rc != -EALREADY)
		lnet_sim_fail(sim, "no policy can be added: %d", rc);
}

void policies_change(struct lnet_sim *sim, struct lnet *node,
		     const struct ulnet_nid *mine,
		     const struct ulnet_nid *other,
		     const struct ulnet_nid *gateway)
{
	unsigned int n = (unsigned int)lnet_policies(node, NULL, 0);

	if (n == POLICIES || (n && lnet_sim_random(sim, 3) == 0))
		lnet_policy_del(node, (unsigned int)lnet_sim_random(sim, n));
	else
		policy_add(sim, node, mine, other, gateway);
}

/* ---- what choices should be ---- */

/* The policies of a node, read by the public API. */
struct reading {
	struct ulnet_policy all[POLICIES];
	int n;
};

static bool matches(const char *pattern, const struct ulnet_nid *nid, bool nets)
{
	char list[LNET_PATTERN_SIZE + 2];
	struct ulnet_nidlist *l;
	bool does;

	if (!*pattern || nets != !strchr(pattern, '@'))
		return false;
	snprintf(list, sizeof(list), "%s%s", nets ? "*@" : "", pattern);
	if (lnet_nidlist_parse(list, &l, NULL))
		return false;
	does = lnet_nidlist_match(l, nid);
	lnet_nidlist_free(l);
	return does;
}

/* Returns the priority of the first policy for @nid, as a source or as a
 * destination. */
static uint32_t priority_of(const struct reading *r,
			    const struct ulnet_nid *nid, bool source, bool nets)
{
	for (int i = 0; i < r->n; i++) {
		const struct ulnet_policy *p = &r->all[i];
		const char *here = source ? p->src : p->dst;
		const char *there = source ? p->dst : p->src;

		if (!*there && !*p->rte && matches(here, nid, nets))
			return p->priority;
	}
	return LNET_PRIORITY_NONE;
}

static uint32_t priority_of_ni(const struct reading *r,
			       const struct ulnet_nid *nid, bool source)
{
	uint32_t own = priority_of(r, nid, source, false);

	return own == LNET_PRIORITY_NONE ? priority_of(r, nid, source, true)
					 : own;
}

static uint32_t should_be(const struct reading *r,
			  const struct ulnet_path_candidate *c,
			  enum ulnet_path_why why)
{
	if (c->kind == LNET_PATH_NET)
		return priority_of(r, &c->nid, why == LNET_PATH_PRIORITY, true);
	return priority_of_ni(r, &c->nid, c->kind == LNET_PATH_LOCAL_NI);
}

/* Do the policies agree with the choice? If @why itself has decided, the chosen
 * one must be better by it; if a criterion after @why has, both must be equal
 * by @why. */
static bool agrees(const struct reading *r,
		   const struct ulnet_path_candidate *chosen,
		   const struct ulnet_path_candidate *lost,
		   enum ulnet_path_why why)
{
	uint32_t best = should_be(r, chosen, why);
	uint32_t other = should_be(r, lost, why);

	if (lost->why < why)
		return true;
	return lost->why == why ? best < other : best == other;
}

/* Do the policies prefer the NI or gateway @c for what goes to @dst? */
static bool should_be_preferred(const struct reading *r,
				const struct ulnet_path_candidate *c,
				const struct ulnet_nid *dst)
{
	bool gateway = c->kind == LNET_PATH_GATEWAY;

	for (int i = 0; i < r->n; i++) {
		const struct ulnet_policy *p = &r->all[i];

		if (matches(gateway ? p->rte : p->src, &c->nid, false) &&
		    (matches(p->dst, dst, false) ||
		     (gateway && matches(p->dst, dst, true))))
			return true;
	}
	return false;
}

/* As agrees(), for preference: if a later criterion has decided, both
 * candidates are preferred, or neither is. */
static bool agrees_in_preference(const struct reading *r,
				 const struct ulnet_path_candidate *chosen,
				 const struct ulnet_path_candidate *lost,
				 const struct ulnet_nid *dst)
{
	bool gateway = lost->kind == LNET_PATH_GATEWAY;
	enum ulnet_path_why why =
		gateway ? LNET_PATH_ROUTE_PREFERRED : LNET_PATH_PREFERRED;
	bool best = should_be_preferred(r, chosen, dst);
	bool other = should_be_preferred(r, lost, dst);

	if (lost->why < why)
		return true;
	return lost->why == why ? best && !other : best == other;
}

static bool has_lost(const struct ulnet_path_candidate *c)
{
	/* The only NI that a peer knows is chosen without a comparison. */
	return c->why != LNET_PATH_CHOSEN && c->why < LNET_PATH_CRITERIA &&
	       c->why != LNET_PATH_PREFERRED;
}

/* Checks that the policies agree with the reason why @lost was not chosen.
 * @dst: the destination, if its peer has no other NID; else NULL. */
static void candidate_check(struct lnet_sim *sim, const struct reading *r,
			    const struct ulnet_path_candidate *chosen,
			    const struct ulnet_path_candidate *lost,
			    const struct ulnet_nid *dst)
{
	char text[256];

	bool gateway = lost->kind == LNET_PATH_GATEWAY;

	if ((gateway || agrees(r, chosen, lost, LNET_PATH_PRIORITY)) &&
	    (lost->kind != LNET_PATH_NET ||
	     agrees(r, chosen, lost, LNET_PATH_PEER_PRIORITY)) &&
	    (!dst || (!gateway && lost->kind != LNET_PATH_LOCAL_NI) ||
	     agrees_in_preference(r, chosen, lost, dst)))
		return;
	lnet_path_candidate_format(lost, text, sizeof(text));
	lnet_sim_fail(sim, "policies say otherwise: %s", text);
}

/* Returns the chosen candidate of the same kind as c[i]; candidates of one kind
 * are next to each other. */
static const struct ulnet_path_candidate *chosen_beside(
	const struct ulnet_path_candidate *c, int n, int i)
{
	int k = i;

	while (k > 0 && c[k - 1].kind == c[i].kind)
		k--;
	for (; k < n && c[k].kind == c[i].kind; k++)
		if (c[k].why == LNET_PATH_CHOSEN)
			return &c[k];
	return NULL;
}

void policies_check(struct lnet_sim *sim, struct lnet *node,
		    const struct ulnet_nid *dst, bool only)
{
	struct ulnet_path_candidate c[CANDIDATES];
	struct ulnet_path path;
	struct reading r;
	int n = lnet_path_explain(node, NULL, dst, &path, c, CANDIDATES);
	bool routed = false;

	r.n = lnet_policies(node, r.all, POLICIES);
	for (int i = 0; i < n && i < CANDIDATES; i++)
		routed |= c[i].kind == LNET_PATH_GATEWAY;
	if (n > CANDIDATES)
		lnet_sim_fail(sim, "a path has %d candidates", n);
	for (int i = 0; i < n && n <= CANDIDATES; i++) {
		const struct ulnet_path_candidate *chosen =
			chosen_beside(c, n, i);

		/* With a gateway, local NIs are preferred for the gateway, not
		 * for @dst. */
		bool preferred =
			only && (!routed || c[i].kind == LNET_PATH_GATEWAY);

		if (has_lost(&c[i]) && chosen)
			candidate_check(sim, &r, chosen, &c[i],
					preferred ? dst : NULL);
	}
}
