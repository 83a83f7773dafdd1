/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/plan.h"
#include "config/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>


void plan_init(struct plan *plan, struct lnet *node)
{
	*plan = (struct plan){ .node = node };
}

void plan_fini(struct plan *plan)
{
	for (unsigned int i = 0; i < plan->n; i++) {
		free(plan->steps[i].peer);
		free(plan->steps[i].policy);
	}
	free(plan->steps);
	free(plan->faults);
	peer_list_free(&plan->peers);
}

/* "tcp(eth0)" or "10.0.0.1@tcp" */
#define WISH_NAME_SIZE (LNET_NIDSTR_SIZE + LNET_INTERFACE_SIZE)

static const char *wish_name(const struct ni_wish *wish,
			     char name[WISH_NAME_SIZE])
{
	char net[LNET_NIDSTR_SIZE];

	if (*wish->interface)
		snprintf(name, WISH_NAME_SIZE, "%s(%s)",
			 lnet_net_format(lnet_nid_net(&wish->conf.nid), net,
					 sizeof(net)),
			 wish->interface);
	else
		lnet_nid_format(&wish->conf.nid, name, WISH_NAME_SIZE);
	return name;
}

/* ---- gathering ---- */

static int step_new(struct plan *plan, const struct scope *s,
		    const struct tree *at, enum step_kind kind,
		    struct step **step_p)
{
	struct step *steps = plan->steps;
	unsigned int room = plan->room ? plan->room * 2 : 8;

	if (plan->n == plan->room) {
		steps = realloc(plan->steps, room * sizeof(*steps));
		if (!steps) {
			scope_fail(s, at, -ENOMEM, "no memory");
			return -ENOMEM;
		}
		plan->steps = steps;
		plan->room = room;
	}
	*step_p = &steps[plan->n++];
	**step_p = (struct step){ .kind = kind, .scope = *s, .at = at };
	return 0;
}

int plan_ni_add(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ni_wish *wish)
{
	struct step *step;
	int rc = step_new(plan, s, at, STEP_NI_ADD, &step);

	if (!rc)
		step->wish = *wish;
	return rc;
}

bool plan_deletes(const struct plan *plan, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < plan->n; i++)
		if (plan->steps[i].kind == STEP_NI_DEL &&
		    lnet_nid_eq(&plan->steps[i].nid, nid))
			return true;
	return false;
}

int plan_ni_del(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_ni_info *info)
{
	struct step *step;
	int rc = step_new(plan, s, at, STEP_NI_DEL, &step);

	if (rc)
		return rc;
	step->nid = info->nid;
	step->wish.conf = (struct ulnet_ni_conf){
		.nid = info->nid,
		.credits = info->tx_credits,
		.peer_credits = info->peer_credits,
		.peer_timeout = info->peer_timeout ? info->peer_timeout : -1,
		.peer_buffer_credits = info->peer_buffer_credits,
		.ntunables = info->ntunables,
	};
	memcpy(step->wish.tunables, info->tunables, sizeof(info->tunables));
	return 0;
}

static int read_peers(struct plan *plan, const struct scope *s,
		      const struct tree *at)
{
	int rc =
		plan->peers_read ? 0 : peer_list_read(plan->node, &plan->peers);

	if (rc)
		return scope_fail(s, at, rc, "cannot get peers: %s",
				  strerror(-rc));
	if (!plan->peers_read)
		peer_list_keep_configured(&plan->peers);
	plan->peers_read = true;
	return 0;
}

int plan_peer(struct plan *plan, const struct scope *s, const struct tree *at,
	      struct peer_wish *wish)
{
	struct step *step;
	int rc = read_peers(plan, s, at);

	if (!rc)
		rc = step_new(plan, s, at, STEP_PEER, &step);
	if (rc) {
		free(wish);
		return rc;
	}
	peer_wish_before(wish, &plan->peers);
	step->peer = wish;
	return 0;
}

int plan_fault(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_fault *fault, bool add)
{
	struct step *step;
	int rc = step_new(plan, s, at, add ? STEP_FAULT_ADD : STEP_FAULT_DEL,
			  &step);

	if (!rc)
		step->fault = *fault;
	return rc;
}

/* What brings a route back is what it was. */
static int route_remember(const struct plan *plan, struct ulnet_route *route)
{
	int n = lnet_routes(plan->node, NULL, 0);
	struct ulnet_route_info *infos = calloc((size_t)n + 1, sizeof(*infos));

	if (!infos)
		return -ENOMEM;
	n = MIN(n, lnet_routes(plan->node, infos, (unsigned int)n));
	for (int i = 0; i < n; i++)
		if (infos[i].route.net == route->net &&
		    lnet_nid_eq(&infos[i].route.gateway, &route->gateway))
			*route = infos[i].route;
	free(infos);
	return 0;
}

