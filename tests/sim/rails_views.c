/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What nodes know of each other, while administrators change it, rightly and
 * wrongly. Once they have undone their changes, and no fault is left:
 *	- nodes that use discovery, and send to each other, know each other as
 *	  multi-rail, with all NIDs and the right primary one, and no other peer
 *	  has one of these NIDs;
 *	- everything that messages can choose among is in full health.
 */
#include <stdlib.h>
#include <ulnet/path.h>

#include "tests/sim/rpc_run.h"

static struct member *some_member(struct run *r)
{
	return &r->members[rnd(r, r->n)];
}

static struct lnet *node_of(const struct member *m)
{
	return lnet_sim_node(m->run->sim, m->index);
}

/* ---- administrators ---- */

/* Adds another node as a peer, with some or all of its NIDs. */
static void peer_add(struct run *r)
{
	struct member *m = some_member(r), *of = some_member(r);
	unsigned int n = 1 + (unsigned int)rnd(r, of->nnids);
	unsigned int first = (unsigned int)rnd(r, of->nnids);
	struct ulnet_nid nids[RAILS_MAX];

	if (!node_of(m) || m == of)
		return;
	for (unsigned int i = 0; i < n; i++)
		nids[i] = of->nids[(first + i) % of->nnids];
	if (!lnet_peer_add(node_of(m), nids, n, n > 1 || chance(r, 50)))
		tally_count(r, PEER_IS_ADDED);
}

/* Returns all peers that @node knows, and their number; the caller frees them.
 */
static struct ulnet_peer_info *peers_of(struct lnet *node, int *n_p)
{
	struct ulnet_peer_info *infos;
	int n = lnet_peers(node, NULL, 0);

	infos = calloc((size_t)n + 1, sizeof(*infos));
	if (!infos)
		abort();
	*n_p = lnet_peers(node, infos, (unsigned int)n);
	if (*n_p > n)
		abort(); /* nothing can have changed between the two calls */
	return infos;
}

/* Deletes one of the peers that were added to @m, or @all. */
static void peers_del(struct member *m, bool all)
{
	struct ulnet_peer_info *infos;
	int n;

	if (!node_of(m))
		return;
	infos = peers_of(node_of(m), &n);
	for (int i = 0; i < n; i++) {
		if (!infos[i].configured ||
		    !lnet_nid_eq(&infos[i].nid, &infos[i].primary))
			continue;
		if (lnet_peer_del(node_of(m), &infos[i].primary, NULL, 0))
			continue;
		tally_count(m->run, PEER_IS_DELETED);
		if (!all)
			break;
	}
	free(infos);
}

static void discovery_set(struct member *m, enum ulnet_discovery mode)
{
	static const int64_t values[] = { [LNET_DISCOVERY_OFF] = 0,
					  [LNET_DISCOVERY_ON] = 1,
					  [LNET_DISCOVERY_VERIFY] = 2 };

	if (node_of(m) &&
	    !lnet_setting_set(node_of(m), "discovery", values[mode]))
		tally_count(m->run, DISCOVERY_IS_SET);
}

static enum ulnet_discovery some_mode(struct run *r)
{
	static const enum ulnet_discovery modes[] = { LNET_DISCOVERY_ON,
						      LNET_DISCOVERY_OFF,
						      LNET_DISCOVERY_VERIFY };

	return modes[rnd(r, 3)];
}

/* An administrator who adds wrong NIDs for a node may cost calls: this does not
 * happen in runs in which no call may be lost. */
void views_disturb(struct run *r)
{
	if (r->weather == WEATHER_SPARED)
		return;
	switch (rnd(r, 4)) {
	case 0:
		peer_add(r);
		break;
	case 1:
		peers_del(some_member(r), false);
		break;
	default:
		discovery_set(some_member(r), some_mode(r));
		break;
	}
}

void views_heal(struct run *r)
{
	for (unsigned int i = 0; i < r->n; i++) {
		discovery_set(&r->members[i], r->members[i].discovery);
		peers_del(&r->members[i], true);
	}
}

/* Draws a mode of discovery for all nodes, mostly the same for all. */
void views_plan(struct run *r)
{
	bool same = r->weather == WEATHER_SPARED || chance(r, 70);
	enum ulnet_discovery mode =
		r->weather == WEATHER_SPARED || chance(r, 75)
			? LNET_DISCOVERY_ON
			: some_mode(r);

	for (unsigned int i = 0; i < r->n; i++)
		r->members[i].discovery = same ? mode : some_mode(r);
}

/* ---- do they know each other? ---- */

struct complaint {
	const struct member *m;
	struct ulnet_nid nid;
	const char *what;
	/* what the node knows, if it knows the peer */
	struct ulnet_peer_info info;
};

static bool complain(struct complaint *c, const struct member *m,
		     const struct ulnet_nid *nid, const char *what)
{
	*c = (struct complaint){ .m = m, .nid = *nid, .what = what };
	if (lnet_peer_info(node_of(m), nid, &c->info))
		c->info.state_name = "unknown";
	return false;
}

/* Lists the NIs that a node announces, without 0@lo, which comes first. */
static unsigned int nis_of(struct lnet *node, struct ulnet_ni_info *nis)
{
	unsigned int n = 0;

	while (n < RAILS_MAX && !lnet_ni_info(node, n + 1, &nis[n]))
		n++;
	return n;
}

static bool has_nid(const struct ulnet_ni_info *nis, unsigned int n,
		    const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < n; i++)
		if (lnet_nid_eq(&nis[i].nid, nid))
			return true;
	return false;
}

