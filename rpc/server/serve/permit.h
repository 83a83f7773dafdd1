/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a call may be executed: the node's rules (rpc/rules.h) and the
 * flavour of its method decide.
 *
 * A client that may call all methods of a service is cleared (share.cleared):
 * its calls are not looked at. Otherwise each call is looked at, and the result
 * is kept in the client's share (struct permit), until the rules change, the
 * client connects again, or the service ends. So where rules name methods, a
 * call costs the test of a bit.
 *
 * Owner: CPT.
 */
#ifndef RPC_PERMIT_H
#define RPC_PERMIT_H

#include "rpc/server/serve/request.h"
#include "rpc/wire/wire.h"

/* What check_connection() returns instead of a status: each call is to be
 * judged. */
#define STATUS_JUDGE (WIRE_STATUSES + 1)

/* Why a call was refused. */
struct denial {
	/* enum wire_flavour: the one that the call should have; 0: refused for
	 * another reason */
	uint32_t flavour;
	uint32_t length; /* bytes of @text */
	char text[ULRPC_TEXT_MAX];
};

/* May all calls of @b be executed? @b has a share. */
bool permit_all(struct request_batch *b);
/* Judges the call @c of @b. Returns WIRE_OK: it may be executed; or
 * WIRE_REFUSED, with *@why set; the refusal is counted and logged. */
uint32_t permit_call(struct request_batch *b, const struct wire_call *c,
		     struct denial *why);

#endif
