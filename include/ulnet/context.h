/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes with a call beside its body: metadata, in both directions, and the
 * status of a reply with its details. Conventions as in ulnet/rpc.h. Manual:
 * ulrpc_status(3), ulrpc_context_new(3), ulrpc_request_metadata(3).
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
/* Returns the status of a call: with ULRPC_CAUSE_HANDLER, or
 * ULRPC_CAUSE_INTERCEPTED, the one that outcome->status stands for, which is
 * the service's, or the interceptor's; otherwise the one that fits the cause.
 */
ULNET_EXPORT enum ulrpc_status ulrpc_status_of(
	const struct ulrpc_outcome *outcome);
/* Fails @request with ulrpc_status_errno(@status), and with a text, which may
 * be NULL: as ulrpc_fail_text(). @status is not ULRPC_STATUS_OK. */
ULNET_EXPORT void ulrpc_fail_status(struct ulrpc_request *request,
				    enum ulrpc_status status, const char *text);

/* What a failure says to programs: a message of protobuf, or other bytes. */
struct ulrpc_details {
	/* full name of the message's type, such as "google.rpc.RetryInfo"; up
	 * to 127 bytes, without spaces */
	const char *type;
	const void *bytes; /* the packed message */
	size_t length;
};

/* ---- metadata: ulrpc_context_new(3), ulrpc_request_metadata(3) ---- */

/* bytes of all metadata and details of a request, or of a reply, as they are
 * sent; they count as part of the body */
#define ULRPC_METADATA_MAX   8192
#define ULRPC_METADATA_PAIRS 64 /* pairs of a request, or of a reply */
#define ULRPC_METADATA_NAME  64 /* bytes of a name, with its terminator */

struct ulrpc_metadata {
	/* of a-z, 0-9, '-', '_' and '.' */
	const char *name;
	/* A text without control characters; if the name ends in "-bin", any
	 * bytes. What has been received is followed by a 0 byte. */
	const void *value;
	size_t length; /* bytes of the value */
};

/*
 * What goes with a call: ulrpc_call_conf.context. One call at a time has it,
 * from when it is made until its callback is called, or its wait returns:
 * meanwhile the functions below, and further calls, return -EBUSY. Then it has
 * what came with the reply, until it is given to another call.
 */
ULNET_EXPORT int ulrpc_context_new(struct ulrpc_context **context_p);
/* Calls that have @context go on. NULL is fine. */
ULNET_EXPORT void ulrpc_context_free(struct ulrpc_context *context);
/* Adds a pair to what calls take with them; both are copied. -EINVAL: the name,
 * or the value, is not allowed; -E2BIG: there are ULRPC_METADATA_PAIRS already;
 * -EMSGSIZE: more than ULRPC_METADATA_MAX; -ENOMEM, -EBUSY. */
ULNET_EXPORT int ulrpc_context_add(struct ulrpc_context *context,
				   const char *name, const void *value,
				   size_t length);
/* Pair @index of those that calls take with them. *@pair is valid until the
 * next ulrpc_context_add(). -ENOENT, -EBUSY. */
ULNET_EXPORT int ulrpc_context_sent(const struct ulrpc_context *context,
				    unsigned int index,
				    struct ulrpc_metadata *pair);
/*
 * Says which metadata go on: ulrpc_context_under() and
 * ulrpc_context_under_stream() take over, instead of what they have taken over
 * before, all pairs with these names, unless one of that name was added by
 * ulrpc_context_add(). @names is copied: names with spaces between them; one
 * that ends in '*' stands for all that begin like it. NULL: none, as at first.
 * -EINVAL: what is no name; -ENOMEM, -EBUSY.
 */
ULNET_EXPORT int ulrpc_context_pass(struct ulrpc_context *context,
				    const char *names);
/*
 * Calls and streams that are given @context from now on are made for @request,
 * which the caller of this function has to reply to: they end by its deadline
 * at the latest, have its trace unless they have one of their own, and are
 * canceled if it is, or its caller has given up or is gone, and so on down the
 * tree of calls. Then further ones return -ECANCELED. After the reply nothing
 * cancels them any more. -EBUSY, -ENOMEM; -E2BIG, -EMSGSIZE: with what goes on
 * there would be too many metadata.
 */
ULNET_EXPORT int ulrpc_context_under(struct ulrpc_context *context,
				     struct ulrpc_request *request);
/* Pair @index of the reply, or its first one with @name. *@pair is valid until
 * @context is given to another call, or freed. -ENOENT, -EBUSY. */
ULNET_EXPORT int ulrpc_context_metadata(const struct ulrpc_context *context,
					unsigned int index,
					struct ulrpc_metadata *pair);
ULNET_EXPORT int ulrpc_context_find(const struct ulrpc_context *context,
				    const char *name,
				    struct ulrpc_metadata *pair);
/* The details of the call's failure; valid as a pair is. -ENOENT, -EBUSY. */
ULNET_EXPORT int ulrpc_context_details(const struct ulrpc_context *context,
				       struct ulrpc_details *details);

/* For handlers: pair @index of @request, or its first one with @name. *@pair is
 * valid as long as the request. -ENOENT. Any thread that has @request, as with
 * the functions below. */
ULNET_EXPORT int ulrpc_request_metadata(const struct ulrpc_request *request,
					unsigned int index,
					struct ulrpc_metadata *pair);
ULNET_EXPORT int ulrpc_request_find(const struct ulrpc_request *request,
				    const char *name,
				    struct ulrpc_metadata *pair);
/*
 * Add a pair to the reply that the handler is going to make, or the details of
 * its failure; what is given is copied. With ulrpc_request_record(), before it.
 * A reply that is not OK, nor a failure of the handler, goes without them.
 * Errors are those of ulrpc_context_add(), but for -EBUSY; -EALREADY: there are
 * details already.
 */
ULNET_EXPORT int ulrpc_reply_add(struct ulrpc_request *request,
				 const char *name, const void *value,
				 size_t length);
ULNET_EXPORT int ulrpc_reply_details(struct ulrpc_request *request,
				     const struct ulrpc_details *details);

#ifdef __cplusplus
}
#endif

#endif
