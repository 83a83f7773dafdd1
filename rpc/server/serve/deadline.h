/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timer of a request under way. It does all that may become due:
 * - if the request will not be answered in the time of its attempt, its client
 *   is told that the request is being served: extensions, below;
 * - a request that is still queued is refused as EXPIRED when the time of its
 *   attempt, with all extensions, is over (`expires`), or so long before the
 *   caller's deadline that the refusal reaches the caller in time;
 * - a request that is being run, or whose reply waits for bulk, is canceled at
 *   the caller's deadline: a client that has vanished sends no Cancel;
 * - a request whose handler has not replied for service_conf.stuck is logged,
 *   once;
 * - a request whose handler has made no progress for service_conf.stalled is
 *   stalled, below.
 *
 * A request that is answered inside of its inline handler has no timer. Owner:
 * CPT.
 */
#ifndef RPC_DEADLINE_H
#define RPC_DEADLINE_H

#include "rpc/server/serve/request.h"

struct exports;
struct ulnet_work;

/* Starts the timer of @r, which has come as @c and has become active. If its
 * body has to be got, the request is given up when that makes no progress for
 * so long as its client may be silent (or service_conf.stalled, if less), or
 * when there is no time left. */
void deadline_watch(struct ulrpc_request *r, const struct wire_call *c);
/* Called when the body of @r has been got, and the handler is about to be
 * called, or queued for. */
void deadline_go_on(struct ulrpc_request *r);
/* Called when another attempt of @r has come that has @timeout us: moves
 * `expires` to the end of that time, unless `expires` is later already. */
void deadline_renew(struct ulrpc_request *r, uint64_t timeout);
/* Stops the timer of @r, which is not active any more. */
void deadline_unwatch(struct ulrpc_request *r);

/* ---- extensions ---- */

/*
 * When a request will not be answered within the time of its attempt, the
 * server sends the client an Extend, "it takes longer", so that the client
 * waits instead of asking. The CPT sends it, not the worker, which may be busy.
 * An Extend is a control message, and may be lost, repeated or late.
 *
 * An attempt has the time T (Call.timeout), which is over at
 * ulrpc_request.expires.
 *
 * When an Extend is due: before `expires`, by a margin for the way to the
 * client. The margin is T/10 and at least 20 ms, but never over T/4; or two
 * round trips, if the client has measured them, but never over T/2. Up to T/8
 * is added: due times are rounded down to a multiple of a power of two, so that
 * Extends of one client that are due at about the same time travel in one
 * message. (Here a T of more than a minute counts as one minute.)
 *
 * By how much: the first Extend moves `expires` on by T/2, the second one by T,
 * the third one by 2T, ..., or by twice the time that is estimated to be left,
 * if that is more. An Extend never moves `expires` on by more than four
 * minutes, because a client waits for five at most and then asks; nor beyond
 * the caller's deadline, nor back.
 *
 * So the n-th Extend, counted from 0, is sent after T * (1 + 2^n) / 2 - 5T/8 or
 * later, until Extends are four minutes apart, and a request that takes t has
 * no more than ceil(log2(t/T)) + 2 + t/(4 min) of them.
 *
 * If a request is estimated at its arrival to take longer than T, the first
 * Extend is sent at once. None is sent if the caller's deadline is within T, if
 * the attempt has no T, if the client is gone, or if the request is stalled.
 */

/* Sends the client of @r an Extend with the present `expires`, at the end of
 * this turn: because `expires` was moved, or because the client has asked, and
 * may not know it. */
void extend_now(struct ulrpc_request *r);

/* What exports.extend_work calls: sends all Extends that are due. */
void exports_extend(struct ulnet_work *w);

/* ---- stalled handlers ---- */

/*
 * A request is stalled when its handler has made no progress for
 * service_conf.stalled. Progress is ulrpc_progress(), or a segment of bulk that
 * was moved. Then the client gets no more extensions. If the client asks when
 * the last one is over, the answer is WIRE_STALLED, and the request is
 * canceled. If the handler makes progress before that, the request is not
 * stalled any more. The CPT looks for progress a few times in the time of the
 * limit, so that the handler needs no clock.
 */

/* A bit in ulrpc_request.progress: there was progress since the CPT looked
 * last. */
#define STALL_PROGRESS (UINT32_C(1) << 31)

/* Is @r stalled, and its last extension over? */
static inline bool stall_is_over(const struct ulrpc_request *r, uint64_t now)
{
	return unlikely(r->stalled) && now >= r->expires;
}

#endif
