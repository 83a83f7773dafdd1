/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens when messages are lost, and when peers, interfaces and nodes
 * end. */
#include "tests/lnd/behaviour.h"

#include <errno.h>
#include <malloc.h>

#include "lnd/cause.h"

/* ---- losses ---- */

static bool lost_op(struct fx *fx, unsigned int from, unsigned int to,
		    unsigned int arrives)
{
	/* small enough for its payload to be sent with the request */
	struct box *dst = box_new(fx, 1024, CUT_NONE);
	struct box *src = box_new(fx, 1024, CUT_NONE);
	struct box *asks = box_new(fx, 1024, CUT_NONE);

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

/* Loses requests, or answers. */
static void lost_each_way(struct fx *fx, bool answers)
{
	struct lnd_rig *rig = fx->rig;

	/* no connection can be opened while answers are lost */
	still_works(fx);
	for_each_way (fx, from, to) {
		unsigned int loser = answers ? to : from;

		expect(fx, rig->ops->lose(rig, loser, true) == 0);
		if (!lost_op(fx, from, to, answers))
			return;
		expect(fx, rig->ops->lose(rig, loser, false) == 0);
		still_works(fx);
	}
	expect(fx, fx_wait_idle(fx));
}

static void lost(struct fx *fx)
{
	lost_each_way(fx, false);
}

static void lost_answers(struct fx *fx)
{
	lost_each_way(fx, true);
}

/* ---- ends ---- */

/* Long messages in all directions, which are under way when something ends. */
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

static void expect_traffic_ends(struct fx *fx, const struct traffic *t)
{
	expect(fx, fx_wait_ops(fx));
	expect(fx, fx_wait_idle(fx));
	for (unsigned int w = 0; w < t->ways; w++)
		expect_truth(fx, &t->s[w]);
}

/* Checks that everything works again, and begins traffic anew. */
static bool recovers(struct fx *fx)
{
	works_again(fx);
	expect(fx, fx_wait_idle(fx));
	return fx_again(fx);
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
		if (!recovers(fx))
			return;
	}
}

/* Sends a PUT to the peer that has gone, and returns its last event. */
static struct ulnet_event put_in_vain(struct fx *fx)
{
	struct box *b = box_new(fx, 100, CUT_NONE);
	struct ulnet_event ev;

	if (box_bind(b, 0, 1, fx_patience(fx)))
		box_put(b, 1, false, PORTAL, 1, 0);
	expect(fx, fx_wait(fx, &b->terminals, 1));
	ev = b->terminal;
	expect(fx, fx_wait(fx, &b->unlinked, 1));
	return ev;
}

/* Requirement D2: a message to a peer that is not there fails because of that
 * peer. (One that a dying connection took may seem to have been sent.) */
static void absence(struct fx *fx)
{
	struct ulnet_event ev = { 0 };

	still_works(fx);
	expect(fx, fx_kill(fx) == 0);
	for (unsigned int i = 0; i < 100 && !ev.status; i++)
		ev = put_in_vain(fx);
	for (unsigned int i = 0; i < 3; i++) {
		ev = put_in_vain(fx);
		expect(fx, ev.outcome == LNET_OUTCOME_NOT_DELIVERED);
		expect(fx, ev.cause == LNET_CAUSE_REMOTE_DROPPED);
		expect(fx,
		       lnd_judge(ev.status, ev.cause).blame == LND_BLAME_PEER);
	}
	expect(fx, fx->rig->ops->restart_peer(fx->rig) == 0);
	works_again(fx);
}

static void restart(struct fx *fx)
{
	still_works(fx);
	for (unsigned int k = 0; k < 5; k++) {
		expect(fx, fx_wait_idle(fx));
		expect(fx, fx_kill(fx) == 0);
		expect(fx, fx->rig->ops->restart_peer(fx->rig) == 0);
		works_again(fx);
	}
	expect(fx, fx_wait_idle(fx));
}

/* Small messages that arrive keep their order: none comes after one that was
 * sent later. */
struct line {
	uint32_t next;
	unsigned int wrong;
};

static void note_line(struct box *b, const struct ulnet_event *ev)
{
	struct line *line = b->hook_arg;

	if (ev->type != LNET_EVENT_PUT || ev->status)
		return;
	line->wrong += HDR_I(ev->hdr_data) < line->next;
	line->next = HDR_I(ev->hdr_data) + 1;
}

#define LINE 200

static void put_line(struct box *src, uint32_t from)
{
	for (uint32_t i = from; i < from + LINE; i++)
		box_put(src, 1, false, PORTAL, 30, HDR(30, i));
}

/* Checks the order of messages that are queued when the peer dies, that are
 * sent while it is away, and that are sent when it is back; the last one waits
 * for an answer. The order is the LND's: LNet gives it each message only once,
 * since one that is sent again may arrive after later ones. */
