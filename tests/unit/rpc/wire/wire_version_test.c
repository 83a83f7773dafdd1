/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages as other versions of the protocol, and other encoders, write them;
 * and messages that are cut off or changed.
 */
#include <errno.h>
#include "wire_reencode.h"
#include "wire_rewrite.h"

#define IDS "01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 "

/* Messages with all fields, as the library encodes them. */
static const struct source {
	const char *name;
	enum wire_kind kind;
	const char *head;
	size_t bodies;
} sources[] = {
	{ "requests", WIRE_REQUESTS,
	  "09 01*8 11 02*8 18 03 20 04 "
	  "2a 1d 08 01 10 02 1d 03*4 20 03 28 04 30 05 38 06 40 07 48 08 "
	  "50 09 58 0a 6a 02 0b*2 "
	  "2a 39 62 1c 09 0b*8 10 01 1a 03 05 80 01 22 08 0c*8 28 01 "
	  "62 12 09 0d*8 10 02 1a 05 01 02 03 04 05 62 05 1a 01 07 28 01 "
	  "31 c7 7c 0e 2e 01 00 00 00 7a 03",
	  3 },
	{ "replies", WIRE_REPLIES,
	  "09 01*8 10 02 18 03 "
	  "22 14 08 01 10 02 18 03 20 04 28 02 30 06 38 07 40 08 50 09 58 0a "
	  "22 1b 4a 11 08 01 12 08 0b*8 1a 03 01 ac 02 4a 06 12 04 0c*4 "
	  "22 02 08 05 31 af 81 45 d6 01 00 00 00 7a 02",
	  2 },
	{ "connect", WIRE_CONTROL,
	  "0a 23 0a 10 " IDS "11 01*8 18 02 20 03 28 04 30 05", 0 },
	{ "connected", WIRE_CONTROL,
	  "12 34 09 01*8 10 02 18 03 22 10 " IDS
	  "29 04*8 30 01 38 05 40 06 48 07 50 08 58 09",
	  0 },
	{ "open", WIRE_CONTROL,
	  "1a 23 09 01*8 11 02*8 18 03 21 04*8 2a 04 65 63 68 6f", 0 },
	{ "opened", WIRE_CONTROL,
	  "22 1e 09 01*8 10 02 19 03*8 20 04 28 05 30 06 38 07 40 08", 0 },
	{ "disconnect", WIRE_CONTROL, "2a 14 09 01*8 11 02*8 18 03", 0 },
	{ "disconnected", WIRE_CONTROL, "32 0b 09 01*8 10 02", 0 },
	{ "keepalive", WIRE_CONTROL, "3a 16 09 01*8 11 02*8 18 03 20 04", 0 },
	{ "alive", WIRE_CONTROL, "42 0f 09 01*8 10 02 18 03 20 04", 0 },
};

static size_t source_bytes(const struct source *s, uint8_t *bytes, size_t *head)
{
	*head = unhex(s->head, bytes, SOURCE_MAX);
	BUG_ON(*head + s->bodies > SOURCE_MAX);
	memset(bytes + *head, 'b', s->bodies);
	return *head + s->bodies;
}

static void check_same(const char *name, const char *way,
		       const struct reencoded *got, const uint8_t *want,
		       size_t n)
{
	cr_assert_eq(got->length, n, "%s, %s: %zu bytes, not %zu", name, way,
		     got->length, n);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(got->bytes[i], want[i], "%s, %s: byte %zu", name,
			     way, i);
}

static void try(const struct source *s, const char *way, rewrite_fn fn)
{
	static uint8_t bytes[SOURCE_MAX], rewritten[64 * SOURCE_MAX];
	static struct reencoded out;
	size_t head, length = source_bytes(s, bytes, &head);
	uint8_t *p, *copy;
	int rc;

	p = rewrite(rewritten, top(s->kind),
		    (struct wire_view){ bytes, bytes + length }, fn);
	length = (size_t)(p - rewritten);
	copy = exactly(rewritten, length);
	rc = reencode(s->kind, copy, length,
		      wire_hdr_data(s->kind, copy, length - s->bodies), &out);
	cr_assert_eq(rc, 0, "%s, %s: %d", s->name, way, rc);
	free(copy);
	check_same(s->name, way, &out, bytes, head + s->bodies);
}

