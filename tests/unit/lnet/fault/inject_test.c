/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules on a node (H7): what they do to messages, how these end, and that
 * other messages are not affected.
 */
#include "ulnet/fault.h"

#include "tests/unit/lnet/cluster.h"

#define PORTAL	5
#define BITS	0x77
#define LATENCY 100000		  /* ns, of links */
#define SECOND	UINT64_C(1000000) /* us */

static struct seen seen, sent;
static uint8_t memory[65536], source[4096];

/* Returns a cluster of node 0, which sends, and node 1, which has a buffer. */
static struct lnet_sim *pair_with(unsigned int cpts,
				  const struct ulnet_conf *conf)
{
	static const struct ulnet_sim_link link = { .latency = LATENCY };
	struct lnet_sim *sim = cluster_with(2, cpts, conf);
	struct ulnet_md umd = md_of(memory, sizeof(memory),
				    LNET_MD_OP_PUT | LNET_MD_OP_GET, &seen);

	umd.options |= LNET_MD_MANAGE_REMOTE;
	seen.n = 0;
	sent.n = 0;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i * 7);
	cluster_links(sim, &link);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	return sim;
}

static struct lnet_sim *pair(void)
{
	return pair_with(1, NULL);
}

static struct ulnet_fault fault_of(enum ulnet_fault_kind kind, uint32_t rate)
{
	struct ulnet_fault f;

	lnet_fault_init(&f, kind);
	f.rate = rate;
	f.messages = LNET_FAULT_PUT;
	return f;
}

static void add(struct lnet_sim *sim, unsigned int node,
		const struct ulnet_fault *f)
{
	cr_assert_eq(lnet_fault_add(lnet_sim_node(sim, node), f), 0);
}

static void add_delay(struct lnet_sim *sim, unsigned int node, uint32_t rate,
		      uint64_t ms)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DELAY, rate);

	f.latency = ms * 1000;
	add(sim, node, &f);
}

static void add_error(struct lnet_sim *sim, uint32_t rate,
		      enum ulnet_cause cause)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_ERROR, rate);

	f.causes = LNET_FAULT_CAUSE(cause);
	add(sim, 0, &f);
}

static struct ulnet_fault_info info_of(struct lnet_sim *sim, unsigned int node,
				       enum ulnet_fault_kind kind)
{
	struct ulnet_fault_info info;

	cr_assert_eq(lnet_fault_list(lnet_sim_node(sim, node), kind, &info, 1),
		     1);
	return info;
}

static struct ulnet_md_handle put(struct lnet_sim *sim, uint32_t length,
				  uint64_t timeout, uint64_t tag)
{
	struct ulnet_md umd = md_of(source, length, 0, &sent);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	umd.timeout = timeout;
	md = bind_md(lnet_sim_node(sim, 0), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, nth_id(1),
			     PORTAL, BITS, 0, tag),
		     0);
	return md;
}

static void puts_of(struct lnet_sim *sim, unsigned int n, uint32_t length)
{
	for (unsigned int i = 0; i < n; i++)
		put(sim, length, SECOND, i);
}

/* Asserts that all credits were given back, and that nothing is queued. */
static void expect_calm(struct lnet_sim *sim)
{
	struct ulnet_id id = nth_id(1);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_peer_info(lnet_sim_node(sim, 0), &id.nid, &info), 0);
	cr_expect_eq(info.credits, info.credits_max);
	cr_expect_eq(info.queued_bytes, 0);
}

/* ---- drop ---- */

Test(inject, drop)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DROP, 4);
	struct lnet_sim *sim = pair();

	add(sim, 1, &f);
	puts_of(sim, 100, 300);
	lnet_sim_run_all(sim);
	cr_expect_eq(seen.n, 75);
	cr_expect_eq(sent.n, 100);
	for (unsigned int i = 0; i < 100; i++)
		cr_expect_eq(sent.ev[i].status, 0);
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "drop_fault"), 25);
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "drop_count"), 25);
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "drop_length"), 25 * 300);
	cr_expect_eq(info_of(sim, 1, LNET_FAULT_DROP).seen, 100);
	cr_expect_eq(info_of(sim, 1, LNET_FAULT_DROP).struck.put, 25);
	cluster_end(sim);
}

/* A message that was dropped does not make its sender known to the receiver. */
Test(inject, dropped_messages_leave_no_peer)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DROP, 1);
	struct lnet_sim *sim = pair();

	add(sim, 1, &f);
	puts_of(sim, 10, 100);
	lnet_sim_run_all(sim);
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "peers"), 0);
	cluster_end(sim);
}

