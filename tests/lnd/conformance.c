/* SPDX-License-Identifier: BSD-3-Clause */
/* The behaviours, in the order in which an LND learns them. */
#include "tests/lnd/conformance.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "tests/lnd/box.h"

#define PORTAL 10
#define LAZY   20
#define EMPTY  63 /* nobody ever attaches anything */

static const uint32_t sizes[] = { 0, 1, 72, 4095, 4096, 4097, 65536, LNET_MTU };

/* Each way between the two nodes; one node has one. */
#define for_each_way(fx, from, to)                             \
	for (unsigned int from = 0, to = 1;                    \
	     from < ((fx)->rig->can & RIG_ONE_NODE ? 1u : 2u); \
	     from++, to = 1 - from)

/* ---- one message ---- */

/* What the target is told of a PUT or GET. */
static void expect_target_event(struct fx *fx, const struct ulnet_event *ev,
				unsigned int from, unsigned int to)
{
	expect(fx, lnet_nid_eq(&ev->initiator.nid, &fx->rig->nid[from]));
	expect(fx, lnet_nid_eq(&ev->source, &fx->rig->nid[from]));
	expect(fx, lnet_nid_eq(&ev->sender, &fx->rig->nid[from]));
	expect(fx, lnet_nid_eq(&ev->target.nid, &fx->rig->nid[to]));
	expect(fx, ev->initiator.pid == LNET_PID_LUSTRE);
	expect(fx, ev->portal == PORTAL && ev->match_bits == 77);
	expect(fx, ev->unlinked && !ev->terminal);
}

static void one_put(struct fx *fx, unsigned int from, unsigned int to,
		    uint32_t size, bool ack)
{
	struct box *dst = box_new(fx, size, CUT_NONE);
	struct box *src = box_new(fx, size, CUT_NONE);
	const struct ulnet_event *ev = &dst->last[LNET_EVENT_PUT];

	box_fill(src, size);
	if (!box_post(dst, &(struct post){ .side = to,
					   .portal = PORTAL,
					   .bits = 77,
					   .options = LNET_MD_OP_PUT }) ||
	    !box_bind(src, from, ack ? 2 : 1, fx_patience(fx)) ||
	    !box_put(src, to, ack, PORTAL, 77, HDR(size, 0)))
		return;
	if (!expect(fx, fx_wait(fx, &dst->unlinked, 1)) ||
	    !expect(fx, fx_wait(fx, &src->unlinked, 1)))
		return;
	expect(fx, dst->n[LNET_EVENT_PUT] == 1);
	expect(fx, ev->mlength == size && ev->rlength == size);
	expect(fx, ev->hdr_data == HDR(size, 0));
	expect_target_event(fx, ev, from, to);
	expect(fx, src->n[LNET_EVENT_SEND] == 1);
	expect(fx, src->n[LNET_EVENT_ACK] == ack);
	if (ack) {
		expect(fx, src->last[LNET_EVENT_ACK].mlength == size);
		expect(fx, src->outcomes[LNET_OUTCOME_DELIVERED] == 1);
	} else {
		expect(fx, src->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 0);
	}
}

static void put_ack(struct fx *fx)
{
	for_each_way (fx, from, to) {
		for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
			one_put(fx, from, to, sizes[i], true);
	}
	expect(fx, fx_wait_idle(fx));
}

static void put_noack(struct fx *fx)
{
	for_each_way (fx, from, to) {
		for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
			one_put(fx, from, to, sizes[i], false);
	}
	expect(fx, fx_wait_idle(fx));
}

static void one_get(struct fx *fx, unsigned int from, unsigned int to,
		    uint32_t size)
{
	struct box *src = box_new(fx, size, CUT_NONE);
	struct box *dst = box_new(fx, size, CUT_NONE);
	const struct ulnet_event *ev = &src->last[LNET_EVENT_GET];

	box_fill(src, 77);
	if (!box_post(src, &(struct post){ .side = to,
					   .portal = PORTAL,
					   .bits = 77,
					   .options = LNET_MD_OP_GET }) ||
	    !box_bind(dst, from, 2, fx_patience(fx)) ||
	    !box_get(dst, to, PORTAL, 77))
		return;
	if (!expect(fx, fx_wait(fx, &dst->unlinked, 1)) ||
	    !expect(fx, fx_wait(fx, &src->unlinked, 1)))
		return;
	expect(fx, src->n[LNET_EVENT_GET] == 1);
	expect(fx, ev->mlength == size && ev->rlength == size);
	expect_target_event(fx, ev, from, to);
	expect(fx, dst->n[LNET_EVENT_SEND] == 1);
	expect(fx, dst->n[LNET_EVENT_REPLY] == 1);
	expect(fx, dst->last[LNET_EVENT_REPLY].mlength == size);
	expect(fx, dst->outcomes[LNET_OUTCOME_DELIVERED] == 1);
}

static void get(struct fx *fx)
{
	for_each_way (fx, from, to) {
		for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
			one_get(fx, from, to, sizes[i]);
	}
	expect(fx, fx_wait_idle(fx));
}

/* Proof that the nodes are still on speaking terms, both ways. */
static void still_works(struct fx *fx)
{
	for_each_way (fx, from, to) {
		one_put(fx, from, to, 100, true);
		one_get(fx, from, to, 10000);
	}
}

static void pinged(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct box *b = arg;
	struct fx *fx = b->fx;

	pthread_mutex_lock(&fx->lock);
	b->n[0]++;
	b->terminal.status = status;
	b->outcomes[0] = info ? info->nnis : 0;
	b->outcomes[1] = info ? info->pid : 0;
	if (info && info->nnis)
		b->terminal.source = info->ni[0].nid;
	pthread_mutex_unlock(&fx->lock);
}

static void ping(struct fx *fx)
{
	bool lo = fx->rig->can & RIG_ONE_NODE;

	for_each_way (fx, from, to) {
		struct box *b = box_new(fx, 1, CUT_NONE);
		int rc = lnet_ping(fx->rig->node[from], fx_id(fx, to),
				   fx_patience(fx), pinged, b);

		if (!expect(fx, rc == 0) ||
		    !expect(fx, fx_wait(fx, &b->n[0], 1)))
			return;
		expect(fx, b->n[0] == 1 && b->terminal.status == 0);
		expect(fx, b->outcomes[0] == !lo);
		expect(fx, b->outcomes[1] == LNET_PID_LUSTRE);
		if (!lo)
			expect(fx, lnet_nid_eq(&b->terminal.source,
					       &fx->rig->nid[to]));
	}
	expect(fx, fx_wait_idle(fx));
}

