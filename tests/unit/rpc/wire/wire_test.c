/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages written by hand: well-formed ones, malformed ones, and those of
 * other versions of the protocol. */
#include "rpc/wire/wire_put.h"

#include <errno.h>
#include "base/crc32c.h"
#include "tests/source.h"
#include "wire_reencode.h"
#include "wire_hex.h"

#define MESSAGE_MAX 70000

static struct reencoded out;

/* Decodes a message, with the right header data, and encodes the result to
 * @out. */
static int decode_reencode(enum wire_kind kind, const uint8_t *bytes,
			   size_t head, size_t length)
{
	uint8_t *copy = exactly(bytes, length);
	int rc = reencode(kind, copy, length, wire_hdr_data(kind, copy, head),
			  &out);

	free(copy);
	return rc;
}

/* ---- messages by hand ---- */

#define RQ WIRE_REQUESTS
#define RP WIRE_REPLIES
#define CT WIRE_CONTROL

#define BULKS_4 "62 00 62 00 62 00 62 00 "
#define BULKS_8 BULKS_4 BULKS_4

/* Well-formed messages, and how the library encodes them. */
static const struct {
	const char *name;
	enum wire_kind kind;
	const char *head;
	size_t bodies;
	const char *reencoded; /* NULL: as head */
} good[] = {
	{ "nothing", RQ, "", 0, NULL },
	{ "no calls", RQ, "09 01*8 11 02*8 18 03 20 04", 0, NULL },
	{ "one call", RQ, "2a 07 08 01 1d 01*4", 0, NULL },
	{ "an empty call", RQ, "2a 00", 0, NULL },
	{ "a body", RQ, "2a 04 08 01 20 03 7a 03", 3, NULL },
	{ "two bodies", RQ, "2a 02 20 01 2a 00 2a 03 20 80 01 7a 81 01", 129,
	  NULL },
	{ "bodies of no bytes", RQ, "2a 02 08 01 7a 00", 0, "2a 02 08 01" },
	{ "the longest number", RQ, "2a 0b 08 ff*9 01", 0, NULL },
	{ "a number with bits too many", RQ, "2a 0b 08 ff*9 7f", 0,
	  "2a 0b 08 ff*9 01" },
	{ "32 bits of 64", RQ, "2a 0b 10 ff*9 01", 0, "2a 06 10 ff*4 0f" },
	{ "a padded number", RQ, "2a 0b 08 81 80*8 00", 0, "2a 02 08 01" },
	{ "a padded length", RQ, "2a 82 80 00 08 01", 0, "2a 02 08 01" },
	{ "a padded tag", RQ, "aa 80 00 02 08 01", 0, "2a 02 08 01" },
	{ "a padded tag of a bulk", RQ, "2a 09 e2 00 02 10 01 62 02 10 02", 0,
	  "2a 08 62 02 10 01 62 02 10 02" },
	{ "the last one holds", RQ, "18 01 18 02 2a 04 08 01 08 02", 0,
	  "18 02 2a 02 08 02" },
	{ "0 holds, too", RQ, "18 01 18 00", 0, "" },
	{ "calls before the connection", RQ, "2a 00 18 01", 0, "18 01 2a 00" },
	{ "known numbers of other types", RQ,
	  "08 01 12 01 ff 1d 01*4 28 01 "
	  "2a 14 09 01*8 18 07 3a 00 60 01 6d 01*4",
	  0, "2a 00" },
	{ "fields in a bulk", RQ,
	  "2a 1d 62 1b 09 01*8 10 02 1a 02 07 08 22 08 01*8 28 01", 0, NULL },
	{ "numbers one by one", RQ, "2a 10 62 0e 18 01 25 01*4 18 02 25 02*4",
	  0, "2a 10 62 0e 1a 02 01 02 22 08 01*4 02*4" },
	{ "numbers both ways", RQ, "2a 0c 62 0a 1a 02 01 02 18 03 1a 02 ac 02",
	  0, "2a 09 62 07 1a 05 01 02 03 ac 02" },
	{ "a bulk without segments", RQ, "2a 02 62 00", 0, NULL },
	{ "true by another number", RQ, "2a 04 62 02 28 02", 0,
	  "2a 04 62 02 28 01" },
	{ "256 segments", RQ, "2a 86 02 62 83 02 1a 80 02 01*256", 0, NULL },
	{ "16 bulks", RQ, "2a 20 " BULKS_8 BULKS_8, 0, NULL },
	{ "a trace", RQ, "2a 05 6a 03 01 02 03", 0, NULL },
	{ "calls that are alike", RQ,
	  "2a 0d 08 01 1d 01*4 38 02 48 07 50 03 "
	  "2a 0d 08 02 1d 01*4 38 02 48 07 50 04",
	  0, NULL },
	{ "a call that says less", RQ,
	  "2a 0b 08 01 1d 01*4 38 02 48 07 2a 09 08 02 1d 01*4 38 02 2a 00", 0,
	  NULL },
	{ "alike, but for what follows", RQ,
	  "2a 0d 08 01 1d 01*4 38 02 40 03 50 03 "
	  "2a 0f 08 02 1d 01*4 38 02 40 03 50 04 38 05",
	  0,
	  "2a 0d 08 01 1d 01*4 38 02 40 03 50 03 "
	  "2a 0d 08 02 1d 01*4 38 05 40 03 50 04" },
	{ "alike, but for what followed before", RQ,
	  "2a 0f 08 01 1d 01*4 38 02 40 03 50 03 48 05 "
	  "2a 0d 08 02 1d 01*4 38 02 40 03 50 04",
	  0,
	  "2a 0f 08 01 1d 01*4 38 02 40 03 48 05 50 03 "
	  "2a 0d 08 02 1d 01*4 38 02 40 03 50 04" },
	{ "alike, and without numbers at first", RQ,
	  "2a 0b 1d 01*4 38 02 40 03 08 01 "
	  "2a 0d 1d 01*4 38 02 40 03 48 01 08 02",
	  0,
	  "2a 0b 08 01 1d 01*4 38 02 40 03 "
	  "2a 0d 08 02 1d 01*4 38 02 40 03 48 01" },
	{ "backwards", RQ,
	  "2a 0c 58 01 50 02 48 05 28 06 10 03 08 04 20 07 18 08", 0,
	  "18 08 20 07 2a 0c 08 04 10 03 28 06 48 05 50 02 58 01" },
	{ "in order, and the last one again", RQ,
	  "18 01 20 02 18 03 2a 0a 10 01 28 02 10 03 50 04 50 05", 0,
	  "18 03 20 02 2a 06 10 03 28 02 50 05" },
	{ "a field between calls", RQ, "18 01 2a 02 08 01 20 02 2a 02 08 02", 0,
	  "18 01 20 02 2a 02 08 01 2a 02 08 02" },
	{ "replies backwards", RP,
	  "28 02 22 08 38 05 30 04 10 02 08 01 18 03 10 02", 0,
	  "10 02 18 03 22 08 08 01 10 02 30 04 38 05 28 02" },
	{ "replies in order, and the last one again", RP,
	  "10 01 28 02 22 06 10 01 38 02 10 03 28 03", 0,
	  "10 01 22 04 10 03 38 02 28 03" },
	{ "replies", RP, "09 01*8 10 02 18 03 22 02 28 02 22 02 18 05 7a 02", 2,
	  NULL },
	{ "a reply with all", RP,
	  "22 3a 08 01 10 02 18 03 20 04 30 06 38 07 40 08 "
	  "4a 08 08 01 12 04 01*4 4a 06 12 04 04*4 50 0a 58 0b "
	  "60 0c 69 0d*8 70 01 79 0f*4 01 00*3",
	  0, NULL },
	{ "a reply whose checksum is 0", RP, "22 0b 18 10 79 00*8", 0,
	  "22 02 18 10" },
	{ "a reply whose last checksum holds", RP,
	  "22 12 79 0f*4 01 00*3 79 0e*4 01 00*3", 0, "22 09 79 0e*4 01 00*3" },
	{ "checksums one by one", RP, "22 0c 4a 0a 15 01*4 15 02*4", 0,
	  "22 0c 4a 0a 12 08 01*4 02*4" },
	{ "moved: numbers one by one", RP,
	  "22 10 4a 0e 18 01 15 01*4 18 02 15 02*4", 0,
	  "22 10 4a 0e 12 08 01*4 02*4 1a 02 01 02" },
	{ "control: nothing", CT, "", 0, NULL },
	{ "control: of a later version", CT, "7a 02 08 01", 0, "" },
	{ "control: cancel, of two calls", CT,
	  "52 0e 18 01 22 04 08 07 10 03 22 04 08 08 10 04", 0, NULL },
	{ "control: extend, with an entry that says nothing", CT,
	  "4a 04 10 01 1a 00", 0, NULL },
	{ "control: a known number of another type", CT, "08 01", 0, "" },
	{ "control: empty", CT, "2a 00", 0, NULL },
	{ "control: an empty identity", CT, "0a 04 0a 00 18 01", 0,
	  "0a 02 18 01" },
	{ "control: the last identity holds", CT,
	  "0a 24 0a 10 01*16 0a 10 02*16", 0, "0a 12 0a 10 02*16" },
	{ "control: the longest name", CT, "1a 41 2a 3f 61*63", 0, NULL },
	{ "control: the shorter name is the last", CT,
	  "1a 07 2a 02 61 61 2a 01 62", 0, "1a 03 2a 01 62" },
	{ "control: once more", CT, "3a 02 18 01 3a 02 20 02", 0,
	  "3a 04 18 01 20 02" },
};

