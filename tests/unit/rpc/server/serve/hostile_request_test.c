/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are malformed, repeated, out of order, or in the name of
 * another client. */
#include "rpc/wire/wire_field.h"
#include "tests/unit/rpc/hostile_rig.h"

#define SENTENCE "0123456789"

static struct hostile_rig h;
static uint8_t bytes[LNET_MTU], other[LNET_MTU];
/* how many requests had run before the test's own */
static unsigned int before;

/* Starts a server with an honest client, and connects the hostile client h.a.
 */
static void begin(void)
{
	hostile_init(&h);
	hostile_connect(&h);
	before = h.g.served.runs;
}

/* Returns how many requests have run since begin(). */
static unsigned int ran(void)
{
	return h.g.served.runs - before;
}

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static void put(uint64_t hdr_data, const void *payload, size_t length)
{
	h.a->match += 256;
	raw_client_put(h.a, h.a->portal, h.a->match, hdr_data, payload, length);
}

/* Sends the first @length of @bytes as a message; its header data say that the
 * first @head of them precede the bodies. */
static void put_message(size_t head, size_t length)
{
	put(wire_hdr_data(WIRE_REQUESTS, bytes, head), bytes, length);
}

/* Encodes a message with one call into @bytes, and returns its length; *@head:
 * how much of that precedes the body. */
static size_t pack(uint64_t xid, uint64_t *hdr_data, size_t *head)
{
	struct wire_call c = raw_client_call_of(xid, "echo", 10);
	size_t length =
		raw_client_pack(h.a, &c, 1, SENTENCE, 0, bytes, hdr_data);

	*head = length - 10;
	return length;
}

/* Checks that @messages messages have been counted as unreadable, and that
 * nothing was run or answered. */
static void are_unreadable(uint64_t messages)
{
	hostile_settle(&h);
	cr_assert_eq(ran(), 0);
	cr_assert_eq(h.a->messages, 0);
	cr_assert_eq(hostile_unreadable(&h), messages);
}

/* How many messages have been answered, or counted as unreadable, repeated or
 * not answerable. */
static uint64_t accounted(void)
{
	return h.a->replies + hostile_unreadable(&h) +
	       hostile_counted(&h, RPC_STAT_requests_repeated) +
	       hostile_counted(&h, RPC_STAT_answers_late) +
	       hostile_counted(&h, RPC_STAT_answers_lost);
}

/* ---- malformed ---- */

HOSTILE(hostile_request, header_data_changed)
{
	uint64_t hdr_data;
	size_t length, head;

	begin();
	length = pack(1, &hdr_data, &head);
	for (unsigned int bit = 0; bit < 64; bit++)
		put(hdr_data ^ UINT64_C(1) << bit, bytes, length);
	for (unsigned int version = 0; version < 256; version++)
		if (version != WIRE_VERSION)
			put((hdr_data & ~(UINT64_C(0xff) << 56)) |
				    (uint64_t)version << 56,
			    bytes, length);
	for (unsigned int kind = 0; kind < 256; kind++)
		if (kind != WIRE_REQUESTS)
			put((hdr_data & ~(UINT64_C(0xff) << 48)) |
				    (uint64_t)kind << 48,
			    bytes, length);
	are_unreadable(64 + 255 + 255);
	cr_assert_gt(hostile_counted(&h, RPC_STAT_requests_unversioned), 255);
	hostile_honest(&h);
	/* The unchanged message is served. */
	put(hdr_data, bytes, length);
	hostile_settle(&h);
	cr_assert_eq(raw_client_reply(h.a, 1)->status, WIRE_OK);
	hostile_fini(&h);
}

/* Messages cut off at any byte, with header data that match what is left. */
HOSTILE(hostile_request, cut_off_anywhere)
{
	uint64_t hdr_data;
	size_t length, head;

	begin();
	length = pack(1, &hdr_data, &head);
	for (size_t cut = 0; cut < length; cut++)
		put_message(MIN(cut, head), cut);
	/* Four of these are valid messages without calls: the empty one, and
	 * those that end after one of the three fields of the envelope. */
	are_unreadable(length - 4);
	hostile_fini(&h);
}

