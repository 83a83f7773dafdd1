/* SPDX-License-Identifier: BSD-3-Clause */
/* Which match entry a message finds. Node 0 has the entries; nodes 1 and 2
 * send. */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL	5
#define ENTRIES 4
#define NONE	(-1)

enum { NO_MD = 1, GET_ONLY = 2, INACTIVE = 4, SMALL = 8 };

struct entry {
	uint64_t bits, ignore;
	const char *nid; /* NULL: any */
	uint32_t pid;	 /* 0: any */
	enum ulnet_ins_pos pos;
	unsigned int flags;
};

/* @from is node 1, with the usual pid, or node 2, with pid 77. */
struct match_case {
	const char *what;
	unsigned int n;
	struct entry entry[ENTRIES];
	unsigned int from;
	bool get;
	uint64_t bits;
	int found; /* number of the entry, or NONE: dropped */
};

#define AT     LNET_INS_AFTER
#define BEFORE LNET_INS_BEFORE
#define LOCAL  LNET_INS_LOCAL

/* clang-format off */
static const struct match_case cases[] = {
	{ "nothing there", 0, { { 0 } }, 1, false, 1, NONE },
	{ "equal bits", 1, { { 1, 0, NULL, 0, AT, 0 } }, 1, false, 1, 0 },
	{ "other bits", 1, { { 1, 0, NULL, 0, AT, 0 } }, 1, false, 2, NONE },
	{ "all bits count", 1,
	  { { UINT64_C(1) << 63, 0, NULL, 0, AT, 0 } }, 1, false, 0, NONE },
	{ "ignored bits", 1, { { 0x10, 0x0f, NULL, 0, AT, 0 } }, 1, false, 0x17,
	  0 },
	{ "bits that are set and ignored", 1,
	  { { 0x1f, 0x0f, NULL, 0, AT, 0 } }, 1, false, 0x10, 0 },
	{ "bits not ignored", 1, { { 0x10, 0x0f, NULL, 0, AT, 0 } }, 1, false,
	  0x27, NONE },
	{ "all ignored", 1, { { 0, UINT64_MAX, NULL, 0, AT, 0 } }, 1, false,
	  0x123456789, 0 },
	{ "second", 2, { { 1, 0, NULL, 0, AT, 0 }, { 2, 0, NULL, 0, AT, 0 } },
	  1, false, 2, 1 },
	{ "the older of equals", 2,
	  { { 1, 0, NULL, 0, AT, 0 }, { 1, 0, NULL, 0, AT, 0 } }, 1, false, 1,
	  0 },
	{ "inserted before", 2,
	  { { 1, 0, NULL, 0, AT, 0 }, { 1, 0, NULL, 0, BEFORE, 0 } }, 1, false,
	  1, 1 },
	{ "before, after", 3,
	  { { 1, 0, NULL, 0, AT, 0 }, { 1, 0, NULL, 0, BEFORE, 0 },
	    { 1, 0, NULL, 0, AT, 0 } }, 1, false, 1, 1 },
	{ "local is after", 2,
	  { { 1, 0, NULL, 0, AT, 0 }, { 1, 0, NULL, 0, LOCAL, 0 } }, 1, false,
	  1, 0 },
	{ "the older of equals, masked", 2,
	  { { 0, 7, NULL, 0, AT, 0 }, { 0, 3, NULL, 0, AT, 0 } }, 1, false, 1,
	  0 },
	{ "inserted before, masked", 2,
	  { { 0, 7, NULL, 0, AT, 0 }, { 0, 3, NULL, 0, BEFORE, 0 } }, 1, false,
	  1, 1 },
	{ "masked before exact", 2,
	  { { 1, 0, NULL, 0, BEFORE, 0 }, { 0, 7, NULL, 0, AT, 0 } }, 1, false,
	  1, 1 },
	{ "exact when the masked does not match", 2,
	  { { 1, 0, NULL, 0, AT, 0 }, { 0x10, 7, NULL, 0, AT, 0 } }, 1, false,
	  1, 0 },
	{ "NID", 1, { { 1, 0, "10.0.0.2@tcp", 0, AT, 0 } }, 1, false, 1, 0 },
	{ "another NID", 1, { { 1, 0, "10.0.0.2@tcp", 0, AT, 0 } }, 2, false, 1,
	  NONE },
	{ "NID on another net", 1, { { 1, 0, "10.0.0.2@tcp1", 0, AT, 0 } }, 1,
	  false, 1, NONE },
	{ "NID, masked", 2,
	  { { 0, 7, "10.0.0.3@tcp", 0, AT, 0 },
	    { 0, 7, "10.0.0.2@tcp", 0, AT, 0 } }, 1, false, 1, 1 },
	{ "pid", 1, { { 1, 0, NULL, 77, AT, 0 } }, 2, false, 1, 0 },
	{ "another pid", 1, { { 1, 0, NULL, 77, AT, 0 } }, 1, false, 1, NONE },
	{ "unique", 3,
	  { { 1, 0, "10.0.0.3@tcp", 12345, AT, 0 },
	    { 1, 0, "10.0.0.2@tcp", 77, AT, 0 },
	    { 1, 0, "10.0.0.2@tcp", 12345, AT, 0 } }, 1, false, 1, 2 },
	{ "unique, not there", 2,
	  { { 1, 0, "10.0.0.3@tcp", 12345, AT, 0 },
	    { 1, 0, "10.0.0.2@tcp", 77, AT, 0 } }, 1, false, 1, NONE },
	{ "unique, inserted before", 2,
	  { { 1, 0, "10.0.0.2@tcp", 12345, AT, 0 },
	    { 1, 0, "10.0.0.2@tcp", 12345, BEFORE, 0 } }, 1, false, 1, 1 },
	{ "no MD", 2,
	  { { 1, 0, NULL, 0, AT, NO_MD }, { 1, 0, NULL, 0, AT, 0 } }, 1, false,
	  1, 1 },
	{ "nothing but no MD", 1, { { 1, 0, NULL, 0, AT, NO_MD } }, 1, false, 1,
	  NONE },
	{ "threshold 0", 2,
	  { { 0, 7, NULL, 0, AT, INACTIVE }, { 1, 0, NULL, 0, AT, 0 } }, 1,
	  false, 1, 1 },
	{ "other operation", 2,
	  { { 1, 0, NULL, 0, AT, GET_ONLY }, { 1, 0, NULL, 0, AT, 0 } }, 1,
	  false, 1, 1 },
	{ "GET", 2,
	  { { 1, 0, NULL, 0, AT, 0 }, { 1, 0, NULL, 0, AT, GET_ONLY } }, 1,
	  true, 1, 1 },
	{ "PUT on a portal of GETs", 1, { { 1, 0, NULL, 0, AT, GET_ONLY } }, 1,
	  false, 1, NONE },
	/* The search ends at the first entry that matches, even if its MD is
	 * too small. */
	{ "too small", 2,
	  { { 1, 0, NULL, 0, AT, SMALL }, { 1, 0, NULL, 0, AT, 0 } }, 1, false,
	  1, NONE },
};
/* clang-format on */

