/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers that a node knows, as they were at one time.
 */
#ifndef CONFIG_PEER_LIST_H
#define CONFIG_PEER_LIST_H

#include "base/list.h"
#include "ulnet/lnet.h"

/* The NIs of each peer together, its primary NID first. */
struct peer_list {
	struct ulnet_peer_info *infos;
	unsigned int n;
};

/* All peers but this node itself. 0 or a negative errno; peer_list_free() is
 * due after success. */
int peer_list_read(struct lnet *node, struct peer_list *list) must_check;
void peer_list_free(struct peer_list *list);

/* Only peers that were added remain. */
void peer_list_keep_configured(struct peer_list *list);

/* The NIs of the peer that has @nid: as many as are returned, from *@infos_p
 * on, or none. Borrowed from @list. */
unsigned int peer_list_find(const struct peer_list *list,
			    const struct ulnet_nid *nid,
			    const struct ulnet_peer_info **infos_p);

/* How many of the NIs from number @i on are the same peer's. */
unsigned int peer_list_span(const struct peer_list *list, unsigned int i);

#endif
