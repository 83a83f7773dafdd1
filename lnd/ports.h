/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP ports of nodes that do not listen at the port that this node has:
 * lnet_peer_port_set(3). A node has one table, which its LNDs read when they
 * connect.
 *
 * Bounded by PORTS_MAX; only the program itself adds to it. Any thread.
 */
#ifndef LND_PORTS_H
#define LND_PORTS_H

#include <pthread.h>
#include "base/hash.h"
#include "ulnet/nid.h"

#define PORTS_MAX 65536u

struct lnd_ports {
	pthread_mutex_t lock;
	struct hash by_nid;
	unsigned int n;
};

void lnd_ports_init(struct lnd_ports *ports);
void lnd_ports_fini(struct lnd_ports *ports);
/* 0; -ENOMEM; -ENOSPC. *@before_p: the port that was set before; 0: none. */
int lnd_ports_set(struct lnd_ports *ports, const struct ulnet_nid *nid,
		  uint16_t port, uint16_t *before_p);
/* The port that was set for @nid, or @usual. */
uint16_t lnd_ports_get(struct lnd_ports *ports, const struct ulnet_nid *nid,
		       uint16_t usual);

#endif
