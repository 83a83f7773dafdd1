/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests "net set" and "peer set", which set the health of interfaces. */
#include <errno.h>

#include "config/request/request.h"
#include "ulnet/path.h"

/* What these requests can change on kernel nodes only, and why. */
static const struct {
	const char *key, *why;
} fixed[] = {
	{ "conns_per_peer",
	  "it is fixed when the interface is added: net add, or import" },
	{ "lnd_timeout",
	  "it follows from transaction_timeout and retry_count: set" },
	{ "state", "it is what discovery has found: discover, peer add" },
};

typedef int (*set_fn)(struct lnet *node, const struct ulnet_nid *nid,
		      int32_t health);

/* Whose health is set: of all, of those on a net, or of a NID. */
struct whose {
	bool all;
	uint32_t net;	      /* LNET_NET_ANY: none */
	struct ulnet_nid nid; /* LNET_NID_ANY: none */
};

static int read_whose(const struct request *r, struct whose *w)
{
	const struct scope *s = &r->scope;
	bool nid = tree_get(r->args, "nid"), net = tree_get(r->args, "net");
	int rc = scope_bool(s, tree_get(r->args, "all"), &w->all);

	if (!rc && w->all + nid + net != 1)
		rc = scope_fail(s, r->args, -EINVAL,
				net ? "one of nid, net and all is needed"
				    : "either nid or all is needed");
	if (!rc)
		rc = scope_net(s, tree_get(r->args, "net"), &w->net);
	return rc ? rc : scope_nid(s, tree_get(r->args, "nid"), &w->nid);
}

/* -EOPNOTSUPP: the request is to change one of those. */
static int refuse_fixed(const struct request *r)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(fixed); i++) {
		const struct tree *t = tree_get(r->args, fixed[i].key);

		if (t)
			return scope_fail(&r->scope, t, -EOPNOTSUPP,
					  "%s cannot be set: %s", fixed[i].key,
					  fixed[i].why);
	}
	return 0;
}

/* Sets the health of all interfaces on @net. */
static int net_set_health(struct lnet *node, uint32_t net, int32_t health)
{
	struct ulnet_ni_info info;
	int rc = -ENOENT;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++) {
		if (lnet_nid_net(&info.nid) != net)
			continue;
		rc = lnet_ni_set_health(node, &info.nid, health);
		if (rc)
			return rc;
	}
	return rc;
}

static void health_set(struct request *r, set_fn fn)
{
	const struct tree *health;
	struct whose w = { .net = LNET_NET_ANY, .nid = LNET_NID_ANY };
	struct lnet *node = r->control->node;
	char text[LNET_NIDSTR_SIZE] = "all";
	bool of_net;
	int64_t value;
	int rc;

	if (refuse_fixed(r) ||
	    scope_need(&r->scope, r->args, "health", &health) ||
	    scope_number(&r->scope, health, 0, LNET_HEALTH_MAX, &value) ||
	    read_whose(r, &w))
		return;
	of_net = w.net != LNET_NET_ANY;
	if (of_net)
		lnet_net_format(w.net, text, sizeof(text));
	else if (!w.all)
		lnet_nid_format(&w.nid, text, sizeof(text));
	if (of_net ? LNET_NET_TYPE(w.net) == LNET_TYPE_LO
		   : !w.all && lnet_nid_is_lo(&w.nid)) {
		scope_fail(&r->scope, r->args, -EINVAL, "%s has no health",
			   text);
		return;
	}
	rc = of_net ? net_set_health(node, w.net, (int32_t)value)
		    : fn(node, w.all ? NULL : &w.nid, (int32_t)value);
	if (rc)
		scope_fail(&r->scope, r->args, rc,
			   "cannot set the health of %s: %s", text,
			   rc != -ENOENT ? strerror(-rc)
			   : of_net	 ? "no such network here"
					 : "no such NID here");
}

void health_net_set(struct request *r)
{
	health_set(r, lnet_ni_set_health);
}

void health_peer_set(struct request *r)
{
	health_set(r, lnet_peer_set_health);
}
