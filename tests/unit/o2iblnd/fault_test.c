/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault rules, and REPLYs that the LND sends as the answer to a GET. */
#include "tests/unit/o2iblnd/node_rig.h"
#include "ulnet/fault.h"

#define ASKS	0
#define ANSWERS 1
#define TIMEOUT (5 * NSEC_PER_SEC)
#define LATENCY NSEC_PER_SEC

static struct node_rig r;
static uint8_t source[MIB], sink[MIB];
static struct seen got, given;
/* connections that were made before there were rules */
static uint64_t connected;

static uint64_t connections(void)
{
	struct simqp_stats stats;

	simqp_stats(r.fabric, &stats);
	return stats.connected;
}

/* One fetch from ANSWERS has ended. */
static void open_nodes(unsigned int cpts)
{
	struct ulnet_md umd = md_of(
		source, MIB, LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, &given);
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.transaction_timeout = TIMEOUT / 1000;
	conf.discovery = LNET_DISCOVERY_OFF;
	/* A message that LNet gives up does not end the LND's connection. */
	r.tunables[0] = (struct ulnet_tunable){ "timeout", 60 };
	r.ntunables = 1;
	node_rig_open(&r, 2, cpts, &conf);
	for (unsigned int i = 0; i < MIB; i++)
		source[i] = (uint8_t)(i * 7 + (i >> 8));
	post_md(r.node[ANSWERS], PORTAL, BITS, &umd);
	node_rig_get(&r, ASKS, r.id[ANSWERS], sink, MIB, &got);
	node_rig_run(&r, NSEC_PER_SEC);
	cr_assert_eq(got.ev[got.n - 1].status, 0);
	connected = connections();
}

/* a rule for each REPLY that @node sends or receives */
static struct ulnet_fault rule(enum ulnet_fault_kind kind)
{
	struct ulnet_fault f;

	lnet_fault_init(&f, kind);
	f.messages = LNET_FAULT_REPLY;
	f.rate = 1;
	return f;
}

static void rule_on(unsigned int node, const struct ulnet_fault *f)
{
	cr_assert_eq(lnet_fault_add(r.node[node], f), 0);
}

static void get(uint32_t length)
{
	got.n = given.n = 0;
	memset(sink, 0, sizeof(sink));
	node_rig_get(&r, ASKS, r.id[ANSWERS], sink, length, &got);
}

static bool is_got(void)
{
	return got.n && got.ev[got.n - 1].terminal;
}

