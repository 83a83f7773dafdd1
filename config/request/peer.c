/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers as users write them, in "peer add", "peer del" and in files: into steps
 * of a plan. */
#include <errno.h>

#include "config/request/request.h"
#include "config/request/show.h"

/* In "peer state", as kernel nodes have it: the peer was configured. */
#define STATE_CONFIGURED (1 << 3)

static const char *const add_keys[] = { "prim_nid",  "nids",	"non_mr",
					"lock_prim", "ip2nets", NULL };
static const char *const del_keys[] = { "prim_nid", "nids", "lock_prim",
					"ip2nets", NULL };

static const char *const file_keys[] = { "primary nid", "Multi-Rail",
					 "peer state",	"state name",
					 "peer ni",	"seq_no",
					 NULL };

static int peer_nid(const struct scope *s, const struct tree *t,
		    struct ulnet_nid *nid_p)
{
	int rc = scope_nid(s, t, nid_p);

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
	if (!o)
		return scope_fail(s, NULL, -ENOMEM, "no memory");
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

/* One more NID. False: it is the first, and not there twice. */
static bool change_put(struct peer_change *c, const struct ulnet_nid *nid)
{
	if (c->n && lnet_nid_eq(nid, &c->nids[0]))
		return false;
	c->nids[c->n++] = *nid;
	return true;
}

/* @lists: of NIDs beside the primary one, or with it; NULL: none is given. */
static int change_read(const struct scope *s, bool add,
		       const struct tree *primary,
		       const struct tree *const lists[2],
		       struct peer_change **change_p)
{
	struct ulnet_nid nid;
	struct peer_change *c;
	struct others *o = NULL;
	int rc = peer_nid(s, primary, &nid);

	if (!rc)
		rc = others_read(s, lists, &o);
	if (rc)
		return rc;
	c = calloc(1, sizeof(*c) + (o->n + 1) * sizeof(c->nids[0]));
	if (!c) {
		free(o);
		return scope_fail(s, primary, -ENOMEM, "no memory");
	}
	c->kind = add ? PEER_ADD : PEER_DEL;
	change_put(c, &nid);
	/* Without its primary NID a peer is none. */
	for (unsigned int i = 0; i < o->n; i++)
		if (!change_put(c, &o->nids[i]) && !add)
			c->kind = PEER_DEL_WHOLE;
	free(o);
	if (!add && c->n == 1)
		c->kind = PEER_DEL_WHOLE;
	*change_p = c;
	return 0;
}

int peer_args(struct plan *plan, const struct scope *s, const struct tree *args,
	      bool add)
{
	const struct tree *primary = tree_get(args, "prim_nid");
	const struct tree *const lists[2] = { tree_get(args, "nids"),
					      tree_get(args, "ip2nets") };
	const struct tree *lock = tree_get(args, "lock_prim");
	struct peer_change *c;
	bool single = false;
	int rc = scope_keys(s, args, add ? add_keys : del_keys);

	if (!rc && lock)
		rc = scope_fail(s, lock, -EOPNOTSUPP,
				"lock_prim: not supported: discovery changes "
				"no NID of an added peer in any case");
	if (rc)
		return rc;
	if (!primary)
		return scope_fail(s, args, -EINVAL, "prim_nid is missing");
	rc = scope_get_bool(s, args, "non_mr", &single);
	if (!rc)
		rc = change_read(s, add, primary, lists, &c);
	if (rc)
		return rc;
	c->multi_rail = !single;
	return plan_peer(plan, s, args, c);
}

static bool peer_is_ours(struct lnet *node, const struct ulnet_nid *nid)
{
	struct ulnet_ni_info info;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++)
		if (lnet_nid_eq(&info.nid, nid))
			return true;
	return false;
}

int peer_item(struct plan *plan, const struct scope *s, const struct tree *item,
	      bool add)
{
	const struct tree *primary = tree_get(item, "primary nid");
	const struct tree *const lists[2] = { tree_get(item, "peer ni"), NULL };
	int64_t state = STATE_CONFIGURED;
	struct peer_change *c;
	bool multi = true;
	int rc = scope_keys(s, item, file_keys);

	if (rc)
		return rc;
	if (!primary)
		return scope_misread(s, item, "primary nid is missing");
	rc = scope_get_number(s, item, "peer state", 0, UINT32_MAX, &state);
	if (!rc)
		rc = scope_get_bool(s, item, "Multi-Rail", &multi);
	if (!rc && lists[0])
		rc = scope_seq(s, lists[0]);
	if (!rc)
		rc = change_read(s, add, primary, lists, &c);
	if (rc)
		return rc;
	c->multi_rail = multi;
	c->may_be_us = true;
	/* Now, because the same file may delete our NI with that NID first. */
	if (!add && peer_is_ours(plan->node, &c->nids[0]))
		c->kind = PEER_STAYS_US;
	if (state & STATE_CONFIGURED)
		return plan_peer(plan, s, item, c);
	/* What a node has learned by itself is no configuration: it will learn
	 * that again. */
	free(c);
	return 0;
}

/* ---- showing ---- */

void peer_show(struct request *r)
{
	struct show show = { .net = LNET_NET_ANY, .nid = LNET_NID_ANY };
	const struct tree *nid = tree_get(r->args, "nid");
	int rc;

	if (scope_get_verbose(&r->scope, r->args, &show.verbose) ||
	    scope_get_nid(&r->scope, r->args, "nid", &show.nid))
		return;
	rc = show_peers(r->control->node, &show, answer_output(r->answer));
	if (nid && rc == -ENOENT)
		scope_fail(&r->scope, nid, rc,
			   "cannot get peer information of %s: no such peer",
			   nid->text);
	else
		cannot_get(&r->scope, rc, "peer information");
}

int peer_show_item(struct lnet *node, const struct scope *s,
		   const struct tree *item)
{
	const struct tree *primary = tree_get(item, "primary nid");
	struct show show = { .verbose = 3, .net = LNET_NET_ANY };
	int rc;

	if (!primary)
		return scope_misread(s, item, "primary nid is missing");
	rc = scope_nid(s, primary, &show.nid);
	if (rc)
		return rc;
	rc = show_peers(node, &show, answer_output(s->answer));
	return rc ? scope_fail(s, primary, rc,
			       "cannot get peer information of %s: %s",
			       primary->text,
			       rc == -ENOENT ? "no such peer" : strerror(-rc))
		  : 0;
}
