/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains to users why messages take the path they take:
 * lnet_path_explain(3). */
#include <errno.h>
#include <inttypes.h>

#include "lnet/path/path.h"
#include "lnet/policy/policy.h"
#include "lnet/route/route.h"

/* ---- words ---- */

static const char *const kinds[] = {
	[LNET_PATH_GATEWAY] = "gateway",
	[LNET_PATH_NET] = "net",
	[LNET_PATH_LOCAL_NI] = "local NI",
	[LNET_PATH_PEER_NI] = "peer NI",
};

/* What the chosen candidate has over this one. For reasons that are not
 * criteria: what is wrong with this one. */
static const char *const whys[LNET_PATH_WHY_COUNT] = {
	[LNET_PATH_CHOSEN] = "chosen",
	[LNET_PATH_PEER_UP] = "is up at the peer",
	[LNET_PATH_UNTRIED] = "has paths that were not tried yet",
	[LNET_PATH_PEER_HEALTH] = "leads to a healthier peer NI",
	[LNET_PATH_PEER_PRIORITY] = "has a better priority at the peer",
	[LNET_PATH_ROUTE_PREFERRED] = "is preferred for the peer",
	[LNET_PATH_ROUTE_PRIORITY] = "has a better priority",
	[LNET_PATH_HOPS] = "is fewer hops away",
	[LNET_PATH_HEALTH] = "is healthier",
	[LNET_PATH_NAMED] = "was named",
	[LNET_PATH_PRIORITY] = "has a better priority",
	[LNET_PATH_LESS_TRIED] = "was tried less often",
	[LNET_PATH_PREFERRED] = "is preferred",
	[LNET_PATH_CONNECTED] = "need not be connected to the peer first",
	[LNET_PATH_NEAR] = "is nearer to the memory",
	[LNET_PATH_CREDITS] = "has more credits",
	[LNET_PATH_PEER_TURN] = "has its turn at the peer",
	[LNET_PATH_TURN] = "has its turn",
	[LNET_PATH_DOWN] = "down",
	[LNET_PATH_NOT_ASKED] = "not asked for",
	[LNET_PATH_UNREACHED] = "no net of this node",
};

static const char *const situations[PATH_CASES] = {
	[PATH_SPEC_LOCAL_MR] = "local NI named, multi-rail peer on its net",
	[PATH_SPEC_LOCAL_NMR] = "local NI named, peer on its net",
	[PATH_SPEC_REMOTE_MR] = "local NI named, multi-rail peer elsewhere",
	[PATH_SPEC_REMOTE_NMR] = "local NI named, peer elsewhere",
	[PATH_ANY_LOCAL_MR] = "any local NI, multi-rail peer on our nets",
	[PATH_ANY_LOCAL_NMR] = "any local NI, peer on our nets",
	[PATH_ANY_REMOTE_MR] = "any local NI, multi-rail peer elsewhere",
	[PATH_ANY_REMOTE_NMR] = "any local NI, peer elsewhere",
};

/* The texts for gateways that differ from whys[]. */
static const char *const gateway_whys[LNET_PATH_WHY_COUNT] = {
	[LNET_PATH_PEER_UP] = "is up",
	[LNET_PATH_UNTRIED] = "was tried less often",
	[LNET_PATH_CREDITS] = "has fewer messages that wait for it",
	[LNET_PATH_UNREACHED] = "on no net of this node",
};

/* The texts for nets that differ from whys[]. */
static const char *const net_whys[LNET_PATH_WHY_COUNT] = {
	[LNET_PATH_NEAR] = "is nearer, or not in doubt",
};

static const char *why_text(const struct ulnet_path_candidate *c)
{
	if (c->kind == LNET_PATH_GATEWAY && gateway_whys[c->why])
		return gateway_whys[c->why];
	if (c->kind == LNET_PATH_NET && net_whys[c->why])
		return net_whys[c->why];
	return whys[c->why];
}

/* Are the keys of this criterion numbers that users know? Then they are shown.
 */
static bool why_is_counted(enum ulnet_path_kind kind, enum ulnet_path_why why)
{
	return why == LNET_PATH_PEER_HEALTH || why == LNET_PATH_HEALTH ||
	       (why == LNET_PATH_CREDITS && kind != LNET_PATH_GATEWAY);
}

static bool why_is_priority(enum ulnet_path_why why)
{
	return why == LNET_PATH_PEER_PRIORITY || why == LNET_PATH_PRIORITY;
}

static const char *priority_text(int64_t priority, char buf[16])
{
	if (priority == LNET_PRIORITY_NONE)
		return "none";
	snprintf(buf, 16, "%" PRIu32, (uint32_t)priority);
	return buf;
}

char *lnet_path_candidate_format(const struct ulnet_path_candidate *c,
				 char *buf, size_t size)
{
	char name[LNET_NIDSTR_SIZE], numbers[64] = "", text[2][16];
	bool is_net = c->kind == LNET_PATH_NET;

	if (is_net)
		lnet_net_format(lnet_nid_net(&c->nid), name, sizeof(name));
	else
		lnet_nid_format(&c->nid, name, sizeof(name));
	if (why_is_counted(c->kind, c->why))
		snprintf(numbers, sizeof(numbers),
			 " (%" PRId64 " against %" PRId64 ")", c->best, c->own);
	else if (why_is_priority(c->why))
		snprintf(numbers, sizeof(numbers), " (%s against %s)",
			 priority_text(c->best, text[0]),
			 priority_text(c->own, text[1]));
	snprintf(buf, size, "%s %s%s: %s%s%s", kinds[c->kind], name,
		 is_net && !lnet_nid_is_nid4(&c->nid) ? " (IPv6)" : "",
		 c->why > LNET_PATH_CHOSEN && c->why < LNET_PATH_CRITERIA
			 ? "the chosen one "
			 : "",
		 why_text(c), numbers);
	return buf;
}

