/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that make no progress. A service may limit the time for which a
 * handler makes none (service_conf.stalled). Progress is ulrpc_progress(), or a
 * segment of bulk that was moved. A request whose handler has been without for
 * that long is stalled: its client gets no more extensions (extend.h). When the
 * last extension is over, and the client asks, the answer is WIRE_STALLED, and
 * the request is canceled. If the handler makes progress before that, the
 * request is not stalled any more.
 *
 * The CPT looks for progress STALL_LOOKS times in the time of the limit, so
 * that the handler needs no clock.
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
