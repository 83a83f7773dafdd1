/* SPDX-License-Identifier: BSD-3-Clause */
/* The calculation for o2ib nodes (requirement F7): the reference cases, each
 * rule, and invariants for random tunables. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "tests/slice.h"
#include "ulnet/o2ib.h"

#define A LNET_O2IB_A
#define B LNET_O2IB_B

static struct ulnet_o2ib_pair pair;
static struct ulnet_o2ib_result got;
static struct ulnet_o2ib_notes notes;

static void begin(enum ulnet_o2ib_model a, enum ulnet_o2ib_model b)
{
	pair = (struct ulnet_o2ib_pair){ .npeers = 1 };
	for (int i = 0; i < 2; i++)
		lnet_o2ib_conf_init(&pair.node[i]);
	pair.node[A].model = a;
	pair.node[B].model = b;
}

static void kernels(const char *a, const char *b)
{
	strcpy(pair.node[A].kernel, a);
	strcpy(pair.node[B].kernel, b);
}

static int calculate(void)
{
	notes = (struct ulnet_o2ib_notes){ 0 };
	return lnet_o2ib_calculate(&pair, &got, &notes);
}

static const struct ulnet_o2ib_note *noted(enum ulnet_o2ib_note_kind kind,
					   enum ulnet_o2ib_side side,
					   const char *id)
{
	for (unsigned int i = 0; i < notes.n; i++)
		if (notes.note[i].kind == kind && notes.note[i].side == side &&
		    strcmp(notes.note[i].rule->id, id) == 0)
			return &notes.note[i];
	return NULL;
}

static void opa(struct ulnet_o2ib_conf *c)
{
	c->peer_credits = 32;
	c->peer_credits_hiw = 16;
	c->credits = 1024;
	c->concurrent_sends = 64;
	c->ntx = 2048;
	c->map_on_demand = 256;
	c->fmr_pool_size = 2048;
	c->fmr_flush_trigger = 512;
	c->conns_per_peer = 4;
}

/* depth, fragments and rejects */
static void connected(uint32_t depth, uint32_t frags, unsigned int rejects)
{
	cr_assert_eq(calculate(), 0);
	cr_assert_eq(got.conn.verdict, LNET_O2IB_CONNECTED);
	cr_assert_eq(got.conn.depth, depth, "depth %u", got.conn.depth);
	cr_assert_eq(got.conn.frags, frags, "fragments %u", got.conn.frags);
	cr_assert_eq(got.conn.rejects, rejects, "rejects %u", got.conn.rejects);
	cr_assert_eq(got.conn.nattempts, rejects + 1);
}

static void refused(enum ulnet_o2ib_verdict verdict)
{
	cr_assert_eq(calculate(), -ECONNREFUSED);
	cr_assert_eq(got.conn.verdict, verdict, "verdict %u", got.conn.verdict);
	cr_assert_eq(got.conn.depth, 0);
	cr_assert_eq(got.conn.frags, 0);
}

static void takes(int side, uint32_t recv, uint64_t send, uint64_t cq)
{
	const struct ulnet_o2ib_resources *r = &got.res[side];

	cr_assert_eq(r->max_recv_wr, recv, "recv %u", r->max_recv_wr);
	cr_assert_eq(r->max_send_wr, send, "send %ju", r->max_send_wr);
	cr_assert_eq(r->cq_entries, cq, "cq %ju", r->cq_entries);
}

/* ---- reference cases ---- */

Test(o2ib_calc_case, n01_defaults_without_global_mr)
{
	begin(LNET_O2IB_2_10_54, LNET_O2IB_2_10_54);
	kernels("3.10.0-693.el7.x86_64", "693");
	connected(8, 256, 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(got.node[i].conf.map_on_demand, 256);
		cr_assert_eq(got.node[i].conf.concurrent_sends, 8);
		cr_assert(got.node[i].pools);
		takes(i, 18, 2056, 2074);
	}
}

Test(o2ib_calc_case, n02_defaults_with_global_mr)
{
	begin(LNET_O2IB_2_10_54, LNET_O2IB_2_10_54);
	kernels("3.10.0-514", "3.10.0-514.26.2.el7.x86_64");
	connected(8, 256, 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(got.node[i].conf.map_on_demand, 0);
		cr_assert_not(got.node[i].pools);
		cr_assert_eq(got.res[i].mr_regions, 0);
		takes(i, 18, 2056, 2074);
	}
}

static void case_3_and_4(enum ulnet_o2ib_side initiator,
			 enum ulnet_o2ib_answer first)
{
	begin(LNET_O2IB_2_10_54, LNET_O2IB_2_10_54);
	kernels("3.10.0-693", "3.10.0-693");
	pair.node[A].map_on_demand = 32;
	pair.node[A].peer_credits = 16;
	pair.node[B].map_on_demand = 256;
	pair.initiator = initiator;
	connected(8, 32, 1);
	cr_assert_eq(got.conn.attempts[0].answer, first);
	cr_assert_eq(got.node[A].conf.concurrent_sends, 32);
	cr_assert_eq(got.node[B].conf.concurrent_sends, 8);
	takes(A, 18, 1056, 1074);
	takes(B, 18, 264, 282);
}

