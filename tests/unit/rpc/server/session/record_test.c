/* SPDX-License-Identifier: BSD-3-Clause */
/* The state table of record.h, line by line, and when replies and bodies are
 * released. */
#include <criterion/criterion.h>
#include <string.h>

#include "rpc/server/session/record.h"

#define NOW  UINT64_C(1000)
#define LATE UINT64_C(2000)

static struct records rs;
static struct quotas quotas;
static struct ulnet_nid nid;
static unsigned int given_up, forgotten, let_go, bodies_let_go;
static int noted;	 /* slots that have been counted by on_noted() */
static const void *last; /* what the latest callback was called for */

static void on_give_up(struct ulrpc_request *r)
{
	given_up++;
	last = r;
}

static void on_forget(struct ulrpc_request *r)
{
	forgotten++;
	last = r;
}

static void on_let_go(struct record_reply *reply)
{
	let_go++;
	last = reply;
	memset(reply, 0xff, sizeof(*reply));
}

static void on_body_let_go(struct record_body *body)
{
	bodies_let_go++;
	last = body;
	cr_assert_null(body->of);
	memset(body, 0xff, sizeof(*body));
}

static void on_noted(struct records *of, int slots)
{
	cr_assert_eq(of->ops->noted, on_noted);
	noted += slots;
}

static const struct record_ops ops = { on_noted, on_give_up, on_forget,
				       on_let_go, on_body_let_go };

static void begin(uint32_t chunks)
{
	given_up = forgotten = let_go = bodies_let_go = 0;
	last = NULL;
	quotas_init(&quotas, "chunks", chunks, 1);
	records_init(&rs, &ops, &quotas);
}

static void end(void)
{
	records_fini(&rs);
	cr_assert_eq(rs.used, 0);
	cr_assert_eq(rs.kept, 0);
	cr_assert_eq(quotas.used, 0);
	cr_assert_eq(noted, 0);
	quotas_fini(&quotas);
}

static enum record_past look(uint32_t slot, uint64_t xid, uint32_t attempt,
			     uint32_t flags)
{
	struct wire_call c = {
		.xid = xid, .slot = slot, .attempt = attempt, .flags = flags
	};
	struct record *rec = NULL;
	enum record_past past = record_look(&rs, &c, &nid, NOW, &rec);

	if (past == RECORD_COPY || past >= RECORD_BEYOND) {
		cr_assert_null(rec);
		return past;
	}
	cr_assert_eq(rec, record_find(&rs, slot));
	cr_assert_eq(rec->xid, xid);
	cr_assert_eq(rec->attempt, attempt);
	return past;
}

/* Returns a pointer that stands for request @n; only its address matters. */
static struct ulrpc_request *request(uint64_t n)
{
	static char requests[8192];

	return (struct ulrpc_request *)&requests[n];
}

/* Makes the first attempt of a call, and brings its record to @state. */
static void call_is(uint32_t slot, uint64_t xid, enum record_state state,
		    struct record_reply *reply)
{
	struct record *rec;

	cr_assert_eq(look(slot, xid, 0, 0), RECORD_NEW);
	rec = record_find(&rs, slot);
	if (state == RECORD_NONE)
		return;
	record_begin(rec, request(xid));
	if (state == RECORD_ACTIVE)
		return;
	if (state == RECORD_KEPT)
		record_keep(&rs, rec, reply);
	else
		record_end(rec, state);
	cr_assert_eq(rec->state, state);
}

