/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last step of a call with sealed sinks (bulks.h): when nothing can touch
 * the sinks any more, they are opened, slice by slice, and then the caller
 * hears of the reply. Until then the call is in client.opening, and in no other
 * list.
 *
 * Owner.
 */
#ifndef RPC_OPENING_H
#define RPC_OPENING_H

#include "rpc/client/call.h"

/* Calls @tell once, later, but not after the deadline of @call: with @o and the
 * @length bytes of @body, which are copied; or with another outcome and no
 * body, if the sinks are not what the server has put, or this is not known by
 * the deadline. Without memory @tell is called at once, with
 * ULRPC_CAUSE_NO_MEMORY. */
void opening_begin(struct ulrpc_call *call, struct ulrpc_outcome *o,
		   const void *body, size_t length,
		   void (*tell)(struct ulrpc_call *call,
				struct ulrpc_outcome *o, const void *body,
				size_t length));
/* Ends all calls in @openings (client.opening) with @cause. Their sinks are not
 * opened. */
void openings_abort(struct list *openings, enum ulrpc_cause cause);

#endif
