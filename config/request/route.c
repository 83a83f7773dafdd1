/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and routing in requests and files: "route add", "route show", "set
 * routing", "route:", "routing:", "buffers:". */
#include <errno.h>
#include <inttypes.h>

#include "config/request/request.h"
#include "config/text/routes.h"

#define PAGE 4096

/* What kernel nodes print for a number of hops that was not given. */
#define NO_HOPS (-1)

#define AS_OTHERS                                                 \
	"gateways lose health as other peers do, by the setting " \
	"health_sensitivity"

static const char *const args_keys[] = {
	"net", "gateway", "hop", "priority", "health_sensitivity", NULL
};
static const char *const del_keys[] = { "net", "gateway", NULL };
static const char *const file_keys[] = {
	"net",	 "gateway",    "hop",  "priority", "health_sensitivity",
	"state", "state name", "type", "seq_no",   "detail",
	NULL
};

/* ---- reading ---- */

/* Reads a health sensitivity, which must be 0 or 1. Some releases of kernel
 * nodes have one for each gateway; other releases print the default, 1, for
 * all. */
static int read_sensitivity(const struct scope *s, const struct tree *t)
{
	int64_t v = 0;
	int rc = scope_number(s, t, 0, INT32_MAX, &v);

	if (rc || v <= 1)
		return rc;
	if (!s->lenient)
		return scope_fail(s, t, -EOPNOTSUPP,
				  "health_sensitivity %" PRId64 " of a route: "
				  "not supported: " AS_OTHERS,
				  v);
	answer_note_once(
		s->answer,
		"route: health_sensitivity is passed over: " AS_OTHERS);
	return 0;
}

static int route_read_hops(const struct scope *s, const struct tree *map,
			   uint32_t *hops_p)
{
	int64_t v = NO_HOPS;
	int rc = scope_number(s, tree_get(map, "hop"), NO_HOPS, LNET_HOPS_MAX,
			      &v);

	if (!rc && v == 0)
		rc = scope_fail(s, tree_get(map, "hop"), -EINVAL,
				"hop: 0 is not in 1..%d", LNET_HOPS_MAX);
	*hops_p = v < 0 ? 0 : (uint32_t)v;
	return rc;
}

/* The nets and the gateways of an item, which has a route to each of the nets
 * through each of the gateways. */
struct ends {
	uint32_t *nets;
	unsigned int nnets;
	struct nids gateways;
};

static void ends_free(struct ends *e)
{
	free(e->nets);
	free(e->gateways.nids);
}

static int read_nets(const struct scope *s, const struct tree *t,
		     struct ends *e)
{
	struct ulnet_text_error err = { 0, "" };
	const char *text = NULL;
	int rc = scope_text(s, t, &text);

	if (rc)
		return rc;
	e->nets = malloc(sizeof(*e->nets));
	e->nnets = 1;
	if (!e->nets)
		return scope_fail(s, t, -ENOMEM, "no memory");
	if (!strchr(text, '['))
		return scope_net(s, t, e->nets);
	free(e->nets);
	e->nets = NULL;
	rc = spec_nets(text, &e->nets, &e->nnets, &err);
	return rc ? scope_fail(s, t, rc == -EINVAL ? -ENOENT : rc,
			       "cannot parse net '%s': %s", text, err.what)
		  : 0;
}

/* Reads the nets and the gateways, which must be there. ends_free() is due in
 * any case. */
static int read_ends(const struct scope *s, const struct tree *map,
		     struct ends *e)
{
	const struct tree *net, *gateway = NULL, *t = NULL;
	int rc = scope_need(s, map, "net", &net);

	*e = (struct ends){ 0 };
	if (!rc)
		rc = scope_need(s, map, "gateway", &gateway);
	if (!rc)
		rc = read_nets(s, net, e);
	while (!rc && (t = list_next(gateway, t)))
		rc = scope_nids(s, t, &e->gateways);
	if (!rc && !e->gateways.n)
		rc = scope_fail(s, gateway, -EINVAL, "no gateway is given");
	return rc;
}

