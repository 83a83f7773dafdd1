/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of record.h, line by line, and what is let go when. */
#include <criterion/criterion.h>
#include <string.h>

#include "rpc/server/session/record.h"

#define NOW  UINT64_C(1000)
#define LATE UINT64_C(2000)

static struct records rs;
static struct quotas quotas;
static struct ulnet_nid nid;
static unsigned int given_up, forgotten, let_go, bodies_let_go;
static int noted;	 /* slots */
static const void *last; /* of what the owner was told of */

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

/* Only the address of it matters. */
static struct ulrpc_request *request(uint64_t n)
{
	static char requests[8192];

	return (struct ulrpc_request *)&requests[n];
}

/* A call that has come to this state, by its first attempt. */
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

/* Each line of the table; what the same attempt finds, is a copy always. */
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
		/* ... which was noted. */
		for (uint32_t attempt = 0; attempt <= 3; attempt++)
			cr_assert_eq(look(7, 5, attempt, 0), RECORD_COPY);
		/* Older calls are late, whatever their attempt. */
		cr_assert_eq(look(7, 4, 9, lines[i].flags), RECORD_COPY);
		cr_assert_eq(rec->xid, 5);
		cr_assert_eq(given_up + let_go, 0);
		end();
		cr_assert_eq(forgotten, lines[i].state == RECORD_ACTIVE);
		cr_assert_eq(let_go, lines[i].state == RECORD_KEPT);
	}
}

/* The next call of the slot: the one before is over for its client. */
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

/* A first word of a call, that is not its first attempt. */
Test(record, what_comes_first)
{
	begin(4);
	/* The query overtakes what it asks for, which is a copy then. */
	cr_assert_eq(look(0, 1, 1, WIRE_CALL_QUERY), RECORD_UNKNOWN);
	cr_assert_eq(look(0, 1, 0, 0), RECORD_COPY);
	cr_assert_eq(look(0, 1, 2, 0), RECORD_NEW);
	/* Another server may have executed it. */
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
	records_acked(&rs, 9); /* came late */
	cr_assert_eq(look(1, 10, 0, 0), RECORD_COPY);
	call_is(2, 12, RECORD_KEPT, &reply);
	records_acked(&rs, 12);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(look(2, 12, 1, 0), RECORD_COPY);
	/* Its record is used again, and its reply is not touched. */
	cr_assert_eq(look(2, 13, 0, 0), RECORD_NEW);
	cr_assert_eq(let_go, 1);
	records_acked(&rs, UINT64_MAX);
	cr_assert_eq(look(3, UINT64_MAX, 0, 0), RECORD_COPY);
	end();
}

/* Answered after its client has said that it is over. */
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

/* Several replies of one message: the last one that is asked for matters. */
Test(record, messages_are_let_go_once)
{
	struct record_reply m[2] = { { .keeps = 0 } };

	begin(4);
	for (uint32_t i = 0; i < 4; i++)
		call_is(i, 10 + i, RECORD_KEPT, &m[i / 2]);
	cr_assert_eq(m[0].keeps, 2);
	cr_assert_eq(m[0].last, 11);
	cr_assert_eq(rs.kept, 2);
	/* One by its slot, ... */
	cr_assert_eq(look(2, 20, 0, 0), RECORD_NEW);
	cr_assert_eq(let_go, 0);
	cr_assert_eq(look(3, 21, 0, 0), RECORD_NEW);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(last, &m[1]);
	/* ... the other by slot and acknowledgement. */
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

/* While one call takes long, nothing is acknowledged beyond it; the slots of
 * the others come round, and their replies go. */
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
	/* Far apart: as many chunks as there are, and no more. */
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

/* A host has its share of chunks, half of all there are if alone; what cannot
 * be noted, is not, and another host has its own. */
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
	/* What is given back can be had. */
	records_acked(&rs, 3);
	records_trim(&rs, NOW);
	cr_assert_eq(rs.used, 1);
	cr_assert_eq(look(3 * RECORD_CHUNK, 5, 0, 0), RECORD_NEW);
	end();
}