/* Each line of the table. The same attempt once more is always a copy. */
Test(record, table)
{
	static const struct {
		enum record_state state;
		uint32_t flags;
		enum record_past past;
		enum record_state then;
	} lines[] = {
		{ RECORD_NONE, 0, RECORD_NEW, RECORD_NONE },
		{ RECORD_NONE, WIRE_CALL_RESENT, RECORD_REPEATED, RECORD_NONE },
		{ RECORD_NONE, WIRE_CALL_QUERY, RECORD_UNKNOWN, RECORD_NONE },
		{ RECORD_DONE, 0, RECORD_REPEATED, RECORD_DONE },
		{ RECORD_DONE, WIRE_CALL_RESENT, RECORD_REPEATED, RECORD_DONE },
		{ RECORD_DONE, WIRE_CALL_QUERY, RECORD_UNKNOWN, RECORD_DONE },
		{ RECORD_LOST, 0, RECORD_DOUBTFUL, RECORD_LOST },
		{ RECORD_LOST, WIRE_CALL_RESENT, RECORD_DOUBTFUL, RECORD_LOST },
		{ RECORD_LOST, WIRE_CALL_QUERY, RECORD_DOUBTFUL, RECORD_LOST },
		{ RECORD_STALLED, 0, RECORD_HOPELESS, RECORD_STALLED },
		{ RECORD_STALLED, WIRE_CALL_RESENT, RECORD_HOPELESS,
		  RECORD_STALLED },
		{ RECORD_STALLED, WIRE_CALL_QUERY, RECORD_HOPELESS,
		  RECORD_STALLED },
		{ RECORD_KEPT, 0, RECORD_ANSWERED, RECORD_KEPT },
		{ RECORD_KEPT, WIRE_CALL_RESENT, RECORD_ANSWERED, RECORD_KEPT },
		{ RECORD_KEPT, WIRE_CALL_QUERY, RECORD_ANSWERED, RECORD_KEPT },
		{ RECORD_ACTIVE, 0, RECORD_AGAIN, RECORD_ACTIVE },
		{ RECORD_ACTIVE, WIRE_CALL_RESENT, RECORD_AGAIN,
		  RECORD_ACTIVE },
		{ RECORD_ACTIVE, WIRE_CALL_QUERY, RECORD_AGAIN, RECORD_ACTIVE },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(lines); i++) {
		struct record_reply reply = { 0 };
		struct record *rec;

		begin(4);
		call_is(7, 5, lines[i].state, &reply);
		rec = record_find(&rs, 7);
		cr_assert_eq(look(7, 5, 0, lines[i].flags), RECORD_COPY);
		cr_assert_eq(rec->state, lines[i].state);
		cr_assert_eq(look(7, 5, 3, lines[i].flags), lines[i].past,
			     "line %u", i);
		cr_assert_eq(rec->state, lines[i].then, "line %u", i);
		/* This attempt has been noted: it and all before it are copies.
		 */
		for (uint32_t attempt = 0; attempt <= 3; attempt++)
			cr_assert_eq(look(7, 5, attempt, 0), RECORD_COPY);
		/* Older calls are copies, whatever their attempt. */
		cr_assert_eq(look(7, 4, 9, lines[i].flags), RECORD_COPY);
		cr_assert_eq(rec->xid, 5);
		cr_assert_eq(given_up + let_go, 0);
		end();
		cr_assert_eq(forgotten, lines[i].state == RECORD_ACTIVE);
		cr_assert_eq(let_go, lines[i].state == RECORD_KEPT);
	}
}

/* The next call in a slot ends the one before. */
Test(record, slot_is_used_again)
{
	for (enum record_state s = 0; s < RECORD_STATES; s++) {
		struct record_reply reply = { 0 };

		begin(4);
		call_is(7, 5, s, &reply);
		cr_assert_eq(look(7, 6, 0, 0), RECORD_NEW);
		cr_assert_eq(record_find(&rs, 7)->state, RECORD_NONE);
		cr_assert_eq(given_up, s == RECORD_ACTIVE);
		cr_assert_eq(let_go, s == RECORD_KEPT);
		if (s == RECORD_ACTIVE)
			cr_assert_eq(last, request(5));
		cr_assert_eq(look(7, 5, 9, 0), RECORD_COPY);
		end();
		cr_assert_eq(given_up, s == RECORD_ACTIVE);
	}
}

/* The first message of a call is not its first attempt. */
Test(record, first_message_is_no_first_attempt)
{
	begin(4);
	/* A query overtakes the attempt that it asks about, which is then a
	 * copy. */
	cr_assert_eq(look(0, 1, 1, WIRE_CALL_QUERY), RECORD_UNKNOWN);
	cr_assert_eq(look(0, 1, 0, 0), RECORD_COPY);
	cr_assert_eq(look(0, 1, 2, 0), RECORD_NEW);
	/* Another server may have executed the call. */
	cr_assert_eq(look(1, 2, 1, WIRE_CALL_RESENT), RECORD_REPEATED);
	cr_assert_eq(look(2, 3, 5, 0), RECORD_NEW);
	cr_assert_eq(look(2, 3, 4, 0), RECORD_COPY);
	end();
}

