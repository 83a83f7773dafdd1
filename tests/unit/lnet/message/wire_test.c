/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "tests/unit/lnet/golden.h"
#include "lnet/message/wire.h"

#define PING_BITS UINT64_C(0x8000000000000000)

/* What the header of each golden frame says. */
static const struct {
	const char *name;
	const char *dest, *src;
	uint32_t type, payload;
	uint64_t match_bits;
	uint32_t portal, offset, length;
	bool no_handle;
} frames[] = {
	{ "get-ping", "10.77.0.2@tcp", "10.77.0.3@tcp", LNET_MSG_GET, 0,
	  PING_BITS, 0, 0, 3960, false },
	{ "reply-ping", "10.77.0.3@tcp", "10.77.0.2@tcp", LNET_MSG_REPLY, 48, 0,
	  0, 0, 0, false },
	{ "get-discover", "10.77.0.2@tcp", "10.77.0.3@tcp", LNET_MSG_GET, 0,
	  PING_BITS, 0, 0, 272, false },
	{ "reply-discover", "10.77.0.3@tcp", "10.77.0.2@tcp", LNET_MSG_REPLY,
	  48, 0, 0, 0, 0, false },
	{ "put-push", "10.77.0.2@tcp", "10.77.0.3@tcp", LNET_MSG_PUT, 48,
	  PING_BITS, 0, 0, 0, false },
	{ "ack-push", "10.77.0.3@tcp", "10.77.0.2@tcp", LNET_MSG_ACK, 0,
	  PING_BITS, 0, 0, 48, false },
	{ "reply-two-nis", "10.77.0.41@tcp", "10.77.0.42@tcp", LNET_MSG_REPLY,
	  64, 0, 0, 0, 0, false },
	{ "put-push-two-nis", "10.77.0.42@tcp", "10.77.0.41@tcp", LNET_MSG_PUT,
	  64, PING_BITS, 0, 0, 0, false },
	{ "ack-push-two-nis", "10.77.0.41@tcp", "10.77.0.42@tcp", LNET_MSG_ACK,
	  0, PING_BITS, 0, 0, 64, false },
	{ "put-push-down", "10.77.0.42@tcp", "10.77.0.41@tcp", LNET_MSG_PUT, 64,
	  PING_BITS, 0, 0, 0, false },
	{ "reply-three-nis", "10.77.0.42@tcp", "10.77.0.41@tcp", LNET_MSG_REPLY,
	  80, 0, 0, 0, 0, false },
	{ "put-request", "10.77.0.2@tcp", "10.77.0.3@tcp", LNET_MSG_PUT, 160, 1,
	  0x33, 0, 0, true },
	{ "put-answer", "10.77.0.3@tcp", "10.77.0.2@tcp", LNET_MSG_PUT, 160,
	  UINT64_C(0xcb09000000000002), 0x34, 0, 0, true },
	{ "put-1m", "10.77.0.3@tcp", "10.77.0.2@tcp", LNET_MSG_PUT, 1048576,
	  UINT64_C(0xcb09000000000008), 0x34, 0, 0, true },
	{ "get-routed", "10.77.1.3@tcp2", "10.77.0.2@tcp1", LNET_MSG_GET, 0,
	  PING_BITS, 0, 0, 3960, false },
	{ "reply-routed", "10.77.0.2@tcp1", "10.77.1.3@tcp2", LNET_MSG_REPLY,
	  48, 0, 0, 0, 0, false },
	{ "put-routed", "10.77.1.3@tcp2", "10.77.0.2@tcp1", LNET_MSG_PUT, 48,
	  PING_BITS, 0, 0, 0, false },
	{ "ack-routed", "10.77.0.2@tcp1", "10.77.1.3@tcp2", LNET_MSG_ACK, 0,
	  PING_BITS, 0, 0, 48, false },
	{ "get-1m", "10.77.0.2@tcp1", "10.77.1.3@tcp2", LNET_MSG_GET, 0,
	  UINT64_C(0xcb71000000000008), 0x34, 0, 1048576, false },
	{ "reply-1m", "10.77.1.3@tcp2", "10.77.0.2@tcp1", LNET_MSG_REPLY,
	  1048576, 0, 0, 0, 0, false },
	{ "get-large", "fd77::2@tcp", "fd77::3@tcp", LNET_MSG_GET, 0, PING_BITS,
	  0, 0, 3960, false },
	{ "reply-large", "fd77::3@tcp", "fd77::2@tcp", LNET_MSG_REPLY, 56, 0, 0,
	  0, 0, false },
};

