/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes bytes captured from real nodes, and mutations of them. */
#include "lnd/socklnd/proto.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* 10.77.0.41@tcp requests a connection with 10.77.0.42@tcp. */
static const uint8_t request[SOCK_REQUEST_SIZE] = {
	0x00, 0x71, 0xce, 0xac,				/* magic */
	0x01, 0x00, 0x00, 0x00,				/* version */
	0x2a, 0x00, 0x4d, 0x0a, 0x00, 0x00, 0x02, 0x00, /* target */
};

static const uint8_t hello[SOCK_HELLO_SIZE] = {
	0x63, 0x69, 0x72, 0x45,				/* magic */
	0x03, 0x00, 0x00, 0x00,				/* version */
	0x29, 0x00, 0x4d, 0x0a, 0x00, 0x00, 0x02, 0x00, /* src_nid */
	0x2a, 0x00, 0x4d, 0x0a, 0x00, 0x00, 0x02, 0x00, /* dst_nid */
	0x39, 0x30, 0x00, 0x00,				/* src_pid */
	0x00, 0x00, 0x00, 0x00,				/* dst_pid */
	0xb8, 0x0d, 0x55, 0x82, 0x24, 0xe1, 0xe9, 0x18, /* src_incarnation */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* dst_incarnation */
	0x01, 0x00, 0x00, 0x00,				/* ctype */
	0x00, 0x00, 0x00, 0x00,				/* nips */
};

/* fd77::3@tcp requests a connection with fd77::2@tcp. */
static const uint8_t request_large[SOCK_REQUEST_LARGE_SIZE] = {
	0x00, 0x71, 0xce, 0xac, 0x02, 0x00, 0x00, 0x00, 0x0c, 0x02,
	0x00, 0x00, 0xfd, 0x77, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
};

static const uint8_t hello_large[SOCK_HELLO_LARGE_SIZE] = {
	0x63, 0x69, 0x72, 0x45, 0x04, 0x00, 0x00, 0x00,
	/* src_nid */
	0x0c, 0x02, 0x00, 0x00, 0xfd, 0x77, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
	/* dst_nid */
	0x0c, 0x02, 0x00, 0x00, 0xfd, 0x77, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
	/* src_pid, dst_pid */
	0x39, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* src_incarnation, dst_incarnation */
	0x1a, 0x34, 0x41, 0x05, 0x31, 0xe2, 0xe9, 0x18, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00,
	/* ctype, nips */
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00
};

/* Offset and size of each number in a message; size 0 ends the list. */
struct number {
	unsigned int offset, size;
};

static const struct number request_numbers[] = {
	{ 0, 4 }, { 4, 4 }, { 8, 8 }, { 0, 0 }
};
static const struct number request_large_numbers[] = { { 0, 4 },
						       { 4, 4 },
						       { 0, 0 } };
static const struct number hello_numbers[] = { { 0, 4 },  { 4, 4 },  { 8, 8 },
					       { 16, 8 }, { 24, 4 }, { 28, 4 },
					       { 32, 8 }, { 40, 8 }, { 48, 4 },
					       { 52, 4 }, { 56, 4 }, { 60, 4 },
					       { 0, 0 } };
static const struct number hello_large_numbers[] = {
	{ 0, 4 },  { 4, 4 },  { 48, 4 }, { 52, 4 }, { 56, 8 },
	{ 64, 8 }, { 72, 4 }, { 76, 4 }, { 0, 0 }
};
static const struct number hdr_numbers[] = {
	{ 0, 4 }, { 4, 4 }, { 8, 8 }, { 16, 8 }, { 0, 0 }
};

/* Converts a message to the other byte order. */
static void swap(uint8_t *p, size_t len, const struct number *n)
{
	for (; n->size && n->offset < len; n++) {
		for (unsigned int i = 0; i < n->size / 2; i++) {
			uint8_t *a = &p[n->offset + i];
			uint8_t *b = &p[n->offset + n->size - 1 - i];
			uint8_t was = *a;

			*a = *b;
			*b = was;
		}
	}
}

