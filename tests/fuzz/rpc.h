/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC messages of hostile peers. The first two bytes of the input are the
 * length of the head, the rest is the message. The header data are computed
 * here, since no fuzzer would guess a checksum.
 */
#ifndef TESTS_FUZZ_RPC_H
#define TESTS_FUZZ_RPC_H

#include <errno.h>
#include <string.h>
#include "base/buf.h"
#include "tests/unit/rpc/wire/wire_reencode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes a message in memory of just its length, so that the sanitizer notices
 * a read behind it, and encodes it again. */
static inline int rpc_read(enum wire_kind kind, const uint8_t *bytes,
			   size_t length, uint64_t hdr_data,
			   struct reencoded *out)
{
	uint8_t *copy = malloc(length ? length : 1);
	int rc;

	BUG_ON(!copy);
	memcpy(copy, bytes, length);
	rc = reencode(kind, copy, length, hdr_data, out);
	free(copy);
	return rc;
}

/* Returns the length of the head, and removes that from the input. */
static inline size_t rpc_head(const uint8_t **data, size_t *size)
{
	size_t head = (*data)[0] | (size_t)(*data)[1] << 8;

	*data += 2;
	*size -= 2;
	return MIN(head, *size);
}

/* What can be decoded is encoded, and must decode to the same. */
static inline int rpc_try(enum wire_kind kind, const uint8_t *data, size_t size)
{
	static struct reencoded once, twice;
	size_t head;
	int rc;

	if (size < 2 || size > sizeof(once.bytes) / 2)
		return 0;
	head = rpc_head(&data, &size);
	rc = rpc_read(kind, data, size, wire_hdr_data(kind, data, head), &once);
	/* -EBADMSG: the bodies do not match a checksum */
	BUG_ON(rc != 0 && rc != -EPROTO && rc != -EBADMSG && rc != -E2BIG);
	if (rc)
		return 0;
	rc = rpc_read(kind, once.bytes, once.length, once.hdr_data, &twice);
	BUG_ON(rc != 0);
	BUG_ON(twice.length != once.length || twice.hdr_data != once.hdr_data);
	BUG_ON(memcmp(twice.bytes, once.bytes, once.length) != 0);
	return 0;
}

#endif
