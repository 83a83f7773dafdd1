/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "config/item.h"

/* In "peer state", as kernel nodes have it: the peer was configured. */
#define STATE_CONFIGURED (1 << 3)

static const char *const add_keys[] = { "prim_nid",  "nids",	"non_mr",
					"lock_prim", "ip2nets", NULL };
static const char *const del_keys[] = { "prim_nid", "nids", "lock_prim",
					"ip2nets", NULL };

/* What kernel nodes' lnetctl takes, and why it is refused here. */
static const char *const refused[][2] = {
	{ "lock_prim", "discovery changes no NID of an added peer in any case" },
	{ "ip2nets", "name its NIDs" },
};

static const char *const file_keys[] = { "primary nid", "Multi-Rail",
					 "peer state",	"state name",
					 "peer ni",	"seq_no",
					 NULL };

static int peer_nid(const struct scope *s, const struct tree *t,
		    struct ulnet_nid *nid_p)
{
	int rc = item_nid(s, t, nid_p);

	if (!rc && lnet_nid_is_lo(nid_p))
		rc = scope_fail(s, t, -EINVAL, "no peer has NID '%s'", t->text);
	return rc;
}

/* The NID in a list of them: itself, or that of a mapping. */
static int listed_nid(const struct scope *s, const struct tree *t,
		      struct ulnet_nid *nid_p)
{
	if (t->kind == TREE_SCALAR)
		return peer_nid(s, t, nid_p);
	if (!tree_get(t, "nid"))
		return scope_misread(s, t, "nid is missing");
	return peer_nid(s, tree_get(t, "nid"), nid_p);
}

/* @list: of NIDs beside the primary one, or with it; NULL: none is given. */
static int wish_read(const struct scope *s, bool add,
		     const struct tree *primary, const struct tree *list,
		     struct peer_wish **wish_p)
{
	const struct tree *t = NULL;
	struct ulnet_nid nid;
	struct peer_wish *w;
	int rc = peer_nid(s, primary, &nid);

	if (rc)
		return rc;
	w = peer_wish_new(add ? PEER_ADD : PEER_DEL, list ? list->count + 2 : 1,
			  &nid);
	if (!w) {
		scope_fail(s, primary, -ENOMEM, "no memory");
		return -ENOMEM;
	}
	while (!rc && list && (t = list_next(list, t))) {
		rc = listed_nid(s, t, &nid);
		/* Without its primary NID a peer is none. */
		if (!rc && !peer_wish_nid(w, &nid) && !add)
			w->kind = PEER_DEL_WHOLE;
	}
	if (!add && w->n == 1)
		w->kind = PEER_DEL_WHOLE;
	if (rc)
		free(w);
	else
		*wish_p = w;
	return rc;
}

static int refuse(const struct scope *s, const struct tree *args)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(refused); i++) {
		const struct tree *t = tree_get(args, refused[i][0]);

		if (t)
			return scope_fail(s, t, -EOPNOTSUPP,
					  "%s: not supported: %s",
					  refused[i][0], refused[i][1]);
	}
	return 0;
}

int peer_args(struct plan *plan, const struct scope *s, const struct tree *args,
	      bool add)
{
	const struct tree *primary = tree_get(args, "prim_nid");
	const struct tree *non_mr = tree_get(args, "non_mr");
	struct peer_wish *w;
	bool single = false;
	int rc = scope_keys(s, args, add ? add_keys : del_keys);

	if (!rc)
		rc = refuse(s, args);
	if (rc)
		return rc;
	if (!primary)
		return scope_fail(s, args, -EINVAL, "prim_nid is missing");
	if (non_mr)
		rc = scope_bool(s, non_mr, &single);
	if (!rc)
		rc = wish_read(s, add, primary, tree_get(args, "nids"), &w);
	if (rc)
		return rc;
	w->multi_rail = !single;
	return plan_peer(plan, s, args, w);
}

/* What a node has learned by itself is no configuration: it will learn that
 * again. */
static int is_configured(const struct scope *s, const struct tree *item,
			 bool *configured_p)
{
	const struct tree *state = tree_get(item, "peer state");
	int64_t bits = STATE_CONFIGURED;
	int rc = state ? scope_number(s, state, 0, UINT32_MAX, &bits) : 0;

	*configured_p = bits & STATE_CONFIGURED;
	return rc;
}

static bool is_ours(struct lnet *node, const struct ulnet_nid *nid)
{
	struct ulnet_ni_info info;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++)
		if (lnet_nid_eq(&info.nid, nid))
			return true;
	return false;
}

int peer_file_item(struct plan *plan, const struct scope *s,
		   const struct tree *item, bool add)
{
	const struct tree *primary = tree_get(item, "primary nid");
	const struct tree *multi_rail = tree_get(item, "Multi-Rail");
	const struct tree *nis = tree_get(item, "peer ni");
	bool multi = true, configured = false;
	struct peer_wish *w;
	int rc = scope_keys(s, item, file_keys);

	if (rc)
		return rc;
	if (!primary)
		return scope_misread(s, item, "primary nid is missing");
	rc = is_configured(s, item, &configured);
	if (!rc && multi_rail)
		rc = scope_bool(s, multi_rail, &multi);
	if (!rc && nis)
		rc = scope_seq(s, nis);
	if (!rc)
		rc = wish_read(s, add, primary, nis, &w);
	if (rc)
		return rc;
	w->multi_rail = multi;
	w->may_be_us = true;
	/* Now, because the same file may delete our NI with that NID first. */
	if (!add && is_ours(plan->node, &w->nids[0]))
		w->kind = PEER_STAYS_US;
	if (configured)
		return plan_peer(plan, s, item, w);
	free(w);
	return 0;
}