/* ---- shapes of memory ---- */

/* Both sides in many pieces, cut differently; each buffer takes two messages,
 * so the second begins in the middle of a piece. */
static void fragments_way(struct fx *fx, unsigned int from, unsigned int to,
			  uint32_t size, uint32_t seed)
{
	struct box *src = box_new(fx, size, CUT_ODD);
	struct box *dst = box_new(fx, 2 * size, CUT_OTHER);
	struct box *back = box_new(fx, size, CUT_OTHER);
	struct box *from_there = box_new(fx, size, CUT_ODD);

	box_fill(src, seed);
	box_fill(from_there, seed + 1);
	if (!box_post(dst, &(struct post){ .side = to,
					   .portal = PORTAL,
					   .bits = seed,
					   .threshold = 2,
					   .options = LNET_MD_OP_PUT }) ||
	    !box_post(from_there,
		      &(struct post){ .side = to,
				      .portal = PORTAL,
				      .bits = seed + 1,
				      .options = LNET_MD_OP_GET }) ||
	    !box_bind(src, from, 4, fx_patience(fx)) ||
	    !box_bind(back, from, 2, fx_patience(fx)))
		return;
	box_put(src, to, true, PORTAL, seed, HDR(seed, 0));
	box_put(src, to, true, PORTAL, seed, HDR(seed, 1));
	box_get(back, to, PORTAL, seed + 1);
	expect(fx, fx_wait(fx, &dst->unlinked, 1));
	expect(fx, fx_wait_ops(fx));
	expect(fx, dst->n[LNET_EVENT_PUT] == 2);
	expect(fx, src->outcomes[LNET_OUTCOME_DELIVERED] == 2);
	expect(fx, back->n[LNET_EVENT_REPLY] == 1);
}

static void fragments(struct fx *fx)
{
	static const uint32_t totals[] = { 1,	  255,		 257,	  1000,
					   70001, LNET_MTU - 13, LNET_MTU };
	uint32_t seed = 100;

	for_each_way (fx, from, to) {
		for (unsigned int i = 0; i < ARRAY_SIZE(totals); i++)
			fragments_way(fx, from, to, totals[i], seed += 2);
	}
	expect(fx, fx_wait_idle(fx));
}

/* Part of a long message fits: the rest is thrown away, and the next message is
 * read from where it begins. */
static void truncated(struct fx *fx)
{
	static const struct {
		uint32_t sent, room;
	} cases[] = {
		{ 1000, 100 },
		{ 1, 0 },
		{ 65536, 65535 },
		{ LNET_MTU, 4097 },
	};

	for_each_way (fx, from, to) {
		for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
			uint32_t sent = cases[i].sent, room = cases[i].room;
			struct box *src = box_new(fx, sent, CUT_NONE);
			struct box *dst = box_new(fx, room, CUT_NONE);
			struct post p = { .side = to,
					  .portal = PORTAL,
					  .bits = 5,
					  .options = LNET_MD_OP_PUT |
						     LNET_MD_TRUNCATE };

			box_fill(src, 3);
			if (!box_post(dst, &p) ||
			    !box_bind(src, from, 0, fx_patience(fx)) ||
			    !box_put(src, to, true, PORTAL, 5, HDR(3, 0)))
				return;
			expect(fx, fx_wait(fx, &dst->unlinked, 1));
			expect(fx, fx_wait_ops(fx));
			expect(fx, dst->last[LNET_EVENT_PUT].rlength == sent);
			expect(fx, dst->last[LNET_EVENT_PUT].mlength == room);
			expect(fx, src->last[LNET_EVENT_ACK].mlength == room);
			one_put(fx, from, to, 72, true);
		}
	}
	expect(fx, fx_wait_idle(fx));
}

/* The GET asks for more than there is. */
static void truncated_get(struct fx *fx)
{
	for_each_way (fx, from, to) {
		struct box *src = box_new(fx, 4097, CUT_NONE);
		struct box *dst = box_new(fx, LNET_MTU, CUT_NONE);
		struct post p = { .side = to,
				  .portal = PORTAL,
				  .bits = 6,
				  .options =
					  LNET_MD_OP_GET | LNET_MD_TRUNCATE };

		box_fill(src, 6);
		if (!box_post(src, &p) ||
		    !box_bind(dst, from, 0, fx_patience(fx)) ||
		    !box_get(dst, to, PORTAL, 6))
			return;
		expect(fx, fx_wait_ops(fx));
		expect(fx, dst->n[LNET_EVENT_REPLY] == 1);
		expect(fx, dst->last[LNET_EVENT_REPLY].mlength == 4097);
	}
	expect(fx, fx_wait_idle(fx));
}

/* ---- refusals ---- */

/* The operation is never answered: it ends at its deadline, and whether it was
 * delivered is not known. */
