/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits in captured conversations of kernel nodes, and between two random
 * sides. */
#include "lnd/o2iblnd/credit.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "base/env.h"
#include "tests/slice.h"

enum { N, P }; /* as in the specification: active, passive */

#define IMM	 IB_MSG_IMMEDIATE
#define PUT_REQ	 IB_MSG_PUT_REQ
#define PUT_ACK	 IB_MSG_PUT_ACK
#define PUT_NAK	 IB_MSG_PUT_NAK
#define PUT_DONE IB_MSG_PUT_DONE
#define GET_REQ	 IB_MSG_GET_REQ
#define GET_DONE IB_MSG_GET_DONE
#define NOOP	 IB_MSG_NOOP

/* ---- what was seen ---- */

struct step {
	int number; /* number of the packet; 0: a receive is posted again */
	int who;    /* who sends it, or posts its receive */
	enum ib_msg_type type;
	/* sent: credits in the message; received: was a PUT_ACK sent? */
	int credits;
	int c, r; /* credits that P has afterwards; -1: not known */
};

static void replay(const struct step *steps, unsigned int n)
{
	struct ib_credit both[2];

	ib_credit_init(&both[N], 8, 4);
	ib_credit_init(&both[P], 8, 4);
	for (const struct step *s = steps; s < steps + n; s++) {
		struct ib_credit *me = &both[s->who];
		uint8_t credits;

		if (!s->number) {
			ib_credit_reposted(me, s->type, s->credits);
			continue;
		}
		if (ib_credit_queue(s->type) == IB_QUEUE_RESERVED)
			cr_assert(ib_credit_reserve(me));
		cr_assert(ib_credit_may_send(me, s->type));
		credits = ib_credit_sent(me, s->type);
		cr_expect_eq(credits, s->credits, "#%d: %d credits, not %d",
			     s->number, credits, s->credits);
		cr_assert_eq(
			ib_credit_received(&both[!s->who], s->type, credits),
			0);
		if (s->c >= 0)
			cr_expect_eq(both[P].have, s->c, "#%d: C %d", s->number,
				     both[P].have);
		if (s->r >= 0)
			cr_expect_eq(both[P].reserved, s->r, "#%d: R %d",
				     s->number, both[P].reserved);
	}
}

/* ping and discovery */
Test(o2ib_credit, seen_small)
{
	static const struct step steps[] = {
		{ 4, N, IMM, 0, -1, -1 },
		{ 0, P, IMM, 0, 0, 0 },
		{ 6, P, IMM, 1, -1, -1 },
		{ 0, N, IMM, 0, 0, 0 },
		{ 8, N, IMM, 1, -1, -1 },
		{ 0, P, IMM, 0, 0, 0 },
		{ 10, P, IMM, 1, -1, -1 },
		{ 0, N, IMM, 0, 0, 0 },
		{ 12, N, IMM, 1, -1, -1 },
		/* the ACK is sent before the receive of its PUT is posted again
		 */
		{ 14, P, IMM, 0, -1, -1 },
		{ 0, P, IMM, 0, 0, 0 },
		{ 16, P, IMM, 1, 6, 8 },
		{ 0, N, IMM, 0, 0, 0 },
		{ 18, N, IMM, 1, 7, 8 },
		{ 0, N, IMM, 0, 0, 0 },
	};

	replay(steps, ARRAY_SIZE(steps));
}

/* a megabyte in each direction */
Test(o2ib_credit, seen_bulk)
{
	static const struct step steps[] = {
		/* P's last message */
		{ 7, P, IMM, 0, 7, 8 },
		{ 0, N, IMM, 0, 0, 0 },
		{ 9, N, IMM, 1, 8, 8 },
		{ 0, P, IMM, 0, 0, 0 },
		{ 11, P, GET_REQ, 1, 7, 7 },
		/* the receive is posted again after the answer */
		{ 1051, N, GET_DONE, 0, 7, 7 },
		{ 0, N, GET_REQ, 0, 0, 0 },
		{ 0, P, GET_DONE, 0, 0, 0 },
		{ 1055, P, IMM, 0, 6, 8 },
		{ 0, N, IMM, 0, 0, 0 },
		{ 1057, N, IMM, 2, 8, 8 },
		{ 0, P, IMM, 0, 0, 0 },
		{ 1060, P, IMM, 1, 7, 8 },
		{ 0, N, IMM, 0, 0, 0 },
		{ 1073, N, IMM, 1, 8, 8 },
		{ 0, P, IMM, 0, 0, 0 },
		{ 1075, P, PUT_REQ, 1, 7, 7 },
		{ 1077, N, PUT_ACK, 0, 7, 7 },
		{ 0, N, PUT_REQ, true, 0, 0 },
		{ 0, P, PUT_ACK, 0, 0, 0 },
		{ 2117, P, PUT_DONE, 0, 7, 8 },
		{ 0, N, PUT_DONE, 0, 0, 0 },
		{ 2121, P, IMM, 0, 6, 8 },
		{ 0, N, IMM, 0, 0, 0 },
		{ 2123, N, IMM, 2, 8, 8 },
	};

	replay(steps, ARRAY_SIZE(steps));
}

