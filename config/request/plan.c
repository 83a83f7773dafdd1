/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/request/step.h"

#include <errno.h>

void plan_init(struct plan *plan, struct lnet *node, struct cancel *cancel)
{
	*plan = (struct plan){ .node = node, .cancel = cancel };
}

void plan_fini(struct plan *plan)
{
	for (unsigned int i = 0; i < plan->n; i++) {
		free(plan->steps[i].peer);
		free(plan->steps[i].policy);
		free(plan->steps[i].tls_name);
		free(plan->steps[i].tls_was);
	}
	free(plan->steps);
	free(plan->faults);
	free(plan->routes);
	free(plan->policies);
	peer_list_free(&plan->peers);
}

/* ---- gathering ---- */

static int step_new(struct plan *plan, const struct scope *s,
		    const struct tree *at, enum step_kind kind, bool add,
		    struct step **step_p)
{
	struct step *steps = plan->steps;
	unsigned int room = plan->room ? plan->room * 2 : 8;

	if (plan->n == plan->room) {
		steps = realloc(plan->steps, room * sizeof(*steps));
		if (!steps)
			return scope_fail(s, at, -ENOMEM, "no memory");
		plan->steps = steps;
		plan->room = room;
	}
	*step_p = &steps[plan->n++];
	**step_p = (struct step){
		.kind = kind, .add = add, .scope = *s, .at = at
	};
	return 0;
}

int plan_ni_add(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ni_spec *spec)
{
	struct step *step;
	int rc = step_new(plan, s, at, STEP_NI, true, &step);

	if (!rc)
		step->spec = *spec;
	return rc;
}

static bool step_deletes_ni(const struct step *step)
{
	return step->kind == STEP_NI && !step->add;
}

bool plan_deletes(const struct plan *plan, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < plan->n; i++)
		if (step_deletes_ni(&plan->steps[i]) &&
		    lnet_nid_eq(&plan->steps[i].nid, nid))
			return true;
	return false;
}

int plan_ni_del(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_ni_info *info)
{
	struct step *step;
	int rc = step_new(plan, s, at, STEP_NI, false, &step);

	if (rc)
		return rc;
	step->nid = info->nid;
	step->spec.conf = (struct ulnet_ni_conf){
		.nid = info->nid,
		.credits = info->tx_credits,
		.peer_credits = info->peer_credits,
		.peer_timeout = info->peer_timeout ? info->peer_timeout : -1,
		.peer_buffer_credits = info->peer_buffer_credits,
		.ntunables = info->ntunables,
	};
	memcpy(step->spec.tunables, info->tunables, sizeof(info->tunables));
	return 0;
}

static int plan_read_peers(struct plan *plan, const struct scope *s,
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
	      struct peer_change *change)
{
	const struct peer_list *list = &plan->peers;
	struct step *step;
	unsigned int i;
	int rc = plan_read_peers(plan, s, at);

	if (!rc)
		rc = step_new(plan, s, at, STEP_PEER, true, &step);
	if (rc) {
		free(change);
		return rc;
	}
	step->peer = change;
	i = peer_list_seek(list, &change->nids[0]);
	if (i == list->n ||
	    !lnet_nid_eq(&list->infos[i].primary, &change->nids[0]))
		return 0;
	change->before = &list->infos[i];
	change->nbefore = peer_list_span(list, i);
	return 0;
}

static int plan_read_faults(struct plan *plan)
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

int plan_fault(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_fault *fault, bool add)
{
	struct step *step;
	int rc = plan_read_faults(plan);

	if (rc)
		return scope_fail(s, at, rc, "cannot get fault rules: %s",
				  strerror(-rc));
	rc = step_new(plan, s, at, STEP_FAULT, add, &step);
	if (!rc)
		step->fault = *fault;
	return rc;
}

static int by_gateway(const void *pa, const void *pb)
{
	const struct ulnet_route *a = pa, *b = pb;
	int c = lnet_nid_cmp(&a->gateway, &b->gateway);

	return c ? c : (a->net > b->net) - (a->net < b->net);
}

static int plan_read_routes(struct plan *plan)
{
	struct ulnet_route_info *infos;
	int n = plan->routes ? 0 : routes_read(plan->node, &infos);

	if (plan->routes || n < 0)
		return n;
	plan->routes = calloc((size_t)n + 1, sizeof(*plan->routes));
	for (int i = 0; plan->routes && i < n; i++)
		plan->routes[i] = infos[i].route;
	free(infos);
	if (!plan->routes)
		return -ENOMEM;
	plan->nroutes = (unsigned int)n;
	qsort(plan->routes, plan->nroutes, sizeof(*plan->routes), by_gateway);
	return 0;
}

