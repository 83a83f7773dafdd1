/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP ports at which nodes listen, as far as somebody has said so:
 * lnet_peer_port_set(3). A node has one table, which its LNDs read when they
 * connect. What was said by the strongest counts; each keeps an entry until it
 * is released.
 *
 * Bounded by PORTS_MAX; a name has no more entries than addresses. Any thread.
 */
#ifndef LND_PORTS_H
#define LND_PORTS_H

#include <pthread.h>
#include "base/hash.h"
#include "ulnet/lnet.h"

#define PORTS_MAX 65536u

struct lnd_ports {
	pthread_mutex_t lock;
	struct hash by_nid;
	uint64_t seed; /* of hashes, as others choose the NIDs of an answer */
	unsigned int n;
};

void lnd_ports_init(struct lnd_ports *ports, uint64_t seed);
void lnd_ports_fini(struct lnd_ports *ports);
/* 0; -ENOMEM; -ENOSPC. *@before_p: the port that was set before; 0: none. */
int lnd_ports_set(struct lnd_ports *ports, const struct ulnet_nid *nid,
		  uint16_t port, uint16_t *before_p);
/* @source says that @nid is at @port, until it is released as often. -EEXIST:
 * as strong a source, or a stronger one, says that it is at another port, which
 * is never so for LNET_PORT_GIVEN; -ENOMEM; -ENOSPC. */
int lnd_ports_claim(struct lnd_ports *ports, const struct ulnet_nid *nid,
		    uint16_t port, enum ulnet_port_source source);
void lnd_ports_release(struct lnd_ports *ports, const struct ulnet_nid *nid,
		       enum ulnet_port_source source);
/* The port of @nid, or @usual if nobody has said anything. */
uint16_t lnd_ports_get(struct lnd_ports *ports, const struct ulnet_nid *nid,
		       uint16_t usual);

#endif
