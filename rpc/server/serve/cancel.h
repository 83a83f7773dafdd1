/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancels requests, because the client has said that the call is over, or has
 * used its slot for another call, or is gone; or because the caller's deadline
 * has passed, or the service stops.
 *
 * A request that waits for a worker is dropped. One that is being run goes on,
 * as only its handler can end it. But the handler can ask whether it is
 * canceled, and can set a callback that tells it. All bulk of the request,
 * under way or begun later, ends with -ECANCELED, so that no worker waits for
 * it. The reply is dropped, unless the request was canceled because the service
 * stops.
 *
 * A callback is called at the end of the turn, because the function that
 * cancels may be walking over a list of requests. ulrpc_request.cancel is
 * atomic, because the CPT, the thread that sets the callback and the thread
 * that replies change it. A reply takes away a callback that was not called,
 * and waits for one that is being called, so that what the callback uses can be
 * freed with the request.
 */
#ifndef RPC_CANCEL_H
#define RPC_CANCEL_H

#include "rpc/server/serve/request.h"

enum cancel_state {
	CANCEL_NONE,
	CANCEL_SETTING, /* the callback is being set */
	CANCEL_ASKED,	/* the handler has set a callback */
	CANCEL_DUE,	/* canceled; the callback is to be called */
	/* canceled; the callback is being called, or has been */
	CANCEL_TOLD,
	CANCEL_CANCELED, /* canceled; the handler has set no callback */
};

static inline bool request_canceled(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->cancel, memory_order_relaxed) >=
	       CANCEL_DUE;
}

/* Cancels @r, which is under way, and whose reply nobody waits for. A second
 * call has no effect. @r may be gone on return. Owner. */
void request_cancel(struct ulrpc_request *r);
/* Marks @r as canceled and tells its handler, but does not drop a reply that is
 * on its way. Returns false if @r was marked already. Owner. */
bool request_cancel_tell(struct ulrpc_request *r);
/* Called before the calling thread replies to @r: takes away the callback of
 * @r, or waits until it has been called. Any thread. */
void request_cancel_end(struct ulrpc_request *r);

/* Initializes @s. Returns 0 or -errno. */
int sleepers_init(struct sleepers *s);
void sleepers_fini(struct sleepers *s);

/* What service_cpt.cancel_work calls: calls the callbacks that are due. */
void requests_tell(struct ulnet_work *w);

#endif