int plan_route(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_route *route, bool add)
{
	struct step *step;
	int rc = step_new(plan, s, at, add ? STEP_ROUTE_ADD : STEP_ROUTE_DEL,
			  &step);

	if (rc)
		return rc;
	step->route = *route;
	if (add || !route_remember(plan, &step->route))
		return 0;
	return scope_fail(s, at, -ENOMEM, "no memory");
}

/* The one step about routing, which is made if there is none. */
static struct step *routing_step(struct plan *plan, const struct scope *s,
				 const struct tree *at)
{
	struct step *step;

	for (unsigned int i = 0; i < plan->n; i++)
		if (plan->steps[i].kind == STEP_ROUTING)
			return &plan->steps[i];
	if (step_new(plan, s, at, STEP_ROUTING, &step))
		return NULL;
	lnet_routing(plan->node, &step->routing);
	step->routing_old = step->routing;
	return step;
}

int plan_routing(struct plan *plan, const struct scope *s,
		 const struct tree *at, bool enable)
{
	struct step *step = routing_step(plan, s, at);

	if (!step)
		return -ENOMEM;
	step->routing.enabled = enable;
	return 0;
}

int plan_buffers(struct plan *plan, const struct scope *s,
		 const struct tree *at, unsigned int kind, uint32_t n)
{
	struct step *step = routing_step(plan, s, at);

	if (!step)
		return -ENOMEM;
	step->routing.buffers[kind] = n;
	return 0;
}

int plan_policy(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_policy *policy, unsigned int index, bool add)
{
	struct step *step;
	int rc = step_new(plan, s, at, add ? STEP_POLICY_ADD : STEP_POLICY_DEL,
			  &step);

	if (rc)
		return rc;
	step->index = index;
	step->policy = malloc(sizeof(*policy));
	if (!step->policy)
		return scope_fail(s, at, -ENOMEM, "no memory");
	*step->policy = *policy;
	return 0;
}

static bool planned(const struct plan *plan, const char *setting,
		    struct step **step_p)
{
	for (unsigned int i = 0; i < plan->n; i++) {
		struct step *s = &plan->steps[i];

		if (s->kind == STEP_SET && !strcmp(s->setting, setting)) {
			*step_p = s;
			return true;
		}
	}
	return false;
}

int plan_set(struct plan *plan, const struct scope *s, const struct tree *at,
	     const struct ulnet_setting *setting, int64_t value)
{
	struct step *step;
	int rc;

	/* The last value counts, even if it is the one that the node has. */
	if (planned(plan, setting->name, &step)) {
		step->value = value;
		return 0;
	}
	if (value == setting->value)
		return 0;
	rc = step_new(plan, s, at, STEP_SET, &step);
	if (rc)
		return rc;
	step->setting = setting->name;
	step->old = setting->value;
	step->value = value;
	return 0;
}

bool plan_setting_is_on(const struct plan *plan, const char *name)
{
	struct step *step;

	return planned(plan, name, &step) ? step->value != 0
					  : setting_is_on(plan->node, name);
}

/* ---- doing, and undoing ---- */

static int ni_add(struct lnet *node, struct step *step)
{
	struct ni_wish *wish = &step->wish;

	wish->conf.interface = *wish->interface ? wish->interface : NULL;
	wish->conf.tunables = wish->tunables;
	wish->conf.nid_p = &step->nid;
	wish->conf.why_p = &step->missing;
	return lnet_ni_add(node, &wish->conf);
}

static int faults_remember(struct plan *plan)
{
	if (plan->faults)
		return 0;
	plan->faults = calloc(LNET_FAULTS_MAX, sizeof(*plan->faults));
	if (!plan->faults)
		return -ENOMEM;
	plan->nfaults = lnet_fault_list(plan->node, LNET_FAULT_KINDS,
					plan->faults, LNET_FAULTS_MAX);
	return MIN(plan->nfaults, 0);
}

static int fault_do(struct plan *plan, const struct step *step)
{
	const struct ulnet_fault *f = &step->fault;
	int rc = faults_remember(plan);

	if (rc)
		return rc;
	if (step->kind == STEP_FAULT_ADD)
		return lnet_fault_add(plan->node, f);
	rc = lnet_fault_del(plan->node, f->kind, &f->source, &f->dest);
	return rc ? MIN(rc, 0) : -ENOENT;
}

