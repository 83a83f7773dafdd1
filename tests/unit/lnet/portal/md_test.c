/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory descriptors: which are valid, where their bytes go, and when they end.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x1234

static struct seen seen, sent;
static uint8_t memory[LNET_MTU + 4096], source[LNET_MTU + 4096];

static void fill(void *bytes, size_t len)
{
	uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
}

/* Node 1 PUTs @len bytes of source to node 0, with an ACK. */
static struct ulnet_md_handle put_at(struct lnet_sim *sim, size_t len,
				     uint32_t offset)
{
	struct ulnet_md umd = md_of(source, len, 0, &sent);
	struct ulnet_md_handle md;

	umd.threshold = 2;
	umd.timeout = 1000000;
	md = bind_md(lnet_sim_node(sim, 1), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(0), PORTAL,
			     BITS, offset, 0),
		     0);
	return md;
}

static void get_at(struct lnet_sim *sim, void *sink, size_t len,
		   uint32_t offset)
{
	struct ulnet_md umd = md_of(sink, len, 0, &sent);

	umd.threshold = 2;
	umd.timeout = 1000000;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 1), &umd),
			     nth_id(0), PORTAL, BITS, offset),
		     0);
}

/* ---- bad ones ---- */

static struct iovec iov_ok[2] = { { memory, 10 }, { memory + 20, 10 } };
static struct iovec iov_null[2] = { { memory, 10 }, { NULL, 10 } };
static struct iovec iov_empty[2] = { { memory, 10 }, { NULL, 0 } };
static struct iovec iov_many[LNET_MAX_IOV + 1];
static struct iovec iov_huge[2] = { { memory, UINT32_MAX }, { memory, 1 } };
static struct iovec iov_wide[1] = { { memory, (size_t)1 << 32 } };

