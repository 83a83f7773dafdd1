/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers in requests and files: "peer add", "peer show", "peer:". */
#include <errno.h>

#include "config/request/request.h"

/* The bit of "peer state" by which kernel nodes say that a peer is
 * configured. */
#define STATE_CONFIGURED (1 << 3)

static const char *const add_keys[] = { "prim_nid",  "nids",	"non_mr",
					"lock_prim", "ip2nets", NULL };
static const char *const del_keys[] = { "prim_nid", "nids", "lock_prim",
					"ip2nets", NULL };

static const char *const file_keys[] = { "primary nid", "Multi-Rail",
					 "peer state",	"state name",
					 "peer ni",	"nids",
					 "seq_no",	NULL };

static int peer_nid(const struct scope *s, const struct tree *t,
		    struct ulnet_nid *nid_p)
{
	int rc = scope_nid(s, t, nid_p);

	if (!rc && lnet_nid_is_lo(nid_p))
		rc = scope_fail(s, t, -EINVAL, "no peer has NID '%s'", t->text);
	return rc;
}

/* Removes the primary NID from among the other NIDs. Returns whether it was
 * there. */
static bool remove_primary(struct peer_change *c)
{
	unsigned int n = c->n;

	c->n = 1;
	for (unsigned int i = 1; i < n; i++)
		if (!lnet_nid_eq(&c->nids[i], &c->nids[0]))
			c->nids[c->n++] = c->nids[i];
	return c->n < n;
}

/* Adds the NIDs of @list, which may be NULL. */
static int put_nids(const struct scope *s, const struct tree *list,
		    struct nids *nids)
{
	const struct tree *t = NULL;
	int rc = 0;

	while (!rc && (t = items_next(list, t))) {
		unsigned int before = nids->n;

		rc = scope_nids(s, t, nids);
		for (unsigned int i = before; !rc && i < nids->n; i++)
			if (lnet_nid_is_lo(&nids->nids[i]))
				rc = scope_fail(s, t, -EINVAL,
						"no peer has NID '0@lo'");
	}
	return rc;
}

/* Makes a change of the peer @primary with @nids. NULL: no memory. */
static struct peer_change *change_new(const struct ulnet_nid *primary,
				      const struct nids *nids, bool add)
{
	struct peer_change *c =
		calloc(1, sizeof(*c) + (nids->n + 1) * sizeof(*primary));

	if (!c)
		return NULL;
	c->nids[c->n++] = *primary;
	for (unsigned int i = 0; i < nids->n; i++)
		c->nids[c->n++] = nids->nids[i];
	/* A peer is deleted as a whole if its primary NID is in a list, or if
	 * there is no other NID. */
	c->kind = add ? PEER_ADD : PEER_DEL;
	if ((remove_primary(c) || c->n == 1) && !add)
		c->kind = PEER_DEL_WHOLE;
	return c;
}

/* Reads a change of the peer @primary; NULL: of the one whose primary NID is
 * the first of the lists. *@change_p is to be freed. Each of the @lists is a
 * list of NIDs, or NULL. */
static int change_read(const struct scope *s, bool add,
		       const struct tree *primary,
		       const struct tree *const lists[2],
		       struct peer_change **change_p)
{
	struct nids nids = { NULL, 0, 0, 0 };
	struct ulnet_nid nid = LNET_NID_ANY;
	int rc = primary ? peer_nid(s, primary, &nid) : 0;

	for (unsigned int i = 0; !rc && i < 2; i++)
		rc = put_nids(s, lists[i], &nids);
	if (!rc && !primary && !nids.n)
		rc = scope_fail(s, lists[0], -EINVAL, "no NID is given");
	if (!rc) {
		*change_p =
			change_new(primary ? &nid : &nids.nids[0], &nids, add);
		if (!*change_p)
			rc = scope_fail(s, primary, -ENOMEM, "no memory");
	}
	free(nids.nids);
	return rc;
}

int peer_args(struct plan *plan, const struct scope *s, const struct tree *args,
	      bool add)
{
	const struct tree *primary;
	const struct tree *const lists[2] = { tree_get(args, "nids"),
					      tree_get(args, "ip2nets") };
	struct peer_change *c;
	bool single = false, locked = false;
	int rc = scope_keys(s, args, add ? add_keys : del_keys);

	/* The value of "lock_prim" has no effect: discovery never changes the
	 * NIDs of a peer that was added. */
	if (!rc)
		rc = scope_bool(s, tree_get(args, "lock_prim"), &locked);
	if (!rc)
		rc = scope_need(s, args, "prim_nid", &primary);
	if (!rc)
		rc = scope_bool(s, tree_get(args, "non_mr"), &single);
	if (!rc)
		rc = change_read(s, add, primary, lists, &c);
	if (rc)
		return rc;
	c->multi_rail = !single;
	return plan_peer(plan, s, args, c);
}

int peer_item(struct plan *plan, const struct scope *s, const struct tree *item,
	      bool add)
{
	const struct tree *primary = tree_get(item, "primary nid");
	/* The list "nids" has all NIDs, the primary one first. */
	const struct tree *const lists[2] = { tree_get(item, "peer ni"),
					      tree_get(item, "nids") };
	int64_t state = STATE_CONFIGURED;
	struct peer_change *c;
	bool multi = true;
	int rc = scope_keys(s, item, file_keys);

	if (!rc && !lists[1])
		rc = scope_need(s, item, "primary nid", &primary);
	if (!rc)
		rc = scope_number(s, tree_get(item, "peer state"), 0,
				  UINT32_MAX, &state);
	if (!rc)
		rc = scope_bool(s, tree_get(item, "Multi-Rail"), &multi);
	if (!rc)
		rc = change_read(s, add, primary, lists, &c);
	if (rc)
		return rc;
	c->multi_rail = multi;
	c->may_be_us = true;
	/* The lists of a file are complete: they have all NIDs of the peer.
	 * Without a list the file says nothing of its other NIDs. */
	c->whole = lists[0] || lists[1];
	/* Checked now, because the same file may delete the NI first. */
	if (!add && nid_is_ours(plan->node, &c->nids[0]))
		c->kind = PEER_STAYS_US;
	if (state & STATE_CONFIGURED)
		return plan_peer(plan, s, item, c);
	/* A peer that was only learned is no configuration. */
	free(c);
	return 0;
}

/* ---- showing ---- */

void peer_show(struct request *r)
{
	struct show show = { .net = LNET_NET_ANY, .nid = LNET_NID_ANY };
	const struct tree *nid = tree_get(r->args, "nid");
	int rc;

	if (read_verbose(&r->scope, r->args, &show.verbose) ||
	    scope_nid(&r->scope, tree_get(r->args, "nid"), &show.nid))
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
	struct show show = { .verbose = 3, .net = LNET_NET_ANY };
	const struct tree *primary;
	int rc = scope_need(s, item, "primary nid", &primary);

	if (!rc)
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