/* All rules are as before the plan, but that they count from 0: the first
 * of its steps to be undone does that for all. */
static int faults_undo(struct plan *plan)
{
	int rc = lnet_fault_del(plan->node, LNET_FAULT_KINDS, NULL, NULL);

	for (int i = 0; rc >= 0 && i < plan->nfaults; i++)
		rc = lnet_fault_add(plan->node, &plan->faults[i].fault);
	return MIN(rc, 0);
}

static int policy_do_add(struct lnet *node, struct step *step)
{
	unsigned int n = (unsigned int)MAX(lnet_policies(node, NULL, 0), 0);
	int rc = lnet_policy_add(node, step->index, step->policy, &step->why);

	if (!rc && step->index == LNET_POLICY_LAST)
		step->index = n;
	return rc;
}

static int policies_read(struct lnet *node, struct ulnet_policy **all_p)
{
	int n = lnet_policies(node, NULL, 0);

	*all_p = calloc((size_t)n + 1, sizeof(**all_p));
	return *all_p ? MIN(n, lnet_policies(node, *all_p, (unsigned int)n))
		      : -ENOMEM;
}

/* Other steps may have moved it. */
static int policy_do_del(struct lnet *node, struct step *step)
{
	struct ulnet_policy *all;
	int n = policies_read(node, &all), i = 0;

	while (i < n && memcmp(&all[i], step->policy, sizeof(*all)) != 0)
		i++;
	free(all);
	if (n < 0)
		return n;
	step->index = (unsigned int)i;
	return lnet_policy_del(node, step->index);
}

static int peer_do(struct plan *plan, struct step *step)
{
	static const char *const not_done[] = {
		[PEER_IS_US] = "not added",
		[PEER_STAYS_US] = "not deleted",
	};
	char nid[LNET_NIDSTR_SIZE];
	int rc = peer_wish_do(plan->node, step->peer);

	if (!rc && not_done[step->peer->kind])
		answer_note(step->scope.answer,
			    "peer %s is this node itself: %s",
			    lnet_nid_format(&step->peer->nids[0], nid,
					    sizeof(nid)),
			    not_done[step->peer->kind]);
	return rc;
}

static int step_do(struct plan *plan, struct step *step)
{
	switch (step->kind) {
	case STEP_NI_ADD:
		return ni_add(plan->node, step);
	case STEP_NI_DEL:
		return lnet_ni_del(plan->node, &step->nid);
	case STEP_PEER:
		return peer_do(plan, step);
	case STEP_FAULT_ADD:
	case STEP_FAULT_DEL:
		return fault_do(plan, step);
	case STEP_ROUTE_ADD:
		return lnet_route_add(plan->node, &step->route);
	case STEP_ROUTE_DEL:
		return lnet_route_del(plan->node, step->route.net,
				      &step->route.gateway);
	case STEP_ROUTING:
		return lnet_routing_set(plan->node, &step->routing);
	case STEP_POLICY_ADD:
		return policy_do_add(plan->node, step);
	case STEP_POLICY_DEL:
		return policy_do_del(plan->node, step);
	default:
		return lnet_setting_set(plan->node, step->setting, step->value);
	}
}

static int step_undo(struct plan *plan, struct step *step)
{
	switch (step->kind) {
	case STEP_NI_ADD:
		return lnet_ni_del(plan->node, &step->nid);
	case STEP_NI_DEL:
		return ni_add(plan->node, step);
	case STEP_PEER:
		return peer_wish_undo(plan->node, step->peer);
	case STEP_FAULT_ADD:
	case STEP_FAULT_DEL:
		return faults_undo(plan);
	case STEP_ROUTE_ADD:
		return lnet_route_del(plan->node, step->route.net,
				      &step->route.gateway);
	case STEP_ROUTE_DEL:
		return lnet_route_add(plan->node, &step->route);
	case STEP_ROUTING:
		return lnet_routing_set(plan->node, &step->routing_old);
	case STEP_POLICY_ADD:
		return lnet_policy_del(plan->node, step->index);
	case STEP_POLICY_DEL:
		return lnet_policy_add(plan->node, step->index, step->policy,
				       NULL);
	default:
		return lnet_setting_set(plan->node, step->setting, step->old);
	}
}

