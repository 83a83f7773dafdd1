/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that are pinged, that get pushes from others, and that ping. */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "lnet/message/wire.h"
#include "lnet/node/node.h"
#include "lnet/portal/match.h"
#include "lnet/portal/md.h"
#include "tests/unit/lnet/discovery/ping_rig.h"

/* ---- a node answers pings ---- */

static struct lnet_sim *sim_of(const char *nids, const struct ulnet_conf *conf)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(lnet_sim_node_add(sim, nids, conf, NULL, NULL), 0);
	return sim;
}

/* GETs the ping information of @target into @sink, which is one piece of
 * memory. */
static void get_info(struct lnet *node, const char *target, void *sink,
		     size_t size, uint32_t offset, struct seen *s)
{
	struct ulnet_md umd = md_of(sink, size, 0, s);

	umd.threshold = 2;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(node, &umd), id_of(target),
			     0, PING_MATCH_BITS, offset),
		     0);
}

static void answers_as(const char *nids, const char *golden_name,
		       const char *target, const char *asker)
{
	struct golden g = golden(golden_name);
	size_t len = golden_payload_len(&g);
	const struct ulnet_conf conf = { .discovery = LNET_DISCOVERY_ON };
	struct lnet_sim *sim = sim_of(nids, &conf);
	static struct seen s;
	uint8_t sink[3960];

	s.n = 0;
	cr_assert_eq(lnet_sim_node_add(sim, asker, NULL, NULL, NULL), 1);
	memset(sink, 0xa5, sizeof(sink));
	get_info(lnet_sim_node(sim, 1), target, sink, sizeof(sink), 0, &s);
	lnet_sim_run_all(sim);
	seen_types(&s, LNET_EVENT_SEND, LNET_EVENT_REPLY, 0);
	cr_assert_eq(s.ev[1].mlength, len);
	cr_assert_eq(s.ev[1].rlength, len);
	cr_assert_eq(memcmp(sink, golden_payload(&g), len), 0);
	cr_assert_eq(sink[len], 0xa5);
	cluster_end(sim);
}

static void *const *objects(const struct id_table *t)
{
	void **all = calloc(t->size + 1, sizeof(*all));
	unsigned int n = 0;

	cr_assert(all);
	for (uint32_t i = 0; i < t->size; i++)
		if (t->slots[i].obj)
			all[n++] = t->slots[i].obj;
	return all;
}

/* Tries to unlink, by handles that no call has returned, all that the node has.
 * Returns how many there were. */
static unsigned int meddle(struct lnet *node)
{
	const struct portal_cpt *pc = portal_cpt(node->cpt[0]);
	void *const *mds = objects(&pc->mds), *const *mes = objects(&pc->mes);
	struct ulnet_md umd = { .threshold = 1, .options = LNET_MD_OP_PUT };
	struct ulnet_md_handle md;
	unsigned int n = 0;

	for (unsigned int i = 0; mds[i]; i++, n++) {
		md = md_handle(mds[i]);
		cr_expect_eq(LNetMDUnlink(md), -ENOENT);
	}
	for (unsigned int i = 0; mes[i]; i++, n++) {
		const struct ulnet_me_handle me = {
			node, ((const struct lnet_me *)mes[i])->cookie
		};

		cr_expect_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), -ENOENT);
		cr_expect_eq(LNetMEUnlink(me), -ENOENT);
	}
	free((void *)mds);
	free((void *)mes);
	return n;
}

/* What the node has for its own use is not reached by handles that a program
 * has made up. */
Test(ping, not_for_users)
{
	const struct ulnet_conf conf = { .discovery = LNET_DISCOVERY_ON };
	struct lnet_sim *sim = sim_of("10.0.0.1@tcp", &conf);
	struct lnet *node = lnet_sim_node(sim, 0);
	uint8_t sink[3960];
	static struct seen s;

	s.n = 0;
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, NULL, NULL),
		     1);
	/* the targets of pings and of pushes: an entry and an MD for each */
	cr_assert_geq(meddle(node), 4);
	get_info(lnet_sim_node(sim, 1), "10.0.0.1@tcp", sink, sizeof(sink), 0,
		 &s);
	lnet_sim_run_all(sim);
	seen_types(&s, LNET_EVENT_SEND, LNET_EVENT_REPLY, 0);
	cr_assert_gt(s.ev[1].mlength, 0);
	cluster_end(sim);
}

