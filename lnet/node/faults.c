/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds, deletes and lists the fault rules of a node. */
#include "ulnet/fault.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/fault/inject.h"
#include "lnet/node/node.h"

static unsigned int fault_set_count(const struct fault_set *set)
{
	return set ? set->n : 0;
}

/* ---- changes ---- */

static int faults_take(struct lnet_cpt *cpt, void *arg)
{
	const struct fault_set *set = arg;

	msg_cpt(cpt)->faults = set ? &set->does : NULL;
	return 0;
}

/* Publishes @new, a set of rules, and owns it from then on. After return no CPT
 * uses a rule that is not in @new. If @new has no rules, NULL is published, and
 * @new is freed. */
static void faults_publish(struct lnet *node, struct fault_set *new)
{
	if (!new->n) {
		free(new);
		new = NULL;
	}
	node_publish(node, &whole_node(node)->faults, new, faults_take);
}

/* A call on a loop, to get a random seed and the time. */
struct draw_call {
	struct loop *loop;
	uint64_t seed, now;
};

static int fault_draw(void *arg)
{
	struct draw_call *c = arg;

	c->seed = loop_random(c->loop);
	c->now = loop_now(c->loop);
	return 0;
}

static int add_locked(struct lnet *node, const struct ulnet_fault *fault)
{
	const struct fault_set *old = whole_node(node)->faults;
	struct draw_call d = { .loop = node->loops[0] };
	unsigned int n = fault_set_count(old);
	struct fault_set *new;

	for (unsigned int i = 0; i < n; i++)
		if (fault_rule_same(old->rule[i], fault))
			return -EEXIST;
	if (n == LNET_FAULTS_MAX)
		return -ENOSPC;
	BUG_ON(loop_call(d.loop, fault_draw, &d));
	new = fault_set_new(n + 1);
	if (!new)
		return -ENOMEM;
	for (; new->n < n; new->n++)
		new->rule[new->n] = old->rule[new->n];
	new->rule[n] = fault_rule_new(fault, d.seed, d.now);
	if (!new->rule[n]) {
		free(new);
		return -ENOMEM;
	}
	new->n++;
	faults_publish(node, new);
	return 0;
}

int lnet_fault_add(struct lnet *node, const struct ulnet_fault *fault)
{
	int rc = fault_check(fault);

	if (!rc)
		rc = node_control_begin(node);
	if (!rc) {
		rc = add_locked(node, fault);
		node_control_end(node);
	}
	return rc;
}

int lnet_fault_del(struct lnet *node, enum ulnet_fault_kind kind,
		   const struct ulnet_nid *source, const struct ulnet_nid *dest)
{
	struct fault_rule *gone[LNET_FAULTS_MAX];
	const struct fault_set *old;
	struct fault_set *new;
	int rc, ngone = 0;

	if ((unsigned int)kind > LNET_FAULT_KINDS)
		return -EINVAL;
	rc = node_control_begin(node);
	if (rc)
		return rc;
	old = whole_node(node)->faults;
	new = fault_set_new(fault_set_count(old));
	for (unsigned int i = 0; new &&i < fault_set_count(old); i++)
		if (fault_rule_is(old->rule[i], kind, source, dest))
			gone[ngone++] = old->rule[i];
		else
			new->rule[new->n++] = old->rule[i];
	if (new)
		faults_publish(node, new);
	else
		rc = -ENOMEM;
	node_control_end(node);
	if (rc)
		return rc;
	for (int i = 0; i < ngone; i++)
		free(gone[i]);
	return ngone;
}

void faults_fini(struct lnet *node)
{
	struct fault_set *set = whole_node(node)->faults;

	for (unsigned int i = 0; i < fault_set_count(set); i++)
		free(set->rule[i]);
	free(set);
}

/* ---- lists ---- */

/* Fills @infos with the first @n rules of this kind; or, with @reset, sets the
 * counters of all of them to 0. Returns the number of all rules of this kind.
 */
static int faults_walk(struct lnet *node, enum ulnet_fault_kind kind,
		       struct ulnet_fault_info *infos, unsigned int n,
		       bool reset)
{
	const struct fault_set *set;
	unsigned int count = 0;

	if ((unsigned int)kind > LNET_FAULT_KINDS)
		return -EINVAL;
	if (atomic_load(&node->closing))
		return -ESHUTDOWN;
	pthread_mutex_lock(&net_node(node)->config_lock);
	set = whole_node(node)->faults;
	for (unsigned int i = 0; i < fault_set_count(set); i++) {
		if (!fault_rule_is(set->rule[i], kind, NULL, NULL))
			continue;
		if (reset)
			fault_rule_reset(set->rule[i]);
		else if (count < n)
			fault_rule_info(set->rule[i], &infos[count]);
		count++;
	}
	pthread_mutex_unlock(&net_node(node)->config_lock);
	return (int)count;
}

int lnet_fault_list(struct lnet *node, enum ulnet_fault_kind kind,
		    struct ulnet_fault_info *infos, unsigned int n)
{
	return faults_walk(node, kind, infos, n, false);
}

int lnet_fault_reset(struct lnet *node, enum ulnet_fault_kind kind)
{
	int rc = faults_walk(node, kind, NULL, 0, true);

	return MIN(rc, 0);
}
