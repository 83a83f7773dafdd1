/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that show a node's inner state: "debug recovery", "debug peer",
 * "cpt-of-nid", "path show". */
#include <errno.h>

#include "config/request/request.h"
#include "ulnet/path.h"

/* ---- recovery ---- */

static void debug_add_nid(struct tree *out, const char *section,
			  const struct ulnet_nid *nid)
{
	struct tree *map = tree_get(out, section);
	char key[24];

	if (!map)
		map = tree_map(out, section);
	snprintf(key, sizeof(key), "nid-%u", map ? map->count : 0);
	show_nid(map, key, nid);
}

static int debug_recovery_of_nis(struct lnet *node, struct tree *out)
{
	struct ulnet_ni_info info;
	int rc;

	for (unsigned int i = 0; !(rc = lnet_ni_info(node, i, &info)); i++)
		if (info.recovering)
			debug_add_nid(out, "Local NI recovery", &info.nid);
	return rc == -ENOENT ? 0 : rc;
}

static int recovery_of_peers(struct lnet *node, struct tree *out)
{
	struct peer_list list;
	int rc = peer_list_read(node, &list);

	if (rc)
		return rc;
	for (unsigned int i = 0; i < list.n; i++)
		if (list.infos[i].recovering)
			debug_add_nid(out, "Peer NI recovery",
				      &list.infos[i].nid);
	peer_list_free(&list);
	return 0;
}

void debug_recovery(struct request *r)
{
	struct lnet *node = r->control->node;
	struct tree *out = answer_output(r->answer);
	bool local = false, peer = false;
	int rc = 0;

	if (scope_bool(&r->scope, tree_get(r->args, "local"), &local) ||
	    scope_bool(&r->scope, tree_get(r->args, "peer"), &peer))
		return;
	/* Without "local" and "peer" both kinds are shown. */
	if (local || !peer)
		rc = debug_recovery_of_nis(node, out);
	if (!rc && (peer || !local))
		rc = recovery_of_peers(node, out);
	cannot_get(&r->scope, rc, "what recovers");
}

/* ---- one peer ---- */

/* The names of bits of "peer state", from the lowest on, as in kernel nodes. */
static const char *const state_bits[] = {
	"MULTI_RAIL",	 "NO_DISCOVERY",   "ROUTER_ENABLED", "CONFIGURED",
	"DISCOVERED",	 "REDISCOVER",	   "DISCOVERING",    "DATA_PRESENT",
	"NIDS_UPTODATE", "PING_SENT",	   "PUSH_SENT",	     "PING_FAILED",
	"PUSH_FAILED",	 "FORCE_PING",	   "FORCE_PUSH",     "RTR_NI_FORCE_DEL",
	"RTR_DISCOVERY", "RTR_DISCOVERED", "MARK_DELETION",  "MARK_DELETED",
	"LOCK_PRIMARY",	 "BAD_CONFIG",
};

static void debug_show_bits(struct tree *out, uint32_t state)
{
	struct tree *seq = tree_seq(out, "state bits");

	for (unsigned int i = 0; i < ARRAY_SIZE(state_bits); i++)
		if (state & UINT32_C(1) << i)
			tree_text(seq, NULL, TREE_PLAIN, state_bits[i]);
}

static void debug_show_ni(struct lnet *node, const struct ulnet_peer_info *info,
			  struct tree *nis)
{
	struct tree *ni = tree_map(nis, NULL);

	show_nid(ni, "nid", &info->nid);
	tree_text(ni, "state", TREE_PLAIN, debug_peer_ni_state(info));
	tree_text(ni, "by word", TREE_PLAIN, info->word);
	tree_int(ni, "health value", info->health);
	tree_uint(ni, "ping_count", info->pings_silent);
	tree_uint(ni, "next_ping", show_seconds_to(node, info->next_ping));
	tree_uint(ni, "refcount", info->refs);
	tree_uint(ni, "waiting for a credit", info->queued);
	tree_uint(ni, "waiting for a connection", info->connecting);
}

static void debug_show_peer(struct lnet *node,
			    const struct ulnet_peer_info *infos, unsigned int n,
			    struct tree *out)
{
	struct tree *peer = tree_item(out, "peer"), *nis;

	show_nid(peer, "primary nid", &infos->primary);
	tree_text(peer, "state", TREE_PLAIN, infos->state_name);
	tree_uint(peer, "peer state", infos->state);
	debug_show_bits(peer, infos->state);
	tree_uint(peer, "CPT", infos->cpt);
	nis = tree_seq(peer, "peer ni");
	for (unsigned int i = 0; i < n; i++)
		debug_show_ni(node, &infos[i], nis);
}

