/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes: who may call them, their limits, and changes by several threads. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include "tests/unit/lnet/cluster.h"
#include "lnd/simlnd/simlnd.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"

#define PORTAL 5
#define BITS   0x77

static struct seen seen, sent;
static uint8_t memory[LNET_MTU], source[LNET_MTU];

Test(node, close_nothing)
{
	lnet_close(NULL);
}

/* ---- which threads may call ---- */

static int note_thread(void *arg)
{
	*(pthread_t *)arg = pthread_self();
	return -77;
}

Test(node, call)
{
	struct ulnet_conf conf;
	pthread_t on[3];
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.cpts = 3;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(lnet_call(node, i, note_thread, &on[i]), -77);
	cr_assert_eq(lnet_call(node, 3, note_thread, &on[0]), -EINVAL);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert(!pthread_equal(on[i], pthread_self()));
		cr_assert(!pthread_equal(on[i], on[(i + 1) % 3]));
	}
	lnet_close(node);
}

struct across {
	struct lnet *node;
	struct ulnet_md_handle md;
	struct ulnet_me_handle me;
	int rc[4];
};

static int call_across(void *arg)
{
	struct across *a = arg;
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, NULL);
	struct ulnet_md_handle md;

	a->rc[0] = LNetMDUnlink(a->md);
	a->rc[1] = LNetMEUnlink(a->me);
	a->rc[2] = LNetMDAttach(a->me, &umd, LNET_UNLINK, &md);
	a->rc[3] = LNetPut(LNET_NID_ANY, a->md, LNET_NOACK_REQ, id_of("0@lo"),
			   PORTAL, BITS, 0, 0);
	return 0;
}

static int make_here(void *arg)
{
	struct across *a = arg;
	struct ulnet_md umd = md_of(source, 10, 0, NULL);

	a->rc[0] = LNetMDBind(a->node, &umd, LNET_UNLINK, &a->md);
	a->rc[1] = LNetMEAttach(a->node, PORTAL, ANY_ID, BITS, 0, LNET_UNLINK,
				LNET_INS_AFTER, &a->me);
	return 0;
}

/* The thread of one CPT may not use what another CPT owns; any thread that is
 * no CPT's may. */
Test(node, across_cpts)
{
	struct ulnet_conf conf;
	struct lnet *node;
	struct across a;

	lnet_conf_init(&conf);
	conf.cpts = 2;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	a.node = node;
	cr_assert_eq(lnet_call(node, 0, make_here, &a), 0);
	cr_assert_eq(a.rc[0], 0);
	cr_assert_eq(a.rc[1], 0);
	cr_assert_eq(lnet_call(node, 1, call_across, &a), 0);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(a.rc[i], -EXDEV, "call %u", i);
	cr_assert_eq(lnet_call(node, 0, call_across, &a), 0);
	cr_assert_eq(a.rc[0], 0);
	cr_assert_eq(a.rc[1], 0);
	cr_assert_eq(a.rc[2], -ENOENT);
	cr_assert_eq(a.rc[3], -ENOENT);
	cr_assert_eq(lnet_call(node, 0, make_here, &a), 0);
	call_across(&a);
	cr_assert_eq(a.rc[0], 0);
	cr_assert_eq(a.rc[1], 0);
	lnet_close(node);
}

/* Handles with made-up ids are not found. */
Test(node, made_up_handles)
{
	struct lnet_sim *sim = cluster_with(1, 3, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, NULL);

	/* So that the node's own handles are not the first ones any more. */
	lnet_sim_run_all(sim);
	for (unsigned int i = 0; i < 64; i++) {
		struct ulnet_md_handle md = { node, UINT64_C(1) << i };
		struct ulnet_me_handle me = { node, ~(UINT64_C(1) << i) };
		struct ulnet_eq_handle eq = { node, UINT64_C(0x101) << i };
		struct ulnet_event ev;
		struct ulnet_md_handle made;

		cr_assert_eq(LNetMDUnlink(md), -ENOENT);
		cr_assert_eq(LNetMEUnlink(me), -ENOENT);
		cr_assert_eq(LNetEQFree(eq), -ENOENT);
		cr_assert_eq(LNetEQGet(eq, &ev), -ENOENT);
		cr_assert_eq(
			LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS, 0),
			-ENOENT);
		cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &made),
			     -ENOENT);
	}
	cluster_end(sim);
}