static void check_nid(const char *frame, const struct ulnet_nid *got,
		      const char *want)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(want, &nid), 0);
	cr_assert(lnet_nid_eq(got, &nid), "%s: NID is not %s", frame, want);
}

Test(wire, golden_fields)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		const char *name = frames[i].name;
		struct golden g = golden(name);
		struct lnet_hdr hdr;

		memset(&hdr, 0xa5, sizeof(hdr));
		cr_assert_eq(hdr_decode(&hdr, g.bytes, g.hdr_len), 0, "%s",
			     name);
		check_nid(name, &hdr.dest_nid, frames[i].dest);
		check_nid(name, &hdr.src_nid, frames[i].src);
		cr_assert_eq(hdr.dest_pid, 12345, "%s", name);
		cr_assert_eq(hdr.src_pid, 12345, "%s", name);
		cr_assert_eq(hdr.type, frames[i].type, "%s", name);
		cr_assert_eq(hdr.payload_length, frames[i].payload, "%s", name);
		cr_assert_eq(hdr.match_bits, frames[i].match_bits, "%s", name);
		cr_assert_eq(hdr.portal, frames[i].portal, "%s", name);
		cr_assert_eq(hdr.offset, frames[i].offset, "%s", name);
		cr_assert_eq(hdr.length, frames[i].length, "%s", name);
		cr_assert_eq(hdr.hdr_data, 0, "%s", name);
		cr_assert_eq(wire_handle_is_none(&hdr.wmd), frames[i].no_handle,
			     "%s", name);
		/* Unless the frame was recorded without its payload, that is as
		 * long as the header says. */
		if (frames[i].payload < LNET_MTU)
			cr_assert_eq(golden_payload_len(&g), frames[i].payload,
				     "%s", name);
	}
}

Test(wire, golden_bytes_come_back)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		struct golden g = golden(frames[i].name);
		uint8_t bytes[LNET_HDR_LARGE_SIZE];
		struct lnet_hdr hdr;

		cr_assert_eq(hdr_decode(&hdr, g.bytes, g.hdr_len), 0);
		memset(bytes, 0xa5, sizeof(bytes));
		hdr_encode(&hdr, bytes, g.hdr_len);
		cr_assert_eq(memcmp(bytes, g.bytes, g.hdr_len), 0, "%s",
			     frames[i].name);
	}
}

/* A large header can hold small NIDs, too. */
Test(wire, both_forms)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		struct golden g = golden(frames[i].name);
		uint8_t large[LNET_HDR_LARGE_SIZE];
		struct lnet_hdr a, b;

		if (g.hdr_len != LNET_HDR_SIZE)
			continue;
		cr_assert_eq(hdr_decode(&a, g.bytes, g.hdr_len), 0);
		hdr_encode(&a, large, sizeof(large));
		cr_assert_eq(hdr_decode(&b, large, sizeof(large)), 0);
		cr_assert(lnet_nid_eq(&a.dest_nid, &b.dest_nid));
		cr_assert(lnet_nid_eq(&a.src_nid, &b.src_nid));
		/* After the NIDs both forms are the same. */
		cr_assert_eq(memcmp(large + 40, g.bytes + 16, 56), 0);
	}
}

/* Handles and hdr_data are opaque: their bytes are kept in the host's order. */
Test(wire, opaque_fields)
{
	struct golden g = golden("put-request");
	struct lnet_hdr hdr;
	const uint64_t words[] = { UINT64_C(0x0123456789abcdef),
				   UINT64_C(0xfedcba9876543210),
				   UINT64_C(0x1122334455667788) };

	memcpy(g.bytes + 32, &words[0], 8);
	memcpy(g.bytes + 40, &words[1], 8);
	memcpy(g.bytes + 56, &words[2], 8);
	cr_assert_eq(hdr_decode(&hdr, g.bytes, g.hdr_len), 0);
	cr_assert_eq(hdr.wmd.node, words[0]);
	cr_assert_eq(hdr.wmd.object, words[1]);
	cr_assert_eq(hdr.hdr_data, words[2]);
	cr_assert(!wire_handle_is_none(&hdr.wmd));
}

Test(wire, none_is_both_words)
{
	struct lnet_wire_handle h = LNET_WIRE_NONE;

	cr_assert(wire_handle_is_none(&h));
	h.node = 0;
	cr_assert(!wire_handle_is_none(&h));
	h = LNET_WIRE_NONE;
	h.object--;
	cr_assert(!wire_handle_is_none(&h));
}

