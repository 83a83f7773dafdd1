/* SPDX-License-Identifier: BSD-3-Clause */
/* A server whose replies are wrong. Calls of the same node to an honest server
 * must go on meanwhile. */
#include <sys/resource.h>

#include "base/crc32c.h"
#include "rpc/slab.h"
#include "rpc/wire/wire_put.h"
#include "tests/unit/rpc/client/hostile_server.h"

static uint8_t bytes[1 << 20];

static void reply_put(const struct arrived *a, uint64_t hdr_data,
		      const void *payload, size_t length)
{
	fake_put(g.fake, a->local, (struct ulnet_id){ a->source, a->pid },
		 ULRPC_PORTAL_REPLY, a->match, hdr_data, payload, length);
}

/* Encodes @reply as a correct message for @a into bytes[], and sets *@head to
 * the length of its head. Returns the length of the message. */
static size_t pack(const struct arrived *a, const struct wire_reply *reply,
		   const void *body, size_t *head)
{
	struct wire_replies m = { .client = a->client, .epoch = a->epoch };
	uint8_t *p = wire_replies_put(bytes, &m);

	p = wire_reply_put(p, reply);
	p = wire_bodies_put(p, reply->length);
	*head = (size_t)(p - bytes);
	if (reply->length)
		memcpy(p, body, reply->length);
	return *head + reply->length;
}

static struct wire_reply reply_to(const struct arrived *a)
{
	return (struct wire_reply){ .xid = a->xid,
				    .attempt = a->attempt,
				    .length = 5 };
}

static void send_reply(const struct arrived *a, const struct wire_reply *r,
		       const void *body)
{
	size_t head, length = pack(a, r, body, &head);

	reply_put(a, wire_hdr_data(WIRE_REPLIES, bytes, head), bytes, length);
}

/* Makes a call that is not answered. Returns it as it has arrived. */
static struct arrived *pending(uint64_t us)
{
	g.fake->mute_calls = true;
	call(&g, &n, us);
	run(&g, 5 * MSEC);
	cr_assert_gt(g.fake->ncalls, 0);
	return &g.fake->calls[(g.fake->ncalls - 1) % CALLS_SEEN];
}

static struct arrived *pending_with(const struct ulrpc_call_conf *conf)
{
	g.fake->mute_calls = true;
	call_with(&g, &n, conf, "hello", 5);
	run(&g, 5 * MSEC);
	return &g.fake->calls[(g.fake->ncalls - 1) % CALLS_SEEN];
}

/* ---- replies that are not well-formed ---- */

/* The client drops a reply with wrong header data if the request had several
 * calls: it cannot know whose reply it is. */
Test(hostile_reply, header_data_changed)
{
	struct wire_reply r;
	struct arrived *a;
	size_t head, length;

	open_rig();
	g.fake->mute_calls = true;
	call(&g, &many[0], 10000000);
	call(&g, &many[1], 10000000);
	run(&g, 5 * MSEC);
	a = &g.fake->calls[0];
	r = reply_to(a);
	length = pack(a, &r, "hello", &head);
	for (unsigned int bit = 0; bit < 64; bit++)
		reply_put(a,
			  wire_hdr_data(WIRE_REPLIES, bytes, head) ^
				  UINT64_C(1) << bit,
			  bytes, length);
	for (size_t cut = 0; cut < length; cut++)
		reply_put(a, wire_hdr_data(WIRE_REPLIES, bytes, head), bytes,
			  cut);
	run(&g, 10 * MSEC);
	cr_assert_eq(unreadable(), 64 + length);
	cr_assert_eq(many[0].ended + many[1].ended, 0);
	honest();
	fake_echo(g.fake, &g.fake->calls[1]);
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 10 * MSEC);
	ended_well(&many[0]);
	ended_well(&many[1]);
	close_rig();
}

/* The head of a reply was damaged on its way: the server is asked for the reply
 * at once, and the call neither fails nor waits for its time-out. The reply to
 * that may be damaged, too: then the server is not asked without a pause. */
