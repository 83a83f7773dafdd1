/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault rules of a node: adding, deleting and listing them. */
#include "ulnet/fault.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/fault/inject.h"
#include "lnet/node/node.h"

static unsigned int set_count(const struct fault_set *set)
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

/* Control. All CPTs hold @new afterwards, NULL for no rules: the old set can
 * go, and so can rules that are not in @new. */
static void publish(struct lnet *node, struct fault_set *new)
{
	struct fault_set *old = whole_node(node)->faults;

	pthread_mutex_lock(&net_node(node)->config_lock);
	whole_node(node)->faults = new;
	pthread_mutex_unlock(&net_node(node)->config_lock);
	BUG_ON(node_each_cpt(node, faults_take, new));
	free(old);
}

struct draw_call {
	struct loop *loop;
	uint64_t seed, now;
};

static int draw(void *arg)
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
	unsigned int n = set_count(old);
	struct fault_set *new;

	for (unsigned int i = 0; i < n; i++)
		if (fault_rule_same(old->rule[i], fault))
			return -EEXIST;
	if (n == LNET_FAULTS_MAX)
		return -ENOSPC;
	BUG_ON(loop_call(d.loop, draw, &d));
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
	publish(node, new);
	return 0;
}

int lnet_fault_add(struct lnet *node, const struct ulnet_fault *fault)
{
	int rc = fault_check(fault);

	if (!rc)
		rc = node_control_begin(node);
	if (rc)
		return rc;
	rc = add_locked(node, fault);
	node_control_end(node);
	return rc;
}

struct choice {
	enum ulnet_fault_kind kind;
	const struct ulnet_nid *source, *dest;
};

static bool is_chosen(const struct choice *c, const struct fault_rule *rule)
{
	return fault_rule_is(rule, c->kind, c->source, c->dest);
}

/* Those that stay in *@new_p, NULL if none does; those that go at @gone, with
 * room for all. Returns how many go, or -ENOMEM. */
static int choose(const struct fault_set *old, const struct choice *c,
		  struct fault_set **new_p, struct fault_rule **gone)
{
	struct fault_set *new = fault_set_new(set_count(old));
	int ngone = 0;

	if (!new)
		return -ENOMEM;
	for (unsigned int i = 0; i < set_count(old); i++)
		if (is_chosen(c, old->rule[i]))
			gone[ngone++] = old->rule[i];
		else
			new->rule[new->n++] = old->rule[i];
	if (!new->n) {
		free(new);
		new = NULL;
	}
	*new_p = new;
	return ngone;
}

static int del_locked(struct lnet *node, const struct choice *c)
{
	struct fault_rule *gone[LNET_FAULTS_MAX];
	struct fault_set *new;
	int n = choose(whole_node(node)->faults, c, &new, gone);

	if (n < 0)
		return n;
	publish(node, new);
	for (int i = 0; i < n; i++)
		free(gone[i]);
	return n;
}

int lnet_fault_del(struct lnet *node, enum ulnet_fault_kind kind,
		   const struct ulnet_nid *source, const struct ulnet_nid *dest)
{
	const struct choice c = { kind, source, dest };
	int rc;

	if ((unsigned int)kind > LNET_FAULT_KINDS)
		return -EINVAL;
	rc = node_control_begin(node);
	if (rc)
		return rc;
	rc = del_locked(node, &c);
	node_control_end(node);
	return rc;
}

void faults_fini(struct lnet *node)
{
	struct fault_set *set = whole_node(node)->faults;

	for (unsigned int i = 0; i < set_count(set); i++)
		free(set->rule[i]);
	free(set);
}

/* ---- what there is ---- */

/* Calls @fn for each rule of this kind; returns how many there are. */
static int each(struct lnet *node, enum ulnet_fault_kind kind,
		void (*fn)(struct fault_rule *rule, unsigned int i, void *arg),
		void *arg)
{
	const struct choice c = { .kind = kind };
	const struct fault_set *set;
	int n = 0;

	if ((unsigned int)kind > LNET_FAULT_KINDS)
		return -EINVAL;
	if (atomic_load(&node->closing))
		return -ESHUTDOWN;
	pthread_mutex_lock(&net_node(node)->config_lock);
	set = whole_node(node)->faults;
	for (unsigned int i = 0; i < set_count(set); i++)
		if (is_chosen(&c, set->rule[i]))
			fn(set->rule[i], (unsigned int)n++, arg);
	pthread_mutex_unlock(&net_node(node)->config_lock);
	return n;
}

struct list_call {
	struct ulnet_fault_info *infos;
	unsigned int n;
};

static void list_one(struct fault_rule *rule, unsigned int i, void *arg)
{
	const struct list_call *c = arg;

	if (i < c->n)
		fault_rule_info(rule, &c->infos[i]);
}

int lnet_fault_list(struct lnet *node, enum ulnet_fault_kind kind,
		    struct ulnet_fault_info *infos, unsigned int n)
{
	struct list_call c = { infos, n };

	return each(node, kind, list_one, &c);
}

static void reset_one(struct fault_rule *rule, unsigned int i, void *arg)
{
	(void)i;
	(void)arg;
	fault_rule_reset(rule);
}

int lnet_fault_reset(struct lnet *node, enum ulnet_fault_kind kind)
{
	int rc = each(node, kind, reset_one, NULL);

	return MIN(rc, 0);
}