Test(inject, messages_to_itself_are_not_affected)
{
	struct lnet_sim *sim = pair();

	for (int kind = 0; kind < LNET_FAULT_KINDS; kind++) {
		struct ulnet_fault f = fault_of(kind, 1);

		f.latency = kind == LNET_FAULT_DELAY ? 1000 : 0;
		f.causes = kind == LNET_FAULT_ERROR ? LNET_FAULT_CAUSES : 0;
		add(sim, 1, &f);
	}
	put_bytes(lnet_sim_node(sim, 1), nth_id(1), PORTAL, BITS, source, 100);
	lnet_sim_run(sim, 0);
	cr_expect_eq(seen.n, 1);
	cluster_end(sim);
}

/* ---- error ---- */

static const struct {
	enum ulnet_cause cause;
	int status;
	enum ulnet_outcome outcome;
} errors[] = {
	{ LNET_CAUSE_LOCAL_INTERRUPT, -EIO, LNET_OUTCOME_NOT_DELIVERED },
	{ LNET_CAUSE_LOCAL_DROPPED, -EIO, LNET_OUTCOME_NOT_DELIVERED },
	{ LNET_CAUSE_LOCAL_ABORTED, -EIO, LNET_OUTCOME_NOT_DELIVERED },
	{ LNET_CAUSE_LOCAL_NO_ROUTE, -EHOSTUNREACH,
	  LNET_OUTCOME_NOT_DELIVERED },
	{ LNET_CAUSE_LOCAL_ERROR, -EIO, LNET_OUTCOME_UNKNOWN },
	{ LNET_CAUSE_LOCAL_TIMEOUT, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED },
	{ LNET_CAUSE_REMOTE_ERROR, -EIO, LNET_OUTCOME_UNKNOWN },
	{ LNET_CAUSE_REMOTE_DROPPED, -EHOSTUNREACH,
	  LNET_OUTCOME_NOT_DELIVERED },
	{ LNET_CAUSE_REMOTE_TIMEOUT, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN },
	{ LNET_CAUSE_NETWORK_TIMEOUT, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN },
};

Test(inject, errors)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct lnet_sim *sim = pair();

		add_error(sim, 1, errors[i].cause);
		put(sim, 100, SECOND, 0);
		lnet_sim_run_all(sim);
		seen_end(&sent, LNET_EVENT_SEND, errors[i].status,
			 errors[i].outcome, errors[i].cause);
		cr_expect(nid_is(&sent.ev[0].path_peer, "10.0.0.2@tcp"));
		cr_expect_eq(seen.n, 0);
		expect_calm(sim);
		cluster_end(sim);
	}
}

/* A message that fails does not break its connection, which other messages use,
 * too. */
Test(inject, errors_do_not_affect_other_messages)
{
	static const struct ulnet_sim_link link = { .latency = LATENCY,
						    .connect = MSEC };
	struct lnet_sim *sim = pair();
	unsigned int failed = 0;

	cluster_links(sim, &link);
	put(sim, 100, SECOND, 0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(seen.n, 1);
	add_error(sim, 5, LNET_CAUSE_LOCAL_ERROR);
	puts_of(sim, 100, 100);
	lnet_sim_run_all(sim);
	for (unsigned int i = 0; i < sent.n; i++)
		failed += sent.ev[i].status != 0;
	cr_expect_eq(failed, 20);
	cr_expect_eq(seen.n, 81);
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "disconnects"), 0);
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "disconnects"), 0);
	expect_calm(sim);
	cluster_end(sim);
}

Test(inject, a_drop_with_a_status_fails_the_send)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DROP, 1);
	struct lnet_sim *sim = pair();

	f.causes = LNET_FAULT_CAUSE(LNET_CAUSE_REMOTE_ERROR);
	add(sim, 0, &f);
	put(sim, 100, SECOND, 0);
	lnet_sim_run_all(sim);
	seen_end(&sent, LNET_EVENT_SEND, -EIO, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_REMOTE_ERROR);
	cluster_end(sim);
}

/* ---- duplicate ---- */

Test(inject, duplicate)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE, 2);
	struct lnet_sim *sim = pair();
	unsigned int times[20] = { 0 }, twice = 0;

	add(sim, 0, &f);
	puts_of(sim, 20, 1000);
	lnet_sim_run_all(sim);
	cr_expect_eq(sent.n, 20);
	cr_expect_eq(seen.n, 30);
	for (unsigned int i = 0; i < seen.n; i++)
		times[seen.ev[i].hdr_data]++;
	for (unsigned int i = 0; i < 20; i++)
		twice += times[i] == 2;
	cr_expect_eq(twice, 10);
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "send_count"), 30);
	expect_calm(sim);
	cluster_end(sim);
}

