/* SPDX-License-Identifier: BSD-3-Clause */
/* Many messages: their order, their deadlines, and their cancellation by users.
 */
#include "tests/lnd/behaviour.h"

#include <errno.h>

/* ---- many messages ---- */

bool stream_open(struct fx *fx, struct stream *s, unsigned int from, uint32_t n,
		 uint32_t size, uint64_t timeout)
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

void stream_put(struct stream *s, uint32_t i)
{
	box_put(s->src, s->to, true, PORTAL, 20 + s->from,
		HDR(20 + s->from, i));
}

/* Returns how many messages are in the memory of the destination. */
static unsigned int stored(const struct stream *s)
{
	uint32_t size = s->src->size;
	unsigned int n = 0;

	for (uint32_t at = 0; at < s->dst->size; at += size)
		n += box_holds(s->dst, at, size, 20 + s->from);
	return n;
}

/* A node that is killed while its threads run may have stored messages, and
 * sent their ACKs, whose handlers are never called. */
static bool handlers_are_missing(const struct fx *fx, const struct stream *s)
{
	return fx->rig->can & RIG_THREADS && s->dst->lost && !s->dst->unlinked;
}

void expect_truth(struct fx *fx, const struct stream *s)
{
	bool missing = handlers_are_missing(fx, s);
	unsigned int lies = 0, twice = 0;

	pthread_mutex_lock(&fx->lock);
	for (uint32_t i = 0; i < s->src->track; i++) {
		uint8_t outcome = s->src->outcome[i], n = s->dst->arrived[i];

		lies += outcome == LNET_OUTCOME_DELIVERED && n == 0 && !missing;
		n &= (uint8_t)~ARRIVED_MAYBE;
		lies += outcome == LNET_OUTCOME_NOT_DELIVERED && n != 0;
		twice += n > 1;
	}
	pthread_mutex_unlock(&fx->lock);
	expect(fx, lies == 0);
	expect(fx, twice == 0);
	if (missing)
		expect(fx,
		       s->src->outcomes[LNET_OUTCOME_DELIVERED] <= stored(s));
}

void many(struct fx *fx, uint32_t n, uint32_t size)
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
		expect_order(fx, s[w].dst, size);
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
	struct ulnet_peer_info info = { 0 };

	many(fx, fx->rig->can & RIG_ONE_NODE ? 10000 : 5000, 40);
	if (fx->rig->can & RIG_ONE_NODE)
		return;
	expect(fx,
	       lnet_peer_info(fx->rig->node[0], &fx->rig->nid[1], &info) == 0);
	if (!(fx->rig->can & RIG_THREADS))
		expect(fx, info.credits_min < 0);
}

/* Messages of all sizes keep their order: they take their places in the buffer
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
	if (fx->rig->can & RIG_OVERTAKE) {
		fx->skipped = "messages of different sizes go different ways";
		return;
	}
	if (lnet_call(fx->rig->node[0], 1, nothing, NULL) != -EINVAL) {
		fx->skipped = "MDs are on several CPTs, which keep no order "
			      "among each other";
		return;
	}
	for_each_way (fx, from, to)
		order_of_sizes_way(fx, from, to);
	expect(fx, fx_wait_idle(fx));
}

/* Messages sent from within events: each PUT is answered by the next one. */
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

/* Messages that come before their buffer wait, in order, and arrive when it is
 * attached. */
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
	expect(fx, dst->n[LNET_EVENT_PUT] == N);
	expect_order(fx, dst, SIZE);
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

/* A handler attaches the buffer just while the CPTs look for one: every CPT has
 * entries on the portal, but none for this message. */
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

/* A message for which there is never a buffer is dropped when the portal is no
 * longer lazy. */
static void lazy_cleared(struct fx *fx)
{
	uint64_t before = fx_stat(fx, 1, "drop_no_match");
	struct box *src = box_new(fx, 5000, CUT_NONE);

	expect(fx, LNetSetLazyPortal(fx->rig->node[1], LAZY) == 0);
	if (!box_bind(src, 0, LNET_MD_THRESH_INF, fx_patience(fx)))
		return;
	box_put(src, 1, true, LAZY, 50, HDR(0, 0));
	box_put(src, 1, true, LAZY, 50, HDR(0, 0));
	fx_run(fx, SHORT_TIMEOUT);
	expect(fx, fx_stat(fx, 1, "drop_no_match") == before);
	expect(fx, LNetClearLazyPortal(fx->rig->node[1], LAZY) == 0);
	still_works(fx);
	expect(fx, fx_wait_stat(fx, 1, "drop_no_match", before + 2));
	box_end(src);
	expect(fx, src->outcomes[LNET_OUTCOME_UNKNOWN] == 2);
	expect(fx, fx_wait_idle(fx));
}