static void expect_timed_out(struct fx *fx, const struct box *b)
{
	expect(fx, b->terminals == 1);
	expect(fx, b->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	expect(fx, b->terminal.type == LNET_EVENT_UNLINK);
	expect(fx, b->terminal.status == -ETIMEDOUT);
	expect(fx, b->terminal.cause == LNET_CAUSE_RESPONSE_TIMEOUT);
	expect(fx, b->terminal.elapsed >= b->timeout);
}

/* Without LNET_MD_TRUNCATE what is too long is dropped, and counted. */
static void too_long(struct fx *fx)
{
	for_each_way (fx, from, to) {
		uint64_t before = fx_stat(fx, to, "drop_too_long");
		uint64_t bytes = fx_stat(fx, to, "drop_length");
		struct box *dst = box_new(fx, 4096, CUT_NONE);
		struct box *fits = box_new(fx, 4096, CUT_NONE);
		struct box *src = box_new(fx, LNET_MTU, CUT_NONE);

		box_fill(src, 4);
		box_fill(fits, 4);
		if (!box_post(dst,
			      &(struct post){ .side = to,
					      .portal = PORTAL,
					      .bits = 8,
					      .options = LNET_MD_OP_PUT }) ||
		    !box_bind(src, from, 0, SHORT_TIMEOUT) ||
		    !box_bind(fits, from, 0, fx_patience(fx)))
			return;
		box_put(src, to, true, PORTAL, 8, HDR(4, 0));
		expect(fx, fx_wait_ops(fx));
		expect_timed_out(fx, src);
		expect(fx, fx_wait_stat(fx, to, "drop_too_long", before + 1));
		expect(fx, fx_stat(fx, to, "drop_length") == bytes + LNET_MTU);
		expect(fx, dst->n[LNET_EVENT_PUT] == 0);
		box_put(fits, to, true, PORTAL, 8, HDR(4, 0));
		expect(fx, fx_wait(fx, &dst->unlinked, 1));
		expect(fx, dst->n[LNET_EVENT_PUT] == 1);
	}
	expect(fx, fx_wait_idle(fx));
}

/* Messages that nobody wants between messages that somebody does. */
static void no_match(struct fx *fx)
{
	enum { N = 20 };

	for_each_way (fx, from, to) {
		uint64_t before = fx_stat(fx, to, "drop_no_match");
		struct box *src = box_new(fx, 30000, CUT_NONE);
		struct box *dst = box_new(fx, N * 30000, CUT_NONE);

		box_fill(src, 9);
		if (!box_post(dst,
			      &(struct post){ .side = to,
					      .portal = PORTAL,
					      .bits = 9,
					      .threshold = N,
					      .options = LNET_MD_OP_PUT }) ||
		    !box_bind(src, from, LNET_MD_THRESH_INF, fx_patience(fx)))
			return;
		for (unsigned int i = 0; i < N; i++) {
			box_put(src, to, false, PORTAL, 10, HDR(9, i));
			box_put(src, to, true, PORTAL, 9, HDR(9, i));
			box_put(src, to, false, EMPTY, 9, HDR(9, i));
		}
		expect(fx, fx_wait(fx, &dst->unlinked, 1));
		expect(fx, fx_wait_ops(fx));
		expect(fx, dst->disorder == 0);
		expect(fx, src->outcomes[LNET_OUTCOME_DELIVERED] == N);
		expect(fx, src->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 0);
		expect(fx,
		       fx_wait_stat(fx, to, "drop_no_match", before + 2 * N));
		expect(fx, box_unlink(src) == 0);
	}
	expect(fx, fx_wait_idle(fx));
}

static void no_portal(struct fx *fx)
{
	struct box *src = box_new(fx, 10, CUT_NONE);

	if (!box_bind(src, 0, LNET_MD_THRESH_INF, fx_patience(fx)))
		return;
	expect(fx, LNetPut(LNET_NID_ANY, src->md, LNET_ACK_REQ, fx_id(fx, 1),
			   LNET_PORTALS, 1, 0, 0) == -EINVAL);
	expect(fx, LNetGet(LNET_NID_ANY, src->md, fx_id(fx, 1), LNET_PORTALS, 1,
			   0) == -EINVAL);
	expect(fx, box_unlink(src) == 0);
	still_works(fx);
}

/* A NID that nobody has. How soon that is known is the LND's affair. */
static void absent_peer(struct fx *fx)
{
	struct box *b[4];

	for (unsigned int i = 0; i < ARRAY_SIZE(b); i++) {
		b[i] = box_new(fx, 5000, CUT_NONE);
		if (!box_bind(b[i], 0, 0, SHORT_TIMEOUT))
			return;
	}
	box_put_to(b[0], &fx->rig->absent, true, PORTAL, 1, HDR(1, 0));
	box_get_to(b[1], &fx->rig->absent, PORTAL, 1);
	box_put_to(b[2], &fx->rig->absent, true, PORTAL, 1, HDR(1, 0));
	box_get_to(b[3], &fx->rig->absent, PORTAL, 1);
	still_works(fx);
	expect(fx, fx_wait_ops(fx));
	for (unsigned int i = 0; i < ARRAY_SIZE(b); i++) {
		expect(fx, b[i]->outcomes[LNET_OUTCOME_DELIVERED] == 0);
		expect(fx, b[i]->terminal.status != 0);
		box_end(b[i]);
	}
	expect(fx, fx_wait_idle(fx));
}

static void absent_peer_ping(struct fx *fx)
{
	struct box *b = box_new(fx, 1, CUT_NONE);
	struct ulnet_id id = { fx->rig->absent, LNET_PID_LUSTRE };
	int rc = lnet_ping(fx->rig->node[0], id, SHORT_TIMEOUT, pinged, b);

	if (!expect(fx, rc == 0) || !expect(fx, fx_wait(fx, &b->n[0], 1)))
		return;
	expect(fx, b->terminal.status != 0);
	expect(fx, fx_wait_idle(fx));
	expect(fx, b->n[0] == 1);
}

/* ---- many messages ---- */

/* Each way at once: the boxes of one of them. */
struct stream {
	struct box *src, *dst;
	unsigned int from, to;
};

static bool stream_open(struct fx *fx, struct stream *s, unsigned int from,
			uint32_t n, uint32_t size, uint64_t timeout)
{
	bool lo = fx->rig->can & RIG_ONE_NODE;

	s->from = from;
	s->to = lo ? 0 : 1 - from;
	s->src = box_new(fx, size, CUT_NONE);
	s->dst = box_new(fx, n * size, CUT_NONE);
	box_track(s->src, n);
	box_track(s->dst, n);
	box_fill(s->src, 20 + from);
	return box_post(s->dst, &(struct post){ .side = s->to,
						.portal = PORTAL,
						.bits = 20 + from,
						.threshold = (int)n,
						.options = LNET_MD_OP_PUT }) &&
	       box_bind(s->src, from, LNET_MD_THRESH_INF, timeout);
}

static void stream_put(struct stream *s, uint32_t i)
{
	box_put(s->src, s->to, true, PORTAL, 20 + s->from,
		HDR(20 + s->from, i));
}

/* What was said of each PUT is what happened to it. */
static void expect_truth(struct fx *fx, const struct stream *s)
{
	unsigned int lies = 0, twice = 0;

	for (uint32_t i = 0; i < s->src->track; i++) {
		uint8_t outcome = s->src->outcome[i], n = s->dst->arrived[i];

		lies += outcome == LNET_OUTCOME_DELIVERED && n == 0;
		n &= (uint8_t)~ARRIVED_MAYBE;
		lies += outcome == LNET_OUTCOME_NOT_DELIVERED && n != 0;
		twice += n > 1;
	}
	expect(fx, lies == 0);
	expect(fx, twice == 0);
}

static void many(struct fx *fx, uint32_t n, uint32_t size)
{
	struct stream s[2];
	unsigned int ways = fx->rig->can & RIG_ONE_NODE ? 1 : 2;

	for (unsigned int w = 0; w < ways; w++)
		if (!stream_open(fx, &s[w], w, n, size, fx_patience(fx)))
			return;
	for (uint32_t i = 0; i < n; i++)
		for (unsigned int w = 0; w < ways; w++)
			stream_put(&s[w], i);
	expect(fx, fx_wait_ops(fx));
	for (unsigned int w = 0; w < ways; w++) {
		expect(fx, fx_wait(fx, &s[w].dst->unlinked, 1));
		expect(fx, s[w].src->outcomes[LNET_OUTCOME_DELIVERED] == n);
		expect(fx, s[w].dst->n[LNET_EVENT_PUT] == n);
		expect(fx, s[w].dst->disorder == 0);
		expect_truth(fx, &s[w]);
		expect(fx, box_unlink(s[w].src) == 0);
	}
	expect(fx, fx_wait_idle(fx));
}

static void order(struct fx *fx)
{
	many(fx, 2000, 64);
}

static void big(struct fx *fx)
{
	many(fx, 8, LNET_MTU);
}

static void queueing(struct fx *fx)
{
	struct ulnet_peer_info info;

	many(fx, fx->rig->can & RIG_ONE_NODE ? 10000 : 5000, 40);
	if (fx->rig->can & RIG_ONE_NODE)
		return;
	expect(fx,
	       lnet_peer_info(fx->rig->node[0], &fx->rig->nid[1], &info) == 0);
	expect(fx, info.credits_min < 0);
}

/* Messages of all sizes overtake nobody: they take their places in the buffer
 * in the order in which they were sent. */
static uint32_t mixed_size(uint32_t i)
{
	return i % 10 == 9 ? 40000 + i : i * 37 % 1500;
}

struct places {
	uint32_t at[200];
	unsigned int wrong;
};

static void note_place(struct box *b, const struct ulnet_event *ev)
{
	struct places *p = b->hook_arg;
	uint32_t i = HDR_I(ev->hdr_data);

	if (ev->type != LNET_EVENT_PUT || i >= ARRAY_SIZE(p->at))
		return;
	if (ev->offset != p->at[i] || ev->mlength != mixed_size(i))
		p->wrong++;
}

static void order_of_sizes_way(struct fx *fx, unsigned int from,
			       unsigned int to)
{
	struct places places = { .wrong = 0 };
	uint32_t n = ARRAY_SIZE(places.at), total = 0;
	struct box *dst;

	for (uint32_t i = 0; i < n; i++) {
		places.at[i] = total;
		total += mixed_size(i);
	}
	dst = box_new(fx, total, CUT_NONE);
	dst->hook = note_place;
	dst->hook_arg = &places;
	if (!box_post(dst, &(struct post){ .side = to,
					   .portal = PORTAL,
					   .bits = 30,
					   .threshold = (int)n,
					   .options = LNET_MD_OP_PUT }))
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct box *src = box_new(fx, mixed_size(i), CUT_NONE);

		box_fill(src, i);
		if (!box_bind(src, from, 1, fx_patience(fx)))
			return;
		box_put(src, to, false, PORTAL, 30, HDR(i, i));
	}
	expect(fx, fx_wait(fx, &dst->unlinked, 1));
	expect(fx, places.wrong == 0);
	dst->hook = NULL;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void order_of_sizes(struct fx *fx)
{
	if (lnet_call(fx->rig->node[0], 1, nothing, NULL) != -EINVAL) {
		fx->skipped = "MDs are on several CPTs, which keep no order "
			      "among each other";
		return;
	}
	for_each_way (fx, from, to)
		order_of_sizes_way(fx, from, to);
	expect(fx, fx_wait_idle(fx));
}

/* Sends from within events: each PUT is answered by the next one. */
struct rally {
	struct box *ball[300];
	struct box *goal[2];
};

static void rally_next(struct box *goal, const struct ulnet_event *ev)
{
	struct rally *r = goal->hook_arg;
	uint32_t i = HDR_I(ev->hdr_data) + 1;
	unsigned int here = goal == r->goal[0] ? 0 : 1;
	unsigned int there = goal->fx->rig->can & RIG_ONE_NODE ? 0 : 1 - here;

	if (ev->type != LNET_EVENT_PUT || ev->status ||
	    i >= ARRAY_SIZE(r->ball))
		return;
	if (box_bind(r->ball[i], here, 0, fx_patience(goal->fx)))
		box_put(r->ball[i], there, true, PORTAL, 40 + there, HDR(1, i));
}

static void from_handlers(struct fx *fx)
{
	static struct rally r;
	unsigned int n = ARRAY_SIZE(r.ball), goals = 2;

	if (fx->rig->can & RIG_ONE_NODE)
		goals = 1;
	for (unsigned int i = 0; i < n; i++) {
		r.ball[i] = box_new(fx, 1000, CUT_NONE);
		box_fill(r.ball[i], 1);
	}
	for (unsigned int g = 0; g < goals; g++) {
		r.goal[g] = box_new(fx, n * 1000, CUT_NONE);
		r.goal[g]->hook = rally_next;
		r.goal[g]->hook_arg = &r;
		if (!box_post(r.goal[g],
			      &(struct post){ .side = g,
					      .portal = PORTAL,
					      .bits = 40 + g,
					      .threshold = (int)(n / goals),
					      .options = LNET_MD_OP_PUT }))
			return;
	}
	if (!box_bind(r.ball[0], 0, 0, fx_patience(fx)) ||
	    !box_put(r.ball[0], goals - 1, true, PORTAL, 40 + goals - 1,
		     HDR(1, 0)))
		return;
	expect(fx, fx_wait(fx, &r.ball[n - 1]->terminals, 1));
	for (unsigned int g = 0; g < goals; g++)
		expect(fx, r.goal[g]->n[LNET_EVENT_PUT] == n / goals);
	expect(fx, fx_wait_idle(fx));
}

/* ---- lazy portals ---- */

/* What comes before its buffer is held, in order, and arrives with it. */
static void lazy_way(struct fx *fx, unsigned int from, unsigned int to)
{
	enum { N = 20, SIZE = 5000 };
	struct box *src = box_new(fx, SIZE, CUT_NONE);
	struct box *dst = box_new(fx, N * SIZE, CUT_NONE);

	box_fill(src, 50);
	expect(fx, LNetSetLazyPortal(fx->rig->node[to], LAZY) == 0);
	if (!box_bind(src, from, LNET_MD_THRESH_INF, fx_patience(fx)))
		return;
	for (unsigned int i = 0; i < N; i++)
		box_put(src, to, true, LAZY, 50, HDR(50, i));
	fx_run(fx, SHORT_TIMEOUT);
	expect(fx, fx_read(fx, &src->terminals) == 0);
	if (!box_post(dst, &(struct post){ .side = to,
					   .portal = LAZY,
					   .bits = 50,
					   .threshold = N,
					   .options = LNET_MD_OP_PUT }))
		return;
	expect(fx, fx_wait(fx, &dst->unlinked, 1));
	expect(fx, fx_wait_ops(fx));
	expect(fx, dst->n[LNET_EVENT_PUT] == N && dst->disorder == 0);
	expect(fx, src->outcomes[LNET_OUTCOME_DELIVERED] == N);
	expect(fx, box_unlink(src) == 0);
}

static void lazy(struct fx *fx)
{
	for_each_way (fx, from, to)
		lazy_way(fx, from, to);
	expect(fx, fx_wait_idle(fx));
	still_works(fx);
}

/* The buffer comes, by a handler, just when the message is being looked at:
 * every CPT has entries on the portal, none of which is for it. */
static void bring_buffer(struct box *b, const struct ulnet_event *ev)
{
	struct box *dst = b->hook_arg;
	unsigned int side = b->fx->rig->can & RIG_ONE_NODE ? 0 : 1;

	if (ev->type == LNET_EVENT_PUT)
		box_post(dst, &(struct post){ .side = side,
					      .portal = LAZY,
					      .bits = 50,
					      .options = LNET_MD_OP_PUT });
}

static void lazy_in_time(struct fx *fx)
{
	struct box *dst = box_new(fx, 5000, CUT_NONE);
	struct box *src = box_new(fx, 5000, CUT_NONE);

	expect(fx, LNetSetLazyPortal(fx->rig->node[1], LAZY) == 0);
	for (unsigned int i = 0; i < 4; i++) {
		struct box *other = box_new(fx, 5000, CUT_NONE);
		struct box *cue = box_new(fx, 5000, CUT_NONE);

		cue->hook = bring_buffer;
		cue->hook_arg = dst;
		if (!box_post(other,
			      &(struct post){ .side = 1,
					      .portal = LAZY,
					      .bits = 51,
					      .options = LNET_MD_OP_PUT }) ||
		    !box_post(cue, &(struct post){ .side = 1,
						   .portal = PORTAL,
						   .bits = 52,
						   .options = LNET_MD_OP_PUT }))
			return;
	}
	box_fill(src, 50);
	if (!box_bind(src, 0, 4, fx_patience(fx)))
		return;
	box_put(src, 1, true, LAZY, 50, HDR(50, 0));
	box_put(src, 1, true, PORTAL, 52, HDR(50, 0));
	expect(fx, fx_wait_ops(fx));
	expect(fx, src->outcomes[LNET_OUTCOME_DELIVERED] == 2);
	expect(fx, dst->n[LNET_EVENT_PUT] == 1);
	expect(fx, fx_wait_idle(fx));
}

/* Nobody ever wants it: dropped when the portal is lazy no more. */
static void lazy_cleared(struct fx *fx)
{
	uint64_t before = fx_stat(fx, 1, "drop_no_match");
	struct box *src = box_new(fx, 5000, CUT_NONE);

	expect(fx, LNetSetLazyPortal(fx->rig->node[1], LAZY) == 0);
	if (!box_bind(src, 0, LNET_MD_THRESH_INF, 3 * SHORT_TIMEOUT))
		return;
	box_put(src, 1, true, LAZY, 50, HDR(0, 0));
	box_put(src, 1, true, LAZY, 50, HDR(0, 0));
	fx_run(fx, SHORT_TIMEOUT);
	expect(fx, fx_stat(fx, 1, "drop_no_match") == before);
	expect(fx, LNetClearLazyPortal(fx->rig->node[1], LAZY) == 0);
	still_works(fx);
	expect(fx, fx_wait_ops(fx));
	expect(fx, fx_wait_stat(fx, 1, "drop_no_match", before + 2));
	expect(fx, src->outcomes[LNET_OUTCOME_UNKNOWN] == 2);
	expect(fx, fx_wait_idle(fx));
}

/* ---- time ---- */

static void timeout(struct fx *fx)
{
	for_each_way (fx, from, to) {
		uint64_t before = fx_stat(fx, from, "response_timeout_count");
		struct box *put = box_new(fx, 4096, CUT_NONE);
		struct box *asks = box_new(fx, 4096, CUT_NONE);

		if (!box_bind(put, from, 0, SHORT_TIMEOUT) ||
		    !box_bind(asks, from, 0, SHORT_TIMEOUT))
			return;
		box_put(put, to, true, EMPTY, 1, 0);
		box_get(asks, to, EMPTY, 1);
		expect(fx, fx_wait_ops(fx));
		expect(fx, fx_wait(fx, &put->unlinked, 1));
		expect(fx, fx_wait(fx, &asks->unlinked, 1));
		expect_timed_out(fx, put);
		expect_timed_out(fx, asks);
		expect(fx, put->n[LNET_EVENT_SEND] == 1);
		expect(fx, asks->n[LNET_EVENT_SEND] == 1);
		expect(fx, fx_stat(fx, from, "response_timeout_count") ==
				   before + 2);
	}
	still_works(fx);
	expect(fx, fx_wait_idle(fx));
}

/* Deadlines that strike at any moment of a long message's way: queued, half
 * sent, on the wire, half stored, answered. */
static void deadlines(struct fx *fx)
{
	enum { N = 24 };
	static const uint64_t steps[] = { 50, 1000, 1700 };
	struct stream s;

	for (unsigned int k = 0; k < ARRAY_SIZE(steps); k++) {
		if (!stream_open(fx, &s, 0, N, LNET_MTU, fx_patience(fx)))
			return;
		for (uint32_t i = 0; i < N; i++) {
			struct box *there = box_new(fx, LNET_MTU, CUT_NONE);
			struct box *asks = box_new(fx, LNET_MTU, CUT_ODD);
			struct box *src = box_new(fx, LNET_MTU, CUT_ODD);
			uint64_t after = 1 + i * steps[k];
			uint64_t bits = 1000 + i;

			box_fill(there, (uint32_t)bits);
			box_fill(src, 20);
			if (!box_post(there,
				      &(struct post){
					      .side = s.to,
					      .portal = PORTAL,
					      .bits = bits,
					      .options = LNET_MD_OP_GET }) ||
			    !box_bind(src, 0, 0, after) ||
			    !box_bind(asks, 0, 0, after))
				return;
			box_put(src, s.to, true, PORTAL, 20, HDR(20, i));
			box_get(asks, s.to, PORTAL, bits);
			expect(fx, fx_wait_ops(fx));
			box_end(src);
			box_end(asks);
			s.src->outcome[i] = (uint8_t)src->terminal.outcome;
			if (there->n[LNET_EVENT_GET] == 0)
				LNetMEUnlink(there->me);
		}
		expect(fx, fx_wait_idle(fx));
		expect_truth(fx, &s);
		still_works(fx);
		if (!fx_again(fx))
			return;
	}
}

/* Users give up: what waits for its answer ends now. */
static void cancel_waiting(struct fx *fx)
{
	struct box *b[2];

	for (unsigned int i = 0; i < 2; i++) {
		b[i] = box_new(fx, 4096, CUT_NONE);
		if (!box_bind(b[i], 0, 0, fx_patience(fx)))
			return;
	}
	box_put(b[0], 1, true, EMPTY, 1, 0);
	box_get(b[1], 1, EMPTY, 1);
	expect(fx, fx_wait(fx, &b[0]->n[LNET_EVENT_SEND], 1));
	expect(fx, fx_wait(fx, &b[1]->n[LNET_EVENT_SEND], 1));
	for (unsigned int i = 0; i < 2; i++) {
		expect(fx, box_unlink(b[i]) == 0);
		expect(fx, box_unlink(b[i]) == -ENOENT);
	}
	expect(fx, fx_wait_ops(fx));
	for (unsigned int i = 0; i < 2; i++) {
		expect(fx, fx_wait(fx, &b[i]->unlinked, 1));
		expect(fx, b[i]->terminal.status == -ECANCELED);
		expect(fx, b[i]->terminal.cause == LNET_CAUSE_CANCELED);
		expect(fx, b[i]->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
		expect(fx, b[i]->terminal.elapsed < b[i]->timeout / 2);
	}
	still_works(fx);
	expect(fx, fx_wait_idle(fx));
}

/* An MD is unlinked under its operations, and one under what peers do with it,
 * at one moment after another. */
static void cancel_busy(struct fx *fx)
{
	enum { N = 30 };
	static const uint64_t when[] = { 0, 1, 1000, 5000, 15000, 40000 };

	for (unsigned int k = 0; k < 2 * ARRAY_SIZE(when); k++) {
		struct stream s;
		struct box *asks = box_new(fx, LNET_MTU, CUT_NONE);
		struct box *there = box_new(fx, LNET_MTU, CUT_NONE);

		box_fill(there, 60);
		if (!stream_open(fx, &s, 0, N, LNET_MTU / 4,
				 3 * SHORT_TIMEOUT) ||
		    !box_post(there,
			      &(struct post){ .side = s.to,
					      .portal = PORTAL,
					      .bits = 60,
					      .options = LNET_MD_OP_GET }) ||
		    !box_bind(asks, 0, 0, 3 * SHORT_TIMEOUT))
			return;
		box_get(asks, s.to, PORTAL, 60);
		for (uint32_t i = 0; i < N; i++)
			stream_put(&s, i);
		if (when[k / 2])
			fx_run(fx, when[k / 2]);
		/* -ENOENT: it has gone meanwhile. */
		if (k % 2) {
			box_unlink(s.src);
			box_unlink(asks);
		} else {
			box_unlink(s.dst);
			box_unlink(there);
		}
		expect(fx, fx_wait_ops(fx));
		expect(fx, fx_wait_idle(fx));
		expect_truth(fx, &s);
		if (!fx_again(fx))
			return;
	}
}

/* ---- losses ---- */

static bool lost_op(struct fx *fx, unsigned int from, unsigned int to,
		    unsigned int arrives)
{
	struct box *dst = box_new(fx, 4096, CUT_NONE);
	struct box *src = box_new(fx, 4096, CUT_NONE);
	struct box *asks = box_new(fx, 4096, CUT_NONE);

	box_fill(src, 70);
	if (!box_post(dst, &(struct post){ .side = to,
					   .portal = PORTAL,
					   .bits = 70,
					   .options = LNET_MD_OP_PUT }) ||
	    !box_bind(src, from, 0, SHORT_TIMEOUT) ||
	    !box_bind(asks, from, 0, SHORT_TIMEOUT))
		return false;
	box_put(src, to, true, PORTAL, 70, HDR(70, 0));
	box_get(asks, to, EMPTY, 70);
	expect(fx, fx_wait_ops(fx));
	expect(fx, src->outcomes[LNET_OUTCOME_DELIVERED] == 0);
	expect(fx, asks->outcomes[LNET_OUTCOME_DELIVERED] == 0);
	expect(fx, dst->n[LNET_EVENT_PUT] == arrives);
	if (arrives)
		return expect(fx, src->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	return expect(fx, LNetMEUnlink(dst->me) == 0);
}

static void lost(struct fx *fx)
{
	struct lnd_rig *rig = fx->rig;

	for_each_way (fx, from, to) {
		expect(fx, rig->ops->lose(rig, from, true) == 0);
		if (!lost_op(fx, from, to, 0))
			return;
		expect(fx, rig->ops->lose(rig, from, false) == 0);
		still_works(fx);
	}
	expect(fx, fx_wait_idle(fx));
}

static void lost_answers(struct fx *fx)
{
	struct lnd_rig *rig = fx->rig;

	for_each_way (fx, from, to) {
		expect(fx, rig->ops->lose(rig, to, true) == 0);
		if (!lost_op(fx, from, to, 1))
			return;
		expect(fx, rig->ops->lose(rig, to, false) == 0);
		still_works(fx);
	}
	expect(fx, fx_wait_idle(fx));
}

/* ---- ends ---- */

/* Long messages all ways: what a death or an end finds under way. */
struct traffic {
	struct stream s[2];
	unsigned int ways;
};

static const uint64_t moments[] = { 0, 1, 700, 3000, 9000, 14000, 30000 };

#define TRAFFIC 30

static bool traffic_start(struct fx *fx, struct traffic *t, uint64_t moment)
{
	t->ways = fx->rig->can & RIG_ONE_NODE ? 1 : 2;
	for (unsigned int w = 0; w < t->ways; w++) {
		struct stream *s = &t->s[w];
		struct box *there = box_new(fx, LNET_MTU, CUT_NONE);
		struct box *asks = box_new(fx, LNET_MTU, CUT_ODD);

		box_fill(there, 80);
		if (!stream_open(fx, s, w, TRAFFIC, LNET_MTU / 16,
				 SHORT_TIMEOUT) ||
		    !box_post(there,
			      &(struct post){ .side = s->to,
					      .portal = PORTAL,
					      .bits = 80,
					      .options = LNET_MD_OP_GET }) ||
		    !box_bind(asks, w, 0, SHORT_TIMEOUT))
			return false;
		box_get(asks, s->to, PORTAL, 80);
		for (uint32_t i = 0; i < TRAFFIC; i++)
			stream_put(s, i);
	}
	if (moment)
		fx_run(fx, moment);
	return true;
}

static void death(struct fx *fx)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(moments); k++) {
		struct box *late[2];
		struct traffic t;

		if (!traffic_start(fx, &t, moments[k]))
			return;
		expect(fx, fx_kill(fx) == 0);
		for (unsigned int i = 0; i < 2; i++) {
			late[i] = box_new(fx, 4096, CUT_NONE);
			if (!box_bind(late[i], 0, 0, SHORT_TIMEOUT))
				return;
		}
		box_put(late[0], 1, true, PORTAL, 1, 0);
		box_get(late[1], 1, PORTAL, 1);
		expect(fx, fx_wait_ops(fx));
		for (unsigned int i = 0; i < 2; i++)
			expect(fx,
			       late[i]->outcomes[LNET_OUTCOME_DELIVERED] == 0);
		expect(fx, fx_wait_idle(fx));
		expect_truth(fx, &t.s[0]);
		expect(fx, fx->rig->ops->restart_peer(fx->rig) == 0);
		still_works(fx);
		expect(fx, fx_wait_idle(fx));
		if (!fx_again(fx))
			return;
	}
}

static void restart(struct fx *fx)
{
	for (unsigned int k = 0; k < 5; k++) {
		still_works(fx);
		expect(fx, fx_wait_idle(fx));
		expect(fx, fx_kill(fx) == 0);
		expect(fx, fx->rig->ops->restart_peer(fx->rig) == 0);
	}
	still_works(fx);
	expect(fx, fx_wait_idle(fx));
}

static void shutdown_busy(struct fx *fx)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(moments); k++) {
		struct traffic t;

		if (!traffic_start(fx, &t, moments[k]))
			return;
		fx_close(fx);
		for (unsigned int w = 0; w < t.ways; w++)
			expect_truth(fx, &t.s[w]);
		if (!fx_again(fx))
			return;
	}
}

