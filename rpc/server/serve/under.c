/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts under a request: rpc/context/scope.h. */
#include <errno.h>

#include "rpc/context/context.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/request.h"
#include "rpc/streaming.h"

/* Returns the scope of @r; NULL: no memory. */
static struct scope *request_scope(struct ulrpc_request *r)
{
	struct scope *s;

	if (r->rare & REQUEST_SCOPE)
		return r->scope;
	s = scope_new(r->deadline, r->traced ? r->trace : NULL);
	if (!s)
		return NULL;
	r->rare |= REQUEST_SCOPE;
	r->scope = s;
	atomic_store(&r->scoped, 1);
	/* Who cancels marks the request first, and looks for the scope then. So
	 * either it finds the scope, or the mark is found here. */
	if (atomic_load(&r->cancel) >= CANCEL_DUE)
		scope_cancel(s);
	return s;
}

int ulrpc_context_under(struct ulrpc_context *context,
			struct ulrpc_request *request)
{
	size_t length;
	const uint8_t *annex = request_metadata_of(request, &length);
	struct scope *s;
	int rc;

	if (context_is_busy(context))
		return -EBUSY;
	s = request_scope(request);
	if (!s)
		return -ENOMEM;
	scope_get(s);
	rc = context_enter(context, s,
			   (struct wire_view){ annex, annex + length });
	if (rc)
		scope_put(s);
	return rc;
}

const uint8_t *request_trace_of(const struct ulrpc_request *r)
{
	return r->traced ? r->trace : NULL;
}