/* A duplicate has the payload of the first message, even if the memory was
 * reused meanwhile. */
Test(inject, a_duplicate_has_its_own_memory)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE, 1);
	struct lnet_sim *sim = pair();
	uint8_t was[1000];

	memcpy(was, source, sizeof(was));
	add(sim, 0, &f);
	put(sim, sizeof(was), SECOND, 0);
	while (!sent.n)
		lnet_sim_run(sim, 1000);
	memset(source, 0, sizeof(source));
	memset(memory, 0, sizeof(memory));
	lnet_sim_run_all(sim);
	cr_expect_eq(seen.n, 2);
	cr_expect_eq(memcmp(memory, was, sizeof(was)), 0);
	cluster_end(sim);
}

/* A message that was not delivered is not sent a second time. */
Test(inject, a_message_not_sent_is_not_duplicated)
{
	static const struct ulnet_sim_link link = { .latency = LATENCY,
						    .refuse = LNET_SIM_ALWAYS };
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE, 1);
	struct lnet_sim *sim = pair();

	add(sim, 0, &f);
	cluster_links(sim, &link);
	puts_of(sim, 10, 100);
	lnet_sim_run_all(sim);
	cr_expect_eq(sent.n, 10);
	cr_expect_eq(seen.n, 0);
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "send_count"), 0);
	expect_calm(sim);
	cluster_end(sim);
}

/* ACKs, GETs and REPLYs are duplicated, too: each operation ends once. */
Test(inject, duplicates_of_all_types)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE, 1);
	struct lnet_sim *sim = pair();
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct ulnet_md_handle md;

	f.messages = 0;
	add(sim, 0, &f);
	add(sim, 1, &f);
	umd.threshold = 2;
	md = bind_md(lnet_sim_node(sim, 0), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(1), PORTAL,
			     BITS, 0, 0),
		     0);
	lnet_sim_run_all(sim);
	seen_end(&sent, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "drop_bad_handle"), 3);
	sent.n = 0;
	umd.threshold = 2;
	md = bind_md(lnet_sim_node(sim, 0), &umd);
	cr_assert_eq(LNetGet(LNET_NID_ANY, md, nth_id(1), PORTAL, BITS, 0), 0);
	lnet_sim_run_all(sim);
	seen_end(&sent, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "drop_bad_handle"), 6);
	expect_calm(sim);
	cluster_end(sim);
}

/* ---- corrupt ---- */

static unsigned int bits_that_differ(const uint8_t *a, const uint8_t *b,
				     size_t n)
{
	unsigned int bits = 0;

	for (size_t i = 0; i < n; i++)
		bits += (unsigned int)__builtin_popcount(a[i] ^ b[i]);
	return bits;
}

Test(inject, corrupt)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_CORRUPT, 1);
	struct lnet_sim *sim = pair();
	uint8_t was[sizeof(source)];

	memcpy(was, source, sizeof(was));
	add(sim, 0, &f);
	for (unsigned int i = 0; i < 50; i++) {
		memset(memory, 0, sizeof(memory));
		put(sim, 1 + i * 80, SECOND, i);
		lnet_sim_run_all(sim);
		cr_expect_eq(bits_that_differ(memory, was, 1 + i * 80), 1);
	}
	cr_expect_eq(memcmp(source, was, sizeof(was)), 0);
	cr_expect_eq(seen.n, 50);
	expect_calm(sim);
	cluster_end(sim);
}

/* ---- delay ---- */

static void check_delay(struct lnet_sim *sim, unsigned int where)
{
	add_delay(sim, where, 2, 50);
	puts_of(sim, 20, 1000);
	lnet_sim_run(sim, 20 * MSEC);
	cr_expect_eq(seen.n, 10);
	cr_expect_eq(sent.n, where == 0 ? 10 : 20);
	expect_calm(sim);
	lnet_sim_run(sim, 29 * MSEC);
	cr_expect_eq(seen.n, 10);
	lnet_sim_run(sim, 2 * MSEC);
	cr_expect_eq(seen.n, 20);
	cr_expect_eq(sent.n, 20);
	cr_expect_eq(memcmp(memory, source, 1000), 0);
	expect_calm(sim);
	cluster_end(sim);
}

Test(inject, delay_on_sending)
{
	check_delay(pair(), 0);
}