/* Ids of one kind of object are not accepted for another kind. */
Test(node, handles_have_kinds)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, NULL);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md, wrong;
	struct ulnet_me_handle wrong_me;
	struct ulnet_eq_handle eq;

	cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, BITS, 0, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
	cr_assert_eq(LNetEQAlloc(node, 1, &eq), 0);
	wrong = (struct ulnet_md_handle){ node, me.cookie };
	cr_assert_eq(LNetMDUnlink(wrong), -ENOENT);
	wrong.cookie = eq.cookie;
	cr_assert_eq(LNetMDUnlink(wrong), -ENOENT);
	wrong_me = (struct ulnet_me_handle){ node, md.cookie };
	cr_assert_eq(LNetMEUnlink(wrong_me), -ENOENT);
	cr_assert_eq(LNetMEUnlink(me), 0);
	cluster_end(sim);
}

Test(node, cpt_of)
{
	struct lnet_sim *sim = cluster_with(1, 4, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	unsigned int hits[4] = { 0 };
	struct ulnet_nid any = LNET_NID_ANY;

	cr_assert_eq(lnet_cpt_of(node, &any), -1);
	for (unsigned int i = 0; i < 400; i++) {
		struct ulnet_nid nid = lnet_nid_make(LNET_NET(2, 0), i);
		int cpt = lnet_cpt_of(node, &nid);

		cr_assert(cpt >= 0 && cpt < 4);
		cr_assert_eq(lnet_cpt_of(node, &nid), cpt);
		hits[cpt]++;
	}
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_gt(hits[i], 40);
	cluster_end(sim);
}

static int put_here(void *arg)
{
	put_bytes(arg, nth_id(1), PORTAL, BITS, source, 10);
	return 0;
}

/* All calls follow the directory: which CPT a NID belongs to, and which primary
 * NID it has. */
Test(node, the_directory_is_followed)
{
	struct lnet_sim *sim = cluster_with(2, 4, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_nid nid = nth_id(1).nid, any = LNET_NID_ANY, primary;
	struct directory_entry e = { nid, nid, 0, false };
	struct directory_entry alias = { nth_id(100).nid, nid, 0, true };
	unsigned int was = (unsigned int)lnet_cpt_of(node, &nid);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_primary(node, &any, &primary), -EINVAL);
	cr_assert_eq(lnet_primary(node, &nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, &nid));
	e.cpt = (was + 1) % 4;
	cr_assert_eq(directory_change(&node->directory, &e, 1), 0);
	cr_assert_eq(lnet_cpt_of(node, &nid), (int)e.cpt);
	cr_assert_eq(directory_change(&node->directory, &alias, 1), 0);
	cr_assert_eq(lnet_primary(node, &alias.nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, &nid));
	/* A message to the NID is sent by the CPT that the directory names,
	 * even if it was on its way to another CPT. */
	cr_assert_eq(lnet_call(node, was, put_here, node), 0);
	e.cpt = (was + 2) % 4;
	cr_assert_eq(directory_change(&node->directory, &e, 1), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_peer_info(node, &nid, &info), 0);
	cr_assert_eq(info.cpt, e.cpt);
	cr_assert_eq(info.send_count, 1);
	cluster_end(sim);
}

/* ---- limits ---- */

Test(node, peers_are_forgotten)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulnet_peer_info info;
	struct ulnet_id first = nth_id(1), last = nth_id(5);
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, &seen);

	lnet_conf_init(&conf);
	conf.peers_max = 3;
	sim = cluster_with(6, 1, &conf);
	node = lnet_sim_node(sim, 0);
	for (unsigned int i = 1; i < 6; i++) {
		put_bytes(lnet_sim_node(sim, i), nth_id(0), PORTAL, BITS, "x",
			  1);
		lnet_sim_run_all(sim);
		if (i != 3)
			continue;
		/* The first peer is still known. The match entry is for the
		 * PUTs that follow. */
		cr_assert_eq(lnet_peer_info(node, &first.nid, &info), 0);
		post_md(node, PORTAL, BITS, &umd);
	}
	cr_assert_eq(counter(node, "peers"), 3);
	cr_assert_eq(counter(node, "drop_no_match"), 3);
	cr_assert_eq(lnet_peer_info(node, &first.nid, &info), -ENOENT);
	cr_assert_eq(lnet_peer_info(node, &last.nid, &info), 0);
	cluster_end(sim);
}

/* If all peers are in use a new one is refused. */
Test(node, too_many_peers)
{
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.peers_max = 2;
	sim = cluster_with(5, 1, &conf);
	node = lnet_sim_node(sim, 0);
	for (unsigned int i = 1; i < 4; i++)
		link_set(sim, 0, i, &stalled);
	for (unsigned int i = 1; i < 4; i++) {
		struct ulnet_md umd = md_of(source, 10, 0, &sent);

		umd.threshold = 1;
		cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd),
				     LNET_NOACK_REQ, nth_id(i), PORTAL, BITS, 0,
				     0),
			     0);
	}
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].status, -ENOBUFS);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
	put_bytes(lnet_sim_node(sim, 4), nth_id(0), PORTAL, BITS, "x", 1);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_no_memory"), 1);
	cluster_end(sim);
}

