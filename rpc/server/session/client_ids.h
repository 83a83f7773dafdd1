/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids of a node's clients, and on which CPT the connection of each is: the
 * next Connect with the same id may come from another NID, and so to another
 * CPT. An id has one connection at a time.
 *
 * Any thread.
 */
#ifndef RPC_CLIENT_IDS_H
#define RPC_CLIENT_IDS_H

#include <pthread.h>
#include "base/hash.h"
#include "rpc/rpc.h"

/* Part of a connection. */
struct client_id {
	struct hash_node by_id;
	uint8_t id[RPC_ID_SIZE];
	unsigned int cpt;
};

struct client_ids {
	pthread_mutex_t lock; /* for by_id */
	struct hash by_id;
	uint64_t seed;
};

/* @seed: random, or strangers could choose ids of one bucket. */
void client_ids_init(struct client_ids *ids, uint64_t seed);
void client_ids_fini(struct client_ids *ids);

/* Adds @c->id, of a connection on @c->cpt. -EEXIST: there is a connection of
 * that id already; -ENOMEM. */
int client_ids_add(struct client_ids *ids, struct client_id *c) must_check;
void client_ids_del(struct client_ids *ids, struct client_id *c);
/* The connection that has @id, to be used by the owner of *@cpt_p only; NULL:
 * none has. */
struct client_id *client_ids_find(struct client_ids *ids,
				  const uint8_t id[RPC_ID_SIZE],
				  unsigned int *cpt_p);

#endif
