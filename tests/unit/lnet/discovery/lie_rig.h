/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node, and a peer that claims NIDs that are not its own.
 *
 * The peer that claims, the "liar", is 10.0.0.66@tcp. It announces only what
 * the test pushes. The NIDs that it claims are mostly those of the "victim",
 * 10.0.0.2@tcp.
 */
#ifndef TESTS_LIE_RIG_H
#define TESTS_LIE_RIG_H

#include <errno.h>

#include "lnet/message/wire.h"
#include "lnet/peer/provenance.h"
#include "tests/unit/lnet/discovery/discover_rig.h"

#define LIAR  "10.0.0.66@tcp"
#define LIARS "discovered mr: 10.0.0.66@tcp"
#define NAMES 200

struct rig {
	struct lnet_sim *sim;
	struct lnet *node, *liar, *victim;
};

static struct seen seen, pushed;
static uint8_t lie[16 + 16 * (NAMES + 2)];
static size_t lie_length;

static inline void lie_u32(uint32_t v)
{
	memcpy(lie + lie_length, &v, sizeof(v));
	lie_length += sizeof(v);
}

static inline void lie_nid4(uint64_t nid4, uint32_t status)
{
	memcpy(lie + lie_length, &nid4, sizeof(nid4));
	lie_length += sizeof(nid4);
	lie_u32(status);
	lie_u32(0);
}

static inline void lie_begin(uint32_t nnis)
{
	lie_length = 0;
	lie_u32(0x70696e67);
	lie_u32(0x1e);
	lie_u32(LNET_PID_LUSTRE);
	lie_u32(nnis + 1);
	/* 0@lo, whose status is the number of the announcement */
	lie_nid4(UINT64_C(9) << 48, 100);
}

static inline void lie_nid(const char *text)
{
	const struct ulnet_nid nid = nid_of(text);

	lie_nid4(lnet_nid_to_nid4(&nid), 0x15aac0de);
}

static inline void lie_push_by(struct lnet *from, struct ulnet_nid self,
			       const char *to)
{
	struct ulnet_md umd = md_of(lie, lie_length, 0, &pushed);

	umd.threshold = 2;
	pushed.n = 0;
	cr_assert_eq(LNetPut(self, bind_md(from, &umd), LNET_ACK_REQ, id_of(to),
			     0, PING_MATCH_BITS, 0, 0),
		     0);
}

static inline void lie_push(struct lnet *from, const char *to)
{
	lie_push_by(from, LNET_NID_ANY, to);
}

/* The liar announces NIDs @a and @b. */
static inline void lie_two(const struct rig *r, const char *a, const char *b)
{
	lie_begin(2);
	lie_nid(a);
	lie_nid(b);
	lie_push(r->liar, "10.0.0.1@tcp");
	lnet_sim_run(r->sim, 5 * MSEC);
	cr_assert_eq(seen_last(&pushed), LNET_EVENT_ACK);
}

/* Opens the node, the victim, and the liar. The liar has no buffer, so that it
 * drops what comes to it by mistake. */
static inline struct rig rig_open(unsigned int cpts, const char *victim)
{
	struct rig r;

	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(lnet_sim_new(1, cpts, &r.sim), 0);
	r.node = node_on(r.sim, "10.0.0.1@tcp");
	r.victim = node_on(r.sim, victim);
	node_mode(r.sim, LIAR, LNET_DISCOVERY_OFF);
	r.liar = lnet_sim_node(r.sim, 2);
	return r;
}

/* Makes the link from the node to the victim work, or lose everything. */
static inline void victim_link(const struct rig *r, bool works)
{
	const struct ulnet_sim_link link = { .loss = works ? 0 : 1000000 };
	const struct ulnet_nid node = nid_of("10.0.0.1@tcp");
	const struct ulnet_nid victim = nid_of("10.0.0.2@tcp");

	cr_assert_eq(lnet_sim_link_set(r->sim, &node, &victim, &link), 0);
}

/* As lie_two(), but meanwhile the node cannot ask the victim. */
static inline void lie_unasked(const struct rig *r, const char *a,
			       const char *b)
{
	victim_link(r, false);
	lie_two(r, a, b);
	victim_link(r, true);
}

static inline void delivered(void)
{
	seen_end(&seen, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	memset(&seen, 0, sizeof(seen));
}

/* Sends a message, and asserts that it is acknowledged, when all that it has
 * caused is over. */
static inline void arrives(const struct rig *r, struct lnet *from,
			   const char *to)
{
	put_to(from, to, 0, &seen);
	lnet_sim_run_all(r->sim);
	delivered();
}

static inline struct ulnet_nid primary_of(const struct rig *r, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct ulnet_nid primary;

	cr_assert_eq(lnet_primary(r->node, &nid, &primary), 0);
	return primary;
}

static inline const char *word_of(struct lnet *node, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct lnet_peer_ni *p = peer_find(node->cpt[0], &nid);

	return p ? fsm_name(&p->provenance, peer_provenances) : "unknown";
}

#define WORD(node, nid, want) cr_assert_str_eq(word_of(node, nid), want)

#endif