HOSTILE(hostile_request, any_byte_changed)
{
	static const uint8_t by[] = { 1, 2, 4, 8, 16, 32, 64, 128, 255 };
	uint64_t hdr_data, sent = 0;
	size_t length, head;

	begin();
	h.a->careless = true;
	for (unsigned int i = 0; i < ARRAY_SIZE(by); i++) {
		for (size_t at = 0;; at++) {
			length = pack(1000 + 200 * i + at, &hdr_data, &head);
			if (at >= length)
				break;
			bytes[at] ^= by[i];
			put_message(head, length);
			sent++;
		}
		hostile_honest(&h);
	}
	hostile_settle(&h);
	cr_assert_eq(accounted(), sent, "%llu of %llu",
		     (unsigned long long)accounted(), (unsigned long long)sent);
	hostile_fini(&h);
}

/* Are @bytes a valid message of no calls? */
static bool is_empty(size_t head, size_t length)
{
	static struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;

	return !wire_requests_decode(&m, calls, &(struct wire_common){ 0 },
				     wire_hdr_data(WIRE_REQUESTS, bytes, head),
				     bytes, length) &&
	       m.ncalls == 0;
}

/* Random bytes of random lengths, with header data that match. */
HOSTILE(hostile_request, noise)
{
	enum { MESSAGES = 3000 };
	uint64_t random = 88172645463325252u;
	uint64_t empty = 0;

	begin();
	h.a->careless = true;
	for (unsigned int i = 0; i < MESSAGES; i++) {
		size_t length = next_random(&random) % 300, head;

		for (size_t j = 0; j < length; j++)
			bytes[j] = (uint8_t)(random >> (j % 57)) ^
				   (uint8_t)(j * 31);
		head = MIN(length, random >> 20 & 0xff);
		empty += is_empty(head, length);
		put_message(head, length);
		if (i % 500 == 0)
			hostile_honest(&h);
	}
	hostile_settle(&h);
	cr_assert_eq(accounted(), MESSAGES - empty, "%llu, and %llu",
		     (unsigned long long)accounted(),
		     (unsigned long long)empty);
	hostile_fini(&h);
}

HOSTILE(hostile_request, calls_in_a_message)
{
	static struct wire_call calls[WIRE_CALLS_MAX + 1];

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++)
		calls[i] = raw_client_call_of(i + 1, "echo", 1);
	memset(other, 'x', ARRAY_SIZE(calls));
	raw_client_send(h.a, calls, 0, other, 0);
	raw_client_send(h.a, calls, WIRE_CALLS_MAX + 1, other, 0);
	are_unreadable(1); /* the one without calls is valid */
	raw_client_send(h.a, calls, WIRE_CALLS_MAX, other, 0);
	hostile_settle(&h);
	cr_assert_eq(h.a->replies, WIRE_CALLS_MAX);
	cr_assert_eq(ran(), WIRE_CALLS_MAX);
	hostile_fini(&h);
}

HOSTILE(hostile_request, bodies_that_do_not_fit)
{
	struct wire_call calls[2] = { raw_client_call_of(1, "echo", 5),
				      raw_client_call_of(2, "echo", 5) };
	uint64_t hdr_data;
	size_t length;

	begin();
	length = raw_client_pack(h.a, calls, 2, SENTENCE, 0, bytes, &hdr_data);
	put(hdr_data, bytes, length - 1);
	put(hdr_data, bytes, length + 1);
	put(hdr_data, bytes, length + 100000);
	/* The lengths add up to 2^32 + 10, which wraps to the right sum. */
	calls[0].length = UINT32_MAX - 4;
	calls[1].length = 15;
	length = raw_client_pack(h.a, calls, 2, SENTENCE, 0, bytes, &hdr_data) -
		 10;
	bytes[length - 1] = 10;
	put_message(length, length + 10);
	are_unreadable(4);
	hostile_fini(&h);
}