/* Fills in the hops and the priority of a route that is to be deleted, so that
 * it can be restored. */
static int route_remember(struct plan *plan, struct ulnet_route *route)
{
	const struct ulnet_route *had;
	int rc = plan_read_routes(plan);

	if (rc)
		return rc;
	had = bsearch(route, plan->routes, plan->nroutes, sizeof(*had),
		      by_gateway);
	if (had)
		*route = *had;
	return 0;
}

int plan_route(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_route *route, bool add)
{
	struct step *step;
	int rc = step_new(plan, s, at, STEP_ROUTE, add, &step);

	if (rc)
		return rc;
	step->route = *route;
	if (add || !route_remember(plan, &step->route))
		return 0;
	return scope_fail(s, at, -ENOMEM, "no memory");
}

int plan_routing(struct plan *plan, const struct scope *s,
		 const struct tree *at, unsigned int kind, uint32_t value)
{
	struct step *step = NULL;
	int rc;

	/* All settings of routing share one step. */
	for (unsigned int i = 0; i < plan->n; i++)
		if (plan->steps[i].kind == STEP_ROUTING)
			step = &plan->steps[i];
	if (!step) {
		rc = step_new(plan, s, at, STEP_ROUTING, true, &step);
		if (rc)
			return rc;
		lnet_routing(plan->node, &step->routing);
		step->routing_old = step->routing;
	}
	if (kind == LNET_BUFFER_KINDS)
		step->routing.enabled = value;
	else
		step->routing.buffers[kind] = value;
	return 0;
}

int plan_policy(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_policy *policy, uint32_t id, bool add)
{
	struct step *step;
	int rc = 0;

	if (!plan->policies)
		rc = plan->npolicies =
			policies_read(plan->node, &plan->policies);
	if (rc < 0)
		return scope_fail(s, at, rc, "cannot get policies: %s",
				  strerror(-rc));
	rc = step_new(plan, s, at, STEP_POLICY, add, &step);
	if (rc)
		return rc;
	step->id = id;
	step->policy = malloc(sizeof(*policy));
	if (!step->policy)
		return scope_fail(s, at, -ENOMEM, "no memory");
	*step->policy = *policy;
	return 0;
}

int plan_tls_rule(struct plan *plan, const struct scope *s,
		  const struct tree *at, const char *name, const char *nids)
{
	size_t size = strlen(name) + 1;
	struct step *step;
	int rc = step_new(plan, s, at, STEP_TLS, nids, &step);

	if (rc)
		return rc;
	step->tls_name = malloc(size + (nids ? strlen(nids) : 0) + 1);
	if (!step->tls_name)
		return scope_fail(s, at, -ENOMEM, "no memory");
	memcpy(step->tls_name, name, size);
	step->tls_nids = step->tls_name + size;
	strcpy(step->tls_nids, nids ? nids : "");
	return 0;
}

static int read_settings(struct plan *plan)
{
	int rc = plan->settings_read
			 ? 0
			 : settings_read(plan->node, &plan->settings);

	plan->settings_read = !rc;
	return rc;
}

int plan_need_settings(struct plan *plan, const struct scope *s)
{
	int rc = read_settings(plan);

	return rc ? scope_fail(s, NULL, rc, "cannot get settings: %s",
			       strerror(-rc))
		  : 0;
}

/* The step that sets @setting. NULL: there is none. */
static struct step *setting_step(const struct plan *plan, const char *setting)
{
	for (unsigned int i = 0; i < plan->n; i++)
		if (plan->steps[i].kind == STEP_SET &&
		    !strcmp(plan->steps[i].setting, setting))
			return &plan->steps[i];
	return NULL;
}

int plan_set(struct plan *plan, const struct scope *s, const struct tree *at,
	     const struct ulnet_setting *setting, int64_t value)
{
	struct step *step = setting_step(plan, setting->name);
	int rc;

	/* the step stays even if @value is the one that the node has */
	if (step) {
		step->value = value;
		return 0;
	}
	if (value == setting->value)
		return 0;
	rc = step_new(plan, s, at, STEP_SET, true, &step);
	if (rc)
		return rc;
	step->setting = setting->name;
	step->old = setting->value;
	step->value = value;
	return 0;
}

int plan_log(struct plan *plan, const struct scope *s, const struct tree *at,
	     const char *text)
{
	const struct ulnet_setting setting = { .name = PLAN_LOG };

	plan->log = text;
	lnet_log_levels(plan->log_old, sizeof(plan->log_old));
	return plan_set(plan, s, at, &setting, true);
}