static void ends_well(uint32_t length)
{
	cr_assert(is_got());
	seen_end(&got, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	cr_assert_eq(got.ev[got.n - 1].mlength, length);
	cr_assert_eq(given.n, 1);
	cr_assert_eq(given.ev[0].status, 0);
}

static void ends_late(void)
{
	cr_assert(is_got());
	cr_assert_eq(got.ev[got.n - 1].status, -ETIMEDOUT);
}

/* Without rules all is as before, over the same connection. */
static void close_nodes(void)
{
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_geq(
			lnet_fault_del(r.node[i], LNET_FAULT_KINDS, NULL, NULL),
			0);
	get(MIB);
	node_rig_run(&r, NSEC_PER_SEC);
	ends_well(MIB);
	cr_assert_arr_eq(sink, source, MIB);
	cr_assert_eq(connections(), connected);
	node_rig_close(&r);
}

/* Rules are for REPLYs, however the LND sends them. */
static void is_struck(unsigned int node, enum ulnet_fault_kind kind, uint64_t n)
{
	struct ulnet_fault_info info;

	cr_assert_eq(lnet_fault_list(r.node[node], kind, &info, 1), 1);
	cr_assert_eq(info.seen, n);
	cr_assert_eq(info.fired, n);
	cr_assert_eq(info.struck.reply, n);
}

Test(o2ib_fault, dropped_on_receipt)
{
	struct ulnet_fault f = rule(LNET_FAULT_DROP);

	open_nodes(1);
	rule_on(ASKS, &f);
	get(MIB);
	node_rig_run(&r, TIMEOUT / 2);
	cr_assert_not(is_got());
	node_rig_run(&r, TIMEOUT);
	ends_late();
	is_struck(ASKS, LNET_FAULT_DROP, 1);
	close_nodes();
}

/* With a rule at its sender the REPLY fails; with one at its receiver it is
 * lost. */
Test(o2ib_fault, failed)
{
	struct ulnet_fault f = rule(LNET_FAULT_DROP);

	f.causes = LNET_FAULT_CAUSE(LNET_CAUSE_NETWORK_TIMEOUT);
	open_nodes(1);
	rule_on(ANSWERS, &f);
	get(MIB);
	node_rig_run(&r, TIMEOUT / 2);
	cr_assert_eq(given.n, 1);
	cr_assert_eq(given.ev[0].type, LNET_EVENT_GET);
	cr_assert_eq(given.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(given.ev[0].cause, LNET_CAUSE_NETWORK_TIMEOUT);
	cr_assert_not(is_got());
	node_rig_run(&r, TIMEOUT);
	ends_late();
	is_struck(ANSWERS, LNET_FAULT_DROP, 1);
	close_nodes();
}

/* Others overtake it, and its deadline holds. */
static void delayed(unsigned int cpts)
{
	struct ulnet_fault f = rule(LNET_FAULT_DELAY);
	struct seen first = { 0 };

	f.latency = LATENCY / 1000;
	f.rate = 2;
	open_nodes(cpts);
	rule_on(ANSWERS, &f);
	/* one of the two */
	get(MIB);
	node_rig_get(&r, ASKS, r.id[ANSWERS], sink, MIB, &first);
	node_rig_run(&r, LATENCY / 2);
	cr_assert_eq(is_got() + (first.n && first.ev[first.n - 1].terminal), 1);
	cr_assert_eq(given.n, 1);
	node_rig_run(&r, LATENCY);
	cr_assert_eq(given.n, 2);
	cr_assert_eq(given.ev[1].status, 0);
	cr_assert_eq(seen_last(&got), LNET_EVENT_REPLY);
	cr_assert_eq(seen_last(&first), LNET_EVENT_REPLY);
	cr_assert_arr_eq(sink, source, MIB);
	close_nodes();
}

Test(o2ib_fault, delayed)
{
	delayed(1);
}

Test(o2ib_fault, delayed_2_cpts)
{
	delayed(2);
}

Test(o2ib_fault, delayed_for_too_long)
{
	struct ulnet_fault f = rule(LNET_FAULT_DELAY);

	f.latency = 10 * TIMEOUT / 1000;
	open_nodes(1);
	rule_on(ANSWERS, &f);
	get(MIB);
	node_rig_run(&r, 2 * TIMEOUT);
	ends_late();
	cr_assert_eq(given.n, 1);
	cr_assert_eq(given.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(given.ev[0].cause, LNET_CAUSE_LOCAL_TIMEOUT);
	close_nodes();
}

/* A delayed message ends with its NI. */
Test(o2ib_fault, delayed_at_shutdown)
{
	struct ulnet_fault f = rule(LNET_FAULT_DELAY);

	f.latency = LATENCY / 1000;
	open_nodes(1);
	rule_on(ANSWERS, &f);
	get(MIB);
	node_rig_run(&r, LATENCY / 2);
	cr_assert_eq(given.n, 0);
	cr_assert_eq(lnet_ni_del(r.node[ANSWERS], &r.id[ANSWERS].nid), 0);
	node_rig_run(&r, MSEC);
	cr_assert_eq(given.n, 1);
	cr_assert_eq(given.ev[0].status, -ESHUTDOWN);
	node_rig_run(&r, 2 * TIMEOUT);
	cr_assert(is_got());
	cr_assert_neq(got.ev[got.n - 1].status, 0);
	node_rig_close(&r);
}

/* The same, if the connection that it must use has ended. */
Test(o2ib_fault, delayed_without_connection)
{
	struct ulnet_fault f = rule(LNET_FAULT_DELAY);

	f.latency = LATENCY / 1000;
	open_nodes(1);
	rule_on(ANSWERS, &f);
	get(MIB);
	node_rig_run(&r, LATENCY / 2);
	simqp_cut(r.fabric, &r.id[ASKS].nid, &r.id[ANSWERS].nid);
	node_rig_run(&r, LATENCY);
	cr_assert_eq(given.n, 1);
	cr_assert_eq(given.ev[0].status, -ENOTCONN);
	node_rig_run(&r, 2 * TIMEOUT);
	cr_assert(is_got());
	cr_assert_neq(got.ev[got.n - 1].status, 0);
	node_rig_close(&r);
}

/* One bit of what is received is changed, none of what is sent. */
Test(o2ib_fault, corrupted)
{
	struct ulnet_fault f = rule(LNET_FAULT_CORRUPT);
	unsigned int wrong = 0;

	open_nodes(1);
	rule_on(ANSWERS, &f);
	get(MIB);
	node_rig_run(&r, NSEC_PER_SEC);
	ends_well(MIB);
	for (unsigned int i = 0; i < MIB; i++) {
		cr_assert_eq(source[i], (uint8_t)(i * 7 + (i >> 8)));
		wrong += (unsigned int)__builtin_popcount(
			(unsigned int)(source[i] ^ sink[i]));
	}
	cr_assert_eq(wrong, 1);
	close_nodes();
}

/* A GET has one answer; a REPLY that is a message may be sent twice. */
Test(o2ib_fault, duplicated)
{
	struct ulnet_fault f = rule(LNET_FAULT_DUPLICATE);

	open_nodes(1);
	rule_on(ANSWERS, &f);
	get(MIB);
	node_rig_run(&r, NSEC_PER_SEC);
	ends_well(MIB);
	cr_assert_eq(counter(r.node[ANSWERS], "faults_skipped"), 1);
	get(100);
	node_rig_run(&r, NSEC_PER_SEC);
	ends_well(100);
	cr_assert_eq(counter(r.node[ANSWERS], "faults_skipped"), 1);
	cr_assert_eq(counter(r.node[ASKS], "drop_bad_handle"), 1);
	close_nodes();
}
