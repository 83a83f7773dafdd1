/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random runs with a model: each side of a connection posts numbered SENDs,
 * some with a WRITE before them, and numbered receives. Each completes once and
 * in order; what is received is what was sent, without gaps, after the WRITE
 * before it; a SEND reported as successful was received; memory around the
 * buffers is unchanged.
 */
#include <string.h>

#include "tests/slice.h"
#include "tests/unit/o2iblnd/simqp_rig.h"

#define SEEDS	     400
#define CONNS_WANTED 40
#define MESSAGES     512  /* of a side, at most */
#define SLOTS	     16	  /* receives, and SENDs */
#define SLOT	     64	  /* bytes */
#define WRITES	     1024 /* their offset in both areas */
#define WRITE	     32	  /* bytes */
#define WRITE_MOD    64	  /* places for them at the receiver */
#define POISON	     0xee

struct side {
	struct conn *c;
	struct side *peer;		      /* known after the request */
	unsigned int sent, ended, ended_well; /* SENDs */
	unsigned int receives, received, received_well;
	bool send_failed, receive_failed;
	bool over;	 /* the LND has disconnected */
	bool fenced;	 /* no WRITE may arrive any more, */
	bool fenced_all; /* nor anything else */
	bool wrote[MESSAGES];
};

struct run {
	struct rig *rig;
	struct rng rng;
	bool faults;
	struct side sides[CONNS];
};

static uint8_t pattern(const struct side *s, unsigned int number,
		       unsigned int i)
{
	return (uint8_t)(number * 31 + i * 7 + s->c->passive * 101 + 1);
}

static void write_pattern(const struct side *s, unsigned int number,
			  uint8_t *to, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		to[i] = pattern(s, number, i);
}

static bool is_pattern(const struct side *s, unsigned int number,
		       const uint8_t *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (p[i] != pattern(s, number, i))
			return false;
	return true;
}

static unsigned int length_of(unsigned int number)
{
	return 8 + number * 13 % (SLOT - 8);
}

static struct run *run_of(const struct side *s)
{
	return s->c->rig->user;
}

static bool chance(struct run *run, unsigned int percent)
{
	return rng_below(&run->rng, 100) < percent;
}

/* ---- what the LNDs do ---- */

static void post_receive(struct side *s)
{
	struct conn *c = s->c;

	if (!c->in_mr || s->over || s->receives - s->received >= SLOTS)
		return;
	cr_assert_eq(
		conn_recv(c, s->receives % SLOTS * SLOT, SLOT, s->receives), 0);
	s->receives++;
}

static void post_send(struct side *s)
{
	struct conn *c = s->c;
	uint32_t slot = s->sent % SLOTS * SLOT;
	uint32_t from = WRITES + s->sent % SLOTS * WRITE;
	struct side *to = s->peer;
	struct ib_sge data, text;
	struct ib_wr wrs[2] = {
		{ .type = IB_WR_WRITE, .sge = &data, .nsge = 1 },
		{ .type = IB_WR_SEND, .sge = &text, .nsge = 1 },
	};
	bool write = to->c->in_mr && chance(run_of(s), 50);
	int rc;

	if (s->sent == MESSAGES || s->sent - s->ended >= SLOTS / 2 || s->over)
		return;
	write_pattern(s, s->sent, c->out + slot, SLOT);
	write_pattern(s, s->sent, c->out + from, WRITE);
	text = conn_sge(c, slot, length_of(s->sent));
	data = conn_sge(c, from, WRITE);
	wrs[1].cookie = (void *)(uintptr_t)s->sent;
	wrs[1].inlined =
		text.length <= c->qp->max_inline && chance(run_of(s), 30);
	if (write) {
		wrs[0].rkey = to->c->in_mr->rkey;
		wrs[0].remote_addr = (uintptr_t)to->c->in + WRITES +
				     s->sent % WRITE_MOD * WRITE;
	}
	c->sends++;
	rc = CALL(c->rig, c->rig->v->post_send(c->qp, write ? wrs : wrs + 1,
					       write ? 2 : 1));
	cr_assert_eq(rc, 0);
	s->wrote[s->sent++] = write;
}