/* Messages that wait for a buffer, when the node goes. */
static void shutdown_lazy(struct fx *fx)
{
	struct box *src = box_new(fx, 5000, CUT_NONE);

	expect(fx, LNetSetLazyPortal(fx->rig->node[1], LAZY) == 0);
	if (!box_bind(src, 0, LNET_MD_THRESH_INF, fx_patience(fx)))
		return;
	for (unsigned int i = 0; i < 20; i++)
		box_put(src, 1, true, LAZY, 50, HDR(50, i));
	fx_run(fx, 50000);
	fx_close(fx);
	expect(fx, src->outcomes[LNET_OUTCOME_DELIVERED] == 0);
}

/* The LND may need some time until the NID is free again; and no more. */
static bool ni_comes_back(struct fx *fx, unsigned int side)
{
	struct ulnet_ni_conf conf = { .nid = fx->rig->nid[side] };
	int rc = -EADDRINUSE;

	for (uint64_t waited = 0; rc == -EADDRINUSE; waited += 1000) {
		if (!expect(fx, waited < fx_patience(fx)))
			return false;
		rc = lnet_ni_add(fx->rig->node[side], &conf);
		if (rc == -EADDRINUSE)
			fx_run(fx, 1000);
	}
	return expect(fx, rc == 0);
}

