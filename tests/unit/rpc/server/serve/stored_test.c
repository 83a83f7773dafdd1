/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of durable services: encoding and decoding of what stands in the
 * store. */
#include "rpc/server/serve/durable.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crc32c.h"

static const uint32_t crc[] = { 11, 22, 33 }, lengths[] = { 4096, 4096, 7 };
static const uint8_t seals[2 * WIRE_SEAL] = "tags and counters of two segments";
static const struct wire_moved sinks[] = {
	{ .index = 1, .n = 3, .checksum = crc },
	{ .index = 4, .n = 2, .checksum = crc, .length = lengths },
	{ .index = 15 },
	{ .index = 6,
	  .n = 2,
	  .seals = { seals, seals + 2 * WIRE_SEAL },
	  .length = lengths },
	{ .index = 7, .n = 1, .seals = { seals, seals + WIRE_SEAL } },
};
static const struct stored failed = {
	.xid = UINT64_C(0x123456789abcdef0),
	.error = 42,
	.body = (const uint8_t *)"five!",
	.length = 5,
};

static uint8_t *written(unsigned int nsinks, size_t *length)
{
	uint8_t *value = stored_new(&failed, sinks, nsinks, length);

	cr_assert(value);
	return value;
}

static void check_same(const struct wire_moved *a, const struct wire_moved *b)
{
	cr_assert_eq(a->index, b->index);
	cr_assert_eq(a->n, b->n);
	cr_assert(!b->n || !a->checksum == !b->checksum);
	for (uint32_t i = 0; b->checksum && i < a->n; i++)
		cr_assert_eq(a->checksum[i], b->checksum[i]);
	cr_assert_eq(view_length(a->seals), view_length(b->seals));
	if (view_length(b->seals))
		cr_assert_eq(
			memcmp(a->seals.p, b->seals.p, view_length(b->seals)),
			0);
	cr_assert_eq(!a->length, !b->length);
	for (uint32_t i = 0; a->length && i < a->n; i++)
		cr_assert_eq(a->length[i], b->length[i]);
}

Test(stored, is_read_as_it_was_written)
{
	for (unsigned int n = 0; n <= ARRAY_SIZE(sinks); n++) {
		struct wire_moved out[ULRPC_BULKS_MAX];
		struct stored s;
		size_t length;
		uint8_t *value = written(n, &length);

		cr_assert_eq(stored_read(value, length, &s), 0);
		cr_assert_eq(s.xid, failed.xid);
		cr_assert_eq(s.error, failed.error);
		cr_assert_eq(s.length, failed.length);
		cr_assert_eq(memcmp(s.body, failed.body, s.length), 0);
		cr_assert_eq(stored_moved(value, out), n);
		for (unsigned int i = 0; i < n; i++)
			check_same(&out[i], &sinks[i]);
		free(value);
	}
}

/* A store may return less than was stored, say from a faulty disk. */
Test(stored, what_is_cut_off_is_not_read)
{
	size_t length;
	uint8_t *value = written(ARRAY_SIZE(sinks), &length);

	for (size_t n = 0; n < length; n++) {
		struct stored s;
		/* ends at the cut, so that sanitizers see reads beyond it */
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, value, n);
		cr_assert_eq(stored_read(cut, n, &s), -EBADMSG, "%zu", n);
		free(cut);
	}
	free(value);
}

Test(stored, what_makes_no_sense_is_not_read)
{
	static const struct {
		size_t at;
		uint32_t word;
	} bad[] = {
		{ 0, 1 },			/* format */
		{ 20, ULRPC_BULKS_MAX + 1 },	/* number of sinks */
		{ 24, ULRPC_BULKS_MAX },	/* index of a sink */
		{ 28, ULRPC_SEGMENTS_MAX + 1 }, /* number of segments */
		{ 28, UINT32_MAX },
		{ 32, 4 }, /* whether lengths and seals follow: 0 to 3 */
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		struct stored s;
		size_t length;
		uint8_t *value = written(ARRAY_SIZE(sinks), &length);

		store_le32(value + bad[i].at, bad[i].word);
		store_le32(value + 4, crc32c(0, value + 8, length - 8));
		cr_assert_eq(stored_read(value, length, &s), -EBADMSG, "%u", i);
		free(value);
	}
}

Test(stored, what_has_changed_is_not_read)
{
	size_t length;
	uint8_t *value = written(ARRAY_SIZE(sinks), &length);

	for (size_t i = 0; i < length; i++) {
		uint8_t *copy = malloc(length);
		struct stored s;

		memcpy(copy, value, length);
		copy[i] ^= 0x10;
		cr_assert_eq(stored_read(copy, length, &s), -EBADMSG, "%zu", i);
		free(copy);
	}
	free(value);
}
