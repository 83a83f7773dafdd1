/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the self-test: those of real nodes, encoded and decoded, and
 * malformed ones. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "services/lst/message.h"
#include "tests/unit/lnet/golden.h"

#define ALPHA                                        \
	{                                            \
		.console = CONSOLE, .stamp = 0x10b7a \
	}
#define BETA                                         \
	{                                            \
		.console = CONSOLE, .stamp = 0x11f1a \
	}
#define CONSOLE UINT64_C(0x000200000a4d000d) /* 10.77.0.13@tcp */
#define ID(n)	(UINT64_C(0x5805) << 48 | (n))

/* the values of each captured message */
static const struct {
	const char *name;
	struct lst_msg msg;
} frames[] = {
	{ "lst-make-request",
	  { .type = LST_MAKE,
	    .reply_id = ID(1),
	    .session = ALPHA,
	    .name = "alpha" } },
	{ "lst-make-reply",
	  { .type = LST_MAKE_REPLY, .session = ALPHA, .timeout = 100 } },
	{ "lst-test-ping-request",
	  { .type = LST_TEST,
	    .reply_id = ID(4),
	    .bulk_id = ID(5),
	    .session = ALPHA,
	    .test = { .batch = 2,
		      .service = LST_SERVICE_PING,
		      .loop = 3,
		      .concurrency = 2,
		      .is_client = 1,
		      .stop_on_error = 1,
		      .targets = 1 } } },
	{ "lst-test-read-request",
	  { .type = LST_TEST,
	    .reply_id = ID(0x17),
	    .bulk_id = ID(0x18),
	    .session = BETA,
	    .test = { .batch = 4,
		      .service = LST_SERVICE_BRW,
		      .loop = 2,
		      .concurrency = 1,
		      .is_client = 1,
		      .stop_on_error = 1,
		      .targets = 1,
		      .brw = { .opcode = LST_READ,
			       .flags = LST_CHECK_FULL,
			       .length = 8192 } } } },
	{ "lst-test-write-request",
	  { .type = LST_TEST,
	    .reply_id = ID(0x1a),
	    .bulk_id = ID(0x1b),
	    .session = BETA,
	    .test = { .batch = 4,
		      .service = LST_SERVICE_BRW,
		      .loop = 1,
		      .concurrency = 1,
		      .is_client = 1,
		      .stop_on_error = 1,
		      .targets = 1,
		      .brw = { .opcode = LST_WRITE,
			       .flags = LST_CHECK_SIMPLE,
			       .length = 1024,
			       .offset = 512 } } } },
	{ "lst-test-reply", { .type = LST_TEST_REPLY, .session = ALPHA } },
	{ "lst-run-request",
	  { .type = LST_BATCH,
	    .reply_id = ID(6),
	    .session = ALPHA,
	    .batch = { .id = 2, .op = LST_RUN, .arg = 7 } } },
	{ "lst-query-request",
	  { .type = LST_BATCH,
	    .reply_id = ID(8),
	    .session = ALPHA,
	    .batch = { .id = 2, .op = LST_QUERY, .index = 1 } } },
	{ "lst-stop-request",
	  { .type = LST_BATCH,
	    .reply_id = ID(10),
	    .session = ALPHA,
	    .batch = { .id = 2, .op = LST_STOP } } },
	{ "lst-batch-reply", { .type = LST_BATCH_REPLY, .session = ALPHA } },
	{ "lst-ping-request",
	  { .type = LST_PING,
	    .reply_id = ID(2),
	    .ping = { .magic = LST_PING_MAGIC,
		      .sequence = 1,
		      .sec = 0x6b025840,
		      .nsec = 0x12c4fbb3 } } },
	{ "lst-ping-reply",
	  { .type = LST_PING_REPLY,
	    .ping = { .magic = LST_PING_MAGIC, .sequence = 1 } } },
	{ "lst-read-request",
	  { .type = LST_BRW,
	    .reply_id = ID(7),
	    .bulk_id = ID(8),
	    .brw = { .opcode = LST_READ,
		     .length = 8192,
		     .flags = LST_CHECK_FULL } } },
	{ "lst-write-request",
	  { .type = LST_BRW,
	    .reply_id = ID(9),
	    .bulk_id = ID(10),
	    .brw = { .opcode = LST_WRITE,
		     .length = 1024,
		     .flags = LST_CHECK_SIMPLE } } },
	{ "lst-brw-reply", { .type = LST_BRW_REPLY } },
	{ "lst-stat-request",
	  { .type = LST_STAT, .reply_id = ID(12), .session = ALPHA } },
	{ "lst-stat-reply",
	  { .type = LST_STAT_REPLY,
	    .session = ALPHA,
	    .stat = { .running_ms = 0x878,
		      .rpcs_sent = 6,
		      .rpcs_received = 9,
		      .bulk_got = 12,
		      .msgs_max = 2,
		      .send_count = 18,
		      .recv_count = 19,
		      .send_length = 0x920,
		      .recv_length = 0x99c } } },
};

