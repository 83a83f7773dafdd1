/* SPDX-License-Identifier: BSD-3-Clause */
/* The policies of a node: they are added, deleted and read, and messages follow
 * them. */
#include "ulnet/policy.h"

#include "tests/unit/lnet/cluster.h"
#include "ulnet/path.h"

static struct ulnet_policy policy_of(const char *src, const char *dst,
				     const char *rte, uint32_t priority)
{
	struct ulnet_policy p = { .priority = priority };

	text_copy(p.src, sizeof(p.src), src);
	text_copy(p.dst, sizeof(p.dst), dst);
	text_copy(p.rte, sizeof(p.rte), rte);
	return p;
}

static int add(struct lnet *node, uint32_t id, const char *src, const char *dst,
	       uint32_t priority)
{
	struct ulnet_policy p = policy_of(src, dst, "", priority);

	return lnet_policy_add(node, id, &p, NULL);
}

static struct lnet_sim *two_nis(unsigned int cpts)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	cr_assert_eq(plain_node(sim, "10.0.0.1@tcp", NULL, NULL, NULL), 0);
	cr_assert_eq(plain_node(sim, "10.0.0.2@tcp 10.0.1.2@tcp 10.1.0.2@tcp1",
				NULL, NULL, NULL),
		     1);
	return sim;
}

Test(policies, order)
{
	struct lnet_sim *sim = two_nis(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_policy p[4];

	cr_assert_eq(lnet_policies(node, NULL, 0), 0);
	cr_assert_eq(lnet_policy_del(node, 0), -ENOENT);
	cr_assert_eq(add(node, LNET_POLICY_LAST, "tcp", "", 5), 0);
	cr_assert_eq(add(node, 0, "tcp1", "", 6), 0);
	cr_assert_eq(add(node, LNET_POLICY_LAST, "tcp2", "", 7), 0);
	cr_assert_eq(add(node, 1, "tcp3", "", 8), 0);
	/* The same policy again, though in other words. */
	cr_assert_eq(add(node, LNET_POLICY_LAST, "tcp0", "", 5), -EALREADY);
	cr_assert_eq(lnet_policies(node, p, 4), 4);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(p[i].id, i);
	cr_assert_str_eq(p[0].src, "tcp1");
	cr_assert_str_eq(p[1].src, "tcp3");
	cr_assert_str_eq(p[2].src, "tcp");
	cr_assert_str_eq(p[3].src, "tcp2");
	cr_assert_eq(p[2].priority, 5);
	/* And with another priority, which it gets, where it is. */
	cr_assert_eq(add(node, 0, "tcp", "", 9), 0);
	cr_assert_eq(lnet_policies(node, p, 4), 4);
	cr_assert_str_eq(p[2].src, "tcp");
	cr_assert_eq(p[2].priority, 9);
	cr_assert_eq(lnet_policy_del(node, 1), 0);
	memset(p, 0, sizeof(p));
	cr_assert_eq(lnet_policies(node, p, 2), 3);
	cr_assert_str_eq(p[1].src, "tcp");
	cr_assert_str_eq(p[2].src, "");
	cr_assert_eq(lnet_policy_del(node, 1), -ENOENT);
	cluster_end(sim); /* with some policies left */
}

/* The ids of others stay when a policy is deleted; one that is added moves only
 * those whose ids it takes. */
Test(policies, ids)
{
	struct lnet_sim *sim = two_nis(1);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_policy p[5];

	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(add(node, LNET_POLICY_LAST,
				 (const char *[]){ "tcp", "tcp1", "tcp2",
						   "tcp3" }[i],
				 "", i),
			     0);
	cr_assert_eq(lnet_policy_del(node, 2), 0);
	cr_assert_eq(add(node, 0, "tcp4", "", 1), 0);
	cr_assert_eq(add(node, 7, "tcp5", "", 1), 0);
	cr_assert_eq(add(node, LNET_POLICY_ID_MAX + 1u, "tcp6", "", 1),
		     -ERANGE);
	cr_assert_eq(lnet_policies(node, p, 5), 5);
	cr_assert_str_eq(p[0].src, "tcp4");
	cr_assert_str_eq(p[1].src, "tcp");
	cr_assert_str_eq(p[2].src, "tcp1");
	cr_assert_str_eq(p[3].src, "tcp3");
	cr_assert_str_eq(p[4].src, "tcp5");
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(p[i].id, i);
	cr_assert_eq(p[4].id, 7);
	cluster_end(sim);
}

Test(policies, refused)
{
	struct lnet_sim *sim = two_nis(1);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_policy p = policy_of("", "10.0.0.[3-1]@tcp", "", 0);
	struct ulnet_text_error err;

	cr_assert_eq(lnet_policy_add(node, 0, &p, &err), -EINVAL);
	cr_assert(strstr(err.what, "dst: "), "%s", err.what);
	for (unsigned int i = 0; i < LNET_POLICIES_MAX; i++) {
		char nid[32];

		snprintf(nid, sizeof(nid), "10.1.%u.%u@tcp", i / 256, i % 256);
		cr_assert_eq(add(node, LNET_POLICY_LAST, nid, "", i), 0);
	}
	cr_assert_eq(add(node, 0, "tcp", "", 0), -ENOSPC);
	cr_assert_eq(lnet_policies(node, NULL, 0), LNET_POLICIES_MAX);
	cluster_end(sim);
}

/* Which path is chosen and why, on the CPT that has the policies and on another
 * one. */
Test(policies, chosen_and_explained)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts += 3) {
		struct lnet_sim *sim = two_nis(cpts);
		struct lnet *node = lnet_sim_node(sim, 1);
		const struct ulnet_nid dst = nid_of("10.0.0.1@tcp");
		struct ulnet_path_candidate c[4];
		char text[256];
		struct ulnet_path path;

		cr_assert_eq(add(node, 0, "10.0.1.2@tcp", "", 4), 0);
		cr_assert_eq(lnet_path_explain(node, NULL, &dst, &path, c, 4),
			     3);
		lnet_path_candidate_format(&c[0], text, sizeof(text));
		cr_assert_str_eq(text,
				 "local NI 10.0.0.2@tcp: the chosen one has a "
				 "better priority (4 against none)");
		cr_assert_eq(add(node, 0, "10.0.0.2@tcp", "", 3), 0);
		cr_assert_eq(lnet_path_explain(node, NULL, &dst, &path, c, 4),
			     3);
		lnet_path_candidate_format(&c[1], text, sizeof(text));
		cr_assert_str_eq(text,
				 "local NI 10.0.1.2@tcp: the chosen one has a "
				 "better priority (3 against 4)");
		cr_assert_eq(add(node, 0, "10.0.1.2@tcp", "10.0.0.1@tcp",
				 LNET_PRIORITY_NONE),
			     0);
		cr_assert_eq(lnet_policy_del(node, 1), 0);
		cr_assert_eq(lnet_policy_del(node, 2), 0);
		cr_assert_eq(lnet_path_explain(node, NULL, &dst, &path, c, 4),
			     3);
		lnet_path_candidate_format(&c[0], text, sizeof(text));
		cr_assert_str_eq(text, "local NI 10.0.0.2@tcp: the chosen one "
				       "is preferred");
		cluster_end(sim);
	}
}