Test(o2ib_calc_case, n03_depth_is_lowered)
{
	case_3_and_4(A, LNET_O2IB_QUEUE_SIZE);
	cr_assert_eq(got.conn.attempts[0].depth, 16);
	cr_assert_eq(got.conn.attempts[0].limit, 8);
	cr_assert_eq(got.conn.attempts[1].depth, 8);
}

Test(o2ib_calc_case, n04_fragments_are_lowered)
{
	case_3_and_4(B, LNET_O2IB_FRAGS);
	cr_assert_eq(got.conn.attempts[0].frags, 256);
	cr_assert_eq(got.conn.attempts[0].limit, 32);
}

Test(o2ib_calc_case, n05_global_mr_only_has_no_fewer_fragments)
{
	begin(LNET_O2IB_2_10_54, LNET_O2IB_2_10_54);
	kernels("3.10.0-514", "3.10.0-693");
	pair.node[A].map_on_demand = 0;
	pair.node[B].map_on_demand = 32;
	refused(LNET_O2IB_FRAGS_FIXED);
	pair.initiator = B;
	refused(LNET_O2IB_FRAGS_DEMANDED);
}

Test(o2ib_calc_case, n06_defaults_of_2_15)
{
	begin(LNET_O2IB_2_15, LNET_O2IB_2_15);
	connected(8, 257, 0);
	for (int i = 0; i < 2; i++) {
		takes(i, 18, 2080, 2098);
		cr_assert_eq(got.res[i].rx_bytes, 73728);
		cr_assert_eq(got.res[i].rx_pages, 18);
		cr_assert_eq(got.conn.hiw[i], 4);
	}
}

Test(o2ib_calc_case, n07_releases_with_other_fragments)
{
	begin(LNET_O2IB_2_15, LNET_O2IB_2_12);
	connected(8, 256, 1);
	cr_assert_eq(got.conn.attempts[0].answer, LNET_O2IB_FRAGS);
	takes(A, 18, 2072, 2090);
	takes(B, 18, 2072, 2090);
}

Test(o2ib_calc_case, n08_opa_profile)
{
	begin(LNET_O2IB_2_15, LNET_O2IB_2_15);
	opa(&pair.node[A]);
	opa(&pair.node[B]);
	connected(32, 257, 0);
	takes(A, 66, 8320, 8386);
	cr_assert_eq(got.res[A].worst_wrs, 16640);
	cr_assert_eq(got.res[A].worst_percent, 200);
	cr_assert_eq(got.res[A].typical_wrs, 256);
	cr_assert_eq(got.res[A].conns, 4);
	cr_assert_eq(got.res[A].peer_send_wr, 33280);
}

Test(o2ib_calc_case, n09_device_lowers_the_depth)
{
	begin(LNET_O2IB_2_15, LNET_O2IB_2_15);
	for (int i = 0; i < 2; i++) {
		pair.node[i].peer_credits = 64;
		pair.node[i].max_qp_wr = 16384;
	}
	connected(63, 257, 0);
	takes(A, 128, 16380, 128 + 16384);
	/* B was asked for 63 before */
	takes(B, 128, 16380, 128 + 16380);
	cr_assert(noted(LNET_O2IB_CHANGED, A, "depth.device"));
	cr_assert_not(noted(LNET_O2IB_CHANGED, B, "depth.device"));
}

Test(o2ib_calc_case, n10_opa_profile_of_2_10_54)
{
	begin(LNET_O2IB_2_10_54, LNET_O2IB_2_10_54);
	kernels("693", "693");
	opa(&pair.node[A]);
	opa(&pair.node[B]);
	pair.node[A].max_qp_wr = 16384;
	connected(32, 256, 0);
	cr_assert_eq(got.node[A].conf.concurrent_sends, 64);
	takes(A, 66, 16448, 16448 + 66);
	cr_assert(noted(LNET_O2IB_WARNING, A, "send.shrinks"));
	cr_assert_not(noted(LNET_O2IB_WARNING, B, "send.shrinks"));
	cr_assert_eq(got.res[A].max_send_wr_granted, 12336);
	cr_assert_eq(got.res[B].max_send_wr_granted, 16448);
}

Test(o2ib_calc_case, n11_most_peer_credits)
{
	begin(LNET_O2IB_2_15, LNET_O2IB_2_15);
	for (int i = 0; i < 2; i++) {
		pair.node[i].peer_credits = 255;
		pair.node[i].max_qp_wr = 32768;
	}
	connected(126, 257, 0);
	cr_assert_eq(got.res[A].max_send_wr, 32760);
}

Test(o2ib_calc_case, n12_least_peer_credits)
{
	const struct ulnet_o2ib_note *note;

	begin(LNET_O2IB_2_15, LNET_O2IB_2_15);
	pair.node[A].peer_credits = 4;
	connected(8, 257, 0);
	cr_assert_eq(got.node[A].conf.peer_credits, 8);
	cr_assert_eq(got.node[A].conf.peer_credits_hiw, 4);
	cr_assert_eq(got.node[A].conf.concurrent_sends, 8);
	note = noted(LNET_O2IB_CHANGED, A, "peer_credits.min");
	cr_assert(note && note->before == 4 && note->value == 8);
}