/* clang-format off */
static const struct {
	const char *what;
	struct ulnet_md md;
	int bind, attach; /* results; for attach, OP_PUT is added */
} bad[] = {
	{ "plain", { memory, 64, 1, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 }, 0, 0 },
	{ "empty", { NULL, 0, 1, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 }, 0, 0 },
	{ "no memory", { NULL, 1, 1, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "threshold 0", { memory, 64, 0, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 },
	  0, 0 },
	{ "unlimited", { memory, 64, -1, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 }, 0,
	  0 },
	{ "threshold -2", { memory, 64, -2, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "1 MiB", { memory, LNET_MTU, 1, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 },
	  0, 0 },
	{ "more than 1 MiB",
	  { memory, LNET_MTU + 1, 1, 0, 0, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, 0 },
	{ "unknown option",
	  { memory, 64, 1, 0, 0x10000, NULL, NULL, { NULL, 0 }, 0, 0 }, -EINVAL,
	  -EINVAL },
	{ "retired option",
	  { memory, 64, 1, 0, 0x0040, NULL, NULL, { NULL, 0 }, 0, 0 }, -EINVAL,
	  -EINVAL },
	{ "largest max_size",
	  { memory, 64, 1, 64, LNET_MD_MAX_SIZE, NULL, NULL, { NULL, 0 }, 0, 0 },
	  0, 0 },
	{ "max_size above the length",
	  { memory, 64, 1, 65, LNET_MD_MAX_SIZE, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "max_size that does not count",
	  { memory, 64, 1, 65, 0, NULL, NULL, { NULL, 0 }, 0, 0 }, 0, 0 },
	{ "fragments",
	  { iov_ok, 2, 1, 0, LNET_MD_IOVEC, NULL, NULL, { NULL, 0 }, 0, 0 }, 0,
	  0 },
	{ "no fragments",
	  { iov_ok, 0, 1, 0, LNET_MD_IOVEC, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "fragments nowhere",
	  { NULL, 2, 1, 0, LNET_MD_IOVEC, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "256 fragments",
	  { iov_many, LNET_MAX_IOV, 1, 0, LNET_MD_IOVEC, NULL, NULL,
	    { NULL, 0 }, 0, 0 }, 0, 0 },
	{ "257 fragments",
	  { iov_many, LNET_MAX_IOV + 1, 1, 0, LNET_MD_IOVEC, NULL, NULL,
	    { NULL, 0 }, 0, 0 }, -EINVAL, -EINVAL },
	{ "a fragment nowhere",
	  { iov_null, 2, 1, 0, LNET_MD_IOVEC, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "an empty fragment",
	  { iov_empty, 2, 1, 0, LNET_MD_IOVEC, NULL, NULL, { NULL, 0 }, 0, 0 }, 0,
	  0 },
	{ "fragments of more than 4 GiB",
	  { iov_huge, 2, 1, 0, LNET_MD_IOVEC, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "a fragment of more than 4 GiB",
	  { iov_wide, 1, 1, 0, LNET_MD_IOVEC, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, -EINVAL },
	{ "max_size of fragments",
	  { iov_ok, 2, 1, 20, LNET_MD_IOVEC | LNET_MD_MAX_SIZE, NULL, NULL,
	    { NULL, 0 }, 0, 0 }, 0, 0 },
	{ "max_size above that of fragments",
	  { iov_ok, 2, 1, 21, LNET_MD_IOVEC | LNET_MD_MAX_SIZE, NULL, NULL,
	    { NULL, 0 }, 0, 0 }, -EINVAL, -EINVAL },
	{ "at a NUMA node",
	  { memory, 64, 1, 0, LNET_MD_NUMA_NODE, NULL, NULL, { NULL, 0 }, 0,
	    3 }, 0, 0 },
	{ "at no NUMA node",
	  { memory, 64, 1, 0, LNET_MD_NUMA_NODE, NULL, NULL, { NULL, 0 }, 0,
	    -1 }, -EINVAL, -EINVAL },
	{ "a NUMA node that does not count",
	  { memory, 64, 1, 0, 0, NULL, NULL, { NULL, 0 }, 0, -1 }, 0, 0 },
	{ "an MD to be attached",
	  { memory, 64, 1, 0, LNET_MD_OP_PUT, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, 0 },
	{ "an MD to be attached, too",
	  { memory, 64, 1, 0, LNET_MD_OP_GET, NULL, NULL, { NULL, 0 }, 0, 0 },
	  -EINVAL, 0 },
};
/* clang-format on */

Test(md, what_is_one)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);

	for (unsigned int i = 0; i < ARRAY_SIZE(iov_many); i++)
		iov_many[i] = (struct iovec){ memory + i, 1 };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ulnet_md umd = bad[i].md;
		struct ulnet_md_handle md;
		struct ulnet_me_handle me;

		cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &md),
			     bad[i].bind, "%s, bound", bad[i].what);
		umd.options |= LNET_MD_OP_PUT;
		cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, i, 0,
					  LNET_UNLINK, LNET_INS_AFTER, &me),
			     0);
		cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md),
			     bad[i].attach, "%s, attached", bad[i].what);
	}
	cluster_end(sim);
}

Test(md, handler_or_queue)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 64, 0, &seen);
	struct ulnet_md_handle md;

	cr_assert_eq(LNetEQAlloc(node, 8, &umd.eq), 0);
	cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &md), -EINVAL);
	umd.handler = NULL;
	/* The queue is another node's. */
	cr_assert_eq(LNetMDBind(lnet_sim_node(sim, 1), &umd, LNET_UNLINK, &md),
		     -EINVAL);
	cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &md), 0);
	cr_assert_eq(LNetEQFree(umd.eq), -EBUSY);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(LNetEQFree(umd.eq), 0);
	cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &md), -ENOENT);
	cluster_end(sim);
}