/* Reads all but the ends. */
static int read_route(const struct scope *s, const struct tree *map,
		      struct ulnet_route *r)
{
	int64_t v = 0;
	int rc = route_read_hops(s, map, &r->hops);

	if (!rc)
		rc = scope_number(s, tree_get(map, "priority"), 0, INT32_MAX,
				  &v);
	if (!rc)
		rc = read_sensitivity(s, tree_get(map, "health_sensitivity"));
	r->priority = (uint32_t)v;
	return rc;
}

/* ---- commands and files ---- */

#define ROUTES_MAX 4096 /* routes of one item */

/* Adds a step for each route of an item. */
static int plan_routes(struct plan *plan, const struct scope *s,
		       const struct tree *map, bool add)
{
	struct ulnet_route route = { 0 };
	struct ends e;
	int rc = read_ends(s, map, &e);

	if (!rc && add)
		rc = read_route(s, map, &route);
	if (!rc && e.nnets * e.gateways.n > ROUTES_MAX)
		rc = scope_fail(s, map, -EINVAL, "more than %d routes",
				ROUTES_MAX);
	for (unsigned int i = 0; !rc && i < e.nnets * e.gateways.n; i++) {
		route.net = e.nets[i / e.gateways.n];
		route.gateway = e.gateways.nids[i % e.gateways.n];
		rc = plan_route(plan, s, map, &route, add);
	}
	ends_free(&e);
	return rc;
}

int route_args(struct plan *plan, const struct scope *s,
	       const struct tree *args, bool add)
{
	int rc = scope_keys(s, args, add ? args_keys : del_keys);

	return rc ? rc : plan_routes(plan, s, args, add);
}

int route_item(struct plan *plan, const struct scope *s,
	       const struct tree *item, bool add)
{
	int rc = scope_keys(s, item, file_keys);

	return rc ? rc : plan_routes(plan, s, item, add);
}

/* ---- routes of a text ---- */

#define THERE_ALREADY "it is there already"

/* The node's NIDs but 0@lo, in an array that is to be freed. Returns how many
 * there are, or -errno. */
static int own_nids(struct lnet *node, struct ulnet_nid **nids_p)
{
	struct ulnet_nid *nids = NULL, *more;
	struct ulnet_ni_info info;
	unsigned int n = 0;

	for (; !lnet_ni_info(node, n + 1, &info); n++) {
		more = realloc(nids, (n + 1) * sizeof(*nids));
		if (!more) {
			free(nids);
			return -ENOMEM;
		}
		nids = more;
		nids[n] = info.nid;
	}
	*nids_p = nids;
	return (int)n;
}

static bool net_is_own(const struct ulnet_nid *nids, int n, uint32_t net)
{
	while (n-- > 0)
		if (lnet_nid_net(&nids[n]) == net)
			return true;
	return false;
}

static bool nid_is_own(const struct ulnet_nid *nids, int n,
		       const struct ulnet_nid *nid)
{
	while (n-- > 0)
		if (lnet_nid_eq(&nids[n], nid))
			return true;
	return false;
}

/* What is chosen from the routes of a text: the routes that @node gets, and
 * whether it becomes a router. */
struct choice {
	struct lnet *node;
	struct ulnet_nid *nids; /* NIDs of the node */
	int nnids;
	/* routes that the node has, sorted by route_cmp() */
	struct ulnet_route_info *there;
	int nthere;
	struct ulnet_route_change *changes;
	unsigned int n;
	/* it becomes a router, since a route of the text leads through it */
	bool router;
	lnet_routes_passed_fn passed;
	void *arg;
};

static int route_cmp(const void *pa, const void *pb)
{
	const struct ulnet_route *a =
		&((const struct ulnet_route_info *)pa)->route;
	const struct ulnet_route *b =
		&((const struct ulnet_route_info *)pb)->route;

	if (a->net != b->net)
		return a->net < b->net ? -1 : 1;
	return memcmp(&a->gateway, &b->gateway, sizeof(a->gateway));
}

