/* SPDX-License-Identifier: BSD-3-Clause */
/* Local interfaces: the list of them, and what happens when they come and go.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define SECOND UINT64_C(1000000) /* us */

static struct seen seen, sent;
static uint8_t memory[65536], source[65536];

static int add(struct lnet *node, const char *nid)
{
	struct ulnet_ni_conf conf = { .nid = nid_of(nid) };

	return lnet_ni_add(node, &conf);
}

static int del(struct lnet *node, const char *nid)
{
	struct ulnet_nid gone = nid_of(nid);

	return lnet_ni_del(node, &gone);
}

/* Asserts that these are the node's NIDs; @want has blanks between them. */
static void has_nids(struct lnet *node, const char *want)
{
	struct ulnet_id id;
	char text[512] = "", nid[LNET_NIDSTR_SIZE];
	unsigned int i;

	for (i = 0; LNetGetId(node, i, &id) == 0; i++) {
		struct ulnet_ni_info info;

		cr_assert_eq(id.pid, 12345);
		cr_assert_eq(lnet_ni_info(node, i, &info), 0);
		cr_assert(lnet_nid_eq(&info.nid, &id.nid));
		cr_assert(info.up);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%s", i ? " " : "",
			 lnet_nid_format(&id.nid, nid, sizeof(nid)));
	}
	cr_assert_str_eq(text, want);
	cr_assert_eq(LNetGetId(node, i, &id), -ENOENT);
}

Test(ni, list)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_ni_info info;

	has_nids(node, "0@lo 10.0.0.1@tcp");
	cr_assert_eq(add(node, "10.0.0.1@tcp"), -EEXIST);
	cr_assert_eq(add(node, "10.1.0.1@tcp1"), 0);
	cr_assert_eq(add(node, "10.2.0.1@o2ib"), 0);
	/* NIs are listed net by net. */
	cr_assert_eq(add(node, "10.0.0.9@tcp"), 0);
	cr_assert_eq(add(node, "fd77::1@tcp1"), 0);
	has_nids(node, "0@lo 10.0.0.1@tcp 10.0.0.9@tcp 10.1.0.1@tcp1 "
		       "fd77::1@tcp1 10.2.0.1@o2ib");
	cr_assert_eq(del(node, "10.0.0.1@tcp"), 0);
	cr_assert_eq(del(node, "10.0.0.1@tcp"), -ENOENT);
	cr_assert_eq(del(node, "10.1.0.1@tcp1"), 0);
	has_nids(node, "0@lo 10.0.0.9@tcp fd77::1@tcp1 10.2.0.1@o2ib");
	lnet_sim_run_all(sim);
	cr_assert_eq(add(node, "10.0.0.1@tcp"), 0);
	has_nids(node, "0@lo 10.0.0.9@tcp 10.0.0.1@tcp fd77::1@tcp1 "
		       "10.2.0.1@o2ib");
	cr_assert_eq(lnet_ni_info(node, 1, &info), 0);
	cr_assert_str_eq(info.state, "active");
	cr_assert_eq(lnet_ni_info(node, 5, &info), -ENOENT);
	cluster_end(sim);
}

Test(ni, impossible)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_ni_conf conf = { .nid = LNET_NID_ANY };
	struct ulnet_nid nid = LNET_NID_LO;

	cr_assert_eq(lnet_ni_add(node, &conf), -EINVAL);
	conf.nid = LNET_NID_LO;
	cr_assert_eq(lnet_ni_add(node, &conf), -EINVAL);
	conf.nid.addr[3] = 1;
	cr_assert_eq(lnet_ni_add(node, &conf), -EINVAL);
	conf.nid = nid_of("10.0.0.5@tcp");
	conf.nid.size = 5;
	cr_assert_eq(lnet_ni_add(node, &conf), -EINVAL);
	conf.nid.size = 0;
	conf.credits = UINT32_MAX;
	cr_assert_eq(lnet_ni_add(node, &conf), -EINVAL);
	conf.credits = 0;
	conf.peer_credits = 65536;
	cr_assert_eq(lnet_ni_add(node, &conf), -EINVAL);
	cr_assert_eq(lnet_ni_del(node, &nid), -EINVAL);
	/* This NID is another node's. */
	cr_assert_eq(add(node, "10.0.0.2@tcp"), -EADDRINUSE);
	has_nids(node, "0@lo 10.0.0.1@tcp");
	cluster_end(sim);
}

Test(ni, limit)
{
	struct lnet_sim *sim;
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.interfaces_max = 2;
	sim = cluster_with(1, 1, &conf);
	node = lnet_sim_node(sim, 0);
	cr_assert_eq(add(node, "10.0.0.8@tcp"), 0);
	cr_assert_eq(add(node, "10.0.0.9@tcp"), -ENOSPC);
	cr_assert_eq(del(node, "10.0.0.8@tcp"), 0);
	cr_assert_eq(add(node, "10.0.0.9@tcp"), 0);
	cluster_end(sim);
}