static void setting_complain(const struct step *step, int rc)
{
	const struct scope *s = &step->scope;
	const char *why = strerror(-rc);

	if (rc == -EINVAL) /* in its range: so another one forbids it */
		why = "transaction_timeout has to be more than retry_count";
	if (s->set)
		scope_set_fail(s, step->setting, rc, why);
	else
		scope_fail(s, step->at, rc, "cannot configure %s: %s",
			   step->setting, why);
}

static bool step_is_fault(const struct step *step)
{
	return step->kind == STEP_FAULT_ADD || step->kind == STEP_FAULT_DEL;
}

static bool step_is_policy(const struct step *step)
{
	return step->kind == STEP_POLICY_ADD || step->kind == STEP_POLICY_DEL;
}

static bool step_is_route(const struct step *step)
{
	return step->kind == STEP_ROUTE_ADD || step->kind == STEP_ROUTE_DEL;
}

static const char *route_add_complaint(int rc)
{
	switch (rc) {
	case -EEXIST:
		return "Route already exists";
	case -EHOSTUNREACH:
		return "No interface configured on the same net as gateway";
	case -EINVAL:
		return "the network is local, or the gateway is no other node "
		       "on a local network";
	default:
		return strerror(-rc);
	}
}

static void policy_complain(const struct step *step, int rc)
{
	const char *why = strerror(-rc);

	if (rc == -EINVAL && *step->why.what)
		why = step->why.what;
	else if (rc == -EEXIST)
		why = "there is one with these patterns";
	else if (rc == -ERANGE)
		why = "idx: there are fewer policies";
	else if (rc == -ENOSPC)
		why = "there are as many as a node may have";
	scope_fail(&step->scope, step->at, rc, "cannot %s udsp: %s",
		   step->kind == STEP_POLICY_ADD ? "add" : "del", why);
}

static void route_complain(const struct step *step, int rc)
{
	bool add = step->kind == STEP_ROUTE_ADD;
	char net[LNET_NIDSTR_SIZE], gateway[LNET_NIDSTR_SIZE];

	scope_fail(
		&step->scope, step->at, rc, "cannot %s route to %s by %s: %s",
		add ? "add" : "delete",
		lnet_net_format(step->route.net, net, sizeof(net)),
		lnet_nid_format(&step->route.gateway, gateway, sizeof(gateway)),
		add		? route_add_complaint(rc)
		: rc == -ENOENT ? "there is no such route"
				: strerror(-rc));
}

/* What the LND says of it, if anything, says more than the error does. */
static void ni_add_complain(const struct step *step, int rc)
{
	bool gone = rc == -ENODEV || rc == -EADDRNOTAVAIL;
	const char *what = step->missing, *error = NULL;
	char name[WISH_NAME_SIZE];

	if (!what && gone)
		what = rc == -ENODEV ? "no such interface"
				     : "the interface has no address that can "
				       "be used";
	if (!gone)
		error = strerror(-rc);
	scope_fail(&step->scope, step->at, gone ? -ENETDOWN : rc,
		   "cannot add network %s: %s%s%s",
		   wish_name(&step->wish, name), what ? what : "",
		   what && error ? ": " : "", error ? error : "");
}

/* In the words and numbers of the kernel's lnetctl, where it has some. */
static void step_complain(const struct step *step, int rc)
{
	const struct scope *s = &step->scope;
	char name[WISH_NAME_SIZE], text[PEER_WISH_TEXT_SIZE];

	if (step->kind == STEP_SET)
		setting_complain(step, rc);
	else if (step_is_route(step))
		route_complain(step, rc);
	else if (step_is_policy(step))
		policy_complain(step, rc);
	else if (step->kind == STEP_ROUTING)
		scope_fail(s, step->at, rc, "cannot configure routing: %s",
			   strerror(-rc));
	else if (step->kind == STEP_PEER)
		scope_fail(s, step->at, rc, "%s",
			   peer_wish_complaint(step->peer, rc, text));
	else if (step_is_fault(step))
		scope_fail(s, step->at, rc, "cannot %s fault rule: %s",
			   step->kind == STEP_FAULT_ADD ? "add" : "del",
			   rc == -ENOENT   ? "there is no such rule"
			   : rc == -EEXIST ? "there is this rule already"
					   : strerror(-rc));
	else if (step->kind == STEP_NI_DEL)
		scope_fail(s, step->at, rc, "cannot del network %s: %s",
			   wish_name(&step->wish, name), strerror(-rc));
	else
		ni_add_complain(step, rc);
}