Test(hostile_reply, is_asked_for_again)
{
	struct wire_reply r;
	struct arrived *a;
	size_t head, length;
	unsigned int asked;

	open_rig();
	g.fake->mute_queries = true;
	a = pending(10000000);
	r = reply_to(a);
	length = pack(a, &r, "hello", &head);
	asked = g.fake->nqueries;
	reply_put(a, wire_hdr_data(WIRE_REPLIES, bytes, head) ^ 1, bytes,
		  length);
	run(&g, 5 * MSEC);
	cr_assert_eq(counted(RPC_STAT_replies_damaged), 1);
	cr_assert_eq(g.fake->nqueries, asked + 1);
	cr_assert_eq(n.ended, 0);
	a = &g.fake->queries[asked % CALLS_SEEN];
	reply_put(a, wire_hdr_data(WIRE_REPLIES, bytes, head) ^ 1, bytes,
		  length);
	run(&g, 5 * MSEC);
	cr_assert_eq(counted(RPC_STAT_replies_damaged), 2);
	cr_assert_eq(g.fake->nqueries, asked + 1);
	cr_assert_eq(n.ended, 0);
	r = reply_to(a);
	send_reply(a, &r, "hello");
	run(&g, 10 * MSEC);
	ended_well(&n);
	close_rig();
}

/* The header data fit the message, in which one byte is changed or which is cut
 * short. If the request had a single call, that ends once, or goes on waiting.
 */
Test(hostile_reply, any_byte_changed_or_missing)
{
	static const uint8_t by[] = { 1, 2, 4, 8, 16, 32, 64, 128, 255 };
	size_t head, length = 1;

	open_rig();
	for (size_t i = 0; i < (ARRAY_SIZE(by) + 1) * length; i++) {
		struct arrived *a = pending(200000);
		struct wire_reply r = reply_to(a);
		size_t cut, at = i % length;

		r.queue = 7;
		r.retry_after = 9;
		r.error = 5;
		cut = length = pack(a, &r, "hello", &head);
		if (i / length < ARRAY_SIZE(by))
			bytes[at] ^= by[i / length];
		else
			cut = at;
		reply_put(a, wire_hdr_data(WIRE_REPLIES, bytes, MIN(head, cut)),
			  bytes, cut);
		run(&g, 300 * MSEC);
		cr_assert_eq(n.ended, 1);
		ulrpc_call_put(n.call);
		/* The changed reply may have said that the connection is lost.
		 */
		if (import_state_of(&g) != IMPORT_FULL)
			run(&g, 60 * SEC);
	}
	close_rig();
}

/* The call fails with the text, of @length bytes. */
static void fails_with(const char *text, size_t length)
{
	struct arrived *a = pending(1000000);

	fake_answer(g.fake, a, WIRE_FAILED, text, length);
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(n.outcome.cause, ULRPC_CAUSE_HANDLER);
	ulrpc_call_put(n.call);
}

/* The text of an error is cut to its maximum, between two characters. What is
 * not UTF-8 is replaced, and so is a 0; control characters are not. */
Test(hostile_reply, text_of_a_failure)
{
	static const char odd[] = "\t\x1b[2J\0\r\n\x7f\xc2\x9b \xe2\x98\xba "
				  "\xff\xc3 \xed\xa0\x80 \xf0\x9f\x98";
	char text[1000];

	open_rig();
	memset(text, 27, sizeof(text));
	fails_with(text, sizeof(text));
	cr_assert_eq(strspn(n.outcome.text, "\x1b"), ULRPC_TEXT_MAX - 1);
	cr_assert_eq(strlen(n.outcome.text), ULRPC_TEXT_MAX - 1);
	memcpy(text + ULRPC_TEXT_MAX - 3, "\xe2\x98\xba", 3);
	fails_with(text, sizeof(text));
	cr_assert_eq(strlen(n.outcome.text), ULRPC_TEXT_MAX - 3);
	fails_with(odd, sizeof(odd) - 1);
	cr_assert_str_eq(n.outcome.text,
			 "\t\x1b[2J?\r\n\x7f\xc2\x9b \xe2\x98\xba ?? ??? ???");
	fails_with("", 0);
	cr_assert_str_eq(n.outcome.text, "");
	close_rig();
}