Test(o2ib_calc_case, n13_high_water_marks)
{
	static const struct {
		enum ulnet_o2ib_model model;
		uint32_t hiw;
		bool stalls;
	} rows[] = {
		{ LNET_O2IB_2_10_54, 24, true }, { LNET_O2IB_2_10, 24, true },
		{ LNET_O2IB_2_11, 24, true },	 { LNET_O2IB_2_12, 7, false },
		{ LNET_O2IB_2_15, 7, false },	 { LNET_O2IB_2_16, 6, false },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		begin(rows[i].model, rows[i].model);
		pair.node[A].peer_credits = 32;
		pair.node[A].peer_credits_hiw = 24;
		cr_assert_eq(calculate(), 0);
		cr_assert_eq(got.conn.depth, 8);
		cr_assert_eq(got.conn.hiw[A], rows[i].hiw, "row %u: %u", i,
			     got.conn.hiw[A]);
		cr_assert_eq(!!noted(LNET_O2IB_WARNING, A, "hiw.stall"),
			     rows[i].stalls);
	}
}

/* ---- rules of adjustment ---- */

struct row {
	enum ulnet_o2ib_model model;
	uint32_t pc, credits, hiw, cs;
	int32_t map;
	bool global;
	uint32_t pc_now, hiw_now, cs_now;
	int32_t map_now;
	const char *rule; /* the note that is expected; NULL: nothing changed */
};

#define V54 LNET_O2IB_2_10_54
#define V10 LNET_O2IB_2_10
#define V11 LNET_O2IB_2_11
#define V12 LNET_O2IB_2_12
#define V15 LNET_O2IB_2_15

static const struct row rows[] = {
	{ V15, 8, 256, 4, 8, 1, 0, 8, 4, 8, 1, NULL },
	{ V15, 0, 256, 4, 8, 1, 0, 8, 4, 8, 1, "peer_credits.min" },
	{ V15, 7, 256, 4, 8, 1, 0, 8, 4, 8, 1, "peer_credits.min" },
	{ V15, 255, 256, 127, 255, 1, 0, 255, 127, 255, 1, NULL },
	{ V15, 256, 256, 127, 255, 1, 0, 255, 127, 255, 1, "peer_credits.max" },
	{ V15, 64, 32, 16, 32, 1, 0, 32, 16, 32, 1, "peer_credits.credits" },
	{ V15, 4, 4, 2, 4, 1, 0, 4, 2, 4, 1, "peer_credits.credits" },
	{ V15, 300, 100, 50, 100, 1, 0, 100, 50, 100, 1, "peer_credits.max" },
	{ V15, 9, 256, 3, 9, 1, 0, 9, 4, 9, 1, "peer_credits_hiw.min" },
	{ V15, 16, 256, 16, 16, 1, 0, 16, 15, 16, 1, "peer_credits_hiw.max" },
	{ V15, 16, 256, 15, 16, 1, 0, 16, 15, 16, 1, NULL },
	{ V15, 16, 256, 8, 0, 1, 0, 16, 8, 16, 1, "concurrent_sends.default" },
	{ V10, 16, 256, 8, 0, 32, 0, 16, 8, 32, 32, "concurrent_sends.map" },
	{ V10, 16, 256, 8, 0, 33, 0, 16, 8, 16, 33,
	  "concurrent_sends.default" },
	{ V10, 16, 256, 8, 0, 0, 1, 16, 8, 16, 0, "concurrent_sends.default" },
	{ V12, 16, 256, 8, 0, 32, 0, 16, 8, 16, 32,
	  "concurrent_sends.default" },
	{ V15, 16, 256, 8, 33, 1, 0, 16, 8, 32, 1, "concurrent_sends.max" },
	{ V15, 16, 256, 8, 32, 1, 0, 16, 8, 32, 1, NULL },
	{ V15, 16, 256, 8, 7, 1, 0, 16, 8, 8, 1, "concurrent_sends.min" },
	{ V15, 16, 256, 8, 8, 1, 0, 16, 8, 8, 1, NULL },
	{ V54, 8, 256, 4, 8, 0, 0, 8, 4, 8, 256, "map_on_demand.range" },
	{ V54, 8, 256, 4, 8, 257, 0, 8, 4, 8, 256, "map_on_demand.range" },
	{ V54, 8, 256, 4, 8, 257, 1, 8, 4, 8, 0, "map_on_demand.range" },
	{ V54, 8, 256, 4, 8, 0, 1, 8, 4, 8, 0, NULL },
	{ V54, 8, 256, 4, 8, 1, 0, 8, 4, 8, 2, "map_on_demand.one" },
	{ V10, 8, 256, 4, 8, 1, 1, 8, 4, 8, 2, "map_on_demand.one" },
	{ V11, 8, 256, 4, 8, 0, 0, 8, 4, 8, 1, "map_on_demand.needed" },
	{ V12, 8, 256, 4, 8, 0, 1, 8, 4, 8, 0, NULL },
	{ V12, 8, 256, 4, 8, 300, 0, 8, 4, 8, 300, NULL },
};

static unsigned int changes(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < notes.n; i++)
		n += notes.note[i].kind == LNET_O2IB_CHANGED;
	return n;
}

