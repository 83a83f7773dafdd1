/* SPDX-License-Identifier: BSD-3-Clause */
/* What export.c (the life of exports) provides for export_control.c (messages
 * of clients). Owner: the CPT of the export. */
#ifndef RPC_EXPORT_PRIV_H
#define RPC_EXPORT_PRIV_H

#include "rpc/server/session/export.h"

struct wire_connect;

/* Returns the id (client_id.id) of the client whose Connect @c is now handled.
 * Borrowed as long as @c and the client's session exist. */
const uint8_t *export_id(const struct exports *x, const struct wire_connect *c);
/* Makes the export for @c, which came with the message @ev. Returns 0; -ENOMEM;
 * -ENOSPC: the host has used up its share; -EEXIST: an export has the client's
 * id. */
int export_new(struct exports *x, const struct wire_connect *c,
	       const struct ulnet_event *ev, struct export **e_p);
/* Called when the connection has ended: drops @e and cancels its requests.
 * Nobody waits for their replies any more, or lends memory to them. */
void export_lost(struct exports *x, struct export *e);
/* Called when a connection ends without a Disconnect: does what export_lost()
 * does, and also tells the services that the client has opened. */
void export_dead(struct exports *x, struct export *e);
/* Ends the session of @e, if it has one. If the message that is now handled
 * came in that session, it does not count as proved any more. */
void export_leave_session(struct exports *x, struct export *e);

/* Notes that a message of the client came from @source. */
void export_hear(struct exports *x, struct export *e,
		 const struct ulnet_nid *source);
/* Is the process of @e the one that @initiator and @source name? */
bool export_is_same_process(const struct exports *x, const struct export *e,
			    const struct ulnet_id *initiator,
			    const struct ulnet_nid *source);
/* Returns since when (ns) the client of @e has been silent. What it sent while
 * this node slept is not read yet, so silence counts anew from when the node
 * woke. */
uint64_t export_silent_since(const struct exports *x, const struct export *e);

/* Returns the keepalive of @e in us; that of the node if @e is NULL. */
uint64_t export_keepalive(const struct ulrpc *rpc, const struct export *e);
/* Sets the keepalive of @e, whose client has asked for @asked us; 0: it has not
 * asked, and gets the node's. */
void export_keepalive_set(struct exports *x, struct export *e, uint64_t asked);

#endif