/* ---- replies to other calls ---- */

/* Another node sends a reply that is correct otherwise. */
Test(hostile_reply, of_another_peer)
{
	struct arrived *a;
	uint64_t before;

	open_rig();
	a = pending(1000000);
	before = counted(RPC_STAT_replies_received);
	for (unsigned int i = 0; i < 100; i++)
		fake_answer(good.fake, a, WIRE_OK, "wrong", 5);
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 0);
	cr_assert_eq(counted(RPC_STAT_replies_received), before);
	fake_echo(g.fake, a);
	run(&g, 10 * MSEC);
	ended_well(&n);
	close_rig();
}

Test(hostile_reply, in_any_order_and_again)
{
	open_rig();
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		call(&g, &many[i], 10000000);
	run(&g, 10 * MSEC);
	cr_assert_eq(g.fake->ncalls, ARRAY_SIZE(many));
	for (unsigned int i = ARRAY_SIZE(many); i--;) {
		unsigned int k = i * 37 % ARRAY_SIZE(many);

		for (unsigned int j = 0; j < 3; j++)
			fake_echo(g.fake, &g.fake->calls[k]);
	}
	run(&g, 10 * MSEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		ended_well(&many[i]);
	close_rig();
}

/* The server sends more replies to unknown calls than the buffers have room
 * for, before it sends the reply. */
Test(hostile_reply, floods)
{
	struct arrived *a;

	open_rig();
	a = pending(30000000);
	for (unsigned int i = 0; i < 5000; i++) {
		struct arrived junk = *a;

		junk.xid += 1 + i;
		fake_answer(g.fake, &junk, WIRE_OK, "junk", 4);
		if (i % 50 == 0)
			run(&g, MSEC);
	}
	honest();
	cr_assert_eq(n.ended, 0);
	fake_echo(g.fake, a);
	run(&g, 10 * MSEC);
	ended_well(&n);
	close_rig();
}

/* ---- odd values in replies ---- */

Test(hostile_reply, statuses_of_later_versions)
{
	static const uint32_t statuses[] = {
		15, WIRE_STATUSES, 100, 4095, 65536, INT32_MAX, UINT32_MAX
	};

	open_rig();
	for (unsigned int i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct arrived *a = pending(1000000);
		struct wire_reply r = reply_to(a);

		r.status = statuses[i];
		send_reply(a, &r, "later");
		run(&g, 10 * MSEC);
		ended_by(&n, ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTION_UNKNOWN);
		cr_assert_eq(n.length, 0);
	}
	close_rig();
}

/* The server says that it holds a reply: of length 0, without a match value,
 * one that is too long, one that is not there, or one that is shorter than it
 * says. */
Test(hostile_reply, held)
{
	const struct {
		uint64_t held;
		uint32_t needed;
		enum ulrpc_cause cause;
	} cases[] = {
		{ 0x4711, 0, ULRPC_CAUSE_BAD_REPLY },
		{ 0, 5000, ULRPC_CAUSE_BAD_REPLY },
		{ 0x4711, ULRPC_BODY_MAX + 1, ULRPC_CAUSE_TOO_LONG },
		{ 0x4711, UINT32_MAX, ULRPC_CAUSE_TOO_LONG },
		{ 0x4711, 5000, ULRPC_CAUSE_DEADLINE },
		{ 0x4712, 5000, ULRPC_CAUSE_BAD_REPLY },
	};
	static char shorter[4999];
	struct ulnet_md md =
		md_of(shorter, sizeof(shorter),
		      LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE,
		      NULL);

	open_rig();
	g.rpc->conf.reply_bytes_max = ULRPC_BODY_MAX;
	post_md(g.fake->node, ULRPC_PORTAL_BULK, 0x4712, &md);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arrived *a = pending(1000000);
		struct wire_reply r = reply_to(a);

		r.status = WIRE_HELD;
		r.held = cases[i].held;
		r.needed = cases[i].needed;
		send_reply(a, &r, "later");
		send_reply(a, &r, "twice");
		run(&g,
		    cases[i].cause == ULRPC_CAUSE_DEADLINE ? SEC : 10 * MSEC);
		ended_by(&n, cases[i].cause, ULRPC_EXECUTED);
		cr_assert_eq(n.length, 0);
	}
	close_rig();
}

