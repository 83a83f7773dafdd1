/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message headers; the first byte of the input is the byte order. What can be
 * decoded is encoded, and decodes to the same. A header without cookies
 * acknowledges nothing.
 */
#include "lnd/socklnd/proto.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Encodes the header in little-endian order, whatever order it was read in. */
static void encode_again(const struct sock_hdr *was)
{
	uint8_t buf[SOCK_HDR_SIZE];
	struct sock_hdr is;

	sock_hdr_encode(was, buf);
	BUG_ON(sock_hdr_decode(&is, buf, false) != 0);
	BUG_ON(is.type != was->type || is.csum != was->csum ||
	       is.cookie[0] != was->cookie[0] ||
	       is.cookie[1] != was->cookie[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[SOCK_HDR_SIZE];
	struct sock_hdr hdr;
	bool swap;
	int rc;

	if (size < 1 + sizeof(bytes))
		return 0;
	swap = data[0] & 1;
	memcpy(bytes, data + 1, sizeof(bytes));
	rc = sock_hdr_decode(&hdr, bytes, swap);
	BUG_ON(rc != 0 && rc != -EPROTO);
	if (rc)
		return 0;
	BUG_ON(hdr.type != SOCK_MSG_NOOP && hdr.type != SOCK_MSG_LNET);
	encode_again(&hdr);
	BUG_ON(hdr.cookie[0] == 0 && hdr.cookie[1] == 0 && sock_hdr_acks(&hdr));
	return 0;
}
