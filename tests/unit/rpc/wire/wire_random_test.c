/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies, compared with the code that protoc-c makes of
 * wire.proto. */
#include "base/crc32c.h"
#include "rpc/wire/wire_put.h"
#include "wire_random.h"

#define ROUNDS	   3000
#define CALLS	   12
#define BULKS	   3
#define SEGMENTS   24
#define BODY	   20
#define TRACE	   300
#define NUMBERS(n) ((n) * sizeof(uint32_t))

/* Completes a message, of any kind, with the flavour and the service of @marks,
 * with random bodies of @length bytes, and perhaps with their checksum, else
 * *@checksum is 0. Returns the length of the message. */
static size_t put_bodies(uint8_t *buf, uint8_t *p, uint32_t length,
			 enum wire_kind kind, const struct wire_requests *marks,
			 uint64_t *hdr_data, ProtobufCBinaryData *bodies,
			 uint64_t *checksum)
{
	static uint8_t bytes[BUFFER];
	uint8_t *end = p;
	uint32_t crc;

	for (uint32_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)below(256);
	crc = crc32c(0, bytes, length);
	*checksum = 0;
	if (below(2)) {
		*checksum = wire_checksum(crc);
		end = wire_checksum_put(p, crc);
		cr_assert_leq(end - p, WIRE_CHECKSUM_BOUND);
	}
	p = end;
	if (marks->flavour) {
		end = wire_flavour_put(p, marks->flavour);
		cr_assert_leq(end - p, WIRE_FLAVOUR_BOUND);
	}
	p = end;
	if (marks->service) {
		end = wire_service_put(p, marks->service);
		cr_assert_leq(end - p, WIRE_SERVICE_BOUND);
	}
	p = end;
	end = wire_bodies_put(p, length);
	cr_assert_leq(end - p, WIRE_BODIES_BOUND);
	*hdr_data = wire_hdr_data(kind, buf, (size_t)(end - buf));
	memcpy(end, bytes, length);
	bodies->data = end;
	bodies->len = length;
	return (size_t)(end - buf) + length;
}

/* ---- requests ---- */

struct bulk {
	uint32_t length[ULRPC_SEGMENTS_MAX];
	uint32_t checksum[ULRPC_SEGMENTS_MAX];
	uint8_t seals[ULRPC_SEGMENTS_MAX * WIRE_SEAL];
	Ulrpc__Wire__Segments pb;
};

struct call {
	uint8_t trace[TRACE];
	struct bulk bulk[ULRPC_BULKS_MAX];
	struct wire_segments segments[ULRPC_BULKS_MAX];
	Ulrpc__Wire__Segments *pb_bulk[ULRPC_BULKS_MAX];
	struct wire_call call;
	Ulrpc__Wire__Call pb;
};

/* Seals for @n segments, or none. A head has not room for all that there can
 * be. */
static struct wire_view make_seals(uint8_t *seals, uint32_t n)
{
	bool any = below(8) == 0 && n <= 16;
	size_t length = any ? n * (size_t)WIRE_SEAL : 0;

	for (size_t i = 0; i < length; i++)
		seals[i] = (uint8_t)below(256);
	return (struct wire_view){ seals, seals + length };
}

static void check_seals(struct wire_view got, struct wire_view want)
{
	CHECK(view_length(got), view_length(want));
	if (view_length(want))
		cr_assert_eq(memcmp(got.p, want.p, view_length(want)), 0,
			     "seed %u", seed);
}

static void make_bulk(struct bulk *b, struct wire_segments *s, uint32_t n)
{
	*s = (struct wire_segments){
		.match = number(),
		.access = number32(),
		.checked = below(2),
		.n = n,
		.length = b->length,
		.checksum = below(2) ? b->checksum : NULL,
		.protection = number32(),
		.seals = make_seals(b->seals, n),
	};
	for (uint32_t i = 0; i < n; i++) {
		b->length[i] = number32();
		b->checksum[i] = number32();
	}
	ulrpc__wire__segments__init(&b->pb);
	b->pb.match = s->match;
	b->pb.access = s->access;
	b->pb.checked = s->checked;
	b->pb.n_length = n;
	b->pb.length = b->length;
	b->pb.n_checksum = s->checksum ? n : 0;
	b->pb.checksum = b->checksum;
	b->pb.protection = s->protection;
	b->pb.seals.len = view_length(s->seals);
	b->pb.seals.data = b->seals;
}