static void choice_pass(const struct choice *c, const struct ulnet_route *route,
			const char *why)
{
	if (c->passed)
		c->passed(c->arg, route, why);
}

static void choose(struct choice *c, const struct ulnet_route *route)
{
	const struct ulnet_route_info key = { .route = *route };

	if (nid_is_own(c->nids, c->nnids, &route->gateway))
		c->router = true;
	else if (net_is_own(c->nids, c->nnids, route->net))
		choice_pass(c, route, "this node is on that network itself");
	else if (!net_is_own(c->nids, c->nnids, lnet_nid_net(&route->gateway)))
		choice_pass(c, route,
			    "the gateway is on no network of this node");
	else if (c->nthere && bsearch(&key, c->there, (size_t)c->nthere,
				      sizeof(key), route_cmp))
		choice_pass(c, route, THERE_ALREADY);
	else
		c->changes[c->n++].route = *route;
}

/* Adds the routes, all or none. Passes over routes that come twice, or that
 * somebody has added meanwhile. */
static int choice_add(struct choice *c)
{
	unsigned int failed = 0;
	int rc;

	while ((rc = lnet_routes_change(c->node, c->changes, c->n, &failed)) ==
	       -EEXIST) {
		choice_pass(c, &c->changes[failed].route, THERE_ALREADY);
		c->n--;
		memmove(&c->changes[failed], &c->changes[failed + 1],
			(c->n - failed) * sizeof(*c->changes));
	}
	return rc;
}

/* If the node is to be a router, makes it one; if that fails, deletes the
 * routes that were added. */
static int choice_route(struct choice *c)
{
	struct ulnet_routing routing;
	int rc;

	if (!c->router)
		return 0;
	lnet_routing(c->node, &routing);
	routing.enabled = true;
	rc = lnet_routing_set(c->node, &routing);
	for (unsigned int i = 0; rc && i < c->n; i++)
		c->changes[i].del = true;
	if (rc)
		(void)lnet_routes_change(c->node, c->changes, c->n, NULL);
	return rc;
}

static int choice_begin(struct choice *c, unsigned int n)
{
	c->nnids = own_nids(c->node, &c->nids);
	if (c->nnids < 0)
		return c->nnids;
	c->nthere = routes_read(c->node, &c->there);
	if (c->nthere < 0)
		return c->nthere;
	if (c->nthere)
		qsort(c->there, (size_t)c->nthere, sizeof(*c->there),
		      route_cmp);
	c->changes = calloc(n + 1, sizeof(*c->changes));
	return c->changes ? 0 : -ENOMEM;
}

int lnet_routes_add(struct lnet *node, const struct ulnet_route *routes,
		    unsigned int n, lnet_routes_passed_fn passed, void *arg)
{
	struct choice c = { .node = node, .passed = passed, .arg = arg };
	int rc = choice_begin(&c, n);

	for (unsigned int i = 0; !rc && i < n; i++)
		choose(&c, &routes[i]);
	if (!rc)
		rc = choice_add(&c);
	if (!rc)
		rc = choice_route(&c);
	free(c.changes);
	free(c.there);
	free(c.nids);
	return rc;
}

int buffers_section(struct plan *plan, const struct scope *s,
		    const struct tree *map, bool add)
{
	static const char *const keys[] = { "tiny", "small", "large", "seq_no",
					    NULL };
	int rc = scope_keys(s, map, keys);

	(void)add; /* buffers cannot be deleted */
	for (unsigned int i = 0; !rc && i < LNET_BUFFER_KINDS; i++) {
		const struct tree *t = tree_get(map, buffer_names[i]);
		int64_t v = 0;

		rc = scope_number(s, t, 0, INT32_MAX, &v);
		if (t && !rc)
			rc = plan_routing(plan, s, t, i, (uint32_t)v);
	}
	return rc;
}

/* An item says with "enable" whether the node routes. Its other keys, "cpt[0]"
 * and so on, say what buffers the node has, and are ignored. */