/* The server holds more than it was told that the caller takes. */
Test(hostile_reply, held_beyond_the_limit)
{
	struct ulrpc_call_conf conf = within(60000000);
	struct arrived *a;
	struct wire_reply r;

	open_rig();
	conf.reply_limit = ULRPC_BODY_MAX;
	a = pending_with(&conf);
	r = reply_to(a);
	r.status = WIRE_HELD;
	r.held = 0x4711;
	r.needed = ULRPC_BODY_MAX + 1;
	send_reply(a, &r, "later");
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_TOO_LONG, ULRPC_EXECUTED);
	cr_assert_eq(n.outcome.reply_needed, ULRPC_BODY_MAX + 1);
	close_rig();
}

#if !SLAB_IS_MALLOC && !defined(__SANITIZE_THREAD__)
/* A reply for which there is no memory ends its call with its size, and no
 * other one. */
Test(hostile_reply, held_and_without_memory)
{
	struct rlimit usual, low;
	struct arrived *a;
	struct wire_reply r;

	open_rig();
	a = pending(60000000);
	r = reply_to(a);
	r.status = WIRE_HELD;
	r.held = 0x4715;
	r.needed = ULRPC_REPLY_MAX;
	cr_assert_eq(getrlimit(RLIMIT_AS, &usual), 0);
	low = (struct rlimit){ MIN(UINT64_C(4) << 30, usual.rlim_max),
			       usual.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_AS, &low), 0);
	send_reply(a, &r, "later");
	run(&g, 100 * MSEC);
	cr_assert_eq(setrlimit(RLIMIT_AS, &usual), 0);
	ended_by(&n, ULRPC_CAUSE_NO_MEMORY, ULRPC_EXECUTED);
	cr_assert_eq(n.outcome.reply_needed, ULRPC_REPLY_MAX);
	cr_assert_str_eq(n.outcome.text,
			 "the reply has 4294967295 bytes, and the caller's "
			 "process gets no memory for it");
	cr_assert_eq(g.rpc->shards[0].imports->reply_room.used, 0);
	close_rig();
}
#endif

/* A reply of two pieces is never what the server has said it is: it is got
 * again after pauses that grow, although each piece comes at once. */
Test(hostile_reply, held_in_pieces_and_damaged)
{
	static char body[ULRPC_BODY_MAX + 1];
	struct ulnet_md md =
		md_of(body, sizeof(body),
		      LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE,
		      NULL);
	struct ulrpc_call_conf conf = within(2000000);
	struct wire_reply r;
	struct arrived *a;

	open_rig();
	post_md(g.fake->node, ULRPC_PORTAL_BULK, 0x4713, &md);
	conf.reply_limit = sizeof(body);
	g.fake->mute_calls = true;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, 5 * MSEC);
	a = &g.fake->calls[(g.fake->ncalls - 1) % CALLS_SEEN];
	r = reply_to(a);
	r.status = WIRE_HELD;
	r.held = 0x4713;
	r.needed = sizeof(body);
	r.checksum = wire_checksum(~crc32c(0, body, sizeof(body)));
	send_reply(a, &r, "later");
	run(&g, SEC);
	cr_assert_geq(counted(RPC_STAT_replies_damaged), 4);
	cr_assert_leq(counted(RPC_STAT_replies_damaged), 30);
	run(&g, SEC);
	ended_by(&n, ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTED);
	close_rig();
}

