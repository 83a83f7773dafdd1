/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages of servers, as they come to their clients: answers to
 * Connect, Open and keepalives, the server's side of a handshake, and a
 * server's end. This file finds the import that a message is for, checks that
 * it comes from the import's server, and carries out what it means. Not here,
 * but in import.c: when an import connects, probes or gives up.
 *
 * Owner: the CPT of the import, unless a comment says "any thread".
 */
#ifndef RPC_IMPORT_CONTROL_H
#define RPC_IMPORT_CONTROL_H

#include "rpc/rpc.h"

struct wire_control;

/* What struct rpc_side calls. */

/* Returns the CPT of the import that @m names, or a number that no CPT has if
 * @m is wrong; UINT_MAX: @m is not for an import. Any thread. */
unsigned int import_control_cpt(const struct shard *s,
				const struct ulnet_event *ev,
				const struct wire_control *m);
/* Returns the CPT of the import with @handle, likewise. Any thread. */
unsigned int import_handle_cpt(uint64_t handle);
/* Opens a sealed message for the import with @handle. Returns 0 or -errno.
 * Until import_unsealed() is called, control messages of that import count as
 * its server's. */
int import_unseal(struct shard *s, uint64_t handle,
		  const struct ulnet_event *ev, void *record, size_t length,
		  struct opened *o);
void import_unsealed(struct shard *s);
/* Called when a control message from a server has come. */
/* Called when munged has answered: goes on with the handshake that has asked.
 */
void import_on_munge(struct shard *s, struct munge_job *j);
void import_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m);

#endif