static void fence_writes(struct side *s)
{
	s->fenced = true;
	memset(s->c->in + WRITES, POISON, WRITE_MOD * WRITE);
}

static void fence_all(struct side *s)
{
	s->fenced = s->fenced_all = true;
	memset(s->c->in, POISON, RING);
}

static void leave(struct side *s)
{
	conn_disconnect(s->c);
	s->over = true;
	if (!s->fenced)
		fence_writes(s);
}

static void destroy(struct side *s)
{
	struct conn *c = s->c;

	s->over = true;
	conn_destroy(c);
	if (!s->fenced_all)
		fence_all(s);
}

static void on_receive(struct side *s, const struct wc *wc)
{
	unsigned int number = s->received_well;
	const uint8_t *slot = s->c->in + s->received % SLOTS * SLOT;

	cr_assert_eq(wc->cookie, s->received);
	s->received++;
	if (wc->status != IB_WC_OK) {
		s->receive_failed = true;
		return;
	}
	cr_assert(!s->receive_failed, "received after an error");
	cr_assert_lt(number, s->peer->sent, "received what was not sent");
	s->received_well++;
	cr_assert_eq(wc->length, length_of(number));
	if (!s->fenced_all)
		cr_assert(is_pattern(s->peer, number, slot, wc->length));
	if (s->peer->wrote[number] && !s->fenced)
		cr_assert(is_pattern(
			s->peer, number,
			s->c->in + WRITES + number % WRITE_MOD * WRITE, WRITE));
}

static void on_send(struct side *s, const struct wc *wc)
{
	cr_assert_eq(wc->cookie, s->ended);
	s->ended++;
	if (wc->status == IB_WC_OK) {
		cr_assert(!s->send_failed, "sent after an error");
		s->ended_well++;
	} else {
		cr_assert(!s->send_failed || wc->status == IB_WC_FLUSHED);
		s->send_failed = true;
	}
}

static void on_event(struct conn *c, const struct wc *wc)
{
	struct side *s = c->model;
	struct run *run = run_of(s);

	if (wc && wc->received)
		on_receive(s, wc);
	else if (wc)
		on_send(s, wc);
	/* at once, or later */
	if ((c->failed || c->rejected || c->disconnected ||
	     (wc && wc->status)) &&
	    c->created && chance(run, 30))
		leave(s);
	if (s->over && !c->recvs && !c->sends && chance(run, 50)) {
		destroy(s);
		return;
	}
	if (wc && wc->received && (!run->faults || chance(run, 95)))
		post_receive(s);
	if (c->established && chance(run, 40))
		post_send(s);
}

static struct side *side_new(struct run *run, struct conn *c)
{
	struct side *s = &run->sides[c - run->rig->conns];

	s->c = c;
	s->receives = run->rig->receives; /* those of conn_create() */
	c->model = s;
	c->hook = on_event;
	return s;
}

static void on_requested(struct conn *passive, struct conn *active)
{
	struct side *a = active->model;
	struct side *s = side_new(run_of(a), passive);

	s->peer = a;
	a->peer = s;
}

/* ---- what happens ---- */

static void random_link(struct run *run, struct simqp_link *link)
{
	struct rng *g = &run->rng;

	*link = (struct simqp_link){
		.latency = rng_below(g, 2 * MSEC),
		.jitter = rng_below(g, MSEC),
		.bandwidth = chance(run, 50) ? 1000000 : 0,
		.cm_latency = rng_below(g, MSEC),
		.rtu_delay = chance(run, 30) ? rng_below(g, 5 * MSEC) : 0,
	};
	if (!run->faults)
		return;
	link->loss = (uint32_t)rng_below(g, 50000);
	link->cm_loss = (uint32_t)rng_below(g, 200000);
	link->rnr = (uint32_t)rng_below(g, 100000);
	for (unsigned int i = 0; i < IB_WC_STATUSES; i++)
		link->wc_ppm[i] = chance(run, 20) ? 3000 : 0;
}

