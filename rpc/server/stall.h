/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that make no progress. If a service says how long a handler may be
 * without any (service_conf.stalled), a request whose handler was longer, with
 * neither ulrpc_progress() nor a segment of bulk moved, is stalled: its client
 * is not told any more that the request is being served (extend.h), and when
 * what the client was told before is over, and it asks, it is told that, as
 * WIRE_STALLED, and the request is canceled. Progress until then makes all good.
 *
 * The CPT looks for progress STALL_LOOKS times in that time, so that the
 * handler needs no clock.
 *
 * Owner: CPT.
 */
#ifndef RPC_STALL_H
#define RPC_STALL_H

#include "rpc/server/request.h"

#define STALL_LOOKS 4

/* In ulrpc_request.progress: said since the CPT has looked. */
#define STALL_PROGRESS (UINT32_C(1) << 31)

/* @r is active from now on. */
void stall_begin(struct ulrpc_request *r, uint64_t now);
/* ns: when stall_look() is due; TIME_NEVER. */
uint64_t stall_at(const struct ulrpc_request *r);
/* Any time. True: @r is found to be stalled, and was not before. */
bool stall_look(struct ulrpc_request *r, uint64_t now);
/* Its client asks: is there nothing left but to tell it? */
static inline bool stall_is_over(const struct ulrpc_request *r, uint64_t now)
{
	return unlikely(r->stalled) && now >= r->expires;
}

#endif