static struct seen seen[ENTRIES];
static uint8_t memory[ENTRIES][64];

static void attach(struct lnet *node, const struct entry *e, unsigned int i)
{
	struct ulnet_id id = { e->nid ? nid_of(e->nid) : LNET_NID_ANY,
			       e->pid ? e->pid : LNET_PID_ANY };
	uint32_t op = e->flags & GET_ONLY ? LNET_MD_OP_GET : LNET_MD_OP_PUT;
	struct ulnet_md umd =
		md_of(memory[i], e->flags & SMALL ? 8 : 64, op, &seen[i]);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	cr_assert_eq(LNetMEAttach(node, PORTAL, id, e->bits, e->ignore,
				  LNET_RETAIN, e->pos, &me),
		     0);
	if (e->flags & NO_MD)
		return;
	if (e->flags & INACTIVE)
		umd.threshold = 0;
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
}

static struct lnet_sim *three_nodes(unsigned int cpts)
{
	struct lnet_sim *sim = cluster_with(2, cpts, NULL);
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.pid = 77;
	cr_assert_eq(plain_node(sim, "10.0.0.3@tcp", &conf, NULL, NULL), 2);
	return sim;
}

static void request(struct lnet *node, bool get, uint64_t bits, void *mem)
{
	struct ulnet_md umd = md_of(mem, 16, 0, NULL);
	struct ulnet_md_handle md;
	int rc;

	umd.timeout = 1000000;
	umd.threshold = get ? 2 : 1;
	md = bind_md(node, &umd);
	if (get)
		rc = LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, bits, 0);
	else
		rc = LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, nth_id(0),
			     PORTAL, bits, 0, 0);
	cr_assert_eq(rc, 0);
}