static struct ulnet_nid nid_of(const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0, "%s", text);
	return nid;
}

static void assert_nid(const struct ulnet_nid *nid, const char *text)
{
	char buf[LNET_NIDSTR_SIZE];

	cr_assert_str_eq(lnet_nid_format(nid, buf, sizeof(buf)), text);
}

static void put_le32(uint8_t *p, uint32_t v)
{
	for (unsigned int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void put_le64(uint8_t *p, uint64_t v)
{
	for (unsigned int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* ---- types ---- */

Test(proto, types)
{
	cr_assert_eq(sock_type_invert(SOCK_ANY), SOCK_ANY);
	cr_assert_eq(sock_type_invert(SOCK_CONTROL), SOCK_CONTROL);
	cr_assert_eq(sock_type_invert(SOCK_BULK_IN), SOCK_BULK_OUT);
	cr_assert_eq(sock_type_invert(SOCK_BULK_OUT), SOCK_BULK_IN);
	cr_assert_eq(sock_type_invert(SOCK_NONE), SOCK_NONE);
	cr_assert_eq(sock_type_invert((enum sock_type)4), SOCK_NONE);
	cr_assert_eq(sock_type_invert((enum sock_type) - 2), SOCK_NONE);
	cr_assert_str_eq(sock_type_name(SOCK_CONTROL), "control");
	cr_assert_str_eq(sock_type_name(SOCK_BULK_IN), "bulk-in");
	cr_assert_str_eq(sock_type_name(SOCK_BULK_OUT), "bulk-out");
	cr_assert_str_eq(sock_type_name(SOCK_ANY), "any");
	cr_assert_str_eq(sock_type_name(SOCK_NONE), "none");
}

/* ---- connection request ---- */

Test(proto, request_is_that_of_a_real_node)
{
	struct ulnet_nid nid = nid_of("10.77.0.42@tcp"), got;
	uint8_t buf[SOCK_REQUEST_LARGE_SIZE];

	cr_assert_eq(sock_request_encode(&nid, buf), sizeof(request));
	cr_assert_arr_eq(buf, request, sizeof(request));
	cr_assert_eq(sock_request_size(request), SOCK_REQUEST_SIZE);
	cr_assert_eq(sock_request_decode(request, sizeof(request), &got), 0);
	cr_assert(lnet_nid_eq(&got, &nid));

	nid = nid_of("fd77::2@tcp");
	cr_assert_eq(sock_request_encode(&nid, buf), sizeof(request_large));
	cr_assert_arr_eq(buf, request_large, sizeof(request_large));
	cr_assert_eq(sock_request_size(request_large), SOCK_REQUEST_LARGE_SIZE);
	cr_assert_eq(
		sock_request_decode(request_large, sizeof(request_large), &got),
		0);
	cr_assert(lnet_nid_eq(&got, &nid));
}

Test(proto, request_in_the_other_order)
{
	uint8_t small[sizeof(request)], large[sizeof(request_large)];
	struct ulnet_nid nid;

	memcpy(small, request, sizeof(small));
	swap(small, sizeof(small), request_numbers);
	cr_assert_eq(sock_request_size(small), SOCK_REQUEST_SIZE);
	cr_assert_eq(sock_request_decode(small, sizeof(small), &nid), 0);
	assert_nid(&nid, "10.77.0.42@tcp");

	memcpy(large, request_large, sizeof(large));
	swap(large, sizeof(large), request_large_numbers);
	cr_assert_eq(sock_request_size(large), SOCK_REQUEST_LARGE_SIZE);
	cr_assert_eq(sock_request_decode(large, sizeof(large), &nid), 0);
	assert_nid(&nid, "fd77::2@tcp");
}

/* A version-2 request may name a NID that would fit into version 1. */
Test(proto, request_large_with_ipv4)
{
	uint8_t buf[sizeof(request_large)] = { 0 };
	struct ulnet_nid nid = nid_of("10.77.0.42@tcp3"), got;

	memcpy(buf, request_large, 8);
	memcpy(buf + 8, &nid, sizeof(nid));
	cr_assert_eq(sock_request_decode(buf, sizeof(buf), &got), 0);
	cr_assert(lnet_nid_eq(&got, &nid));
}

Test(proto, request_magic_and_version)
{
	static const struct {
		uint32_t magic, version;
		int size;
	} tries[] = {
		{ 0xacce7100, 0, -EPROTONOSUPPORT },
		{ 0xacce7100, 1, 16 },
		{ 0xacce7100, 2, 28 },
		{ 0xacce7100, 3, -EPROTONOSUPPORT },
		{ 0xacce7100, 0x01000000, -EPROTONOSUPPORT },
		{ 0xacce7100, 0xffffffff, -EPROTONOSUPPORT },
		{ 0x45726963, 1, -EPROTONOSUPPORT },
		{ 0x45726963, 77, -EPROTONOSUPPORT },
		{ 0xeebc0ded, 1, -EPROTO },
		{ 0xacce7101, 1, -EPROTO },
		{ 0, 0, -EPROTO },
	};
	uint8_t buf[SOCK_START_SIZE];

	for (unsigned int i = 0; i < ARRAY_SIZE(tries); i++) {
		put_le32(buf, tries[i].magic);
		put_le32(buf + 4, tries[i].version);
		cr_expect_eq(sock_request_size(buf), tries[i].size, "%u", i);
		swap(buf, sizeof(buf), request_large_numbers);
		cr_expect_eq(sock_request_size(buf), tries[i].size, "%u", i);
	}
}

Test(proto, request_of_any_other_length)
{
	struct ulnet_nid nid = LNET_NID_LO;

	for (size_t len = 0; len < sizeof(request); len++)
		cr_expect_eq(sock_request_decode(request, len, &nid), -EPROTO);
	for (size_t len = 0; len < sizeof(request_large); len++)
		cr_expect_eq(sock_request_decode(request_large, len, &nid),
			     -EPROTO);
	cr_assert(lnet_nid_is_lo(&nid), "left alone on error");
}

/* NIDs that cannot be at an end of a connection: any, loopback, no type, too
 * high a type. */
static const uint64_t bad_nid4[] = {
	UINT64_MAX,
	0,
	UINT64_C(0x000000000a4d002a),
	UINT64_C(0x0000000a0a4d002a),
	UINT64_C(0x0009000000000000),
	UINT64_C(0x00ff00000a4d002a),
	UINT64_C(0x010200000a4d002a),
};

/* The same, invalid sizes, and bytes that must be zero but are not. */
static const struct ulnet_nid bad_nids[] = {
	{ 0xff, 0xff, { 0xff, 0xff }, { 0xff } },
	{ 12, 0xff, { 0, 0 }, { 0xfd, 0x77 } },
	{ 0, LNET_TYPE_LO, { 0, 0 }, { 0 } },
	{ 0, 0, { 0, 0 }, { 10, 77, 0, 42 } },
	{ 12, 0, { 0, 0 }, { 0xfd, 0x77 } },
	{ 1, 2, { 0, 0 }, { 10, 77, 0, 42 } },
	{ 11, 2, { 0, 0 }, { 0xfd, 0x77 } },
	{ 13, 2, { 0, 0 }, { 0xfd, 0x77 } },
	{ 0xff, 2, { 0, 0 }, { 0xfd, 0x77 } },
	{ 0, 2, { 0, 0 }, { 10, 77, 0, 42, 1 } },
	{ 0, 2, { 0, 0 }, { 10, 77, 0, 42, [15] = 1 } },
};

Test(proto, request_for_nobody)
{
	uint8_t small[sizeof(request)], large[sizeof(request_large)];
	struct ulnet_nid nid = LNET_NID_LO;

	memcpy(small, request, sizeof(small));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_nid4); i++) {
		put_le64(small + 8, bad_nid4[i]);
		cr_expect_eq(sock_request_decode(small, sizeof(small), &nid),
			     -EPROTO, "%u", i);
	}
	memcpy(large, request_large, sizeof(large));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_nids); i++) {
		memcpy(large + 8, &bad_nids[i], sizeof(bad_nids[i]));
		cr_expect_eq(sock_request_decode(large, sizeof(large), &nid),
			     -EPROTO, "%u", i);
	}
	cr_assert(lnet_nid_is_lo(&nid), "left alone on error");
}

