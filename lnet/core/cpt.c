/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/core/cpt.h"

#include <errno.h>

/* ---- which CPT owns what ---- */

unsigned int lnet_cpts(struct lnet *node)
{
	return node->cpts;
}

int lnet_cpt_of(struct lnet *node, const struct ulnet_nid *nid)
{
	return lnet_nid_is_any(nid) || unlikely(node->forked)
		       ? -1
		       : (int)node_cpt_of(node, nid);
}

int lnet_primary(struct lnet *node, const struct ulnet_nid *nid,
		 struct ulnet_nid *primary)
{
	if (lnet_nid_is_any(nid))
		return -EINVAL;
	if (unlikely(node->forked))
		return -ESHUTDOWN;
	*primary = directory_primary(&node->directory, nid);
	return 0;
}

bool lnet_is_multi_rail(struct lnet *node, const struct ulnet_nid *nid)
{
	struct directory_entry e;

	return likely(!node->forked) &&
	       directory_find(&node->directory, nid, &e) && e.several;
}

struct lnet_cpt *node_home(struct lnet *node)
{
	struct loop *here = loop_current();

	if (node->cpts == 1)
		return node->cpt[0];
	for (unsigned int i = 0; i < node->cpts; i++)
		if (node->loops[i] == here)
			return node->cpt[i];
	return node->cpt[atomic_fetch_add(&node->next_home, 1) % node->cpts];
}

struct lnet_cpt *node_cpt_of_id(struct lnet *node, uint64_t id)
{
	if (!node || ID_CPT(id) >= node->cpts)
		return NULL;
	return node->cpt[ID_CPT(id)];
}

struct each_call {
	struct lnet_cpt *cpt;
	int (*fn)(struct lnet_cpt *cpt, void *arg);
	void *arg;
};

static int each_call(void *arg)
{
	struct each_call *c = arg;

	return c->fn(c->cpt, c->arg);
}

bool node_may_wait(const struct lnet *node)
{
	return !loop_current() ||
	       (node->cpts == 1 && loop_is_owner(node->loops[0]));
}

int node_each_cpt(struct lnet *node, int (*fn)(struct lnet_cpt *cpt, void *arg),
		  void *arg)
{
	int rc = 0;

	/* Checked first, so that @fn is called on all CPTs or on none. */
	if (!node_may_wait(node))
		return -EXDEV;
	if (node->forked)
		return -ESHUTDOWN;
	for (unsigned int i = 0; i < node->cpts && !rc; i++) {
		struct each_call c = { node->cpt[i], fn, arg };

		rc = loop_call(node->loops[i], each_call, &c);
	}
	return rc;
}

/* ---- the end ---- */

void cpt_pool_fini(struct lnet_cpt *cpt, struct pool *pool, const char *what)
{
	const struct lnet_observer *o = cpt->node->observer;

	if (pool->used && o)
		o->leaked(o->arg, cpt->node, what, pool->used);
	else
		pool_fini(pool);
}

void node_wake_closer(struct lnet *node)
{
	pthread_mutex_lock(&node->ended_lock);
	node->ended_count++;
	pthread_cond_signal(&node->ended);
	pthread_mutex_unlock(&node->ended_lock);
}

void node_set_gone(struct lnet *node, bool *gone)
{
	pthread_mutex_lock(&node->ended_lock);
	*gone = true;
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->ended_lock);
}

void node_wait_gone(struct lnet *node, const bool *gone)
{
	pthread_mutex_lock(&node->ended_lock);
	while (!*gone)
		pthread_cond_wait(&node->ended, &node->ended_lock);
	pthread_mutex_unlock(&node->ended_lock);
}