Test(node, too_many_messages)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.messages_max = 4;
	sim = cluster_with(3, 1, &conf);
	node = lnet_sim_node(sim, 0);
	cr_assert_eq(LNetSetLazyPortal(node, PORTAL), 0);
	for (unsigned int i = 0; i < 6; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS, "xx",
			  2);
	lnet_sim_run(sim, MSEC);
	/* A peer that is alone gets half of the messages and one; another one
	 * waits. */
	cr_assert_eq(counter(node, "parked"), 1);
	cr_assert_eq(counter(node, "drop_count"), 0);
	cr_assert_eq(counter(node, "msgs_alloc"), 4);
	/* There is no room for messages of other peers, not even to wait. */
	put_bytes(lnet_sim_node(sim, 2), nth_id(0), PORTAL, BITS, "xx", 2);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_no_memory"), 1);
	cr_assert_eq(counter(node, "drop_length"), 2);
	cluster_end(sim);
}

Test(node, stats)
{
	struct lnet_sim *sim = cluster(1);
	struct ulnet_stat stats[96];
	int n = lnet_stats(lnet_sim_node(sim, 0), NULL, 0);

	cr_assert_gt(n, 30);
	memset(stats, 0, sizeof(stats));
	cr_assert_eq(lnet_stats(lnet_sim_node(sim, 0), stats, 2), n);
	cr_assert_str_eq(stats[0].name, "msgs_alloc");
	cr_assert_not_null(stats[1].help);
	cr_assert_null(stats[2].name);
	cr_assert_eq(lnet_stats(lnet_sim_node(sim, 0), stats, 64), n);
	cr_assert_null(stats[n].name);
	cluster_end(sim);
}

/* How many objects named @name @node has. */
static uint64_t objects(struct lnet *node, const char *name)
{
	struct ulnet_object all[16];
	int n = lnet_objects(node, all, ARRAY_SIZE(all));

	cr_assert_gt(n, 0);
	for (int i = 0; i < n; i++)
		if (!strcmp(all[i].name, name))
			return all[i].now;
	cr_assert_fail("%s", name);
	return 0;
}

/* What is made is counted until it is gone, on whichever CPT it is. */
Test(node, objects)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_object none;
	struct ulnet_md_handle md[8];
	uint8_t bytes[8] = { 0 };
	uint64_t mds, mes;
	struct ulnet_md umd = md_of(bytes, sizeof(bytes), LNET_MD_OP_PUT, NULL);
	struct ulnet_me_handle me;
	struct ulnet_eq_handle eq;

	cr_assert_gt(lnet_objects(node, NULL, 0), 6);
	none.name = NULL;
	cr_assert_gt(lnet_objects(node, &none, 1), 6);
	cr_assert_str_eq(none.name, "mds");
	cr_assert_eq(objects(node, "peers"), 0);
	lnet_sim_run(sim, MSEC); /* the node has attached its own */
	mds = objects(node, "mds");
	mes = objects(node, "mes");
	for (unsigned int i = 0; i < ARRAY_SIZE(md); i++) {
		cr_assert_eq(LNetMEAttach(node, PORTAL, nth_id(1), BITS + i, 0,
					  LNET_RETAIN, LNET_INS_AFTER, &me),
			     0);
		cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md[i]), 0);
	}
	cr_assert_eq(objects(node, "mds"), mds + ARRAY_SIZE(md));
	cr_assert_eq(objects(node, "mes"), mes + ARRAY_SIZE(md));
	for (unsigned int i = 0; i < ARRAY_SIZE(md); i++)
		cr_assert_eq(LNetMDUnlink(md[i]), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(objects(node, "mds"), mds);
	put_bytes(node, nth_id(1), PORTAL, BITS, "xx", 2);
	cr_assert_eq(objects(node, "operations"), 1);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(objects(node, "operations"), 0);
	cr_assert_eq(objects(node, "messages"), 0);
	cr_assert_eq(objects(node, "peer_nis"), 1);
	cr_assert_eq(objects(node, "eqs"), 0);
	cr_assert_eq(LNetEQAlloc(node, 4, &eq), 0);
	cr_assert_eq(objects(node, "eqs"), 1);
	cr_assert_eq(LNetEQFree(eq), 0);
	cr_assert_eq(objects(node, "eqs"), 0);
	cluster_end(sim);
}

/* ---- a change in progress on another thread, which waits for this one ---- */

