/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids of a node's clients, and for each the CPT on which its export is: the
 * next Connect of a client may come from another NID, and so to another CPT. An
 * id has one export at a time.
 *
 * Whoever sees a handshake knows the id that the client gives. So the id of a
 * client that has proved who it is is a digest of the one that it gives and of
 * its identity: two identities that give one id are two clients, and neither
 * keeps the other out, or gets its replies.
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
	struct hash_node by_given;
	uint8_t id[RPC_ID_SIZE]; /* the one that it gives, if not proved */
	unsigned int cpt : 31;
	bool proved : 1;
};

/* Make and free ulrpc.client_ids. 0 or -errno. */
int client_ids_open(struct ulrpc *rpc);
void client_ids_free(struct ulrpc *rpc);

/* Borrows @c, of which all but by_given is set, and whose client gives @given,
 * until client_ids_del(). Returns 0; -EEXIST: there is an export with that id
 * already; -ENOMEM. */
int client_ids_add(struct client_ids *ids, struct client_id *c,
		   const uint8_t given[RPC_ID_SIZE]);
void client_ids_del(struct client_ids *ids, struct client_id *c);
/* Returns the entry of @id, whose client gives @given (the same: it is not
 * proved), and which only the owner of the CPT *@cpt_p may use; NULL: no export
 * has that id. */
struct client_id *client_ids_find(struct client_ids *ids,
				  const uint8_t given[RPC_ID_SIZE],
				  const uint8_t id[RPC_ID_SIZE],
				  unsigned int *cpt_p);
/* Who gives @given, and may prove who he is, has sent a message to @cpt.
 * Returns the CPT on which his export may be: @cpt, if one that gives @given
 * and is proved is there, or there is none. */
unsigned int client_ids_guess(struct client_ids *ids,
			      const uint8_t given[RPC_ID_SIZE],
			      unsigned int cpt);

#endif