bool plan_setting_is_on(struct plan *plan, const char *name)
{
	const struct step *step = setting_step(plan, name);

	return step ? step->value != 0
		    : !read_settings(plan) &&
			       settings_are_on(&plan->settings, name);
}

/* ---- doing and undoing changes of peers ---- */

static int ignore_enoent(int rc)
{
	return rc == -ENOENT ? 0 : rc;
}

/* Does what the node knows of @nid explain the error @rc of the change? */
static bool peer_nid_fails(struct lnet *node, const struct peer_change *c,
			   const struct ulnet_nid *nid, int rc)
{
	struct ulnet_peer_info info;
	bool known = !lnet_peer_info(node, nid, &info);
	bool member = known && info.configured &&
		      lnet_nid_eq(&info.primary, &c->nids[0]);

	if (c->kind == PEER_ADD && rc == -EINVAL)
		return nid_is_ours(node, nid);
	if (c->kind == PEER_ADD && rc == -EEXIST)
		return known && info.configured && !member;
	return c->kind == PEER_DEL && rc == -ENOENT && !member;
}

/* Finds out which of the NIDs has made the change fail with @rc: a change of
 * several is made as a whole, so its error does not say. Returns 0: none of
 * them in particular, or the primary NID. */
static unsigned int peer_blame(struct lnet *node, const struct peer_change *c,
			       int rc)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (peer_nid_fails(node, c, &c->nids[i], rc))
			return i;
	return 0;
}

static bool peer_lists(const struct peer_change *c, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (lnet_nid_eq(&c->nids[i], nid))
			return true;
	return false;
}

/* Adds the NIDs to the peer, and, if the change names all of its NIDs, deletes
 * those that the peer had before and that are not named. */
static int peer_add(struct lnet *node, const struct peer_change *c)
{
	int rc = lnet_peer_add(node, c->nids, c->n, c->multi_rail);

	for (unsigned int i = 0; !rc && c->whole && i < c->nbefore; i++)
		if (!peer_lists(c, &c->before[i].nid))
			rc = ignore_enoent(lnet_peer_del(node, &c->nids[0],
							 &c->before[i].nid, 1));
	return rc;
}

static int peer_do(struct lnet *node, struct peer_change *c)
{
	int rc = 0;

	switch (c->kind) {
	case PEER_ADD:
		rc = peer_add(node, c);
		break;
	case PEER_DEL:
		rc = lnet_peer_del(node, &c->nids[0], &c->nids[1], c->n - 1);
		break;
	case PEER_DEL_WHOLE:
		return lnet_peer_del(node, &c->nids[0], NULL, 0);
	default:
		return 0;
	}
	if (rc)
		c->at = peer_blame(node, c, rc);
	if (rc == -EINVAL && c->kind == PEER_ADD && c->at == 0 &&
	    c->may_be_us) {
		c->kind = PEER_IS_US;
		rc = 0;
	}
	return rc;
}

/* Adds one NID by itself. */
static int peer_nid_add(struct lnet *node, const struct ulnet_nid *primary,
			const struct ulnet_nid *nid, bool multi_rail)
{
	const struct ulnet_nid pair[] = { *primary, *nid };

	return lnet_peer_add(node, pair, lnet_nid_eq(primary, nid) ? 1 : 2,
			     multi_rail);
}

static bool peer_was_there(const struct peer_change *c,
			   const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < c->nbefore; i++)
		if (lnet_nid_eq(&c->before[i].nid, nid))
			return true;
	return false;
}

/* Restores the peer as it was before the plan, also after a change that failed
 * half-way. */
static int peer_undo(struct lnet *node, const struct peer_change *c)
{
	const struct ulnet_nid *primary = &c->nids[0];
	int rc = 0;

	if (c->kind == PEER_IS_US || c->kind == PEER_STAYS_US)
		return 0;
	if (!c->nbefore)
		return ignore_enoent(lnet_peer_del(node, primary, NULL, 0));
	for (unsigned int i = 0; !rc && i < c->nbefore; i++)
		rc = peer_nid_add(node, primary, &c->before[i].nid,
				  c->before->multi_rail);
	for (unsigned int i = 1; !rc && i < c->n; i++)
		if (!peer_was_there(c, &c->nids[i]))
			rc = ignore_enoent(
				lnet_peer_del(node, primary, &c->nids[i], 1));
	return rc;
}

/* ---- doing and undoing other steps ---- */

static int fault_do(struct lnet *node, const struct step *step)
{
	const struct ulnet_fault *f = &step->fault;
	int rc;

	if (step->add)
		return lnet_fault_add(node, f);
	rc = lnet_fault_del(node, f->kind, &f->source, &f->dest);
	return rc ? MIN(rc, 0) : -ENOENT;
}

