/* SPDX-License-Identifier: BSD-3-Clause */
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
 * With that the n-th one, from 0, is sent after T * (1 + 2^n) / 2 - 5T/8 or
 * later, until they are four minutes apart, so a request that takes t has no
 * more than ceil(log2(t/T)) + 2 + t/(4 min) of them.
 *
 * A request whose method and queue say at its arrival that it will take longer
 * than T has its first Extend at once. A caller's deadline within T needs none,
 * and an attempt without T, or a client that is gone, gets none: a request that
 * still waits for a worker ends when its attempt does.
 *
 * A request whose handler makes no progress has no more of them: stall.h.
 *
 * Extensions are in no statistics of times. Owner: CPT.
 */
#ifndef RPC_EXTEND_H
#define RPC_EXTEND_H

#include <stdint.h>

struct export;
struct exports;
struct ulnet_work;
struct ulrpc_request;
struct wire_call;

/* @r, which has come as @c, is active from now on. */
void extend_begin(struct ulrpc_request *r, const struct wire_call *c,
		  uint64_t now);
/* Another attempt of it has come, which has @timeout us. */
void extend_renew(struct ulrpc_request *r, uint64_t timeout, uint64_t now);
/* @r is not active any more. */
void extend_end(struct ulrpc_request *r);
/* ns: when its client is to be told; TIME_NEVER. */
uint64_t extend_at(const struct ulrpc_request *r);
/* That time has come. */
void extend_due(struct ulrpc_request *r, uint64_t now);
/* Sends an Extend that says what `expires` is now, at the end of this turn: it
 * was moved, or the client has asked, so that the last one may be lost. */
void extend_now(struct ulrpc_request *r);

/* exports.extend_work */
void exports_extend(struct ulnet_work *w);

#endif