int routing_item(struct plan *plan, const struct scope *s,
		 const struct tree *item, bool add)
{
	static const char *const keys[] = { "enable", "seq_no", NULL };
	const struct tree *enable = tree_get(item, "enable"), *t;
	bool on = false;
	int rc = scope_map(s, item);

	if (rc)
		return rc;
	tree_for_each (t, item) {
		if (!rc && strncmp(t->key, "cpt[", 4) != 0 &&
		    !key_in(t->key, keys))
			rc = scope_unknown(s, t, "key", key_near(t->key, keys));
	}
	if (rc || !enable)
		return rc;
	rc = scope_bool(s, enable, &on);
	return rc ? rc
		  : plan_routing(plan, s, enable, LNET_BUFFER_KINDS, add && on);
}

/* ---- set ---- */

static const char *const setting_names[] = {
	[LNET_TINY_BUFFERS] = "tiny_buffers",
	[LNET_SMALL_BUFFERS] = "small_buffers",
	[LNET_LARGE_BUFFERS] = "large_buffers",
	[LNET_BUFFER_KINDS] = "routing",
};

int routing_set(struct plan *plan, const struct scope *s, const struct tree *at,
		int64_t value)
{
	int64_t max = strcmp(at->key, "routing") == 0 ? 1 : INT32_MAX;
	unsigned int kind = 0;
	char why[64];

	while (kind < ARRAY_SIZE(setting_names) &&
	       strcmp(setting_names[kind], at->key) != 0)
		kind++;
	if (kind == ARRAY_SIZE(setting_names))
		return -ENOENT;
	if (value < 0 || value > max) {
		snprintf(why, sizeof(why), "not in 0..%" PRId64, max);
		scope_set_fail(s, at->key, -EINVAL, why);
		return -EINVAL;
	}
	return plan_routing(plan, s, at, kind, (uint32_t)value);
}

int routes_forget(struct plan *plan, const struct scope *s)
{
	struct ulnet_route_info *infos;
	int n = routes_read(plan->node, &infos), rc = 0;

	if (n < 0)
		return scope_fail(s, NULL, -ENOMEM, "no memory");
	for (int i = 0; !rc && i < n; i++)
		rc = plan_route(plan, s, NULL, &infos[i].route, false);
	free(infos);
	for (unsigned int i = 0; !rc && i <= LNET_BUFFER_KINDS; i++)
		rc = plan_routing(plan, s, NULL, i, 0);
	return rc;
}

/* ---- showing ---- */

static bool route_is_shown(const struct ulnet_route *r,
			   const struct ulnet_route *only)
{
	return !only || ((only->net == LNET_NET_ANY || only->net == r->net) &&
			 (lnet_nid_is_any(&only->gateway) ||
			  lnet_nid_eq(&only->gateway, &r->gateway)) &&
			 (only->hops == UINT32_MAX || only->hops == r->hops) &&
			 (only->priority == UINT32_MAX ||
			  only->priority == r->priority));
}

static void show_route(const struct ulnet_route_info *info, int verbose,
		       bool backup, struct tree *map)
{
	char text[LNET_NIDSTR_SIZE];

	tree_text(map, "net", TREE_PLAIN,
		  lnet_net_format(info->route.net, text, sizeof(text)));
	show_nid(map, "gateway", &info->route.gateway);
	if (verbose < 1)
		return;
	tree_int(map, "hop",
		 info->route.hops ? (int64_t)info->route.hops : NO_HOPS);
	tree_uint(map, "priority", info->route.priority);
	tree_uint(map, "health_sensitivity", 1);
	if (backup)
		return;
	tree_text(map, "state", TREE_PLAIN, info->up ? "up" : "down");
	if (verbose >= 5)
		tree_text(map, "state name", TREE_PLAIN, info->state);
	tree_text(map, "type", TREE_PLAIN,
		  info->multi_hop ? "multi-hop" : "single-hop");
}

int show_routes(struct lnet *node, const struct ulnet_route *only, int verbose,
		bool backup, struct tree *out)
{
	struct ulnet_route_info *infos;
	int n = routes_read(node, &infos);

	for (int i = 0; i < n; i++)
		if (route_is_shown(&infos[i].route, only))
			show_route(&infos[i], verbose, backup,
				   tree_item(out, "route"));
	free(infos);
	return MIN(n, 0);
}