Test(inject, delay_on_receipt)
{
	check_delay(pair(), 1);
}

Test(inject, delay_with_many_cpts)
{
	check_delay(pair_with(4, NULL), 0);
	check_delay(pair_with(4, NULL), 1);
}

Test(inject, delay_ends_at_the_deadline)
{
	struct lnet_sim *sim = pair();

	add_delay(sim, 0, 1, 1000);
	put(sim, 100, 30000, 0);
	lnet_sim_run(sim, 30 * MSEC - 1);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, 1);
	seen_end(&sent, LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED,
		 LNET_CAUSE_LOCAL_TIMEOUT);
	lnet_sim_run_all(sim);
	cr_expect_eq(seen.n, 0);
	expect_calm(sim);
	cluster_end(sim);
}

Test(inject, delay_ends_when_canceled)
{
	struct lnet_sim *sim = pair();
	struct ulnet_md_handle md;

	add_delay(sim, 0, 1, 1000);
	md = put(sim, 100, 10 * SECOND, 0);
	lnet_sim_run(sim, 30 * MSEC);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, 0);
	seen_end(&sent, LNET_EVENT_SEND, -ECANCELED, LNET_OUTCOME_NOT_DELIVERED,
		 LNET_CAUSE_CANCELED);
	lnet_sim_run_all(sim);
	cr_expect_eq(seen.n, 0);
	cluster_end(sim);
}

/* When a rule is deleted the messages that it has delayed still come late. */
Test(inject, delay_outlives_its_rule)
{
	struct lnet_sim *sim = pair();

	add_delay(sim, 0, 1, 50);
	put(sim, 100, SECOND, 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_fault_del(lnet_sim_node(sim, 0), LNET_FAULT_DELAY,
				    NULL, NULL),
		     1);
	put(sim, 100, SECOND, 1);
	lnet_sim_run(sim, MSEC);
	cr_expect_eq(seen.n, 1);
	lnet_sim_run(sim, 50 * MSEC);
	cr_expect_eq(seen.n, 2);
	cluster_end(sim);
}

/* Deletes the NI of the sender (@where 0) or of the receiver (1) while it
 * delays messages. */
static void check_ni_gone(unsigned int where)
{
	const struct ulnet_id id = nth_id(where);
	struct lnet_sim *sim = pair();

	add_delay(sim, where, 1, 500);
	puts_of(sim, 10, 1000);
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_eq(lnet_ni_del(lnet_sim_node(sim, where), &id.nid), 0);
	lnet_sim_run(sim, MSEC);
	cr_expect_eq(sent.n, 10);
	for (unsigned int i = 0; i < sent.n; i++)
		cr_expect_eq(sent.ev[i].status, where == 0 ? -ESHUTDOWN : 0);
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "drop_closing"),
		     where == 0 ? 0 : 10);
	lnet_sim_run_all(sim);
	cr_expect_eq(seen.n, 0);
	cluster_end(sim);
}

Test(inject, delay_ends_with_the_ni)
{
	check_ni_gone(0);
	check_ni_gone(1);
}

/* lnet_sim_free() closes the nodes, and would find messages that are left. */
Test(inject, delay_ends_with_the_node)
{
	for (unsigned int where = 0; where < 2; where++) {
		struct lnet_sim *sim = pair();

		add_delay(sim, where, 1, 500);
		puts_of(sim, 10, 1000);
		lnet_sim_run(sim, 20 * MSEC);
		cr_assert_eq(lnet_sim_free(sim), 0);
		cr_expect_eq(sent.n, 10);
	}
}

Test(inject, a_crash_with_all_faults)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE, 2);

	for (unsigned int where = 0; where < 2; where++) {
		struct lnet_sim *sim = pair();

		add(sim, where, &f);
		add_delay(sim, where, 1, 500);
		puts_of(sim, 20, 1000);
		lnet_sim_run(sim, LATENCY / 2);
		cr_assert_eq(lnet_sim_crash(sim, where), 0);
		cr_assert_eq(lnet_sim_free(sim), 0);
	}
}

/* ---- shares ---- */

/* Messages received are delayed only within their sender's share of the queue.
 */
Test(inject, delays_have_a_share)
{
	const struct ulnet_conf conf = { .lazy_max = 8 };
	struct lnet_sim *sim = pair_with(1, &conf);

	add_delay(sim, 1, 1, 50);
	puts_of(sim, 20, 100);
	lnet_sim_run(sim, 20 * MSEC);
	/* Half of the places and one more are used for delays (base/share.h).
	 */
	cr_expect_eq(seen.n, 15);
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "faults_skipped"), 15);
	lnet_sim_run_all(sim);
	cr_expect_eq(seen.n, 20);
	cluster_end(sim);
}