/* ---- rules ---- */

Test(o2ib_credit, hiw)
{
	static const struct {
		unsigned int depth, credits, hiw, want;
	} cases[] = {
		{ 8, 8, 4, 4 },		{ 8, 32, 16, 4 },
		{ 8, 8, 7, 7 },		{ 1, 8, 4, 1 },
		{ 3, 8, 4, 1 },		{ 8, 8, 0, 1 },
		{ 8, 4, 4, 8 },		{ 8, 4, 200, 8 },
		{ 255, 255, 127, 127 }, { 100, 0, 1, 100 },
		{ 128, 255, 254, 127 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(ib_credit_hiw(cases[i].depth, cases[i].credits,
					   cases[i].hiw),
			     cases[i].want, "case %u", i);
}

Test(o2ib_credit, noop)
{
	static const struct {
		uint8_t owe, have;
		bool keepalive;
		unsigned int queued[IB_QUEUES];
		bool want;
	} cases[] = {
		{ 3, 8, false, { 0, 0, 0 }, false },
		{ 4, 8, false, { 0, 0, 0 }, true },
		{ 4, 8, false, { 1, 0, 0 }, false }, /* is sent with that */
		{ 4, 8, false, { 0, 1, 0 }, false },
		{ 4, 0, false, { 0, 1, 0 }, true }, /* cannot be sent */
		{ 4, 8, false, { 0, 0, 1 }, true }, /* nor can this */
		{ 0, 8, true, { 0, 0, 0 }, true },
		{ 0, 8, true, { 0, 1, 0 }, false },
		{ 0, 0, true, { 0, 1, 0 }, true },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ib_credit c;

		ib_credit_init(&c, 8, 4);
		c.owe = cases[i].owe;
		c.have = cases[i].have;
		cr_expect_eq(
			ib_credit_noop_due(&c, cases[i].keepalive,
					   cases[i].queued[IB_QUEUE_FREE],
					   cases[i].queued[IB_QUEUE_NORMAL]),
			cases[i].want, "case %u", i);
	}
}

/* Peers that violate the rules. */
Test(o2ib_credit, protocol)
{
	struct ib_credit c;

	ib_credit_init(&c, 2, 1);
	/* returns more than it owed */
	cr_expect_eq(ib_credit_received(&c, NOOP, 1), -EPROTO);
	cr_expect_eq(ib_credit_sent(&c, IMM), 0);
	cr_expect_eq(ib_credit_received(&c, NOOP, 2), -EPROTO);
	cr_expect_eq(ib_credit_received(&c, NOOP, 255), -EPROTO);
	cr_expect_eq(c.have, 1, "nothing has changed");
	cr_expect_eq(ib_credit_received(&c, NOOP, 1), 0);
	cr_expect_eq(c.have, 2);
	/* sends more than it may */
	cr_expect_eq(ib_credit_received(&c, IMM, 0), 0);
	cr_expect_eq(ib_credit_received(&c, GET_REQ, 0), 0);
	cr_expect_eq(ib_credit_received(&c, PUT_REQ, 0), -EPROTO);
	/* it does not know yet that the receives are posted again */
	ib_credit_reposted(&c, IMM, false);
	cr_expect_eq(ib_credit_received(&c, IMM, 0), -EPROTO);
	cr_expect_eq(ib_credit_sent(&c, NOOP), 1);
	cr_expect_eq(ib_credit_received(&c, IMM, 0), 0);
}

Test(o2ib_credit, unsent)
{
	struct ib_credit c, before;

	ib_credit_init(&c, 4, 2);
	cr_expect_eq(ib_credit_received(&c, IMM, 0), 0);
	ib_credit_reposted(&c, IMM, false);
	before = c;
	ib_credit_unsent(&c, PUT_REQ, ib_credit_sent(&c, PUT_REQ));
	cr_expect_eq(memcmp(&c, &before, sizeof(c)), 0);
	cr_assert(ib_credit_reserve(&c));
	ib_credit_unreserve(&c);
	cr_expect_eq(memcmp(&c, &before, sizeof(c)), 0);
}

/* ---- two sides ---- */

#define LINE_MAX 2048

struct msg {
	enum ib_msg_type type;
	uint8_t credits;
};

struct line {
	struct msg msgs[LINE_MAX];
	unsigned int first, n;
};

static void line_add(struct line *l, struct msg m)
{
	cr_assert_lt(l->n, LINE_MAX);
	l->msgs[(l->first + l->n++) % LINE_MAX] = m;
}

static struct msg line_take(struct line *l)
{
	struct msg m = l->msgs[l->first];

	cr_assert_gt(l->n, 0);
	l->first = (l->first + 1) % LINE_MAX;
	l->n--;
	return m;
}

struct side {
	struct ib_credit credit;
	struct line queues[IB_QUEUES];
	struct line wire;    /* posted by this side, not delivered yet */
	struct line come;    /* delivered: each one is in a receive */
	struct line held;    /* handled: the user has not answered yet */
	unsigned int posted; /* posted receives */
	unsigned int noops;  /* under way */
	unsigned int asked;  /* unanswered requests */
	unsigned int sent;
};

struct pair {
	struct side sides[2];
	struct rng rng;
	uint64_t seed;
};

static void enqueue(struct side *me, enum ib_msg_type type)
{
	line_add(&me->queues[ib_credit_queue(type)],
		 (struct msg){ .type = type });
}

static void post(struct side *me, struct msg m)
{
	m.credits = ib_credit_sent(&me->credit, m.type);
	me->noops += m.type == NOOP;
	line_add(&me->wire, m);
	me->sent++;
}

static void pump(struct side *me, bool keepalive)
{
	struct line *q = me->queues;

	for (;;) {
		struct line *from;

		while (q[IB_QUEUE_RESERVED].n && ib_credit_reserve(&me->credit))
			line_add(&q[IB_QUEUE_NORMAL],
				 line_take(&q[IB_QUEUE_RESERVED]));
		if (me->noops < IB_NOOPS_MAX &&
		    ib_credit_noop_due(&me->credit, keepalive,
				       q[IB_QUEUE_FREE].n,
				       q[IB_QUEUE_NORMAL].n)) {
			post(me, (struct msg){ .type = NOOP });
			keepalive = false;
		}
		from = q[IB_QUEUE_FREE].n ? &q[IB_QUEUE_FREE]
					  : &q[IB_QUEUE_NORMAL];
		if (!from->n ||
		    !ib_credit_may_send(&me->credit,
					from->msgs[from->first].type))
			return;
		post(me, line_take(from));
	}
}

static void repost(struct side *me, enum ib_msg_type type, bool acked)
{
	ib_credit_reposted(&me->credit, type, acked);
	me->posted++;
}

/* The peer's device has it: the sender is told, the peer's program not yet. */
static void arrive(struct pair *p, int who)
{
	struct side *me = &p->sides[who], *peer = &p->sides[!who];
	struct msg m = line_take(&me->wire);

	cr_assert(peer->posted, "seed %ju: no receive is posted",
		  (uintmax_t)p->seed);
	peer->posted--;
	me->noops -= m.type == NOOP;
	line_add(&peer->come, m);
}

static void look(struct pair *p, int who)
{
	struct side *me = &p->sides[who];
	struct msg m = line_take(&me->come);

	cr_assert_eq(ib_credit_received(&me->credit, m.type, m.credits), 0);
	switch (m.type) {
	case PUT_ACK:
		enqueue(me, PUT_DONE);
		/* fallthrough */
	case PUT_NAK:
	case GET_DONE:
		me->asked--;
		/* fallthrough */
	case PUT_DONE:
	case NOOP:
		repost(me, m.type, false);
		break;
	default:
		line_add(&me->held, m);
	}
}

static void answer(struct pair *p, int who)
{
	struct side *me = &p->sides[who];
	struct msg m = line_take(&me->held);
	bool acked = m.type == PUT_REQ && rng_below(&p->rng, 2);

	if (acked)
		enqueue(me, PUT_ACK);
	else if (m.type == PUT_REQ)
		enqueue(me, PUT_NAK);
	else if (m.type == GET_REQ)
		enqueue(me, GET_DONE);
	if (rng_below(&p->rng, 2))
		pump(me, false);
	repost(me, m.type, acked);
}

static void check(const struct pair *p)
{
	for (int who = 0; who < 2; who++) {
		const struct side *me = &p->sides[who];
		const struct side *peer = &p->sides[!who];
		const struct ib_credit *c = &me->credit;
		unsigned int coming = 0, costs = 0;

		cr_assert_leq(c->have, c->depth);
		cr_assert_leq(c->owe + c->peer, c->depth);
		cr_assert_leq(c->reserved, c->depth);
		/* The credits and costs that are under way between the two
		 * sides' views. */
		for (unsigned int i = 0; i < peer->wire.n; i++)
			coming +=
				peer->wire
					.msgs[(peer->wire.first + i) % LINE_MAX]
					.credits;
		for (unsigned int i = 0; i < me->come.n; i++)
			coming += me->come.msgs[(me->come.first + i) % LINE_MAX]
					  .credits;
		for (unsigned int i = 0; i < me->wire.n + peer->come.n; i++) {
			const struct line *l =
				i < me->wire.n ? &me->wire : &peer->come;
			unsigned int at = i < me->wire.n ? i : i - me->wire.n;

			costs += ib_credit_queue(
					 l->msgs[(l->first + at) % LINE_MAX]
						 .type) != IB_QUEUE_FREE;
		}
		cr_assert_eq(c->have + coming + costs, peer->credit.peer,
			     "seed %ju: %u + %u + %u is not %u",
			     (uintmax_t)p->seed, c->have, coming, costs,
			     peer->credit.peer);
	}
}

static void side_step(struct pair *p)
{
	int who = (int)rng_below(&p->rng, 2);
	struct side *me = &p->sides[who];
	static const enum ib_msg_type types[] = { IMM, PUT_REQ, GET_REQ };

	switch (rng_below(&p->rng, 8)) {
	case 0:
		if (me->queues[IB_QUEUE_NORMAL].n +
			    me->queues[IB_QUEUE_RESERVED].n >
		    600)
			break;
		enqueue(me, types[rng_below(&p->rng, 3)]);
		break;
	case 1:
		pump(me, !rng_below(&p->rng, 50));
		break;
	case 2:
	case 3:
		if (me->wire.n)
			arrive(p, who);
		break;
	case 4:
	case 5:
		if (me->come.n)
			look(p, who);
		break;
	default:
		if (me->held.n)
			answer(p, who);
	}
}

static bool settle(struct pair *p)
{
	bool moved = false;

	for (int who = 0; who < 2; who++) {
		struct side *me = &p->sides[who];
		unsigned int sent = me->sent;

		for (; me->wire.n; moved = true)
			arrive(p, who);
		for (; p->sides[!who].come.n; moved = true)
			look(p, !who);
		for (; me->held.n; moved = true)
			answer(p, who);
		pump(me, false);
		moved |= me->sent != sent;
		check(p);
	}
	return moved;
}

static void run(uint64_t seed)
{
	struct pair *p = calloc(1, sizeof(*p));
	unsigned int depth;

	cr_assert_not_null(p);
	p->seed = seed;
	rng_seed(&p->rng, seed);
	depth = (unsigned int)rng_below(&p->rng, seed % 2 ? 4 : 20) + 1;
	for (int who = 0; who < 2; who++) {
		struct side *me = &p->sides[who];

		/* as for any peer_credits_hiw: at least half of them */
		ib_credit_init(&me->credit, depth,
			       MAX(depth / 2, 1u) +
				       (unsigned int)rng_below(
					       &p->rng,
					       depth - MAX(depth / 2, 1u) + 1));
		me->posted = IB_RECEIVES(depth);
	}
	for (unsigned int i = 0; i < 2000; i++) {
		side_step(p);
		check(p);
	}
	while (settle(p))
		;
	for (int who = 0; who < 2; who++) {
		struct side *me = &p->sides[who], *peer = &p->sides[!who];

		for (int i = 0; i < IB_QUEUES; i++)
			cr_assert_eq(me->queues[i].n, 0,
				     "seed %ju: something is stuck",
				     (uintmax_t)seed);
		cr_expect_eq(me->posted, IB_RECEIVES(depth));
		cr_expect_eq(me->credit.reserved, depth);
		cr_expect_eq(me->credit.have + peer->credit.owe, depth);
	}
	free(p);
}

Test(o2ib_credit, random)
{
	for (uint64_t seed = 1; seed <= slice_of(1500, 400); seed++)
		run(seed);
}