/* A node outside the simulator has the LNDs of the library, and no others. */
Test(ni, without_an_lnd)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(add(node, "7@ptlf"), -EPROTONOSUPPORT);
	cr_assert_eq(add(node, "10.0.0.1@gip"), -EPROTONOSUPPORT);
	has_nids(node, "0@lo");
	lnet_close(node);
}

/* ---- a node sends to itself ---- */

/* A node that sends to 0@lo, or to one of its own NIDs, sends to itself.
 * "cases" says which NID is then the source. */
static void to_itself(unsigned int cpts)
{
	static const struct {
		const char *self, *target, *source;
	} cases[] = {
		{ NULL, "0@lo", "0@lo" },
		{ NULL, "10.0.0.1@tcp", "10.0.0.1@tcp" },
		{ NULL, "10.1.0.1@tcp1", "10.1.0.1@tcp1" },
		{ "10.1.0.1@tcp1", "0@lo", "10.1.0.1@tcp1" },
		{ "10.1.0.1@tcp1", "10.0.0.1@tcp", "10.1.0.1@tcp1" },
		{ "0@lo", "10.0.0.1@tcp", "0@lo" },
	};
	struct lnet_sim *sim = cluster_with(1, cpts, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(
		memory, 100,
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, &seen);
	struct ulnet_ni_info info;

	cr_assert_eq(add(node, "10.1.0.1@tcp1"), 0);
	post_md(node, PORTAL, BITS, &umd);
	umd = md_of(source, 100, 0, &sent);
	umd.threshold = 2;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct ulnet_nid self = cases[i / 2].self
						? nid_of(cases[i / 2].self)
						: LNET_NID_ANY;
		struct ulnet_id target = id_of(cases[i / 2].target);
		bool get = i % 2;
		int rc;

		seen.n = 0;
		sent.n = 0;
		memset(memory, get ? 7 : 0, 100);
		memset(source, get ? 0 : 9, 100);
		if (get)
			rc = LNetGet(self, bind_md(node, &umd), target, PORTAL,
				     BITS, 0);
		else
			rc = LNetPut(self, bind_md(node, &umd), LNET_ACK_REQ,
				     target, PORTAL, BITS, 0, 5);
		cr_assert_eq(rc, 0);
		cr_assert_eq(seen.n + sent.n, 0, "called back too early");
		lnet_sim_run_all(sim);
		cr_assert_eq(sent.n, 2);
		seen_end(&sent, sent.ev[1].type, sent.ev[1].status,
			 LNET_OUTCOME_DELIVERED, sent.ev[1].cause);
		for (unsigned int e = 0; e < 2; e++)
			cr_assert_eq(sent.ev[e].status, 0);
		cr_assert_eq(seen.n, 1);
		cr_assert(nid_is(&seen.ev[0].source, cases[i / 2].source),
			  "case %zu", i / 2);
		cr_assert(
			nid_is(&seen.ev[0].initiator.nid, cases[i / 2].source));
		cr_assert(nid_is(&seen.ev[0].target.nid, cases[i / 2].target));
		cr_assert_eq(memory[99], get ? 7 : 9);
		cr_assert_eq(source[99], get ? 7 : 9);
	}
	/* No other node has received anything. */
	cr_assert_eq(lnet_ni_info(node, 1, &info), 0);
	cr_assert_eq(info.send_count, 0);
	cr_assert_eq(info.recv_count, 0);
	cr_assert_eq(lnet_ni_info(node, 0, &info), 0);
	cr_assert_eq(info.send_count, 4 * ARRAY_SIZE(cases));
	cluster_end(sim);
}

Test(ni, loopback)
{
	for (unsigned int cpts = 1; cpts <= 16; cpts *= 4)
		to_itself(cpts);
}

Test(ni, loopback_when_down)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct ulnet_id self = nth_id(0);

	cr_assert_eq(lnet_sim_ni_set(sim, &self.nid, false), 0);
	post_md(node, PORTAL, BITS, &umd);
	put_bytes(node, self, PORTAL, BITS, source, 10);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 1);
	cluster_end(sim);
}

/* ---- coming and going in the middle of traffic ---- */

/* Returns the number of terminal events in @s. */
static unsigned int ended(const struct seen *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n; i++)
		n += s->ev[i].terminal;
	return n;
}

static void puts_between(struct lnet_sim *sim, unsigned int from,
			 unsigned int to, unsigned int n)
{
	struct ulnet_md umd = md_of(source, 1000, 0, &sent);

	umd.threshold = 2;
	umd.timeout = 5 * SECOND;
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, from), &umd),
				     LNET_ACK_REQ, nth_id(to), PORTAL, BITS, 0,
				     i),
			     0);
}