Test(record, acknowledged)
{
	struct record_reply reply = { 0 };

	begin(4);
	records_acked(&rs, 10);
	cr_assert_eq(look(0, 10, 0, 0), RECORD_COPY);
	cr_assert_eq(look(0, 11, 0, 0), RECORD_NEW);
	records_acked(&rs, 9); /* an acknowledgement that comes late */
	cr_assert_eq(look(1, 10, 0, 0), RECORD_COPY);
	call_is(2, 12, RECORD_KEPT, &reply);
	records_acked(&rs, 12);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(look(2, 12, 1, 0), RECORD_COPY);
	/* The next call uses the record again; the reply is not released twice.
	 */
	cr_assert_eq(look(2, 13, 0, 0), RECORD_NEW);
	cr_assert_eq(let_go, 1);
	records_acked(&rs, UINT64_MAX);
	cr_assert_eq(look(3, UINT64_MAX, 0, 0), RECORD_COPY);
	end();
}

/* A call is acknowledged by its client before it is answered. */
Test(record, acknowledged_before_it_is_answered)
{
	struct record_reply reply = { 0 };
	struct record *rec;

	begin(4);
	call_is(0, 1, RECORD_ACTIVE, NULL);
	records_acked(&rs, 1);
	rec = record_find(&rs, 0);
	record_keep(&rs, rec, &reply);
	cr_assert_eq(look(0, 1, 1, 0), RECORD_COPY);
	cr_assert_eq(let_go, 0);
	records_acked(&rs, 1);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(look(0, 2, 0, 0), RECORD_NEW);
	end();
	cr_assert_eq(let_go, 1);
}

/* A message with several replies is released with the last of them. */
Test(record, messages_are_let_go_once)
{
	struct record_reply m[2] = { { .keeps = 0 } };

	begin(4);
	for (uint32_t i = 0; i < 4; i++)
		call_is(i, 10 + i, RECORD_KEPT, &m[i / 2]);
	cr_assert_eq(m[0].keeps, 2);
	cr_assert_eq(m[0].last, 11);
	cr_assert_eq(rs.kept, 2);
	/* One message by the next calls in its slots, ... */
	cr_assert_eq(look(2, 20, 0, 0), RECORD_NEW);
	cr_assert_eq(let_go, 0);
	cr_assert_eq(look(3, 21, 0, 0), RECORD_NEW);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(last, &m[1]);
	/* ... the other by acknowledgements and a slot. */
	records_acked(&rs, 10);
	cr_assert_eq(look(0, 22, 0, 0), RECORD_NEW);
	cr_assert_eq(look(1, 11, 1, 0), RECORD_ANSWERED);
	records_acked(&rs, 11);
	cr_assert_eq(let_go, 2);
	cr_assert_eq(last, &m[0]);
	cr_assert_eq(rs.kept, 0);
	end();
	cr_assert_eq(let_go, 2);
}

/* While one call takes long nothing after it is acknowledged. The other slots
 * are used again, and that releases their replies. */
Test(record, one_slow_call)
{
	static struct record_reply m[5000];

	begin(64);
	call_is(0, 1, RECORD_ACTIVE, NULL);
	for (uint64_t xid = 2; xid < 5000; xid++) {
		uint32_t slot = 1 + (uint32_t)(xid % (RECORD_SLOTS - 1));

		call_is(slot, xid, RECORD_KEPT, &m[xid]);
		cr_assert_leq(rs.kept, RECORD_SLOTS - 1);
	}
	cr_assert_eq(given_up, 0);
	cr_assert_eq(record_find(&rs, 0)->request, request(1));
	cr_assert_eq(rs.used, RECORD_CHUNKS);
	end();
}

