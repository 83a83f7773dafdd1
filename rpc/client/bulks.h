/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bulk of a call, as its flavour has it: sealed before it is offered, and
 * checked and opened before the caller hears of the reply.
 *
 * Owner.
 */
#ifndef RPC_BULKS_H
#define RPC_BULKS_H

#include "rpc/client/call.h"

/* Claims the bulks of @conf for @call. 0; or an error of bulk_prepare(), and
 * none is claimed. Any thread. */
int bulks_claim(struct ulrpc_call *call,
		const struct ulrpc_call_conf *conf) must_check;
/* Computes checksums of sources, of about @left bytes. Returns whether all are
 * computed. Any thread. */
bool bulks_sum(struct ulrpc_call *call, uint64_t left);
/* Seals sources, which must be idle, in slices as bulks_sum(), or lets sealers
 * do it; a source is not idle then. If there is no connection, or no memory,
 * sources are sealed later, when they are sent (batch.c). Owner. */
bool bulks_seal(struct ulrpc_call *call, uint64_t left);
/* Seals the bulks of @call, which must be idle, with the keys of the connection
 * there is now, unless they are so already: until *@left bytes were sealed. 1:
 * done; 0: not all; -EAGAIN: there is no connection; or an error of
 * bulk_cover(). */
int bulks_cover(struct ulrpc_call *call, uint64_t *left) must_check;

/* Returns how many segments of @call have seals. */
unsigned int bulks_sealed(const struct ulrpc_call *call);

/* Detaches the bulks. Returns whether all are idle. */
bool bulks_detach(struct ulrpc_call *call);
/* Compares the sinks with the checksums in the reply, which has to have one for
 * each checked sink that anything was put to; or takes their seals. 0;
 * -EBADMSG; -EPROTO. */
int bulks_check(struct ulrpc_call *call, const struct wire_reply *r) must_check;

/* Has bulks_check() taken seals that bulks_open() still has to use? */
bool bulks_owe_open(const struct ulrpc_call *call);
/* Returns a bulk that is not idle yet, or NULL. */
struct ulrpc_bulk *bulks_busy(const struct ulrpc_call *call);
/* Opens the sinks when all are idle: about *@left bytes in one call, or by
 * sealers. 1: all is what the server has put; 0: not all is opened yet, or a
 * sink is not idle; -EBADMSG: something is not what the server has put;
 * -ENOMEM. */
int bulks_open(struct ulrpc_call *call, uint64_t *left) must_check;

#endif
