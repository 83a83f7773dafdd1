/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Health set by hand: the requests "net set" and "peer set".
 */
#ifndef CONFIG_HEALTH_H
#define CONFIG_HEALTH_H

struct request;

/* The keys of their arguments; end with NULL. */
extern const char *const net_set_keys[];
extern const char *const peer_set_keys[];

/* Carry the requests out. */
void health_net_set(struct request *r);
void health_peer_set(struct request *r);

#endif