Test(wire, good)
{
	static uint8_t bytes[MESSAGE_MAX], want[MESSAGE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const char *name = good[i].name;
		size_t head = unhex(good[i].head, bytes, sizeof(bytes)), n;
		int rc;

		memset(bytes + head, 'b', good[i].bodies);
		rc = decode_reencode(good[i].kind, bytes, head,
				     head + good[i].bodies);
		cr_assert_eq(rc, 0, "%s: %d", name, rc);
		n = unhex(good[i].reencoded ? good[i].reencoded : good[i].head,
			  want, sizeof(want));
		memset(want + n, 'b', good[i].bodies);
		n += good[i].bodies;
		cr_assert_eq(out.length, n, "%s: %zu bytes, not %zu", name,
			     out.length, n);
		cr_assert_eq(memcmp(out.bytes, want, n), 0, "%s", name);
	}
}

static const struct {
	const char *name;
	enum wire_kind kind;
	const char *head;
	size_t bodies;
} bad[] = {
	{ "a tag cut off", RQ, "80", 0 },
	{ "number 0", RQ, "00 00", 0 },
	{ "number 0 with a length", RQ, "02 00", 0 },
	{ "a group", RQ, "0b 0c", 0 },
	{ "a group's end", RQ, "0c", 0 },
	{ "an unknown group", RQ, "a3 06 a4 06", 0 },
	{ "type 6", RQ, "0e", 0 },
	{ "type 7", RQ, "0f", 0 },
	{ "a tag of more than 32 bits", RQ, "88 80 80 80 10 00", 0 },
	{ "a tag of eleven bytes", RQ, "88 80*10 00 00", 0 },
	{ "8 bytes cut off", RQ, "09 01*7", 0 },
	{ "no number", RQ, "18", 0 },
	{ "a number cut off", RQ, "18 80", 0 },
	{ "a number of eleven bytes", RQ, "18 80*10 01", 0 },
	{ "unknown: no number", RQ, "80 01", 0 },
	{ "unknown: a number of eleven bytes", RQ, "80 01 80*10 01", 0 },
	{ "unknown: 8 bytes cut off", RQ, "81 01 01*7", 0 },
	{ "unknown: 4 bytes cut off", RQ, "85 01 01*3", 0 },
	{ "unknown: too long", RQ, "82 01 05 01*4", 0 },
	{ "a call longer than the head", RQ, "2a 03 08 01", 0 },
	{ "a call without a length", RQ, "2a", 0 },
	{ "a call as long as can be said", RQ, "2a ff*9 01 08 01", 0 },
	{ "a length of eleven bytes", RQ, "2a 82 80*9 00 08 01", 0 },
	{ "call: a number cut off", RQ, "2a 02 08 80 18 01", 0 },
	{ "call: no number", RQ, "2a 01 08 18 01", 0 },
	{ "call: a tag cut off", RQ, "2a 01 80 80 01 01", 0 },
	{ "call: 4 bytes cut off", RQ, "2a 04 1d 01*3 18 01", 0 },
	{ "call: a group", RQ, "2a 02 0b 0c", 0 },
	{ "call: number 0", RQ, "2a 02 00 00", 0 },
	{ "call: a number of eleven bytes", RQ, "2a 0c 08 80*10 01", 0 },
	{ "call: unknown, too long", RQ, "2a 04 82 01 02 01 18 01", 0 },
	{ "a bulk longer than the call", RQ, "2a 04 62 03 10 01 18 01", 0 },
	{ "a trace longer than the call", RQ, "2a 03 6a 02 01 18 01", 0 },
	{ "bulk: 8 bytes cut off", RQ, "2a 0a 62 08 09 01*7 18 01", 0 },
	{ "bulk: a number cut off", RQ, "2a 04 62 02 10 80 18 01", 0 },
	{ "bulk: lengths too long", RQ, "2a 05 62 03 1a 02 01 18 01", 0 },
	{ "bulk: a length cut off", RQ, "2a 05 62 03 1a 01 80 18 01", 0 },
	{ "bulk: single length cut off", RQ, "2a 03 62 01 18 18 01", 0 },
	{ "bulk: checksums not whole", RQ,
	  "2a 0a 62 08 1a 01 01 22 03 01*3 18 01", 0 },
	{ "bulk: single checksum not whole", RQ,
	  "2a 09 62 07 1a 01 01 25 01*3 18 01", 0 },
	{ "bulk: more checksums", RQ, "2a 0f 62 0d 1a 01 05 22 08 01*8", 0 },
	{ "bulk: fewer checksums", RQ, "2a 0c 62 0a 1a 02 05 05 22 04 01*4",
	  0 },
	{ "bulk: checksums of nothing", RQ, "2a 08 62 06 22 04 01*4", 0 },
	{ "bulk: a group", RQ, "2a 04 62 02 33 34", 0 },
	{ "257 segments", RQ, "2a 87 02 62 84 02 1a 81 02 01*257", 0 },
	{ "256 segments and one", RQ, "2a 88 02 62 85 02 1a 80 02 01*256 18 01",
	  0 },
	{ "17 bulks", RQ, "2a 22 " BULKS_8 BULKS_8 "62 00", 0 },
	{ "bodies shorter than said", RQ, "2a 02 20 05 7a 05", 4 },
	{ "bodies longer than said", RQ, "2a 02 20 05 7a 05", 6 },
	{ "bodies not said", RQ, "2a 02 20 05", 5 },
	{ "bodies of nobody", RQ, "7a 05", 5 },
	{ "bodies not there", RQ, "2a 02 20 05", 0 },
	{ "bodies longer than the calls say", RQ, "2a 02 20 04 7a 05", 5 },
	{ "bodies shorter than the calls say", RQ, "2a 02 20 06 7a 05", 5 },
	{ "bodies in the head", RQ, "2a 02 20 01 7a 01 62", 0 },
	{ "bodies before other fields", RQ, "7a 00 18 01", 0 },
	{ "bodies twice", RQ, "7a 00 7a 00", 0 },
	{ "bodies without a length", RQ, "7a", 0 },
	{ "bodies as long as can be said", RQ, "2a 06 20 ff*4 0f 7a ff*9 01",
	  1 },
	{ "bodies that sum up to 2^32", RQ, "2a 06 20 ff*4 0f 2a 02 20 01", 0 },
	{ "replies: a group", RP, "0b 0c", 0 },
	{ "replies: a number cut off", RP, "10 80", 0 },
	{ "replies: a reply too long", RP, "22 03 08 01", 0 },
	{ "replies: bodies before other fields", RP, "7a 00 18 01", 0 },
	{ "replies: bodies longer than said", RP, "22 02 28 05 7a 05", 6 },
	{ "replies: bodies not there", RP, "22 02 28 05", 0 },
	{ "replies: bodies in the head", RP, "22 02 28 01 7a 01 62", 0 },
	{ "reply: a number cut off", RP, "22 02 08 80 18 01", 0 },
	{ "reply: number 0", RP, "22 02 00 00", 0 },
	{ "reply: what was moved, too long", RP, "22 04 4a 03 08 01 18 01", 0 },
	{ "reply: a checksum cut off", RP, "22 08 79 01*4 01 00 00", 0 },
	{ "reply: a checksum without its mark", RP, "22 09 79 01*4 00*4", 0 },
	{ "reply: a checksum of more than 33 bits", RP, "22 09 79 01*4 03 00*3",
	  0 },
	{ "reply: a checksum with a high bit", RP, "22 09 79 01*4 01 00*2 80",
	  0 },
	{ "reply: 17 bulks", RP,
	  "22 22 4a 00 4a 00 4a 00 4a 00 4a 00 4a 00 4a 00 4a 00 4a 00 4a 00 "
	  "4a 00 4a 00 4a 00 4a 00 4a 00 4a 00 4a 00",
	  0 },
	{ "moved: checksums not whole", RP, "22 07 4a 05 12 03 01*3 18 01", 0 },
	{ "moved: single checksum not whole", RP, "22 06 4a 04 15 01*3 18 01",
	  0 },
	{ "moved: 257 checksums", RP, "22 8a 08 4a 87 08 12 84 08 01*1028", 0 },
	{ "moved: a length cut off", RP, "22 0b 4a 09 12 04 01*4 1a 01 80", 0 },
	{ "moved: single length cut off", RP, "22 09 4a 07 12 04 01*4 18 18 01",
	  0 },
	{ "moved: more lengths", RP, "22 0c 4a 0a 12 04 01*4 1a 02 01 01", 0 },
	{ "moved: fewer lengths", RP, "22 0f 4a 0d 12 08 01*8 1a 01 01", 0 },
	{ "moved: lengths of nothing", RP, "22 05 4a 03 1a 01 01", 0 },
	{ "moved: 257 lengths", RP, "22 87 02 4a 84 02 1a 81 02 01*257", 0 },
	{ "moved: a group", RP, "22 04 4a 02 33 34", 0 },
	{ "moved: half a seal", RP, "22 14 4a 12 22 10 01*16", 0 },
	{ "moved: two checksums, one seal", RP,
	  "22 2e 4a 2c 12 08 01*8 22 20 01*32", 0 },
	{ "moved: two lengths, one seal", RP,
	  "22 28 4a 26 1a 02 01 01 22 20 01*32", 0 },
	{ "moved: 257 seals", RP, "22 a8 40 4a a5 40 22 a0 40 01*8224 08 01",
	  0 },
	{ "control: two", CT, "0a 00 12 00", 0 },
	{ "control: two, and one of them twice", CT, "0a 00 12 00 0a 00", 0 },
	{ "control: too long", CT, "2a 03 18 01", 0 },
	{ "control: a number cut off", CT, "2a 02 18 80", 0 },
	{ "control: a group", CT, "4b 4c", 0 },
	{ "control: a group within", CT, "2a 02 23 24", 0 },
	{ "control: 8 bytes cut off", CT, "2a 08 09 01*7", 0 },
	{ "control: an identity of 15 bytes", CT, "0a 11 0a 0f 01*15", 0 },
	{ "control: an identity of 17 bytes", CT, "0a 13 0a 11 01*17", 0 },
	{ "control: an identity too long", CT, "0a 03 0a 10 01 0a*15", 0 },
	{ "control: a name too long", CT, "1a 42 2a 40 61*64", 0 },
	{ "control: a name with an end inside", CT, "1a 05 2a 03 61 00 61", 0 },
	{ "control: more than the head", CT, "2a 00", 1 },
};

