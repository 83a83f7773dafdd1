/* SPDX-License-Identifier: BSD-3-Clause */
/* Lazy portals: PUTs that come before their buffer are kept for it. */
#include <criterion/criterion.h>
#include <errno.h>
#include "base/log.h"
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define SECOND (1000 * MSEC)

static struct seen seen, sent;
static uint8_t memory[65536], source[4096];

static struct lnet_sim *lazy_cluster(unsigned int n, unsigned int cpts,
				     const struct ulnet_conf *conf)
{
	struct lnet_sim *sim = cluster_with(n, cpts, conf);

	seen.n = 0;
	sent.n = 0;
	cr_assert_eq(LNetSetLazyPortal(lnet_sim_node(sim, 0), PORTAL), 0);
	return sim;
}

static void put_tagged(struct lnet_sim *sim, unsigned int from, uint64_t bits,
		       size_t length, uint64_t tag)
{
	struct ulnet_md umd = md_of(source, length, 0, &sent);

	umd.threshold = 2;
	umd.timeout = 100 * 1000000;
	cr_assert_eq(LNetPut(LNET_NID_ANY,
			     bind_md(lnet_sim_node(sim, from), &umd),
			     LNET_ACK_REQ, nth_id(0), PORTAL, bits, 0, tag),
		     0);
}

static struct ulnet_md buffer(size_t length, int threshold)
{
	struct ulnet_md umd = md_of(memory, length, LNET_MD_OP_PUT, &seen);

	umd.threshold = threshold;
	return umd;
}

Test(lazy, bad_portals)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);

	cr_assert_eq(LNetSetLazyPortal(node, 0), -EINVAL);
	cr_assert_eq(LNetClearLazyPortal(node, 0), -EINVAL);
	cr_assert_eq(LNetSetLazyPortal(node, LNET_PORTALS), -EINVAL);
	cr_assert_eq(LNetClearLazyPortal(node, LNET_PORTALS), -EINVAL);
	cr_assert_eq(LNetClearLazyPortal(node, 1), 0);
	cluster_end(sim);
}

/* Unexpected PUTs are kept, and delivered in the order in which they came, each
 * as soon as there is a buffer for it. */
static void held(unsigned int cpts)
{
	struct lnet_sim *sim = lazy_cluster(2, cpts, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = buffer(100, 1);

	for (unsigned int i = 0; i < 5; i++) {
		memset(source, (int)i + 1, 10);
		put_tagged(sim, 1, 1, 10, i);
		lnet_sim_run(sim, MSEC);
	}
	cr_assert_eq(counter(node, "drop_count"), 0);
	cr_assert_eq(sent.n, 5); /* their SENDs */
	cr_assert_eq(seen.n, 0);
	for (unsigned int i = 0; i < 5; i++) {
		post_md(node, PORTAL, 1, &umd);
		cr_assert_eq(seen.n, i, "called back too early");
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(seen.n, i + 1);
		cr_assert_eq(seen.ev[i].hdr_data, i);
		cr_assert(seen.ev[i].unlinked);
		cr_assert_eq(memory[0], i + 1);
		cr_assert_eq(memory[9], i + 1);
		cr_assert_eq(sent.n, 5 + i + 1); /* ... and ACKs */
	}
	cr_assert_eq(counter(node, "recv_count"), 5);
	cluster_end(sim);
}

Test(lazy, held_and_delivered)
{
	held(1);
	held(3);
	held(16);
}

Test(lazy, one_buffer_for_all)
{
	struct lnet_sim *sim = lazy_cluster(3, 1, NULL);
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

	for (unsigned int i = 0; i < 10; i++)
		put_tagged(sim, 1 + i % 2, 1, 10, i);
	lnet_sim_run(sim, MSEC);
	post_md(lnet_sim_node(sim, 0), PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 10);
	for (unsigned int i = 0; i < 10; i++)
		cr_assert_eq(seen.ev[i].offset, 10 * i);
	cluster_end(sim);
}

/* PUTs stay queued while buffers are posted that do not match them. */
Test(lazy, buffers_that_do_not_match)
{
	struct lnet_sim *sim = lazy_cluster(2, 1, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = buffer(100, 1);

	put_tagged(sim, 1, 1, 10, 11);
	put_tagged(sim, 1, 2, 10, 22);
	lnet_sim_run(sim, MSEC);
	post_md(node, PORTAL, 3, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 0);
	post_md(node, PORTAL, 2, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.ev[0].hdr_data, 22);
	/* A buffer that matches but is too small drops the PUT: no other buffer
	 * is searched. */
	umd = buffer(5, 1);
	post_md(node, PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_too_long"), 1);
	cluster_end(sim);
}

/* A GET is not kept, on a lazy portal either. */
Test(lazy, gets_are_dropped)
{
	struct lnet_sim *sim = lazy_cluster(2, 1, NULL);
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	umd.threshold = 2;
	umd.timeout = 1000000;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 1), &umd),
			     nth_id(0), PORTAL, 1, 0),
		     0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_no_match"), 1);
	cluster_end(sim);
}