/* A server that says that it holds long replies, and does not give them, takes
 * up its share of the client's memory, and no more: its own further replies
 * wait, and what others hold comes. */
Test(hostile_reply, held_and_not_given)
{
	static uint8_t body[100000];
	const uint32_t length = 1 << 20;
	struct ulnet_md md =
		md_of(body, sizeof(body),
		      LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE,
		      NULL);
	struct ulrpc_call_conf conf = within(5000000);
	struct reply_room *room;
	struct arrived *a;
	struct wire_reply r;
	struct note m;

	open_rig();
	room = &g.rpc->shards[0].imports->reply_room;
	room->max = 3 * length;
	post_md(good.fake->node, ULRPC_PORTAL_BULK, 0x4714, &md);
	conf.reply_limit = 3 * length;
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < 10; i++)
		call_with(&g, &many[i], &conf, "hello", 5);
	run(&g, 5 * MSEC);
	for (unsigned int i = 0; i < 10; i++) {
		r = reply_to(&g.fake->calls[i]);
		r.status = WIRE_HELD;
		r.held = 0x4711;
		r.needed = i ? length : 2 * length;
		send_reply(&g.fake->calls[i], &r, "later");
	}
	run(&g, 5 * MSEC);
	cr_assert_eq(room->used, 2 * length);
	cr_assert_eq(counted(RPC_STAT_fetches_queued), 9);
	/* the honest one holds a reply, too */
	good.fake->mute_calls = true;
	call_with(&good, &m, &conf, "hello", 5);
	run(&g, 5 * MSEC);
	a = &good.fake->calls[(good.fake->ncalls - 1) % CALLS_SEEN];
	good.fake->mute_calls = false;
	r = reply_to(a);
	r.status = WIRE_HELD;
	r.held = 0x4714;
	r.needed = sizeof(body);
	{
		struct wire_replies w = { .client = a->client,
					  .epoch = a->epoch };
		uint8_t *p = wire_replies_put(bytes, &w);
		size_t head;

		r.length = 0;
		p = wire_reply_put(p, &r);
		head = (size_t)(p - bytes);
		fake_put(good.fake, a->local,
			 (struct ulnet_id){ a->source, a->pid },
			 ULRPC_PORTAL_REPLY, a->match,
			 wire_hdr_data(WIRE_REPLIES, bytes, head), bytes, head);
	}
	run(&g, 100 * MSEC);
	ended_by(&m, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(m.length, sizeof(body));
	cr_assert_leq(room->used, room->max);
	run(&g, 5 * SEC);
	for (unsigned int i = 0; i < 10; i++)
		ended_by(&many[i], ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTED);
	g.fake->mute_calls = false;
	run(&g, SEC);
	cr_assert_eq(room->used, 0);
	close_rig();
}

Test(hostile_reply, values_that_cannot_be)
{
	struct wire_reply r;
	struct arrived *a;

	open_rig();
	/* a successful reply with impossible times, an errno, and a length that
	 * the body does not have */
	a = pending(1000000);
	r = reply_to(a);
	r.queue = r.service = r.retry_after = r.throttled = UINT64_MAX;
	r.needed = r.error = UINT32_MAX;
	send_reply(a, &r, "hello");
	run(&g, 10 * MSEC);
	ended_well(&n);
	for (unsigned int i = 0; i < 4; i++) {
		a = pending(1000000);
		r = reply_to(a);
		r.status = WIRE_FAILED;
		r.error = (uint32_t[]){ 0, 4096, UINT32_MAX, EDOM }[i];
		send_reply(a, &r, "extra");
		run(&g, 10 * MSEC);
		ended_by(&n, ULRPC_CAUSE_HANDLER, ULRPC_EXECUTED);
		cr_assert_eq(n.outcome.status, i == 3 ? -EDOM : -EIO);
		cr_assert_eq(n.length, 0);
	}
	close_rig();
}