static void *zeroed(void *m, size_t size)
{
	return memset(m, 0, size);
}

/* Decodes a message. After an error what was decoded of a control message must
 * be unchanged. */
static int read_only(enum wire_kind kind, const uint8_t *bytes, size_t length,
		     uint64_t hdr_data)
{
	static const uint8_t zero[sizeof(struct wire_control)];
	static struct wire_reply reply[WIRE_CALLS_MAX];
	static struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests rq;
	struct wire_replies rp;
	struct wire_control ct;
	int rc;

	switch (kind) {
	case WIRE_REQUESTS:
		rc = wire_requests_decode(zeroed(&rq, sizeof(rq)), calls,
					  &(struct wire_common){ 0 }, hdr_data,
					  bytes, length);
		break;
	case WIRE_REPLIES:
		rc = wire_replies_decode(zeroed(&rp, sizeof(rp)), reply,
					 hdr_data, bytes, length);
		break;
	default:
		rc = wire_control_decode(zeroed(&ct, sizeof(ct)), hdr_data,
					 bytes, length);
		cr_assert(!rc || !memcmp(&ct, zero, sizeof(ct)));
		break;
	}
	return rc;
}

Test(wire, bad)
{
	static uint8_t bytes[MESSAGE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t head = unhex(bad[i].head, bytes, sizeof(bytes));
		size_t length = head + bad[i].bodies;
		uint8_t *copy;
		int rc;

		memset(bytes + head, 'b', bad[i].bodies);
		copy = exactly(bytes, length);
		rc = read_only(bad[i].kind, copy, length,
			       wire_hdr_data(bad[i].kind, copy, head));
		cr_assert_eq(rc, -EPROTO, "%s: %d", bad[i].name, rc);
		free(copy);
	}
}