Test(lazy, other_portals_are_not_lazy)
{
	struct lnet_sim *sim = lazy_cluster(2, 1, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);

	put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL + 1, 1, source, 10);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_no_match"), 1);
	cluster_end(sim);
}

Test(lazy, limit)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

	lnet_conf_init(&conf);
	conf.lazy_max = 5; /* three of them for one peer */
	sim = lazy_cluster(2, 1, &conf);
	node = lnet_sim_node(sim, 0);
	for (unsigned int i = 0; i < 5; i++)
		put_tagged(sim, 1, 1, 10, i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_lazy_full"), 2);
	cr_assert_eq(counter(node, "drop_length"), 20);
	post_md(node, PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 3);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(seen.ev[i].hdr_data, i);
	/* The places in the queue are free again. */
	for (unsigned int i = 0; i < 5; i++)
		put_tagged(sim, 1, 2, 10, i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_lazy_full"), 4);
	cluster_end(sim);
}

/* A PUT is kept for as long as the node's operations take, whatever the
 * sender's timeout. */
Test(lazy, age)
{
	struct lnet_sim *sim = lazy_cluster(2, 1, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

	put_tagged(sim, 1, 1, 10, 1);
	lnet_sim_run(sim, 30 * SECOND);
	put_tagged(sim, 1, 1, 10, 2);
	lnet_sim_run(sim, 19 * SECOND);
	cr_assert_eq(counter(node, "drop_count"), 0);
	lnet_sim_run(sim, 2 * SECOND);
	cr_assert_eq(counter(node, "drop_lazy_late"), 1);
	post_md(node, PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.ev[0].hdr_data, 2);
	cluster_end(sim);
}

/* Posting buffers that do not match does not extend the time of a PUT. */
Test(lazy, age_is_not_renewed)
{
	struct lnet_sim *sim = lazy_cluster(2, 1, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

	put_tagged(sim, 1, 1, 10, 1);
	for (unsigned int i = 0; i < 6; i++) {
		lnet_sim_run(sim, 10 * SECOND);
		post_md(node, PORTAL, 100 + i, &umd);
	}
	cr_assert_eq(counter(node, "drop_lazy_late"), 1);
	cluster_end(sim);
}

Test(lazy, clear)
{
	struct lnet_sim *sim = lazy_cluster(3, 4, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

	put_tagged(sim, 1, 1, 10, 1);
	put_tagged(sim, 2, 1, 10, 2);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(LNetClearLazyPortal(node, PORTAL), 0);
	cr_assert_eq(counter(node, "drop_count"), 2);
	cr_assert_eq(counter(node, "drop_no_match"), 2);
	cr_assert_eq(counter(node, "drop_length"), 20);
	post_md(node, PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 0);
	cluster_end(sim);
}

/* The portal is cleared while queued PUTs are on their way to a buffer: they
 * are delivered or dropped, but not lost. */
Test(lazy, clear_at_once_after_attach)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct lnet_sim *sim = lazy_cluster(3, cpts, NULL);
		struct lnet *node = lnet_sim_node(sim, 0);
		struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

		put_tagged(sim, 1, 1, 10, 1);
		put_tagged(sim, 2, 1, 10, 2);
		lnet_sim_run(sim, MSEC);
		post_md(node, PORTAL, 1, &umd);
		cr_assert_eq(LNetClearLazyPortal(node, PORTAL), 0);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(seen.n + counter(node, "drop_count"), 2);
		cluster_end(sim);
	}
}

Test(lazy, interface_goes)
{
	struct lnet_sim *sim = lazy_cluster(2, 1, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_id self = nth_id(0);

	put_tagged(sim, 1, 1, 10, 1);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_ni_del(node, &self.nid), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_closing"), 1);
	cluster_end(sim);
}

Test(lazy, node_goes)
{
	struct lnet_sim *sim = lazy_cluster(3, 4, NULL);

	for (unsigned int i = 0; i < 10; i++)
		put_tagged(sim, 1 + i % 2, i, 10, i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	cluster_end(sim);
}

/* A node sends to itself: it may reuse the sender's memory while the PUT waits
 * for a buffer. */
Test(lazy, loopback)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct lnet_sim *sim = lazy_cluster(1, cpts, NULL);
		struct lnet *node = lnet_sim_node(sim, 0);
		struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

		memset(source, 0x31, 10);
		put_tagged(sim, 0, 1, 10, 1);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(sent.n, 1);
		memset(source, 0, 10);
		post_md(node, PORTAL, 1, &umd);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(seen.n, 1);
		cr_assert_eq(memory[0], 0x31);
		cr_assert_eq(memory[9], 0x31);
		cr_assert_eq(sent.n, 2);
		cluster_end(sim);
	}
}

/* ---- order ---- */

static struct lnet *poster;

static void post_another(const struct ulnet_event *ev)
{
	struct ulnet_md umd = buffer(100, 1);

	see(ev);
	if (ev->match_bits == 99)
		post_md(poster, PORTAL, 1, &umd);
}

/* A PUT that comes when a buffer was just posted does not overtake those of the
 * same peer that are still queued for that buffer. */
Test(lazy, newcomers_do_not_overtake)
{
	struct lnet_sim *sim = lazy_cluster(2, 1, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md trigger = buffer(100, 1);
	struct ulnet_md umd = buffer(100, 1);

	poster = node;
	trigger.handler = post_another;
	post_md(node, PORTAL, 99, &trigger);
	put_tagged(sim, 1, 1, 10, 1);
	lnet_sim_run(sim, MSEC);
	/* Both arrive in one turn; the handler of the first one posts a buffer.
	 */
	put_tagged(sim, 1, 99, 10, 2);
	put_tagged(sim, 1, 1, 10, 3);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(seen.ev[0].hdr_data, 2);
	cr_assert_eq(seen.ev[1].hdr_data, 1, "overtaken by %d",
		     (int)seen.ev[1].hdr_data);
	post_md(node, PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 3);
	cr_assert_eq(seen.ev[2].hdr_data, 3);
	cluster_end(sim);
}

/* ---- shares ---- */

static void count_line(int level, const char *line, void *arg)
{
	(void)level;
	if (strstr(line, "share") && strstr(line, "10.0.0.2@tcp"))
		++*(unsigned int *)arg;
}

/* The peer that sends the most leaves room for others, and is named once in the
 * log (requirement I1). */
static void shares(unsigned int cpts)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);
	unsigned int lines = 0;

	lnet_conf_init(&conf);
	conf.lazy_max = 30;
	sim = lazy_cluster(3, cpts, &conf);
	node = lnet_sim_node(sim, 0);
	log_setup(LOG_WARN, count_line, &lines);
	for (unsigned int i = 0; i < 100; i++)
		put_tagged(sim, 1, 1, 10, i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_lazy_full"), 84);
	cr_assert_eq(lines, 1);
	for (unsigned int i = 0; i < 7; i++)
		put_tagged(sim, 2, 1, 10, 100 + i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_lazy_full"), 84);
	post_md(node, PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 16 + 7);
	log_setup(LOG_WARN, NULL, NULL);
	cluster_end(sim);
}

Test(lazy, shares)
{
	shares(1);
	shares(3);
}

/* ---- the way to a buffer ---- */

enum { HELD = 300, BUFFERS = 100 };

static uint64_t tries;

static struct lnet_sim *held_cluster(unsigned int cpts, uint64_t bits,
				     uint64_t step)
{
	struct lnet_sim *sim = lazy_cluster(3, cpts, NULL);

	for (unsigned int i = 0; i < HELD; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL,
			  bits + i * step, source, 10);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_count"), 0);
	tries = 0;
	return sim;
}

static void post_for(struct lnet_sim *sim, struct ulnet_id id, uint64_t bits,
		     uint64_t ignore)
{
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = buffer(10, 1);
	struct ulnet_md_handle md;
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(node, PORTAL, id, bits, ignore, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
	lnet_sim_run(sim, MSEC);
	tries = counter(node, "hold_tries");
}

/* Queued PUTs that do not match a buffer are not tried for it, however many
 * there are. */
Test(lazy, messages_that_do_not_match_are_not_tried)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = held_cluster(cpts, 1, 1);

		for (unsigned int i = 0; i < BUFFERS; i++)
			post_for(sim, ANY_ID, 1000 + i, 0);
		cr_assert_eq(tries, 0, "%lu tries", tries);
		post_for(sim, ANY_ID, 77, 0);
		cr_assert_eq(seen.n, 1);
		cr_assert_leq(tries, 2);
		cluster_end(sim);
	}
}

/* Nor are PUTs of another peer with the same bits, on a portal whose entries
 * name their peer, even if they came before any entry. */
Test(lazy, messages_of_other_peers_are_not_tried)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = held_cluster(cpts, 7, 0);

		for (unsigned int i = 0; i < BUFFERS; i++)
			post_for(sim, nth_id(2), 7, 0);
		cr_assert_eq(tries, 0, "%lu tries", tries);
		post_for(sim, nth_id(1), 7, 0);
		cr_assert_eq(seen.n, 1);
		cr_assert_leq(tries, 2);
		cluster_end(sim);
	}
}