Test(proto, refused_request)
{
	static const uint8_t want[] = { 0x00, 0x71, 0xce, 0xac, 1, 0, 0, 0,
					0,    0,    0,	  0,	0, 0, 0, 0 };
	uint8_t buf[SOCK_REQUEST_SIZE];

	memset(buf, 0xee, sizeof(buf));
	sock_request_refuse(buf);
	cr_assert_arr_eq(buf, want, sizeof(want));
}

/* ---- HELLO ---- */

static int decode(struct sock_hello *h, const uint8_t *buf)
{
	int size = sock_hello_size(h, buf);

	return size < 0 ? size : sock_hello_decode(h, buf, (size_t)size);
}

static void assert_small_hello(const struct sock_hello *h)
{
	cr_assert_eq(h->version, 3);
	assert_nid(&h->src_nid, "10.77.0.41@tcp");
	assert_nid(&h->dst_nid, "10.77.0.42@tcp");
	cr_assert_eq(h->src_pid, 12345);
	cr_assert_eq(h->src_incarnation, UINT64_C(0x18e9e12482550db8));
	cr_assert_eq(h->type, SOCK_CONTROL);
	cr_assert_eq(h->nips, 0);
}

static void assert_large_hello(const struct sock_hello *h)
{
	cr_assert_eq(h->version, 4);
	assert_nid(&h->src_nid, "fd77::3@tcp");
	assert_nid(&h->dst_nid, "fd77::2@tcp");
	cr_assert_eq(h->src_pid, 12345);
	cr_assert_eq(h->src_incarnation, UINT64_C(0x18e9e2310541341a));
	cr_assert_eq(h->type, SOCK_CONTROL);
	cr_assert_eq(h->nips, 0);
}