/* ---- asking ---- */

struct explain_call {
	struct lnet_cpt *cpt;
	struct path_request request;
	struct ulnet_path *path;
	struct ulnet_path_candidate *candidates;
	unsigned int n;
	/* for a path to a gateway: the only local NI that may be used;
	 * LNET_NID_ANY: any may be */
	struct ulnet_nid from;
};

/* Returns the candidate that was chosen instead of @seen; it is in the same run
 * of candidates of one kind. NULL: none was chosen. */
static const struct path_seen *chosen_of(const struct path_trace *t,
					 const struct path_seen *seen)
{
	const struct path_seen *s = seen;

	while (s > t->seen && s[-1].kind == seen->kind)
		s--;
	for (; s < t->seen + t->n && s->kind == seen->kind; s++)
		if (s->why == LNET_PATH_CHOSEN)
			return s;
	return NULL;
}

static struct ulnet_path_candidate candidate_of(const struct path_trace *t,
						const struct path_seen *seen)
{
	const struct path_seen *best = chosen_of(t, seen);
	struct ulnet_path_candidate c = { .kind = seen->kind,
					  .nid = seen->nid,
					  .why = seen->why };

	if (why_is_counted(seen->kind, seen->why)) {
		c.own = seen->rank.key[seen->why];
		c.best = best->rank.key[seen->why];
	} else if (why_is_priority(seen->why)) {
		c.own = -seen->rank.key[seen->why];
		c.best = -best->rank.key[seen->why];
	}
	return c;
}

/* No path is selected for messages from this node to itself. */
static bool explain_self(const struct explain_call *c)
{
	if (!config_is_mine(c->cpt->config, c->request.dst))
		return false;
	c->path->situation = "this node itself";
	c->path->local = c->path->peer = LNET_NID_LO;
	return true;
}

static void explain_path(struct explain_call *c, const struct path *p)
{
	c->path->peer = p->dst ? p->dst->nid : *c->request.dst;
	if (p->ni)
		c->path->local = p->ni->lnd.nid;
	if (p->route)
		c->path->gateway = p->lpni ? p->lpni->nid : p->route->gateway;
	if (p->from)
		c->from = p->from->lnd.nid;
}

static int explain_call(void *arg)
{
	struct explain_call *c = arg;
	struct path_trace t = { .seen = NULL };
	struct path p = { .which = PATH_CASES };

	if (c->cpt->closing)
		return -ESHUTDOWN;
	if (explain_self(c))
		return 0;
	c->path->status = path_select(c->cpt, &c->request, &p, &t);
	c->path->ncandidates = t.n;
	c->path->situation =
		p.which < PATH_CASES ? situations[p.which] : "no such local NI";
	if (!c->path->status)
		explain_path(c, &p);
	for (unsigned int i = 0; i < MIN(t.n, c->n); i++)
		c->candidates[i] = candidate_of(&t, &t.seen[i]);
	free(t.seen);
	return t.incomplete ? -ENOMEM : (int)t.n;
}

/* Another CPT owns the gateway, and so chooses the NIs. Asks that CPT, and puts
 * its candidates after the @seen candidates that @first has found. */
static int explain_gateway(struct lnet *node, struct explain_call *first,
			   int seen)
{
	unsigned int before = MIN((unsigned int)seen, first->n);
	struct ulnet_nid gateway = first->path->gateway;
	struct ulnet_path hop = { .local = LNET_NID_ANY };
	struct explain_call c = {
		.cpt = node->cpt[node_cpt_of(node, &gateway)],
		.request = { .src = &first->from,
			     .dst = &gateway,
			     .flags = PATH_HOP },
		.path = &hop,
		.candidates = first->candidates + before,
		.n = first->n - before,
	};
	int rc = loop_call(c.cpt->loop, explain_call, &c);

	if (rc < 0)
		return rc;
	first->path->status = hop.status;
	first->path->local = hop.local;
	first->path->gateway = hop.peer;
	first->path->ncandidates += hop.ncandidates;
	return seen + rc;
}

int lnet_path_explain(struct lnet *node, const struct ulnet_nid *src,
		      const struct ulnet_nid *dst, struct ulnet_path *path,
		      struct ulnet_path_candidate *candidates, unsigned int n)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	struct ulnet_path found = { .local = any, .peer = any, .gateway = any };
	struct explain_call c = {
		.cpt = node->cpt[node_cpt_of(node, dst)],
		.request = { .src = src ? src : &any, .dst = dst },
		.path = &found,
		.candidates = candidates,
		.n = n,
		.from = any,
	};
	int rc;

	if (lnet_nid_is_any(dst))
		return -EINVAL;
	rc = loop_call(c.cpt->loop, explain_call, &c);
	if (rc >= 0 && !found.status && lnet_nid_is_any(&found.local))
		rc = explain_gateway(node, &c, rc);
	if (rc >= 0)
		*path = found;
	return rc;
}
