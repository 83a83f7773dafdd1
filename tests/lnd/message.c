/* SPDX-License-Identifier: BSD-3-Clause */
/* One message at a time: how it arrives, or why it does not. */
#include "tests/lnd/behaviour.h"

#include <errno.h>

static const uint32_t sizes[] = { 0, 1, 72, 4095, 4096, 4097, 65536, LNET_MTU };

/* ---- one message ---- */

void expect_order(struct fx *fx, struct box *b, uint32_t size)
{
	if (size <= RIG_SMALL || !(fx->rig->can & RIG_OVERTAKE))
		expect(fx, fx_read(fx, &b->disorder) == 0);
}

/* Checks the event of a PUT or GET at its target. */
static void expect_target_event(struct fx *fx, const struct ulnet_event *ev,
				unsigned int from, unsigned int to)
{
	expect(fx, lnet_nid_eq(&ev->initiator.nid, &fx->rig->nid[from]));
	expect(fx, lnet_nid_eq(&ev->source, &fx->rig->nid[from]));
	expect(fx, lnet_nid_eq(&ev->sender, &fx->rig->nid[from]));
	expect(fx, lnet_nid_eq(&ev->target.nid, &fx->rig->nid[to]));
	expect(fx, ev->initiator.pid == fx_id(fx, from).pid);
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

void still_works(struct fx *fx)
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
		expect(fx, b->outcomes[1] == fx_id(fx, to).pid);
		if (!lo)
			expect(fx, lnet_nid_eq(&b->terminal.source,
					       &fx->rig->nid[to]));
	}
	expect(fx, fx_wait_idle(fx));
}

void works_again(struct fx *fx)
{
	for_each_way (fx, from, to) {
		struct box *b = box_new(fx, 1, CUT_NONE);
		uint32_t n = 0;

		do {
			/* a ping may be lost on a connection whose end is not
			 * known yet */
			int rc = lnet_ping(fx->rig->node[from], fx_id(fx, to),
					   5 * SHORT_TIMEOUT, pinged, b);

			if (!expect(fx, rc == 0) ||
			    !expect(fx, fx_wait(fx, &b->n[0], ++n)) ||
			    !expect(fx, n < 100000))
				return;
		} while (b->terminal.status);
	}
	still_works(fx);
}

/* ---- shapes of memory ---- */

/* Source and destination are in many pieces, cut differently; each buffer takes
 * two messages, so the second one begins in the middle of a piece. */
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

/* If only part of a long message fits, the rest is dropped, and the next
 * message begins where it should. */
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

/* A GET asks for more bytes than there are. */
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

/* Without LNET_MD_TRUNCATE a message that is too long is dropped, and counted.
 */
static void too_long(struct fx *fx)
{
	enum { LONG = 100000 };

	for_each_way (fx, from, to) {
		uint64_t before = fx_stat(fx, to, "drop_too_long");
		uint64_t bytes = fx_stat(fx, to, "drop_length");
		struct box *dst = box_new(fx, 4096, CUT_NONE);
		struct box *fits = box_new(fx, 4096, CUT_NONE);
		struct box *src = box_new(fx, LONG, CUT_NONE);

		box_fill(src, 4);
		box_fill(fits, 4);
		if (!box_post(dst,
			      &(struct post){ .side = to,
					      .portal = PORTAL,
					      .bits = 8,
					      .options = LNET_MD_OP_PUT }) ||
		    !box_bind(src, from, 0, fx_patience(fx)) ||
		    !box_bind(fits, from, 0, fx_patience(fx)))
			return;
		box_put(src, to, true, PORTAL, 8, HDR(4, 0));
		expect(fx, fx_wait_stat(fx, to, "drop_too_long", before + 1));
		expect(fx, fx_stat(fx, to, "drop_length") == bytes + LONG);
		box_end(src);
		expect(fx, src->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
		expect(fx, dst->n[LNET_EVENT_PUT] == 0);
		box_put(fits, to, true, PORTAL, 8, HDR(4, 0));
		expect(fx, fx_wait(fx, &dst->unlinked, 1));
		expect(fx, dst->n[LNET_EVENT_PUT] == 1);
	}
	expect(fx, fx_wait_idle(fx));
}

/* Messages that match nothing, between messages that do. */
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
		expect_order(fx, dst, 30000);
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

/* A NID that no node has. How soon that is known depends on the LND. */
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
/* ---- the list ---- */

static const struct behaviour list[] = {
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
};

const struct topic topic_message = { list, ARRAY_SIZE(list) };
