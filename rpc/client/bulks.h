/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a call does with its bulk because of its flavour: sources are sealed
 * before they are offered; sinks are checked and opened before the caller hears
 * of the reply.
 *
 * Owner.
 */
#ifndef RPC_BULKS_H
#define RPC_BULKS_H

#include "rpc/client/call.h"

/* Claims the bulks of @conf for @call. Returns 0; or an error of
 * bulk_prepare(), and none is claimed. Any thread. */
int bulks_claim(struct ulrpc_call *call,
		const struct ulrpc_call_conf *conf) must_check;
/* Gives back what bulks_claim() has claimed, of a call that is not made after
 * all. Owner. */
void bulks_give_back(struct ulrpc_call *call);
/* Computes checksums of sources, of about @left bytes in one call. Returns
 * whether all are computed. Any thread. */
bool bulks_sum(struct ulrpc_call *call, uint64_t left);
/* Seals sources, which must be idle: about @left bytes in one call. Sealers may
 * do that, too; a source that they work on is not idle. Returns whether all is
 * finished. Without a connection, or without memory, sources are sealed later,
 * when they are sent (batch.c). Owner. */
bool bulks_seal(struct ulrpc_call *call, uint64_t left);
/* Seals the bulks of @call, which must be idle, with the keys of the present
 * connection, unless that was done already: about *@left bytes in one call.
 * Returns 1: all are sealed; 0: not all yet; -EAGAIN: there is no connection;
 * or an error of bulk_cover(). */
int bulks_cover(struct ulrpc_call *call, uint64_t *left) must_check;

/* Returns how many segments of @call have seals. */
unsigned int bulks_sealed(const struct ulrpc_call *call);

/* Detaches the bulks. Returns whether all are idle. */
bool bulks_detach(struct ulrpc_call *call);
/* Compares the sinks with the checksums in the reply, which must have one for
 * each checked sink to which anything was put. Of sealed sinks, takes the
 * seals, and the keys that they need. Returns 0, -EBADMSG or -EPROTO. */
int bulks_check(struct ulrpc_call *call, const struct wire_reply *r) must_check;

/* Has bulks_check() taken seals that bulks_open() still has to use? */
bool bulks_owe_open(const struct ulrpc_call *call);
/* Returns a bulk that is not idle yet; NULL: all are idle. */
struct ulrpc_bulk *bulks_busy(const struct ulrpc_call *call);
/* Returns a bulk of @call that has to be idle before the next attempt, and is
 * not; NULL: there is none. */
struct ulrpc_bulk *bulks_fenced(const struct ulrpc_call *call);
/* Opens the sinks, once all are idle: about *@left bytes in one call. Sealers
 * may do that, too. Returns 1: all is what the server has put; 0: not all is
 * opened yet, or a sink is not idle; -EBADMSG: something is not what the server
 * has put; -ENOMEM. */
int bulks_open(struct ulrpc_call *call, uint64_t *left) must_check;

#endif