/* Messages of which there is no capture, written by hand: their values, and
 * which bytes are not 0. */
static const struct {
	struct lst_msg msg;
	struct {
		uint8_t at, n;
		uint8_t bytes[16];
	} parts[6];
} by_hand[] = {
	{ { .type = LST_MAKE_REPLY,
	    .status = EBUSY,
	    .timeout = 100,
	    .session = { CONSOLE, 0x131e0 },
	    .name = "gamma" },
	  { { 24, 1, { 16 } },
	    { 28, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0xe0, 0x31, 1 } },
	    { 44, 1, { 100 } },
	    { 48, 5, { 'g', 'a', 'm', 'm', 'a' } } } },
	{ { .type = LST_MAKE,
	    .reply_id = ID(0x1912),
	    .make.force = 1,
	    .session = { CONSOLE, 0x14ac1 },
	    .name = "zeta" },
	  { { 24, 8, { 0x12, 0x19, 0, 0, 0, 0, 5, 0x58 } },
	    { 32, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0xc1, 0x4a, 1 } },
	    { 48, 1, { 1 } },
	    { 52, 4, { 'z', 'e', 't', 'a' } } } },
	{ { .type = LST_REMOVE, .reply_id = 15, .session = ALPHA },
	  { { 24, 1, { 15 } },
	    { 32, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0x7a, 0x0b, 1 } } } },
	{ { .type = LST_REMOVE_REPLY, .session = { UINT64_MAX, -1 } },
	  { { 28,
	      16,
	      { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff } } } },
	{ { .type = LST_TEST,
	    .reply_id = 3,
	    .session = ALPHA,
	    .test = { .batch = 2,
		      .service = LST_SERVICE_BRW,
		      .loop = UINT32_MAX,
		      .concurrency = 1024,
		      .stop_on_error = 1,
		      .brw = { .opcode = LST_WRITE,
			       .flags = LST_CHECK_SIMPLE,
			       .length = 1048576 } } },
	  { { 24, 1, { 3 } },
	    { 40, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0x7a, 0x0b, 1 } },
	    { 56, 1, { 2 } },
	    { 64,
	      14,
	      { 11, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 4, 0, 0, 0, 1 } },
	    { 82, 8, { 2, 0, 2, 0, 0, 0, 0x10, 0 } } } },
	{ { .type = LST_DEBUG, .reply_id = 0x36, .session = ALPHA },
	  { { 24, 1, { 0x36 } },
	    { 32, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0x7a, 0x0b, 1 } } } },
	{ { .type = LST_DEBUG_REPLY,
	    .session = ALPHA,
	    .timeout = 100,
	    .name = "eps" },
	  { { 28, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0x7a, 0x0b, 1 } },
	    { 44, 1, { 100 } },
	    { 52, 3, { 'e', 'p', 's' } } } },
	{ { .type = LST_BATCH_REPLY, .session = ALPHA, .batch.active = 1 },
	  { { 28, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0x7a, 0x0b, 1 } },
	    { 44, 1, { 1 } } } },
	{ { .type = LST_JOIN,
	    .reply_id = 9,
	    .name = "servers",
	    .session = { UINT64_MAX, 0 } },
	  { { 24, 1, { 9 } },
	    { 32, 8, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } },
	    { 48, 7, { 's', 'e', 'r', 'v', 'e', 'r', 's' } } } },
	{ { .type = LST_JOIN_REPLY,
	    .status = EEXIST,
	    .timeout = 300,
	    .session = ALPHA,
	    .name = "eps" },
	  { { 24, 1, { 17 } },
	    { 28, 16, { 0x0d, 0, 0x4d, 0x0a, 0, 0, 2, 0, 0x7a, 0x0b, 1 } },
	    { 44, 2, { 0x2c, 1 } },
	    { 48, 3, { 'e', 'p', 's' } } } },
};