static void run_case(const struct match_case *c, unsigned int cpts)
{
	struct lnet_sim *sim = three_nodes(cpts);
	struct lnet *node = lnet_sim_node(sim, 0);
	uint8_t mem[16] = { 1 };

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < c->n; i++)
		attach(node, &c->entry[i], i);
	request(lnet_sim_node(sim, c->from), c->get, c->bits, mem);
	lnet_sim_run_all(sim);
	for (int i = 0; i < ENTRIES; i++)
		cr_assert_eq(seen[i].n, i == c->found ? 1u : 0u,
			     "%s, %u CPTs: entry %d has %u events", c->what,
			     cpts, i, seen[i].n);
	cr_assert_eq(counter(node, "drop_count"), c->found == NONE, "%s",
		     c->what);
	cluster_end(sim);
}

Test(match, one_cpt)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		run_case(&cases[i], 1);
}

/* With more CPTs an entry may be on any of them, and is still found. The order
 * of entries is only guaranteed within a CPT, so that cases are left out which
 * depend on it. */
Test(match, many_cpts)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int candidates = 0;

		for (unsigned int e = 0; e < cases[i].n; e++)
			candidates += !(cases[i].entry[e].flags &
					(NO_MD | INACTIVE | GET_ONLY));
		if (candidates <= 1) {
			run_case(&cases[i], 3);
			run_case(&cases[i], 16);
		}
	}
}

/* ---- the kind of a portal ---- */

static int try_attach(struct lnet *node, const char *nid, uint32_t pid,
		      uint64_t ignore, struct ulnet_me_handle *me)
{
	struct ulnet_id id = { nid ? nid_of(nid) : LNET_NID_ANY,
			       pid ? pid : LNET_PID_ANY };

	return LNetMEAttach(node, PORTAL, id, 1, ignore, LNET_UNLINK,
			    LNET_INS_AFTER, me);
}

Test(match, kind_is_decided_once)
{
	struct lnet_sim *sim = cluster_with(2, 3, NULL);
	struct lnet *a = lnet_sim_node(sim, 0);
	struct lnet *b = lnet_sim_node(sim, 1);
	struct ulnet_me_handle me, other = { NULL, 42 };

	cr_assert_eq(try_attach(a, "10.0.0.2@tcp", 12345, 0, &me), 0);
	cr_assert_eq(try_attach(a, NULL, 12345, 0, &other), -EPERM);
	cr_assert_eq(try_attach(a, "10.0.0.2@tcp", 0, 0, &other), -EPERM);
	cr_assert_eq(try_attach(a, "10.0.0.2@tcp", 12345, 1, &other), -EPERM);
	cr_assert_eq(other.cookie, 42, "result written on error");
	cr_assert_eq(try_attach(a, "10.0.0.3@tcp", 12345, 0, &other), 0);
	/* The kind stays, even when there is no entry left. */
	cr_assert_eq(LNetMEUnlink(me), 0);
	cr_assert_eq(LNetMEUnlink(other), 0);
	cr_assert_eq(try_attach(a, NULL, 0, 0, &me), -EPERM);
	/* The other kind first, on another node. */
	cr_assert_eq(try_attach(b, NULL, 0, 0, &me), 0);
	cr_assert_eq(try_attach(b, "10.0.0.2@tcp", 12345, 0, &me), -EPERM);
	cr_assert_eq(try_attach(b, "10.0.0.2@tcp", 12345, 3, &me), 0);
	cluster_end(sim);
}

