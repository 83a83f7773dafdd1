/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams and trees of calls (rpc/context/scope.h), from both ends: a stream
 * that is opened for a request, or for another stream, is in the scope of that,
 * from its opening to its end; and a stream of a service has a scope of its own
 * for what its handler makes.
 *
 * Locks: a scope's is taken while a channel's is held, when a stream enters or
 * leaves. So whoever cancels a scope holds the lock of no channel, and a stream
 * is canceled by work that is posted.
 */
#ifndef RPC_STREAM_UNDER_H
#define RPC_STREAM_UNDER_H

#include "rpc/context/scope.h"
#include "rpc/stream/stream.h"

/* The functions below are called with the channel's lock held. */

/* @s, of a client, is in @scope until under_leave(). Returns 0; -ECANCELED:
 * @scope is canceled; -ENOMEM. */
int under_enter(struct ulrpc_stream *s, struct scope *scope) must_check;
/* Does nothing if @s is in no scope. */
void under_leave(struct ulrpc_stream *s);

#endif