static void make_alike(struct wire_call *c, const struct wire_call *like)
{
	c->timeout = like->timeout;
	c->remaining = like->remaining;
	c->attempt = like->attempt;
	c->method = like->method;
	c->length = like->length;
	c->flags = like->flags;
	c->priority = like->priority;
	c->reply_max = like->reply_max;
}

/* Makes a call of random values. @like: a call with which it shares most of
 * them, or NULL. */
static void make_call(struct call *c, const struct call *like, uint32_t nbulks,
		      uint32_t segments)
{
	c->call = (struct wire_call){
		.xid = number(),
		.timeout = number(),
		.remaining = number(),
		.attempt = number32(),
		.method = number32(),
		.length = below(BODY),
		.flags = number32(),
		.priority = number32(),
		.reply_max = number32(),
		.slot = number32(),
		.semantics = number32(),
		.bulks = { .n = nbulks, .list = c->segments },
		.trace = { c->trace, c->trace + (below(4) ? 0 : below(TRACE)) },
	};
	for (uint32_t i = 0; i < view_length(c->call.trace); i++)
		c->trace[i] = (uint8_t)below(256);
	for (uint32_t i = 0; i < nbulks; i++) {
		make_bulk(&c->bulk[i], &c->segments[i], segments);
		c->pb_bulk[i] = &c->bulk[i].pb;
		segments = below(SEGMENTS);
	}
	if (like)
		make_alike(&c->call, &like->call);
	ulrpc__wire__call__init(&c->pb);
	c->pb.xid = c->call.xid;
	c->pb.timeout = c->call.timeout;
	c->pb.remaining = c->call.remaining;
	c->pb.attempt = c->call.attempt;
	c->pb.method = c->call.method;
	c->pb.length = c->call.length;
	c->pb.flags = c->call.flags;
	c->pb.priority = c->call.priority;
	c->pb.reply_max = c->call.reply_max;
	c->pb.slot = c->call.slot;
	c->pb.semantics = c->call.semantics;
	c->pb.n_bulk = nbulks;
	c->pb.bulk = c->pb_bulk;
	c->pb.trace.len = view_length(c->call.trace);
	c->pb.trace.data = c->trace;
}

static void check_bulks(const struct wire_call *got, const struct call *want)
{
	uint32_t numbers[ULRPC_SEGMENTS_MAX];
	struct wire_view bulks = got->bulks.view;
	struct wire_segments_in s;

	for (uint32_t i = 0; i < want->call.bulks.n; i++) {
		const struct wire_segments *w = &want->segments[i];

		cr_assert(wire_segments_next(&bulks, &s), "seed %u", seed);
		CHECK(s.match, w->match);
		CHECK(s.access, w->access);
		CHECK(s.checked, w->checked);
		CHECK(s.n, w->n);
		CHECK(s.has_checksums, w->n && w->checksum);
		CHECK(s.protection, w->protection);
		check_seals(s.seals, w->seals);
		wire_segments_lengths(&s, numbers);
		cr_assert_eq(memcmp(numbers, w->length, NUMBERS(w->n)), 0,
			     "seed %u", seed);
		wire_segments_checksums(&s, numbers);
		for (uint32_t k = 0; k < w->n; k++)
			CHECK(numbers[k], w->checksum ? w->checksum[k] : 0);
	}
	cr_assert_not(wire_segments_next(&bulks, &s), "seed %u", seed);
}

static void check_call(const struct wire_call *got, const struct call *c)
{
	const struct wire_call *want = &c->call;

	CHECK(got->xid, want->xid);
	CHECK(got->timeout, want->timeout);
	CHECK(got->remaining, want->remaining);
	CHECK(got->attempt, want->attempt);
	CHECK(got->method, want->method);
	CHECK(got->length, want->length);
	CHECK(got->flags, want->flags);
	CHECK(got->priority, want->priority);
	CHECK(got->reply_max, want->reply_max);
	CHECK(got->slot, want->slot);
	CHECK(got->semantics, want->semantics);
	CHECK(got->bulks.n, want->bulks.n);
	check_bytes("trace", got->trace.p, view_length(got->trace),
		    want->trace.p, view_length(want->trace));
	check_bulks(got, c);
}