static void ni_goes(struct fx *fx)
{
	for (unsigned int k = 0; k < 2 * ARRAY_SIZE(moments); k++) {
		unsigned int side = k % 2;
		struct lnet *node = fx->rig->node[side];
		struct ulnet_nid *nid = &fx->rig->nid[side];
		struct traffic t;

		if (!traffic_start(fx, &t, moments[k / 2]))
			return;
		expect(fx, lnet_ni_del(node, nid) == 0);
		expect(fx, lnet_ni_del(node, nid) == -ENOENT);
		expect(fx, fx_wait_ops(fx));
		expect(fx, fx_wait_idle(fx));
		expect_truth(fx, &t.s[0]);
		expect_truth(fx, &t.s[1]);
		if (!ni_comes_back(fx, side))
			return;
		still_works(fx);
		expect(fx, fx_wait_idle(fx));
		if (!fx_again(fx))
			return;
	}
}

/* What an NI has in its hands ends with it, and does not go on first. */
static void ni_lets_go(struct fx *fx)
{
	enum { N = 20 };
	bool is_virtual = fx->rig->can & RIG_VIRTUAL_TIME;
	struct stream s;

	if (!stream_open(fx, &s, 0, N, LNET_MTU, fx_patience(fx)))
		return;
	for (uint32_t i = 0; i < N; i++)
		box_put(s.src, 1, false, PORTAL, 20, HDR(20, i));
	fx_run(fx, 1000);
	expect(fx, lnet_ni_del(fx->rig->node[0], &fx->rig->nid[0]) == 0);
	fx_run(fx, is_virtual ? 1000 : 1000000);
	expect(fx, fx_read(fx, &s.src->terminals) == N);
	expect(fx, fx_wait_idle(fx));
	expect_truth(fx, &s);
}