static bool nothing_else(const struct member *m,
			 const struct ulnet_ni_info *nis, unsigned int nnis,
			 struct complaint *c)
{
	bool good = true;
	int n;
	struct ulnet_peer_info *infos = peers_of(node_of(m), &n);

	for (int i = 0; i < n && good; i++)
		if (lnet_nid_eq(&infos[i].primary, &nis[0].nid) &&
		    !has_nid(nis, nnis, &infos[i].nid))
			good = complain(c, m, &infos[i].nid,
					"is taken for another node's");
	free(infos);
	return good;
}

static bool knows(const struct member *m, const struct member *of,
		  struct complaint *c)
{
	struct ulnet_ni_info nis[RAILS_MAX];
	unsigned int n = nis_of(node_of(of), nis);
	struct ulnet_peer_info info;

	for (unsigned int i = 0; i < n; i++) {
		const struct ulnet_nid *nid = &nis[i].nid;

		if (lnet_peer_info(node_of(m), nid, &info))
			return complain(c, m, nid, "is not known");
		if (!lnet_nid_eq(&info.primary, &nis[0].nid))
			return complain(c, m, nid,
					"is known by a wrong primary NID");
		if (!info.multi_rail)
			return complain(c, m, nid,
					"is not taken for multi-rail");
	}
	return nothing_else(m, nis, n, c);
}

/* Returns the node that node @i sends to and hears from. */
static struct member *neighbor(struct run *r, unsigned int i)
{
	return &r->members[(i + 1) % r->n];
}

static void on_discovered(void *arg, int status)
{
	(void)arg;
	(void)status; /* the discovery continues in the background */
}

static void ask_for(struct member *m, const struct member *to)
{
	const struct ulnet_nid *nid = &to->nids[rnd(m->run, to->nnids)];
	int rc = lnet_discover(node_of(m), nid, 0, on_discovered, NULL);

	if (rc)
		lnet_sim_fail(m->run->sim, "node %u cannot ask node %u: %d",
			      m->index, to->index, rc);
}

void views_meet(struct run *r)
{
	for (unsigned int i = 0; i < r->n; i++) {
		ask_for(&r->members[i], neighbor(r, i));
		ask_for(neighbor(r, i), &r->members[i]);
	}
}

static bool discovers(const struct member *m)
{
	return m->discovery == LNET_DISCOVERY_ON;
}

static bool are_known(struct run *r, struct complaint *c)
{
	for (unsigned int i = 0; i < r->n; i++) {
		const struct member *a = &r->members[i], *b = neighbor(r, i);

		if (discovers(a) && discovers(b) &&
		    (!knows(a, b, c) || !knows(b, a, c)))
			return false;
	}
	return true;
}

/* ---- are they in full health? ---- */

static bool nis_are_well(const struct member *m, struct complaint *c)
{
	struct ulnet_ni_info nis[RAILS_MAX];
	unsigned int n = nis_of(node_of(m), nis);

	for (unsigned int i = 0; n > 1 && i < n; i++)
		if (nis[i].health != LNET_HEALTH_MAX)
			return complain(c, m, &nis[i].nid,
					"its own, is not in full health");
	return true;
}

static unsigned int nis_of_peer(const struct ulnet_peer_info *infos, int n,
				const struct ulnet_nid *primary)
{
	unsigned int nis = 0;

	for (int i = 0; i < n; i++)
		nis += lnet_nid_eq(&infos[i].primary, primary);
	return nis;
}

static bool member_has(const struct member *m, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < m->nnids; i++)
		if (lnet_nid_eq(&m->nids[i], nid))
			return true;
	return false;
}

/* Does this NID belong to another node? Otherwise only the liar has named it,
 * perhaps while @m did not have it. */
static bool is_anothers(const struct member *m,
			const struct ulnet_peer_info *info)
{
	const struct run *r = m->run;

	for (unsigned int i = 0; i < r->n; i++)
		if (member_has(&r->members[i], &info->nid))
			return i != m->index &&
			       member_has(&r->members[i], &info->primary);
	return false;
}

static bool peers_are_well(const struct member *m, struct complaint *c)
{
	bool good = true;
	int n;
	struct ulnet_peer_info *infos = peers_of(node_of(m), &n);

	for (int i = 0; i < n && good; i++)
		if (infos[i].health != LNET_HEALTH_MAX && infos[i].multi_rail &&
		    is_anothers(m, &infos[i]) &&
		    nis_of_peer(infos, n, &infos[i].primary) > 1)
			good = complain(c, m, &infos[i].nid,
					"a peer's, is not in full health");
	free(infos);
	return good;
}

static bool are_well(const struct run *r, struct complaint *c)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (!nis_are_well(&r->members[i], c) ||
		    !peers_are_well(&r->members[i], c))
			return false;
	return true;
}

/* ---- both checks ---- */

bool views_are_right(struct run *r, bool say)
{
	struct complaint c = { 0 };
	char nid[LNET_NIDSTR_SIZE], primary[LNET_NIDSTR_SIZE];
	bool known = are_known(r, &c);

	if (known && are_well(r, &c))
		return true;
	if (say)
		lnet_sim_fail(r->sim, "node %u: %s %s: it is of %s, %s, %s",
			      c.m->index,
			      lnet_nid_format(&c.nid, nid, sizeof(nid)), c.what,
			      lnet_nid_format(&c.info.primary, primary,
					      sizeof(primary)),
			      c.info.state_name,
			      c.info.multi_rail ? "multi-rail" : "single-rail");
	return false;
}