/* Messages longer than the service takes: LNet drops them, and they do not get
 * in the way of others. */
HOSTILE(hostile_request, too_long_for_its_buffers)
{
	uint32_t message_max = 0;

	begin();
	message_max = h.a->control.opened.message_max;
	cr_assert_gt(message_max, 65536);
	cr_assert_lt(message_max, LNET_MTU);
	for (unsigned int i = 0; i < 200; i++) {
		put_message(0, i % 2 ? LNET_MTU : message_max + 1);
		if (i % 20 == 0)
			hostile_honest(&h);
	}
	hostile_settle(&h);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_requests_received), 1 + 10);
	cr_assert_eq(ran(), 10);
	hostile_fini(&h);
}

/* Messages of kinds that belong to other portals. */
HOSTILE(hostile_request, other_kinds)
{
	struct wire_control m = { .kind = WIRE_CONNECT };
	struct wire_replies r = { .client = 1 };
	uint64_t hdr_data;
	size_t length;

	begin();
	length = wire_control_encode(&m, bytes, &hdr_data);
	put(hdr_data, bytes, length);
	length = (size_t)(wire_replies_put(bytes, &r) - bytes);
	put(wire_hdr_data(WIRE_REPLIES, bytes, length), bytes, length);
	are_unreadable(2);
	hostile_fini(&h);
}

/* ---- in the name of others ---- */

HOSTILE(hostile_request, in_the_name_of_another_client)
{
	const struct import *imp;

	begin();
	/* The hostile client knows all that identifies the honest one, but has
	 * another NID. */
	imp = h.g.client->imp;
	h.a->connection = imp->connection;
	h.a->client = imp->handle;
	h.a->epoch = imp->epoch;
	for (unsigned int xid = 1; xid < 50; xid++)
		raw_client_call(h.a, xid, "echo", "x");
	hostile_settle(&h);
	for (unsigned int xid = 1; xid < 50; xid++)
		cr_assert_eq(raw_client_reply(h.a, xid)->status,
			     WIRE_NOT_CONNECTED);
	cr_assert_eq(ran(), 0);
	hostile_fini(&h);
}

HOSTILE(hostile_request, of_other_epochs)
{
	hostile_init(&h);
	h.a->epoch = 10;
	hostile_connect(&h);
	before = h.g.served.runs;
	for (unsigned int i = 0; i < 4; i++) {
		h.a->epoch = (uint32_t[]){ 0, 9, 11, UINT32_MAX }[i];
		raw_client_call(h.a, i + 1, "echo", "x");
		hostile_settle(&h);
		cr_assert_eq(raw_client_reply(h.a, i + 1)->status,
			     WIRE_STALE_EPOCH);
	}
	h.a->epoch = 10;
	/* Calls that have been refused are not executed when they come again.
	 */
	for (unsigned int i = 0; i < 4; i++)
		raw_client_call(h.a, i + 1, "echo", "x");
	raw_client_call(h.a, 5, "echo", "x");
	hostile_forget(&h);
	hostile_settle(&h);
	cr_assert_eq(raw_client_reply(h.a, 5)->status, WIRE_OK);
	cr_assert_eq(h.a->replies, 1);
	cr_assert_eq(ran(), 1);
	hostile_fini(&h);
}

/* ---- repeated, and out of order ---- */

