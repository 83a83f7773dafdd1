/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of LNet share: small simulated clusters, and records of the
 * events that MDs get. */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include "base/util.h"
#include "ulnet/lnet.h"
#include "ulnet/sim.h"

#define SEEN_MAX 600
#define ANY_ID	 ((struct ulnet_id){ LNET_NID_ANY, LNET_PID_ANY })
#define MSEC	 UINT64_C(1000000)

/* The events that one or several MDs have got. */
struct seen {
	unsigned int n;
	struct ulnet_event ev[SEEN_MAX];
};

/* Handler of MDs whose user_ptr is a struct seen. */
static inline void see(const struct ulnet_event *ev)
{
	struct seen *s = ev->user_ptr;

	cr_assert_lt(s->n, SEEN_MAX);
	s->ev[s->n++] = *ev;
}

/* Returns the type of the last event, or 0. */
static inline int seen_last(const struct seen *s)
{
	return s->n ? (int)s->ev[s->n - 1].type : 0;
}

/* Asserts that exactly these types of events have come, in this order. The list
 * ends with 0. */
static inline void seen_types(const struct seen *s, ...)
{
	unsigned int i = 0;
	va_list ap;
	int type;

	va_start(ap, s);
	while ((type = va_arg(ap, int))) {
		cr_assert_lt(i, s->n, "event %u, %s, is missing", i,
			     lnet_event_name((enum ulnet_event_type)type));
		cr_assert_eq((int)s->ev[i].type, type, "event %u is %s", i,
			     lnet_event_name(s->ev[i].type));
		i++;
	}
	va_end(ap);
	cr_assert_eq(s->n, i, "there are %u events", s->n);
}

/* Asserts how the one operation ended whose events are in @s: it has one
 * terminal event, which is the last one. */
static inline void seen_end(const struct seen *s, enum ulnet_event_type type,
			    int status, enum ulnet_outcome outcome,
			    enum ulnet_cause cause)
{
	const struct ulnet_event *ev;
	unsigned int terminals = 0;

	for (unsigned int i = 0; i < s->n; i++)
		terminals += s->ev[i].terminal;
	cr_assert_eq(terminals, 1, "%u terminal events", terminals);
	ev = &s->ev[s->n - 1];
	cr_assert(ev->terminal);
	cr_assert_eq(ev->type, type, "ended with %s",
		     lnet_event_name(ev->type));
	cr_assert_eq(ev->status, status, "ended with %d", ev->status);
	cr_assert_eq(ev->outcome, outcome, "ended %s",
		     lnet_outcome_name(ev->outcome));
	cr_assert_eq(ev->cause, cause, "ended by %s",
		     lnet_cause_name(ev->cause));
}

static inline struct ulnet_nid nid_of(const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0, "%s", text);
	return nid;
}

static inline struct ulnet_id id_of(const char *text)
{
	return (struct ulnet_id){ nid_of(text), LNET_PID_LUSTRE };
}

static inline bool nid_is(const struct ulnet_nid *nid, const char *text)
{
	struct ulnet_nid want = nid_of(text);

	return lnet_nid_eq(nid, &want);
}

/* Returns the ID of node number @index of a cluster. */
static inline struct ulnet_id nth_id(unsigned int index)
{
	char text[LNET_NIDSTR_SIZE];

	snprintf(text, sizeof(text), "10.0.%u.%u@tcp", (index + 1) / 256,
		 (index + 1) % 256);
	return id_of(text);
}

/* As lnet_sim_node_add(), but without discovery, which has tests of its own:
 * the node sends only what the test makes it send. */
static inline int plain_node(struct lnet_sim *sim, const char *nids,
			     const struct ulnet_conf *conf,
			     lnet_sim_start_fn start, void *arg)
{
	struct ulnet_conf plain = { 0 };

	if (conf)
		plain = *conf;
	plain.discovery = LNET_DISCOVERY_OFF;
	return lnet_sim_node_add(sim, nids, &plain, start, arg);
}

/* Adds @n nodes to a new cluster: 10.0.0.1@tcp, 10.0.0.2@tcp, and so on. */
static inline void cluster_nodes(struct lnet_sim *sim, unsigned int n,
				 const struct ulnet_conf *conf)
{
	for (unsigned int i = 0; i < n; i++) {
		char text[LNET_NIDSTR_SIZE];
		struct ulnet_id id = nth_id(i);

		lnet_nid_format(&id.nid, text, sizeof(text));
		cr_assert_eq(plain_node(sim, text, conf, NULL, NULL), (int)i);
	}
}

/* Returns a cluster of @n nodes. */
static inline struct lnet_sim *cluster_with(unsigned int n, unsigned int cpts,
					    const struct ulnet_conf *conf)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	cluster_nodes(sim, n, conf);
	return sim;
}

static inline struct lnet_sim *cluster(unsigned int n)
{
	return cluster_with(n, 1, NULL);
}

/* Runs until nothing is left to happen, asserts that all nodes are sound, and
 * ends the simulation. */
static inline void cluster_end(struct lnet_sim *sim)
{
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

/* Sets all links of the cluster to @link. */
static inline void cluster_links(struct lnet_sim *sim,
				 const struct ulnet_sim_link *link)
{
	const struct ulnet_nid any = LNET_NID_ANY;

	cr_assert_eq(lnet_sim_link_set(sim, &any, &any, link), 0);
}

static inline void link_set(struct lnet_sim *sim, unsigned int from,
			    unsigned int to, const struct ulnet_sim_link *link)
{
	const struct ulnet_id a = nth_id(from), b = nth_id(to);

	cr_assert_eq(lnet_sim_link_set(sim, &a.nid, &b.nid, link), 0);
}

static inline uint64_t counter(struct lnet *node, const char *name)
{
	struct ulnet_stat stats[96];
	int n = lnet_stats(node, stats, ARRAY_SIZE(stats));

	cr_assert_leq(n, (int)ARRAY_SIZE(stats));
	for (int i = 0; i < n; i++)
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	cr_assert_fail("no counter %s", name);
	return 0;
}

static inline struct ulnet_md md_of(void *start, size_t length,
				    uint32_t options, struct seen *seen)
{
	return (struct ulnet_md){ .start = start,
				  .length = (uint32_t)length,
				  .threshold = LNET_MD_THRESH_INF,
				  .options = options,
				  .user_ptr = seen,
				  .handler = seen ? see : NULL };
}

static inline struct ulnet_md_handle bind_md(struct lnet *node,
					     const struct ulnet_md *umd)
{
	struct ulnet_md_handle md;

	cr_assert_eq(LNetMDBind(node, umd, LNET_UNLINK, &md), 0);
	return md;
}

/* Attaches a match entry for everybody and its MD, which is returned. */
static inline struct ulnet_md_handle post_md(struct lnet *node,
					     unsigned int portal, uint64_t bits,
					     const struct ulnet_md *umd)
{
	struct ulnet_md_handle md;
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(node, portal, ANY_ID, bits, 0, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, umd, LNET_UNLINK, &md), 0);
	return md;
}

/* Sends a PUT of @length bytes. Nobody is told how it ends. */
static inline void put_bytes(struct lnet *node, struct ulnet_id target,
			     unsigned int portal, uint64_t bits,
			     const void *bytes, size_t length)
{
	struct ulnet_md umd = md_of((void *)bytes, length, 0, NULL);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	md = bind_md(node, &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, target, portal,
			     bits, 0, 0),
		     0);
}

#endif