static void order_again(struct fx *fx)
{
	struct line line = { .next = 0 };
	struct box *src = box_new(fx, 64, CUT_NONE);
	/* a range for each: a handler checks one while another arrives */
	struct box *dst = box_new(fx, 64 * (4 * LINE + 1), CUT_NONE);

	box_fill(src, 30);
	expect(fx, lnet_setting_set(fx->rig->node[0], "retry_count", 0) == 0);
	still_works(fx);
	if (!box_bind(src, 0, LNET_MD_THRESH_INF, fx_patience(fx)))
		return;
	put_line(src, 0);
	expect(fx, fx_kill(fx) == 0);
	put_line(src, LINE);
	expect(fx, fx->rig->ops->restart_peer(fx->rig) == 0);
	dst->hook = note_line;
	dst->hook_arg = &line;
	if (!box_post(dst, &(struct post){ .side = 1,
					   .portal = PORTAL,
					   .bits = 30,
					   .threshold = LNET_MD_THRESH_INF,
					   .options = LNET_MD_OP_PUT }))
		return;
	put_line(src, 2 * LINE);
	works_again(fx);
	put_line(src, 3 * LINE);
	box_put(src, 1, true, PORTAL, 30, HDR(30, 4 * LINE));
	expect(fx, fx_wait(fx, &src->n[LNET_EVENT_ACK], 1));
	box_end(dst);
	expect(fx, line.wrong == 0);
	expect(fx, line.next == 4 * LINE + 1);
	expect(fx, dst->n[LNET_EVENT_PUT] > LINE);
	expect(fx, fx_stat(fx, 0, "resend_count") == 0);
	expect(fx, fx_wait_ops(fx));
	box_end(src);
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

/* Closes the node in the same turn in which the LND got a message, which it
 * could have sent at once. */
static void shutdown_at_once(struct fx *fx)
{
	struct box *src = box_new(fx, 5000, CUT_NONE);

	still_works(fx);
	expect(fx, fx_wait_idle(fx));
	if (!box_bind(src, 0, LNET_MD_THRESH_INF, fx_patience(fx)))
		return;
	box_put(src, 1, false, PORTAL, 50, HDR(50, 0));
	fx_close(fx);
	expect(fx, src->unlinked == 1);
}

/* Closes the node while messages wait for a buffer. */
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

/* Adds the NI again, as soon as the LND allows the NID to be used again. */
static bool ni_comes_back(struct fx *fx, unsigned int side)
{
	struct ulnet_ni_conf conf = { .nid = fx->rig->nid[side],
				      .tunables = fx->rig->tunables,
				      .ntunables = fx->rig->ntunables };
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
		expect_traffic_ends(fx, &t);
		if (!ni_comes_back(fx, side) || !recovers(fx))
			return;
	}
}

/* Messages of an NI that is deleted end at once; they are not sent first. */
static void ni_lets_go(struct fx *fx)
{
	enum { N = 20 };
	struct stream s;

	if (!stream_open(fx, &s, 0, N, LNET_MTU, fx_patience(fx)))
		return;
	for (uint32_t i = 0; i < N; i++)
		box_put(s.src, 1, false, PORTAL, 20, HDR(20, i));
	fx_run(fx, 1000);
	expect(fx, lnet_ni_del(fx->rig->node[0], &fx->rig->nid[0]) == 0);
	expect(fx, fx_wait(fx, &s.src->terminals, N));
	expect(fx, s.src->terminal.elapsed < fx_patience(fx) / 2);
	expect(fx, fx_wait_idle(fx));
	expect_truth(fx, &s);
}

/* Adds the NI again while the LND may still be busy with its end. */
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
		expect_traffic_ends(fx, &t);
		if (!recovers(fx))
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
		unanswered(fx, SHORT_TIMEOUT / 10);
		if (!expect(fx, fx_settle(fx)))
			return;
		expect(fx, fx_stat(fx, 0, "msgs_alloc") == 0);
		expect(fx, fx_stat(fx, 1, "msgs_alloc") == 0);
		if (k == WARM)
			before = mallinfo2().uordblks;
	}
	/* with threads, pools grow to the most that was ever under way at once
	 */
	if (!(fx->rig->can & RIG_THREADS))
		expect(fx, mallinfo2().uordblks <= before + LEAK);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "requests are lost", RIG_LOSE, lost },
	{ "answers are lost", RIG_LOSE, lost_answers },
	{ "peer dies at any moment", RIG_KILL, death },
	{ "peer is not there: who is to blame", RIG_KILL, absence },
	{ "peer comes back", RIG_KILL, restart },
	{ "peer comes back: messages keep their order", RIG_KILL, order_again },
	{ "nodes close at any moment", 0, shutdown_busy },
	{ "nodes close as a message is sent", 0, shutdown_at_once },
	{ "node closes with held messages", 0, shutdown_lazy },
	{ "NI deleted at any moment", TWO, ni_goes },
	{ "NI deleted: what it sends ends", TWO, ni_lets_go },
	{ "NI deleted and added at once", TWO, ni_changes },
	{ "nothing piles up", 0, rounds },
};

const struct topic topic_ending = { list, ARRAY_SIZE(list) };