/* ---- calls that differ in their numbers ---- */

Test(wire, call_with_the_rest_of_another)
{
	static const struct wire_call calls[] = {
		{ .xid = 1, .method = 1 },
		{ .xid = 300, .attempt = 2, .length = 64, .remaining = 5000 },
		{ .xid = UINT64_MAX,
		  .attempt = UINT32_MAX,
		  .method = UINT32_MAX,
		  .length = UINT32_MAX,
		  .timeout = UINT64_MAX,
		  .remaining = UINT64_MAX,
		  .flags = UINT32_MAX,
		  .priority = UINT32_MAX,
		  .reply_max = UINT32_MAX,
		  .slot = UINT32_MAX,
		  .semantics = UINT32_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		uint8_t a[WIRE_CALL_BOUND], b[WIRE_CALL_BOUND];
		const struct wire_call *c = &calls[i];
		struct wire_call other = *c;
		struct wire_call_rest rest;
		size_t length = (size_t)(wire_call_put(a, c) - a);

		other.xid = 7;
		other.attempt = 8;
		other.slot = 9;
		wire_call_rest_make(&rest, &other);
		cr_assert_leq(rest.length, sizeof(rest.bytes));
		cr_assert_leq(rest.end_length, sizeof(rest.end));
		cr_assert_eq(wire_call_put_with(b, c->xid, c->attempt, c->slot,
						&rest),
			     b + length);
		cr_assert_eq(memcmp(a, b, length), 0);
	}
}

/* Encodes two calls, and returns the second one as decoded. */
static struct wire_call read_second(const struct wire_call *first,
				    const struct wire_call *second)
{
	uint8_t bytes[WIRE_REQUESTS_BOUND + 2 * WIRE_CALL_BOUND];
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m = { .epoch = 1 };
	uint8_t *p = wire_requests_put(bytes, &m);
	size_t n;

	p = wire_call_put(wire_call_put(p, first), second);
	n = (size_t)(p - bytes);
	cr_assert_eq(wire_requests_decode(
			     &m, calls, &(struct wire_common){ 0 },
			     wire_hdr_data(WIRE_REQUESTS, bytes, n), bytes, n),
		     0);
	cr_assert_eq(m.ncalls, 2);
	return calls[1];
}

Test(wire, calls_that_differ_in_a_bit)
{
	const struct wire_call first = {
		.xid = 1,
		.remaining = UINT64_C(0x5555555555555555),
		.method = 0x33333333,
		.reply_max = 0x55555555,
		.slot = 1,
	};

	for (unsigned int bit = 0; bit < 64; bit++) {
		struct wire_call second = first, got;

		second.remaining ^= UINT64_C(1) << bit;
		got = read_second(&first, &second);
		cr_assert_eq(got.remaining, second.remaining, "bit %u", bit);
		second = first;
		second.method ^= UINT32_C(1) << bit % 32;
		got = read_second(&first, &second);
		cr_assert_eq(got.method, second.method, "bit %u", bit);
		second = first;
		second.reply_max ^= UINT32_C(1) << bit % 32;
		got = read_second(&first, &second);
		cr_assert_eq(got.reply_max, second.reply_max, "bit %u", bit);
	}
}

/* ---- header data ---- */

Test(wire, header_data)
{
	static const uint8_t open[] = { 0x1a, 0x02, 0x18, 0x01 };
	uint64_t hdr = wire_hdr_data(WIRE_CONTROL, open, sizeof(open));
	const enum wire_kind ct = WIRE_CONTROL;

	cr_assert_eq(hdr >> 32, 0x01030004);
	cr_assert_eq(hdr >> 56, WIRE_VERSION);
	cr_assert_eq(read_only(ct, open, sizeof(open), hdr), 0);
	for (unsigned int bit = 0; bit < 64; bit++) {
		int want = bit < 32   ? -EBADMSG
			   : bit < 48 ? -EPROTO
				      : /* or the error of a checksum */
				   bit < 56 ? -EPROTO
					    : -EPROTONOSUPPORT;
		int rc = read_only(ct, open, sizeof(open),
				   hdr ^ UINT64_C(1) << bit);

		if (bit >= 32 && bit < 48 && rc == -EBADMSG)
			continue;
		cr_assert_eq(rc, want, "bit %u: %d", bit, rc);
	}
	/* Another version is noticed before all other errors. */
	cr_assert_eq(read_only(ct, open, 0, UINT64_C(2) << 56),
		     -EPROTONOSUPPORT);
	cr_assert_eq(read_only(ct, open, sizeof(open), 0), -EPROTONOSUPPORT);
	cr_assert_eq(read_only(WIRE_REPLIES, open, sizeof(open), hdr), -EPROTO);
	cr_assert_eq(read_only(WIRE_REQUESTS, open, sizeof(open), hdr),
		     -EPROTO);
	/* The head is longer than the message. */
	cr_assert_eq(read_only(ct, open, sizeof(open) - 1, hdr), -EPROTO);
	/* LNet passes NULL for an empty payload. */
	hdr = wire_hdr_data(WIRE_CONTROL, NULL, 0);
	cr_assert_eq(read_only(ct, NULL, 0, hdr), 0);
}

Test(wire, any_bit_of_the_head)
{
	uint8_t bytes[] = { 0x2a, 0x04, 0x08, 0x01, 0x20,
			    0x02, 0x7a, 0x02, 'h',  'i' };
	uint64_t hdr = wire_hdr_data(RQ, bytes, sizeof(bytes) - 2);

	cr_assert_eq(read_only(RQ, bytes, sizeof(bytes), hdr), 0);
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bool is_head = bit / 8 < sizeof(bytes) - 2;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(read_only(RQ, bytes, sizeof(bytes), hdr),
			     is_head ? -EBADMSG : 0);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* ---- limits ---- */

static int empty_parts(enum wire_kind kind, uint8_t tag, unsigned int n)
{
	uint8_t bytes[2 * (WIRE_CALLS_MAX + 1)];

	for (unsigned int i = 0; i < n; i++) {
		bytes[2 * i] = tag;
		bytes[2 * i + 1] = 0;
	}
	return decode_reencode(kind, bytes, (size_t)n * 2, (size_t)n * 2);
}

Test(wire, most_calls)
{
	cr_assert_eq(empty_parts(RQ, 0x2a, WIRE_CALLS_MAX), 0);
	cr_assert_eq(empty_parts(RQ, 0x2a, WIRE_CALLS_MAX + 1), -EPROTO);
	cr_assert_eq(empty_parts(RP, 0x22, WIRE_CALLS_MAX), 0);
	cr_assert_eq(empty_parts(RP, 0x22, WIRE_CALLS_MAX + 1), -EPROTO);
}

Test(wire, longest_head)
{
	static uint8_t bytes[WIRE_HEAD_MAX];
	size_t n = unhex("ea 3f fa ff 03  an unknown field", bytes, 5);

	/* 509 << 3 | 2, and 65530 bytes */
	cr_assert_eq(decode_reencode(RQ, bytes, n + 65530, n + 65530), 0);
	cr_assert_eq(out.length, 0);
	cr_assert_eq(decode_reencode(RQ, bytes, n + 65529, n + 65529), -EPROTO);
}

/* ---- the examples of ulrpc_protocol(7) ---- */

static FILE *page_open(void)
{
	FILE *f = source_open("man/man7/ulrpc_protocol.7");

	cr_assert(f, "no page");
	return f;
}

/* Reads the next example of ulrpc_protocol(7) to @bytes, and sets its header
 * data. Returns the length of the message; 0: there is no other one. */
static size_t next_example(FILE *f, uint8_t *bytes, size_t max,
			   uint64_t *hdr_data)
{
	static const char said[] = "Header data: 0x";
	bool within = false;
	char line[256];
	size_t n = 0;

	*hdr_data = 0;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, said, sizeof(said) - 1))
			*hdr_data = strtoull(line + sizeof(said) - 1, NULL, 16);
		else if (!strncmp(line, ".Bd", 3))
			within = *hdr_data;
		else if (within && !strncmp(line, ".Ed", 3))
			return n;
		else if (within)
			n += unhex(line, bytes + n, max - n);
	}
	return 0;
}

