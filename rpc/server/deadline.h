/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests under way, in the order of the times at which something is due: each
 * has a timer on the wheel of its CPT, so nothing is scanned, and a request
 * costs nothing between two of its times. What may be due:
 * - a queued request whose deadline has come is refused as EXPIRED, at that
 *   time, whatever the workers do;
 * - a request that its handler has had for service_conf.stuck without a reply
 *   is reported, once.
 *
 * A request that is answered inline is never watched. Owner: CPT.
 */
#ifndef RPC_DEADLINE_H
#define RPC_DEADLINE_H

struct ulrpc_request;

/* @r has become active. */
void deadline_watch(struct ulrpc_request *r);
/* @r is not active any more, or the node has crashed. */
void deadline_unwatch(struct ulrpc_request *r);

#endif