HOSTILE(hostile_request, replayed)
{
	uint64_t hdr_data;
	size_t length, head;

	begin();
	length = pack(1, &hdr_data, &head);
	memcpy(other, bytes, length);
	put(hdr_data, other, length);
	put(hdr_data, other, length);
	hostile_settle(&h);
	cr_assert_eq(ran(), 1);
	put(hdr_data, other, length); /* a copy after the reply */
	hostile_settle(&h);
	/* Another attempt of the call, or one that says it is idempotent. */
	for (unsigned int i = 0; i < 3; i++) {
		struct wire_call c = raw_client_call_of(1, "echo", 1);

		c.attempt = i;
		c.flags = i ? WIRE_CALL_RESENT : 0;
		c.semantics = i == 0 ? ULRPC_IDEMPOTENT : 0;
		raw_client_send(h.a, &c, 1, "x", 0);
	}
	hostile_settle(&h);
	cr_assert_eq(ran(), 1);
	cr_assert_eq(h.a->replies, 3);
	/* The client reconnects with a new epoch: a copy of a message of the
	 * old epoch is not executed. */
	h.a->epoch++;
	hostile_connect(&h);
	put(hdr_data, other, length);
	hostile_settle(&h);
	length = pack(1, &hdr_data, &head);
	put(hdr_data, bytes, length);
	hostile_settle(&h);
	cr_assert_eq(ran(), 1);
	cr_assert_eq(h.a->replies, 3);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_requests_repeated), 5);
	hostile_fini(&h);
}

/* In each slot a call runs if its number is greater than the one before,
 * whatever gaps there are; none runs twice. */
HOSTILE(hostile_request, call_numbers_out_of_order)
{
	static const struct {
		uint64_t xid;
		uint32_t slot;
		bool runs;
	} calls[] = {
		{ 1, 0, true },
		{ 2, 0, true },
		{ UINT64_C(1) << 20, 0, true },
		{ 3, 0, false },
		{ 2, 0, false },
		{ 3, 1, true },
		{ UINT64_MAX, 2, true },
		{ UINT64_MAX, 2, false },
		{ 4, 2, false },
		{ UINT64_C(1) << 20, 0, false },
		{ UINT64_MAX - 1, WIRE_SLOTS_USUAL - 1, true },
		{ UINT64_MAX - 1, WIRE_SLOTS_USUAL - 1, false },
	};
	unsigned int runs = 0;

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++) {
		struct wire_call c =
			raw_client_call_of(calls[i].xid, "echo", 1);

		c.slot = calls[i].slot;
		raw_client_send(h.a, &c, 1, "x", 0);
		hostile_settle(&h);
		runs += calls[i].runs;
		cr_assert_eq(ran(), runs, "call %u", i);
	}
	cr_assert_eq(h.a->replies, runs);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_requests_repeated),
		     ARRAY_SIZE(calls) - runs);
	/* The client acknowledges calls that it has never made. */
	raw_client_send(h.a, &(struct wire_call){ .xid = 7 }, 1, "",
			UINT64_MAX);
	raw_client_send(h.a, &(struct wire_call){ .xid = 8 }, 1, "",
			UINT64_MAX - 1);
	hostile_settle(&h);
	hostile_fini(&h);
}

/* Slots beyond those granted are refused; slots far apart within the grant are
 * served. */
HOSTILE(hostile_request, slots)
{
	static const uint32_t beyond[] = { WIRE_SLOTS_USUAL, 4096, 1 << 20,
					   UINT32_MAX };
	struct shard *s;
	uint64_t xid = 0;

	begin();
	s = hostile_shard(&h);
	for (unsigned int i = 0; i < ARRAY_SIZE(beyond); i++) {
		struct wire_call c = raw_client_call_of(++xid, "echo", 1);

		c.slot = beyond[i];
		raw_client_send(h.a, &c, 1, "x", 0);
		raw_client_send(h.a, &c, 1, "x", 0);
	}
	hostile_settle(&h);
	cr_assert_eq(ran(), 0);
	cr_assert_eq(h.a->replies, 2 * ARRAY_SIZE(beyond));
	for (unsigned int i = 0; i < h.a->replies; i++)
		cr_assert_eq(h.a->reply[i].status, WIRE_BAD_REQUEST);
	for (uint32_t slot = 0; slot < WIRE_SLOTS_USUAL; slot += 63) {
		struct wire_call c = raw_client_call_of(++xid, "echo", 1);

		c.slot = slot;
		raw_client_send(h.a, &c, 1, "x", 0);
	}
	hostile_settle(&h);
	cr_assert_eq(ran(), 17);
	/* one more: the honest client's */
	cr_assert_eq(s->exports->pools[EXPORT_PROVED].chunks.used +
			     s->exports->pools[EXPORT_STRANGER].chunks.used,
		     RECORD_CHUNKS + 1);
	hostile_fini(&h);
}

