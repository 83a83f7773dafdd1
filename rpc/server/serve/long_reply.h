/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies that are longer than their callers have room for. The handler has
 * run, and is not to run again for that: the server holds the body and lends it
 * on the bulk portal, and the caller, who is told where (WIRE_HELD), gets it
 * when it has made room.
 *
 * The record of the call owns the body (record.h), so there is one for each
 * slot of a connection at most, and their memory is within the client's share
 * (service.h) of what the service may hold. The short reply that says where the
 * body is stays in the record as long as the body, whatever the method is. The
 * body is held until the first of these:
 * - a PUT of nothing to its match value: the client has it, or does not want
 *   it;
 * - the call is over for the client: acknowledged, canceled, or replaced in its
 *   slot;
 * - the caller's deadline, if there is one;
 * - the connection ends, or the service does.
 * Until then the body can be got any number of times, because a GET or its
 * REPLY may be lost. Its memory is given back when no REPLY is being sent from
 * it.
 *
 * A service that stops waits for bodies that nobody has got yet, as it does for
 * replies.
 *
 * Owner: CPT.
 */
#ifndef RPC_LONG_REPLY_H
#define RPC_LONG_REPLY_H

#include "rpc/server/session/record.h"
#include "rpc/server/serve/request.h"

/* Holds a copy of @body, the reply to @r. The record of @r is to keep the
 * reply; when the body is let go, the state of that record becomes @then.
 * Returns the match value of the body; 0: there is no room, or nobody to get
 * it. */
uint64_t long_reply_hold(struct ulrpc_request *r, const void *body,
			 uint32_t length, enum record_state then);
/* record_ops.body_let_go */
void long_reply_let_go(struct record_body *body);
/* The client has been heard from @nid for the first time, and may get @body
 * from there, too. */
void long_reply_reach(struct record_body *body, const struct ulnet_nid *nid);

/* No body can be fetched any more. */
void long_replies_abort(struct service_cpt *sc);

#endif