Test(record, beyond_the_grant)
{
	begin(64);
	cr_assert_eq(look(RECORD_SLOTS, 1, 0, 0), RECORD_BEYOND);
	cr_assert_eq(look(UINT32_MAX, 1, 0, 0), RECORD_BEYOND);
	cr_assert_eq(look(0, 0, 0, 0), RECORD_BEYOND);
	cr_assert_eq(rs.used, 0);
	/* Slots far apart, of which each needs a chunk of its own, up to the
	 * limit. */
	for (uint32_t i = 0; i < 3 * RECORD_SLOTS; i += RECORD_CHUNK - 1) {
		bool there = i < RECORD_SLOTS;

		cr_assert_eq(look(i, UINT64_MAX - i, 0, 0),
			     there ? RECORD_NEW : RECORD_BEYOND);
	}
	cr_assert_eq(look(RECORD_SLOTS - 1, 1, 0, 0), RECORD_NEW);
	cr_assert_eq(rs.used, RECORD_CHUNKS);
	cr_assert_eq(quotas.used, RECORD_CHUNKS);
	cr_assert_eq(noted, RECORD_SLOTS);
	end();
}

/* A host that is alone may have only a share of all chunks; calls beyond that
 * cannot be noted, while another host has its own share. */
Test(record, share_of_the_host)
{
	struct ulnet_nid mine = nid;
	struct records other;
	struct record *rec;
	struct wire_call c = { .xid = 1 };

	begin(4);
	call_is(0, 1, RECORD_NONE, NULL);
	call_is(RECORD_CHUNK, 2, RECORD_NONE, NULL);
	call_is(2 * RECORD_CHUNK, 3, RECORD_NONE, NULL);
	cr_assert_eq(look(3 * RECORD_CHUNK, 4, 0, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(1, 4, 0, 0), RECORD_NEW);
	nid.addr[0]++;
	records_init(&other, &ops, &quotas);
	cr_assert_eq(record_look(&other, &c, &nid, NOW, &rec), RECORD_NEW);
	records_fini(&other);
	nid = mine;
	/* Chunks that are given back can be had again. */
	records_acked(&rs, 3);
	records_trim(&rs, NOW);
	cr_assert_eq(rs.used, 1);
	cr_assert_eq(look(3 * RECORD_CHUNK, 5, 0, 0), RECORD_NEW);
	end();
}

/* A call that there was no room for stays refused when a copy of it comes, even
 * if there is room then; only a later attempt is new. */
Test(record, copies_of_what_had_no_room)
{
	begin(0);
	cr_assert_eq(look(1, 8, 0, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(3, 9, 0, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(1, 8, 1, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(1, 8, 2, WIRE_CALL_QUERY), RECORD_NO_ROOM);
	quotas.max = 4;
	for (uint32_t attempt = 0; attempt <= 2; attempt++)
		cr_assert_eq(look(1, 8, attempt, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(3, 9, 0, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(1, 8, 3, 0), RECORD_NEW);
	cr_assert_eq(look(1, 8, 2, 0), RECORD_COPY);
	cr_assert_eq(look(3, 9, 3, WIRE_CALL_QUERY), RECORD_UNKNOWN);
	cr_assert_eq(look(3, 9, 4, 0), RECORD_NEW);
	/* A call with a greater number cannot be a copy. */
	cr_assert_eq(look(4, 10, 0, 0), RECORD_NEW);
	cr_assert_eq(look(4, 9, 5, 0), RECORD_COPY);
	/* When all these calls are acknowledged no trace of them is left. */
	records_acked(&rs, 10);
	cr_assert_eq(look(5, 11, 0, 0), RECORD_NEW);
	cr_assert_eq(look(RECORD_CHUNK, 12, 0, 0), RECORD_NEW);
	cr_assert_eq(record_find(&rs, RECORD_CHUNK + 1)->xid, 0);
	/* After so many attempts there can be no later one. */
	quotas.max = quotas.used;
	cr_assert_eq(look(3 * RECORD_CHUNK, 20, UINT16_MAX, 0), RECORD_NO_ROOM);
	quotas.max = 8;
	cr_assert_eq(look(3 * RECORD_CHUNK, 20, UINT32_MAX, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(3 * RECORD_CHUNK, 21, 0, 0), RECORD_NEW);
	end();
}

/* The chunk of a call that was refused goes, unless another call needs it; then
 * copies of all of its calls stay refused. */
Test(record, spared)
{
	begin(8);
	call_is(1, 8, RECORD_NONE, NULL);
	call_is(2, 9, RECORD_ACTIVE, NULL);
	records_spare(&rs, 1);
	cr_assert_eq(rs.used, 1);
	record_end(record_find(&rs, 2), RECORD_DONE);
	records_spare(&rs, 1);
	cr_assert_eq(rs.used, 1);
	call_is(RECORD_CHUNK + 1, 10, RECORD_NONE, NULL);
	cr_assert_eq(look(RECORD_CHUNK + 1, 10, 1, 0), RECORD_NEW);
	call_is(RECORD_CHUNK + 2, 11, RECORD_NONE, NULL);
	records_spare(&rs, RECORD_CHUNK + 2);
	cr_assert_eq(rs.used, 1);
	records_spare(&rs, RECORD_CHUNK + 2);
	records_spare(&rs, RECORD_SLOTS);
	cr_assert_eq(rs.used, 1);
	for (uint32_t attempt = 0; attempt < 2; attempt++) {
		cr_assert_eq(look(RECORD_CHUNK + 1, 10, attempt, 0),
			     RECORD_NO_ROOM);
		cr_assert_eq(look(RECORD_CHUNK + 2, 11, attempt, 0),
			     RECORD_NO_ROOM);
	}
	/* What was refused only because it may be a copy takes nothing. */
	records_spare(&rs, RECORD_CHUNK + 1);
	cr_assert_eq(rs.used, 1);
	cr_assert_eq(look(RECORD_CHUNK + 1, 10, 2, 0), RECORD_NEW);
	cr_assert_eq(look(RECORD_CHUNK + 2, 12, 0, 0), RECORD_NEW);
	end();
}

Test(record, trimmed)
{
	struct record_reply soon = { .until = NOW }, later = { .until = LATE };

	begin(64);
	call_is(0, 1, RECORD_KEPT, &soon);
	call_is(1, 2, RECORD_KEPT, &later);
	call_is(RECORD_CHUNK, 3, RECORD_ACTIVE, NULL);
	call_is(2 * RECORD_CHUNK, 4, RECORD_ACTIVE, NULL);
	/* A reply is released when its caller's deadline is over. */
	records_trim(&rs, NOW);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(last, &soon);
	cr_assert_eq(look(0, 1, 1, 0), RECORD_DOUBTFUL);
	cr_assert_eq(look(1, 2, 1, 0), RECORD_ANSWERED);
	cr_assert_eq(rs.used, 3);
	/* A call that is acknowledged while it is being served is given up. */
	records_acked(&rs, 3);
	cr_assert_eq(let_go, 2);
	cr_assert_eq(given_up, 0);
	records_trim(&rs, NOW);
	cr_assert_eq(given_up, 0, "once at a time");
	records_trim(&rs, NOW + 1);
	cr_assert_eq(given_up, 1);
	cr_assert_eq(last, request(3));
	cr_assert_eq(rs.used, 1);
	/* Calls noted in a chunk that has been freed are still copies. */
	cr_assert_eq(look(1, 2, 9, 0), RECORD_COPY);
	cr_assert_eq(look(RECORD_CHUNK, 3, 9, 0), RECORD_COPY);
	end();
	cr_assert_eq(forgotten, 1);
}

static bool is(const struct record_reply *reply, void *arg)
{
	return reply == arg;
}

static struct record_reply *none(const struct record_reply *reply, void *arg)
{
	(void)reply;
	(void)arg;
	return NULL;
}

static struct record_reply *heir_of(const struct record_reply *reply, void *arg)
{
	static struct record_reply heir;

	(void)arg;
	heir = (struct record_reply){ .keeps = reply->keeps,
				      .last = reply->last,
				      .until = reply->until };
	return &heir;
}

/* ... another message takes its place, among those that are let go first, and
 * is let go when the last of its calls is acknowledged. */
Test(record, replies_that_a_service_leaves)
{
	struct record_reply m[2] = { { .until = LATE }, { .until = LATE } };
	const struct record_reply *heir;

	begin(4);
	for (uint32_t i = 0; i < 4; i++)
		call_is(i, 10 + i, RECORD_KEPT, &m[i / 2]);
	records_lose(&rs, is, heir_of, &m[0]);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(last, &m[0]);
	cr_assert_eq(rs.kept, 2);
	heir = record_find(&rs, 0)->reply;
	cr_assert_eq(record_find(&rs, 1)->reply, heir);
	cr_assert_neq(heir, &m[0]);
	cr_assert_eq(look(0, 10, 1, 0), RECORD_ANSWERED);
	records_acked(&rs, 10);
	cr_assert_eq(let_go, 1);
	records_acked(&rs, 11);
	cr_assert_eq(let_go, 2);
	cr_assert_eq(last, heir);
	cr_assert_eq(look(2, 12, 1, 0), RECORD_ANSWERED);
	end();
	cr_assert_eq(let_go, 3);
}

/* The service of a kept reply stops. */
Test(record, replies_of_a_service_that_stops)
{
	struct record_reply m[2] = { { .keeps = 0 } };

	begin(4);
	for (uint32_t i = 0; i < 4; i++)
		call_is(i, 10 + i, RECORD_KEPT, &m[i % 2]);
	records_acked(&rs, 10);
	records_lose(&rs, is, none, &m[0]);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(last, &m[0]);
	cr_assert_eq(look(2, 12, 1, 0), RECORD_DOUBTFUL);
	cr_assert_eq(look(1, 11, 1, 0), RECORD_ANSWERED);
	cr_assert_eq(look(0, 20, 0, 0), RECORD_NEW);
	end();
	cr_assert_eq(let_go, 2);
}

/* ---- bodies of long replies ---- */

static void body_is(uint32_t slot, uint64_t xid, struct record_reply *reply,
		    struct record_body *body)
{
	call_is(slot, xid, RECORD_ACTIVE, NULL);
	*body = (struct record_body){ .of = NULL };
	record_body_add(&rs, record_find(&rs, slot), body);
	record_keep(&rs, record_find(&rs, slot), reply);
}

/* Acknowledgements release bodies in the order of call numbers, even if the
 * calls came in another order, and if the message of the reply stays for other
 * replies in it. */
Test(record, bodies_acknowledged)
{
	struct record_reply m = { .keeps = 0 };
	struct record_body b[4];

	begin(4);
	body_is(0, 13, &m, &b[3]);
	body_is(1, 11, &m, &b[1]);
	body_is(2, 12, &m, &b[2]);
	body_is(3, 10, &m, &b[0]);
	for (uint64_t xid = 10; xid < 13; xid++) {
		records_acked(&rs, xid);
		cr_assert_eq(bodies_let_go, xid - 9);
		cr_assert_eq(last, &b[xid - 10]);
		cr_assert_eq(let_go, 0);
	}
	end();
	cr_assert_eq(bodies_let_go, 4);
	cr_assert_eq(let_go, 1);
}

/* A body is released by the next call in its slot, by record_drop(), and after
 * its caller's deadline. */
Test(record, bodies_with_their_replies)
{
	struct record_reply m[3] = { { .until = LATE },
				     { .until = LATE },
				     { .until = NOW } };
	struct record_body b[3];

	begin(4);
	for (uint32_t i = 0; i < 3; i++)
		body_is(i, 10 + i, &m[i], &b[i]);
	cr_assert_eq(look(0, 10, 1, 0), RECORD_ANSWERED);
	cr_assert_eq(bodies_let_go, 0);
	cr_assert_eq(look(0, 20, 0, 0), RECORD_NEW);
	cr_assert_eq(bodies_let_go, 1);
	record_drop(&rs, record_find(&rs, 1));
	cr_assert_eq(bodies_let_go, 2);
	records_trim(&rs, NOW);
	cr_assert_eq(bodies_let_go, 3);
	cr_assert_eq(let_go, 3);
	cr_assert_eq(look(1, 11, 1, 0), RECORD_DOUBTFUL);
	end();
	cr_assert_eq(bodies_let_go, 3);
}

/* A body is removed by its owner: then the reply is released, too. */
Test(record, bodies_removed_by_their_owner)
{
	static const enum record_past pasts[] = { RECORD_REPEATED,
						  RECORD_DOUBTFUL };
	struct record_reply m[2] = { { .until = LATE }, { .until = LATE } };
	struct record_body b[2];

	begin(4);
	for (uint32_t i = 0; i < 2; i++) {
		body_is(i, 10 + i, &m[i], &b[i]);
		record_body_remove(&rs, &b[i], i ? RECORD_LOST : RECORD_DONE);
		cr_assert_null(b[i].of);
		cr_assert_eq(let_go, i + 1);
		cr_assert_eq(look(i, 10 + i, 1, 0), pasts[i]);
	}
	end();
	cr_assert_eq(bodies_let_go, 0);
}
