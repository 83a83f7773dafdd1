/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/node/watch.h"

#include "lnet/message/leave.h"
#include "lnet/net/config.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "ulnet/loop.h"

_Static_assert(sizeof(struct list) ==
		       sizeof((struct ulnet_peer_watch){ 0 }.opaque),
	       "room for a link");

static struct list *watch_link(struct ulnet_peer_watch *watch)
{
	return (void *)watch->opaque;
}

static struct list *watches_of(struct lnet *node, unsigned int cpt)
{
	loop_assert_owner(node->loops[cpt]);
	return &whole_cpt(node->cpt[cpt])->watches;
}

void watches_init(struct lnet_cpt *cpt)
{
	list_init(&whole_cpt(cpt)->watches);
}

void lnet_peer_watch_add(struct lnet *node, unsigned int cpt,
			 struct ulnet_peer_watch *watch)
{
	BUG_ON(!watch->disconnected);
	list_add_tail(watches_of(node, cpt), watch_link(watch));
}

void lnet_peer_watch_del(struct lnet *node, unsigned int cpt,
			 struct ulnet_peer_watch *watch)
{
	(void)watches_of(node, cpt);
	list_del(watch_link(watch));
}

static struct ulnet_peer_watch *watch_of(struct list *link)
{
	return container_of(link, struct ulnet_peer_watch, opaque);
}

void lnet_peer_disconnected(struct lnd_ni *lnd, const struct ulnet_id *peer)
{
	struct lnet *node = ni_of(lnd)->node;
	unsigned int index = node_cpt_here(node)->index;
	struct list *watches = watches_of(node, index), *link;

	cpt_stat(node->cpt[index], STAT_disconnects);
	if (node->crashed)
		return;
	for (link = watches->next; link != watches; link = link->next)
		watch_of(link)->disconnected(watch_of(link), peer);
}

void lnet_peer_silent(struct lnd_ni *lnd, const struct ulnet_id *peer)
{
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = node_cpt_here(ni->node);
	struct list *watches = watches_of(ni->node, cpt->index), *link;

	leave_silent(ni, cpt, peer);
	if (ni->node->crashed)
		return;
	for (link = watches->next; link != watches; link = link->next)
		if (watch_of(link)->silent)
			watch_of(link)->silent(watch_of(link), peer);
}

void lnet_peer_suspect(struct lnet *node, unsigned int cpt,
		       const struct ulnet_nid *local,
		       const struct ulnet_id *peer)
{
	struct lnet_ni *ni;

	loop_assert_owner(node->loops[cpt]);
	ni = config_ni(node->cpt[cpt]->config, local);
	if (ni)
		leave_silent(ni, node->cpt[cpt], peer);
}