/* Shows the routes that match all arguments. An argument that is not given has
 * a value that no route has, and that matches every route. */
void route_show(struct request *r)
{
	struct ulnet_route only = { .net = LNET_NET_ANY,
				    .gateway = LNET_NID_ANY,
				    .hops = UINT32_MAX };
	const struct scope *s = &r->scope;
	int64_t priority = UINT32_MAX;
	int verbose;

	if (read_verbose(s, r->args, &verbose) ||
	    scope_net(s, tree_get(r->args, "net"), &only.net) ||
	    scope_nid(s, tree_get(r->args, "gateway"), &only.gateway) ||
	    (tree_get(r->args, "hop") &&
	     route_read_hops(s, r->args, &only.hops)) ||
	    scope_number(s, tree_get(r->args, "priority"), 0, INT32_MAX,
			 &priority))
		return;
	only.priority = (uint32_t)priority;
	cannot_get(s,
		   show_routes(r->control->node, &only, verbose, false,
			       answer_output(r->answer)),
		   "routes");
}

int route_show_item(struct lnet *node, const struct scope *s,
		    const struct tree *item)
{
	struct ulnet_route only = { .hops = UINT32_MAX,
				    .priority = UINT32_MAX };
	struct ends e;
	int rc = read_ends(s, item, &e);

	for (unsigned int i = 0; !rc && i < e.nnets * e.gateways.n; i++) {
		only.net = e.nets[i / e.gateways.n];
		only.gateway = e.gateways.nids[i % e.gateways.n];
		rc = show_routes(node, &only, 1, false,
				 answer_output(s->answer));
	}
	ends_free(&e);
	return rc;
}

static void show_pool(const struct ulnet_buffers_info *info, const char *name,
		      struct tree *cpt)
{
	struct tree *map = tree_map(cpt, name);

	tree_uint(map, "npages", (info->size + PAGE - 1) / PAGE);
	tree_uint(map, "nbuffers", info->count);
	tree_int(map, "credits", info->free);
	tree_int(map, "mincredits", info->free_min);
}

static int show_pools(struct lnet *node, struct tree *seq)
{
	for (unsigned int i = 0; i < lnet_cpts(node); i++) {
		struct ulnet_buffers_info infos[LNET_BUFFER_KINDS];
		struct tree *cpt;
		char name[16];
		int rc = lnet_routing_buffers(node, i, infos);

		if (rc)
			return rc;
		snprintf(name, sizeof(name), "cpt[%u]", i);
		cpt = tree_map(tree_map(seq, NULL), name);
		for (unsigned int k = 0; k < LNET_BUFFER_KINDS; k++)
			show_pool(&infos[k], buffer_names[k], cpt);
	}
	return 0;
}

static bool routing_is_default(const struct ulnet_routing *r)
{
	return !r->enabled &&
	       r->buffers[LNET_TINY_BUFFERS] == LNET_TINY_BUFFERS_DEFAULT &&
	       r->buffers[LNET_SMALL_BUFFERS] == LNET_SMALL_BUFFERS_DEFAULT &&
	       r->buffers[LNET_LARGE_BUFFERS] == LNET_LARGE_BUFFERS_DEFAULT;
}

int show_routing(struct lnet *node, bool backup, struct tree *out)
{
	struct ulnet_routing routing;
	struct tree *seq, *map;
	int rc = 0;

	lnet_routing(node, &routing);
	if (routing_is_default(&routing))
		return 0;
	seq = tree_seq(out, "routing");
	if (!backup && routing.enabled)
		rc = show_pools(node, seq);
	tree_uint(tree_map(seq, NULL), "enable", routing.enabled);
	map = tree_map(out, "buffers");
	for (unsigned int k = 0; k < LNET_BUFFER_KINDS; k++)
		tree_uint(map, buffer_names[k], routing.buffers[k]);
	return rc;
}
