/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids of a node's clients, and on which CPT each client's export is: the
 * next Connect of a client may come from another NID, and so to another CPT.
 * There is one export for an id: if copies of a Connect are read by several
 * CPTs, one of them makes it, and the others find it here.
 *
 * Whoever sees a handshake learns the id that the client gives. So a client
 * that has proved who it is has another id: the digest of the id that it gives,
 * and of its identity. Two clients with different identities that give the same
 * id are two clients, and neither keeps the other out, or gets its replies.
 *
 * A handshake has to be made on the CPT of the client's export. Until the
 * client has proved who it is, the CPT is guessed: from the id that the client
 * gives, and from where the client comes. If several clients give one id, the
 * guess may be wrong. Then the proof shows which CPT it is, the place that the
 * client has come from is noted, and the client's next handshake is made there.
 * A place is of the client that has proved itself from it last: another one can
 * come from there, or seem to, over a router. The first one then needs one more
 * handshake each time that the other one has proved itself in between.
 *
 * Any thread. The entry of an id belongs to the export that holds it.
 */
#ifndef RPC_CLIENT_IDS_H
#define RPC_CLIENT_IDS_H

#include "base/hash.h"
#include "rpc/rpc.h"

struct client_ids;

/* The places of a client that are noted. There may be several, as a client can
 * have NIDs of which LNet does not know that they belong to one peer. */
#define CLIENT_ID_PLACES 3

/* The id of a client, and the CPT of its export. */
struct client_id {
	struct hash_node by_given;
	/* without a proof, the id that the client gives; else the digest */
	uint8_t id[RPC_ID_SIZE];
	unsigned int cpt : 31;
	bool proved : 1;
	/* Of a client that is proved: hashes of the places from which its
	 * handshakes have begun, the last place first; 0: none. No other client
	 * that gives the same id has one of them. */
	uint32_t places[CLIENT_ID_PLACES];
};

/* client_ids_open() makes ulrpc.client_ids, and returns 0 or -errno.
 * client_ids_free() frees it. */
int client_ids_open(struct ulrpc *rpc);
void client_ids_free(struct ulrpc *rpc);

/* Adds @c, which is borrowed until client_ids_del(). The caller has set all
 * fields of *@c but by_given and places. @given: the id that the client gives.
 * @place: from where the client has proved itself; NULL: it has not. Returns 0;
 * -EEXIST: there is an export with the id c->id already; -ENOMEM. */
int client_ids_add(struct client_ids *ids, struct client_id *c,
		   const uint8_t given[RPC_ID_SIZE],
		   const struct ulnet_id *place);
void client_ids_del(struct client_ids *ids, struct client_id *c);
/* Returns the entry of @id, which only the owner of the CPT *@cpt_p may use;
 * NULL: no export has that id. @given: the id that the client gives. For a
 * client without a proof, both are the same pointer. */
struct client_id *client_ids_find(struct client_ids *ids,
				  const uint8_t given[RPC_ID_SIZE],
				  const uint8_t id[RPC_ID_SIZE],
				  unsigned int *cpt_p);
/* Returns one of @n CPTs for the client that gives @given: always the same
 * one, which nobody can tell beforehand. */
unsigned int client_ids_cpt(const struct client_ids *ids,
			    const uint8_t given[RPC_ID_SIZE], unsigned int n);
/* Returns the CPT that may have the export of a client which gives @given, and
 * may prove who it is. The client begins a handshake from @place, and @cpt is
 * where a new client from there belongs. If a client that gives @given has
 * proved itself from @place before, returns the CPT of that client's export.
 * Otherwise returns @cpt, if an export of a proved client that gives @given is
 * there, or if there is none at all. */
unsigned int client_ids_guess(struct client_ids *ids,
			      const uint8_t given[RPC_ID_SIZE],
			      const struct ulnet_id *place, unsigned int cpt);
/* Called on @cpt when the client of @id, which gives @given, has proved itself
 * there, in a handshake that began from @place. Notes @place, so that
 * client_ids_guess() is right from now on. Returns the CPT that has the
 * client's export; @cpt if there is no export. */
unsigned int client_ids_proved(struct client_ids *ids,
			       const uint8_t given[RPC_ID_SIZE],
			       const uint8_t id[RPC_ID_SIZE],
			       const struct ulnet_id *place, unsigned int cpt);

#endif
