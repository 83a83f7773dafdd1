/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/item.h"

/* In "peer state", as kernel nodes have it: the peer was configured. */
#define STATE_CONFIGURED (1 << 3)

static const char *const add_keys[] = { "prim_nid",  "nids",	"non_mr",
					"lock_prim", "ip2nets", NULL };
static const char *const del_keys[] = { "prim_nid", "nids", "lock_prim",
					"ip2nets", NULL };

/* What kernel nodes' lnetctl takes, and why it is refused here. */
static const char *const refused[][2] = {
	{ "lock_prim",
	  "discovery changes no NID of an added peer in any case" },
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

/* NIDs that ranges of one request may stand for. */
#define RANGES_MAX 256

/* The NIDs beside the primary one. */
struct others {
	unsigned int n, ranged; /* of them from ranges */
	struct ulnet_nid nids[];
};

static int put_range(const struct scope *s, const struct tree *t,
		     struct others *o)
{
	struct ulnet_nid *nids = &o->nids[o->n];
	struct ulnet_nidlist *list;
	size_t n = 0;
	int rc = lnet_nidlist_parse(t->text, &list, NULL);

	if (rc)
		return scope_fail(s, t, rc, "cannot parse NID '%s'", t->text);
	rc = lnet_nidlist_expand(list, nids, RANGES_MAX - o->ranged, &n);
	lnet_nidlist_free(list);
	if (rc)
		return scope_fail(s, t, rc, "'%s': ranges of more than %d NIDs",
				  t->text, RANGES_MAX);
	for (unsigned int i = 0; i < n; i++)
		if (lnet_nid_is_lo(&nids[i]))
			return scope_fail(s, t, -EINVAL,
					  "no peer has NID '0@lo'");
	o->n += (unsigned int)n;
	o->ranged += (unsigned int)n;
	return 0;
}

/* One item of a list of NIDs: one, a range such as 10.0.0.[1-3]@tcp, or a
 * mapping with a NID. */
static int put_nids(const struct scope *s, const struct tree *t,
		    struct others *o)
{
	int rc;

	if (t->kind == TREE_SCALAR && strpbrk(t->text, "[*"))
		return put_range(s, t, o);
	if (t->kind != TREE_SCALAR && !tree_get(t, "nid"))
		return scope_misread(s, t, "nid is missing");
	rc = peer_nid(s, t->kind == TREE_SCALAR ? t : tree_get(t, "nid"),
		      &o->nids[o->n]);
	o->n += !rc;
	return rc;
}

/* The NIDs of two lists; NULL: there is none. To be freed. */
static int others_read(const struct scope *s, const struct tree *const lists[2],
		       struct others **others_p)
{
	size_t room = RANGES_MAX;
	struct others *o;
	int rc = 0;

	for (unsigned int i = 0; i < 2; i++)
		room += lists[i] ? lists[i]->count + 1 : 0;
	o = calloc(1, sizeof(*o) + room * sizeof(o->nids[0]));
	if (!o) {
		scope_fail(s, NULL, -ENOMEM, "no memory");
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < 2; i++) {
		const struct tree *t = NULL;

		while (!rc && lists[i] && (t = list_next(lists[i], t)))
			rc = put_nids(s, t, o);
	}
	if (rc)
		free(o);
	else
		*others_p = o;
	return rc;
}

/* @lists: of NIDs beside the primary one, or with it; NULL: none is given. */
static int wish_read(const struct scope *s, bool add,
		     const struct tree *primary,
		     const struct tree *const lists[2],
		     struct peer_wish **wish_p)
{
	struct ulnet_nid nid;
	struct peer_wish *w;
	struct others *o = NULL;
	int rc = peer_nid(s, primary, &nid);

	if (!rc)
		rc = others_read(s, lists, &o);
	if (rc)
		return rc;
	w = peer_wish_new(add ? PEER_ADD : PEER_DEL, o->n + 1, &nid);
	/* Without its primary NID a peer is none. */
	for (unsigned int i = 0; w && i < o->n; i++)
		if (!peer_wish_nid(w, &o->nids[i]) && !add)
			w->kind = PEER_DEL_WHOLE;
	free(o);
	if (!w) {
		scope_fail(s, primary, -ENOMEM, "no memory");
		return -ENOMEM;
	}
	if (!add && w->n == 1)
		w->kind = PEER_DEL_WHOLE;
	*wish_p = w;
	return 0;
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
	const struct tree *const lists[2] = { tree_get(args, "nids"),
					      tree_get(args, "ip2nets") };
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
		rc = wish_read(s, add, primary, lists, &w);
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
	const struct tree *const lists[2] = { nis, NULL };
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
		rc = wish_read(s, add, primary, lists, &w);
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