/* Checks that @msg is encoded to @bytes, and that @bytes are decoded to @msg.
 */
static void is_message(const char *name, struct lst_msg msg,
		       const uint8_t *bytes)
{
	uint8_t buf[LST_MSG_SIZE];
	struct lst_msg is;

	msg.features = LST_BYTES;
	cr_assert_eq(lst_msg_encode(&msg, buf), 0, "%s: encode", name);
	for (size_t i = 0; i < sizeof(buf); i++)
		cr_assert_eq(buf[i], bytes[i], "%s: byte %zu is %x, not %x",
			     name, i, buf[i], bytes[i]);
	cr_assert_eq(lst_msg_decode(&is, bytes, LST_MSG_SIZE), 0);
	cr_assert_eq(is.type, msg.type);
	cr_assert(!is.swapped);
	cr_assert_eq(lst_msg_encode(&is, buf), 0);
	cr_assert_eq(memcmp(buf, bytes, sizeof(buf)), 0, "%s: again", name);
}

Test(lst_message, captured)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		struct golden g = golden(frames[i].name);

		cr_assert_eq(golden_payload_len(&g), LST_MSG_SIZE);
		is_message(frames[i].name, frames[i].msg, golden_payload(&g));
	}
}

/* an earlier capture, of another session */
Test(lst_message, captured_before)
{
	struct golden g = golden("put-request");
	uint8_t buf[LST_MSG_SIZE];
	struct lst_msg msg;

	cr_assert_eq(lst_msg_decode(&msg, golden_payload(&g), LST_MSG_SIZE), 0);
	cr_assert_eq(msg.type, LST_MAKE);
	cr_assert_eq(lst_msg_encode(&msg, buf), 0);
	cr_assert_eq(memcmp(buf, golden_payload(&g), sizeof(buf)), 0);
}

static void header(uint8_t *buf, uint32_t type)
{
	static const uint8_t head[] = { 0x0d, 0xf0, 0xb0, 0xee, 1 };

	memset(buf, 0, LST_MSG_SIZE);
	memcpy(buf, head, sizeof(head));
	buf[8] = (uint8_t)type;
	buf[20] = 1;
}

Test(lst_message, by_hand)
{
	for (size_t i = 0; i < ARRAY_SIZE(by_hand); i++) {
		uint8_t bytes[LST_MSG_SIZE];
		char name[16];

		snprintf(name, sizeof(name), "by hand %zu", i);
		header(bytes, by_hand[i].msg.type);
		for (size_t p = 0; p < ARRAY_SIZE(by_hand[i].parts); p++)
			memcpy(bytes + by_hand[i].parts[p].at,
			       by_hand[i].parts[p].bytes,
			       by_hand[i].parts[p].n);
		is_message(name, by_hand[i].msg, bytes);
	}
}