/* It is added again while the LND may still be busy with its end. */
static void ni_changes(struct fx *fx)
{
	for (unsigned int k = 0; k < 2 * ARRAY_SIZE(moments); k++) {
		unsigned int side = k % 2;
		struct lnet *node = fx->rig->node[side];
		struct ulnet_nid *nid = &fx->rig->nid[side];
		struct traffic t;

		if (!traffic_start(fx, &t, moments[k / 2]))
			return;
		for (unsigned int i = 0; i < 3; i++) {
			expect(fx, lnet_ni_del(node, nid) == 0);
			if (!ni_comes_back(fx, side))
				return;
		}
		expect(fx, fx_wait_ops(fx));
		expect(fx, fx_wait_idle(fx));
		expect_truth(fx, &t.s[0]);
		expect_truth(fx, &t.s[1]);
		still_works(fx);
		expect(fx, fx_wait_idle(fx));
		if (!fx_again(fx))
			return;
	}
}

/* ---- memory ---- */

static void rounds(struct fx *fx)
{
	enum { WARM = 3, ROUNDS = 12, LEAK = 65536 };
	size_t before = 0;

	for (unsigned int k = 0; k < ROUNDS; k++) {
		many(fx, 200, 64);
		still_works(fx);
		timeout(fx);
		if (!expect(fx, fx_settle(fx)))
			return;
		expect(fx, fx_stat(fx, 0, "msgs_alloc") == 0);
		expect(fx, fx_stat(fx, 1, "msgs_alloc") == 0);
		if (k == WARM)
			before = mallinfo2().uordblks;
	}
	/* Pools grow to the most that was ever under way at once. */
	if (!(fx->rig->can & RIG_THREADS))
		expect(fx, mallinfo2().uordblks <= before + LEAK);
}