/* Restores all rules as they were before the plan, but for their counters. */
static int faults_undo(struct plan *plan)
{
	int rc = lnet_fault_del(plan->node, LNET_FAULT_KINDS, NULL, NULL);

	for (int i = 0; rc >= 0 && i < plan->nfaults; i++)
		rc = lnet_fault_add(plan->node, &plan->faults[i].fault);
	return MIN(rc, 0);
}

static int request_ni_add(struct lnet *node, struct step *step)
{
	struct ni_spec *spec = &step->spec;

	spec->conf.interface = *spec->interface ? spec->interface : NULL;
	spec->conf.tunables = spec->tunables;
	spec->conf.nid_p = &step->nid;
	spec->conf.why_p = &step->ni_why;
	return lnet_ni_add(node, &spec->conf);
}

/* Deletes the policy of the step, whose id other steps may have changed. */
static int policy_del(struct lnet *node, const struct ulnet_policy *p)
{
	struct ulnet_policy *all;
	int n = policies_read(node, &all), i = 0, rc;

	while (i < n && (strcmp(all[i].src, p->src) != 0 ||
			 strcmp(all[i].dst, p->dst) != 0 ||
			 strcmp(all[i].rte, p->rte) != 0))
		i++;
	if (i < n)
		rc = lnet_policy_del(node, all[i].id);
	else
		rc = n < 0 ? n : -ENOENT;
	free(all);
	return rc;
}

/* Restores all policies as they were before the plan. */
static int policies_undo(struct plan *plan)
{
	struct ulnet_policy *all;
	int rc = 0, n;

	if (plan->policies_restored)
		return 0;
	plan->policies_restored = true;
	n = policies_read(plan->node, &all);
	if (n < 0)
		return n;
	for (int i = n; !rc && i--;)
		rc = lnet_policy_del(plan->node, all[i].id);
	free(all);
	for (int i = 0; !rc && i < plan->npolicies; i++)
		rc = lnet_policy_add(plan->node, plan->policies[i].id,
				     &plan->policies[i], NULL);
	return rc;
}

/* Keeps the rule that a step replaces or deletes. */
static int tls_remember(struct lnet *node, struct step *step)
{
	struct ulnet_tls_rule *was = malloc(sizeof(*was));

	if (!was)
		return -ENOMEM;
	if (lnet_tls_rule(node, step->tls_name, was))
		free(was);
	else
		step->tls_was = was;
	return 0;
}

static int tls_apply(struct lnet *node, struct step *step, bool forward)
{
	const struct ulnet_tls_rule *was;
	int rc = forward ? tls_remember(node, step) : 0;

	if (rc)
		return rc;
	was = step->tls_was;
	if (forward && step->add)
		return lnet_tls_rule_set(node, step->tls_name, step->tls_nids,
					 &step->why);
	if (forward || !was)
		return lnet_tls_rule_del(node, step->tls_name);
	return lnet_tls_rule_set(node, was->name, was->nids, NULL);
}

static int setting_apply(const struct plan *plan, const struct step *step,
			 bool forward)
{
	if (strcmp(step->setting, PLAN_LOG) != 0)
		return lnet_setting_set(plan->node, step->setting,
					forward ? step->value : step->old);
	return lnet_log_levels_set(forward ? plan->log : plan->log_old, NULL);
}

/* Does the step, or (@forward false) undoes it: to undo an addition is to
 * delete, and the other way around. */
static int step_apply(struct plan *plan, struct step *step, bool forward)
{
	struct lnet *node = plan->node;
	bool add = step->add == forward;

	switch (step->kind) {
	case STEP_NI:
		return add ? request_ni_add(node, step)
			   : lnet_ni_del(node, &step->nid);
	case STEP_PEER:
		return forward ? peer_do(node, step->peer)
			       : peer_undo(node, step->peer);
	case STEP_FAULT:
		return forward ? fault_do(node, step) : faults_undo(plan);
	case STEP_ROUTING:
		return lnet_routing_set(node, forward ? &step->routing
						      : &step->routing_old);
	case STEP_POLICY:
		if (!forward)
			return policies_undo(plan);
		return add ? lnet_policy_add(node, step->id, step->policy,
					     &step->why)
			   : policy_del(node, step->policy);
	case STEP_TLS:
		return tls_apply(node, step, forward);
	default:
		return setting_apply(plan, step, forward);
	}
}

/* ---- carrying the plan out ---- */

/* The number of steps from step @i on that are carried out together: those of
 * routes, of which there may be thousands (lnet_routes_change(3)). */
