/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node is, as trees with the keys of the kernel's lnetctl, in its order.
 * Each function adds to the mapping @out. They fail with what reading the node
 * fails with, and with -EMSGSIZE when the answer would be too long.
 */
#ifndef CONFIG_SHOW_H
#define CONFIG_SHOW_H

#include "config/tree.h"
#include "ulnet/lnet.h"

/* How much is shown. */
struct show {
	int verbose;	      /* as -v */
	bool backup;	      /* only what makes it anew */
	uint32_t net;	      /* LNET_NET_ANY: all */
	struct ulnet_nid nid; /* LNET_NID_ANY: all */
};

/* One key, and the NID as text. */
void show_nid(struct tree *out, const char *key, const struct ulnet_nid *nid);
/* s until lnet_now() is @at, rounded up; 0: it is past. */
uint64_t show_seconds_to(struct lnet *node, uint64_t at);
/* The section @key, a sequence, which an earlier call may have begun. */
struct tree *show_section(struct tree *out, const char *key);
int show_nets(struct lnet *node, const struct show *show, struct tree *out);
/* With a NID: the peer that has it; -ENOENT: there is none. */
int show_peers(struct lnet *node, const struct show *show, struct tree *out);
int show_peer_list(struct lnet *node, struct tree *out);
int show_stats(struct lnet *node, struct tree *out);
int show_settings(struct lnet *node, struct tree *out);
int show_all(struct lnet *node, bool backup, struct tree *out);

#endif
