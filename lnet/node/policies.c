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

/* Replaces the policy in @slot by @policy, which has the same patterns, and
 * perhaps another priority. Sets *@gone_p to the policy that is to be freed. */
static int policy_change_locked(struct lnet *node,
				const struct policy_slot *slot,
				struct policy *policy, struct policy **gone_p)
{
	struct policy_table *new;

	if (slot->policy->priority == policy->priority)
		return -EALREADY;
	new = policy_table_replace(whole_node(node)->policies, slot, policy);
	if (!new)
		return -ENOMEM;
	*gone_p = slot->policy;
	policies_publish(node, new);
	return 0;
}

/* If it returns 0, it has taken over @policy. Sets *@gone_p to the policy that
 * this one replaces, if there is one. */
static int policy_add_locked(struct lnet *node, uint32_t id,
			     struct policy *policy, struct policy **gone_p)
{
	const struct policy_table *old = whole_node(node)->policies;
	const struct policy_slot *same = policy_table_like(old, policy);
	unsigned int n = policies_count(node);
	struct policy_table *new;

	if (same)
		return policy_change_locked(node, same, policy, gone_p);
	if (n == LNET_POLICIES_MAX)
		return -ENOSPC;
	/* Ids above this could push the policies behind the new one beyond the
	 * largest id. */
	if (id != LNET_POLICY_LAST && id > LNET_POLICY_ID_MAX)
		return -ERANGE;
	if (n && old->slot[n - 1].id == UINT32_MAX - 1)
		return -ERANGE;
	new = policy_table_with(old, id, policy);
	if (!new)
		return -ENOMEM;
	policies_publish(node, new);
	return 0;
}

int lnet_policy_add(struct lnet *node, uint32_t id,
		    const struct ulnet_policy *text,
		    struct ulnet_text_error *err)
{
	struct policy *policy, *gone = NULL;
	int rc;

	if (err)
		*err = (struct ulnet_text_error){ 0, "" };
	rc = policy_make(text, err, &policy);
	if (rc)
		return rc;
	rc = node_control_begin(node);
	if (!rc) {
		rc = policy_add_locked(node, id, policy, &gone);
		node_control_end(node);
	}
	policy_free(rc ? policy : gone);
	return rc;
}

int lnet_policy_del(struct lnet *node, uint32_t id)
{
	struct policy_table *old, *new = NULL;
	const struct policy_slot *slot;
	struct policy *policy = NULL;
	int rc = node_control_begin(node);

	if (rc)
		return rc;
	old = whole_node(node)->policies;
	slot = policy_table_find(old, id);
	if (slot) {
		policy = slot->policy;
		new = policy_table_without(old, slot);
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
	for (unsigned int i = 0; i < MIN(n, count); i++) {
		policies[i] = whole->policies->slot[i].policy->text;
		policies[i].id = whole->policies->slot[i].id;
	}
	pthread_mutex_unlock(&whole->net.config_lock);
	return (int)count;
}

void policies_fini(struct lnet *node)
{
	struct policy_table *t = whole_node(node)->policies;

	for (unsigned int i = 0; t && i < t->n; i++)
		policy_free(t->slot[i].policy);
	free(t);
}
