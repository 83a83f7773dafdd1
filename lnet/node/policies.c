/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/node/policies.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/node/node.h"
#include "lnet/policy/table.h"

struct policies_call {
	struct lnet_cpt *cpt;
	const struct policy_table *table;
};

static int policies_take(void *arg)
{
	struct policies_call *c = arg;

	c->cpt->policies = c->table;
	cpt_rules_changed(c->cpt);
	return 0;
}

/* Control. No CPT holds the old one afterwards. A node without policies has no
 * table, so that choices need not look into it. */
static void policies_publish(struct lnet *node, struct policy_table *new)
{
	struct whole_node *whole = whole_node(node);
	struct policy_table *old = whole->policies;

	if (!new->n) {
		free(new);
		new = NULL;
	}
	pthread_mutex_lock(&whole->net.config_lock);
	whole->policies = new;
	pthread_mutex_unlock(&whole->net.config_lock);
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct policies_call c = { node->cpt[i], new };

		BUG_ON(loop_call(node->loops[i], policies_take, &c));
	}
	free(old);
}

static unsigned int policies_count(const struct lnet *node)
{
	const struct policy_table *t = whole_node(node)->policies;

	return t ? t->n : 0;
}

/* Where @policy may stand: 0 or an error. */
static int place_check(const struct lnet *node, const struct policy *policy,
		       unsigned int index)
{
	const struct policy_table *t = whole_node(node)->policies;
	unsigned int n = policies_count(node);

	if (index > n)
		return -ERANGE;
	if (n == LNET_POLICIES_MAX)
		return -ENOSPC;
	for (unsigned int i = 0; i < n; i++)
		if (policy_same(t->policy[i], policy))
			return -EEXIST;
	return 0;
}

/* Takes @policy if it returns 0. */
static int policy_add_locked(struct lnet *node, unsigned int index,
			     struct policy *policy)
{
	struct policy_table *new;
	int rc;

	if (index == LNET_POLICY_LAST)
		index = policies_count(node);
	rc = place_check(node, policy, index);
	if (rc)
		return rc;
	new = policy_table_with(whole_node(node)->policies, index, policy);
	if (!new)
		return -ENOMEM;
	policies_publish(node, new);
	return 0;
}

int lnet_policy_add(struct lnet *node, unsigned int index,
		    const struct ulnet_policy *text,
		    struct ulnet_text_error *err)
{
	struct policy *policy;
	int rc;

	if (err)
		*err = (struct ulnet_text_error){ 0, "" };
	rc = policy_make(text, err, &policy);
	if (rc)
		return rc;
	rc = node_control_begin(node);
	if (!rc) {
		rc = policy_add_locked(node, index, policy);
		node_control_end(node);
	}
	if (rc)
		policy_free(policy);
	return rc;
}

static int policy_del_locked(struct lnet *node, unsigned int index)
{
	struct policy_table *old = whole_node(node)->policies, *new;
	struct policy *policy;

	if (index >= policies_count(node))
		return -ENOENT;
	policy = old->policy[index];
	new = policy_table_without(old, index);
	if (!new)
		return -ENOMEM;
	policies_publish(node, new);
	policy_free(policy);
	return 0;
}

int lnet_policy_del(struct lnet *node, unsigned int index)
{
	int rc = node_control_begin(node);

	if (rc)
		return rc;
	rc = policy_del_locked(node, index);
	node_control_end(node);
	return rc;
}

int lnet_policies(struct lnet *node, struct ulnet_policy *policies,
		  unsigned int n)
{
	struct whole_node *whole = whole_node(node);
	unsigned int count;

	pthread_mutex_lock(&whole->net.config_lock);
	count = policies_count(node);
	for (unsigned int i = 0; i < MIN(n, count); i++)
		policies[i] = whole->policies->policy[i]->text;
	pthread_mutex_unlock(&whole->net.config_lock);
	return (int)count;
}

void policies_fini(struct lnet *node)
{
	struct policy_table *t = whole_node(node)->policies;

	for (unsigned int i = 0; t && i < t->n; i++)
		policy_free(t->policy[i]);
	free(t);
}