/* An MD that is attached cannot send, nor can one with no operations left. */
Test(md, not_for_sending)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(memory, 64, LNET_MD_OP_PUT, NULL);
	struct ulnet_md_handle attached = post_md(node, PORTAL, 1, &umd);
	struct ulnet_md_handle idle, none = { node, 0 }, nowhere = { NULL, 7 };

	umd.options = 0;
	umd.threshold = 0;
	idle = bind_md(node, &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, attached, LNET_NOACK_REQ, nth_id(0),
			     PORTAL, 1, 0, 0),
		     -ENOENT);
	cr_assert_eq(LNetGet(LNET_NID_ANY, attached, nth_id(0), PORTAL, 1, 0),
		     -ENOENT);
	cr_assert_eq(LNetPut(LNET_NID_ANY, idle, LNET_NOACK_REQ, nth_id(0),
			     PORTAL, 1, 0, 0),
		     -ENOENT);
	cr_assert_eq(LNetGet(LNET_NID_ANY, none, nth_id(0), PORTAL, 1, 0),
		     -ENOENT);
	cr_assert_eq(LNetGet(LNET_NID_ANY, nowhere, nth_id(0), PORTAL, 1, 0),
		     -ENOENT);
	cr_assert_eq(LNetMDUnlink(none), -ENOENT);
	cr_assert_eq(LNetMDUnlink(nowhere), -ENOENT);
	cluster_end(sim);
}

/* ---- where the bytes go, and how many ---- */

/* clang-format off */
static const struct {
	const char *what;
	uint32_t options, length, max_size;
	uint32_t put, offset;   /* of the message */
	int mlength;            /* -1: dropped */
	uint32_t at;            /* offset in the event */
} fits[] = {
	{ "fits", 0, 100, 0, 40, 0, 40, 0 },
	{ "fits exactly", 0, 100, 0, 100, 0, 100, 0 },
	{ "nothing", 0, 100, 0, 0, 0, 0, 0 },
	{ "one too many", 0, 100, 0, 101, 0, -1, 0 },
	{ "one too many, cut", LNET_MD_TRUNCATE, 100, 0, 101, 0, 100, 0 },
	{ "the sender's offset does not count", 0, 100, 0, 100, 60, 100, 0 },
	{ "it does", LNET_MD_MANAGE_REMOTE, 100, 0, 40, 60, 40, 60 },
	{ "behind the end", LNET_MD_MANAGE_REMOTE, 100, 0, 41, 60, -1, 0 },
	{ "behind the end, cut", LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE, 100,
	  0, 50, 60, 40, 60 },
	{ "beyond", LNET_MD_MANAGE_REMOTE, 100, 0, 1, 101, -1, 0 },
	{ "beyond, cut", LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE, 100, 0, 9,
	  200, 0, 200 },
	{ "far beyond, cut", LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE, 100, 0,
	  9, UINT32_MAX, 0, UINT32_MAX },
	{ "nothing, beyond", LNET_MD_MANAGE_REMOTE, 100, 0, 0, UINT32_MAX, 0,
	  UINT32_MAX },
	{ "max_size", LNET_MD_MAX_SIZE, 100, 30, 30, 0, 30, 0 },
	{ "above max_size", LNET_MD_MAX_SIZE, 100, 30, 31, 0, -1, 0 },
	{ "above max_size, cut", LNET_MD_MAX_SIZE | LNET_MD_TRUNCATE, 100, 30,
	  31, 0, 30, 0 },
	{ "max_size does not lead out of the buffer",
	  LNET_MD_MAX_SIZE | LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE, 100, 30,
	  30, 90, 10, 90 },
};
/* clang-format on */

Test(md, room_for_a_put)
{
	fill(source, sizeof(source));
	for (size_t i = 0; i < ARRAY_SIZE(fits); i++) {
		struct lnet_sim *sim = cluster(2);
		struct lnet *node = lnet_sim_node(sim, 0);
		struct ulnet_md umd =
			md_of(memory, fits[i].length,
			      LNET_MD_OP_PUT | fits[i].options, &seen);

		umd.max_size = fits[i].max_size;
		seen.n = 0;
		sent.n = 0;
		memset(memory, 0xee, 300);
		post_md(node, PORTAL, BITS, &umd);
		put_at(sim, fits[i].put, fits[i].offset);
		lnet_sim_run_all(sim);
		if (fits[i].mlength < 0) {
			cr_assert_eq(seen.n, 0, "%s", fits[i].what);
			cr_assert_eq(counter(node, "drop_too_long"), 1, "%s",
				     fits[i].what);
			cr_assert_eq(counter(node, "drop_length"), fits[i].put);
			cr_assert_eq(memory[0], 0xee);
			/* The sender gets no ACK. */
			seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_UNLINK,
				   0);
			cluster_end(sim);
			continue;
		}
		cr_assert_eq(seen.n, 1, "%s", fits[i].what);
		cr_assert_eq(seen.ev[0].rlength, fits[i].put, "%s",
			     fits[i].what);
		cr_assert_eq(seen.ev[0].mlength, (uint32_t)fits[i].mlength,
			     "%s", fits[i].what);
		cr_assert_eq(seen.ev[0].offset, fits[i].at, "%s: at %u",
			     fits[i].what, seen.ev[0].offset);
		if (fits[i].mlength) {
			cr_assert_eq(memcmp(memory + fits[i].at, source,
					    (size_t)fits[i].mlength),
				     0, "%s", fits[i].what);
			cr_assert_eq(memory[(int)fits[i].at + fits[i].mlength],
				     0xee, "%s", fits[i].what);
		}
		seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
		cr_assert_eq(sent.ev[1].mlength, (uint32_t)fits[i].mlength);
		cluster_end(sim);
	}
}