Test(o2ib_calc, adjustment)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		struct ulnet_o2ib_conf c;
		struct ulnet_o2ib_node node;

		lnet_o2ib_conf_init(&c);
		c.model = r->model;
		c.peer_credits = r->pc;
		c.credits = r->credits;
		c.peer_credits_hiw = r->hiw;
		c.concurrent_sends = r->cs;
		c.map_on_demand = r->map;
		c.global_mr = r->global ? LNET_O2IB_MR_YES : LNET_O2IB_MR_NO;
		notes = (struct ulnet_o2ib_notes){ 0 };
		cr_assert_eq(lnet_o2ib_adjust(&c, &node, &notes), 0);
		cr_assert_eq(node.conf.peer_credits, r->pc_now, "row %u", i);
		cr_assert_eq(node.conf.peer_credits_hiw, r->hiw_now, "row %u",
			     i);
		cr_assert_eq(node.conf.concurrent_sends, r->cs_now, "row %u",
			     i);
		cr_assert_eq(node.conf.map_on_demand, r->map_now, "row %u", i);
		if (r->rule)
			cr_assert(noted(r->cs ? LNET_O2IB_CHANGED
					      : LNET_O2IB_COMPUTED,
					A, r->rule),
				  "row %u: no %s", i, r->rule);
		else
			cr_assert_eq(changes(), 0, "row %u", i);
		cr_assert_eq(
			!!noted(LNET_O2IB_WARNING, A, "concurrent_sends.low"),
			r->cs_now < r->pc_now && r->model != V11, "row %u", i);
	}
}

Test(o2ib_calc, pools_that_are_too_small)
{
	static const struct {
		uint32_t pool, ntx;
		int32_t map;
		bool global;
		enum ulnet_o2ib_model model;
		bool starts;
	} table[] = {
		{ 128, 512, -1, false, V15, true },
		{ 127, 512, -1, false, V15, false },
		{ 0, 3, -1, false, V15, true }, /* 3 / 4 is 0 */
		{ 0, 512, 0, true, V54, true }, /* there are no pools */
		{ 0, 512, 32, true, V54, false },
		{ 0, 512, -1, false, LNET_O2IB_USER, true },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++) {
		begin(table[i].model, table[i].model);
		for (int side = 0; side < 2; side++) {
			pair.node[side].map_on_demand = table[i].map;
			pair.node[side].global_mr = table[i].global
							    ? LNET_O2IB_MR_YES
							    : LNET_O2IB_MR_NO;
		}
		pair.node[B].fmr_pool_size = table[i].pool;
		pair.node[B].ntx = table[i].ntx;
		if (table[i].starts) {
			cr_assert_eq(calculate(), 0, "row %u", i);
			continue;
		}
		refused(LNET_O2IB_NO_NI);
		cr_assert(noted(LNET_O2IB_ERROR, B, "fmr_pool_size.min"));
		cr_assert_not(noted(LNET_O2IB_ERROR, A, "fmr_pool_size.min"));
	}
}