static void check_example(FILE *f, const char *what, const uint8_t *want,
			  size_t length, uint64_t hdr_data)
{
	uint8_t bytes[128];
	uint64_t said;
	size_t n = next_example(f, bytes, sizeof(bytes), &said);

	cr_assert_eq(said, hdr_data, "%s: header data", what);
	cr_assert_eq(n, length, "%s: %zu bytes, not %zu", what, n, length);
	cr_assert_eq(memcmp(bytes, want, n), 0, "%s: bytes", what);
}

#define CONNECTION UINT64_C(0x1122334455667788)
#define CLIENT	   UINT64_C(0x0102030405060708)

static void check_request_example(FILE *f)
{
	static const struct wire_requests m = {
		.connection = CONNECTION,
		.client = CLIENT,
		.acked = 41,
		.epoch = 1,
	};
	const struct wire_call call = {
		.xid = 42,
		.timeout = 1000000,
		.remaining = 1000000,
		.method = crc32c(0, "echo", 4),
		.length = 5,
		.reply_max = 4096,
	};
	uint8_t bytes[WIRE_REQUESTS_BOUND + WIRE_CALL_BOUND + 128], *p;
	uint64_t hdr_data;

	p = wire_requests_put(bytes, &m);
	p = wire_call_put(p, &call);
	p = wire_bodies_put(p, 5);
	hdr_data = wire_hdr_data(WIRE_REQUESTS, bytes, (size_t)(p - bytes));
	memcpy(p, "hello", 5);
	check_example(f, "request", bytes, (size_t)(p - bytes) + 5, hdr_data);
}

