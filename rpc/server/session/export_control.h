/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages of clients, as they come to their server: Connect, Open,
 * Disconnect, Keepalive, Cancel, and handshakes. This file knows which
 * connection a message is of, what it changes, and what is answered; what a
 * Connect means to an export that has the client's id already is written in
 * export.h. It knows nothing of how exports live and become silent: export.c
 * does.
 *
 * Owner: the CPT of the export, unless a comment says "any thread".
 */
#ifndef RPC_EXPORT_CONTROL_H
#define RPC_EXPORT_CONTROL_H

#include "rpc/rpc.h"

struct wire_control;

/* Called when munged has answered: goes on with the handshake that has asked.
 */
void export_on_munge(struct shard *s, struct munge_job *j);
/* What struct rpc_side (rpc.h) calls. */

unsigned int export_handle_cpt(uint64_t handle);
int export_unseal(struct shard *s, uint64_t handle,
		  const struct ulnet_event *ev, void *record, size_t length,
		  struct opened *o);
void export_unsealed(struct shard *s);
unsigned int export_control_cpt(const struct shard *s,
				const struct ulnet_event *ev,
				const struct wire_control *m);
void export_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m);

#endif