Test(md, room_for_a_get)
{
	fill(memory, sizeof(memory));
	for (size_t i = 0; i < ARRAY_SIZE(fits); i++) {
		struct lnet_sim *sim = cluster(2);
		struct lnet *node = lnet_sim_node(sim, 0);
		struct ulnet_md umd =
			md_of(memory, fits[i].length,
			      LNET_MD_OP_GET | fits[i].options, &seen);

		umd.max_size = fits[i].max_size;
		seen.n = 0;
		sent.n = 0;
		memset(source, 0xee, 300);
		post_md(node, PORTAL, BITS, &umd);
		get_at(sim, source, fits[i].put, fits[i].offset);
		lnet_sim_run_all(sim);
		cr_assert_eq(seen.n, fits[i].mlength >= 0, "%s", fits[i].what);
		if (fits[i].mlength < 0) {
			seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_UNLINK,
				   0);
			cluster_end(sim);
			continue;
		}
		cr_assert_eq(seen.ev[0].mlength, (uint32_t)fits[i].mlength);
		cr_assert_eq(seen.ev[0].rlength, fits[i].put);
		seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_REPLY, 0);
		cr_assert_eq(sent.ev[1].mlength, (uint32_t)fits[i].mlength,
			     "%s", fits[i].what);
		if (fits[i].mlength)
			cr_assert_eq(memcmp(source, memory + fits[i].at,
					    (size_t)fits[i].mlength),
				     0, "%s", fits[i].what);
		cr_assert_eq(source[fits[i].mlength], 0xee, "%s", fits[i].what);
		cluster_end(sim);
	}
}

/* Without MANAGE_REMOTE each message is stored behind the one before. */
Test(md, local_offset)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);

	fill(source, 100);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	put_at(sim, 30, 77);
	put_at(sim, 0, 77);
	put_at(sim, 50, 77);
	put_at(sim, 21, 77); /* does not fit */
	put_at(sim, 20, 77); /* fits */
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 4);
	cr_assert_eq(seen.ev[0].offset, 0);
	cr_assert_eq(seen.ev[1].offset, 30);
	cr_assert_eq(seen.ev[2].offset, 30);
	cr_assert_eq(seen.ev[3].offset, 80);
	cr_assert_eq(memcmp(memory, source, 30), 0);
	cr_assert_eq(memcmp(memory + 30, source, 50), 0);
	cr_assert_eq(memcmp(memory + 80, source, 20), 0);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_too_long"), 1);
	cluster_end(sim);
}

/* Many requests share one buffer: it takes them until one more of the largest
 * size might not fit, and is unlinked then. */
Test(md, packing)
{
	enum { N = 50, SIZE = 24, MAX = 64, ROOM = 1000 };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd =
		md_of(memory, ROOM, LNET_MD_OP_PUT | LNET_MD_MAX_SIZE, &seen);
	unsigned int fit = (ROOM - MAX) / SIZE + 1;
	struct ulnet_md_handle md;

	umd.max_size = MAX;
	md = post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	for (unsigned int i = 0; i < N; i++) {
		memset(source, (int)i, SIZE);
		put_at(sim, SIZE, 0);
		lnet_sim_run(sim, MSEC);
	}
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, fit);
	for (unsigned int i = 0; i < fit; i++) {
		cr_assert_eq(seen.ev[i].offset, i * SIZE);
		cr_assert_eq(memory[i * SIZE], i);
		cr_assert_eq(memory[i * SIZE + SIZE - 1], i);
		cr_assert_eq(seen.ev[i].unlinked, i == fit - 1);
	}
	cr_assert_eq(LNetMDUnlink(md), -ENOENT);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_no_match"), N - fit);
	cluster_end(sim);
}

