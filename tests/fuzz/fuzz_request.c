/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection requests of hostile peers, in the steps in which they are read.
 * What can be decoded is encoded, and decodes to the same.
 */
#include "lnd/socklnd/proto.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes a copy in memory of just that length, so that the sanitizer notices a
 * read behind it. */
static int decode(const uint8_t *data, size_t len, struct ulnet_nid *target)
{
	uint8_t *copy = malloc(len);
	int rc;

	BUG_ON(!copy);
	memcpy(copy, data, len);
	rc = sock_request_decode(copy, len, target);
	free(copy);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t start[SOCK_START_SIZE], buf[SOCK_REQUEST_LARGE_SIZE];
	struct ulnet_nid target, again;
	size_t len;
	int need;

	if (size < sizeof(start))
		return 0;
	memcpy(start, data, sizeof(start));
	need = sock_request_size(start);
	if (need < 0) {
		BUG_ON(need != -EPROTO && need != -EPROTONOSUPPORT);
		return 0;
	}
	BUG_ON(need != SOCK_REQUEST_SIZE && need != SOCK_REQUEST_LARGE_SIZE);
	if (size < (size_t)need) {
		BUG_ON(decode(data, size, &target) != -EPROTO);
		return 0;
	}
	if (decode(data, (size_t)need, &target) != 0)
		return 0;
	BUG_ON(lnet_nid_is_any(&target) || lnet_nid_is_lo(&target));
	BUG_ON(target.size != 0 && target.size != 12);
	len = sock_request_encode(&target, buf);
	BUG_ON(sock_request_size(buf) != (int)len);
	BUG_ON(decode(buf, len, &again) != 0);
	BUG_ON(!lnet_nid_eq(&target, &again));
	return 0;
}
