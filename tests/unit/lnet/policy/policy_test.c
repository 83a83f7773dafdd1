/* SPDX-License-Identifier: BSD-3-Clause */
/* Which policies are valid, and what they match (requirement C8). */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "lnet/policy/policy.h"

#define NONE LNET_PRIORITY_NONE

static struct ulnet_policy text_of(const char *src, const char *dst,
				   const char *rte, uint32_t priority)
{
	struct ulnet_policy p = { .priority = priority };

	text_copy(p.src, sizeof(p.src), src);
	text_copy(p.dst, sizeof(p.dst), dst);
	text_copy(p.rte, sizeof(p.rte), rte);
	return p;
}

static struct policy *make(const char *src, const char *dst, const char *rte,
			   uint32_t priority)
{
	struct ulnet_policy text = text_of(src, dst, rte, priority);
	struct ulnet_text_error err = { 0, "" };
	struct policy *p = NULL;

	cr_assert_eq(policy_make(&text, &err, &p), 0, "%s", err.what);
	return p;
}

static struct ulnet_nid nid_of(const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0);
	return nid;
}

Test(policy, kinds)
{
	static const struct {
		const char *src, *dst, *rte;
		uint32_t priority;
		enum policy_kind kind;
		const char *shown; /* the first pattern as it is shown */
		uint32_t has;
	} rows[] = {
		{ "tcp", "", "", NONE, POLICY_SRC_NET, "tcp", 0 },
		{ "tcp0", "", "", 7, POLICY_SRC_NET, "tcp", 7 },
		{ "o2ib[1-3,7]", "", "", 1, POLICY_SRC_NET, "o2ib[1-3,7]", 1 },
		{ "10.0.0.[1-2]@tcp", "", "", 2, POLICY_SRC_NID,
		  "10.0.0.[1-2]@tcp", 2 },
		{ "*@tcp", "", "", NONE, POLICY_SRC_NID, "*@tcp", 0 },
		{ "", "tcp4", "", 3, POLICY_DST_NET, "tcp4", 3 },
		{ "", "10.0.0.1@tcp", "", NONE, POLICY_DST_NID, "10.0.0.1@tcp",
		  0 },
		{ "10.0.0.1@tcp", "10.0.0.2@tcp", "", NONE, POLICY_PAIR,
		  "10.0.0.1@tcp", NONE },
		{ "", "tcp5", "10.0.0.9@tcp", NONE, POLICY_GATEWAY, "tcp5",
		  NONE },
		{ "", "*@tcp5", "10.0.0.9@tcp", NONE, POLICY_GATEWAY, "*@tcp5",
		  NONE },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy *p = make(rows[i].src, rows[i].dst, rows[i].rte,
					rows[i].priority);

		cr_assert_eq(p->kind, rows[i].kind, "row %u", i);
		cr_assert_eq(p->priority, rows[i].has, "row %u", i);
		cr_assert_eq(p->text.priority, rows[i].has, "row %u", i);
		cr_assert_str_eq(*rows[i].src ? p->text.src : p->text.dst,
				 rows[i].shown, "row %u", i);
		policy_free(p);
	}
}

Test(policy, refused)
{
	static const struct {
		const char *src, *dst, *rte;
		uint32_t priority;
		const char *what; /* part of the message */
	} rows[] = {
		{ "", "", "", NONE, "one of src and dst is needed" },
		{ "", "", "10.0.0.9@tcp", NONE, "rte: goes with dst" },
		{ "10.0.0.1@tcp", "", "10.0.0.9@tcp", NONE,
		  "rte: goes with dst alone" },
		{ "10.0.0.1@tcp", "10.0.0.2@tcp", "10.0.0.9@tcp", NONE,
		  "rte: goes with dst alone" },
		{ "tcp", "10.0.0.2@tcp", "", NONE,
		  "src: NIDs are expected of a pair" },
		{ "10.0.0.2@tcp", "tcp", "", NONE,
		  "dst: NIDs are expected of a pair" },
		{ "", "10.0.0.2@tcp5", "tcp", NONE, "rte: NIDs are expected" },
		{ "10.0.0.1@tcp", "10.0.0.2@tcp", "", 0,
		  "priority: a pair has none" },
		{ "", "10.0.0.2@tcp5", "10.0.0.9@tcp", 1,
		  "priority: a rule of gateways has none" },
		{ "nonsense", "", "", NONE, "src: " },
		{ "10.0.0.1", "", "", NONE, "src: " },
		{ "", "10.0.0.[5-1]@tcp", "", NONE, "dst: range low end" },
		{ "", "tcp5", "10.0.0.300@tcp", NONE, "rte: " },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ulnet_policy text =
			text_of(rows[i].src, rows[i].dst, rows[i].rte,
				rows[i].priority);
		struct ulnet_text_error err = { 0, "" };
		struct policy *p;

		cr_assert_eq(policy_make(&text, &err, &p), -EINVAL, "row %u",
			     i);
		cr_assert(strstr(err.what, rows[i].what), "row %u: %s", i,
			  err.what);
		cr_assert_eq(policy_make(&text, NULL, &p), -EINVAL);
	}
}