/* Each byte that has a meaning survives decoding and encoding: those of a body
 * up to @end, without those from @hole to @after. A name loses its last byte.
 */
Test(lst_message, whole_body)
{
	static const struct {
		uint32_t type, features, end, hole, after;
	} bodies[] = {
		{ LST_MAKE, 1, 83, 83, 83 },
		{ LST_MAKE_REPLY, 1, 79, 79, 79 },
		{ LST_REMOVE, 1, 48, 48, 48 },
		{ LST_REMOVE_REPLY, 1, 44, 44, 44 },
		{ LST_BATCH, 1, 68, 68, 68 },
		{ LST_BATCH_REPLY, 1, 48, 48, 48 },
		{ LST_STAT, 1, 48, 48, 48 },
		{ LST_STAT_REPLY, 1, 160, 160, 160 },
		{ LST_TEST, 0, 94, 94, 94 },
		{ LST_TEST, 1, 94, 94, 94 },
		{ LST_TEST_REPLY, 1, 44, 44, 44 },
		{ LST_DEBUG, 1, 48, 48, 48 },
		{ LST_DEBUG_REPLY, 1, 83, 48, 52 },
		{ LST_BRW, 1, 52, 52, 52 },
		{ LST_BRW_REPLY, 1, 28, 28, 28 },
		{ LST_PING, 1, 56, 56, 56 },
		{ LST_PING_REPLY, 1, 36, 36, 36 },
		{ LST_JOIN, 1, 79, 79, 79 },
		{ LST_JOIN_REPLY, 1, 79, 79, 79 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		uint8_t bytes[LST_MSG_SIZE], buf[LST_MSG_SIZE];
		struct lst_msg msg;

		header(bytes, bodies[i].type);
		bytes[20] = (uint8_t)bodies[i].features;
		for (unsigned int at = 24; at < LST_MSG_SIZE; at++)
			bytes[at] = (uint8_t)(at + 1);
		if (bodies[i].type == LST_TEST)
			memcpy(bytes + 64, (uint8_t[4]){ 11 }, 4);
		cr_assert_eq(lst_msg_decode(&msg, bytes, sizeof(bytes)), 0);
		cr_assert_eq(lst_msg_encode(&msg, buf), 0);
		memset(bytes + bodies[i].hole, 0,
		       bodies[i].after - bodies[i].hole);
		memset(bytes + bodies[i].end, 0, sizeof(bytes) - bodies[i].end);
		for (size_t at = 0; at < sizeof(buf); at++)
			cr_assert_eq(buf[at], bytes[at],
				     "type %u, features %u: byte %zu is %x",
				     bodies[i].type, bodies[i].features, at,
				     buf[at]);
	}
}

/* Reverses the bytes of each number; @sizes: the sizes of the numbers from the
 * beginning on, up to a 0. */
static void reverse(uint8_t *bytes, const uint8_t *sizes)
{
	for (; *sizes; bytes += *sizes++)
		for (int i = 0; i < *sizes / 2; i++) {
			uint8_t was = bytes[i];

			bytes[i] = bytes[*sizes - 1 - i];
			bytes[*sizes - 1 - i] = was;
		}
}

static void is_swapped(const char *name, const uint8_t *sizes)
{
	struct golden g = golden(name);
	uint8_t bytes[LST_MSG_SIZE], buf[LST_MSG_SIZE];
	struct lst_msg msg;

	memcpy(bytes, golden_payload(&g), sizeof(bytes));
	reverse(bytes, sizes);
	cr_assert_eq(lst_msg_decode(&msg, bytes, sizeof(bytes)), 0);
	cr_assert(msg.swapped);
	cr_assert_eq(lst_msg_encode(&msg, buf), 0);
	cr_assert_eq(memcmp(buf, golden_payload(&g), sizeof(buf)), 0,
		     "%s, swapped", name);
}

Test(lst_message, of_the_other_byte_order)
{
	is_swapped("lst-ping-request",
		   (uint8_t[]){ 4, 4, 4, 4, 4, 4, 8, 4, 4, 8, 8, 0 });
	is_swapped("lst-make-request",
		   (uint8_t[]){ 4, 4, 4, 4, 4, 4, 8, 8, 8, 4, 0 });
	is_swapped("lst-test-write-request",
		   (uint8_t[]){ 4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8,
				4, 4, 4, 1, 1, 4, 2, 2, 4, 4, 0 });
	is_swapped("lst-stat-reply",
		   (uint8_t[]){ 4, 4, 4, 4, 4, 4, 4, 8, 8, 4, 4,
				4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 4,
				4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 0 });
}

Test(lst_message, pages)
{
	struct lst_msg msg = { .type = LST_TEST }, is;
	uint8_t buf[LST_MSG_SIZE];

	msg.test.service = LST_SERVICE_BRW;
	msg.test.brw.opcode = LST_WRITE;
	msg.test.brw.pages = 1;
	msg.test.brw.flags = LST_CHECK_SIMPLE;
	cr_assert_eq(lst_msg_encode(&msg, buf), 0);
	cr_assert_eq(memcmp(buf + 82, "\2\0\0\0\1\0\0\0\2\0\0\0", 12), 0);
	cr_assert_eq(lst_msg_decode(&is, buf, sizeof(buf)), 0);
	cr_assert_eq(is.test.brw.opcode, LST_WRITE);
	cr_assert_eq(is.test.brw.pages, 1);
	cr_assert_eq(is.test.brw.flags, LST_CHECK_SIMPLE);
	cr_assert_eq(is.test.brw.length, 0);
}

/* ---- messages that must be refused ---- */

static void is_refused(const uint8_t *bytes, size_t len, int want)
{
	struct lst_msg msg = { .type = 77 };
	uint8_t *copy = malloc(len ? len : 1);

	cr_assert(copy);
	memcpy(copy, bytes, len);
	cr_assert_eq(lst_msg_decode(&msg, copy, len), want);
	cr_assert_eq(msg.type, 77);
	free(copy);
}

Test(lst_message, wrong_length)
{
	uint8_t bytes[LST_MSG_SIZE + 2] = { 0 };

	header(bytes, LST_PING);
	for (size_t len = 0; len <= sizeof(bytes); len++)
		if (len != LST_MSG_SIZE)
			is_refused(bytes, len, -EBADMSG);
}

Test(lst_message, wrong_magic_or_type)
{
	uint8_t bytes[LST_MSG_SIZE];

	for (int at = 0; at < 4; at++) {
		header(bytes, LST_PING);
		bytes[at] ^= 0x10;
		is_refused(bytes, sizeof(bytes), -EBADMSG);
	}
	header(bytes, LST_TYPES);
	is_refused(bytes, sizeof(bytes), -EBADMSG);
	memset(bytes + 8, 0xff, 4);
	is_refused(bytes, sizeof(bytes), -EBADMSG);
}

/* In a message of another version only type and reply_id are decoded. */
Test(lst_message, other_version)
{
	struct lst_msg msg;
	uint8_t bytes[LST_MSG_SIZE];

	header(bytes, LST_PING);
	bytes[4] = 2;
	bytes[24] = 5;
	cr_assert_eq(lst_msg_decode(&msg, bytes, sizeof(bytes)),
		     -EPROTONOSUPPORT);
	cr_assert_eq(msg.type, LST_PING);
	cr_assert_eq(msg.reply_id, 5);
	cr_assert_eq(msg.ping.magic, 0);
}

Test(lst_message, name_without_end)
{
	struct lst_msg msg;
	uint8_t bytes[LST_MSG_SIZE], buf[LST_MSG_SIZE];

	header(bytes, LST_MAKE);
	memset(bytes + 52, 'x', LST_MSG_SIZE - 52);
	cr_assert_eq(lst_msg_decode(&msg, bytes, sizeof(bytes)), 0);
	cr_assert_eq(strlen(msg.name), LST_NAME_SIZE - 1);
	memset(msg.name, 'x', sizeof(msg.name));
	cr_assert_eq(lst_msg_encode(&msg, buf), -EINVAL);
}

/* The bytes behind the end of a name are not sent, as they may be anything. */
Test(lst_message, nothing_after_a_name)
{
	struct lst_msg msg = { .type = LST_MAKE };
	uint8_t buf[LST_MSG_SIZE];

	memset(msg.name, 'x', sizeof(msg.name));
	msg.name[1] = '\0';
	cr_assert_eq(lst_msg_encode(&msg, buf), 0);
	cr_assert_eq(memcmp(buf + 52, "x\0\0", 3), 0);
}

Test(lst_message, no_room)
{
	struct lst_msg msg = { .type = LST_TEST, .features = LST_BYTES };
	uint8_t buf[LST_MSG_SIZE];

	msg.test.service = LST_SERVICE_BRW;
	msg.test.brw.opcode = UINT16_MAX;
	cr_assert_eq(lst_msg_encode(&msg, buf), 0);
	msg.test.brw.opcode++;
	cr_assert_eq(lst_msg_encode(&msg, buf), -EINVAL);
	msg.type = LST_TYPES;
	cr_assert_eq(lst_msg_encode(&msg, buf), -EINVAL);
}

Test(lst_message, where_requests_go)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		struct golden g = golden(frames[i].name);
		uint32_t type = frames[i].msg.type;

		if (lst_msg_is_reply(type))
			continue;
		/* An LNet header has the match bits at byte 48, and the portal
		 * at byte 64. */
		cr_assert_eq(lst_request_bits(type), g.bytes[48]);
		cr_assert_eq(lst_request_portal(type), g.bytes[64]);
	}
}