void debug_peer(struct request *r)
{
	const struct tree *nid;
	const struct ulnet_peer_info *infos;
	struct lnet *node = r->control->node;
	struct peer_list list;
	struct ulnet_nid n;
	unsigned int span;
	int rc;

	if (scope_need(&r->scope, r->args, "nid", &nid) ||
	    scope_nid(&r->scope, nid, &n))
		return;
	rc = peer_list_read(node, &list);
	span = rc ? 0 : peer_list_find(&list, &n, &infos);
	if (span)
		debug_show_peer(node, infos, span, answer_output(r->answer));
	else
		scope_fail(&r->scope, nid, rc ? rc : -ENOENT,
			   "cannot get peer information of %s: %s", nid->text,
			   rc ? strerror(-rc) : "no such peer");
	if (!rc)
		peer_list_free(&list);
}

/* ---- cpt-of-nid ---- */

void debug_cpt_of_nid(struct request *r)
{
	const struct tree *list = tree_get(r->args, "nids"), *t = NULL;
	struct nids nids = { NULL, 0, 0, 0 };
	struct tree *item;
	int rc = 0;

	while (!rc && (t = list_next(list, t)))
		rc = scope_nids(&r->scope, t, &nids);
	if (!rc && !nids.n)
		rc = scope_fail(&r->scope, r->args, -EINVAL, "nids is missing");
	for (unsigned int i = 0; !rc && i < nids.n; i++) {
		item = tree_item(answer_output(r->answer), "cpt-of-nid");
		show_nid(item, "nid", &nids.nids[i]);
		tree_int(item, "cpt",
			 lnet_cpt_of(r->control->node, &nids.nids[i]));
	}
	free(nids.nids);
}

/* ---- path show ---- */

#define CANDIDATES_MIN 16 /* room for candidates at first */

/* The criterion by which a candidate was not chosen, or another reason. */
static const char *const whys[LNET_PATH_WHY_COUNT] = {
	[LNET_PATH_CHOSEN] = "chosen",
	[LNET_PATH_PEER_UP] = "state at the peer",
	[LNET_PATH_UNTRIED] = "untried paths",
	[LNET_PATH_PEER_HEALTH] = "health of the peer",
	[LNET_PATH_PEER_PRIORITY] = "priority at the peer",
	[LNET_PATH_ROUTE_PREFERRED] = "preference of the gateway",
	[LNET_PATH_ROUTE_PRIORITY] = "priority of the route",
	[LNET_PATH_HOPS] = "hops",
	[LNET_PATH_HEALTH] = "health",
	[LNET_PATH_NAMED] = "name",
	[LNET_PATH_PRIORITY] = "priority",
	[LNET_PATH_LESS_TRIED] = "number of tries",
	[LNET_PATH_PREFERRED] = "preference",
	[LNET_PATH_CONNECTED] = "connection",
	[LNET_PATH_NEAR] = "distance",
	[LNET_PATH_CREDITS] = "credits",
	[LNET_PATH_PEER_TURN] = "turn at the peer",
	[LNET_PATH_TURN] = "turn",
	[LNET_PATH_DOWN] = "down",
	[LNET_PATH_NOT_ASKED] = "not asked for",
	[LNET_PATH_UNREACHED] = "no net of this node",
};

/* A path, and the candidates among which it was selected. */
struct explained {
	struct ulnet_path path;
	struct ulnet_path_candidate *candidates;
	int n;
};

/* Explains how a path from @src to @dst is selected. The caller frees
 * e->candidates, even after an error. */
static int debug_explain(struct lnet *node, const struct ulnet_nid *src,
			 const struct ulnet_nid *dst, struct explained *e)
{
	struct ulnet_path_candidate *more;
	int room = 0;

	for (e->n = CANDIDATES_MIN; e->n > room;) {
		room = e->n;
		more = realloc(e->candidates, (size_t)room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		e->candidates = more;
		e->n = lnet_path_explain(node, src, dst, &e->path, more,
					 (unsigned int)room);
	}
	return MIN(e->n, 0);
}

static void path_show_local_ni(struct lnet *node, const struct ulnet_nid *nid,
			       struct tree *out)
{
	struct ulnet_ni_info info;

	show_nid(out, "nid", nid);
	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++) {
		if (!lnet_nid_eq(&info.nid, nid))
			continue;
		tree_int(out, "health", info.health);
		tree_int(out, "credits", info.credits);
		return;
	}
}