/* Headers have one of two sizes; shorter ones are not read past their end. */
Test(wire, sizes)
{
	struct golden g = golden("reply-two-nis");
	struct lnet_hdr hdr;

	for (size_t len = 0; len <= 128; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		int want = len == LNET_HDR_SIZE ? 0 : -EPROTO;

		memcpy(copy, g.bytes, len);
		if (len != LNET_HDR_LARGE_SIZE)
			cr_assert_eq(hdr_decode(&hdr, copy, len), want,
				     "%zu bytes", len);
		free(copy);
	}
}

static int decode_with(const char *name, size_t at, uint32_t value)
{
	struct golden g = golden(name);
	struct lnet_hdr hdr;

	value = htole32(value);
	memcpy(g.bytes + g.hdr_len - LNET_HDR_SIZE + at, &value, sizeof(value));
	return hdr_decode(&hdr, g.bytes, g.hdr_len);
}

Test(wire, types)
{
	static const char *const names[] = { "ack-push", "get-large" };
	static const uint32_t bad[] = { 4, 5, 0x100, 0x01000000, UINT32_MAX };

	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		for (uint32_t type = 0; type < 4; type++)
			cr_assert_eq(decode_with(names[n], 24, type), 0);
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
			cr_assert_eq(decode_with(names[n], 24, bad[i]), -EPROTO,
				     "type %u", bad[i]);
	}
}

Test(wire, payload_lengths)
{
	static const struct {
		const char *name;
		uint32_t length;
		int rc;
	} cases[] = {
		{ "get-ping", 0, 0 },
		{ "get-ping", 1, -EPROTO },
		{ "get-ping", LNET_MTU, -EPROTO },
		{ "get-large", 1, -EPROTO },
		{ "ack-push", 0, 0 },
		{ "ack-push", 1, -EPROTO },
		{ "ack-push", UINT32_MAX, -EPROTO },
		{ "put-push", 0, 0 },
		{ "put-push", LNET_MTU, 0 },
		{ "put-push", LNET_MTU + 1, -EPROTO },
		{ "put-push", UINT32_MAX, -EPROTO },
		{ "reply-ping", 0, 0 },
		{ "reply-ping", LNET_MTU, 0 },
		{ "reply-ping", LNET_MTU + 1, -EPROTO },
		{ "reply-large", LNET_MTU, 0 },
		{ "reply-large", LNET_MTU + 1, -EPROTO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_eq(decode_with(cases[i].name, 28, cases[i].length),
			     cases[i].rc, "%s with %u bytes", cases[i].name,
			     cases[i].length);
}

/* The size byte of a NID must be one that NIDs have, unless it is "any". */
Test(wire, large_nid_sizes)
{
	for (unsigned int at = 0; at <= 20; at += 20) {
		for (unsigned int size = 0; size < 256; size++) {
			struct golden g = golden("get-large");
			struct lnet_hdr hdr;
			int want = size == 12 ? 0 : -EPROTO;

			g.bytes[at] = (uint8_t)size;
			cr_assert_eq(hdr_decode(&hdr, g.bytes, g.hdr_len), want,
				     "size %u", size);
			/* The bytes after a short address must be 0. */
			if (size == 0) {
				memset(g.bytes + at + 8, 0, 12);
				cr_assert_eq(
					hdr_decode(&hdr, g.bytes, g.hdr_len),
					0);
			}
			g.bytes[at + 1] = 0xff;
			cr_assert_eq(hdr_decode(&hdr, g.bytes, g.hdr_len), 0);
			cr_assert(lnet_nid_is_any(at ? &hdr.src_nid
						     : &hdr.dest_nid));
		}
	}
}

/* A 64-bit NID that nobody can have is decoded as "any", not as another NID. */
Test(wire, small_nid_any)
{
	struct golden g = golden("get-ping");
	struct lnet_hdr hdr;

	memset(g.bytes + 8, 0xff, 8);
	cr_assert_eq(hdr_decode(&hdr, g.bytes, g.hdr_len), 0);
	cr_assert(lnet_nid_is_any(&hdr.src_nid));
	g.bytes[8 + 6] = 0;
	g.bytes[8 + 7] = 1;
	cr_assert_eq(hdr_decode(&hdr, g.bytes, g.hdr_len), 0);
	cr_assert(lnet_nid_is_any(&hdr.src_nid));
}
