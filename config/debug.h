/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node is about inside: the requests "debug recovery" and "debug peer".
 */
#ifndef CONFIG_DEBUG_H
#define CONFIG_DEBUG_H

#include "ulnet/lnet.h"

struct request;

extern const char *const debug_recovery_keys[]; /* ends with NULL */
extern const char *const debug_peer_keys[];

/* Carry the requests out. */
void debug_recovery(struct request *r);
void debug_peer(struct request *r);

/* The states of a net of this node, of whose NIs so many are up, of an NI, and
 * of a peer's, by name: lnet_states(7). */
const char *debug_net_state(unsigned int nis_up);
const char *debug_ni_state(const struct ulnet_ni_info *info);
const char *debug_peer_ni_state(const struct ulnet_peer_info *info);

#endif
