/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that discover each other, and what they know of each other then. */
#ifndef TESTS_DISCOVER_RIG_H
#define TESTS_DISCOVER_RIG_H

#include <stdio.h>

#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77

/* NIDs of two nodes with two nets each, and what view() says of them. */
#define A_RAILS "10.0.0.1@tcp 10.0.0.1@tcp1"
#define B_RAILS "10.0.0.2@tcp 10.0.0.2@tcp1"
#define KNOWS_A "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp1"
#define KNOWS_B "discovered mr: 10.0.0.2@tcp 10.0.0.2@tcp1"

static inline struct ulnet_conf mode_conf(enum ulnet_discovery mode)
{
	return (struct ulnet_conf){ .discovery = mode };
}

static inline void node_mode(struct lnet_sim *sim, const char *nids,
			     enum ulnet_discovery mode)
{
	struct ulnet_conf conf = mode_conf(mode);

	cr_assert_geq(lnet_sim_node_add(sim, nids, &conf, NULL, NULL), 0);
}

/* Adds a node with discovery on, and a buffer for everybody. */
static inline struct lnet *node_on(struct lnet_sim *sim, const char *nids)
{
	static char memory[65536];
	struct ulnet_conf conf = mode_conf(LNET_DISCOVERY_ON);
	int i = lnet_sim_node_add(sim, nids, &conf, NULL, NULL);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_TRUNCATE | LNET_MD_MANAGE_REMOTE,
		      NULL);
	struct lnet *node;

	cr_assert_geq(i, 0);
	node = lnet_sim_node(sim, (unsigned int)i);
	post_md(node, PORTAL, BITS, &umd);
	return node;
}

/* Sends a PUT with an ACK, whose events go to @s. */
static inline void put_from(struct lnet *node, struct ulnet_nid self,
			    const char *nid, uint64_t timeout, struct seen *s)
{
	static char source[64];
	struct ulnet_md umd = md_of(source, sizeof(source), 0, s);

	umd.threshold = 2;
	umd.timeout = timeout;
	cr_assert_eq(LNetPut(self, bind_md(node, &umd), LNET_ACK_REQ,
			     id_of(nid), PORTAL, BITS, 0, 0),
		     0);
}

static inline void put_to(struct lnet *node, const char *nid, uint64_t timeout,
			  struct seen *s)
{
	put_from(node, LNET_NID_ANY, nid, timeout, s);
}

static inline void seen_delivered(const struct seen *s)
{
	seen_end(s, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK);
}

static inline int text_order(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Returns what @node knows of the peer with @nid: "STATE[ mr]: NID NID", with
 * the primary NID first, and the others in alphabetical order; or "nothing". */
static inline const char *view(struct lnet *node, const char *nid)
{
	static struct ulnet_peer_info infos[1024];
	static char out[32768], others[512][LNET_NIDSTR_SIZE];
	struct ulnet_nid asked = nid_of(nid);
	struct ulnet_peer_info of;
	char text[LNET_NIDSTR_SIZE];
	int n = lnet_peers(node, infos, ARRAY_SIZE(infos)), m = 0;
	size_t len;

	if (lnet_peer_info(node, &asked, &of))
		return "nothing";
	len = (size_t)snprintf(
		out, sizeof(out), "%s%s: %s", of.state_name,
		of.multi_rail ? " mr" : "",
		lnet_nid_format(&of.primary, text, sizeof(text)));
	for (int i = 0; i < n; i++)
		if (lnet_nid_eq(&infos[i].primary, &of.primary) &&
		    !lnet_nid_eq(&infos[i].nid, &of.primary))
			lnet_nid_format(&infos[i].nid, others[m++],
					LNET_NIDSTR_SIZE);
	qsort(others, (size_t)m, LNET_NIDSTR_SIZE, text_order);
	for (int i = 0; i < m; i++)
		len += (size_t)snprintf(out + len, sizeof(out) - len, " %s",
					others[i]);
	return out;
}

#define KNOWS(node, nid, want)                          \
	do {                                            \
		const char *is_ = view(node, nid);      \
		cr_assert_str_eq(is_, want, "%s", is_); \
	} while (0)

static inline void discovered_pair(struct lnet_sim *sim, struct lnet **a,
				   struct lnet **b)
{
	static struct seen first;

	first.n = 0;
	*a = node_on(sim, A_RAILS);
	*b = node_on(sim, B_RAILS);
	put_to(*a, "10.0.0.2@tcp", 0, &first);
	lnet_sim_run_all(sim);
	seen_delivered(&first);
	KNOWS(*a, "10.0.0.2@tcp", KNOWS_B);
	KNOWS(*b, "10.0.0.1@tcp", KNOWS_A);
}

#endif
