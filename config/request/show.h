/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shows a node as trees, with the keys of the kernel's lnetctl in their order.
 * Each function adds to the mapping @out, and returns 0 or the error of reading
 * the node; -EMSGSIZE: the answer would be too long.
 */
#ifndef CONFIG_REQUEST_SHOW_H
#define CONFIG_REQUEST_SHOW_H

#include "base/fsm.h"
#include "config/node/list.h"
#include "config/yaml/scope.h"
#include "ulnet/fault.h"

/* How much is shown. */
struct show {
	int verbose;	      /* the level of -v */
	bool backup;	      /* only what is needed to configure it again */
	uint32_t net;	      /* LNET_NET_ANY: all */
	struct ulnet_nid nid; /* LNET_NID_ANY: all */
};

void show_nid(struct tree *out, const char *key, const struct ulnet_nid *nid);
/* s until lnet_now() is @at (ns), rounded up; 0: that is past. */
uint64_t show_seconds_to(struct lnet *node, uint64_t at);

int show_nets(struct lnet *node, const struct show *show, struct tree *out);
/* -ENOENT: no peer has show->nid. */
int show_peers(struct lnet *node, const struct show *show, struct tree *out);
int show_peer_list(struct lnet *node, struct tree *out);
int show_stats(struct lnet *node, struct tree *out);
int show_settings(struct lnet *node, struct tree *out);
int show_all(struct lnet *node, bool backup, struct tree *out);

/* route.c, policy.c, fault.c: */

/* @only: NULL, or what routes are to match. */
int show_routes(struct lnet *node, const struct ulnet_route *only, int verbose,
		bool backup, struct tree *out);
/* Shows whether it routes, and its buffers, unless all of that is the
 * default. */
int show_routing(struct lnet *node, bool backup, struct tree *out);
/* @only: an index; LNET_POLICY_LAST: all. */
int show_policies(struct lnet *node, unsigned int only, struct tree *out);
/* @kind LNET_FAULT_KINDS: all. @backup: without counters. */
int show_faults(struct lnet *node, enum ulnet_fault_kind kind, bool backup,
		struct tree *out);

/* ---- states by name ---- */

/* States of a net of this node, and of an NI of this node or of a peer. They
 * are computed from what the node shows, when it is shown; the tables are for
 * lnet_states(7). */
enum debug_net { DEBUG_NET_ACTIVE, DEBUG_NET_INACTIVE, DEBUG_NETS };
enum debug_ni {
	DEBUG_NI_ACTIVE,
	DEBUG_NI_ILL,
	DEBUG_NI_RECOVERING,
	DEBUG_NI_DOWN,
	DEBUG_NIS
};
extern const struct fsm_state debug_nets[DEBUG_NETS];
extern const struct fsm_state debug_nis[DEBUG_NIS];

const char *debug_peer_ni_state(const struct ulnet_peer_info *info);

#endif