Test(proto, hello_is_that_of_a_real_node)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	cr_assert_eq(decode(&h, hello), 0);
	cr_assert(!h.swap);
	assert_small_hello(&h);
	memset(buf, 0xee, sizeof(buf));
	cr_assert_eq(sock_hello_encode(&h, buf), sizeof(hello));
	cr_assert_arr_eq(buf, hello, sizeof(hello));

	cr_assert_eq(decode(&h, hello_large), 0);
	cr_assert(!h.swap);
	assert_large_hello(&h);
	memset(buf, 0xee, sizeof(buf));
	cr_assert_eq(sock_hello_encode(&h, buf), sizeof(hello_large));
	cr_assert_arr_eq(buf, hello_large, sizeof(hello_large));
}

Test(proto, hello_in_the_other_order)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	memcpy(buf, hello, sizeof(hello));
	swap(buf, sizeof(hello), hello_numbers);
	cr_assert_eq(decode(&h, buf), 0);
	cr_assert(h.swap);
	assert_small_hello(&h);

	memcpy(buf, hello_large, sizeof(hello_large));
	swap(buf, sizeof(hello_large), hello_large_numbers);
	cr_assert_eq(decode(&h, buf), 0);
	cr_assert(h.swap);
	assert_large_hello(&h);
}

Test(proto, hello_types)
{
	static const struct {
		uint32_t type;
		int result;
	} tries[] = {
		{ 0, 0 },
		{ 1, 0 },
		{ 2, 0 },
		{ 3, 0 },
		{ 0xffffffff, 0 },
		{ 4, -EPROTO },
		{ 0xfffffffe, -EPROTO },
		{ 0x80000000, -EPROTO },
		{ 0x01000000, -EPROTO },
	};
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_SIZE];

	memcpy(buf, hello, sizeof(buf));
	for (unsigned int i = 0; i < ARRAY_SIZE(tries); i++) {
		put_le32(buf + 48, tries[i].type);
		cr_expect_eq(decode(&h, buf), tries[i].result, "%u", i);
		if (tries[i].result == 0)
			cr_expect_eq((uint32_t)h.type, tries[i].type);
	}
}