/* The answer is, byte for byte, that of a real node with these NIs. */
Test(ping, answer_is_golden)
{
	answers_as("10.77.0.42@tcp 10.77.1.42@tcp", "reply-two-nis",
		   "10.77.1.42@tcp", "10.77.0.41@tcp");
	answers_as("10.77.1.3@tcp2", "reply-routed", "10.77.1.3@tcp2",
		   "10.77.1.4@tcp2");
	answers_as("fd77::2@tcp", "reply-large", "fd77::2@tcp", "fd77::3@tcp");
}

Test(ping, offsets_and_small_sinks)
{
	static const struct {
		uint32_t offset, sink, want;
	} cases[] = {
		{ 0, 272, 48 },
		{ 0, 48, 48 },
		{ 0, 47, 47 },
		{ 0, 1, 1 },
		{ 0, 0, 0 },
		{ 16, 272, 32 },
		{ 16, 5, 5 },
		{ 47, 272, 1 },
		{ 48, 272, 0 },
		{ 49, 272, 0 },
		{ UINT32_MAX, 272, 0 },
	};
	struct lnet_sim *sim = cluster(2);
	static uint8_t whole[272];
	static struct seen s;

	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", whole, sizeof(whole), 0,
		 &s);
	lnet_sim_run_all(sim);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t sink[272] = { 0 };

		s.n = 0;
		get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink,
			 cases[i].sink, cases[i].offset, &s);
		lnet_sim_run_all(sim);
		seen_end(&s, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
			 LNET_CAUSE_OK);
		cr_assert_eq(s.ev[1].mlength, cases[i].want, "offset %u",
			     cases[i].offset);
		if (cases[i].want)
			cr_assert_eq(memcmp(sink, whole + cases[i].offset,
					    cases[i].want),
				     0, "offset %u", cases[i].offset);
	}
	cluster_end(sim);
}

/* No other match bits of portal 0 are answered. */
Test(ping, other_bits)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd;
	static struct seen s;
	uint8_t sink[64];

	umd = md_of(sink, sizeof(sink), 0, &s);
	umd.timeout = 1000000;
	umd.threshold = 2;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(node, &umd), nth_id(1), 0,
			     PING_MATCH_BITS + 1, 0),
		     0);
	lnet_sim_run_all(sim);
	seen_end(&s, LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_RESPONSE_TIMEOUT);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "drop_no_match"), 1);
	cluster_end(sim);
}

/* The answer follows the target's configuration. */
Test(ping, follows_the_configuration)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_ni_conf conf = { .nid = nid_of("10.1.0.2@tcp1") };
	struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	static struct seen s;
	uint8_t sink[272];

	cr_assert_eq(lnet_ni_add(node, &conf), 0);
	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink, sizeof(sink), 0,
		 &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(decode(sink, s.ev[1].mlength, 10), 0);
	cr_assert_eq(info.sequence, 3);
	cr_assert_eq(info.nnis, 2);
	cr_assert(nid_is(&nis[1].nid, "10.1.0.2@tcp1"));
	cr_assert(nis[1].up);

	cr_assert_eq(lnet_sim_ni_set(sim, &conf.nid, false), 0);
	lnet_sim_run_all(sim);
	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink, sizeof(sink), 0,
		 &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(decode(sink, s.ev[3].mlength, 10), 0);
	cr_assert(nis[0].up);
	cr_assert(!nis[1].up);
	cr_assert_eq(info.sequence, 4);

	cr_assert_eq(lnet_ni_del(node, &conf.nid), 0);
	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink, sizeof(sink), 0,
		 &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(decode(sink, s.ev[5].mlength, 10), 0);
	cr_assert_eq(info.sequence, 5);
	cr_assert_eq(info.nnis, 1);
	cr_assert(lnet_nid_eq(&nis[0].nid, &nid));
	cluster_end(sim);
}

/* ---- pushes ---- */

static void push(struct lnet *node, struct ulnet_id target, const void *bytes,
		 size_t len, struct seen *s)
{
	struct ulnet_md umd = md_of((void *)bytes, len, 0, s);

	umd.threshold = 2;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd), LNET_ACK_REQ,
			     target, 0, PING_MATCH_BITS, 0, 0),
		     0);
}

