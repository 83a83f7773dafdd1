/* SPDX-License-Identifier: BSD-3-Clause */
/* A message waits until the NI that it names has answered, and for no other NI.
 */
#include "lnet/message/wire.h"
#include "lnet/peer/provenance.h"
#include "tests/unit/lnet/discovery/discover_rig.h"
#include "ulnet/fault.h"

#define ALWAYS LNET_SIM_ALWAYS
#define SECOND UINT64_C(1000000) /* us */

static struct seen seen, more;

static struct lnet_sim *sim_new(void)
{
	struct lnet_sim *sim;

	memset(&seen, 0, sizeof(seen));
	memset(&more, 0, sizeof(more));
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	return sim;
}

static const char *const theirs[] = { "10.0.0.2@tcp", "10.0.1.2@tcp",
				      "10.0.2.2@tcp", "10.0.3.2@tcp",
				      "10.0.4.2@tcp", "10.0.5.2@tcp" };
#define C_RAILS                                   \
	"10.0.0.2@tcp 10.0.1.2@tcp 10.0.2.2@tcp " \
	"10.0.3.2@tcp 10.0.4.2@tcp 10.0.5.2@tcp"

static void goes_nowhere(struct lnet_sim *sim, const char *to)
{
	const struct ulnet_sim_link dead = { .loss = ALWAYS };
	const struct ulnet_nid any = LNET_NID_ANY, nid = nid_of(to);

	cr_assert_eq(lnet_sim_link_set(sim, &any, &nid, &dead), 0);
}

static void is_asked_slowly(struct lnet *node, const char *nid)
{
	struct ulnet_fault late;

	lnet_fault_init(&late, LNET_FAULT_DELAY);
	late.dest = nid_of(nid);
	late.messages = LNET_FAULT_GET;
	late.latency = SECOND / 2;
	late.rate = 1;
	cr_assert_eq(lnet_fault_add(node, &late), 0);
}

/* Finds two of the peer's NIDs that have not answered yet. */
static void find_unverified(struct lnet *node, const char *two[2])
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(theirs) && n < 2; i++) {
		const struct ulnet_nid nid = nid_of(theirs[i]);
		const struct lnet_peer_ni *p = peer_find(node->cpt[0], &nid);

		if (p && provenance_is_unverified(p))
			two[n++] = theirs[i];
	}
	cr_assert_eq(n, 2);
}

/* A message to an unverified NI waits for the answer of that NI, and not for
 * those of others. */
Test(waiting, an_ni_is_not_waited_for_by_others)
{
	struct lnet_sim *sim = sim_new();
	struct lnet *a = node_on(sim, "10.0.0.1@tcp");
	const char *two[2];

	node_on(sim, C_RAILS);
	put_to(a, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run(sim, 100 * MSEC);
	seen_delivered(&seen);
	memset(&seen, 0, sizeof(seen));
	find_unverified(a, two);
	is_asked_slowly(a, two[0]);
	put_to(a, two[1], 10 * SECOND, &seen);
	put_to(a, two[0], 10 * SECOND, &more);
	lnet_sim_run(sim, 100 * MSEC);
	seen_delivered(&seen);
	cr_assert_eq(more.n, 0);
	lnet_sim_run(sim, 500 * MSEC);
	seen_delivered(&more);
	cluster_end(sim);
}

static void ping_by(struct lnet *node, const char *self, const char *to)
{
	static char sink[1024];
	struct ulnet_md umd = md_of(sink, sizeof(sink), LNET_MD_TRUNCATE, NULL);

	umd.threshold = 2;
	cr_assert_eq(LNetGet(nid_of(self), bind_md(node, &umd), id_of(to),
			     PING_PORTAL, PING_MATCH_BITS, 0),
		     0);
}

/* At first contact messages wait until the peer is known, and has got a push.
 * That another NI of the peer sends something meanwhile, and is to be pinged,
 * holds up nobody. */
Test(waiting, first_contact_does_not_wait_for_other_nis)
{
	const struct ulnet_sim_link slow = { .latency = 100 * MSEC };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct ulnet_nid mine = nid_of("10.0.0.1@tcp");
	struct lnet_sim *sim = sim_new();
	struct lnet *a = node_on(sim, "10.0.0.1@tcp");
	struct lnet *b = node_on(sim, C_RAILS);

	cr_assert_eq(lnet_sim_link_set(sim, &mine, &any, &slow), 0);
	put_to(a, "10.0.0.2@tcp", 60 * SECOND, &seen);
	/* The REPLY to the ping has come, the push is in transit. */
	lnet_sim_run(sim, 150 * MSEC);
	goes_nowhere(sim, "10.0.1.2@tcp");
	ping_by(b, "10.0.1.2@tcp", "10.0.0.1@tcp");
	lnet_sim_run(sim, 200 * MSEC);
	seen_delivered(&seen);
	lnet_sim_run_all(sim);
	cluster_end(sim);
}
