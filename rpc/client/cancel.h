/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that end without an answer after they were sent: their server is told
 * that nobody waits, so that it does not execute what it has not begun, and
 * whoever serves one of them can stop. Those of one turn travel together. A
 * server that is not told learns the same from the next call in the slot.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_CANCEL_H
#define RPC_CLIENT_CANCEL_H

#include "base/list.h"
#include "ulnet/loop.h"

struct import;
struct ulrpc_call;
struct wire_gone;

/* Of an import. */
struct cancels {
	struct list link;	/* imports.canceling, if n is not 0 */
	struct wire_gone *list; /* WIRE_ENTRIES_MAX of them; NULL: never used */
	unsigned int n;
};

/* @call, which holds a slot, is about to end without an answer. */
void cancel_call(const struct ulrpc_call *call);
/* imports.cancel_work */
void imports_cancel(struct ulnet_work *w);

#endif