Test(ping, push_is_acknowledged)
{
	struct golden g = golden("put-push-two-nis");
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct lnet *target = lnet_sim_node(sim, 1);
	static struct seen s;

	push(node, nth_id(1), golden_payload(&g), 64, &s);
	lnet_sim_run_all(sim);
	seen_types(&s, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
	cr_assert_eq(s.ev[1].mlength, 64);
	cr_assert_eq(counter(target, "pushes"), 1);
	/* Nonsense is acknowledged as well, since it was received. */
	s.n = 0;
	push(node, nth_id(1), "nonsense", 8, &s);
	lnet_sim_run_all(sim);
	seen_types(&s, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
	cr_assert_eq(s.ev[1].mlength, 8);
	cr_assert_eq(counter(target, "pushes"), 1);
	cr_assert_eq(counter(target, "pushes_bad"), 1);
	cluster_end(sim);
}

/* While a push is being stored there is no buffer for others: they wait, and
 * are all stored in their order. */
Test(ping, pushes_wait_for_the_buffer)
{
	struct golden g = golden("put-push");
	const struct ulnet_sim_link slow = { .bandwidth = 1000 };
	struct lnet_sim *sim = cluster(4);
	struct lnet *target = lnet_sim_node(sim, 0);
	static struct seen s;
	unsigned int acks = 0;

	for (unsigned int i = 1; i < 4; i++)
		link_set(sim, i, 0, &slow);
	for (unsigned int i = 1; i < 4; i++)
		push(lnet_sim_node(sim, i), nth_id(0), golden_payload(&g), 48,
		     &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.n, 6);
	for (unsigned int i = 0; i < 6; i++) {
		if (s.ev[i].type != LNET_EVENT_ACK)
			continue;
		cr_assert_eq(s.ev[i].mlength, 48);
		/* Each takes 48 ms to store, one after the other. */
		cr_assert_geq(s.ev[i].elapsed, ++acks * 48000);
	}
	cr_assert_eq(acks, 3);
	cr_assert_eq(counter(target, "pushes"), 3);
	cr_assert_eq(counter(target, "drop_count"), 0);
	cluster_end(sim);
}

/* Returns the first node from @from on that CPT @cpt of node 0 owns. */
static unsigned int node_of_cpt(struct lnet_sim *sim, unsigned int from,
				unsigned int cpt)
{
	struct ulnet_id id = nth_id(from);

	while (node_cpt_of(lnet_sim_node(sim, 0), &id.nid) != cpt)
		id = nth_id(++from);
	return from;
}

/*
 * Each of two CPTs is storing a push, one of them a slow one. A third push, for
 * the CPT with the slow one, gets the buffer of the other CPT as soon as that
 * is free: @ns after the third push has come, which may be negative, 0, or
 * positive.
 */
static void push_and_two_cpts(int64_t ns)
{
	const struct ulnet_sim_link slow = { .bandwidth = 12 };
	const struct ulnet_sim_link fast = { .bandwidth = 1200 };
	struct golden g = golden("put-push");
	struct lnet_sim *sim = cluster_with(30, 2, NULL);
	unsigned int a = node_of_cpt(sim, 1, 0);
	unsigned int b = node_of_cpt(sim, 1, 1);
	unsigned int c = node_of_cpt(sim, a + 1, 0);
	static struct seen sa, sb, sc;
	/* 48 bytes are stored after 40 ms. */
	const struct ulnet_sim_link late = { .latency = (uint64_t)(40 * MSEC +
								   ns) };

	sa.n = sb.n = sc.n = 0;
	link_set(sim, a, 0, &slow);
	link_set(sim, b, 0, &fast);
	link_set(sim, c, 0, &late);
	push(lnet_sim_node(sim, a), nth_id(0), golden_payload(&g), 48, &sa);
	lnet_sim_run(sim, MSEC);
	push(lnet_sim_node(sim, b), nth_id(0), golden_payload(&g), 48, &sb);
	push(lnet_sim_node(sim, c), nth_id(0), golden_payload(&g), 48, &sc);
	lnet_sim_run(sim, 41 * MSEC);
	cr_assert_eq(sa.n, 0);
	cr_assert_eq(seen_last(&sb), LNET_EVENT_ACK);
	cr_assert_eq(seen_last(&sc), LNET_EVENT_ACK, "it waits (%ld ns)",
		     (long)ns);
	cluster_end(sim);
}

Test(ping, push_takes_the_target_of_another_cpt)
{
	push_and_two_cpts(-20 * (int64_t)MSEC);
	for (int64_t ns = -4; ns <= 4; ns++)
		push_and_two_cpts(ns);
}

/* A push that is too long enlarges the buffer for the next ones, within limits.
 */
Test(ping, big_push_enlarges_the_target)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	static uint8_t big[100000];
	static struct seen s;
	size_t len = put_head(big, 0x1e, 40);

	push(node, nth_id(1), big, len, &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.ev[1].mlength, 272);
	push(node, nth_id(1), big, len, &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.ev[3].mlength, len);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "pushes"), 2);
	/* The buffer does not shrink again. */
	push(node, nth_id(1), big, 100, &s);
	push(node, nth_id(1), big, len, &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.n, 8);
	cr_assert_eq(s.ev[7].mlength, len);
	/* No peer can make the buffer as large as it likes. */
	for (unsigned int i = 0; i < 2; i++) {
		push(node, nth_id(1), big, sizeof(big), &s);
		lnet_sim_run_all(sim);
	}
	cr_assert_leq(s.ev[s.n - 1].mlength, 16 + 201 * 24);
	cr_assert_gt(s.ev[s.n - 1].mlength, len);
	cluster_end(sim);
}