static const struct ulnet_nid *random_nid(struct run *run)
{
	static const struct ulnet_nid any = LNET_NID_ANY;
	uint64_t n = rng_below(&run->rng, NODES + 1);

	return n == NODES ? &any : rig_nid(run->rig, (unsigned int)n);
}

static void connect_one(struct run *run)
{
	struct rig *r = run->rig;
	unsigned int a = (unsigned int)rng_below(&run->rng, NODES);
	unsigned int b = (unsigned int)rng_below(&run->rng, NODES);

	r->answer = run->faults && chance(run, 10) ? REJECT : ACCEPT;
	r->nodes[b].request_cpt = (unsigned int)rng_below(&run->rng, CPTS);
	side_new(run,
		 rig_connect_to(r, a, (unsigned int)rng_below(&run->rng, CPTS),
				rig_nid(r, b)));
}

/* Ends everything at a node, and opens its port again. */
static void remove_one(struct run *run)
{
	struct rig *r = run->rig;
	unsigned int n = (unsigned int)rng_below(&run->rng, NODES);

	simqp_remove(r->fabric, rig_nid(r, n));
	qp_rig_run(r, rng_below(&run->rng, MSEC));
	for (unsigned int i = 0; i < r->nconns; i++) {
		struct conn *c = &r->conns[i];

		if (c->node == &r->nodes[n] && c->qp && c->created)
			leave(c->model);
	}
	qp_rig_run(r, 3 * MSEC);
	cr_assert_gt(r->nodes[n].removals, 0);
	for (unsigned int i = 0; i < r->nconns; i++) {
		struct conn *c = &r->conns[i];

		if (c->node == &r->nodes[n] && c->qp)
			destroy(c->model);
	}
	qp_rig_close(r, n);
	simqp_insert(r->fabric, rig_nid(r, n));
	qp_rig_open(r, n);
}

static void dereg_one(struct side *s)
{
	struct conn *c = s->c;

	if (!c->in_mr)
		return;
	CALL_VOID(c->rig, c->rig->v->dereg(c->node->port, c->in_mr));
	c->in_mr = NULL;
	fence_all(s);
}

static void harm(struct run *run, struct side *s)
{
	struct rig *r = run->rig;
	struct simqp_fabric *f = r->fabric;
	const struct ulnet_nid *a = random_nid(run), *b = random_nid(run);
	const struct ulnet_nid *nid =
		rig_nid(r, (unsigned int)rng_below(&run->rng, NODES));
	struct simqp_link link;

	switch (rng_below(&run->rng, 12)) {
	case 0:
		simqp_cut(f, a, b);
		break;
	case 1:
		simqp_silence(f, a, b, rng_below(&run->rng, 5 * NSEC_PER_SEC));
		break;
	case 2:
		simqp_port_set(f, nid, false, "harm");
		break;
	case 3:
	case 4:
		simqp_port_set(f, nid, true, "harm");
		break;
	case 5:
		random_link(run, &link);
		simqp_link_set(f, a, b, &link);
		break;
	case 6:
		dereg_one(s);
		break;
	case 7:
		if (s->c->qp && s->c->created)
			leave(s);
		break;
	case 8:
		if (s->c->qp && !s->c->recvs && !s->c->sends)
			destroy(s);
		break;
	case 9:
		remove_one(run);
		break;
	default: /* without faults */
		qp_rig_run(r, rng_below(&run->rng, NSEC_PER_SEC));
		break;
	}
}

static void step(struct run *run)
{
	struct rig *r = run->rig;
	uint64_t action = rng_below(&run->rng, 100);
	struct side *s;

	qp_rig_run(r, rng_below(&run->rng, MSEC));
	if (action < 8 && r->nconns < CONNS_WANTED)
		connect_one(run);
	if (!r->nconns)
		return;
	s = &run->sides[rng_below(&run->rng, r->nconns)];
	if (action >= 97 && run->faults)
		harm(run, s);
	else if (s->c->qp && s->c->established && action < 60)
		post_send(s);
	else if (s->c->qp && s->c->established)
		post_receive(s);
}