/* ---- the list ---- */

#define TWO 1024 /* needs two nodes */

static const struct behaviour {
	const char *name;
	unsigned int needs; /* RIG_*, TWO */
	void (*fn)(struct fx *fx);
} behaviours[] = {
	{ "PUT with ACK, 0 to 1 MiB", 0, put_ack },
	{ "PUT without ACK, 0 to 1 MiB", 0, put_noack },
	{ "GET, 0 to 1 MiB", 0, get },
	{ "ping", 0, ping },
	{ "256 fragments on both sides", 0, fragments },
	{ "truncated PUT", 0, truncated },
	{ "truncated GET", 0, truncated_get },
	{ "too long: dropped, counted", 0, too_long },
	{ "no match: dropped, counted, order kept", 0, no_match },
	{ "no such portal", 0, no_portal },
	{ "absent peer", TWO, absent_peer },
	{ "ping of an absent peer", TWO, absent_peer_ping },
	{ "order of 2000 messages each way", 0, order },
	{ "order of messages of mixed sizes", 0, order_of_sizes },
	{ "8 x 1 MiB each way at once", 0, big },
	{ "10000 messages, more than credits", 0, queueing },
	{ "sends from within events", 0, from_handlers },
	{ "lazy portal: buffer comes later", 0, lazy },
	{ "lazy portal: buffer comes from a handler", 0, lazy_in_time },
	{ "lazy portal: no buffer comes", 0, lazy_cleared },
	{ "no answer: ends at its deadline", 0, timeout },
	{ "deadlines at any moment", 0, deadlines },
	{ "unlink of an MD that waits", 0, cancel_waiting },
	{ "unlink of MDs at any moment", 0, cancel_busy },
	{ "requests are lost", RIG_LOSE, lost },
	{ "answers are lost", RIG_LOSE, lost_answers },
	{ "peer dies at any moment", RIG_KILL, death },
	{ "peer comes back", RIG_KILL, restart },
	{ "nodes close at any moment", 0, shutdown_busy },
	{ "node closes with held messages", 0, shutdown_lazy },
	{ "NI deleted at any moment", TWO, ni_goes },
	{ "NI deleted: what it sends ends", TWO, ni_lets_go },
	{ "NI deleted and added at once", TWO, ni_changes },
	{ "nothing piles up", 0, rounds },
};