/* A buffer is used up while a message is still being stored in it: the event of
 * that one is the last. */
Test(md, packing_while_receiving)
{
	const struct ulnet_sim_link slow = { .bandwidth = 100000 };
	struct lnet_sim *sim = cluster(4);
	struct ulnet_md umd =
		md_of(memory, 1000, LNET_MD_OP_PUT | LNET_MD_MAX_SIZE, &seen);

	umd.max_size = 500;
	cluster_links(sim, &slow);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	/* The large PUT is matched first, and stored last. */
	put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS, source, 500);
	lnet_sim_run(sim, 2 * MSEC); /* of 5 */
	put_bytes(lnet_sim_node(sim, 2), nth_id(0), PORTAL, BITS, source, 10);
	put_bytes(lnet_sim_node(sim, 3), nth_id(0), PORTAL, BITS, source, 10);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(seen.ev[0].mlength, 10);
	cr_assert(!seen.ev[0].unlinked);
	cr_assert_eq(seen.ev[1].mlength, 500);
	cr_assert(seen.ev[1].unlinked);
	cr_assert_eq(seen.ev[1].status, 0);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_no_match"), 1);
	cluster_end(sim);
}

Test(md, threshold)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(
		memory, 100,
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, &seen);

	umd.threshold = 3;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	put_at(sim, 1, 0);
	get_at(sim, source, 1, 0);
	put_at(sim, 1, 0);
	put_at(sim, 1, 0);
	lnet_sim_run_all(sim);
	seen_types(&seen, LNET_EVENT_PUT, LNET_EVENT_PUT, LNET_EVENT_GET, 0);
	cr_assert(!seen.ev[0].unlinked);
	cr_assert(!seen.ev[1].unlinked);
	cr_assert(seen.ev[2].unlinked);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "drop_no_match"), 1);
	cluster_end(sim);
}

/* With RETAIN the MD is used up, but stays until it is unlinked. */
Test(md, used_up_and_retained)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	umd.threshold = 1;
	cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, BITS, 0, LNET_RETAIN,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
	put_at(sim, 1, 0);
	put_at(sim, 1, 0);
	lnet_sim_run_all(sim);
	seen_types(&seen, LNET_EVENT_PUT, 0);
	cr_assert(!seen.ev[0].unlinked);
	cr_assert_eq(counter(node, "drop_no_match"), 1);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run_all(sim);
	seen_types(&seen, LNET_EVENT_PUT, LNET_EVENT_UNLINK, 0);
	cr_assert(seen.ev[1].unlinked);
	cr_assert_eq(LNetMEUnlink(me), 0);
	cluster_end(sim);
}

Test(md, ack_disable)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd =
		md_of(memory, 100, LNET_MD_OP_PUT | LNET_MD_ACK_DISABLE, &seen);

	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	put_at(sim, 1, 0);
	lnet_sim_run_all(sim);
	seen_types(&seen, LNET_EVENT_PUT, 0);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_UNLINK, 0);
	cr_assert_eq(counter(lnet_sim_node(sim, 0), "send_count"), 0);
	cluster_end(sim);
}

/* ---- fragments ---- */

/* Makes @n fragments of uneven sizes, with gaps between them, of @total bytes
 * together. */
static void make_iov(struct iovec *iov, unsigned int n, uint8_t *base,
		     size_t total)
{
	size_t done = 0;

	for (unsigned int i = 0; i < n; i++) {
		size_t len = i == n - 1 ? total - done
					: total / n + (i % 2 ? 9 : 0) -
						  (i % 2 ? 0 : 9);

		iov[i] = (struct iovec){ base + done + 8 * i, len };
		done += len;
	}
}