Test(o2ib_calc, registration)
{
	static const struct {
		enum ulnet_o2ib_model model;
		enum ulnet_o2ib_registration asked;
		bool global;
		int32_t map;
		enum ulnet_o2ib_registration now;
		uint32_t wrs;
	} table[] = {
		{ V15, LNET_O2IB_REG_USUAL, false, -1, LNET_O2IB_REG_FASTREG,
		  4 },
		{ V15, LNET_O2IB_REG_FMR, false, -1, LNET_O2IB_REG_FMR, 2 },
		{ V15, LNET_O2IB_REG_GLOBAL, false, -1, LNET_O2IB_REG_FASTREG,
		  4 },
		{ V12, LNET_O2IB_REG_USUAL, true, 0, LNET_O2IB_REG_GLOBAL,
		  257 },
		{ V12, LNET_O2IB_REG_FMR, true, 1, LNET_O2IB_REG_FMR, 2 },
		{ V12, LNET_O2IB_REG_GLOBAL, true, 1, LNET_O2IB_REG_GLOBAL,
		  257 },
		{ V15, LNET_O2IB_REG_USER, false, -1, LNET_O2IB_REG_FASTREG,
		  4 },
		{ LNET_O2IB_USER, LNET_O2IB_REG_USUAL, false, -1,
		  LNET_O2IB_REG_USER, 2 },
		{ LNET_O2IB_USER, LNET_O2IB_REG_FASTREG, false, -1,
		  LNET_O2IB_REG_USER, 2 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++) {
		struct ulnet_o2ib_conf *c = &pair.node[A];

		begin(table[i].model, V12);
		c->registration = table[i].asked;
		c->map_on_demand = table[i].map;
		c->global_mr =
			table[i].global ? LNET_O2IB_MR_YES : LNET_O2IB_MR_NO;
		cr_assert_eq(calculate(), 0, "row %u", i);
		cr_assert_eq(got.node[A].conf.registration, table[i].now,
			     "row %u", i);
		cr_assert_eq(got.res[A].bulk_wrs, table[i].wrs, "row %u", i);
		cr_assert_eq(got.node[A].wrs_extra,
			     table[i].now == LNET_O2IB_REG_FASTREG ? 2 : 0);
	}
}

Test(o2ib_calc, kernels)
{
	static const struct {
		const char *release;
		int has;
	} table[] = {
		{ "3.10.0-693.el7.x86_64", 0 },
		{ "3.10.0-692", 1 },
		{ "3.10.0-1160.el7", 0 },
		{ "3.10.0-514.26.2.el7.x86_64", 1 },
		{ "693", 0 },
		{ "514", 1 },
		{ "99", -EINVAL },
		{ "4.8.17", 1 },
		{ "4.9", 0 },
		{ "4.9.0", 0 },
		{ "4.18.0-80.el8.x86_64", 0 },
		{ "4.4.180-94.97-default", 1 },
		/* RHEL 6 counts builds differently */
		{ "2.6.32-754.el6.x86_64", 1 },
		{ "3.10.108", 1 },
		{ "3.10.0", 1 },
		{ "6.1.0-13-amd64", 0 },
		{ "6.8+", 0 },
		{ "", -EINVAL },
		{ "x", -EINVAL },
		{ "3", -EINVAL },
		{ "3.", -EINVAL },
		{ "3.10.x", -EINVAL },
		{ "3.10x", -EINVAL },
		{ "-1.2", -EINVAL },
		{ " 4.9", -EINVAL },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++)
		cr_assert_eq(lnet_o2ib_kernel_global_mr(table[i].release),
			     table[i].has, "%s", table[i].release);
	begin(V54, V54);
	kernels("514", "banana");
	refused(LNET_O2IB_NO_NI);
	cr_assert(noted(LNET_O2IB_ERROR, B, "kernel.release"));
	/* what is configured counts, whatever the kernel */
	kernels("514", "514");
	pair.node[A].global_mr = LNET_O2IB_MR_NO;
	connected(8, 256, 0);
	cr_assert_eq(got.node[A].conf.map_on_demand, 256);
	cr_assert_eq(got.node[B].conf.map_on_demand, 0);
}

/* ---- rules of negotiation ---- */

Test(o2ib_calc, depth_and_fragments_are_both_lowered)
{
	begin(V15, V12);
	pair.node[A].peer_credits = 32;
	connected(8, 256, 2);
	cr_assert_eq(got.conn.attempts[0].answer, LNET_O2IB_QUEUE_SIZE);
	cr_assert_eq(got.conn.attempts[1].answer, LNET_O2IB_FRAGS);
	cr_assert_eq(got.conn.attempts[2].answer, LNET_O2IB_ACCEPTED);
	pair.initiator = B;
	connected(8, 256, 0);
}

/* Up to 2.14 such an initiator gives up; since 2.15 it lowers its fragments. */
Test(o2ib_calc, fixed_fragments)
{
	begin(V12, V10);
	pair.node[A].global_mr = LNET_O2IB_MR_YES;
	pair.node[B].map_on_demand = 64;
	refused(LNET_O2IB_FRAGS_FIXED);
	pair.node[A].model = V15;
	connected(8, 64, 1);
	pair.initiator = B;
	refused(LNET_O2IB_FRAGS_DEMANDED);
	cr_assert(noted(LNET_O2IB_ERROR, LNET_O2IB_BOTH,
			"connect.frags_demanded"));
	pair.node[A].map_on_demand = 1;
	connected(8, 64, 0);
}

/* The device with fewer work requests decides, on either side. */
Test(o2ib_calc, devices)
{
	begin(V15, V15);
	pair.node[A].peer_credits = pair.node[B].peer_credits = 64;
	pair.node[B].max_qp_wr = 2600;
	connected(10, 257, 0);
	cr_assert_eq(got.conn.attempts[0].depth, 64);
	cr_assert_eq(got.conn.attempts[0].limit, 10);
	takes(A, 22, 2600, 2622);
	takes(B, 22, 2600, 2622);
	pair.initiator = B;
	connected(10, 257, 0);
	cr_assert_eq(got.conn.attempts[0].depth, 10);
	pair.node[B].max_qp_wr = 259;
	refused(LNET_O2IB_NO_DEPTH);
	pair.initiator = A;
	refused(LNET_O2IB_NO_DEPTH);
	/* With fewer fragments the queue may be deeper, which takes another
	 * request. */
	begin(V15, V12);
	pair.node[A].peer_credits = 64;
	pair.node[B].peer_credits = 9;
	pair.node[A].max_qp_wr = 2599;
	connected(9, 256, 2);
	cr_assert_eq(got.conn.attempts[0].depth, 9);
	cr_assert_eq(got.conn.attempts[1].depth, 10);
	/* older models do not lower the depth */
	begin(V10, V10);
	pair.node[A].max_qp_wr = 100;
	connected(8, 256, 0);
	cr_assert(noted(LNET_O2IB_WARNING, A, "send.fails"));
}

Test(o2ib_calc, completion_queues)
{
	begin(V15, V15);
	pair.node[B].max_cqe = 2098;
	connected(8, 257, 0);
	pair.node[B].max_cqe = 2097;
	cr_assert_eq(calculate(), -ECONNREFUSED);
	cr_assert_eq(got.conn.verdict, LNET_O2IB_NO_CQ);
	cr_assert(noted(LNET_O2IB_ERROR, B, "cq.max"));
	/* seen with a kernel of 2.16: the other node would have lowered the
	 * depth to 8, but the first queue must have 2 * 128 + 2 + 260 * 128
	 * entries */
	begin(LNET_O2IB_2_16, V15);
	pair.node[A].peer_credits = 128;
	pair.node[A].peer_credits_hiw = 64;
	pair.node[A].max_cqe = 33538;
	connected(8, 257, 1);
	pair.node[A].max_cqe = 32767;
	refused(LNET_O2IB_NO_CQ_TO_ASK);
	cr_assert(noted(LNET_O2IB_ERROR, A, "connect.no_cq"));
	cr_assert_eq(got.conn.nattempts, 0);
	/* it can be asked, since it makes the queue for what was agreed upon */
	pair.initiator = B;
	connected(8, 257, 0);
	begin(V11, V11);
	connected(8, 256, 0);
	takes(A, 18, 2072, 34);
	cr_assert_eq(got.res[A].posted_max, 8);
}

Test(o2ib_calc, version_1)
{
	begin(V12, V12);
	pair.node[A].peer_credits = pair.node[B].peer_credits = 32;
	pair.node[B].version = 1;
	connected(8, 256, 1);
	cr_assert_eq(got.conn.attempts[0].answer, LNET_O2IB_UNCOMPAT);
	cr_assert_eq(got.conn.version, 1);
	cr_assert_eq(got.conn.hiw[A], 7);
	cr_assert_eq(got.res[A].max_recv_wr, 16);
	cr_assert_eq(got.conn.concurrent_sends[A], 16);
	cr_assert_eq(got.res[A].posted_max, 16);
	pair.initiator = B;
	connected(8, 256, 0);
	/* there is no way to ask for fewer */
	pair.node[A].model = V10;
	pair.node[A].map_on_demand = 32;
	refused(LNET_O2IB_FRAGS_V1);
	pair.initiator = A;
	connected(8, 32, 1);
	begin(V12, LNET_O2IB_USER);
	pair.node[A].version = 1;
	refused(LNET_O2IB_NO_VERSION);
}

Test(o2ib_calc, this_implementation)
{
	begin(LNET_O2IB_USER, LNET_O2IB_2_16);
	connected(8, 256, 0);
	takes(A, 18, 64, 82);
	takes(B, 18, 2072, 2090);
	pair.initiator = B;
	connected(8, 257, 0);
	pair.node[A].peer_credits = pair.node[B].peer_credits = 64;
	pair.node[A].pieces = 5;
	connected(64, 257, 0);
	cr_assert_eq(got.res[A].max_send_wr, 320);
	cr_assert_eq(got.res[A].bulk_wrs, 4);
	/* If the device has fewer entries, messages are sent in batches, or the
	 * depth is lowered. */
	pair.node[A].max_qp_wr = 200;
	connected(64, 257, 0);
	cr_assert_eq(got.res[A].max_send_wr_granted, 200);
	cr_assert(noted(LNET_O2IB_COMPUTED, A, "send.capped"));
	pair.node[A].max_cqe = 300;
	connected(49, 257, 0);
	cr_assert_eq(got.res[A].cq_entries, 300);
	cr_assert(noted(LNET_O2IB_CHANGED, A, "depth.device"));
	pair.node[A].max_qp_wr = 60;
	connected(29, 257, 0);
	pair.node[A].max_cqe = pair.node[A].max_qp_wr = 0;
	/* less than the usual least */
	pair.node[A].peer_credits = 8;
	pair.node[A].max_cqe = 60;
	connected(8, 257, 1);
	cr_assert_eq(got.res[A].max_send_wr, 40);
	cr_assert_eq(got.res[A].cq_entries, 58);
	pair.node[A].max_cqe = 0;
	/* The rule of 2.16, but never 0. */
	pair.node[A].peer_credits = 255;
	pair.node[A].max_qp_wr = 5;
	connected(1, 257, 0);
	cr_assert_eq(got.conn.hiw[A], 1);
	cr_assert_eq(got.conn.hiw[B], 0);
	cr_assert(noted(LNET_O2IB_WARNING, B, "hiw.zero"));
	cr_assert_not(noted(LNET_O2IB_WARNING, A, "hiw.zero"));
}

Test(o2ib_calc, memory)
{
	begin(V15, V12);
	pair.npeers = 100;
	pair.node[A].conns_per_peer = 4;
	pair.node[A].page_size = 65536;
	pair.node[A].ncpts = 4;
	pair.node[A].ntx = 2048;
	pair.node[B].ncpts = 3;
	pair.node[B].conns_per_peer = 0;
	connected(8, 256, 1);
	cr_assert_eq(got.res[A].rx_pages, 2);
	cr_assert_eq(got.res[B].rx_pages, 18);
	cr_assert_eq(got.res[A].tx_buffers, 2048);
	cr_assert_eq(got.res[A].mr_regions, 1024);
	cr_assert_eq(got.res[A].mr_pages, 257);
	cr_assert_eq(got.res[B].tx_buffers, 768);
	cr_assert_eq(got.res[B].mr_regions, 768);
	cr_assert_eq(got.res[B].mr_pages, 256);
	cr_assert_eq(got.res[B].peer_rx_bytes, 4 * 73728);
	cr_assert_eq(got.res[B].node_rx_bytes, 100 * 4 * 73728);
	pair.initiator = B;
	connected(8, 256, 0);
	cr_assert_eq(got.res[A].peer_rx_bytes, 73728);
}

Test(o2ib_calc, too_many_bulk_messages)
{
	begin(V10, V10);
	for (int i = 0; i < 2; i++) {
		pair.node[i].map_on_demand = 2;
		pair.node[i].concurrent_sends = 16;
	}
	connected(8, 2, 0);
	cr_assert_eq(got.res[A].max_send_wr, 24);
	cr_assert_eq(got.res[A].typical_wrs, 64);
	cr_assert(noted(LNET_O2IB_WARNING, A, "send.many"));
}

/* ---- names ---- */

Test(o2ib_calc, names)
{
	static const struct {
		const char *name;
		enum ulnet_o2ib_model model;
	} releases[] = {
		{ "2.11.0", V11 },	    { "2.13", V12 },
		{ "2.14.55", V12 },	    { "2.15.4", V15 },
		{ "2.17", LNET_O2IB_2_16 }, { "2.16.1", LNET_O2IB_2_16 },
	};
	static const char *const none[] = {
		"",	 "2",	"2.",	 "2.9",	 "2.10.8", "2.15x",
		"2.15.", "3.0", "2.100", "USER", "-1",	   "2.-11"
	};
	enum ulnet_o2ib_registration registration;
	enum ulnet_o2ib_model model;
	unsigned int n;

	for (unsigned int i = 0; i < LNET_O2IB_MODELS; i++) {
		cr_assert_eq(
			lnet_o2ib_model_parse(lnet_o2ib_model_name(i), &model),
			0);
		cr_assert_eq(model, i);
	}
	for (unsigned int i = 0; i < LNET_O2IB_REGS; i++) {
		cr_assert_eq(
			lnet_o2ib_registration_parse(
				lnet_o2ib_registration_name(i), &registration),
			0);
		cr_assert_eq(registration, i);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(releases); i++) {
		cr_assert_eq(lnet_o2ib_model_parse(releases[i].name, &model), 0,
			     "%s", releases[i].name);
		cr_assert_eq(model, releases[i].model, "%s", releases[i].name);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(none); i++)
		cr_assert_eq(lnet_o2ib_model_parse(none[i], &model), -EINVAL,
			     "%s", none[i]);
	cr_assert_eq(lnet_o2ib_registration_parse("", &registration), -EINVAL);
	cr_assert_null(lnet_o2ib_model_name(LNET_O2IB_MODELS));
	cr_assert_null(lnet_o2ib_registration_name(LNET_O2IB_REGS));
	cr_assert_null(lnet_o2ib_verdict_text(LNET_O2IB_VERDICTS));
	cr_assert_null(lnet_o2ib_answer_name(99));
	for (unsigned int i = 0; i < LNET_O2IB_VERDICTS; i++)
		cr_assert(lnet_o2ib_verdict_text(i));
	for (unsigned int i = 0; i <= LNET_O2IB_FATAL; i++)
		cr_assert(lnet_o2ib_answer_name(i));
	for (n = 0; lnet_o2ib_rule(n); n++) {
		cr_assert(lnet_o2ib_rule(n)->id && lnet_o2ib_rule(n)->text,
			  "rule %u", n);
		for (unsigned int i = 0; i < n; i++)
			cr_assert_str_neq(lnet_o2ib_rule(n)->id,
					  lnet_o2ib_rule(i)->id);
	}
	cr_assert_gt(n, 50);
}

/* ---- whatever the tunables are ---- */

#define RUNS 200000

static uint64_t state;

static uint32_t draw(uint32_t n)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(z >> 32) % n;
}

