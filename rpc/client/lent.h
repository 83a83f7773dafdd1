/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies that are lent: a body that is longer than the service takes in a
 * message is bulk, which the server gets before it calls the handler. So it is
 * sealed, checked, repeated and given up as bulk is. Its bulks come behind the
 * user's.
 *
 * A body is lent from the beginning if its length, or what is known of the
 * service when the call is made, says so. Otherwise it turns out when the call
 * is to be sent.
 */
#ifndef RPC_CLIENT_LENT_H
#define RPC_CLIENT_LENT_H

#include <stdatomic.h>
#include "rpc/client/call.h"

struct wire_opened;

/* A body that is lent, which LNet may still send when its call is gone. */
struct lent {
	/* one reference of the call, and one of each of its bulks */
	atomic_uint refs;
	uint32_t length;
	size_t trace; /* where the call's trace is, from the call's beginning */
	uint8_t body[];
};

/* Returns how many bulks a body of @length bytes is. */
static inline unsigned int lent_bulks(const struct ulrpc *rpc, size_t length)
{
	return (unsigned int)((length + rpc->lent_part - 1) / rpc->lent_part);
}

/* Returns how many bytes the body of @call has. */
static inline uint32_t call_size(const struct ulrpc_call *call)
{
	return call->flags & CALL_LENT ? call->lent->length : call->length;
}

/* Returns from how many bytes on bodies for a service are lent, which has
 * answered @m. */
uint32_t lent_from(const struct wire_opened *m);
/* Returns memory for a body of @length bytes; NULL: there is none. */
struct lent *lent_new(uint32_t length);
void lent_put(struct lent *lent);
/* Makes call->lent, whose body the caller has filled in, the body of @call,
 * which has room for lent_bulks() more bulks. Returns 0, and then CALL_LENT and
 * CALL_BULKS are set, and the bulks claimed; or -ENOMEM. Any thread. */
int lent_claim(struct ulrpc_call *call) must_check;
/* Called when the body of @call, which is to be sent, is too long for a
 * message: makes it one that is lent. Overwrites the call's own copy, which
 * LNet must not be sending. Returns -EINPROGRESS: its checksums and
 * seals are to be computed; -EMSGSIZE: it is too long even so; -ENOMEM. */
int lent_instead(struct ulrpc_call *call) must_check;

#endif
