/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests under way, in the order of the times at which something is due: each
 * has a timer on the wheel of its CPT, so nothing is scanned, and a request
 * costs nothing between two of its times. What may be due:
 * - the client of a request that will not be answered in the time of its
 *   attempt is told that the request is being served: extensions, below;
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
 *   waited for any more: it is stalled, below.
 *
 * A request that is answered inline is never watched. Owner: CPT.
 */
#ifndef RPC_DEADLINE_H
#define RPC_DEADLINE_H

#include "rpc/server/serve/request.h"

struct exports;
struct ulnet_work;

/* @r, which has come as @c, has become active. */
void deadline_watch(struct ulrpc_request *r, const struct wire_call *c);
/* Another attempt of @r has come, which has @timeout us: `expires` moves on to
 * the end of that time, if it is later. */
void deadline_renew(struct ulrpc_request *r, uint64_t timeout);
/* @r is not active any more. */
void deadline_unwatch(struct ulrpc_request *r);

/* ---- extensions ---- */

/*
 * Early replies: when a request will not be answered within the time of its
 * attempt, the server sends its client an Extend, "it takes longer", so that
 * the client waits instead of asking. The loop sends it, never a worker, which
 * may be busy. It goes to the control portal, so that it shares no buffer with
 * a reply and may be lost, repeated or late.
 *
 * An attempt has the time T (Call.timeout), which is over at
 * ulrpc_request.expires.
 *
 * When an Extend is due: before `expires`, by a margin for the way to the
 * client. The margin is T/10 and at least 20 ms, but never over T/4; or two
 * round trips, if the client has measured them, but never over T/2. It is up to
 * T/8 longer still: due times are rounded down to a power of two, so that those
 * of one client that are near each other come at one time and travel in one
 * message. (Here a T of more than a minute counts as one minute.)
 *
 * By how much: the first Extend moves `expires` on by T/2, the second one by T,
 * the third one by 2T, ..., or by twice what is known to be left to do if that
 * is more; by no more than four minutes, because a client believes five and
 * then asks; never beyond the caller's deadline, and never back.
 *
 * So the n-th Extend, counted from 0, is sent after T * (1 + 2^n) / 2 - 5T/8 or
 * later, until Extends are four minutes apart, and a request that takes t has
 * no more than ceil(log2(t/T)) + 2 + t/(4 min) of them.
 *
 * A request whose method and queue say at its arrival that it will take longer
 * than T has its first Extend at once. A caller's deadline within T needs none,
 * and an attempt without T, or a client that is gone, gets none: a request that
 * still waits for a worker ends when its attempt does.
 *
 * A request whose handler makes no progress gets no more Extends: it is
 * stalled.
 *
 * No statistics of times count extensions. Owner: CPT.
 */

/* Sends an Extend that says what `expires` is now, at the end of this turn: it
 * was moved, or the client has asked, so that the last one may be lost. */
void extend_now(struct ulrpc_request *r);

/* exports.extend_work */
void exports_extend(struct ulnet_work *w);

/* ---- stalled handlers ---- */

/*
 * Handlers that make no progress. A service may limit the time for which a
 * handler makes none (service_conf.stalled). Progress is ulrpc_progress(), or a
 * segment of bulk that was moved. A request whose handler has been without for
 * that long is stalled: its client gets no more extensions. When the last
 * extension is over, and the client asks, the answer is WIRE_STALLED, and the
 * request is canceled. If the handler makes progress before that, the request
 * is not stalled any more.
 *
 * The CPT looks for progress a few times in the time of the limit, so that the
 * handler needs no clock.
 *
 * Owner: CPT.
 */

/* In ulrpc_request.progress: there was progress since the CPT looked last. */
#define STALL_PROGRESS (UINT32_C(1) << 31)

/* The client of @r asks about it: is it stalled, and its last extension
 * over? */
static inline bool stall_is_over(const struct ulrpc_request *r, uint64_t now)
{
	return unlikely(r->stalled) && now >= r->expires;
}

#endif