/* ---- lists of destinations ---- */

static struct ulnet_id id_of(const char *text, uint32_t pid)
{
	struct ulnet_id id = { .pid = pid };

	cr_assert_eq(lnet_nid_parse(text, &id.nid), 0);
	return id;
}

static bool id_eq(const struct ulnet_id *a, const struct ulnet_id *b)
{
	return lnet_nid_eq(&a->nid, &b->nid) && a->pid == b->pid;
}

Test(lst_list, captured)
{
	struct golden g = golden("lst-list");
	struct ulnet_id want = id_of("10.77.0.13@tcp", LNET_PID_LUSTRE), is;
	uint8_t buf[LST_RECORD_SIZE];

	cr_assert_eq(golden_payload_len(&g), LST_RECORD_SIZE);
	cr_assert_eq(lst_list_decode(&is, 1, golden_payload(&g),
				     LST_RECORD_SIZE, false),
		     0);
	cr_assert(id_eq(&is, &want));
	cr_assert_eq(lst_list_encode(&want, 1, buf), 0);
	cr_assert_eq(memcmp(buf, golden_payload(&g), sizeof(buf)), 0);
}

Test(lst_list, of_the_other_byte_order)
{
	static const uint8_t bytes[] = { 0, 2,	0, 0, 10,   77,
					 0, 13, 0, 0, 0x30, 0x39 };
	struct ulnet_id want = id_of("10.77.0.13@tcp", LNET_PID_LUSTRE), is;

	cr_assert_eq(lst_list_decode(&is, 1, bytes, sizeof(bytes), true), 0);
	cr_assert(id_eq(&is, &want));
}

