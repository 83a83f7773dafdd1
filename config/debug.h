/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node is about inside: the requests "debug recovery", "debug peer" and
 * "cpt-of-nid".
 */
#ifndef CONFIG_DEBUG_H
#define CONFIG_DEBUG_H

#include "base/fsm.h"
#include "ulnet/lnet.h"

struct request;

extern const char *const debug_recovery_keys[]; /* ends with NULL */
extern const char *const debug_peer_keys[];
extern const char *const debug_cpt_of_nid_keys[];

/* Carry the requests out. */
void debug_recovery(struct request *r);
void debug_peer(struct request *r);
void debug_cpt_of_nid(struct request *r);

/* How a net of this node does, and an NI, of this node or of a peer. This
 * follows from what the node shows, so nobody makes the moves:
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

/* The states of a net, of whose NIs so many are up, of an NI, and of a peer's,
 * by name; of an NI that is not active, its own. */
const char *debug_net_state(unsigned int nis_up);
const char *debug_ni_state(const struct ulnet_ni_info *info);
const char *debug_peer_ni_state(const struct ulnet_peer_info *info);

#endif