#define TRY(fn)                                          \
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) \
	try(&sources[i], #fn, fn)

Test(wire_version, as_it_is)
{
	TRY(write_plain);
}

Test(wire_version, fields_of_a_later_version)
{
	TRY(write_unknown);
}

Test(wire_version, the_last_one_holds)
{
	TRY(write_twice);
}

Test(wire_version, not_packed)
{
	TRY(write_unpacked);
}

Test(wire_version, padded)
{
	TRY(write_padded);
}

/* A message of an earlier version has the first fields of each message only;
 * the others count as 0. */
Test(wire_version, fields_of_an_earlier_version)
{
	static const char head[] = "09 01*8 18 02 2a 04 08 07 20 02 7a 02";
	uint8_t bytes[64];
	size_t n = unhex(head, bytes, sizeof(bytes));
	static const struct wire_call none;
	struct wire_call calls[WIRE_CALLS_MAX], call, rest;
	struct wire_requests m;

	memset(bytes + n, 'b', 2);
	cr_assert_eq(
		wire_requests_decode(&m, calls, &(struct wire_common){ 0 },
				     wire_hdr_data(WIRE_REQUESTS, bytes, n),
				     bytes, n + 2),
		0);
	cr_assert_eq(m.connection, UINT64_C(0x0101010101010101));
	cr_assert_eq(m.client, 0);
	cr_assert_eq(m.acked, 0);
	cr_assert_eq(m.epoch, 2);
	cr_assert_eq(m.ncalls, 1);
	rest = call = calls[0];
	rest.xid = 0;
	rest.length = 0;
	rest.body = NULL;
	cr_assert_eq(memcmp(&rest, &none, sizeof(none)), 0);
	cr_assert_eq(call.xid, 7);
	cr_assert_eq(call.body, bytes + n);
	cr_assert_not(wire_segments_next(&call.bulks.view,
					 &(struct wire_segments_in){ 0 }));
}

/* ---- damaged messages ---- */

static void check_damaged(enum wire_kind kind, const uint8_t *bytes,
			  size_t head, size_t length, unsigned int *counts)
{
	static struct reencoded once, twice;
	uint8_t *copy = exactly(bytes, length);
	int rc = reencode(kind, copy, length, wire_hdr_data(kind, copy, head),
			  &once);

	free(copy);
	/* -EBADMSG: a field has become a checksum */
	cr_assert(rc == 0 || rc == -EPROTO || rc == -EBADMSG, "%d", rc);
	counts[rc == 0]++;
	if (rc)
		return;
	rc = reencode(kind, once.bytes, once.length, once.hdr_data, &twice);
	cr_assert_eq(rc, 0);
	check_same("damaged", "twice", &twice, once.bytes, once.length);
}

/* A message that is cut off must give an error, or be decoded to a message that
 * can be encoded. */
Test(wire_version, cut_off_anywhere)
{
	unsigned int counts[2] = { 0 };
	uint8_t bytes[SOURCE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const struct source *s = &sources[i];
		size_t head, length = source_bytes(s, bytes, &head);

		for (size_t h = 0; h <= head; h++)
			for (size_t n = h; n <= length; n++)
				check_damaged(s->kind, bytes, h, n, counts);
	}
	cr_assert(counts[0] && counts[1]);
}

Test(wire_version, any_byte_changed)
{
	unsigned int counts[2] = { 0 };
	uint8_t bytes[SOURCE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const struct source *s = &sources[i];
		size_t head, length = source_bytes(s, bytes, &head);

		for (size_t at = 0; at < 256 * head; at++) {
			uint8_t was = bytes[at / 256];

			bytes[at / 256] = (uint8_t)at;
			check_damaged(s->kind, bytes, head, length, counts);
			bytes[at / 256] = was;
		}
	}
	cr_assert(counts[0] && counts[1]);
}
