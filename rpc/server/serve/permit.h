/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a call may be executed: as the node's rules say (rpc/rules.h), and as
 * the flavour of its method does.
 *
 * A client that may call all methods of a service is cleared (export.cleared):
 * its calls cost nothing here. Else each call is looked at, and what was found
 * out is kept in the client's share (struct permit), until the rules change,
 * the client connects again, or the service ends. So with rules that name
 * methods, a call costs the look at a bit.
 *
 * Owner: CPT.
 */
#ifndef RPC_PERMIT_H
#define RPC_PERMIT_H

#include "rpc/server/serve/request.h"
#include "rpc/wire/wire.h"

/* In the place of an enum wire_status: each call is to be judged. */
#define STATUS_JUDGE (WIRE_STATUSES + 1)

/* Why a call was refused. */
struct denial {
	uint32_t flavour; /* enum wire_flavour: which it is to have; 0: another
			   * reason */
	uint32_t length;  /* of text */
	char text[ULRPC_TEXT_MAX];
};

/* May all calls of @b, which has a share, be executed? */
bool permit_all(struct request_batch *b);
/* Returns WIRE_OK: the call @c of @b may be executed; or WIRE_REFUSED, with
 * *@why set, which is counted and logged. */
uint32_t permit_call(struct request_batch *b, const struct wire_call *c,
		     struct denial *why);

#endif