Test(lst_list, several)
{
	struct ulnet_id ids[2] = { id_of("10.0.0.1@tcp", 1),
				   id_of("10.0.0.2@o2ib3", 2) };
	uint8_t buf[2 * LST_RECORD_SIZE];
	struct ulnet_id is[2];

	cr_assert_eq(lst_list_encode(ids, 2, buf), 0);
	cr_assert_eq(lst_list_decode(is, 2, buf, sizeof(buf), false), 0);
	cr_assert(id_eq(&is[0], &ids[0]));
	cr_assert(id_eq(&is[1], &ids[1]));
}

/* Returns a list of @n records, in pages as a kernel's console sends it. */
static uint8_t *kernel_list(size_t n)
{
	uint8_t *buf = calloc(n / LST_LIST_WHOLE + 1, LST_PAGE_SIZE);

	cr_assert(buf);
	for (size_t i = 0; i < n; i++) {
		struct ulnet_id id = id_of("10.0.0.1@tcp", (uint32_t)i + 1);

		cr_assert_eq(
			lst_list_encode(&id, 1,
					buf + i / 341 * 4096 + i % 341 * 12),
			0);
	}
	return buf;
}

/* A kernel's list puts the record of a second page 4 bytes later than an array
 * would, so that the end of the last record is cut off. With one record there,
 * only its pid is missing. */