static void check_requests(const uint8_t *bytes, size_t n, uint64_t hdr_data,
			   const struct wire_requests *want,
			   const struct call *calls)
{
	static struct wire_call got_calls[WIRE_CALLS_MAX];
	static struct wire_common common;
	uint8_t *copy = exactly(bytes, n);
	struct wire_requests got;
	const uint8_t *body;
	int rc;

	rc = wire_requests_decode(&got, got_calls, &common, hdr_data, copy, n);
	cr_assert_eq(rc, 0, "seed %u: %d", seed, rc);
	CHECK(got.connection, want->connection);
	CHECK(got.client, want->client);
	CHECK(got.acked, want->acked);
	CHECK(got.epoch, want->epoch);
	CHECK(got.flavour, want->flavour);
	CHECK(got.service, want->service);
	CHECK(got.checked, want->checked);
	CHECK(got.ncalls, want->ncalls);
	body = copy + (hdr_data >> 32 & 0xffff);
	for (uint32_t i = 0; i < want->ncalls; i++) {
		check_call(&got_calls[i], &calls[i]);
		cr_assert_eq(got_calls[i].body, body, "seed %u", seed);
		body += got_calls[i].length;
	}
	cr_assert_eq(body, copy + n, "seed %u", seed);
	free(copy);
}

static size_t put_requests(uint8_t *buf, const struct wire_requests *m,
			   const struct call *calls, uint64_t *hdr_data,
			   ProtobufCBinaryData *bodies, uint64_t *checksum)
{
	uint8_t *p = wire_requests_put(buf, m), *end;
	uint32_t length = 0;

	cr_assert_leq(p - buf, WIRE_REQUESTS_BOUND);
	for (uint32_t i = 0; i < m->ncalls; i++) {
		size_t bound = wire_call_bound(&calls[i].call);

		end = wire_call_put(p, &calls[i].call);
		cr_assert_leq((size_t)(end - p), bound, "seed %u", seed);
		if (!calls[i].call.bulks.n)
			CHECK(bound, WIRE_CALL_BOUND +
					     view_length(calls[i].call.trace));
		p = end;
		length += calls[i].call.length;
	}
	return put_bodies(buf, p, length, WIRE_REQUESTS, m, hdr_data, bodies,
			  checksum);
}

static void try_requests(struct call *calls, uint32_t ncalls)
{
	static uint8_t buf[BUFFER];
	Ulrpc__Wire__Requests pb = ULRPC__WIRE__REQUESTS__INIT;
	Ulrpc__Wire__Call *pb_calls[WIRE_CALLS_MAX];
	struct wire_requests m = {
		.connection = number(),
		.client = number(),
		.acked = number(),
		.epoch = number32(),
		.ncalls = ncalls,
		.flavour = (uint8_t)below(4),
		.service = below(2) ? number32() : 0,
	};
	uint64_t hdr_data;
	size_t n;

	for (uint32_t i = 0; i < ncalls; i++)
		pb_calls[i] = &calls[i].pb;
	n = put_requests(buf, &m, calls, &hdr_data, &pb.bodies, &pb.checksum);
	m.checked = pb.checksum;
	pb.connection = m.connection;
	pb.client = m.client;
	pb.acked = m.acked;
	pb.epoch = m.epoch;
	pb.flavour = m.flavour;
	pb.service = m.service;
	pb.n_call = ncalls;
	pb.call = pb_calls;
	check_theirs(&pb.base, buf, n);
	check_requests(buf, n, hdr_data, &m, calls);
}

Test(wire_random, requests)
{
	struct call *calls = calloc(CALLS + 1, sizeof(*calls));
	/* the last one of the message before */
	struct call *last = &calls[CALLS];

	begin();
	BUG_ON(!calls);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint32_t n = below(CALLS + 1);

		for (uint32_t i = 0; i < n; i++)
			make_call(&calls[i],
				  below(2) ? i ? &calls[i - 1] : last : NULL,
				  below(2) ? 0 : below(BULKS + 1),
				  below(SEGMENTS));
		try_requests(calls, n);
		if (n)
			last->call = calls[n - 1].call;
	}
	free(calls);
}

Test(wire_random, longest_tables)
{
	struct call *call = calloc(1, sizeof(*call));

	begin();
	BUG_ON(!call);
	make_call(call, NULL, ULRPC_BULKS_MAX, ULRPC_SEGMENTS_MAX);
	for (uint32_t i = 1; i < ULRPC_BULKS_MAX; i++)
		make_bulk(&call->bulk[i], &call->segments[i],
			  ULRPC_SEGMENTS_MAX);
	try_requests(call, 1);
	free(call);
}

Test(wire_random, most_calls)
{
	struct call *calls = calloc(WIRE_CALLS_MAX, sizeof(*calls));

	begin();
	BUG_ON(!calls);
	for (uint32_t i = 0; i < WIRE_CALLS_MAX; i++)
		make_call(&calls[i], NULL, 0, 0);
	try_requests(calls, WIRE_CALLS_MAX);
	free(calls);
}