HOSTILE(hostile_request, shuffled)
{
	uint16_t order[3 * 300];
	uint64_t random = 362436069;

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++)
		order[i] = (uint16_t)(i % 300);
	for (unsigned int i = ARRAY_SIZE(order); --i;) {
		size_t j = next_random(&random) % (i + 1);
		uint16_t x = order[i];

		order[i] = order[j];
		order[j] = x;
	}
	/* Messages of three calls each; every call is somewhere in them three
	 * times. */
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i += 3) {
		struct wire_call c[3];

		for (unsigned int j = 0; j < 3; j++)
			c[j] = raw_client_call_of(
				order[i + j] + 1u,
				order[i + j] % 2 ? "echo" : "work", 1);
		raw_client_send(h.a, c, 3, "xyz", 0);
	}
	lnet_sim_run(h.g.sim, SEC);
	cr_assert_eq(ran(), 300);
	cr_assert_eq(h.a->replies, 300);
	for (unsigned int i = 0; i < 300; i++)
		cr_assert_eq(raw_client_reply(h.a, i + 1)->status, WIRE_OK);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_requests_repeated), 600);
	hostile_fini(&h);
}

/* ---- odd values ---- */

static const struct {
	const char *what;
	struct wire_call c;
	uint32_t status;
} odd_values[] = {
	{ "no timeout", { .timeout = 0, .reply_max = 99 }, WIRE_OK },
	{ "endless",
	  { .timeout = UINT64_MAX, .remaining = UINT64_MAX, .reply_max = 99 },
	  WIRE_OK },
	{ "no room", { .timeout = 9999999 }, WIRE_HELD },
	{ "all the room",
	  { .timeout = 9999999, .reply_max = UINT32_MAX },
	  WIRE_OK },
	{ "priority",
	  { .timeout = 9999999, .reply_max = 99, .priority = 200 },
	  WIRE_OK },
	{ "priorities",
	  { .timeout = 9999999, .reply_max = 99, .priority = UINT32_MAX },
	  WIRE_OK },
	{ "flags",
	  { .timeout = 9999999, .reply_max = 99, .flags = UINT32_MAX },
	  WIRE_UNKNOWN_CALL },
	{ "flags, but no query",
	  { .timeout = 9999999,
	    .reply_max = 99,
	    .flags = UINT32_MAX & ~WIRE_CALL_QUERY },
	  WIRE_DOUBTFUL },
	{ "flags of later versions",
	  { .timeout = 9999999, .reply_max = 99, .flags = UINT32_MAX << 5 },
	  WIRE_OK },
	{ "an annex that is none",
	  { .timeout = 9999999, .reply_max = 99, .flags = WIRE_CALL_ANNEX },
	  WIRE_BAD_REQUEST },
	{ "attempt",
	  { .timeout = 9999999, .reply_max = 99, .attempt = UINT32_MAX },
	  WIRE_OK },
	{ "semantics",
	  { .timeout = 9999999, .reply_max = 99, .semantics = UINT32_MAX },
	  WIRE_OK },
	{ "slot",
	  { .timeout = 9999999, .reply_max = 99, .slot = UINT32_MAX / 2 },
	  WIRE_BAD_REQUEST },
	{ "trace",
	  { .timeout = 9999999,
	    .reply_max = 99,
	    .trace = { other, other + 60000 } },
	  WIRE_OK },
};

/* Sends the call at @i of odd_values to each of two methods, the second one for
 * workers, and checks the answers. */