Test(policy, text_without_end)
{
	struct ulnet_policy text = { .priority = NONE };
	struct policy *p;

	memset(text.dst, '1', sizeof(text.dst));
	cr_assert_eq(policy_make(&text, NULL, &p), -ENAMETOOLONG);
}

Test(policy, shown_is_what_was_meant)
{
	struct policy *a = make("10.[3,1-2].0.1@tcp0", "", "", 1);
	struct policy *b = make(a->text.src, "", "", 2);

	cr_assert(policy_same(a, b));
	policy_free(b);
	b = make("", a->text.src, "", 1);
	cr_assert_not(policy_same(a, b));
	policy_free(a);
	policy_free(b);
}

/* ---- tables ---- */

static struct policy_table *table_add(struct policy_table *t, unsigned int at,
				      struct policy *p)
{
	struct policy_table *more = policy_table_with(t, at, p);

	cr_assert_not_null(more);
	free(t);
	return more;
}

static void table_free(struct policy_table *t)
{
	for (unsigned int i = 0; i < t->n; i++)
		policy_free(t->slot[i].policy);
	free(t);
}

/* Returns the priority that policies of @kind give to @nid. */
static uint32_t priority(const struct policy_table *t, enum policy_kind kind,
			 const struct ulnet_nid *nid)
{
	bool src = kind == POLICY_SRC_NET || kind == POLICY_SRC_NID;
	bool net = kind == POLICY_SRC_NET || kind == POLICY_DST_NET;
	uint32_t of_net, of_nid;

	policies_of(t, src ? POLICY_SRC_NET : POLICY_DST_NET, nid, &of_net,
		    &of_nid);
	return net ? of_net : of_nid;
}

Test(policy, first_that_matches)
{
	struct ulnet_nid one = nid_of("10.0.0.1@tcp");
	struct ulnet_nid two = nid_of("10.0.0.2@tcp");
	struct ulnet_nid away = nid_of("10.0.0.1@tcp1");
	struct policy_table *t = NULL, *less;

	t = table_add(t, 0, make("10.0.0.*@tcp", "", "", 5));
	t = table_add(t, 0, make("10.0.0.2@tcp", "", "", 7));
	t = table_add(t, 2, make("tcp", "", "", 3));
	t = table_add(t, 1, make("", "10.0.0.*@tcp", "", 1));
	cr_assert_eq(priority(t, POLICY_SRC_NID, &one), 5);
	cr_assert_eq(priority(t, POLICY_SRC_NID, &two), 7);
	cr_assert_eq(priority(t, POLICY_DST_NID, &two), 1);
	cr_assert_eq(priority(t, POLICY_SRC_NET, &one), 3);
	cr_assert_eq(priority(t, POLICY_SRC_NET, &away), NONE);
	cr_assert_eq(priority(t, POLICY_DST_NET, &one), NONE);
	less = policy_table_without(t, &t->slot[0]);
	cr_assert_eq(less->n, 3);
	cr_assert_eq(priority(less, POLICY_SRC_NID, &two), 5);
	free(less);
	table_free(t);
}

Test(policy, pairs_and_gateways)
{
	struct ulnet_nid mine = nid_of("10.0.0.1@tcp");
	struct ulnet_nid other = nid_of("10.0.0.2@tcp");
	struct ulnet_nid far = nid_of("10.5.0.2@tcp5");
	struct ulnet_nid gateway = nid_of("10.0.0.9@tcp");
	struct policy_table *t = NULL;

	t = table_add(t, 0, make("10.0.0.1@tcp", "10.0.0.[2-3]@tcp", "", NONE));
	t = table_add(t, 1, make("", "tcp5", "10.0.0.[8-9]@tcp", NONE));
	t = table_add(t, 2, make("", "10.0.0.3@tcp", "10.0.0.2@tcp", NONE));
	cr_assert(policies_pair(t, &mine, &other));
	cr_assert_not(policies_pair(t, &other, &mine));
	cr_assert(policies_gateway(t, &far, &gateway));
	cr_assert_not(policies_gateway(t, &far, &other));
	cr_assert_not(policies_gateway(t, &other, &gateway));
	table_free(t);
}
