/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headers of messages; the first byte says the byte order. What is understood
 * is encoded, and decodes to the same. As many cookies are acknowledged as the
 * header is said to name.
 */
#include "lnd/socklnd/proto.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Written in little endian, whatever it was read from. */
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

/* How many of the @n cookies from @from on are acknowledged. */
static uint64_t found(const struct sock_hdr *hdr, uint64_t from, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += sock_hdr_acks_cookie(hdr, from + i);
	return sum;
}

#define NEAR 16

/* Around both of a header's cookies, nowhere twice. */
static uint64_t found_near(const struct sock_hdr *hdr)
{
	uint64_t low = MIN(hdr->cookie[0], hdr->cookie[1]);
	uint64_t high = MAX(hdr->cookie[0], hdr->cookie[1]);

	if (high - low <= 2 * NEAR)
		return found(hdr, low - NEAR, high - low + 2 * NEAR + 1);
	if (low - high <= 2 * NEAR)
		return found(hdr, high - NEAR, low - high + 2 * NEAR + 1);
	return found(hdr, low - NEAR, 2 * NEAR + 1) +
	       found(hdr, high - NEAR, 2 * NEAR + 1);
}

static void check_acks(const struct sock_hdr *hdr)
{
	uint64_t named = sock_hdr_acks(hdr), n = found_near(hdr);

	BUG_ON(sock_hdr_acks_cookie(hdr, 0));
	BUG_ON(hdr->type == SOCK_MSG_LNET && named > 1);
	BUG_ON(n > named || (named != 0 && n == 0));
	/* Then there is nothing that was not looked at. */
	if (named <= NEAR)
		BUG_ON(n != named);
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
	check_acks(&hdr);
	return 0;
}
