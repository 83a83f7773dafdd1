/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HELLOs of hostile peers, in the steps in which they are read. What can be
 * decoded is encoded, and decodes to the same.
 */
#include "lnd/socklnd/proto.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copies the bytes to memory of just that length, so that the sanitizer notices
 * a read behind them. */
static uint8_t *copy_of(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	BUG_ON(!copy);
	memcpy(copy, data, len);
	return copy;
}

static int decode(struct sock_hello *hello, const uint8_t *data, size_t len)
{
	uint8_t *copy = copy_of(data, len);
	int rc = sock_hello_decode(hello, copy, len);

	free(copy);
	return rc;
}

static void check_ips(const struct sock_hello *hello, const uint8_t *data,
		      size_t size)
{
	uint8_t *copy = copy_of(data, size);
	int rc = sock_hello_check_ips(hello, copy, size);

	BUG_ON(rc != 0 && rc != -EPROTO);
	BUG_ON(rc == 0 && size != 4 * hello->nips);
	free(copy);
}

static void encode_again(struct sock_hello was)
{
	bool large = was.version == 4;
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	struct sock_hello is;
	size_t len;

	/* the field may have any contents, not all of which can be encoded
	 * again */
	if (!large && !lnet_nid_is_nid4(&was.dst_nid))
		was.dst_nid = LNET_NID_ANY;
	len = sock_hello_encode(&was, buf);
	BUG_ON(sock_hello_size(&is, buf) != (int)len);
	BUG_ON(decode(&is, buf, len) != 0);
	BUG_ON(is.version != was.version || is.type != was.type ||
	       is.src_pid != was.src_pid ||
	       is.src_incarnation != was.src_incarnation);
	BUG_ON(!lnet_nid_eq(&is.src_nid, &was.src_nid));
	BUG_ON(!lnet_nid_eq(&is.dst_nid, &was.dst_nid));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sock_hello hello;
	uint8_t start[SOCK_START_SIZE];
	int need, ips;

	if (size < sizeof(start))
		return 0;
	memcpy(start, data, sizeof(start));
	need = sock_hello_size(&hello, start);
	if (need < 0) {
		BUG_ON(need != -EPROTO && need != -EPROTONOSUPPORT);
		return 0;
	}
	BUG_ON(need != SOCK_HELLO_SIZE && need != SOCK_HELLO_LARGE_SIZE);
	if (size < (size_t)need) {
		BUG_ON(decode(&hello, data, size) != -EPROTO);
		return 0;
	}
	ips = decode(&hello, data, (size_t)need);
	if (ips < 0)
		return 0;
	BUG_ON(ips > SOCK_HELLO_IPS_SIZE || ips != (int)(4 * hello.nips));
	BUG_ON(lnet_nid_is_any(&hello.src_nid));
	BUG_ON(hello.src_nid.size != 0 && hello.src_nid.size != 12);
	check_ips(&hello, data + need,
		  MIN(size - (size_t)need, (size_t)SOCK_HELLO_IPS_SIZE));
	encode_again(hello);
	return 0;
}
