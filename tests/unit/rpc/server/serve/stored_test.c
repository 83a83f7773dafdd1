/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of durable services: encoding and decoding of what stands in the
 * store. */
#include "rpc/server/serve/durable.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "ulnet/store.h"

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
		{ 0, 3 },			/* version: with an annex */
		{ 8, UINT32_C(1) << 31 | 5 },	/* no errno */
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
		cr_assert_eq(stored_read(copy, length, &s),
			     i < 4 ? -EPROTONOSUPPORT : -EBADMSG, "%zu", i);
		free(copy);
	}
	free(value);
}

/* ---- what is on disk ---- */

/* A store that this release has written: its log, with the records of two
 * calls, of which the second one was answered with an annex. A release before
 * annexes reads version 2 only. */
static const uint8_t golden_log[] = {
	0x75, 0x6c, 0x73, 0x74, 0x6f, 0x72, 0x65, 0x0a, 0x01, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x00, 0x04, 0x9a, 0xe4, 0xc7, 0xbb, 0xfd, 0x3b, 0xc0,
	0x33, 0x13, 0xf0, 0x62, 0x03, 0xce, 0xbf, 0xb9, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x33, 0xb6, 0x88, 0x02,
	0xd3, 0xa4, 0xed, 0xe6, 0x85, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x02, 0x00, 0x14, 0x00, 0x1d, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0x70, 0x6c, 0x61, 0x69, 0x6e, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x02, 0x00, 0x00, 0x00, 0xfe, 0x1e, 0x44, 0x37, 0x00, 0x00, 0x00, 0x00,
	0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x66, 0x69, 0x76, 0x65, 0x21, 0x02, 0x00, 0x14, 0x00, 0x20, 0x00, 0x00,
	0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x61, 0x6e, 0x6e,
	0x65, 0x78, 0x65, 0x64, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x11, 0x57, 0x9e,
	0xc0, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x10, 0x05, 0x66, 0x69, 0x76, 0x65,
	0x21, 0x26, 0x82, 0x52, 0x28, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0xcd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00
};
static const struct golden {
	char key[ULRPC_RECORD_KEY];
	uint32_t version;
	struct stored stored;
} golden[] = {
	{ "plain",
	  2,
	  { .xid = 7, .body = (const uint8_t *)"five!", .length = 5 } },
	/* its annex: 2 bytes, which say that it has failed with 5 */
	{ "annexed",
	  3,
	  { .xid = 8,
	    .annexed = true,
	    .body = (const uint8_t *)"\2\020\5five!",
	    .length = 8 } },
};

/* Is @value what @g says, and is that what is written today? */
static void is_golden(const struct golden *g, void *value, size_t length)
{
	size_t now_length;
	void *now = stored_new(&g->stored, NULL, 0, &now_length);
	struct stored s;

	cr_assert_eq(load_le32(value), g->version);
	cr_assert_eq(now_length, length);
	cr_assert_eq(memcmp(now, value, length), 0);
	cr_assert_eq(stored_read(value, length, &s), 0);
	cr_assert_eq(s.xid, g->stored.xid);
	cr_assert_eq(s.annexed, g->stored.annexed);
	cr_assert_eq(s.length, g->stored.length);
	cr_assert_eq(memcmp(s.body, g->stored.body, s.length), 0);
	free(now);
	free(value);
}

Test(stored, golden_store)
{
	char dir[] = "/tmp/ulnet-golden.XXXXXX", path[64];
	const struct ulrpc_durable *durable;
	struct ulrpc_store *store;
	FILE *log;

	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log.1", dir);
	log = fopen(path, "w");
	cr_assert_eq(fwrite(golden_log, sizeof(golden_log), 1, log), 1);
	cr_assert_eq(fclose(log), 0);
	cr_assert_eq(ulrpc_store_open(dir, NULL, &store, NULL), 0);
	durable = ulrpc_store_durable(store);
	for (unsigned int i = 0; i < ARRAY_SIZE(golden); i++) {
		size_t length = 0;
		void *value;

		cr_assert_eq(durable->lookup(durable->arg, golden[i].key,
					     &value, &length),
			     0);
		is_golden(&golden[i], value, length);
	}
	ulrpc_store_close(store);
	cr_assert_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/lock", dir);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(rmdir(dir), 0);
}