static uint32_t draw_of(const uint32_t *values, unsigned int n)
{
	return draw(4) ? values[draw(n)] : draw(UINT32_MAX);
}

static void draw_conf(struct ulnet_o2ib_conf *c)
{
	static const uint32_t few[] = { 0, 1, 2, 4, 7, 8, 9, 16, 32, 63, 255 };
	static const uint32_t many[] = { 1, 16, 256, 512, 1024, 4096, 16384 };
	static const char *const releases[] = { "", "514", "693", "4.18.0" };

	lnet_o2ib_conf_init(c);
	c->model = (enum ulnet_o2ib_model)draw(LNET_O2IB_MODELS);
	c->registration = (enum ulnet_o2ib_registration)draw(LNET_O2IB_REGS);
	c->global_mr = (enum ulnet_o2ib_global_mr)draw(3);
	strcpy(c->kernel, releases[draw(ARRAY_SIZE(releases))]);
	if (!draw(64))
		strcpy(c->kernel, "banana");
	c->peer_credits = draw_of(few, ARRAY_SIZE(few));
	c->credits = draw_of(many, ARRAY_SIZE(many));
	c->peer_credits_hiw = draw_of(few, ARRAY_SIZE(few));
	c->concurrent_sends = draw_of(few, ARRAY_SIZE(few));
	c->map_on_demand = (int32_t)draw(300) - 1;
	c->ntx = draw_of(many, ARRAY_SIZE(many));
	c->fmr_pool_size = draw_of(many, ARRAY_SIZE(many));
	c->ncpts = draw_of(few, ARRAY_SIZE(few));
	c->conns_per_peer = draw_of(few, ARRAY_SIZE(few));
	c->wrq_sge = draw_of(few, ARRAY_SIZE(few));
	c->version = 2 - !draw(8);
	c->max_qp_wr = draw(2) ? 0 : draw_of(many, ARRAY_SIZE(many));
	c->max_cqe = draw(4) ? 0 : draw_of(many, ARRAY_SIZE(many));
	c->page_size = draw_of(many, ARRAY_SIZE(many));
	c->max_writes = draw_of(few, ARRAY_SIZE(few));
	c->pieces = draw_of(few, ARRAY_SIZE(few));
}