static void send_odd_values(unsigned int i)
{
	struct wire_call c[2] = { odd_values[i].c, odd_values[i].c };

	for (unsigned int j = 0; j < 2; j++) {
		c[j].xid = 2 * i + j + 1;
		c[j].slot += 2 * i + j;
		c[j].length = 10;
		c[j].method = ulrpc_method(j ? "work" : "echo");
	}
	if (c[0].trace.p) {
		raw_client_send(h.a, &c[0], 1, SENTENCE, 0);
		raw_client_send(h.a, &c[1], 1, SENTENCE, 0);
	} else {
		raw_client_send(h.a, c, 2, SENTENCE SENTENCE, 0);
	}
	hostile_settle(&h);
	for (unsigned int j = 0; j < 2; j++) {
		const struct wire_reply *r = raw_client_reply(h.a, c[j].xid);

		cr_assert_eq(r->status, odd_values[i].status, "%s: %u",
			     odd_values[i].what, r->status);
		cr_assert_eq(r->attempt, c[j].attempt);
	}
}

HOSTILE(hostile_request, odd_values)
{
	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(odd_values); i++)
		send_odd_values(i);
	hostile_fini(&h);
}

/* Calls with a timeout of 1 us. */
HOSTILE(hostile_request, timeout_of_1_us)
{
	struct wire_call c = raw_client_call_of(1, "work", 1);

	begin();
	c.timeout = 1;
	for (unsigned int i = 0; i < 100; i++) {
		c.xid = i + 1;
		c.slot = i;
		raw_client_send(h.a, &c, 1, "x", 0);
	}
	hostile_settle(&h);
	cr_assert_eq(accounted(), 100);
	hostile_fini(&h);
}

HOSTILE(hostile_request, invalid_segment_tables)
{
	static uint32_t ones[ULRPC_SEGMENTS_MAX];
	static const uint32_t zero[] = { 5, 0, 5 },
			      long_one[] = { LNET_MTU + 1 },
			      longest[] = { UINT32_MAX, UINT32_MAX, 2 };
	static const struct wire_segments cases[] = {
		{ .access = 1, .n = 3, .length = zero },
		{ .access = 2, .n = 1, .length = long_one },
		{ .access = 2, .n = 3, .length = longest },
		{ .access = 0, .n = 1, .length = ones },
		{ .access = 4, .n = 1, .length = ones },
		{ .access = UINT32_MAX, .n = 1, .length = ones },
	};

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(ones); i++)
		ones[i] = 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_call c = raw_client_call_of(i + 1, "echo", 0);

		c.bulks.n = 1;
		c.bulks.list = &cases[i];
		raw_client_send(h.a, &c, 1, "", 0);
		hostile_settle(&h);
		cr_assert_eq(raw_client_reply(h.a, i + 1)->status,
			     WIRE_BAD_REQUEST, "case %u", i);
	}
	cr_assert_eq(ran(), 0);
	/* The lent memory may be anywhere: nothing is moved unless the handler
	 * asks for it. */
	{
		struct wire_segments most = { .match = UINT64_MAX,
					      .access = 1,
					      .n = ULRPC_SEGMENTS_MAX,
					      .length = ones };
		struct wire_call c = raw_client_call_of(100, "echo", 0);

		c.bulks.n = 1;
		c.bulks.list = &most;
		raw_client_send(h.a, &c, 1, "", 0);
		hostile_settle(&h);
		cr_assert_eq(raw_client_reply(h.a, 100)->status, WIRE_OK);
	}
	hostile_fini(&h);
}