static void check_end(struct run *run)
{
	for (unsigned int i = 0; i < run->rig->nconns; i++) {
		struct side *s = &run->sides[i];
		unsigned int posted = s->c->created ? s->receives : 0;

		cr_assert_eq(s->ended, s->sent);
		cr_assert_eq(s->received, posted);
		cr_assert_eq(s->c->recvs + s->c->sends, 0);
		if (s->peer)
			cr_assert_leq(s->ended_well, s->peer->received_well);
		for (unsigned int k = WRITES; s->fenced && k < WRITES + 2048;
		     k++)
			cr_assert_eq(s->c->in[k], POISON);
		for (unsigned int k = 0; s->fenced_all && k < RING; k++)
			cr_assert_eq(s->c->in[k], POISON);
		if (run->faults)
			continue;
		cr_assert_eq(s->c->established, 1);
		cr_assert_eq(s->ended_well, s->sent);
		cr_assert_eq(s->received_well, s->peer->sent);
	}
}

static void end(struct run *run)
{
	struct rig *r = run->rig;
	const struct simqp_link good = { 0 };

	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &good);
	for (unsigned int i = 0; i < NODES; i++)
		simqp_port_set(r->fabric, rig_nid(r, i), true, "the end");
	qp_rig_run(r, 10 * NSEC_PER_SEC);
	for (unsigned int i = 0; i < r->nconns; i++)
		if (r->conns[i].qp && r->conns[i].created)
			leave(&run->sides[i]);
	qp_rig_run(r, 60 * NSEC_PER_SEC);
	check_end(run);
}

struct outcome {
	uint64_t digest;
	struct simqp_stats stats;
};

static void play(uint64_t seed, bool faults, struct outcome *o)
{
	const struct simqp_conf conf = {
		.ack_ns = 20 * MSEC,
		.cm_ns = 100 * MSEC,
		.cq_ns = seed % 3 ? MSEC / 2 : 0,
	};
	struct run *run = calloc(1, sizeof(*run));
	struct rig *r = rig_new(seed, &conf);
	struct simqp_link link;

	cr_assert(run);
	run->rig = r;
	run->faults = faults;
	rng_seed(&run->rng, seed);
	r->user = run;
	r->requested = on_requested;
	r->receives = 12;
	r->receive_size = SLOT;
	random_link(run, &link);
	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
	for (unsigned int i = 0; i < NODES; i++)
		qp_rig_open(r, i);
	for (unsigned int i = 0; i < 400; i++)
		step(run);
	end(run);
	o->digest = r->digest;
	simqp_stats(r->fabric, &o->stats);
	rig_free(r);
	free(run);
}

static void add_stats(struct simqp_stats *sum, const struct simqp_stats *one)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)one;

	for (unsigned int i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

Test(random_runs, with_faults)
{
	const uint64_t seeds = slice_of(SEEDS, SEEDS / 4);
	struct simqp_stats all = { 0 };
	struct outcome o;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		play(seed, true, &o);
		add_stats(&all, &o.stats);
	}
	/* each kind of event has occurred */
	cr_assert_gt(all.connected, seeds);
	cr_assert_gt(all.sends, 10 * seeds);
	cr_assert_gt(all.writes, seeds);
	cr_assert_gt(all.not_ready, seeds / 10);
	cr_assert_gt(all.resent, seeds);
	cr_assert_gt(all.lost, seeds);
	cr_assert_gt(all.refused, 0);
	cr_assert_gt(all.overtaken, 0);
}

Test(random_runs, without_faults)
{
	struct outcome o;

	for (uint64_t seed = 1; seed <= slice_of(SEEDS / 4, SEEDS / 16);
	     seed++) {
		play(seed, false, &o);
		cr_assert_eq(o.stats.lost, 0);
		cr_assert_eq(o.stats.refused, 0);
		cr_assert(!o.stats.resent || o.stats.not_ready);
	}
}

Test(random_runs, same_seed_same_run)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct outcome a, b;

		play(seed, true, &a);
		play(seed, true, &b);
		cr_assert_eq(a.digest, b.digest);
		cr_assert_arr_eq(&a.stats, &b.stats, sizeof(a.stats));
		play(seed + 1, true, &b);
		cr_assert_neq(a.digest, b.digest);
	}
}