static void check_reply_example(FILE *f)
{
	static const struct wire_replies m = { .client = CLIENT, .epoch = 1 };
	static const struct wire_reply reply = {
		.xid = 42,
		.queue = 150,
		.service = 3,
		.length = 5,
	};
	uint8_t bytes[WIRE_REPLIES_BOUND + WIRE_REPLY_BOUND + 128], *p;
	uint64_t hdr_data;

	p = wire_replies_put(bytes, &m);
	p = wire_reply_put(p, &reply);
	p = wire_bodies_put(p, 5);
	hdr_data = wire_hdr_data(WIRE_REPLIES, bytes, (size_t)(p - bytes));
	memcpy(p, "hello", 5);
	check_example(f, "reply", bytes, (size_t)(p - bytes) + 5, hdr_data);
}

Test(wire, examples_of_the_page)
{
	static const struct wire_control keepalive = {
		.kind = WIRE_KEEPALIVE,
		.keepalive = { .connection = CONNECTION,
			       .client = CLIENT,
			       .sequence = 7,
			       .epoch = 1 },
	};
	uint8_t bytes[WIRE_CONTROL_BOUND];
	FILE *f = page_open();
	uint64_t hdr_data;
	size_t n;

	check_request_example(f);
	check_reply_example(f);
	n = wire_control_encode(&keepalive, bytes, &hdr_data);
	check_example(f, "keepalive", bytes, n, hdr_data);
	cr_assert_eq(next_example(f, bytes, sizeof(bytes), &hdr_data), 0);
	fclose(f);
}