Test(lst_list, second_page_loses_its_end)
{
	static struct ulnet_id ids[LST_LIST_WHOLE + 2];
	uint8_t *buf = kernel_list(LST_LIST_WHOLE + 2);
	size_t n = LST_LIST_WHOLE + 1;

	cr_assert_eq(lst_list_decode(ids, n, buf, n * 12, false), 0);
	cr_assert_eq(ids[n - 2].pid, LST_LIST_WHOLE);
	cr_assert_eq(ids[n - 1].pid, LNET_PID_LUSTRE);
	cr_assert_eq(lst_list_decode(ids, n, buf, n * 12 - 1, false),
		     -EMSGSIZE);
	cr_assert_eq(lst_list_decode(ids, n + 1, buf, n * 12 + 12, false), 0);
	cr_assert_eq(ids[n - 1].pid, n);
	free(buf);
}

Test(lst_list, short_of_bytes)
{
	struct golden g = golden("lst-list");
	struct ulnet_id is, two[2];

	for (size_t len = 0; len < LST_RECORD_SIZE; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		int want = len < 8 ? -EMSGSIZE : 0;

		cr_assert(copy);
		memcpy(copy, golden_payload(&g), len);
		cr_assert_eq(lst_list_decode(&is, 1, copy, len, false), want);
		cr_assert_eq(lst_list_decode(two, 2, copy, len, false),
			     -EMSGSIZE);
		free(copy);
	}
	cr_assert_eq(is.pid, LNET_PID_LUSTRE);
}

Test(lst_list, no_nodes)
{
	static const uint64_t nids[] = { UINT64_MAX,
					 UINT64_C(9) << 48, /* 0@lo */
					 0, UINT64_C(0x00ff) << 48 };
	struct ulnet_id is;

	for (size_t i = 0; i < sizeof(nids) / sizeof(*nids); i++) {
		uint8_t buf[LST_RECORD_SIZE] = { 0 };

		memcpy(buf, &nids[i], sizeof(nids[i]));
		cr_assert_eq(lst_list_decode(&is, 1, buf, sizeof(buf), false),
			     -EINVAL);
	}
}

Test(lst_list, cannot_be_said)
{
	struct ulnet_id large = id_of("fd77::2@tcp", LNET_PID_LUSTRE);
	static struct ulnet_id ids[LST_LIST_WHOLE + 1];
	static uint8_t buf[sizeof(ids)];

	cr_assert_eq(lst_list_encode(&large, 1, buf), -EAFNOSUPPORT);
	for (size_t i = 0; i < LST_LIST_WHOLE + 1; i++)
		ids[i] = id_of("10.0.0.1@tcp", 1);
	cr_assert_eq(lst_list_encode(ids, LST_LIST_WHOLE + 1, buf), -E2BIG);
	cr_assert_eq(lst_list_encode(ids, LST_LIST_WHOLE, buf), 0);
}