/* The node closes while a push is being stored: its match entry is gone
 * already. */
Test(ping, push_while_closing)
{
	struct golden g = golden("put-push");
	const struct ulnet_sim_link slow = { .bandwidth = 1000 };

	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct lnet_sim *sim = cluster_with(5, cpts, NULL);
		static struct seen s;

		s.n = 0;
		cluster_links(sim, &slow);
		for (unsigned int i = 1; i < 5; i++)
			push(lnet_sim_node(sim, i), nth_id(0),
			     golden_payload(&g), 48, &s);
		lnet_sim_run(sim, 20 * MSEC);
		cr_assert_eq(counter(lnet_sim_node(sim, 0), "pushes"), 0);
		cr_assert_gt(counter(lnet_sim_node(sim, 0), "recv_count"), 0);
		cr_assert_eq(lnet_sim_crash(sim, 0), 0);
		cluster_end(sim);
	}
}

/* ---- lnet_ping() ---- */

struct pong {
	unsigned int calls;
	int status;
	struct ulnet_ping_info info;
	struct ulnet_ping_ni ni[MAX_NIS];
	struct lnet_sim *sim;
	uint64_t at;
};

static void ponged(void *arg, int status, const struct ulnet_ping_info *got)
{
	struct pong *p = arg;

	p->calls++;
	p->status = status;
	p->at = lnet_sim_now(p->sim);
	cr_assert_eq(got == NULL, status != 0);
	if (!got)
		return;
	p->info = *got;
	cr_assert_leq(got->nnis, MAX_NIS);
	if (got->nnis)
		memcpy(p->ni, got->ni, got->nnis * sizeof(p->ni[0]));
}

static struct pong pong;

static void ping(struct lnet_sim *sim, unsigned int from,
		 struct ulnet_id target, uint64_t timeout)
{
	pong = (struct pong){ .sim = sim };
	cr_assert_eq(lnet_ping(lnet_sim_node(sim, from), target, timeout,
			       ponged, &pong),
		     0);
	cr_assert_eq(pong.calls, 0, "called back before it returned");
	lnet_sim_run_all(sim);
	cr_assert_eq(pong.calls, 1);
}

Test(ping, other_node)
{
	struct lnet_sim *sim = cluster(2);

	ping(sim, 0, nth_id(1), 0);
	cr_assert_eq(pong.status, 0);
	cr_assert_eq(pong.info.features, 0x0e); /* with discovery off */
	cr_assert_eq(pong.info.pid, 12345);
	cr_assert_eq(pong.info.sequence, 2);
	cr_assert_eq(pong.info.nnis, 1);
	cr_assert(nid_is(&pong.ni[0].nid, "10.0.0.2@tcp"));
	cr_assert(pong.ni[0].up);
	cluster_end(sim);
}

Test(ping, itself)
{
	struct lnet_sim *sim = cluster(1);
	struct ulnet_id any = nth_id(0);

	ping(sim, 0, id_of("0@lo"), 0);
	cr_assert_eq(pong.status, 0);
	cr_assert(nid_is(&pong.ni[0].nid, "10.0.0.1@tcp"));
	any.pid = LNET_PID_ANY;
	ping(sim, 0, any, 0);
	cr_assert_eq(pong.status, 0);
	cr_assert_eq(pong.info.nnis, 1);
	cluster_end(sim);
}

static size_t memory_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void ponged_lightly(void *arg, int status,
			   const struct ulnet_ping_info *got)
{
	size_t *used = arg;

	cr_assert_eq(status, 0);
	cr_assert_eq(got->nnis, 1);
	*used = memory_used();
}

/* A ping allocates memory for the NIs that the peer has, not for as many as it
 * may have. */