/* In a refusal all bits of the type are set. */
Test(proto, hello_that_refuses)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_SIZE], want[SOCK_HELLO_SIZE];

	cr_assert_eq(decode(&h, hello), 0);
	h.type = SOCK_NONE;
	memcpy(want, hello, sizeof(want));
	memset(want + 48, 0xff, 4);
	cr_assert_eq(sock_hello_encode(&h, buf), sizeof(want));
	cr_assert_arr_eq(buf, want, sizeof(want));
}

Test(proto, hello_magic_and_version)
{
	static const struct {
		uint32_t magic, version;
		int size;
	} tries[] = {
		{ 0x45726963, 0, -EPROTONOSUPPORT },
		{ 0x45726963, 1, -EPROTONOSUPPORT },
		{ 0x45726963, 2, 56 },
		{ 0x45726963, 3, 56 },
		{ 0x45726963, 4, 80 },
		{ 0x45726963, 5, -EPROTONOSUPPORT },
		{ 0x45726963, 0x03000000, -EPROTONOSUPPORT },
		{ 0x45726963, 0xffffffff, -EPROTONOSUPPORT },
		{ 0xeebc0ded, 1, -EPROTONOSUPPORT },
		{ 0xacce7100, 1, -EPROTO },
		{ 0x45726964, 3, -EPROTO },
		{ 0, 3, -EPROTO },
	};
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_START_SIZE];

	for (unsigned int i = 0; i < ARRAY_SIZE(tries); i++) {
		put_le32(buf, tries[i].magic);
		put_le32(buf + 4, tries[i].version);
		cr_expect_eq(sock_hello_size(&h, buf), tries[i].size, "%u", i);
		if (tries[i].size > 0)
			cr_expect_eq(h.version, tries[i].version);
		swap(buf, sizeof(buf), request_large_numbers);
		cr_expect_eq(sock_hello_size(&h, buf), tries[i].size, "%u", i);
		if (tries[i].size > 0)
			cr_expect_eq(h.version, tries[i].version);
	}
}

Test(proto, hello_of_version_2)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_SIZE], again[SOCK_HELLO_LARGE_SIZE];

	memcpy(buf, hello, sizeof(buf));
	put_le32(buf + 4, 2);
	cr_assert_eq(decode(&h, buf), 0);
	cr_assert_eq(h.version, 2);
	cr_assert_eq(sock_hello_encode(&h, again), sizeof(buf));
	cr_assert_arr_eq(again, buf, sizeof(buf));
}

Test(proto, hello_of_any_other_length)
{
	struct sock_hello h = { 0 };

	cr_assert_eq(sock_hello_size(&h, hello), SOCK_HELLO_SIZE);
	for (size_t len = 0; len < sizeof(hello); len++)
		cr_expect_eq(sock_hello_decode(&h, hello, len), -EPROTO);
	cr_assert_eq(sock_hello_size(&h, hello_large), SOCK_HELLO_LARGE_SIZE);
	for (size_t len = 0; len < sizeof(hello_large); len++)
		cr_expect_eq(sock_hello_decode(&h, hello_large, len), -EPROTO);
}

Test(proto, hello_from_nobody)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	memcpy(buf, hello, sizeof(hello));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_nid4); i++) {
		put_le64(buf + 8, bad_nid4[i]);
		cr_expect_eq(decode(&h, buf), -EPROTO, "%u", i);
		swap(buf, sizeof(hello), hello_numbers);
		cr_expect_eq(decode(&h, buf), -EPROTO, "%u", i);
		swap(buf, sizeof(hello), hello_numbers);
	}
	memcpy(buf, hello_large, sizeof(hello_large));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_nids); i++) {
		memcpy(buf + 8, &bad_nids[i], sizeof(bad_nids[i]));
		cr_expect_eq(decode(&h, buf), -EPROTO, "%u", i);
	}
}