static unsigned int steps_together(const struct plan *plan, unsigned int i,
				   unsigned int end)
{
	unsigned int n = 0;

	while (i + n < end && plan->steps[i + n].kind == STEP_ROUTE)
		n++;
	return MAX(n, 1);
}

/* Does the @n steps at @steps, which are about routes; or undoes them, the last
 * one first. If one of them cannot be done, none is, and *@failed_p says which.
 */
static int routes_apply(struct plan *plan, const struct step *steps,
			unsigned int n, bool forward, unsigned int *failed_p)
{
	struct ulnet_route_change *changes = calloc(n, sizeof(*changes));
	int rc;

	if (!changes)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		const struct step *step = &steps[forward ? i : n - 1 - i];

		changes[i].route = step->route;
		changes[i].del = step->add != forward;
	}
	rc = lnet_routes_change(plan->node, changes, n, failed_p);
	free(changes);
	return rc;
}

/* Does steps that are carried out together. */
static int steps_apply(struct plan *plan, struct step *steps, unsigned int n,
		       unsigned int *failed_p)
{
	*failed_p = 0;
	return steps->kind == STEP_ROUTE
		       ? routes_apply(plan, steps, n, true, failed_p)
		       : step_apply(plan, steps, true);
}

static void steps_undo(struct plan *plan, struct step *step, unsigned int n)
{
	char text[STEP_NAME_SIZE];
	unsigned int failed = 0;
	const char *name;
	int rc = step->kind == STEP_ROUTE
			 ? routes_apply(plan, step, n, false, &failed)
			 : step_apply(plan, step, false);

	if (!rc)
		return;
	name = step_name(step + n - 1 - failed, text);
	lnet_log(LNET_LOG_ERR, "config", "%s: could not be restored: %s", name,
		 strerror(-rc));
	answer_note(step->scope.answer, "%s could not be restored: %s", name,
		    strerror(-rc));
}

/* Undoes the first @done steps, the last one first. But NIs that were deleted
 * are added again in the order of their deletion, because that becomes the
 * order of the NIs of a net. */
static void plan_undo(struct plan *plan, unsigned int done)
{
	if (plan->cancel && atomic_load(&plan->cancel->at_end))
		return;
	for (unsigned int i = done, n; i; i -= n) {
		n = 1;
		while (n < i && plan->steps[i - 1].kind == STEP_ROUTE &&
		       plan->steps[i - 1 - n].kind == STEP_ROUTE)
			n++;
		if (!step_deletes_ni(&plan->steps[i - n]))
			steps_undo(plan, &plan->steps[i - n], n);
	}
	for (unsigned int i = 0; i < done; i++)
		if (step_deletes_ni(&plan->steps[i]))
			steps_undo(plan, &plan->steps[i], 1);
}

/* Moves step @i to the end if it is a setting, which may have been refused
 * because of another setting that a later step changes. Once for each step. */
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

/* Moves the deletions of NIs behind all other steps, as no other step depends
 * on them. So they hardly ever have to be undone, which would add the NI as the
 * last one of the node: a primary NI would no longer be primary. If there is no
 * memory, the order stays. */
static void plan_del_nis_last(struct plan *plan)
{
	struct step *last = malloc((plan->n + 1) * sizeof(*last));
	unsigned int kept = 0, n = 0;

	for (unsigned int i = 0; last && i < plan->n; i++) {
		if (step_deletes_ni(&plan->steps[i]))
			last[n++] = plan->steps[i];
		else
			plan->steps[kept++] = plan->steps[i];
	}
	if (n)
		memcpy(&plan->steps[kept], last, n * sizeof(*last));
	free(last);
}

int plan_run(struct plan *plan)
{
	unsigned int i = 0, n, failed;

	plan_del_nis_last(plan);
	while (i < plan->n) {
		int rc = cancel_is_due(plan->cancel) ? -ECANCELED : 0;

		n = steps_together(plan, i, plan->n);
		failed = 0;
		if (!rc)
			rc = steps_apply(plan, &plan->steps[i], n, &failed);
		if (!rc) {
			while (n--)
				step_tell(&plan->steps[i++]);
			continue;
		}
		if (rc == -EINVAL && step_defer(plan, i))
			continue;
		/* The notes are about steps that will be undone. */
		if (!plan->keep_notes)
			plan->steps[i].scope.answer->notes = NULL;
		step_complain(&plan->steps[i + failed], rc);
		/* A change of a peer may be half made: it is undone, too. */
		plan_undo(plan, i + (plan->steps[i].kind == STEP_PEER));
		return rc;
	}
	return 0;
}