static void gather(uint8_t *out, const struct iovec *iov, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		memcpy(out, iov[i].iov_base, iov[i].iov_len);
		out += iov[i].iov_len;
	}
}

static uint8_t from[LNET_MTU], to[LNET_MTU];

static void megabyte(unsigned int nsrc, unsigned int ndst, bool get)
{
	struct iovec src[LNET_MAX_IOV], dst[LNET_MAX_IOV], keep[LNET_MAX_IOV];
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md passive =
		md_of(dst, ndst,
		      LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_IOVEC, &seen);
	struct ulnet_md active = md_of(src, nsrc, LNET_MD_IOVEC, &sent);
	struct ulnet_md_handle md;
	int rc;

	seen.n = 0;
	sent.n = 0;
	active.threshold = 2;
	fill(get ? memory : source, sizeof(source));
	memset(get ? source : memory, 0, sizeof(memory));
	make_iov(src, nsrc, source, LNET_MTU);
	make_iov(dst, ndst, memory, LNET_MTU);
	gather(from, get ? dst : src, get ? ndst : nsrc);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &passive);
	md = bind_md(lnet_sim_node(sim, 1), &active);
	if (get)
		rc = LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS, 0);
	else
		rc = LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(0), PORTAL,
			     BITS, 0, 0);
	cr_assert_eq(rc, 0);
	/* LNet has copied the arrays. */
	memcpy(keep, get ? src : dst, sizeof(keep));
	memset(src, 0, sizeof(src));
	memset(dst, 0, sizeof(dst));
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.ev[0].mlength, LNET_MTU);
	cr_assert_eq(sent.n, 2);
	cr_assert_eq(sent.ev[1].mlength, LNET_MTU);
	cr_assert_eq(sent.ev[1].outcome, LNET_OUTCOME_DELIVERED);
	gather(to, keep, get ? nsrc : ndst);
	cr_assert_eq(memcmp(from, to, LNET_MTU), 0, "%u to %u", nsrc, ndst);
	cluster_end(sim);
}

Test(md, one_megabyte)
{
	static const unsigned int counts[] = { 1, 2, 3, 255, LNET_MAX_IOV };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		megabyte(counts[i], LNET_MAX_IOV, i % 2);
		megabyte(LNET_MAX_IOV, counts[i], i % 2 == 0);
	}
	megabyte(LNET_MAX_IOV, LNET_MAX_IOV, true);
	megabyte(LNET_MAX_IOV, LNET_MAX_IOV, false);
}

/* Offsets lead to the right fragment; empty fragments do no harm. */
Test(md, offset_in_fragments)
{
	struct iovec iov[] = { { memory, 10 },
			       { memory + 50, 0 },
			       { memory + 100, 10 },
			       { NULL, 0 },
			       { memory + 200, 10 } };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(
		iov, ARRAY_SIZE(iov),
		LNET_MD_OP_PUT | LNET_MD_IOVEC | LNET_MD_MANAGE_REMOTE, &seen);

	fill(source, 30);
	memset(memory, 0xee, 300);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	put_at(sim, 4, 8);
	put_at(sim, 10, 20);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(memcmp(memory + 8, source, 2), 0);
	cr_assert_eq(memcmp(memory + 100, source + 2, 2), 0);
	cr_assert_eq(memcmp(memory + 200, source, 10), 0);
	cr_assert_eq(memory[7], 0xee);
	cr_assert_eq(memory[10], 0xee);
	cr_assert_eq(memory[50], 0xee);
	cr_assert_eq(memory[102], 0xee);
	cr_assert_eq(memory[210], 0xee);
	cluster_end(sim);
}

/* The user may free the array of fragments at once, however long it is. */
Test(md, fragments_are_copied)
{
	for (unsigned int n = 1; n <= 6; n++) {
		struct iovec iov[6];
		struct lnet_sim *sim = cluster(2);
		struct ulnet_md umd =
			md_of(iov, n, LNET_MD_OP_PUT | LNET_MD_IOVEC, &seen);

		for (unsigned int i = 0; i < n; i++)
			iov[i] = (struct iovec){ memory + 50 * i, 10 };
		fill(source, 60);
		memset(memory, 0xee, 300);
		post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
		memset(iov, 0, sizeof(iov));
		put_at(sim, 10 * n, 0);
		lnet_sim_run_all(sim);
		for (unsigned int i = 0; i < n; i++) {
			cr_assert_eq(
				memcmp(memory + 50 * i, source + 10 * i, 10),
				0);
			cr_assert_eq(memory[50 * i + 10], 0xee);
		}
		cluster_end(sim);
	}
}

