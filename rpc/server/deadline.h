/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests under way, in the order of the times at which something is due: each
 * has a timer on the wheel of its CPT, so nothing is scanned, and a request
 * costs nothing between two of its times. What may be due:
 * - the client of a request that will not be answered in the time of its
 *   attempt is told that the request is being served: extend.h;
 * - a request that is still queued is refused as EXPIRED, whatever the workers
 *   do: when the time of its attempt is over, extensions included (`expires`),
 *   or so long before the caller's deadline that the refusal reaches him in
 *   time;
 * - a request that is being run, or whose reply waits for bulk, is canceled at
 *   its caller's deadline: the Cancel of a client that has vanished does not
 *   come, and no worker is to wait for it;
 * - a request that its handler has had for service_conf.stuck without a reply
 *   is reported, once;
 * - one whose handler has made no progress for service_conf.stalled is not
 *   waited for any more: stall.h.
 *
 * A request that is answered inline is never watched. Owner: CPT.
 */
#ifndef RPC_DEADLINE_H
#define RPC_DEADLINE_H

#include <stdint.h>

struct ulrpc_request;
struct wire_call;

/* @r, which has come as @c, has become active. */
void deadline_watch(struct ulrpc_request *r, const struct wire_call *c);
/* Another attempt of it, which has @timeout us, has come: `expires` moves on to
 * the end of that, if it is later. */
void deadline_renew(struct ulrpc_request *r, uint64_t timeout);
/* @r is not active any more, or the node has crashed. */
void deadline_unwatch(struct ulrpc_request *r);

#endif