/* Many equal buffers ignore bits: each queued PUT is tried once for all of
 * them. */
Test(lazy, messages_are_tried_once_by_buffers_that_ignore_bits)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = held_cluster(cpts, 1, 1);

		for (unsigned int i = 0; i < BUFFERS; i++)
			post_for(sim, ANY_ID, UINT64_C(1) << 40, 0xffff);
		cr_assert_leq(tries, HELD + BUFFERS, "%lu tries", tries);
		cr_assert_eq(seen.n, 0);
		/* PUTs that come later are found behind those that were tried,
		 * ... */
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL,
			  UINT64_C(1) << 41, source, 10);
		lnet_sim_run(sim, MSEC);
		for (unsigned int i = 0; i < BUFFERS; i++)
			post_for(sim, ANY_ID, UINT64_C(1) << 41, 0xff);
		cr_assert_eq(seen.n, 1);
		/* ... and those are still found by buffers that match them. */
		post_for(sim, ANY_ID, 0, 0xff);
		cr_assert_eq(seen.n, 2);
		cr_assert_leq(seen.ev[1].match_bits, 0xff);
		cluster_end(sim);
	}
}

/* A buffer gets as many PUTs as it has room for, whichever CPTs hold them. */
Test(lazy, a_buffer_fetches_no_more_than_it_takes)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct lnet_sim *sim = held_cluster(cpts, 7, 0);
		struct lnet *node = lnet_sim_node(sim, 0);
		struct ulnet_md umd = buffer(10 * 20, LNET_MD_THRESH_INF);

		for (unsigned int i = 0; i < 50; i++)
			put_bytes(lnet_sim_node(sim, 2), nth_id(0), PORTAL, 7,
				  source, 10);
		umd.options |= LNET_MD_MAX_SIZE;
		umd.max_size = 10;
		for (unsigned int i = 1; i <= (HELD + 50) / 20; i++) {
			post_md(node, PORTAL, 7, &umd);
			lnet_sim_run(sim, MSEC);
			cr_assert_eq(seen.n, 20 * i, "%u CPTs: %u of %u", cpts,
				     seen.n, 20 * i);
		}
		cr_assert_leq(counter(node, "hold_tries"), 2 * (HELD + 50));
		cr_assert_eq(counter(node, "drop_count"), 0);
		cluster_end(sim);
	}
}