/* The body is longer than the call has room for, but the buffer, which is for
 * several replies, has room. */
Test(hostile_reply, longer_than_asked_for)
{
	struct ulrpc_call_conf conf = within(1000000);
	static uint8_t body[900000];
	struct wire_reply r;
	struct arrived *a;

	open_rig();
	g.fake->mute_calls = true;
	conf.reply_max = 10;
	call_with(&g, &many[0], &conf, "hello", 5);
	conf.reply_max = 50000;
	call_with(&g, &many[1], &conf, "hello", 5);
	run(&g, 5 * MSEC);
	a = &g.fake->calls[0];
	r = reply_to(a);
	r.length = 11;
	send_reply(a, &r, body);
	run(&g, 10 * MSEC);
	ended_by(&many[0], ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTED);
	/* A body that is longer than the buffer is dropped by LNet. */
	a = &g.fake->calls[1];
	r = reply_to(a);
	r.length = 900000;
	send_reply(a, &r, body);
	r.length = 5000;
	send_reply(a, &r, body);
	run(&g, 10 * MSEC);
	ended_by(&many[1], ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(many[1].length, 5000);
	close_rig();
}

/* ---- replies that say that other bulk was moved than was lent ---- */

static struct arrived *pending_bulk(struct ulrpc_bulk *bulk)
{
	struct ulrpc_call_conf conf = within(1000000);

	conf.bulks = &bulk;
	conf.nbulks = 1;
	return pending_with(&conf);
}

Test(hostile_reply, moved_what_there_is_not)
{
	static uint32_t some[300];
	static char memory[100];
	const struct {
		struct wire_moved moved;
		enum ulrpc_cause cause;
	} cases[] = {
		/* The memory has 100 bytes in one segment, of which none was
		 * moved: @some cannot be its checksum. */
		{ { .n = 1, .checksum = some }, ULRPC_CAUSE_CHECKSUM },
		{ { .index = 1, .n = 1, .checksum = some },
		  ULRPC_CAUSE_BAD_REPLY },
		{ { .index = UINT32_MAX, .n = 1, .checksum = some },
		  ULRPC_CAUSE_BAD_REPLY },
		{ { .n = 2, .checksum = some }, ULRPC_CAUSE_BAD_REPLY },
		{ { .n = 256, .checksum = some }, ULRPC_CAUSE_BAD_REPLY },
		{ { .n = 1, .checksum = some, .length = (uint32_t[]){ 101 } },
		  ULRPC_CAUSE_BAD_REPLY },
		{ { .n = 1,
		    .checksum = some,
		    .length = (uint32_t[]){ UINT32_MAX } },
		  ULRPC_CAUSE_BAD_REPLY },
	};
	struct iovec iov = { memory, sizeof(memory) };
	struct ulrpc_bulk_conf conf = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SINK,
					.flags = ULRPC_BULK_CHECKSUM };
	struct wire_reply r;
	struct arrived *a;

	open_rig();
	memset(some, 0x5a, sizeof(some));
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulrpc_bulk *bulk;

		cr_assert_eq(ulrpc_bulk_new(g.rpc, &conf, &bulk), 0);
		a = pending_bulk(bulk);
		r = reply_to(a);
		r.bulks.n = 1;
		r.bulks.list = &cases[i].moved;
		send_reply(a, &r, "hello");
		run(&g, 10 * MSEC);
		cr_assert_eq(n.ended, 1, "case %u", i);
		cr_assert_eq(n.outcome.cause, cases[i].cause, "case %u: %s", i,
			     ulrpc_cause_name(n.outcome.cause));
		ulrpc_call_put(n.call);
		ulrpc_bulk_close(bulk, NULL, NULL);
	}
	/* This call has no bulk. */
	a = pending(1000000);
	r = reply_to(a);
	r.bulks.n = 1;
	r.bulks.list = &cases[0].moved;
	send_reply(a, &r, "hello");
	run(&g, 10 * MSEC);
	ended_by(&n, ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTED);
	close_rig();
}

