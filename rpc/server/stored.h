/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the store of a durable service has of a request: the reply to it, as
 * bytes that a later process can read, with the checksums of what was put to
 * the caller's sinks. Those are there still, or so the caller finds out.
 * Little endian:
 *
 *	4  version
 *	4  CRC32C of all that follows
 *	4  the reply's status, a positive errno or 0
 *	8  xid of the call
 *	4  number of sinks; for each of them
 *		4  index
 *		4  n, segments that were put to
 *		4  1: their lengths follow; 0: each is whole
 *		n * 4  checksums
 *		n * 4  lengths, or nothing
 *	   the reply's body
 *
 * Knows nothing of requests, nor of stores. Any thread.
 */
#ifndef RPC_STORED_H
#define RPC_STORED_H

#include "rpc/wire/wire.h"

struct stored {
	uint64_t xid;
	uint32_t error; /* the status */
	const uint8_t *body;
	size_t length;
};

/* @s, with the checksums @moved, as *@length_p bytes from malloc(). NULL: no
 * memory. */
void *stored_new(const struct stored *s, const struct wire_moved *moved,
		 unsigned int nmoved, size_t *length_p);
/* Once for each @value, which is aligned as malloc() does, and whose tables are
 * turned into this machine's byte order; out->body lies in it. 0; -EBADMSG: it
 * cannot be read, and is left as it is or half turned. */
int stored_read(void *value, size_t length, struct stored *out) must_check;
/* Of a value that was read: fills up to ULRPC_BULKS_MAX entries, borrowed from
 * @value, and returns how many there are. */
unsigned int stored_moved(const void *value, struct wire_moved *out);

#endif
