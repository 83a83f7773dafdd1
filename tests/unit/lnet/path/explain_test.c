/* SPDX-License-Identifier: BSD-3-Clause */
/* What lnet_path_explain() tells users about paths. */
#include "ulnet/path.h"

#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77

static uint8_t source[64];

/* Returns a cluster of two nodes. Node 1 has two NIs on tcp and one on tcp1. */
static struct lnet_sim *three_nis(unsigned int cpts)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	cr_assert_eq(plain_node(sim, "10.0.0.1@tcp", NULL, NULL, NULL), 0);
	cr_assert_eq(plain_node(sim, "10.0.0.2@tcp 10.0.1.2@tcp 10.1.0.2@tcp1",
				NULL, NULL, NULL),
		     1);
	return sim;
}

/* Asserts what node 1 says of a message from @src (NULL: any) to @dst: @want
 * has the situation with the path or the error, and a line for each candidate.
 */
static void explains(struct lnet_sim *sim, const char *src, const char *dst,
		     const char *want)
{
	struct ulnet_nid from =
		src ? nid_of(src) : (struct ulnet_nid)LNET_NID_ANY;
	struct ulnet_nid to = nid_of(dst);
	struct ulnet_path_candidate c[16];
	char text[2048], line[256], a[LNET_NIDSTR_SIZE], b[LNET_NIDSTR_SIZE];
	struct ulnet_path path;
	int n = lnet_path_explain(lnet_sim_node(sim, 1), &from, &to, &path, c,
				  16);

	cr_assert_geq(n, 0);
	cr_assert_eq(path.ncandidates, (unsigned int)n);
	cr_assert(lnet_nid_is_any(&path.gateway));
	snprintf(text, sizeof(text), "%s: ", path.situation);
	if (path.status)
		strcat(text, strerror(-path.status));
	else
		snprintf(text + strlen(text), 256, "%s > %s",
			 lnet_nid_format(&path.local, a, sizeof(a)),
			 lnet_nid_format(&path.peer, b, sizeof(b)));
	for (int i = 0; i < n; i++) {
		strcat(text, "\n");
		strcat(text,
		       lnet_path_candidate_format(&c[i], line, sizeof(line)));
	}
	cr_assert_str_eq(text, want);
}

Test(explain, what_would_be_chosen_and_why_not_the_others)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts += 3) {
		struct lnet_sim *sim = three_nis(cpts);
		const struct ulnet_nid second = nid_of("10.0.1.2@tcp");

		/* Explaining changes nothing, so the next answer is the same.
		 */
		for (unsigned int i = 0; i < 3; i++)
			explains(sim, NULL, "10.0.0.1@tcp",
				 "any local NI, peer on our nets: "
				 "10.0.0.2@tcp > 10.0.0.1@tcp\n"
				 "local NI 10.0.0.2@tcp: chosen\n"
				 "local NI 10.0.1.2@tcp: the chosen one has "
				 "its turn\n"
				 "peer NI 10.0.0.1@tcp: chosen");
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS,
			  source, 1);
		lnet_sim_run_all(sim);
		explains(sim, NULL, "10.0.0.1@tcp",
			 "any local NI, peer on our nets: "
			 "10.0.0.2@tcp > 10.0.0.1@tcp\n"
			 "local NI 10.0.0.2@tcp: chosen\n"
			 "local NI 10.0.1.2@tcp: the chosen one is preferred\n"
			 "peer NI 10.0.0.1@tcp: chosen");
		cr_assert_eq(lnet_sim_ni_set(sim, &second, false), 0);
		explains(sim, "10.0.0.2@tcp", "10.0.0.1@tcp",
			 "local NI named, peer on its net: "
			 "10.0.0.2@tcp > 10.0.0.1@tcp\n"
			 "local NI 10.0.0.2@tcp: chosen\n"
			 "local NI 10.0.1.2@tcp: down\n"
			 "peer NI 10.0.0.1@tcp: chosen");
		cluster_end(sim);
	}
}

Test(explain, by_credits)
{
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = three_nis(1);

	cluster_links(sim, &stalled);
	for (unsigned int i = 0; i < 3; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS,
			  source, 1);
	lnet_sim_run(sim, MSEC);
	explains(sim, NULL, "10.0.0.7@tcp",
		 "any local NI, peer on our nets: "
		 "10.0.1.2@tcp > 10.0.0.7@tcp\n"
		 "local NI 10.0.0.2@tcp: the chosen one has more credits "
		 "(256 against 253)\n"
		 "local NI 10.0.1.2@tcp: chosen\n"
		 "peer NI 10.0.0.7@tcp: chosen");
	cluster_end(sim);
}

Test(explain, without_a_path)
{
	struct lnet_sim *sim = three_nis(2);
	const struct ulnet_nid third = nid_of("10.1.0.2@tcp1");

	explains(sim, NULL, "10.0.0.1@tcp5",
		 "any local NI, peer elsewhere: No route to host");
	explains(sim, "10.0.0.2@tcp", "10.0.0.1@tcp5",
		 "local NI named, peer elsewhere: No route to host");
	explains(sim, "10.0.7.7@tcp", "10.0.0.1@tcp",
		 "no such local NI: Invalid argument");
	cr_assert_eq(lnet_sim_ni_set(sim, &third, false), 0);
	explains(sim, NULL, "10.1.0.1@tcp1",
		 "any local NI, peer on our nets: Network is down\n"
		 "local NI 10.1.0.2@tcp1: down");
	explains(sim, NULL, "10.1.0.2@tcp1", "this node itself: 0@lo > 0@lo");
	cluster_end(sim);
}

/* Candidates that there is no room for are counted, too. */
Test(explain, room)
{
	struct lnet_sim *sim = three_nis(1);
	const struct ulnet_nid dst = nid_of("10.0.0.1@tcp");
	const struct ulnet_nid any = LNET_NID_ANY;
	struct ulnet_path_candidate c[2] = { { .why = LNET_PATH_WHY_COUNT },
					     { .why = LNET_PATH_WHY_COUNT } };
	struct ulnet_path path = { .status = 1 };
	struct lnet *node = lnet_sim_node(sim, 1);

	cr_assert_eq(lnet_path_explain(node, NULL, &dst, &path, c, 1), 3);
	cr_assert_eq(path.status, 0);
	cr_assert_eq(c[0].why, LNET_PATH_CHOSEN);
	cr_assert_eq(c[1].why, LNET_PATH_WHY_COUNT);
	path.status = 1;
	cr_assert_eq(lnet_path_explain(node, NULL, &any, &path, NULL, 0),
		     -EINVAL);
	cr_assert_eq(path.status, 1);
	cluster_end(sim);
}
