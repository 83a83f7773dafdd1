/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids of a node's clients, and on which CPT each client's export is: the
 * next Connect of a client may come from another NID, and so to another CPT.
 * There is one export for an id.
 *
 * Whoever sees a handshake learns the id that the client gives. So a client
 * that has proved who it is has another id: the digest of the id that it gives,
 * and of its identity. Two clients with different identities that give the same
 * id are two clients, and neither keeps the other out, or gets its replies.
 *
 * Any thread. The entry of an id belongs to the export that holds it.
 */
#ifndef RPC_CLIENT_IDS_H
#define RPC_CLIENT_IDS_H

#include "base/hash.h"
#include "rpc/rpc.h"

struct client_ids;

/* The id of a client, and the CPT of its export. */
struct client_id {
	struct hash_node by_given;
	/* without a proof, the id that the client gives; else the digest */
	uint8_t id[RPC_ID_SIZE];
	unsigned int cpt : 31;
	bool proved : 1;
};

/* client_ids_open() makes ulrpc.client_ids, and returns 0 or -errno.
 * client_ids_free() frees it. */
int client_ids_open(struct ulrpc *rpc);
void client_ids_free(struct ulrpc *rpc);

/* Adds @c, which is borrowed until client_ids_del(). All of *@c but by_given is
 * set. @given: the id that the client gives. Returns 0; -EEXIST: there is an
 * export with the id c->id already; -ENOMEM. */
int client_ids_add(struct client_ids *ids, struct client_id *c,
		   const uint8_t given[RPC_ID_SIZE]);
void client_ids_del(struct client_ids *ids, struct client_id *c);
/* Returns the entry of @id, which only the owner of the CPT *@cpt_p may use;
 * NULL: no export has that id. @given: the id that the client gives. For a
 * client without a proof, both are the same pointer. */
struct client_id *client_ids_find(struct client_ids *ids,
				  const uint8_t given[RPC_ID_SIZE],
				  const uint8_t id[RPC_ID_SIZE],
				  unsigned int *cpt_p);
/* Returns the CPT that may have the export of a client which gives @given, and
 * may prove who it is. That is @cpt, where a message of the client has come, if
 * an export of a proved client that gives @given is there, or if there is none
 * at all. */
unsigned int client_ids_guess(struct client_ids *ids,
			      const uint8_t given[RPC_ID_SIZE],
			      unsigned int cpt);

#endif
