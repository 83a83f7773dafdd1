/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes with a call beside its body: the status of a reply. Conventions as
 * in ulnet/rpc.h. Manual: ulrpc_status(3).
 */
#ifndef ULNET_CONTEXT_H
#define ULNET_CONTEXT_H

#include "ulnet/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statuses: ulrpc_status(3) ---- */

/* What became of a call, in the words and with the numbers of gRPC. */
enum ulrpc_status {
	ULRPC_STATUS_OK = 0,
	ULRPC_STATUS_CANCELLED = 1,
	ULRPC_STATUS_UNKNOWN = 2,
	ULRPC_STATUS_INVALID_ARGUMENT = 3,
	ULRPC_STATUS_DEADLINE_EXCEEDED = 4,
	ULRPC_STATUS_NOT_FOUND = 5,
	ULRPC_STATUS_ALREADY_EXISTS = 6,
	ULRPC_STATUS_PERMISSION_DENIED = 7,
	ULRPC_STATUS_RESOURCE_EXHAUSTED = 8,
	ULRPC_STATUS_FAILED_PRECONDITION = 9,
	ULRPC_STATUS_ABORTED = 10,
	ULRPC_STATUS_OUT_OF_RANGE = 11,
	ULRPC_STATUS_UNIMPLEMENTED = 12,
	ULRPC_STATUS_INTERNAL = 13,
	ULRPC_STATUS_UNAVAILABLE = 14,
	ULRPC_STATUS_DATA_LOSS = 15,
	ULRPC_STATUS_UNAUTHENTICATED = 16,
	ULRPC_STATUS_COUNT
};

/* Returns the name as gRPC has it, such as "NOT_FOUND"; "?" for any other
 * value. */
ULNET_EXPORT const char *ulrpc_status_name(enum ulrpc_status status);
/* Returns the negative errno that stands for @status, each status having one of
 * its own; 0: ULRPC_STATUS_OK. A value that is no status is taken for
 * ULRPC_STATUS_UNKNOWN. */
ULNET_EXPORT int ulrpc_status_errno(enum ulrpc_status status);
/* Returns the status of a call: with ULRPC_CAUSE_HANDLER the one that
 * outcome->status stands for, which is the service's; otherwise the one that
 * fits the cause. */
ULNET_EXPORT enum ulrpc_status ulrpc_status_of(
	const struct ulrpc_outcome *outcome);
/* Fails @request with ulrpc_status_errno(@status), and with a text, which may
 * be NULL: as ulrpc_fail_text(). @status is not ULRPC_STATUS_OK. */
ULNET_EXPORT void ulrpc_fail_status(struct ulrpc_request *request,
				    enum ulrpc_status status, const char *text);

#ifdef __cplusplus
}
#endif

#endif
