/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids of a node's clients, and for each the CPT on which its export is: the
 * next Connect of a client may come from another NID, and so to another CPT. An
 * id has one export at a time.
 *
 * Any thread. The entry of an id belongs to the export that holds it.
 */
#ifndef RPC_CLIENT_IDS_H
#define RPC_CLIENT_IDS_H

#include "base/hash.h"
#include "rpc/rpc.h"

struct client_ids;

/* The id of a client, and on which CPT its export is. */
struct client_id {
	struct hash_node by_id;
	uint8_t id[RPC_ID_SIZE];
	unsigned int cpt;
};

/* Make and free ulrpc.client_ids. 0 or -errno. */
int client_ids_open(struct ulrpc *rpc);
void client_ids_free(struct ulrpc *rpc);

/* Borrows @c, whose id and cpt are set, until client_ids_del(). Returns 0;
 * -EEXIST: there is an export with that id already; -ENOMEM. */
int client_ids_add(struct client_ids *ids, struct client_id *c);
void client_ids_del(struct client_ids *ids, struct client_id *c);
/* Returns the entry of @id, which only the owner of the CPT *@cpt_p may use;
 * NULL: no export has that id. */
struct client_id *client_ids_find(struct client_ids *ids,
				  const uint8_t id[RPC_ID_SIZE],
				  unsigned int *cpt_p);

#endif