/* The server sends no checksums of a sink that needs them, so nothing proves
 * what has arrived. */
Test(hostile_reply, moved_without_checksums)
{
	static char memory[100];
	struct iovec iov = { memory, sizeof(memory) };
	struct ulrpc_bulk_conf conf = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SINK,
					.flags = ULRPC_BULK_CHECKSUM };
	struct ulrpc_bulk *bulk;
	struct wire_reply r;
	struct arrived *a;

	open_rig();
	cr_assert_eq(ulrpc_bulk_new(g.rpc, &conf, &bulk), 0);
	a = pending_bulk(bulk);
	put_bytes(g.fake->node, nth_id(CLIENT), ULRPC_PORTAL_BULK,
		  a->bulk_match, "unproven", 8);
	run(&g, MSEC);
	cr_assert_eq(memcmp(memory, "unproven", 8), 0);
	r = reply_to(a);
	send_reply(a, &r, "hello");
	run(&g, 10 * MSEC);
	ended_by(&n, ULRPC_CAUSE_CHECKSUM, ULRPC_EXECUTED);
	ulrpc_bulk_close(bulk, NULL, NULL);
	close_rig();
}

/* ---- the same answer for ever ---- */

Test(hostile_reply, not_connected_for_ever)
{
	open_rig();
	g.fake->call_status = WIRE_NOT_CONNECTED;
	refused_for_ever(ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	close_rig();
}

Test(hostile_reply, stale_for_ever)
{
	open_rig();
	g.fake->call_status = WIRE_STALE_EPOCH;
	refused_for_ever(ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	close_rig();
}

Test(hostile_reply, no_service_for_ever)
{
	open_rig();
	g.fake->call_status = WIRE_NO_SERVICE;
	refused_for_ever(ULRPC_CAUSE_DEADLINE, ULRPC_NOT_EXECUTED);
	close_rig();
}

Test(hostile_reply, open_not_connected_for_ever)
{
	open_rig();
	g.fake->open_status = WIRE_NOT_CONNECTED;
	refused_for_ever(ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	close_rig();
}

Test(hostile_reply, connect_stale_for_ever)
{
	open_rig();
	g.fake->connect_status = WIRE_STALE_EPOCH;
	refused_for_ever(ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	close_rig();
}

/* A call is sent once if the server asks for a longer pause than the time that
 * the call has. */
Test(hostile_reply, overloaded_for_ever)
{
	open_rig();
	g.fake->call_status = WIRE_OVERLOADED;
	g.fake->retry_after = UINT32_MAX;
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		call(&g, &many[i], 10000000);
		run(&g, 10 * MSEC);
		ended_by(&many[i], ULRPC_CAUSE_OVERLOADED, ULRPC_NOT_EXECUTED);
		cr_assert_eq(many[i].outcome.retry_after, UINT32_MAX);
		cr_assert_eq(many[i].outcome.attempts, 1);
	}
	cr_assert_eq(g.fake->messages, ARRAY_SIZE(many));
	close_rig();
}

/* The client sends the call once; all its other messages are queries and
 * keepalives. */
Test(hostile_reply, never_answered)
{
	open_rig();
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		call(&g, &many[i], 50000000);
	run(&g, SEC);
	cr_assert_leq(sent_in(48), 48 / 10 + 1);
	run(&g, 2 * SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		ended_by(&many[i], ULRPC_CAUSE_DEADLINE,
			 ULRPC_EXECUTION_UNKNOWN);
		cr_assert_eq(many[i].outcome.retries, 0);
	}
	/* After that, calls are served. */
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		fake_echo(g.fake, &g.fake->calls[i]);
	run(&g, 10 * MSEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		cr_assert_eq(many[i].ended, 1);
	close_rig();
}