Test(match, bad_entries)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(node, 0, ANY_ID, 1, 0, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     -EINVAL);
	cr_assert_eq(LNetMEAttach(node, LNET_PORTALS, ANY_ID, 1, 0, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     -EINVAL);
	cr_assert_eq(LNetMEAttach(node, LNET_PORTALS - 1, ANY_ID, 1, 0,
				  LNET_UNLINK, LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMEAttach(node, 1, ANY_ID, 1, 0, (enum ulnet_unlink)2,
				  LNET_INS_AFTER, &me),
		     -EINVAL);
	cr_assert_eq(LNetMEAttach(node, 1, ANY_ID, 1, 0, LNET_UNLINK,
				  (enum ulnet_ins_pos)3, &me),
		     -EINVAL);
	cluster_end(sim);
}

/* ---- the life of entries ---- */

static struct ulnet_me_handle me_any(struct lnet *node, uint64_t bits,
				     enum ulnet_unlink unlink)
{
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, bits, 0, unlink,
				  LNET_INS_AFTER, &me),
		     0);
	return me;
}

Test(match, one_md_for_each_entry)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_me_handle me = me_any(node, 1, LNET_RETAIN);
	struct ulnet_md umd = md_of(memory[0], 64, LNET_MD_OP_PUT, NULL);
	struct ulnet_md_handle md, second;

	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &second), -EBUSY);
	/* The failed call has changed neither the entry nor its MD. */
	cr_assert_eq(LNetMDUnlink(md), 0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &second), 0);
	cr_assert_eq(LNetMEUnlink(me), 0);
	cr_assert_eq(LNetMDUnlink(second), -ENOENT);
	cr_assert_eq(LNetMEUnlink(me), -ENOENT);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &second), -ENOENT);
	cluster_end(sim);
}

/* If its MD is invalid an entry is unlinked. */
Test(match, failed_attach_takes_the_entry)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_me_handle me = me_any(node, 1, LNET_RETAIN);
	struct ulnet_md umd = md_of(memory[0], 64, 0, NULL);
	struct ulnet_md_handle md = { NULL, 42 };

	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), -EINVAL);
	cr_assert_eq(md.cookie, 42);
	cr_assert_eq(LNetMEUnlink(me), -ENOENT);
	cluster_end(sim);
}

Test(match, entry_goes_with_its_md_or_stays)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory[0], 64, LNET_MD_OP_PUT, NULL);
	struct ulnet_me_handle stays = me_any(node, 1, LNET_RETAIN);
	struct ulnet_me_handle goes = me_any(node, 1, LNET_UNLINK);
	struct ulnet_md_handle a, b;

	cr_assert_eq(LNetMDAttach(stays, &umd, LNET_RETAIN, &a), 0);
	cr_assert_eq(LNetMDAttach(goes, &umd, LNET_RETAIN, &b), 0);
	cr_assert_eq(LNetMDUnlink(a), 0);
	cr_assert_eq(LNetMDUnlink(b), 0);
	cr_assert_eq(LNetMEUnlink(stays), 0);
	cr_assert_eq(LNetMEUnlink(goes), -ENOENT);
	cluster_end(sim);
}

/* Unlinking an entry unlinks its MD, which gets its last event. */
Test(match, entry_unlinks_its_md)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_me_handle me = me_any(node, 1, LNET_RETAIN);
	struct ulnet_md umd = md_of(memory[0], 64, LNET_MD_OP_PUT, &seen[0]);
	struct ulnet_md_handle md;

	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
	cr_assert_eq(LNetMEUnlink(me), 0);
	cr_assert_eq(seen[0].n, 0, "called back too early");
	lnet_sim_run_all(sim);
	seen_types(&seen[0], LNET_EVENT_UNLINK, 0);
	cr_assert(seen[0].ev[0].unlinked);
	cr_assert_eq(seen[0].ev[0].status, 0);
	cluster_end(sim);
}

static struct ulnet_me_handle kept_entry(struct lnet *node,
					 enum ulnet_ins_pos pos)
{
	struct ulnet_id id = { nid_of("10.0.0.2@tcp"), 12345 };
	struct ulnet_me_handle me;

	cr_assert_eq(
		LNetMEAttach(node, PORTAL, id, 1, 0, LNET_RETAIN, pos, &me), 0);
	return me;
}

static void kept_md(struct ulnet_me_handle me, unsigned int i)
{
	struct ulnet_md umd = md_of(memory[i], 64, LNET_MD_OP_PUT, &seen[i]);
	struct ulnet_md_handle md;

	umd.options |= LNET_MD_MANAGE_REMOTE;
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
}