/* The destination in a HELLO is not checked. */
Test(proto, hello_to_anybody)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	memcpy(buf, hello, sizeof(hello));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_nid4); i++) {
		put_le64(buf + 16, bad_nid4[i]);
		cr_expect_eq(decode(&h, buf), 0, "%u", i);
	}
	memcpy(buf, hello_large, sizeof(hello_large));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_nids); i++) {
		memcpy(buf + 28, &bad_nids[i], sizeof(bad_nids[i]));
		cr_expect_eq(decode(&h, buf), 0, "%u", i);
	}
}

Test(proto, hello_with_addresses)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_SIZE], ips[SOCK_HELLO_IPS_SIZE + 4];

	memset(ips, 0, sizeof(ips));
	for (unsigned int i = 0; i < sizeof(ips) / 4; i++)
		ips[4 * i + i % 4] = 7;
	memcpy(buf, hello, sizeof(buf));
	for (uint32_t n = 0; n <= 20; n++) {
		put_le32(buf + 52, n);
		cr_expect_eq(decode(&h, buf), n > 16 ? -EPROTO : (int)(4 * n));
		swap(buf, sizeof(buf), hello_numbers);
		cr_expect_eq(decode(&h, buf), n > 16 ? -EPROTO : (int)(4 * n));
		swap(buf, sizeof(buf), hello_numbers);
		if (n > 16)
			continue;
		cr_expect_eq(sock_hello_check_ips(&h, ips, 4 * n), 0);
		cr_expect_eq(sock_hello_check_ips(&h, ips, 4 * n + 4), -EPROTO);
		if (n)
			cr_expect_eq(sock_hello_check_ips(&h, ips, 4 * n - 1),
				     -EPROTO);
	}
	put_le32(buf + 52, UINT32_MAX);
	cr_expect_eq(decode(&h, buf), -EPROTO);
	put_le32(buf + 52, 0x40000001);
	cr_expect_eq(decode(&h, buf), -EPROTO, "4 times it is 4");
}

Test(proto, hello_with_an_address_of_zero)
{
	struct sock_hello h = { .version = 3, .nips = 16 };
	uint8_t ips[SOCK_HELLO_IPS_SIZE];

	for (unsigned int i = 0; i < 16; i++) {
		memset(ips, 1, sizeof(ips));
		memset(ips + 4 * i, 0, 4);
		cr_expect_eq(sock_hello_check_ips(&h, ips, sizeof(ips)),
			     -EPROTO, "%u", i);
	}
}

/* Version 4 has a count of addresses, but it must be 0. */
Test(proto, hello_large_with_addresses)
{
	struct sock_hello h = { 0 };
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	memcpy(buf, hello_large, sizeof(buf));
	put_le32(buf + 76, 1);
	cr_assert_eq(decode(&h, buf), -EPROTO);
}

/* ---- the header in front of each message ---- */

static const uint8_t keepalive[SOCK_HDR_SIZE] = { 0xc0, [16] = 1 };
static const uint8_t request_2[SOCK_HDR_SIZE] = { 0xc1, [8] = 2 };
static const uint8_t ack_2[SOCK_HDR_SIZE] = { 0xc0, [16] = 2 };

static struct sock_hdr hdr_of(const uint8_t *bytes)
{
	struct sock_hdr hdr;
	uint8_t buf[SOCK_HDR_SIZE];

	cr_assert_eq(sock_hdr_decode(&hdr, bytes, false), 0);
	sock_hdr_encode(&hdr, buf);
	cr_assert_arr_eq(buf, bytes, sizeof(buf));
	return hdr;
}

Test(proto, headers_of_real_nodes)
{
	struct sock_hdr hdr = hdr_of(keepalive);

	cr_assert_eq(hdr.type, SOCK_MSG_NOOP);
	cr_assert_eq(hdr.cookie[0], 0);
	cr_assert_eq(hdr.cookie[1], SOCK_COOKIE_KEEPALIVE);
	cr_assert(!sock_hdr_acks(&hdr));

	hdr = hdr_of(request_2);
	cr_assert_eq(hdr.type, SOCK_MSG_LNET);
	cr_assert_eq(hdr.cookie[0], 2);
	cr_assert(!sock_hdr_acks(&hdr), "it asks, and does not answer");

	hdr = hdr_of(ack_2);
	cr_assert_eq(hdr.type, SOCK_MSG_NOOP);
	cr_assert(sock_hdr_acks(&hdr));
}

