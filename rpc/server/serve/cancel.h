/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are over for their clients before they are answered: the client
 * has said so, or used their slot again, or is gone; or the caller's deadline
 * has passed; or their service stops.
 *
 * A request that waits for a worker is dropped. One that is being run goes on,
 * as only its handler can end it. But the handler can ask, and is told by a
 * callback; and its bulk ends with -ECANCELED, both what is under way and what
 * is begun later, so that a worker that waits for it goes on. Nobody gets its
 * reply, unless it was canceled because the service stops, and the handler
 * replies in time.
 *
 * A callback is not called inside of what cancels, which may be walking over
 * requests, but at the end of the turn. ulrpc_request.cancel is moved by the
 * CPT, by who sets the callback, and by who replies: the reply takes away a
 * callback that was not called, and waits for one that is being called, so that
 * what the callback uses can go with the request.
 */
#ifndef RPC_CANCEL_H
#define RPC_CANCEL_H

#include "rpc/server/serve/request.h"

enum cancel_state {
	CANCEL_NONE,
	CANCEL_SETTING,	 /* the callback is being written down */
	CANCEL_ASKED,	 /* there is one */
	CANCEL_DUE,	 /* canceled: there is one to be called */
	CANCEL_TOLD,	 /* canceled: it is being called, or has been */
	CANCEL_CANCELED, /* canceled: no callback */
};

static inline bool request_canceled(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->cancel, memory_order_relaxed) >=
	       CANCEL_DUE;
}

/* Nobody waits for @r, which is active, any more. A second call has no effect.
 * @r may be gone on return. Owner. */
void request_cancel(struct ulrpc_request *r);
/* @r is about to be lost: tells its handler. A reply that is on its way still
 * goes to whoever waits for it. */
void request_cancel_tell(struct ulrpc_request *r);
/* @r is replied to, by the calling thread, and about to be gone. Any thread. */
void request_cancel_end(struct ulrpc_request *r);

/* For a service that begins. 0, -errno. */
int sleepers_init(struct sleepers *s);
/* Nobody sleeps. */
void sleepers_fini(struct sleepers *s);

/* service_cpt.cancel_work */
void requests_tell(struct ulnet_work *w);

#endif