/* Shows an NI of a peer. Of a peer to which nothing was ever sent, only the NID
 * is known. */
static void path_show_peer_ni(struct lnet *node, const struct ulnet_nid *nid,
			      struct tree *out)
{
	struct ulnet_peer_info info = { 0 };

	show_nid(out, "nid", nid);
	if (lnet_peer_info(node, nid, &info))
		return;
	tree_int(out, "health", info.health);
	tree_int(out, "credits", info.credits);
}

static void path_show_net(struct lnet *node, const struct ulnet_nid *nid,
			  struct tree *out)
{
	char text[LNET_NIDSTR_SIZE];

	(void)node;
	tree_text(out, "net type", TREE_PLAIN,
		  lnet_net_format(lnet_nid_net(nid), text, sizeof(text)));
	if (!lnet_nid_is_nid4(nid))
		tree_text(out, "family", TREE_PLAIN, "IPv6");
}

/* Candidate @i is an NI of a peer: of the gateway (true), or of the
 * destination? If the path has a gateway, the candidates are in this order: NIs
 * of the destination, local NIs, NIs of the gateway. */
static bool is_of_gateway(const struct explained *e, int i)
{
	if (lnet_nid_is_any(&e->path.gateway))
		return false;
	while (i-- > 0)
		if (e->candidates[i].kind == LNET_PATH_LOCAL_NI)
			return true;
	return false;
}

static const struct {
	const char *key;
	enum ulnet_path_kind kind;
	/* PEER_NI: NIs of the gateway (true), or of the destination */
	bool of_gateway;
	void (*show)(struct lnet *node, const struct ulnet_nid *nid,
		     struct tree *out);
} kinds[] = {
	{ "gateway(s)", LNET_PATH_GATEWAY, false, path_show_peer_ni },
	{ "net", LNET_PATH_NET, false, path_show_net },
	{ "local NI(s)", LNET_PATH_LOCAL_NI, false, path_show_local_ni },
	{ "gateway ni", LNET_PATH_PEER_NI, true, path_show_peer_ni },
	{ "peer ni", LNET_PATH_PEER_NI, false, path_show_peer_ni },
};

static void path_show_why(const struct ulnet_path_candidate *c,
			  struct tree *out)
{
	tree_text(out, "why", TREE_PLAIN, whys[c->why]);
	if (c->own == c->best)
		return;
	tree_int(out, "it has", c->own);
	tree_int(out, "the chosen one has", c->best);
}

static void path_show_candidates(struct lnet *node, const struct explained *e,
				 struct tree *out)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct tree *item;

		for (int i = 0; i < e->n; i++) {
			const struct ulnet_path_candidate *c =
				&e->candidates[i];

			if (c->kind != kinds[k].kind ||
			    (c->kind == LNET_PATH_PEER_NI &&
			     is_of_gateway(e, i) != kinds[k].of_gateway))
				continue;
			item = tree_item(out, kinds[k].key);
			kinds[k].show(node, &c->nid, item);
			path_show_why(c, item);
		}
	}
}

static void path_show_all(struct request *r, const struct ulnet_nid *dst,
			  const struct explained *e)
{
	struct tree *out = tree_item(answer_output(r->answer), "path");
	const struct ulnet_path *p = &e->path;

	show_nid(out, "destination", dst);
	tree_text(out, "situation", TREE_PLAIN, p->situation);
	if (!p->status) {
		show_nid(out, "from", &p->local);
		show_nid(out, "to", &p->peer);
		if (!lnet_nid_is_any(&p->gateway))
			show_nid(out, "gateway", &p->gateway);
	}
	path_show_candidates(r->control->node, e, out);
}

void path_show(struct request *r)
{
	const struct tree *nid;
	struct explained e = { .candidates = NULL };
	struct ulnet_nid src = LNET_NID_ANY, dst;
	int rc;

	if (scope_need(&r->scope, r->args, "nid", &nid) ||
	    scope_nid(&r->scope, nid, &dst) ||
	    scope_nid(&r->scope, tree_get(r->args, "source"), &src))
		return;
	rc = debug_explain(r->control->node, &src, &dst, &e);
	if (!rc) {
		path_show_all(r, &dst, &e);
		rc = e.path.status;
	}
	if (rc)
		scope_fail(&r->scope, nid, rc, "no path to %s: %s", nid->text,
			   rc == -EINVAL ? e.path.situation : strerror(-rc));
	free(e.candidates);
}
