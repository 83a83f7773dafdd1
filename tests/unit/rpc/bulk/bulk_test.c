/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulks of callers. The test plays the server by raw PUTs and GETs. */
#include <criterion/criterion.h>
#include "base/crc32c.h"
#include "rpc/bulk/bulk.h"
#include "rpc/wire/wire_put.h"
#include "tests/unit/rpc/bulk/bulk_rig.h"

static struct ulrpc_bulk *bulk_of(struct rig *g, const struct memory *m,
				  enum ulrpc_bulk_access access, uint32_t flags,
				  uint32_t segment)
{
	struct ulrpc_bulk_conf conf = { .iov = m->iov,
					.niov = m->niov,
					.access = access,
					.flags = flags,
					.segment = segment };
	struct ulrpc_bulk *b;

	cr_assert_eq(ulrpc_bulk_new(&g->rpc[CALLER], &conf, &b), 0);
	cr_assert_eq(ulrpc_bulk_length(b), m->length);
	return b;
}

static struct wire_segments attach(struct rig *g, struct ulrpc_bulk *b)
{
	struct wire_segments s;

	cr_assert_eq(
		bulk_attach(b, &g->shard[CALLER], nth_id(SERVER), NULL, &s), 0);
	return s;
}

/* Sends one PUT or GET of the server; @seen records its events. */
static void server_moves(struct rig *g, bool put, void *bytes, uint32_t length,
			 uint64_t match, uint32_t offset, struct seen *seen)
{
	struct ulnet_md umd = md_of(bytes, length, 0, seen);
	struct ulnet_md_handle md;

	seen->n = 0;
	umd.threshold = 2;
	umd.timeout = 1000000;
	md = bind_md(g->rpc[SERVER].node, &umd);
	if (put)
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ,
				     nth_id(CALLER), ULRPC_PORTAL_BULK, match,
				     offset, 0),
			     0);
	else
		cr_assert_eq(LNetGet(LNET_NID_ANY, md, nth_id(CALLER),
				     ULRPC_PORTAL_BULK, match, offset),
			     0);
}

/* Returns the type of the event that answered the message; LNET_EVENT_UNLINK if
 * no answer came. */
static int answer(const struct seen *seen)
{
	for (unsigned int i = 0; i < seen->n; i++)
		if (seen->ev[i].type != LNET_EVENT_SEND)
			return (int)seen->ev[i].type;
	return 0;
}

/* Sends a PUT or GET of the server, and waits for the answer. Returns the type
 * of its event. */
static int answer_to(struct rig *g, bool put, void *bytes, uint32_t length,
		     uint64_t match, uint32_t offset)
{
	struct seen seen;

	server_moves(g, put, bytes, length, match, offset, &seen);
	lnet_sim_run_all(g->sim);
	return answer(&seen);
}

static void note(void *arg)
{
	++*(unsigned int *)arg;
}

static void release_idle(struct rig *g, struct ulrpc_bulk *b)
{
	unsigned int released = 0;

	bulk_release(b);
	lnet_sim_run_all(g->sim);
	ulrpc_bulk_close(b, note, &released);
	cr_assert_eq(released, 1);
}

/* ---- making bulks ---- */