/* One segment, or one bulk, more than the limit. */
HOSTILE(hostile_request, segment_tables_too_long)
{
	struct wire_call c = raw_client_call_of(1, "echo", 0);
	uint64_t hdr_data;
	size_t length;
	uint8_t *p, *q;

	begin();
	/* An envelope without a call, to which a call is appended by hand. */
	length = raw_client_pack(h.a, &c, 0, "", 0, bytes, &hdr_data);
	p = bytes + length;
	*p++ = TAG(5, WT_LEN);
	p = put_varint(p, 3 + 3 + 3 + ULRPC_SEGMENTS_MAX + 1);
	*p++ = TAG(1, WT_VARINT);
	p = put_varint(p, 200);
	q = p;
	*p++ = TAG(12, WT_LEN);
	p = put_varint(p, 3 + ULRPC_SEGMENTS_MAX + 1);
	*p++ = TAG(3, WT_LEN);
	p = put_varint(p, ULRPC_SEGMENTS_MAX + 1);
	cr_assert_eq(p - q, 6);
	memset(p, 1, ULRPC_SEGMENTS_MAX + 1);
	p += ULRPC_SEGMENTS_MAX + 1;
	put_message((size_t)(p - bytes), (size_t)(p - bytes));
	are_unreadable(1);
	p = bytes + length;
	*p++ = TAG(5, WT_LEN);
	p = put_varint(p, 2 * (ULRPC_BULKS_MAX + 1));
	for (unsigned int i = 0; i <= ULRPC_BULKS_MAX; i++) {
		*p++ = TAG(12, WT_LEN);
		*p++ = 0;
	}
	put_message((size_t)(p - bytes), (size_t)(p - bytes));
	are_unreadable(2);
	hostile_fini(&h);
}

/* ---- clients that use up what the server has ---- */

/* A client that sends requests and cannot be reached any more leaves replies
 * that cannot be delivered. Without deadlines they stay longer, but the server
 * gives them up in the end. */
HOSTILE(hostile_request, gone_after_asking)
{
	const struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 18 };
	const struct ulnet_id from = nth_id(SERVER), to = nth_id(2);
	struct ulnet_sim_link bad = { .refuse = LNET_SIM_ALWAYS };

	hostile_init_with(&h, NULL, &conf);
	hostile_connect(&h);
	lnet_sim_link_set(h.g.sim, &from.nid, &to.nid, &bad);
	for (unsigned int i = 0; i < 500; i++) {
		struct wire_call call = raw_client_call_of(i + 1, "echo", 10);

		call.timeout = call.remaining = 0;
		raw_client_send(h.a, &call, 1, SENTENCE, 0);
	}
	lnet_sim_run(h.g.sim, SEC);
	cr_assert_geq(hostile_counted(&h, RPC_STAT_answers_resent), 1);
	lnet_sim_run(h.g.sim, 40 * SEC);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_answers_lost) +
			     hostile_counted(&h, RPC_STAT_answers_late),
		     500);
	hostile_fini(&h);
}

static uint64_t used_bytes(void)
{
	return atomic_load(&h.g.service->cpt[0].used_bytes) +
	       h.g.service->cpt[0].refusals;
}

/* A client that does not take its replies uses no more than its share of
 * memory: clients that were there before, and new ones, are served. */
static void takes_no_replies(bool connected)
{
	const struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 18 };
	const struct ulnet_id from = nth_id(SERVER), to = nth_id(2);
	struct ulnet_sim_link stuck = { .stall = LNET_SIM_ALWAYS };

	hostile_init_with(&h, NULL, &conf);
	hostile_connect(&h);
	if (!connected)
		h.a->connection ^= UINT64_C(1) << 60;
	lnet_sim_link_set(h.g.sim, &from.nid, &to.nid, &stuck);
	for (unsigned int i = 0; i < 1000; i++) {
		raw_client_call(h.a, i + 1, "echo", SENTENCE);
		if (i % 50 == 0)
			hostile_honest(&h);
	}
	hostile_settle(&h);
	hostile_honest(&h);
	cr_assert_geq(used_bytes(), conf.queue_bytes_max / (connected ? 1 : 2));
	cr_assert_leq(used_bytes(), conf.queue_bytes_max * 2);
	hostile_connect(&(struct hostile_rig){ .a = h.b });
	raw_client_call(h.b, 1, "echo", SENTENCE);
	hostile_settle(&h);
	cr_assert_eq(raw_client_reply(h.b, 1)->status, WIRE_OK);
	hostile_fini(&h);
}

HOSTILE(hostile_request, takes_no_replies)
{
	takes_no_replies(true);
}