/* A setting, an NI, or the primary NID of a peer. */
static const char *step_name(const struct step *step, char text[WISH_NAME_SIZE])
{
	if (step->kind == STEP_SET)
		return step->setting;
	if (step_is_fault(step))
		return "fault rules";
	if (step->kind == STEP_ROUTING)
		return "routing";
	if (step_is_policy(step))
		return "udsp";
	if (step_is_route(step))
		return lnet_nid_format(&step->route.gateway, text,
				       WISH_NAME_SIZE);
	if (step->kind == STEP_PEER)
		return lnet_nid_format(&step->peer->nids[0], text,
				       WISH_NAME_SIZE);
	return wish_name(&step->wish, text);
}

static void step_back(struct plan *plan, struct step *step)
{
	char text[WISH_NAME_SIZE];
	const char *name;
	int rc = step_undo(plan, step);

	if (!rc)
		return;
	name = step_name(step, text);
	lnet_log(LNET_LOG_ERR, "config", "%s: could not be restored: %s", name, strerror(-rc));
	answer_note(step->scope.answer, "%s could not be restored: %s", name,
		    strerror(-rc));
}

/* The NIs of a net stand in the order in which they came: those that come back
 * do so in the order in which they went. */
static void plan_undo(struct plan *plan, unsigned int done)
{
	for (unsigned int i = done; i--;)
		if (plan->steps[i].kind != STEP_NI_DEL)
			step_back(plan, &plan->steps[i]);
	for (unsigned int i = 0; i < done; i++)
		if (plan->steps[i].kind == STEP_NI_DEL)
			step_back(plan, &plan->steps[i]);
}

static void step_log(const struct step *step)
{
	static const char *const done[] = { [PEER_ADD] = "added",
					    [PEER_DEL] = "has fewer NIDs",
					    [PEER_DEL_WHOLE] = "deleted",
					    [PEER_IS_US] = "is this node",
					    [PEER_STAYS_US] = "is this node" };
	char nid[LNET_NIDSTR_SIZE];

	if (step->kind == STEP_SET)
		lnet_log(LNET_LOG_INFO, "config", "%s: %" PRId64, step->setting, step->value);
	else if (step->kind == STEP_PEER)
		lnet_log(LNET_LOG_INFO, 
			"config", "peer %s: %s",
			lnet_nid_format(&step->peer->nids[0], nid, sizeof(nid)),
			done[step->peer->kind]);
	else if (step->kind == STEP_ROUTING)
		lnet_log(LNET_LOG_INFO, "config", "routing: %s",
			 step->routing.enabled ? "on" : "off");
	else if (step_is_policy(step))
		lnet_log(LNET_LOG_INFO, "config", "policies: one %s",
			 step->kind == STEP_POLICY_ADD ? "added" : "deleted");
	else if (step_is_route(step))
		lnet_log(LNET_LOG_INFO, 
			"config", "route by %s: %s",
			lnet_nid_format(&step->route.gateway, nid, sizeof(nid)),
			step->kind == STEP_ROUTE_ADD ? "added" : "deleted");
	else if (step_is_fault(step))
		lnet_log(LNET_LOG_INFO, "config", "fault rules: one %s",
			 step->kind == STEP_FAULT_ADD ? "added" : "deleted");
	else
		lnet_log(LNET_LOG_INFO, "config", "%s: %s",
			 lnet_nid_format(&step->nid, nid, sizeof(nid)),
			 step->kind == STEP_NI_ADD ? "added" : "deleted");
}

/* A setting may be refused because of the value of another one, which comes
 * later: it then waits till the others have theirs. */
static bool step_defer(struct plan *plan, unsigned int i)
{
	struct step step = plan->steps[i];

	if (step.kind != STEP_SET || step.deferred || i + 1 == plan->n)
		return false;
	step.deferred = true;
	memmove(&plan->steps[i], &plan->steps[i + 1],
		(plan->n - i - 1) * sizeof(step));
	plan->steps[plan->n - 1] = step;
	return true;
}

int plan_run(struct plan *plan)
{
	unsigned int i = 0;

	while (i < plan->n) {
		int rc = step_do(plan, &plan->steps[i]);

		if (!rc) {
			step_log(&plan->steps[i++]);
			continue;
		}
		if (rc == -EINVAL && step_defer(plan, i))
			continue;
		/* What was noted will not happen. */
		if (!plan->keep_notes)
			plan->steps[i].scope.answer->notes = NULL;
		step_complain(&plan->steps[i], rc);
		/* A wish for a peer may have been half fulfilled. */
		plan_undo(plan, i + (plan->steps[i].kind == STEP_PEER));
		return rc;
	}
	return 0;
}