/* ---- replies ---- */

struct reply {
	uint32_t checksum[ULRPC_BULKS_MAX][ULRPC_SEGMENTS_MAX];
	uint32_t length[ULRPC_BULKS_MAX][ULRPC_SEGMENTS_MAX];
	uint8_t seals[ULRPC_BULKS_MAX][ULRPC_SEGMENTS_MAX * WIRE_SEAL];
	struct wire_moved moved[ULRPC_BULKS_MAX];
	Ulrpc__Wire__Moved pb_moved[ULRPC_BULKS_MAX];
	Ulrpc__Wire__Moved *pb_bulk[ULRPC_BULKS_MAX];
	struct wire_reply reply;
	Ulrpc__Wire__Reply pb;
};

static void make_moved(struct reply *r, uint32_t i, uint32_t n)
{
	r->moved[i] = (struct wire_moved){
		.index = number32(),
		.n = n,
		.checksum = r->checksum[i],
		.length = below(2) ? r->length[i] : NULL,
		.seals = make_seals(r->seals[i], n),
	};
	if (view_length(r->moved[i].seals) && below(2))
		r->moved[i].checksum = NULL;
	for (uint32_t k = 0; k < n; k++) {
		r->checksum[i][k] = number32();
		r->length[i][k] = number32();
	}
	ulrpc__wire__moved__init(&r->pb_moved[i]);
	r->pb_moved[i].index = r->moved[i].index;
	r->pb_moved[i].n_checksum = r->moved[i].checksum ? n : 0;
	r->pb_moved[i].seals.len = view_length(r->moved[i].seals);
	r->pb_moved[i].seals.data = r->seals[i];
	r->pb_moved[i].checksum = r->checksum[i];
	r->pb_moved[i].n_length = r->moved[i].length ? n : 0;
	r->pb_moved[i].length = r->length[i];
	r->pb_bulk[i] = &r->pb_moved[i];
}

static void make_reply(struct reply *r, uint32_t nbulks, uint32_t segments)
{
	r->reply = (struct wire_reply){
		.xid = number(),
		.queue = number(),
		.service = number(),
		.retry_after = number(),
		.throttled = number(),
		.attempt = number32(),
		.status = number32(),
		.error = number32(),
		.length = below(BODY),
		.needed = number32(),
		.absent = number(),
		.held = number(),
		.unexecuted = below(2),
		.checksum = below(2) ? wire_checksum(number32()) : 0,
		.bulks = { .n = nbulks, .list = r->moved },
	};
	for (uint32_t i = 0; i < nbulks; i++)
		make_moved(r, i, segments);
	ulrpc__wire__reply__init(&r->pb);
	r->pb.xid = r->reply.xid;
	r->pb.queue = r->reply.queue;
	r->pb.service = r->reply.service;
	r->pb.retry_after = r->reply.retry_after;
	r->pb.throttled = r->reply.throttled;
	r->pb.attempt = r->reply.attempt;
	r->pb.status = r->reply.status;
	r->pb.error = r->reply.error;
	r->pb.length = r->reply.length;
	r->pb.needed = r->reply.needed;
	r->pb.absent = r->reply.absent;
	r->pb.held = r->reply.held;
	r->pb.unexecuted = r->reply.unexecuted;
	r->pb.checksum = r->reply.checksum;
	r->pb.n_bulk = nbulks;
	r->pb.bulk = r->pb_bulk;
}

static void check_reply(const struct wire_reply *got, const struct reply *r)
{
	uint32_t numbers[ULRPC_SEGMENTS_MAX];
	const struct wire_reply *want = &r->reply;
	struct wire_view bulks = got->bulks.view;
	struct wire_moved_in m;

	CHECK(got->xid, want->xid);
	CHECK(got->queue, want->queue);
	CHECK(got->service, want->service);
	CHECK(got->retry_after, want->retry_after);
	CHECK(got->throttled, want->throttled);
	CHECK(got->attempt, want->attempt);
	CHECK(got->status, want->status);
	CHECK(got->error, want->error);
	CHECK(got->length, want->length);
	CHECK(got->needed, want->needed);
	CHECK(got->absent, want->absent);
	CHECK(got->held, want->held);
	CHECK(got->unexecuted, want->unexecuted);
	CHECK(got->checksum, want->checksum);
	CHECK(got->bulks.n, want->bulks.n);
	for (uint32_t i = 0; i < want->bulks.n; i++) {
		cr_assert(wire_moved_next(&bulks, &m), "seed %u", seed);
		CHECK(m.index, r->moved[i].index);
		CHECK(m.n, r->moved[i].n);
		check_seals(m.seals, r->moved[i].seals);
		wire_moved_checksums(&m, numbers);
		if (r->moved[i].checksum)
			cr_assert_eq(
				memcmp(numbers, r->checksum[i], NUMBERS(m.n)),
				0, "seed %u", seed);
		CHECK(m.has_lengths, m.n && r->moved[i].length);
		if (!m.has_lengths)
			continue;
		wire_moved_lengths(&m, numbers);
		cr_assert_eq(memcmp(numbers, r->length[i], NUMBERS(m.n)), 0,
			     "seed %u", seed);
	}
	cr_assert_not(wire_moved_next(&bulks, &m), "seed %u", seed);
}