/* Flips each bit of @n bytes of a message with the head @head, and expects that
 * each such change of its bodies is found if @checked. */
static void flip_bodies(enum wire_kind kind, uint8_t *bytes, size_t head,
			size_t n, bool checked)
{
	uint64_t hdr_data = wire_hdr_data(kind, bytes, head);

	cr_assert_eq(read_only(kind, bytes, n, hdr_data), 0);
	for (size_t bit = 8 * head; bit < 8 * n; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(read_only(kind, bytes, n, hdr_data),
			     checked ? -EBADMSG : 0, "bit %zu", bit);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* A message that has a checksum of its bodies, which covers all of them, and
 * one that has none. */
Test(wire, checksum_of_bodies)
{
	const struct wire_requests requests = { .connection = 1 };
	const struct wire_replies replies = { .client = 1 };
	const struct wire_call call = { .xid = 1, .length = 5 };
	const struct wire_reply reply = { .xid = 1, .length = 5 };

	for (unsigned int i = 0; i < 4; i++) {
		enum wire_kind kind = i < 2 ? WIRE_REQUESTS : WIRE_REPLIES;
		uint8_t bytes[WIRE_REQUESTS_BOUND + WIRE_REPLY_BOUND + 128];
		uint8_t *p = bytes;
		bool checked = i % 2;
		size_t head;

		if (kind == WIRE_REQUESTS)
			p = wire_call_put(wire_requests_put(p, &requests),
					  &call);
		else
			p = wire_reply_put(wire_replies_put(p, &replies),
					   &reply);
		if (checked)
			p = wire_checksum_put(p, crc32c(0, "hello", 5));
		p = wire_bodies_put(p, 5);
		head = (size_t)(p - bytes);
		memcpy(p, "hello", 5);
		flip_bodies(kind, bytes, head, head + 5, checked);
	}
}

/* The head of a message whose bodies are cut off says that there is a checksum.
 * Nobody can compare it then. */
Test(wire, checksum_of_bodies_cut_off)
{
	const struct wire_requests m = { .connection = 1 };
	const struct wire_call call = { .xid = 1, .length = 5 };
	uint8_t bytes[WIRE_REQUESTS_BOUND + WIRE_CALL_BOUND + 128], *p;
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests got;
	uint64_t hdr_data;

	p = wire_call_put(wire_requests_put(bytes, &m), &call);
	p = wire_bodies_put(wire_checksum_put(p, crc32c(0, "hello", 5)), 5);
	hdr_data = wire_hdr_data(WIRE_REQUESTS, bytes, (size_t)(p - bytes));
	cr_assert_eq(wire_requests_decode_heads(&got, calls, hdr_data, bytes,
						(size_t)(p - bytes)),
		     0);
	cr_assert(got.checked);
	cr_assert_eq(got.ncalls, 1);
}
