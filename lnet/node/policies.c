/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds, deletes and lists the policies of a node (policy/policy.h). */
#include "lnet/node/node.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/policy/policy.h"

static int policies_take(struct lnet_cpt *cpt, void *table)
{
	cpt->policies = table;
	cpt_rules_changed(cpt);
	return 0;
}

static bool is_apart(const struct lnet *node)
{
	return config_is_apart(net_node(node)->config);
}

/* A node without policies has no table, unless it needs one (path/verdict.h):
 * selection need not search an empty one. */
static void policies_publish(struct lnet *node, struct policy_table *new)
{
	if (!new->n && !is_apart(node)) {
		free(new);
		new = NULL;
	}
	node_publish(node, &whole_node(node)->policies, new, policies_take);
}

/* Without memory for the table, all NIs of a net are equal as before. */
void policies_follow_nis(struct lnet *node)
{
	struct whole_node *whole = whole_node(node);
	const struct policy_table *t = whole->policies;
	bool apart = is_apart(node);

	if (apart == !!t || (t && t->n))
		return;
	node_publish(node, &whole->policies,
		     apart ? calloc(1, sizeof(*t)) : NULL, policies_take);
}

static unsigned int policies_count(const struct lnet *node)
{
	const struct policy_table *t = whole_node(node)->policies;

	return t ? t->n : 0;
}

/* If it returns 0, it has taken over @policy. */
static int policy_add_locked(struct lnet *node, unsigned int index,
			     struct policy *policy)
{
	const struct policy_table *old = whole_node(node)->policies;
	unsigned int n = policies_count(node);
	struct policy_table *new;

	if (index == LNET_POLICY_LAST)
		index = n;
	if (index > n)
		return -ERANGE;
	if (n == LNET_POLICIES_MAX)
		return -ENOSPC;
	for (unsigned int i = 0; i < n; i++)
		if (policy_same(old->policy[i], policy))
			return -EEXIST;
	new = policy_table_with(old, index, policy);
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

int lnet_policy_del(struct lnet *node, unsigned int index)
{
	struct policy_table *old, *new = NULL;
	struct policy *policy = NULL;
	int rc = node_control_begin(node);

	if (rc)
		return rc;
	old = whole_node(node)->policies;
	if (index < policies_count(node)) {
		policy = old->policy[index];
		new = policy_table_without(old, index);
	}
	if (new)
		policies_publish(node, new);
	node_control_end(node);
	if (!new)
		return policy ? -ENOMEM : -ENOENT;
	policy_free(policy);
	return 0;
}

int lnet_policies(struct lnet *node, struct ulnet_policy *policies,
		  unsigned int n)
{
	struct whole_node *whole = whole_node(node);
	unsigned int count;

	if (node->forked)
		return -ESHUTDOWN;
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
