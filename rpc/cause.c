/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/cause.h"

#include <errno.h>

const struct cause causes[ULRPC_CAUSE_COUNT] = {
	[ULRPC_CAUSE_OK] = { "ok", 0 },
	[ULRPC_CAUSE_HANDLER] = { "handler", -EIO },
	[ULRPC_CAUSE_DEADLINE] = { "deadline", -ETIMEDOUT },
	[ULRPC_CAUSE_EXPIRED] = { "expired", -ETIMEDOUT },
	[ULRPC_CAUSE_CANCELED] = { "canceled", -ECANCELED },
	[ULRPC_CAUSE_OVERLOADED] = { "overloaded", -EBUSY },
	[ULRPC_CAUSE_NO_SERVICE] = { "no service", -ENOENT },
	[ULRPC_CAUSE_NO_METHOD] = { "no method", -ENOSYS },
	[ULRPC_CAUSE_BAD_REQUEST] = { "bad request", -EINVAL },
	[ULRPC_CAUSE_BAD_REPLY] = { "bad reply", -EPROTO },
	[ULRPC_CAUSE_TOO_LONG] = { "too long", -EMSGSIZE },
	[ULRPC_CAUSE_BULK] = { "bulk", -EIO },
	[ULRPC_CAUSE_CHECKSUM] = { "checksum", -EBADMSG },
	[ULRPC_CAUSE_UNREACHABLE] = { "unreachable", -EHOSTUNREACH },
	[ULRPC_CAUSE_REFUSED] = { "refused", -ECONNREFUSED },
	[ULRPC_CAUSE_RESTARTED] = { "restarted", -ECONNRESET },
	[ULRPC_CAUSE_SHUTDOWN] = { "shutdown", -ESHUTDOWN },
	[ULRPC_CAUSE_NO_MEMORY] = { "no memory", -ENOMEM },
	[ULRPC_CAUSE_STALLED] = { "stalled", -ETIMEDOUT },
};

const char *ulrpc_cause_name(enum ulrpc_cause cause)
{
	return (unsigned int)cause < ULRPC_CAUSE_COUNT ? causes[cause].name
						       : "unknown";
}

const char *ulrpc_execution_name(enum ulrpc_execution execution)
{
	switch (execution) {
	case ULRPC_EXECUTED:
		return "executed";
	case ULRPC_NOT_EXECUTED:
		return "not executed";
	default:
		return "unknown";
	}
}