/* The sender's NI is deleted: messages that wait are not sent, and all of them
 * end so. */
Test(ni, deleted_at_the_sender)
{
	const struct ulnet_sim_link slow = { .bandwidth = 100000 };

	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct lnet_sim *sim = cluster_with(2, cpts, NULL);
		struct ulnet_md umd =
			md_of(memory, 65536, LNET_MD_OP_PUT, &seen);
		unsigned int no = 0;

		seen.n = 0;
		sent.n = 0;
		post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
		cluster_links(sim, &slow);
		puts_between(sim, 1, 0, 30);
		lnet_sim_run(sim, 35 * MSEC); /* three have been sent */
		cr_assert_eq(del(lnet_sim_node(sim, 1), "10.0.0.2@tcp"), 0);
		lnet_sim_run(sim, MSEC);
		for (unsigned int i = 0; i < sent.n; i++) {
			const struct ulnet_event *ev = &sent.ev[i];

			if (!ev->terminal ||
			    ev->outcome == LNET_OUTCOME_DELIVERED)
				continue;
			cr_assert_eq(ev->status, -ESHUTDOWN);
			no += ev->outcome == LNET_OUTCOME_NOT_DELIVERED;
		}
		cr_assert_geq(no, 20);
		cr_assert_eq(lnet_sim_check(sim), 0);
		/* There is no path any more. */
		puts_between(sim, 1, 0, 1);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(sent.ev[sent.n - 1].status, -EHOSTUNREACH);
		lnet_sim_run_all(sim);
		cr_assert_eq(ended(&sent), 31);
		cluster_end(sim);
	}
}

/* The target's NI is deleted: messages in transit are lost. */
Test(ni, deleted_at_the_target)
{
	const struct ulnet_sim_link slow = { .bandwidth = 100000,
					     .latency = 5 * MSEC };

	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct lnet_sim *sim = cluster_with(2, cpts, NULL);
		struct ulnet_md umd =
			md_of(memory, 65536, LNET_MD_OP_PUT, &seen);
		unsigned int n;

		seen.n = 0;
		sent.n = 0;
		post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
		cluster_links(sim, &slow);
		puts_between(sim, 1, 0, 20);
		lnet_sim_run(sim, 80 * MSEC);
		cr_assert_eq(del(lnet_sim_node(sim, 0), "10.0.0.1@tcp"), 0);
		lnet_sim_run(sim, MSEC);
		n = seen.n;
		cr_assert_lt(n, 20);
		lnet_sim_run_all(sim);
		cr_assert_eq(seen.n, n);
		cr_assert_eq(ended(&sent), 20);
		cluster_end(sim);
	}
}

/* An NI is deleted and added again: messages go on. */
static void comes_back(unsigned int cpts)
{
	struct lnet_sim *sim = cluster_with(2, cpts, NULL);
	struct ulnet_md umd = md_of(memory, 65536, LNET_MD_OP_PUT, &seen);

	seen.n = 0;
	sent.n = 0;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	for (unsigned int i = 1; i <= 3; i++) {
		puts_between(sim, 1, 0, 1);
		lnet_sim_run_all(sim);
		cr_assert_eq(seen.n, i);
		for (unsigned int n = 0; n < 2; n++) {
			struct ulnet_nid nid = nth_id(n).nid;
			struct ulnet_ni_conf conf = { .nid = nid };

			cr_assert_eq(lnet_ni_del(lnet_sim_node(sim, n), &nid),
				     0);
			lnet_sim_run(sim, MSEC);
			cr_assert_eq(lnet_ni_add(lnet_sim_node(sim, n), &conf),
				     0, "%u CPTs", cpts);
		}
	}
	cluster_end(sim);
}

Test(ni, comes_back)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		comes_back(cpts);
}

/* One of two NIs is deleted: messages take the other one. */
Test(ni, the_other_one_takes_over)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(memory, 65536, LNET_MD_OP_PUT, &seen);

	cr_assert_eq(add(node, "10.0.0.9@tcp"), 0);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	for (unsigned int i = 0; i < 2; i++) {
		puts_between(sim, 1, 0, 1);
		lnet_sim_run_all(sim);
	}
	cr_assert(lnet_nid_eq(&seen.ev[0].source, &seen.ev[1].source));
	cr_assert_eq(lnet_ni_del(node, &seen.ev[0].source), 0);
	puts_between(sim, 1, 0, 1);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 3);
	cr_assert(!lnet_nid_eq(&seen.ev[0].source, &seen.ev[2].source));
	cluster_end(sim);
}