Test(bulk, bad_arguments)
{
	static uint8_t byte;
	struct iovec v = { &byte, 1 }, no = { NULL, 1 };
	struct iovec big = { &byte, (size_t)ULRPC_BULK_MAX + 1 };
	const struct {
		struct ulrpc_bulk_conf conf;
		int rc;
	} cases[] = {
		{ { &v, 1, 0, 0, 0 }, -EINVAL },
		{ { &v, 1, 3, 0, 0 }, -EINVAL },
		{ { &v, 1, ULRPC_BULK_SINK, 2, 0 }, -EINVAL },
		{ { &v, 1, ULRPC_BULK_SINK, 0, LNET_MTU + 1 }, -EINVAL },
		{ { NULL, 1, ULRPC_BULK_SINK, 0, 0 }, -EINVAL },
		{ { &no, 1, ULRPC_BULK_SINK, 0, 0 }, -EINVAL },
		{ { &big, 1, ULRPC_BULK_SINK, 0, 0 }, -EMSGSIZE },
	};
	struct ulrpc_bulk *b = NULL;
	struct rig g;

	rig_init(&g, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(ulrpc_bulk_new(&g.rpc[0], &cases[i].conf, &b),
			     cases[i].rc, "case %u", i);
	cr_assert_null(b);
	rig_fini(&g);
}

/* A bulk has 256 segments at most; their length and their number of fragments
 * are limited, too. */
Test(bulk, as_many_segments_as_may_be)
{
	static uint8_t bytes[257 * 256];
	static struct iovec iov[257 * 256];
	struct ulrpc_bulk_conf conf = { .iov = iov, .access = ULRPC_BULK_SINK };
	struct ulrpc_bulk *b;
	struct rig g;

	rig_init(&g, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = (struct iovec){ bytes + i, 1 };
	conf.niov = 256 * 256;
	cr_assert_eq(ulrpc_bulk_new(&g.rpc[0], &conf, &b), 0);
	ulrpc_bulk_close(b, NULL, NULL);
	conf.niov++;
	cr_assert_eq(ulrpc_bulk_new(&g.rpc[0], &conf, &b), -EMSGSIZE);
	iov[0].iov_len = 1024;
	conf.niov = 1;
	conf.segment = 4;
	cr_assert_eq(ulrpc_bulk_new(&g.rpc[0], &conf, &b), 0);
	ulrpc_bulk_close(b, NULL, NULL);
	iov[0].iov_len++;
	cr_assert_eq(ulrpc_bulk_new(&g.rpc[0], &conf, &b), -EMSGSIZE);
	rig_fini(&g);
}

Test(bulk, empty)
{
	struct rig g;
	struct memory m;
	struct ulrpc_bulk *b;
	struct wire_segments s;

	rig_init(&g, 1);
	m = memory_new(&g, 0, 0);
	b = bulk_of(&g, &m, ULRPC_BULK_SOURCE, ULRPC_BULK_CHECKSUM, 0);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	s = attach(&g, b);
	cr_assert_eq(s.n, 0);
	cr_assert(bulk_idle(b));
	bulk_detach(b);
	cr_assert(bulk_release(b));
	ulrpc_bulk_close(b, NULL, NULL);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* ---- one call at a time ---- */

Test(bulk, one_claim_at_a_time)
{
	unsigned int released = 0;
	struct ulrpc_bulk *b;
	struct memory m;
	struct rig g;

	rig_init(&g, 1);
	m = memory_new(&g, 1000, 100);
	b = bulk_of(&g, &m, ULRPC_BULK_SINK, 0, 100);
	cr_assert_eq(bulk_prepare(b, &g.rpc[SERVER]), -EINVAL);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), -EBUSY);
	cr_assert(bulk_release(b));
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	attach(&g, b);
	cr_assert_not(bulk_idle(b));
	/* The bulk is not idle before its last MD is unlinked. */
	cr_assert_not(bulk_release(b));
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), -EBUSY);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	/* The user closes the bulk while a call has it, and it is linked. */
	attach(&g, b);
	ulrpc_bulk_close(b, note, &released);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(released, 0);
	cr_assert_not(bulk_release(b));
	cr_assert_eq(released, 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(released, 1);
	ulrpc_bulk_close(NULL, note, &released);
	cr_assert_eq(released, 2);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* A call lends twins of a bulk of @access: @most of them at a time. */
static void lend_twins(enum ulrpc_bulk_access access, unsigned int most)
{
	struct ulrpc_bulk *b, *twins[8];
	unsigned int released = 0;
	struct memory m;
	struct rig g;

	rig_init(&g, 1);
	m = memory_new(&g, 1000, 100);
	b = bulk_of(&g, &m, access, 0, 100);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	for (unsigned int i = 0; i < most; i++) {
		cr_assert_eq(bulk_twin(b, &twins[i]), 0);
		cr_assert_eq(bulk_segments(twins[i]), bulk_segments(b));
	}
	cr_assert_eq(bulk_twin(b, &twins[0]), -EBUSY);
	ulrpc_bulk_close(twins[--most], NULL, NULL);
	cr_assert_eq(bulk_twin(b, &twins[most++]), 0);
	/* The bulk is in use until its last twin is gone, which is used after
	 * its user has dropped it. */
	cr_assert(bulk_release(b));
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), -EBUSY);
	cr_assert_eq(bulk_prepare(twins[0], &g.rpc[CALLER]), 0);
	attach(&g, twins[0]);
	for (unsigned int i = 0; i < most; i++)
		ulrpc_bulk_close(twins[i], NULL, NULL);
	cr_assert(bulk_has_twins(b));
	ulrpc_bulk_close(b, note, &released);
	cr_assert_not(bulk_release(twins[0]));
	cr_assert_eq(released, 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(released, 1);
	memory_free(&g, &m);
	rig_fini(&g);
}

