/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/path.h"

#include <errno.h>
#include <string.h>

#include "config/item.h"
#include "config/request.h"
#include "config/show.h"
#include "ulnet/path.h"

#define CANDIDATES_MIN 16 /* room for so many at first */

const char *const path_keys[] = { "nid", "source", NULL };

/* By what a candidate lost; of what is no criterion, what is the matter. */
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

struct explained {
	struct ulnet_path path;
	struct ulnet_path_candidate *candidates;
	int n;
};

/* e->candidates is to be freed in any case. */
static int explain(struct lnet *node, const struct ulnet_nid *src,
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

/* ---- showing ---- */

static void show_local_ni(struct lnet *node, const struct ulnet_nid *nid,
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

/* Nothing is known of a peer that was never spoken to. */
static void show_peer_ni(struct lnet *node, const struct ulnet_nid *nid,
			 struct tree *out)
{
	struct ulnet_peer_info info = { 0 };

	show_nid(out, "nid", nid);
	if (lnet_peer_info(node, nid, &info))
		return;
	tree_int(out, "health", info.health);
	tree_int(out, "credits", info.credits);
}

static void show_net(struct lnet *node, const struct ulnet_nid *nid,
		     struct tree *out)
{
	char text[LNET_NIDSTR_SIZE];

	(void)node;
	tree_text(out, "net type", TREE_PLAIN,
		  lnet_net_format(lnet_nid_net(nid), text, sizeof(text)));
	if (!lnet_nid_is_nid4(nid))
		tree_text(out, "family", TREE_PLAIN, "IPv6");
}

/* NIs of the peer itself come before local NIs then: the latter lead to the
 * gateway. */
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
	bool of_gateway; /* of peer NIs: which ones */
	void (*show)(struct lnet *node, const struct ulnet_nid *nid,
		     struct tree *out);
} kinds[] = {
	{ "gateway(s)", LNET_PATH_GATEWAY, false, show_peer_ni },
	{ "net", LNET_PATH_NET, false, show_net },
	{ "local NI(s)", LNET_PATH_LOCAL_NI, false, show_local_ni },
	{ "gateway ni", LNET_PATH_PEER_NI, true, show_peer_ni },
	{ "peer ni", LNET_PATH_PEER_NI, false, show_peer_ni },
};

static void show_why(const struct ulnet_path_candidate *c, struct tree *out)
{
	tree_text(out, "why", TREE_PLAIN, whys[c->why]);
	if (c->own == c->best)
		return;
	tree_int(out, "it has", c->own);
	tree_int(out, "the chosen one has", c->best);
}

static void show_candidates(struct lnet *node, const struct explained *e,
			    struct tree *out)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct tree *seq = NULL, *item;

		for (int i = 0; i < e->n; i++) {
			const struct ulnet_path_candidate *c =
				&e->candidates[i];

			if (c->kind != kinds[k].kind ||
			    (c->kind == LNET_PATH_PEER_NI &&
			     is_of_gateway(e, i) != kinds[k].of_gateway))
				continue;
			if (!seq)
				seq = tree_seq(out, kinds[k].key);
			item = tree_map(seq, NULL);
			kinds[k].show(node, &c->nid, item);
			show_why(c, item);
		}
	}
}

static void show_path(struct request *r, const struct ulnet_nid *dst,
		      const struct explained *e)
{
	struct tree *out =
		tree_map(tree_seq(answer_output(r->answer), "path"), NULL);
	const struct ulnet_path *p = &e->path;

	show_nid(out, "destination", dst);
	tree_text(out, "situation", TREE_PLAIN, p->situation);
	if (!p->status) {
		show_nid(out, "from", &p->local);
		show_nid(out, "to", &p->peer);
		if (!lnet_nid_is_any(&p->gateway))
			show_nid(out, "gateway", &p->gateway);
	}
	show_candidates(r->control->node, e, out);
}

void path_show(struct request *r)
{
	const struct tree *nid = tree_get(r->args, "nid");
	const struct tree *source = tree_get(r->args, "source");
	struct explained e = { .candidates = NULL };
	struct ulnet_nid src = LNET_NID_ANY, dst;
	int rc;

	if (!nid) {
		scope_fail(&r->scope, r->args, -EINVAL, "nid is missing");
		return;
	}
	if (item_nid(&r->scope, nid, &dst) ||
	    (source && item_nid(&r->scope, source, &src)))
		return;
	rc = explain(r->control->node, &src, &dst, &e);
	if (!rc) {
		show_path(r, &dst, &e);
		rc = e.path.status;
	}
	if (rc)
		scope_fail(&r->scope, nid, rc, "no path to %s: %s", nid->text,
			   rc == -EINVAL ? e.path.situation : strerror(-rc));
	free(e.candidates);
}