/* ---- unlinking ---- */

Test(md, unlink_idle)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 100, 0, &seen);
	struct ulnet_md_handle md = bind_md(node, &umd);
	const struct ulnet_event *ev = &seen.ev[0];

	cr_assert_eq(LNetMDUnlink(md), 0);
	cr_assert_eq(seen.n, 0, "called back too early");
	cr_assert_eq(LNetMDUnlink(md), -ENOENT);
	lnet_sim_run_all(sim);
	seen_types(&seen, LNET_EVENT_UNLINK, 0);
	cr_assert_eq(ev->status, 0);
	cr_assert(ev->unlinked);
	cr_assert(!ev->terminal);
	cr_assert_eq(ev->outcome, LNET_OUTCOME_NONE);
	cr_assert_eq(ev->md.cookie, md.cookie);
	cr_assert_eq(ev->md.node, node);
	cr_assert_eq(ev->md_start, memory);
	cr_assert_eq(ev->user_ptr, &seen);
	cluster_end(sim);
}

/* An operation waits for its answer: it ends soon, with an unknown outcome. */
Test(md, unlink_waiting)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md_handle md;

	cluster_links(sim, &lossy);
	md = put_at(sim, 10, 0);
	lnet_sim_run(sim, MSEC);
	seen_types(&sent, LNET_EVENT_SEND, 0);
	cr_assert_eq(LNetMDUnlink(md), 0);
	cr_assert_eq(sent.n, 1);
	lnet_sim_run(sim, MSEC);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_UNLINK, 0);
	seen_end(&sent, LNET_EVENT_UNLINK, -ECANCELED, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_CANCELED);
	cr_assert(sent.ev[1].unlinked);
	cluster_end(sim);
}

/* A message is being stored: that completes first, and both sides are told the
 * same. */
Test(md, unlink_receiving)
{
	const struct ulnet_sim_link slow = { .bandwidth = 10000 };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct ulnet_md_handle md;

	link_set(sim, 1, 0, &slow);
	md = post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	memset(memory, 0, 100);
	memset(source, 7, 100);
	put_at(sim, 100, 0);
	lnet_sim_run(sim, 5 * MSEC); /* of 10 */
	cr_assert_eq(seen.n, 0);
	cr_assert_eq(LNetMDUnlink(md), 0);
	cr_assert_eq(LNetMDUnlink(md), -ENOENT);
	lnet_sim_run_all(sim);
	seen_types(&seen, LNET_EVENT_PUT, 0);
	cr_assert(seen.ev[0].unlinked);
	cr_assert_eq(seen.ev[0].status, 0);
	cr_assert_eq(seen.ev[0].mlength, 100);
	cr_assert_eq(memory[99], 7);
	cr_assert_eq(sent.ev[sent.n - 1].outcome, LNET_OUTCOME_DELIVERED);
	cr_assert_eq(sent.ev[sent.n - 1].mlength, 100);
	cluster_end(sim);
}

/* MDs for one message each wait to be sent: the last one is used up, but not
 * sent yet. */
Test(md, unlink_used_up)
{
	const struct ulnet_sim_link slow = { .bandwidth = 10000 };
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(memory, 100, 0, &sent);
	struct ulnet_id target = nth_id(0);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	link_set(sim, 1, 0, &slow);
	for (unsigned int i = 0; i < 20; i++) {
		cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &md), 0);
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, target,
				     PORTAL, BITS, 0, 0),
			     0);
	}
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 0);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, target, PORTAL,
			     BITS, 0, 0),
		     -ENOENT);
	cr_assert_eq(LNetMDUnlink(md), 0);
	cr_assert_eq(LNetMDUnlink(md), -ENOENT);
	lnet_sim_run(sim, MSEC);
	seen_end(&sent, LNET_EVENT_SEND, -ECANCELED, LNET_OUTCOME_NOT_DELIVERED,
		 LNET_CAUSE_CANCELED);
	cr_assert(sent.ev[0].unlinked);
	cr_assert_eq(sent.n, 1);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 20);
	cluster_end(sim);
}