/* Equal buffers that ignore bits get many queued PUTs, each with one step along
 * the queue: none is stepped over again for those behind it. */
Test(lazy, messages_for_buffers_that_ignore_bits_take_a_step_each)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = held_cluster(cpts, 1, 1);
		struct lnet *node = lnet_sim_node(sim, 0);
		struct ulnet_md umd = buffer(10 * 20, LNET_MD_THRESH_INF);
		struct ulnet_md_handle md;
		struct ulnet_me_handle me;

		umd.options |= LNET_MD_MAX_SIZE;
		umd.max_size = 10;
		for (unsigned int i = 1; i <= HELD / 20; i++) {
			cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, 0,
						  ~UINT64_C(0), LNET_UNLINK,
						  LNET_INS_AFTER, &me),
				     0);
			cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md),
				     0);
			lnet_sim_run(sim, MSEC);
			cr_assert_eq(seen.n, 20 * i);
		}
		tries = counter(node, "hold_tries");
		cr_assert_leq(tries, HELD + HELD / 20, "%lu tries", tries);
		cluster_end(sim);
	}
}

/* Portal 0 is lazy for pushes only: a PUT that can never match is dropped. */
Test(lazy, nothing_else_on_portal_0)
{
	struct lnet_sim *sim = cluster(2);

	put_bytes(lnet_sim_node(sim, 1), nth_id(0), 0, 1, source, 16);
	lnet_sim_run(sim, 1000000);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_no_match"), 1);
	cluster_end(sim);
}