static void adjusted_stays(const struct ulnet_o2ib_node *node)
{
	const struct ulnet_o2ib_conf *c = &node->conf;
	struct ulnet_o2ib_node again;

	cr_assert_leq(c->peer_credits, 255);
	cr_assert_leq(c->peer_credits, c->credits);
	cr_assert(!c->peer_credits || c->peer_credits_hiw < c->peer_credits);
	cr_assert_leq(c->concurrent_sends, 2 * c->peer_credits);
	cr_assert_geq(c->concurrent_sends, c->peer_credits / 2);
	/* The output of a node can be its input. */
	(void)lnet_o2ib_adjust(c, &again, NULL);
	cr_assert_eq(memcmp(&again, node, sizeof(again)), 0);
}

static void connection_fits(void)
{
	const struct ulnet_o2ib_node *ini = &got.node[got.conn.initiator];
	const struct ulnet_o2ib_node *acc = &got.node[!got.conn.initiator];
	const struct ulnet_o2ib_conn *conn = &got.conn;

	cr_assert_geq(conn->depth, 1);
	cr_assert_leq(conn->frags, ini->frags_offered);
	cr_assert_leq(conn->frags, acc->frags_accepted);
	if (conn->version == 2) {
		cr_assert_leq(conn->depth, ini->depth_max);
		cr_assert_leq(conn->depth, acc->depth_max);
	} else {
		cr_assert_leq(conn->depth, 8);
	}
	for (int i = 0; i < 2; i++) {
		const struct ulnet_o2ib_resources *r = &got.res[i];
		const struct ulnet_o2ib_conf *c = &got.node[i].conf;

		cr_assert_geq(r->max_recv_wr, 2 * conn->depth);
		if (c->model >= V12 && c->model != LNET_O2IB_USER &&
		    c->max_qp_wr)
			cr_assert_leq(r->max_send_wr, c->max_qp_wr);
		if (c->max_cqe)
			cr_assert_leq(r->cq_entries, c->max_cqe);
		if (c->model == V12 || c->model == V15)
			cr_assert(conn->version == 1 ||
				  conn->hiw[i] < conn->depth);
		cr_assert_eq(r->peer_rx_bytes, r->rx_bytes * r->conns);
	}
}

