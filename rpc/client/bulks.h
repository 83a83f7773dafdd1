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
/* Seals sources, which must be idle, as bulks_sum(), or has sealers do it: then
 * one is not idle. Without a connection they are sealed later, when they are
 * sent (batch.c), and so if there is no memory now. Owner. */
bool bulks_seal(struct ulrpc_call *call, uint64_t left);
/* Seals the bulks of @call, which must be idle, with the keys of the connection
 * there is now, unless they are so already: until *@left bytes were sealed. 1:
 * done; 0: not all; -EAGAIN: there is no connection; or an error of
 * bulk_cover(). */
int bulks_cover(struct ulrpc_call *call, uint64_t *left) must_check;

/* How many segments of @call have seals; without seals 0. */
unsigned int bulks_sealed(const struct ulrpc_call *call);

/* Detaches the bulks. Returns whether all are idle. */
bool bulks_detach(struct ulrpc_call *call);
/* Compares the sinks with the checksums in the reply, which has to have one for
 * each checked sink that anything was put to; or takes their seals. 0;
 * -EBADMSG; -EPROTO. */
int bulks_check(struct ulrpc_call *call, const struct wire_reply *r) must_check;

/* Has bulks_check() taken seals, so that bulks_open() is owed? */
bool bulks_owe_open(const struct ulrpc_call *call);
/* A bulk that is not idle yet, or NULL. */
struct ulrpc_bulk *bulks_busy(const struct ulrpc_call *call);
/* Opens the sinks, when all are idle: until *@left bytes were opened, or as
 * sealers do it. 1: all is what the server has put; 0: not all is opened, or
 * one is not idle; -EBADMSG: it is not; -ENOMEM. */
int bulks_open(struct ulrpc_call *call, uint64_t *left) must_check;

#endif
