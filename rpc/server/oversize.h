/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies that are longer than their callers have room for. The handler has
 * run, and is not to run again for that: the server holds the body and lends it
 * on the bulk portal, and the caller, who is told where (WIRE_HELD), gets it
 * when it has made room.
 *
 * A body is held, within the share of its client (service.h), until the first
 * of these:
 * - a PUT of nothing to its match value: the client has it, or does not want
 *   it;
 * - the client says that the call is over (acked);
 * - the caller's deadline; without one, a lease;
 * - the connection ends, or the service does.
 * It is there for any number of GETs until then, as a GET or its REPLY may be
 * lost. Memory is given back when no REPLY is being sent from it.
 *
 * A service that stops waits for bodies that nobody has got yet, as it does for
 * replies.
 *
 * Owner: CPT.
 */
#ifndef RPC_OVERSIZE_H
#define RPC_OVERSIZE_H

#include "rpc/server/request.h"

/* Holds a copy of @body, the reply to the call @xid of @o, until @until, ns.
 * Returns its match value; 0: there is no room, or nobody to get it. */
uint64_t oversize_hold(struct origin *o, uint64_t xid, const void *body,
		       uint32_t length, uint64_t until);

/* The client's calls up to @xid are over. */
void oversizes_acked(struct share *share, uint64_t xid);
/* Its connection has ended. */
void oversizes_drop(struct share *share);

/* Nobody gets anything any more. */
void oversizes_abort(struct service_cpt *sc);
/* The node has crashed, and then is gone. */
void oversizes_crash(struct service_cpt *sc);
void oversizes_gone(struct service_cpt *sc);

#endif