/* ---- running them ---- */

struct sum {
	unsigned int passed, failed, skipped;
};

static const char *why_not(const struct lnd_rig *rig, const struct behaviour *b)
{
	if (b->needs & TWO && rig->can & RIG_ONE_NODE)
		return "needs two nodes";
	if (b->needs & RIG_KILL & ~rig->can)
		return "the peer cannot be killed";
	if (b->needs & RIG_LOSE & ~rig->can)
		return "nothing can be lost";
	return NULL;
}

static void skipped(const struct lnd_rig *rig, const char *what,
		    const char *why, struct sum *sum)
{
	printf("SKIP %s: %s: %s\n", rig->name, what, why);
	sum->skipped++;
}

static void run_one(struct lnd_rig *rig, const struct behaviour *b,
		    struct sum *sum)
{
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const char *why = why_not(rig, b);
	int rc = why ? 0 : fx_up(&fx, rig);

	if (rc == -ENOTSUP)
		why = rig->why;
	if (why) {
		skipped(rig, b->name, why, sum);
		return;
	}
	if (expect(&fx, rc == 0)) {
		b->fn(&fx);
		fx_down(&fx);
	}
	if (fx.failures) {
		printf("FAIL %s: %s (%u)\n", rig->name, b->name, fx.failures);
		sum->failed++;
	} else if (fx.skipped) {
		skipped(rig, b->name, fx.skipped, sum);
	} else {
		printf("PASS %s: %s\n", rig->name, b->name);
		sum->passed++;
	}
}

static bool wanted(int argc, char **argv, const struct lnd_rig *rig,
		   const struct behaviour *b)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", rig->name, b->name);
	for (int i = 1; i < argc; i++)
		if (strstr(text, argv[i]))
			return true;
	return argc < 2;
}

int conformance_main(int argc, char **argv, struct lnd_rig *rigs,
		     unsigned int n)
{
	struct sum sum = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int r = 0; r < n; r++)
		for (unsigned int i = 0; i < ARRAY_SIZE(behaviours); i++)
			if (wanted(argc, argv, &rigs[r], &behaviours[i]))
				run_one(&rigs[r], &behaviours[i], &sum);
	/* In criterion's words, which ./check counts by. */
	printf("Tested: %u | Passing: %u\n", sum.passed + sum.failed,
	       sum.passed);
	printf("%u passed, %u failed, %u skipped\n", sum.passed, sum.failed,
	       sum.skipped);
	if (sum.failed)
		return 1;
	return sum.passed ? 0 : 77;
}