Test(ni, down_and_up)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(memory, 65536, LNET_MD_OP_PUT, &seen);
	struct ulnet_nid first;
	struct ulnet_ni_info info;

	cr_assert_eq(add(node, "10.0.0.9@tcp"), 0);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	puts_between(sim, 1, 0, 1);
	lnet_sim_run_all(sim);
	first = seen.ev[0].source;
	cr_assert_eq(lnet_sim_ni_set(sim, &first, false), 0);
	cr_assert_eq(lnet_ni_info(node, nid_is(&first, "10.0.0.2@tcp") ? 1 : 2,
				  &info),
		     0);
	cr_assert(!info.up);
	puts_between(sim, 1, 0, 1);
	lnet_sim_run_all(sim);
	cr_assert(!lnet_nid_eq(&seen.ev[1].source, &first));
	/* The first NI is up again, but the node keeps to the second one: a
	 * peer that is not multi-rail knows this node by one NID, which does
	 * not change without need. */
	cr_assert_eq(lnet_sim_ni_set(sim, &first, true), 0);
	puts_between(sim, 1, 0, 1);
	lnet_sim_run_all(sim);
	cr_assert(lnet_nid_eq(&seen.ev[2].source, &seen.ev[1].source));
	cluster_end(sim);
}

/* ---- handlers that change or ask for interfaces ---- */

static struct lnet *changed;
static int change_rc[3];

static void change_inside(const struct ulnet_event *ev)
{
	struct ulnet_id id;
	struct ulnet_ni_info info;

	see(ev);
	if (ev->type != LNET_EVENT_SEND)
		return;
	change_rc[2] = LNetGetId(changed, 0, &id);
	lnet_ni_info(changed, 0, &info);
	change_rc[0] = add(changed, "10.5.0.1@tcp5");
	change_rc[1] = del(changed, "10.0.0.2@tcp");
}

static void change(struct lnet_sim *sim, unsigned int n)
{
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	changed = lnet_sim_node(sim, 1);
	change_rc[0] = change_rc[1] = change_rc[2] = 1;
	umd.handler = change_inside;
	umd.threshold = 1;
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(changed, &umd),
				     LNET_NOACK_REQ, nth_id(0), PORTAL, BITS, 0,
				     0),
			     0);
}

/* With one CPT a handler may change NIs. When an NI is deleted, the messages
 * that it was sending end, too. */
Test(ni, changed_by_a_handler)
{
	struct lnet_sim *sim = cluster(2);
	unsigned int not_delivered = 0;

	change(sim, 20);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 20);
	for (unsigned int i = 1; i < 20; i++)
		not_delivered +=
			sent.ev[i].outcome == LNET_OUTCOME_NOT_DELIVERED;
	cr_assert_gt(not_delivered, 0);
	/* each handler overwrites change_rc, so these are the results of the
	 * last one */
	cr_assert_eq(change_rc[0], -EEXIST);
	cr_assert_eq(change_rc[1], -ENOENT);
	cr_assert_eq(change_rc[2], 0);
	has_nids(changed, "0@lo 10.5.0.1@tcp5");
	cluster_end(sim);
}

/* With several CPTs a handler may not change NIs: it would wait for other CPTs.
 */
Test(ni, not_changed_by_one_of_many)
{
	struct lnet_sim *sim = cluster_with(2, 2, NULL);

	change(sim, 1);
	lnet_sim_run_all(sim);
	cr_assert_eq(change_rc[0], -EXDEV);
	cr_assert_eq(change_rc[1], -EXDEV);
	cr_assert_eq(change_rc[2], 0);
	has_nids(changed, "0@lo 10.0.0.2@tcp");
	cluster_end(sim);
}

/* NIs cannot be changed while the node closes: a new one would never be
 * deleted. */
Test(ni, not_changed_while_closing)
{
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);

	cluster_links(sim, &stalled);
	change(sim, 20);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	cr_assert_eq(sent.n, 20);
	cr_assert_eq(change_rc[0], -ESHUTDOWN);
	cr_assert_eq(change_rc[1], -ESHUTDOWN);
	cr_assert_eq(change_rc[2], -ESHUTDOWN);
}

/* A handler asks for the node's ids while an NI is being deleted. */
static void ask_inside(const struct ulnet_event *ev)
{
	struct ulnet_id id;

	see(ev);
	change_rc[0] = LNetGetId(changed, 1, &id);
}

Test(ni, asked_while_deleting)
{
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	changed = lnet_sim_node(sim, 1);
	cluster_links(sim, &stalled);
	umd.handler = ask_inside;
	umd.threshold = 1;
	for (unsigned int i = 0; i < 12; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(changed, &umd),
				     LNET_NOACK_REQ, nth_id(0), PORTAL, BITS, 0,
				     0),
			     0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(del(changed, "10.0.0.2@tcp"), 0);
	cr_assert_eq(sent.n, 0, "handlers were called inside");
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 12);
	cr_assert_eq(change_rc[0], -ENOENT);
	cluster_end(sim);
}
