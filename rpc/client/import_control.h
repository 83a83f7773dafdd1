/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages of servers, as they come to their clients: whose they are,
 * whether they come from the server of that import, and what each of them means
 * to it: the answers to Connect, Open and keepalives, the server's part of a
 * handshake, and a server's end. Knows nothing of when an import connects,
 * probes or gives up: import.h.
 *
 * Owner: the CPT of the import, unless a comment says "any thread".
 */
#ifndef RPC_IMPORT_CONTROL_H
#define RPC_IMPORT_CONTROL_H

#include "rpc/rpc.h"

struct wire_control;

/* Functions of struct rpc_side. */

/* The CPT of the import that @m names; there is no such CPT if @m is wrong.
 * UINT_MAX: @m is not for an import. Any thread. */
unsigned int import_control_cpt(const struct shard *s,
				const struct ulnet_event *ev,
				const struct wire_control *m);
/* The same of the import with @handle. Any thread. */
unsigned int import_handle_cpt(uint64_t handle);
/* Opens a sealed message for the import with @handle. Until import_unsealed(),
 * that import's control messages are believed to be its server's. */
int import_unseal(struct shard *s, uint64_t handle,
		  const struct ulnet_event *ev, void *record, size_t length,
		  struct opened *o);
void import_unsealed(struct shard *s);
/* A control message from a server has come. */
/* Munged has answered: goes on with the handshake that has asked. */
void import_on_munge(struct shard *s, struct munge_job *j);
void import_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m);

#endif