/* What there was no room for does not become new by coming once more, when
 * there is room. */
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
	/* A later call can be no copy. */
	cr_assert_eq(look(4, 10, 0, 0), RECORD_NEW);
	cr_assert_eq(look(4, 9, 5, 0), RECORD_COPY);
	/* When all these are over, nothing is left of it. */
	records_acked(&rs, 10);
	cr_assert_eq(look(5, 11, 0, 0), RECORD_NEW);
	cr_assert_eq(look(RECORD_CHUNK, 12, 0, 0), RECORD_NEW);
	cr_assert_eq(record_find(&rs, RECORD_CHUNK + 1)->xid, 0);
	/* Of so many attempts there is no other one. */
	quotas.max = quotas.used;
	cr_assert_eq(look(3 * RECORD_CHUNK, 20, UINT16_MAX, 0), RECORD_NO_ROOM);
	quotas.max = 8;
	cr_assert_eq(look(3 * RECORD_CHUNK, 20, UINT32_MAX, 0), RECORD_NO_ROOM);
	cr_assert_eq(look(3 * RECORD_CHUNK, 21, 0, 0), RECORD_NEW);
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
	/* Nobody asks for a reply after its caller's time. */
	records_trim(&rs, NOW);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(last, &soon);
	cr_assert_eq(look(0, 1, 1, 0), RECORD_DOUBTFUL);
	cr_assert_eq(look(1, 2, 1, 0), RECORD_ANSWERED);
	cr_assert_eq(rs.used, 3);
	/* What is over for the client, but still being served, is given up. */
	records_acked(&rs, 3);
	cr_assert_eq(let_go, 2);
	cr_assert_eq(given_up, 0);
	records_trim(&rs, NOW);
	cr_assert_eq(given_up, 0, "once at a time");
	records_trim(&rs, NOW + 1);
	cr_assert_eq(given_up, 1);
	cr_assert_eq(last, request(3));
	cr_assert_eq(rs.used, 1);
	/* Nothing that was noted there is new for that. */
	cr_assert_eq(look(1, 2, 9, 0), RECORD_COPY);
	cr_assert_eq(look(RECORD_CHUNK, 3, 9, 0), RECORD_COPY);
	end();
	cr_assert_eq(forgotten, 1);
}

static bool is(const struct record_reply *reply, void *arg)
{
	return reply == arg;
}

/* The service of a reply ends. */
Test(record, lost)
{
	struct record_reply m[2] = { { .keeps = 0 } };

	begin(4);
	for (uint32_t i = 0; i < 4; i++)
		call_is(i, 10 + i, RECORD_KEPT, &m[i % 2]);
	records_acked(&rs, 10);
	records_lose(&rs, is, &m[0]);
	cr_assert_eq(let_go, 1);
	cr_assert_eq(last, &m[0]);
	cr_assert_eq(look(2, 12, 1, 0), RECORD_DOUBTFUL);
	cr_assert_eq(look(1, 11, 1, 0), RECORD_ANSWERED);
	cr_assert_eq(look(0, 20, 0, 0), RECORD_NEW);
	end();
	cr_assert_eq(let_go, 2);
}

/* ---- bodies apart ---- */

static void body_is(uint32_t slot, uint64_t xid, struct record_reply *reply,
		    struct record_body *body)
{
	call_is(slot, xid, RECORD_ACTIVE, NULL);
	*body = (struct record_body){ .of = NULL };
	record_body_add(&rs, record_find(&rs, slot), body);
	record_keep(&rs, record_find(&rs, slot), reply);
}

/* By acknowledgement, exactly, though they came in another order, and though
 * the message of a reply stays for another one's sake. */
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

/* By the next call in the slot, when nobody asks for the reply any more, and
 * when its caller has no time left. */
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

/* It goes by itself: then the reply is of no use, either. */
Test(record, bodies_that_are_gone)
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