HOSTILE(hostile_request, takes_no_refusals)
{
	takes_no_replies(false);
}

static unsigned int refused(const struct raw_client *c)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->replies; i++)
		n += c->reply[i].status == WIRE_OVERLOADED;
	return n;
}

/* Each client that floods the server gets a share of what is still free. */
HOSTILE(hostile_request, floods)
{
	const struct ulrpc_service_conf conf = { .queue_max = 10 };

	hostile_init_with(&h, NULL, &conf);
	hostile_connect(&h);
	for (unsigned int xid = 1; xid <= 100; xid++)
		raw_client_call(h.a, xid, "park", "x");
	hostile_settle(&h);
	cr_assert_eq(refused(h.a), 90);
	hostile_honest(&h);
	hostile_connect(&(struct hostile_rig){ .a = h.b });
	for (unsigned int xid = 1; xid <= 100; xid++)
		raw_client_call(h.b, xid, "park", "x");
	hostile_settle(&h);
	cr_assert_eq(refused(h.b), 92);
	hostile_honest(&h);
	while (h.g.served.parked) {
		serve_release(&h.g.served);
		hostile_settle(&h);
	}
	cr_assert_eq(h.a->replies, 100);
	cr_assert_eq(h.b->replies, 100);
	/* When its requests have been answered the client has its share again.
	 */
	hostile_forget(&h);
	for (unsigned int xid = 101; xid <= 110; xid++)
		raw_client_call(h.a, xid, "park", "x");
	hostile_settle(&h);
	cr_assert_eq(refused(h.a), 0);
	while (h.g.served.parked) {
		serve_release(&h.g.served);
		hostile_settle(&h);
	}
	hostile_fini(&h);
}

/* Many connections from one host have no more than one host's share. */
HOSTILE(hostile_request, floods_by_many_names)
{
	const struct ulrpc_service_conf conf = { .queue_max = 10 };

	hostile_init_with(&h, NULL, &conf);
	h.a->careless = true;
	for (uint8_t i = 0; i < 20; i++) {
		h.a->client = 100 + i;
		h.a->client_id[0] = i;
		hostile_connect(&h);
		for (unsigned int xid = 1; xid <= 10; xid++)
			raw_client_call(h.a, xid, "park", "x");
		hostile_settle(&h);
	}
	cr_assert_eq(h.a->replies, 180);
	cr_assert_eq(refused(h.a), 180, "half of four times 10 are not");
	hostile_honest(&h);
	hostile_connect(&(struct hostile_rig){ .a = h.b });
	for (unsigned int xid = 1; xid <= 10; xid++)
		raw_client_call(h.b, xid, "park", "x");
	hostile_settle(&h);
	cr_assert_eq(refused(h.b), 5);
	while (h.g.served.parked) {
		serve_release(&h.g.served);
		hostile_settle(&h);
	}
	hostile_fini(&h);
}

/* As floods, limited by bytes. The client then disconnects while it has
 * requests under way, and nothing is left of them. */
HOSTILE(hostile_request, floods_and_goes)
{
	const struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 18 };
	struct wire_control bye = { .kind = WIRE_DISCONNECT };

	hostile_init_with(&h, NULL, &conf);
	hostile_connect(&h);
	for (unsigned int xid = 1; xid <= 20; xid++) {
		struct wire_call c = raw_client_call_of(xid, "hold", 1 << 15);

		raw_client_send(h.a, &c, 1, other, 0);
	}
	hostile_settle(&h);
	/* Room is also kept for their replies, 4 KiB each. */
	cr_assert_eq(h.g.served.parked, 7);
	cr_assert_eq(refused(h.a), 13);
	hostile_honest(&h);
	bye.disconnect.connection = h.a->connection;
	bye.disconnect.client = h.a->client;
	bye.disconnect.epoch = h.a->epoch;
	raw_client_ask(h.a, &bye);
	hostile_honest(&h);
	serve_release(&h.g.served);
	hostile_fini(&h);
}
