/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handler tells the caller beside the body of its reply. */
#include "ulnet/context.h"

void ulrpc_fail_status(struct ulrpc_request *request, enum ulrpc_status status,
		       const char *text)
{
	ulrpc_fail_text(request, ulrpc_status_errno(status), text ? text : "");
}