Test(ping, takes_memory_for_what_there_is)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	size_t before, used;

	lnet_conf_init(&conf);
	conf.interfaces_max = INTERFACES_LIMIT;
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(lnet_sim_node_add(
				     sim, i ? "10.0.0.1@tcp" : "10.0.0.0@tcp",
				     &conf, NULL, NULL),
			     i);
	/* allocates the first slabs of the pools */
	ping(sim, 0, id_of("10.0.0.1@tcp"), 0);
	before = memory_used();
	cr_assert_eq(lnet_ping(lnet_sim_node(sim, 0), id_of("10.0.0.1@tcp"), 0,
			       ponged_lightly, &used),
		     0);
	cr_assert_leq(memory_used(), before + 8192);
	lnet_sim_run_all(sim);
	cr_assert_leq(used, before + 8192);
	cluster_end(sim);
}

Test(ping, bad_arguments)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);

	cr_assert_eq(lnet_ping(node, nth_id(0), 0, NULL, NULL), -EINVAL);
	cr_assert_eq(lnet_ping(node, ANY_ID, 0, ponged, NULL), -EINVAL);
	cluster_end(sim);
}

Test(ping, nobody_there)
{
	struct lnet_sim *sim = cluster(1);

	ping(sim, 0, nth_id(7), 0);
	cr_assert_eq(pong.status, -EHOSTUNREACH);
	ping(sim, 0, id_of("10.0.0.9@tcp9"), 0);
	cr_assert_eq(pong.status, -EHOSTUNREACH);
	cluster_end(sim);
}

Test(ping, timeout)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);
	uint64_t began;

	link_set(sim, 1, 0, &lossy);
	ping(sim, 0, nth_id(1), 1500000);
	cr_assert_eq(pong.status, -ETIMEDOUT);
	cr_assert_geq(pong.at, 1500 * MSEC);
	cr_assert_leq(pong.at, 1600 * MSEC);
	/* With no timeout the node's own is used. */
	began = lnet_sim_now(sim);
	ping(sim, 0, nth_id(1), 0);
	cr_assert_eq(pong.status, -ETIMEDOUT);
	cr_assert_geq(pong.at - began, 50000 * MSEC);
	cluster_end(sim);
}

static struct lnet_sim *many_nis(unsigned int n, uint32_t max)
{
	static char nids[MAX_NIS * 20];
	struct lnet_sim *sim;
	struct ulnet_conf conf;
	size_t len = 0;

	for (unsigned int i = 0; i < n; i++)
		len += (size_t)snprintf(nids + len, sizeof(nids) - len,
					"10.1.%u.%u@tcp ", i / 200, i % 200);
	lnet_conf_init(&conf);
	conf.interfaces_max = 300;
	sim = sim_of(nids, &conf);
	conf.interfaces_max = max;
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp", &conf, NULL, NULL),
		     1);
	return sim;
}

/* The answer has more NIs than the first buffer holds: the node asks again. */
Test(ping, more_than_the_first_sink)
{
	struct lnet_sim *sim = many_nis(260, 300);

	ping(sim, 1, id_of("10.1.1.7@tcp"), 0);
	cr_assert_eq(pong.status, 0);
	cr_assert_eq(pong.info.nnis, 260);
	cr_assert(nid_is(&pong.ni[0].nid, "10.1.0.0@tcp"));
	cr_assert(nid_is(&pong.ni[259].nid, "10.1.1.59@tcp"));
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "recv_count"), 2);
	cluster_end(sim);
}

Test(ping, more_than_we_want)
{
	struct lnet_sim *sim = many_nis(20, 19);

	ping(sim, 1, id_of("10.1.0.0@tcp"), 0);
	cr_assert_eq(pong.status, -E2BIG);
	cluster_end(sim);
	sim = many_nis(20, 20);
	ping(sim, 1, id_of("10.1.0.0@tcp"), 0);
	cr_assert_eq(pong.status, 0);
	cluster_end(sim);
}

/* If the node that pings closes, the callback is called once; if it crashes,
 * never. */
Test(ping, while_closing)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);

	cluster_links(sim, &lossy);
	pong = (struct pong){ .sim = sim };
	cr_assert_eq(
		lnet_ping(lnet_sim_node(sim, 0), nth_id(1), 0, ponged, &pong),
		0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	cr_assert_eq(pong.calls, 0);
	cr_assert_eq(
		lnet_ping(lnet_sim_node(sim, 1), nth_id(0), 0, ponged, &pong),
		0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	cr_assert_eq(pong.calls, 1);
	cr_assert_eq(pong.status, -ESHUTDOWN);
}
