/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that users register, on all CPTs. */
#include <errno.h>

#include "lnet/net/config.h"
#include "lnet/node/node.h"
#include "lnet/portal/portal.h"

static int reserve(struct lnet_cpt *cpt, void *arg)
{
	(void)arg;
	return mems_reserve(&portal_cpt(cpt)->mems);
}

static int mem_add(struct lnet_cpt *cpt, void *arg)
{
	const struct span *r = arg;

	return mems_add(&portal_cpt(cpt)->mems, r->start, r->end);
}

static int mem_check(struct lnet_cpt *cpt, void *arg)
{
	const struct span *r = arg;

	return mems_check(&portal_cpt(cpt)->mems, r->start, r->end);
}

static int del(struct lnet_cpt *cpt, void *arg)
{
	const struct span *r = arg;

	mems_del(&portal_cpt(cpt)->mems, r->start, r->end);
	return 0;
}

static void ni_forget(struct lnet_ni *ni, const struct lnet_cpt *cpt,
		      const struct span *r)
{
	const struct lnd *lnd = ni->lnd.lnd;

	if (lnd->forget)
		lnd->forget(&ni->lnd, cpt->index, (void *)r->start,
			    r->end - r->start);
}

/* An NI whose LND was told to stop has ended its connections, so no device
 * touches anything for it. That is all of them when the node is closing. */
static int forget(struct lnet_cpt *cpt, void *arg)
{
	struct ni_cpt *nc;

	if (cpt->closing)
		return 0;
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		ni_forget(cpt->config->ni[i], cpt, arg);
	list_for_each_entry (nc, &whole_cpt(cpt)->leaving, leaving)
		ni_forget(nc->ni, cpt, arg);
	return 0;
}

/* A change to what is at [@addr, @addr + @length): node_control_begin(). */
static int begin(struct lnet *node, void *addr, size_t length, struct span *r)
{
	r->start = (uintptr_t)addr;
	r->end = r->start + length;
	if (!addr || r->end <= r->start)
		return -EINVAL;
	return node_control_begin(node);
}

int lnet_mem_register(struct lnet *node, void *addr, size_t length)
{
	struct span r;
	int rc = begin(node, addr, length, &r);

	if (rc)
		return rc;
	/* Whole or not at all: there is room on each CPT before one has it, and
	 * what overlaps another does so on the first. */
	rc = node_each_cpt(node, reserve, &r);
	if (!rc)
		rc = node_each_cpt(node, mem_add, &r);
	node_control_end(node);
	return rc;
}

int lnet_mem_unregister(struct lnet *node, void *addr, size_t length)
{
	struct span r;
	int rc = begin(node, addr, length, &r);

	if (rc)
		return rc;
	rc = node_each_cpt(node, mem_check, &r);
	if (!rc)
		rc = node_each_cpt(node, del, &r);
	if (!rc)
		rc = node_each_cpt(node, forget, &r);
	node_control_end(node);
	return rc;
}
