/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of metadata that an import has named by numbers, so that later calls
 * need not bring them: what the client knows of rpc/server/session/known.h.
 *
 * Only the first message of a call names a set. A set that was seen a second
 * time gets a number, and calls that bring the set define it, until one of them
 * was executed; from then on calls bring only the number. So a reference never
 * overtakes its definition. What is sent again, or over another connection,
 * brings the metadata themselves.
 *
 * The server may not know a set all the same: it was replaced, or its host had
 * used up its share. Then it executes nothing, and says so at once; the call is
 * sent again with its metadata, and no set is defined for a while.
 *
 * Numbers go upwards, over all connections of the import, so none ever means
 * two sets. Thread: owner.
 */
#ifndef RPC_NAMING_H
#define RPC_NAMING_H

#include "rpc/client/call.h"

struct import;

/* Decides how the next message brings the metadata of @call, which has some:
 * sets or clears CALL_NAMED, and call_context.name. */
void naming_choose(struct import *imp, struct ulrpc_call *call);
/* The message that naming_choose() was called for last has room for @call. Only
 * from now on its metadata count as seen: a call is tried more than once. */
void naming_chosen(struct import *imp, const struct ulrpc_call *call);
/* Called when the server has executed the first attempt of @call. */
void naming_done(struct import *imp, const struct call_context *x);
/* Called when the server does not know the set that the last attempt of @call
 * has referred to. */
void naming_unknown(struct import *imp, const struct call_context *x);
/* A connection has been made, whose server remembers up to @n sets. */
void naming_reset(struct import *imp, uint32_t n);
void naming_free(struct import *imp);

#endif