/* A message with @bits from node @from finds entry @found, or none. */
static void finds(struct lnet_sim *sim, unsigned int from, uint64_t bits,
		  int found)
{
	memset(seen, 0, sizeof(seen));
	put_bytes(lnet_sim_node(sim, from), nth_id(0), PORTAL, bits, "x", 1);
	lnet_sim_run_all(sim);
	for (int i = 0; i < ENTRIES; i++)
		cr_assert_eq(seen[i].n, i == found ? 1u : 0u,
			     "entry %d has %u events", i, seen[i].n);
}

/* That an entry was found before changes nothing for later messages. */
Test(match, entry_that_was_found_is_not_preferred)
{
	struct lnet_sim *sim = cluster(3);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_me_handle first, second, before;

	first = kept_entry(node, LNET_INS_AFTER);
	second = kept_entry(node, LNET_INS_AFTER);
	kept_md(second, 1);
	finds(sim, 1, 1, 1); /* the first has no MD yet */
	kept_md(first, 0);
	finds(sim, 1, 1, 0);
	finds(sim, 1, 1, 0);
	finds(sim, 1, 2, NONE);
	finds(sim, 2, 1, NONE);
	before = kept_entry(node, LNET_INS_BEFORE);
	kept_md(before, 2);
	finds(sim, 1, 1, 2);
	finds(sim, 1, 1, 2);
	cr_assert_eq(LNetMEUnlink(before), 0);
	lnet_sim_run_all(sim);
	finds(sim, 1, 1, 0);
	cr_assert_eq(LNetMEUnlink(first), 0);
	cr_assert_eq(LNetMEUnlink(second), 0);
	lnet_sim_run_all(sim);
	finds(sim, 1, 1, NONE);
	cluster_end(sim);
}

/* When an MD is used up, an entry that stays can take another one. */
Test(match, used_up_entry_is_used_again)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_me_handle me = me_any(node, 1, LNET_RETAIN);
	struct ulnet_md umd = md_of(memory[0], 64, LNET_MD_OP_PUT, &seen[0]);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	for (unsigned int i = 1; i <= 3; i++) {
		cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, 1, "x", 1);
		lnet_sim_run_all(sim);
		cr_assert_eq(seen[0].n, i);
		cr_assert(seen[0].ev[i - 1].unlinked);
		cr_assert_eq(LNetMDUnlink(md), -ENOENT);
	}
	cr_assert_eq(LNetMEUnlink(me), 0);
	cluster_end(sim);
}

/* Of many entries, as an RPC layer has them, each message finds its own, and
 * none that was unlinked. */
static void many(const char *nid, uint32_t pid, unsigned int cpts)
{
	enum { N = 1000 };
	static struct ulnet_me_handle mes[N];
	struct lnet_sim *sim = cluster_with(2, cpts, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	static struct seen s;
	unsigned int got = 0;

	s.n = 0;
	for (unsigned int i = 0; i < N; i++) {
		struct ulnet_id id = { nid ? nid_of(nid) : LNET_NID_ANY, pid };
		struct ulnet_md umd = md_of(memory[0], 64, LNET_MD_OP_PUT, &s);
		struct ulnet_md_handle md;

		cr_assert_eq(LNetMEAttach(node, PORTAL, id, i * 977, 0,
					  LNET_UNLINK, LNET_INS_AFTER, &mes[i]),
			     0);
		cr_assert_eq(LNetMDAttach(mes[i], &umd, LNET_UNLINK, &md), 0);
	}
	for (unsigned int i = 0; i < N; i += 2)
		cr_assert_eq(LNetMEUnlink(mes[i]), 0);
	lnet_sim_run_all(sim);
	s.n = 0;
	for (unsigned int i = 0; i < N; i += 7) {
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, i * 977,
			  "x", 1);
		lnet_sim_run_all(sim);
		if (i % 2)
			cr_assert_eq(s.ev[got].match_bits, i * 977);
		got += i % 2;
		cr_assert_eq(s.n, got, "entry %u", i);
	}
	cluster_end(sim);
}

Test(match, many_entries)
{
	many(NULL, LNET_PID_ANY, 1);
	many("10.0.0.2@tcp", 12345, 1);
	many("10.0.0.2@tcp", 12345, 4);
	many(NULL, 12345, 4);
}
