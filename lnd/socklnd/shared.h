/* SPDX-License-Identifier: BSD-3-Clause */
/* What the NIs of one node have together. CPT 0's thread. */
#ifndef LND_SOCKLND_SHARED_H
#define LND_SOCKLND_SHARED_H

#include "base/list.h"

struct sock_links;

/* Where lnd_ni.shared points to. */
struct sock_shared {
	struct list listeners; /* sock_listener.link */
	struct sock_links *links;
};

/* The node's one, which is made if need be. NULL: no memory. */
struct sock_shared *sock_shared_get(void **slot);
/* Frees the node's one if nothing is in it. */
void sock_shared_put(void **slot);

#endif