/* Payloads are duplicated only within the share of the peer that they are sent
 * to. */
Test(inject, copies_have_a_share)
{
	static const struct ulnet_sim_link slow = { .latency = LATENCY,
						    .bandwidth = 100000 };
	const struct ulnet_conf conf = { .lazy_bytes_max = 10000 };
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE, 1);
	struct lnet_sim *sim = pair_with(1, &conf);

	cluster_links(sim, &slow);
	add(sim, 0, &f);
	puts_of(sim, 20, 1000);
	lnet_sim_run_all(sim);
	cr_expect_eq(sent.n, 20);
	cr_expect(seen.n > 20 && seen.n < 40, "%u", seen.n);
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "faults_skipped"),
		     40 - seen.n);
	expect_calm(sim);
	cluster_end(sim);
}

/* ---- rules of a node ---- */

Test(inject, list_delete_reset)
{
	const struct ulnet_nid a = nth_id(0).nid, any = LNET_NID_ANY;
	struct ulnet_fault f = fault_of(LNET_FAULT_DROP, 3);
	struct ulnet_fault_info infos[4];
	struct lnet_sim *sim = pair();
	struct lnet *node = lnet_sim_node(sim, 1);

	add(sim, 1, &f);
	f.source = a;
	f.rate = 4;
	add(sim, 1, &f);
	add_delay(sim, 1, 1, 10);
	cr_expect_eq(lnet_fault_list(node, LNET_FAULT_DROP, infos, 4), 2);
	cr_expect_eq(infos[0].fault.rate, 3);
	cr_expect_eq(infos[1].fault.rate, 4);
	cr_expect_eq(lnet_fault_list(node, LNET_FAULT_DELAY, infos, 0), 1);
	cr_expect_eq(lnet_fault_list(node, LNET_FAULT_ERROR, infos, 4), 0);
	puts_of(sim, 12, 100);
	lnet_sim_run_all(sim);
	lnet_fault_list(node, LNET_FAULT_DROP, infos, 4);
	cr_expect_eq(infos[0].seen, 12);
	cr_expect_eq(infos[0].fired, 4);
	cr_expect_eq(infos[1].seen, 8);
	cr_expect_eq(infos[1].fired, 2);
	cr_expect_eq(lnet_fault_reset(node, LNET_FAULT_DROP), 0);
	cr_expect_eq(info_of(sim, 1, LNET_FAULT_DELAY).seen, 6);
	lnet_fault_list(node, LNET_FAULT_DROP, infos, 4);
	cr_expect_eq(infos[0].seen + infos[0].fired + infos[1].seen, 0);
	cr_expect_eq(lnet_fault_del(node, LNET_FAULT_DROP, &a, &a), 0);
	cr_expect_eq(lnet_fault_del(node, LNET_FAULT_DROP, &a, &any), 1);
	cr_expect_eq(info_of(sim, 1, LNET_FAULT_DROP).fault.rate, 3);
	cr_expect_eq(lnet_fault_del(node, LNET_FAULT_DROP, NULL, NULL), 1);
	cr_expect_eq(lnet_fault_list(node, LNET_FAULT_DELAY, infos, 4), 1);
	cluster_end(sim);
}

Test(inject, bad_arguments)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DROP, 1);
	struct lnet_sim *sim = pair();
	struct lnet *node = lnet_sim_node(sim, 0);
	enum ulnet_fault_kind none = LNET_FAULT_KINDS + 1;

	for (unsigned int i = 0; i < LNET_FAULTS_MAX; i++) {
		f.rate = i + 1;
		add(sim, 0, &f);
		cr_expect_eq(lnet_fault_add(node, &f), -EEXIST);
	}
	f.rate++;
	cr_expect_eq(lnet_fault_add(node, &f), -ENOSPC);
	f.rate = 0;
	cr_expect_eq(lnet_fault_add(node, &f), -EINVAL);
	cr_expect_eq(lnet_fault_del(node, none, NULL, NULL), -EINVAL);
	cr_expect_eq(lnet_fault_reset(node, none), -EINVAL);
	cr_expect_eq(lnet_fault_list(node, none, NULL, 0), -EINVAL);
	cr_expect_eq(lnet_fault_del(node, LNET_FAULT_DROP, NULL, NULL),
		     LNET_FAULTS_MAX);
	cluster_end(sim);
}