#define RULES_MAX 256

static void note_rules(bool *seen)
{
	for (unsigned int i = 0; i < notes.n; i++)
		seen[notes.note[i].rule - lnet_o2ib_rule(0)] = true;
}

static bool is_open(const struct ulnet_o2ib_node *node)
{
	/* The size of the completion queue depends on which side lowers the
	 * depth. A side that cannot even ask does not learn that fewer
	 * fragments would help. */
	return !node->conf.max_cqe &&
	       (!node->conf.max_qp_wr || node->conf.max_qp_wr >= 260) &&
	       !node->frags_fixed && node->conf.version == 2 &&
	       node->conf.model != LNET_O2IB_USER;
}

Test(o2ib_calc, holds_for_all_tunables)
{
	const unsigned int runs = slice_of(RUNS, RUNS / 4);
	bool seen[RULES_MAX] = { false };
	unsigned int n = 0;

	for (unsigned int i = 0; i < runs; i++) {
		struct ulnet_o2ib_result quiet, other;
		int rc;

		state = i;
		draw_conf(&pair.node[A]);
		draw_conf(&pair.node[B]);
		pair.initiator = (enum ulnet_o2ib_side)draw(2);
		pair.npeers = draw(1000);
		rc = calculate();
		cr_assert_eq(notes.lost, 0);
		note_rules(seen);
		adjusted_stays(&got.node[A]);
		adjusted_stays(&got.node[B]);
		cr_assert_eq(rc, got.conn.verdict ? -ECONNREFUSED : 0);
		if (!rc)
			connection_fits();
		n += !rc;
		/* notes change no result */
		cr_assert_eq(lnet_o2ib_calculate(&pair, &quiet, NULL), rc);
		cr_assert_eq(memcmp(&quiet, &got, sizeof(got)), 0);
		/* nor does the initiator, if all can use fewer fragments */
		if (!is_open(&got.node[A]) || !is_open(&got.node[B]))
			continue;
		pair.initiator = pair.initiator == A ? B : A;
		cr_assert_eq(!lnet_o2ib_calculate(&pair, &other, NULL), !rc,
			     "seed %u: %u, %u", i, other.conn.verdict,
			     got.conn.verdict);
		cr_assert_eq(other.conn.depth, got.conn.depth,
			     "seed %u: %u, %u, %u", i, other.conn.depth,
			     got.conn.depth, got.conn.verdict);
		cr_assert_eq(other.conn.frags, got.conn.frags, "seed %u", i);
	}
	cr_assert_gt(n, runs / 20);
	/* Every rule is used by some case. */
	for (unsigned int i = 0; lnet_o2ib_rule(i); i++)
		cr_assert(seen[i], "%s", lnet_o2ib_rule(i)->id);
}