Test(proto, header_in_the_other_order)
{
	static const uint8_t bytes[SOCK_HDR_SIZE] = {
		0xc1, 0,  0,  0,  1,  2,  3,  4,  5,  6,  7,  8,
		9,    10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20
	};
	struct sock_hdr plain, swapped;
	uint8_t buf[SOCK_HDR_SIZE];

	memcpy(buf, bytes, sizeof(buf));
	swap(buf, sizeof(buf), hdr_numbers);
	cr_assert_eq(sock_hdr_decode(&plain, bytes, false), 0);
	cr_assert_eq(sock_hdr_decode(&swapped, buf, true), 0);
	cr_assert_eq(plain.type, swapped.type);
	cr_assert_eq(plain.csum, UINT32_C(0x04030201));
	cr_assert_eq(swapped.csum, plain.csum);
	cr_assert_eq(plain.cookie[0], UINT64_C(0x0c0b0a0908070605));
	cr_assert_eq(swapped.cookie[0], plain.cookie[0]);
	cr_assert_eq(plain.cookie[1], UINT64_C(0x14131211100f0e0d));
	cr_assert_eq(swapped.cookie[1], plain.cookie[1]);
	cr_assert_eq(sock_hdr_decode(&plain, bytes, true), -EPROTO);
	cr_assert_eq(sock_hdr_decode(&plain, buf, false), -EPROTO);
}

Test(proto, header_of_unknown_type)
{
	static const uint32_t types[] = {
		0, 1, 0xbf, 0xc2, 0xc1c1, 0xc0000000, 0x1c0, UINT32_MAX
	};
	uint8_t buf[SOCK_HDR_SIZE] = { 0 };
	struct sock_hdr hdr;

	for (unsigned int i = 0; i < ARRAY_SIZE(types); i++) {
		put_le32(buf, types[i]);
		cr_expect_eq(sock_hdr_decode(&hdr, buf, false), -EPROTO, "%u",
			     i);
	}
}

/* ---- acknowledgements ---- */

Test(proto, acknowledged_cookies)
{
	static const struct {
		uint32_t type;
		uint64_t c0, c1;
		bool acks;
	} tries[] = {
		{ SOCK_MSG_NOOP, 0, 0, false },
		{ SOCK_MSG_NOOP, 0, 1, false },
		{ SOCK_MSG_NOOP, 0, 2, true },
		{ SOCK_MSG_NOOP, 0, UINT64_MAX, true },
		{ SOCK_MSG_NOOP, 5, 9, true }, /* a range of cookies */
		{ SOCK_MSG_NOOP, 6, 4, true }, /* two cookies */
		{ SOCK_MSG_NOOP, 9, 0, true },
		{ SOCK_MSG_NOOP, 9, 1, true },
		{ SOCK_MSG_NOOP, 1, UINT64_MAX, true },
		/* a message can acknowledge by its second cookie only */
		{ SOCK_MSG_LNET, 5, 0, false },
		{ SOCK_MSG_LNET, 5, 1, false },
		{ SOCK_MSG_LNET, 5, 9, true },
		{ SOCK_MSG_LNET, 0, 5, true },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(tries); i++) {
		struct sock_hdr hdr = { tries[i].type,
					0,
					{ tries[i].c0, tries[i].c1 } };

		cr_expect_eq(sock_hdr_acks(&hdr), tries[i].acks, "%u", i);
	}
}

/* ---- checksum ---- */

Test(proto, checksum)
{
	static const char text[] = "123456789";

	cr_assert_eq(sock_csum(SOCK_CSUM_INIT, text, 9), 0x340bc6d9);
	cr_assert_eq(sock_csum(SOCK_CSUM_INIT, text, 0), 0xffffffff);
	for (size_t n = 0; n <= 9; n++) {
		uint32_t csum = sock_csum(SOCK_CSUM_INIT, text, n);

		cr_assert_eq(sock_csum(csum, text + n, 9 - n), 0x340bc6d9);
	}
}