static void check_replies(const uint8_t *bytes, size_t n, uint64_t hdr_data,
			  const struct wire_replies *want,
			  const struct reply *replies)
{
	uint8_t *copy = exactly(bytes, n);
	struct wire_reply reply[WIRE_CALLS_MAX];
	const uint8_t *body = copy + (uint16_t)(hdr_data >> 32);
	struct wire_replies got;
	int rc;

	rc = wire_replies_decode(&got, reply, hdr_data, copy, n);
	cr_assert_eq(rc, 0, "seed %u: %d", seed, rc);
	CHECK(got.client, want->client);
	CHECK(got.epoch, want->epoch);
	CHECK(got.window, want->window);
	CHECK(got.estimate, want->estimate);
	CHECK(got.checked, want->checked);
	CHECK(got.nreplies, want->nreplies);
	for (uint32_t i = 0; i < want->nreplies; i++) {
		check_reply(&reply[i], &replies[i]);
		cr_assert_eq(reply[i].body, body, "seed %u", seed);
		body += reply[i].length;
	}
	cr_assert_eq(body, copy + n, "seed %u", seed);
	free(copy);
}

static void try_replies(struct reply *replies, uint32_t nreplies)
{
	static const struct wire_requests no_marks = { 0 };
	static uint8_t buf[BUFFER];
	Ulrpc__Wire__Replies pb = ULRPC__WIRE__REPLIES__INIT;
	Ulrpc__Wire__Reply *pb_replies[WIRE_CALLS_MAX];
	struct wire_replies m = {
		.client = number(),
		.epoch = number32(),
		.window = number32(),
		.estimate = number(),
		.nreplies = nreplies,
	};
	uint8_t *p = wire_replies_put(buf, &m), *end;
	uint32_t length = 0;
	uint64_t hdr_data;
	size_t n;

	cr_assert_leq(p - buf, WIRE_REPLIES_BOUND);
	for (uint32_t i = 0; i < nreplies; i++) {
		size_t bound = wire_reply_bound(&replies[i].reply);

		end = wire_reply_put(p, &replies[i].reply);
		cr_assert_leq((size_t)(end - p), bound, "seed %u", seed);
		if (!replies[i].reply.bulks.n)
			CHECK(bound, WIRE_REPLY_BOUND);
		p = end;
		length += replies[i].reply.length;
		pb_replies[i] = &replies[i].pb;
	}
	end = wire_estimate_put(p, m.estimate);
	cr_assert_leq(end - p, 11);
	n = put_bodies(buf, end, length, WIRE_REPLIES, &no_marks, &hdr_data,
		       &pb.bodies, &pb.checksum);
	m.checked = pb.checksum;
	pb.client = m.client;
	pb.epoch = m.epoch;
	pb.window = m.window;
	pb.estimate = m.estimate;
	pb.n_reply = nreplies;
	pb.reply = pb_replies;
	check_theirs(&pb.base, buf, n);
	check_replies(buf, n, hdr_data, &m, replies);
}

Test(wire_random, replies)
{
	struct reply *replies = calloc(WIRE_CALLS_MAX, sizeof(*replies));

	begin();
	BUG_ON(!replies);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint32_t n = below(CALLS + 1);

		for (uint32_t i = 0; i < n; i++)
			make_reply(&replies[i], below(2) ? 0 : below(BULKS + 1),
				   below(SEGMENTS));
		try_replies(replies, n);
	}
	for (uint32_t i = 0; i < WIRE_CALLS_MAX; i++)
		make_reply(&replies[i], 0, 0);
	try_replies(replies, WIRE_CALLS_MAX);
	make_reply(&replies[0], ULRPC_BULKS_MAX, ULRPC_SEGMENTS_MAX);
	try_replies(replies, 1);
	free(replies);
}
