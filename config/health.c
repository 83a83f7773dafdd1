/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/health.h"

#include <errno.h>
#include <string.h>

#include "config/item.h"
#include "config/request.h"
#include "ulnet/path.h"

const char *const net_set_keys[] = {
	"nid", "all", "health", "net", "conns_per_peer", "lnd_timeout", NULL,
};
const char *const peer_set_keys[] = { "nid", "all", "health", "state", NULL };

/* What kernel nodes change here. */
static const struct {
	const char *key, *why;
} fixed[] = {
	{ "net", "all interfaces of a network are not set at once" },
	{ "conns_per_peer",
	  "it is fixed when the interface is added: net add, or import" },
	{ "lnd_timeout",
	  "it follows from transaction_timeout and retry_count: set" },
	{ "state", "it is what discovery has found: discover, peer add" },
};

typedef int (*set_fn)(struct lnet *node, const struct ulnet_nid *nid,
		      int32_t health);

/* Whose health: *@all_p, or that of *@nid_p. */
static int read_whose(const struct request *r, bool *all_p,
		      struct ulnet_nid *nid_p)
{
	const struct tree *nid = tree_get(r->args, "nid");
	const struct tree *all = tree_get(r->args, "all");
	int rc = all ? scope_bool(&r->scope, all, all_p) : 0;

	if (!rc && *all_p == (nid != NULL))
		rc = scope_fail(&r->scope, r->args, -EINVAL,
				"either nid or all is needed");
	return rc || !nid ? rc : item_nid(&r->scope, nid, nid_p);
}

/* -EOPNOTSUPP if the request has one of those. */
static int refuse_fixed(const struct request *r)
{
	for (unsigned int i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		const struct tree *t = tree_get(r->args, fixed[i].key);

		if (t)
			return scope_fail(&r->scope, t, -EOPNOTSUPP,
					  "%s cannot be set: %s", fixed[i].key,
					  fixed[i].why);
	}
	return 0;
}

static void health_set(struct request *r, set_fn fn)
{
	const struct tree *health = tree_get(r->args, "health");
	char text[LNET_NIDSTR_SIZE] = "all";
	struct ulnet_nid nid = LNET_NID_ANY;
	bool all = false;
	int64_t value;
	int rc;

	if (refuse_fixed(r))
		return;
	if (!health) {
		scope_fail(&r->scope, r->args, -EINVAL, "health is missing");
		return;
	}
	if (scope_number(&r->scope, health, 0, LNET_HEALTH_MAX, &value) ||
	    read_whose(r, &all, &nid))
		return;
	if (!all)
		lnet_nid_format(&nid, text, sizeof(text));
	if (!all && lnet_nid_is_lo(&nid)) {
		scope_fail(&r->scope, r->args, -EINVAL, "%s has no health",
			   text);
		return;
	}
	rc = fn(r->control->node, all ? NULL : &nid, (int32_t)value);
	if (rc == -ENOENT)
		scope_fail(&r->scope, r->args, rc,
			   "cannot set the health of %s: no such NID here",
			   text);
	else if (rc)
		scope_fail(&r->scope, r->args, rc,
			   "cannot set the health of %s: %s", text,
			   strerror(-rc));
}

void health_net_set(struct request *r)
{
	health_set(r, lnet_ni_set_health);
}

void health_peer_set(struct request *r)
{
	health_set(r, lnet_peer_set_health);
}