/* ---- more senders than there is room for ---- */

#define CROWD 12

static struct lnet_sim *crowded(unsigned int cpts)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;

	lnet_conf_init(&conf);
	conf.lazy_max = 4;
	sim = lazy_cluster(CROWD, cpts, &conf);
	for (unsigned int i = 1; i < CROWD; i++)
		put_tagged(sim, i, 1, 10, i);
	lnet_sim_run(sim, MSEC);
	return sim;
}

/* When many peers come at once nobody's first message is dropped: those for
 * which there is no room stay in their connections (requirement I1). */
static void newcomers_wait(unsigned int cpts)
{
	struct lnet_sim *sim = crowded(cpts);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

	cr_assert_gt(counter(node, "stood"), 0);
	cr_assert_eq(counter(node, "drop_count"), 0);
	cr_assert_eq(lnet_sim_check(sim), 0);
	lnet_sim_run(sim, SECOND);
	cr_assert_eq(counter(node, "drop_count"), 0);
	cr_assert_eq(lnet_sim_check(sim), 0);
	post_md(node, PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, CROWD - 1);
	for (unsigned int i = 1; i < CROWD; i++)
		put_tagged(sim, i, 1, 10, i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 2 * (CROWD - 1));
	cluster_end(sim);
}

Test(lazy, newcomers_wait)
{
	newcomers_wait(1);
	newcomers_wait(3);
}

/* An unread message is read when there is room, and those behind it in its
 * connection follow. */
Test(lazy, newcomers_are_read_when_there_is_room)
{
	struct lnet_sim *sim = crowded(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md two = buffer(1000, 2);

	cr_assert_eq(counter(node, "stood"), CROWD - 1 - 4);
	put_bytes(lnet_sim_node(sim, 5), nth_id(0), PORTAL + 1, 1, source, 16);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_no_match"), 0);
	post_md(node, PORTAL, 1, &two);
	lnet_sim_run(sim, SECOND);
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(counter(node, "drop_no_match"), 1);
	cr_assert_eq(counter(node, "drop_lazy_full"), 0);
	cluster_end(sim);
}

/* Unread messages stay no longer than queued ones, and not beyond the node's
 * end. */
Test(lazy, newcomers_do_not_wait_for_ever)
{
	struct lnet_sim *sim = crowded(1);
	struct lnet *node = lnet_sim_node(sim, 0);

	lnet_sim_run(sim, 60 * SECOND);
	cr_assert_eq(counter(node, "drop_lazy_late"), CROWD - 1);
	cluster_end(sim);
	cluster_end(crowded(1));
}

/* If the node waits for an answer that may be behind the unread message, that
 * message is dropped. */
Test(lazy, answers_do_not_wait_behind_newcomers)
{
	struct lnet_sim *sim = crowded(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct seen asked = { 0 };
	struct ulnet_md to_ask = md_of(source, 10, 0, &asked);
	struct ulnet_md umd = buffer(1000, LNET_MD_THRESH_INF);

	to_ask.threshold = 2;
	umd.user_ptr = &seen;
	post_md(lnet_sim_node(sim, CROWD - 1), PORTAL, 1, &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &to_ask), LNET_ACK_REQ,
			     nth_id(CROWD - 1), PORTAL, 1, 0, 0),
		     0);
	lnet_sim_run(sim, SECOND);
	seen_end(&asked, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	cr_assert_eq(counter(node, "drop_lazy_full"), 1);
	cluster_end(sim);
}

/* Queued payload is bounded, in addition to the number of messages. */
Test(lazy, bytes_are_bounded)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;

	lnet_conf_init(&conf);
	conf.lazy_bytes_max = 2500;
	sim = lazy_cluster(2, 1, &conf);
	for (unsigned int i = 0; i < 3; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, 1, source,
			  1000);
	lnet_sim_run(sim, 1000000);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_lazy_full"), 1);
	cluster_end(sim);
}
