/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers users' memory on all CPTs (portal/mem.h), and allocates memory that
 * peers can read (base/commons.h). */
#include <errno.h>

#include "lnet/net/net.h"
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

/* Tells the LNDs of the CPT's NIs that the memory is not registered any more.
 * An NI whose LND was told to stop has ended its connections, so no device uses
 * memory for it any more, and its LND need not be told. When the node is
 * closing, that is so for all NIs. */
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

/* Checks the range, stores it in *@r, and calls node_control_begin(). */
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
	/* The range is registered on all CPTs or on none: memory for it is
	 * first allocated on each CPT, and if it overlaps another range, the
	 * first CPT finds that. */
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

/* ---- memory that is shared ---- */

int lnet_mem_alloc(struct lnet *node, size_t length, void **addr_p)
{
	return node->forked ? -ESHUTDOWN
			    : commons_alloc(&net_node(node)->commons, length,
					    addr_p);
}

int lnet_mem_free(struct lnet *node, void *addr)
{
	return node->forked ? -ESHUTDOWN
			    : commons_free(&net_node(node)->commons, addr);
}