static void *add_ni(void *arg)
{
	struct ulnet_ni_conf conf = { .nid = nid_of("10.0.0.1@tcp") };

	return (void *)(intptr_t)lnet_ni_add(arg, &conf);
}

/* The thread that polls a node gets -EBUSY while another thread changes the
 * node: it would wait for itself. */
Test(node, owner_does_not_wait_for_a_change)
{
	struct ulnet_ni_conf conf = { .nid = nid_of("10.0.0.2@tcp") };
	struct node_params p = { .lnds = open_lnds, .lnd = &simlnd };
	struct sim_net *net;
	struct lnet *node;
	pthread_t thread;
	void *result;
	int rc;

	lnet_conf_init(&p.conf);
	p.conf.run = LNET_RUN_POLL;
	cr_assert_eq(sim_net_new(NULL, &net), 0);
	p.lnd_net = net;
	cr_assert_eq(node_open(&p, &node), 0);
	cr_assert_eq(pthread_create(&thread, NULL, add_ni, node), 0);
	/* until the other thread has begun */
	while (pthread_mutex_trylock(&whole_node(node)->control) == 0) {
		pthread_mutex_unlock(&whole_node(node)->control);
		sched_yield();
	}
	cr_assert_eq(lnet_ni_add(node, &conf), -EBUSY);
	while ((rc = lnet_ni_add(node, &conf)) == -EBUSY)
		cr_assert_eq(lnet_poll(node, 1000), 0);
	cr_assert_eq(rc, 0);
	pthread_join(thread, &result);
	cr_assert_eq((intptr_t)result, 0);
	lnet_close(node);
	sim_net_free(net);
}

/* When lnet_ni_del() returns to a thread that can wait, the NI is gone. */
Test(node, deleted_and_added_at_once)
{
	struct node_params p = { .lnds = open_lnds, .lnd = &simlnd };
	struct sim_net *net;
	struct lnet *node;

	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		lnet_conf_init(&p.conf);
		p.conf.cpts = cpts;
		cr_assert_eq(sim_net_new(NULL, &net), 0);
		p.lnd_net = net;
		cr_assert_eq(node_open(&p, &node), 0);
		for (unsigned int i = 0; i < 100; i++) {
			struct ulnet_ni_conf conf = { .nid = nid_of(
							      "10.0.0.1@tcp") };

			cr_assert_eq(lnet_ni_add(node, &conf), 0);
			put_bytes(node, nth_id(1), PORTAL, BITS, source, 10);
			cr_assert_eq(lnet_ni_del(node, &conf.nid), 0);
			cr_assert_eq(atomic_load(&net_node(node)->nis_alive),
				     1);
		}
		lnet_close(node);
		sim_net_free(net);
	}
}

/* ---- the names of nodes in the log ---- */

static int note_stamp(void *arg)
{
	lnet_log_stamp(arg, LNET_LOG_STAMP);
	return 0;
}

/* Asserts that @node's lines name the node @name; NULL: lines outside of all
 * turns. */
static void stamped(struct lnet *node, const char *name)
{
	char text[LNET_LOG_STAMP], want[LNET_LOG_STAMP];

	snprintf(want, sizeof(want), "Z %s ", name);
	cr_assert_eq(node ? lnet_call(node, 0, note_stamp, text)
			  : note_stamp(text),
		     0);
	cr_assert(strstr(text, want), "%s", text);
}

static struct lnet *caller_open(const char *nids)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.nids = nids;
	conf.accept = LNET_ACCEPT_NONE;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	return node;
}

/* Lines of a node's turns have its name, others only if it is alone. */
Test(node, log_names_the_node_that_says_it)
{
	struct lnet *a, *b;

	setenv("ULNET_LOG_STAMP", "1", 1);
	unsetenv("JOURNAL_STREAM");
	a = caller_open("127.0.0.1@tcp");
	stamped(a, "127.0.0.1@tcp");
	stamped(NULL, "127.0.0.1@tcp");
	b = caller_open("127.0.0.2@tcp");
	stamped(a, "127.0.0.1@tcp");
	stamped(b, "127.0.0.2@tcp");
	stamped(NULL, "-");
	lnet_close(b);
	stamped(NULL, "127.0.0.1@tcp");
	lnet_close(a);
	stamped(NULL, "-");
}

/* Simulated nodes share their loops. */
Test(node, log_does_not_guess_who_says_it)
{
	struct lnet_sim *sim;

	setenv("ULNET_LOG_STAMP", "1", 1);
	unsetenv("JOURNAL_STREAM");
	sim = cluster(2);
	stamped(lnet_sim_node(sim, 0), "-");
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	stamped(lnet_sim_node(sim, 0), "10.0.0.1@tcp");
	cluster_end(sim);
}