/* The LND has the message: the MD's memory may be reused at once. */
Test(md, unlink_sending)
{
	const struct ulnet_sim_link slow = { .bandwidth = 10000 };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md_handle md;

	link_set(sim, 1, 0, &slow);
	md = put_at(sim, 100, 0);
	lnet_sim_run(sim, 5 * MSEC);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 1);
	seen_end(&sent, LNET_EVENT_SEND, -ECANCELED, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_CANCELED);
	cr_assert(sent.ev[0].unlinked);
	cluster_end(sim);
}

/* Half of a REPLY has been stored: the other half is not waited for. */
Test(md, unlink_receiving_a_reply)
{
	const struct ulnet_sim_link slow = { .bandwidth = 10000 };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md here = md_of(memory, 100, LNET_MD_OP_GET, &seen);
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct ulnet_md_handle md;

	sent.n = 0;
	umd.threshold = 2;
	link_set(sim, 0, 1, &slow);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &here);
	md = bind_md(lnet_sim_node(sim, 1), &umd);
	cr_assert_eq(LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS, 0), 0);
	lnet_sim_run(sim, 5 * MSEC); /* of 10 */
	/* The REPLY has used the MD up, so it is unlinked with its last event.
	 */
	(void)LNetMDUnlink(md);
	lnet_sim_run(sim, MSEC);
	seen_end(&sent, LNET_EVENT_REPLY, -ECANCELED, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_CANCELED);
	cr_assert(sent.ev[sent.n - 1].unlinked);
	cluster_end(sim);
}

static void see_and_unlink(const struct ulnet_event *ev)
{
	int rc;

	see(ev);
	rc = LNetMDUnlink(ev->md);
	cr_assert_eq(rc, ev->unlinked ? -ENOENT : 0);
}

/* Unlinked in its own handler, an MD gets one more event, which is the last. */
Test(md, unlink_in_its_handler)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);

	umd.handler = see_and_unlink;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	put_at(sim, 10, 0);
	lnet_sim_run_all(sim);
	seen_types(&seen, LNET_EVENT_PUT, LNET_EVENT_UNLINK, 0);
	cr_assert(!seen.ev[0].unlinked);
	cr_assert(seen.ev[1].unlinked);
	cluster_end(sim);
}

Test(md, unlink_in_the_handler_of_a_send)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(source, 100, 0, &sent);

	umd.handler = see_and_unlink;
	umd.timeout = 1000000;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 1), &umd),
			     LNET_ACK_REQ, nth_id(0), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run_all(sim);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_UNLINK, 0);
	seen_end(&sent, LNET_EVENT_UNLINK, -ECANCELED, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_CANCELED);
	cr_assert(sent.ev[1].unlinked);
	cluster_end(sim);
}

/* Several operations of one MD end each, and only one event is the last of the
 * MD. */
Test(md, unlink_with_many_operations)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct ulnet_md_handle md = bind_md(lnet_sim_node(sim, 1), &umd);
	unsigned int terminals = 0;

	cluster_links(sim, &lossy);
	for (unsigned int i = 0; i < 20; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(0),
				     PORTAL, i, 0, 0),
			     0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 20);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 40);
	for (unsigned int i = 0; i < 40; i++) {
		terminals += sent.ev[i].terminal;
		cr_assert_eq(sent.ev[i].unlinked, i == 39);
	}
	cr_assert_eq(terminals, 20);
	cluster_end(sim);
}

/* ---- no handler, no queue ---- */

Test(md, silent)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, NULL);
	struct ulnet_md_handle md;

	md = post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS, "silent", 6);
	lnet_sim_run_all(sim);
	cr_assert_eq(memcmp(memory, "silent", 6), 0);
	cr_assert_eq(LNetMDUnlink(md), 0);
	cluster_end(sim);
}