/* ---- time ---- */

void unanswered(struct fx *fx, uint64_t timeout)
{
	for_each_way (fx, from, to) {
		struct box *put = box_new(fx, 4096, CUT_NONE);
		struct box *asks = box_new(fx, 4096, CUT_NONE);

		if (!box_bind(put, from, 0, timeout) ||
		    !box_bind(asks, from, 0, timeout))
			return;
		box_put(put, to, true, EMPTY, 1, 0);
		box_get(asks, to, EMPTY, 1);
		expect(fx, fx_wait_ops(fx));
		box_end(put);
		box_end(asks);
		expect(fx, put->terminal.status == -ETIMEDOUT);
		expect(fx, asks->terminal.status == -ETIMEDOUT);
	}
}

/* Fails unless the operation has ended at its deadline, unanswered, without
 * knowledge of whether it was delivered. */
static void expect_timed_out(struct fx *fx, const struct box *b)
{
	expect(fx, b->terminals == 1);
	expect(fx, b->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	expect(fx, b->terminal.type == LNET_EVENT_UNLINK);
	expect(fx, b->terminal.status == -ETIMEDOUT);
	expect(fx, b->terminal.cause == LNET_CAUSE_RESPONSE_TIMEOUT);
	expect(fx, b->terminal.elapsed >= b->timeout);
}

/* Returns false if the machine was too slow: not even the requests were sent
 * within @us. */
static bool timeout_way(struct fx *fx, unsigned int from, unsigned int to,
			uint64_t us)
{
	uint64_t before = fx_stat(fx, from, "response_timeout_count");
	struct box *put = box_new(fx, 4096, CUT_NONE);
	struct box *asks = box_new(fx, 4096, CUT_NONE);

	if (!box_bind(put, from, 0, us) || !box_bind(asks, from, 0, us))
		return true;
	box_put(put, to, true, EMPTY, 1, 0);
	box_get(asks, to, EMPTY, 1);
	expect(fx, fx_wait_ops(fx));
	expect(fx, fx_wait(fx, &put->unlinked, 1));
	expect(fx, fx_wait(fx, &asks->unlinked, 1));
	if (put->n[LNET_EVENT_SEND] == 0 || asks->n[LNET_EVENT_SEND] == 0)
		return false;
	expect_timed_out(fx, put);
	expect_timed_out(fx, asks);
	expect(fx, fx_stat(fx, from, "response_timeout_count") == before + 2);
	return true;
}

static void timeout(struct fx *fx)
{
	/* connections are open, so they take no time of the deadline */
	still_works(fx);
	for_each_way (fx, from, to) {
		uint64_t us = 2 * SHORT_TIMEOUT;

		while (!timeout_way(fx, from, to, us))
			if (!expect(fx, (us *= 2) < fx_patience(fx)))
				return;
	}
	still_works(fx);
	expect(fx, fx_wait_idle(fx));
}

/* Deadlines that end a long message at every stage: queued, half sent, on the
 * wire, half stored, answered. */
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
			/* -ENOENT: the GET has arrived */
			LNetMEUnlink(there->me);
		}
		expect(fx, fx_wait_idle(fx));
		expect_truth(fx, &s);
		still_works(fx);
		if (!fx_again(fx))
			return;
	}
}

/* Users cancel operations that wait for their answer, which end at once. */
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

/* Unlinks MDs while operations go on, at various moments: those from which the
 * operations were begun, or those at their target. */
static void cancel_busy(struct fx *fx)
{
	enum { N = 30 };
	static const uint64_t when[] = { 0, 1, 1000, 10000, 40000 };

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
		/* -ENOENT: it was unlinked meanwhile */
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
/* ---- the list ---- */

static const struct behaviour list[] = {
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
};

const struct topic topic_stream = { list, ARRAY_SIZE(list) };