Test(bulk, a_source_has_a_few_twins)
{
	lend_twins(ULRPC_BULK_SOURCE, 8);
}

Test(bulk, a_sink_has_one_twin_at_a_time)
{
	lend_twins(ULRPC_BULK_SINK, 1);
}

/* The portal has wildcard entries, so the bulk cannot be linked there. */
Test(bulk, attempt_that_cannot_begin)
{
	struct wire_segments s = { .n = 77 };
	struct ulnet_me_handle me;
	struct ulrpc_bulk *b;
	struct memory m;
	struct rig g;

	rig_init(&g, 1);
	cr_assert_eq(LNetMEAttach(g.rpc[CALLER].node, ULRPC_PORTAL_BULK, ANY_ID,
				  1, 0, LNET_RETAIN, LNET_INS_AFTER, &me),
		     0);
	m = memory_new(&g, 1000, 100);
	b = bulk_of(&g, &m, ULRPC_BULK_SINK, 0, 100);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	cr_assert_eq(bulk_attach(b, &g.shard[CALLER], nth_id(SERVER), NULL, &s),
		     -EPERM);
	cr_assert_eq(s.n, 77);
	cr_assert(bulk_idle(b));
	cr_assert(bulk_release(b));
	ulrpc_bulk_close(b, NULL, NULL);
	LNetMEUnlink(me);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* While the bulk is attached, each message of the server sets *heard to the
 * time of its arrival. */
Test(bulk, heard)
{
	for (unsigned int put = 0; put < 2; put++) {
		static uint8_t bytes[1000];
		struct wire_segments s;
		struct ulrpc_bulk *b;
		uint64_t heard = 0;
		struct memory m;
		struct rig g;

		rig_init(&g, 1);
		lnet_sim_run(g.sim, MSEC);
		m = memory_new(&g, 1000, 0);
		b = bulk_of(&g, &m, put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE,
			    0, 0);
		cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
		cr_assert_eq(bulk_attach(b, &g.shard[CALLER], nth_id(SERVER),
					 &heard, &s),
			     0);
		cr_assert_gt(answer_to(&g, put, bytes, 1000, s.match, 0), 0);
		cr_assert_geq(heard, MSEC);
		heard = 0;
		bulk_detach(b);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(heard, 0);
		release_idle(&g, b);
		memory_free(&g, &m);
		rig_fini(&g);
	}
}

/* ---- the end of an attempt ---- */

/* A message that is landing when the attempt ends may go on landing. Later
 * messages of that attempt may not land, neither in this memory nor after the
 * memory was lent again. */
Test(bulk, memory_is_fenced_after_an_attempt)
{
	static uint8_t bytes[1000];
	unsigned int idle = 0;
	struct wire_segments old, new;
	struct ulrpc_bulk *b;
	struct seen seen;
	struct memory m;
	struct rig g;

	rig_init(&g, 1);
	/* 1000 bytes take 10 ms. */
	cluster_links(g.sim, &(struct ulnet_sim_link){ .bandwidth = 100000 });
	m = memory_new(&g, 1000, 0);
	memory_fill(&m, 1);
	b = bulk_of(&g, &m, ULRPC_BULK_SINK, 0, 0);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	old = attach(&g, b);
	server_moves(&g, true, bytes, 1000, old.match, 0, &seen);
	lnet_sim_run(g.sim, 5 * MSEC);
	bulk_detach(b);
	bulk_detach(b);
	bulk_on_idle(b, note, &idle);
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(idle, 1);
	cr_assert(bulk_idle(b));
	memory_fill(&m, 2);
	new = attach(&g, b);
	cr_assert_neq(old.match >> 8, new.match >> 8);
	cr_assert_eq(answer_to(&g, true, bytes, 1000, old.match, 0),
		     LNET_EVENT_UNLINK);
	cr_assert(memory_is(&m, 0, 1000, 2, 0));
	cr_assert_eq(answer_to(&g, true, bytes, 1000, new.match, 0),
		     LNET_EVENT_ACK);
	cr_assert_not(memory_is(&m, 0, 1000, 2, 0));
	release_idle(&g, b);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* Only the peer of the attempt may access the memory, and only in the direction
 * for which it was lent. */
Test(bulk, only_as_lent)
{
	static uint8_t bytes[1000];
	struct ulnet_id other = nth_id(SERVER);
	struct wire_segments s;
	struct ulrpc_bulk *b;
	struct memory m;
	struct rig g;

	rig_init(&g, 1);
	m = memory_new(&g, 1000, 0);
	memory_fill(&m, 1);
	b = bulk_of(&g, &m, ULRPC_BULK_SOURCE, 0, 0);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	s = attach(&g, b);
	cr_assert_eq(answer_to(&g, true, bytes, 1000, s.match, 0),
		     LNET_EVENT_UNLINK);
	cr_assert_eq(answer_to(&g, false, bytes, 1000, s.match, 1),
		     LNET_EVENT_UNLINK, "beyond its end");
	cr_assert_eq(answer_to(&g, false, bytes, 1000, s.match, 0),
		     LNET_EVENT_REPLY);
	bulk_detach(b);
	lnet_sim_run_all(g.sim);
	other.pid++;
	cr_assert_eq(bulk_attach(b, &g.shard[CALLER], other, NULL, &s), 0);
	cr_assert_eq(answer_to(&g, false, bytes, 1000, s.match, 0),
		     LNET_EVENT_UNLINK);
	cr_assert(memory_is(&m, 0, 1000, 1, 0));
	release_idle(&g, b);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* The server has two NIDs, and loses the one to which the attempt was made.
 * Messages from the other NID must find the memory, if the caller has moved its
 * call to that NID before (@follows: bulk_follow()), or when it hears that NID
 * from the server (bulk_admit()). */
static void loses_nid(bool follows)
{
	static uint8_t bytes[1000];
	const struct ulnet_id here = nth_id(SERVER);
	struct ulnet_id gone = nth_id(SERVER + 1);
	const struct ulnet_nid both[2] = { gone.nid, here.nid };
	struct wire_segments s;
	struct ulrpc_bulk *b;
	struct memory m;
	struct rig g;

	rig_init(&g, 1);
	cr_assert_eq(lnet_peer_add(g.rpc[CALLER].node, both, 2, true), 0);
	m = memory_new(&g, 1000, 100);
	memory_fill(&m, 1);
	b = bulk_of(&g, &m, ULRPC_BULK_SOURCE, 0, 0);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	cr_assert_eq(bulk_attach(b, &g.shard[CALLER], gone, NULL, &s), 0);
	cr_assert_eq(answer_to(&g, false, bytes, 1000, s.match, 0),
		     LNET_EVENT_REPLY);
	if (follows)
		bulk_follow(b, here);
	else
		bulk_admit(b, here);
	cr_assert_eq(answer_to(&g, false, bytes, 1000, s.match, 0),
		     LNET_EVENT_REPLY);
	cr_assert_eq(lnet_peer_del(g.rpc[CALLER].node, &gone.nid, NULL, 0), 0);
	if (!follows) {
		cr_assert_eq(answer_to(&g, false, bytes, 1000, s.match, 0),
			     LNET_EVENT_UNLINK);
		bulk_admit(b, here);
	}
	cr_assert_eq(answer_to(&g, false, bytes, 1000, s.match, 0),
		     LNET_EVENT_REPLY);
	release_idle(&g, b);
	memory_free(&g, &m);
	rig_fini(&g);
}

Test(bulk, nid_is_lost_that_was_left_before)
{
	loses_nid(true);
}

Test(bulk, nid_is_lost_and_another_one_heard_of)
{
	loses_nid(false);
}

Test(bulk, crash)
{
	unsigned int released = 0;
	struct ulrpc_bulk *b, *open;
	struct memory m;
	struct rig g;

	rig_init(&g, 1);
	m = memory_new(&g, 1000, 100);
	b = bulk_of(&g, &m, ULRPC_BULK_SINK, 0, 100);
	open = bulk_of(&g, &m, ULRPC_BULK_SINK, 0, 100);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	cr_assert_eq(bulk_prepare(open, &g.rpc[CALLER]), 0);
	attach(&g, b);
	attach(&g, open);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_not(bulk_release(b));
	ulrpc_bulk_close(b, note, &released);
	cr_assert_eq(lnet_sim_crash(g.sim, CALLER), 0);
	cr_assert_eq(released, 1);
	cr_assert(bulk_release(open));
	ulrpc_bulk_close(open, NULL, NULL);
	memory_free(&g, &m);
	rig_end(&g);
}

/* ---- all of a bulk, in any layout ---- */

static void check_cut(const struct wire_segments *s, const struct memory *m,
		      uint32_t segment)
{
	uint64_t sum = 0;

	cr_assert_leq(s->n, ULRPC_SEGMENTS_MAX);
	for (unsigned int i = 0; i < s->n; i++) {
		cr_assert_leq(s->length[i], segment);
		cr_assert_gt(s->length[i], 0);
		sum += s->length[i];
	}
	cr_assert_eq(sum, m->length);
}

/* Moves all segments, each in random pieces, and checks the answers. */
static void move_all(struct rig *g, bool put, const struct wire_segments *s,
		     uint8_t *bytes)
{
	for (unsigned int i = 0; i < s->n; i++) {
		uint32_t at = 0;

		while (at < s->length[i]) {
			uint32_t n =
				1 + (uint32_t)rig_random(g, s->length[i] - at);

			cr_assert_eq(
				answer_to(g, put, bytes, n, s->match + i, at),
				put ? LNET_EVENT_ACK : LNET_EVENT_REPLY);
			bytes += n;
			at += n;
		}
	}
}

static void one_layout(uint64_t seed)
{
	bool put = seed & 1;
	struct wire_segments s;
	struct ulrpc_bulk *b;
	struct memory m;
	uint32_t segment;
	uint8_t *bytes;
	struct rig g;

	rig_init(&g, seed);
	m = memory_new(&g, 1 + rig_random(&g, 20000),
		       1 + rig_random(&g, 1 << rig_random(&g, 12)));
	/* Smaller segments would be more than 256. */
	segment = 80 + (uint32_t)rig_random(&g, 5000);
	bytes = malloc(m.length);
	for (size_t i = 0; i < m.length; i++)
		bytes[i] = nth_byte(put ? 2 : 3, i);
	memory_fill(&m, 1);
	b = bulk_of(&g, &m, put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE, 0,
		    segment);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	s = attach(&g, b);
	check_cut(&s, &m, segment);
	move_all(&g, put, &s, bytes);
	if (put)
		cr_assert(memory_is(&m, 0, m.length, 2, 0));
	for (size_t i = 0; !put && i < m.length; i++)
		cr_assert_eq(bytes[i], nth_byte(1, i));
	cr_assert(memory_guarded(&m));
	release_idle(&g, b);
	free(bytes);
	memory_free(&g, &m);
	rig_fini(&g);
}

Test(bulk, any_layout)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		printf("seed %llu\n", (unsigned long long)seed);
		one_layout(seed);
	}
}

/* ---- checksums ---- */

Test(bulk, checksums_of_a_source)
{
	struct wire_segments s;
	struct ulrpc_bulk *b;
	uint8_t bytes[1000];
	struct memory m;
	uint64_t left = 301;
	size_t at = 0;
	struct rig g;

	rig_init(&g, 3);
	m = memory_new(&g, sizeof(bytes), 30);
	memory_fill(&m, 1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = nth_byte(1, i);
	b = bulk_of(&g, &m, ULRPC_BULK_SOURCE, ULRPC_BULK_CHECKSUM, 300);
	cr_assert_eq(bulk_prepare(b, &g.rpc[CALLER]), 0);
	cr_assert_not(bulk_sum(b, &left));
	cr_assert_eq(left, 0, "two segments were summed");
	left = 401;
	cr_assert(bulk_sum(b, &left));
	cr_assert_eq(left, 1);
	s = attach(&g, b);
	cr_assert_eq(s.n, 4);
	for (unsigned int i = 0; i < s.n; i++) {
		cr_assert_eq(s.checksum[i], crc32c(0, bytes + at, s.length[i]));
		at += s.length[i];
	}
	release_idle(&g, b);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* Encodes and decodes a reply that reports the given checksums and lengths of
 * @n segments. Returns what bulk_check() says of it. */
static int check(struct ulrpc_bulk *b, uint32_t n, const uint32_t *crc,
		 const uint32_t *length)
{
	const struct wire_replies head = { .client = 1 };
	const struct wire_moved moved = { .n = n,
					  .checksum = crc,
					  .length = length };
	struct wire_reply reply = { .bulks = { .n = 1, .list = &moved } };
	struct wire_reply decoded[WIRE_CALLS_MAX];
	struct wire_replies got;
	struct wire_moved_in in;
	uint8_t buf[16384], *p = buf;

	cr_assert_leq(WIRE_REPLIES_BOUND + wire_reply_bound(&reply),
		      sizeof(buf));
	p = wire_replies_put(p, &head);
	p = wire_reply_put(p, &reply);
	cr_assert_eq(wire_replies_decode(&got, decoded,
					 wire_hdr_data(WIRE_REPLIES, buf,
						       (size_t)(p - buf)),
					 buf, (size_t)(p - buf)),
		     0);
	cr_assert_eq(got.nreplies, 1);
	cr_assert(wire_moved_next(&decoded[0].bulks.view, &in));
	return bulk_check(b, &in, NULL);
}

Test(bulk, checksums_of_a_sink)
{
	uint32_t crc[5] = { 0 }, length[5] = { 300, 0, 250, 100, 1 };
	struct ulrpc_bulk *b, *plain;
	uint8_t bytes[1000];
	struct memory m;
	struct rig g;

	rig_init(&g, 3);
	m = memory_new(&g, sizeof(bytes), 30);
	memory_fill(&m, 1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = nth_byte(1, i);
	b = bulk_of(&g, &m, ULRPC_BULK_SINK, ULRPC_BULK_CHECKSUM, 300);
	plain = bulk_of(&g, &m, ULRPC_BULK_SINK, 0, 300);
	for (unsigned int i = 0; i < 4; i++)
		crc[i] = crc32c(0, bytes + i * 300, i < 3 ? 300 : 100);
	cr_assert_eq(check(b, 4, crc, NULL), 0);
	cr_assert_eq(check(b, 3, crc, NULL), 0);
	cr_assert_eq(check(b, 5, crc, NULL), -EPROTO);
	crc[3]++;
	cr_assert_eq(check(b, 4, crc, NULL), -EBADMSG);
	cr_assert_eq(check(plain, 4, crc, NULL), 0);
	/* The report covers segment 3 in part, and segment 2 not at all. */
	crc[3]--;
	crc[1] = 0;
	cr_assert_eq(check(b, 4, crc, length), -EBADMSG);
	crc[2] = crc32c(0, bytes + 600, 250);
	cr_assert_eq(check(b, 4, crc, length), 0);
	length[2] = 301;
	cr_assert_eq(check(b, 4, crc, length), -EPROTO);
	ulrpc_bulk_close(b, NULL, NULL);
	ulrpc_bulk_close(plain, NULL, NULL);
	memory_free(&g, &m);
	rig_fini(&g);
}
