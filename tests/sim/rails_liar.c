/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node that lies: in pushes, and in the answers to pings, it claims NIDs of
 * other nodes, of nodes that do not exist, and its own, in any order, as up or
 * down, with any count, complete or truncated. All that holds without the liar
 * must hold with it, and:
 *	- no message for another node reaches it.
 */
#include <stdlib.h>
#include <string.h>

#include "lnet/discovery/info.h"
#include "lnet/message/wire.h"
#include "lnet/portal/match.h"
#include "tests/sim/rpc_run.h"

#define NAMES	8  /* NIDs in a lie, at most */
#define NOBODY	10 /* nodes that are named but do not exist */
#define LIE_MAX (PING_HEADER_SIZE + (NAMES + 1) * PING_ENTRY_SIZE)

struct lie {
	uint8_t bytes[LIE_MAX];
	size_t length;
};

struct liar {
	struct run *run;
	struct lnet *node;
	unsigned int nnids;
	struct ulnet_nid nids[RAILS_MAX];
	struct lie answer; /* to whoever pings it */
};

/* ---- lies ---- */

static void put_u32(struct lie *lie, uint32_t v)
{
	memcpy(lie->bytes + lie->length, &v, sizeof(v));
	lie->length += sizeof(v);
}

static void put_ni(struct lie *lie, uint64_t nid4, uint32_t status)
{
	memcpy(lie->bytes + lie->length, &nid4, sizeof(nid4));
	lie->length += sizeof(nid4);
	put_u32(lie, status);
	put_u32(lie, 0);
}

/* Returns a NID of the liar, of another node, or of no node. */
static struct ulnet_nid some_nid(struct liar *l)
{
	struct run *r = l->run;
	const struct member *m = &r->members[rnd(r, r->n)];
	struct ulnet_nid nids[RAILS_MAX];

	if (chance(r, 30))
		return l->nids[rnd(r, l->nnids)];
	if (chance(r, 80))
		return m->nids[rnd(r, m->nnids)];
	cluster_nids_on(nids, l->nnids,
			NODES_MAX + 1 + (unsigned int)rnd(r, NOBODY), l->nnids);
	return nids[rnd(r, l->nnids)];
}

static uint32_t some_features(struct run *r)
{
	return chance(r, 80)
		       ? LNET_PING_NI_STATUS | LNET_PING_RTE_DISABLED |
				 LNET_PING_MULTI_RAIL | LNET_PING_DISCOVERY
		       : (uint32_t)rnd(r, 0x80);
}

static void lie_make(struct liar *l, struct lie *lie)
{
	struct run *r = l->run;
	uint32_t names = (uint32_t)rnd(r, NAMES + 1);

	lie->length = 0;
	put_u32(lie, chance(r, 95) ? 0x70696e67 : (uint32_t)rnd(r, UINT32_MAX));
	put_u32(lie, some_features(r));
	put_u32(lie, LNET_PID_LUSTRE);
	put_u32(lie, 1 + names + (chance(r, 10) ? (uint32_t)rnd(r, 20) : 0));
	put_ni(lie, UINT64_C(9) << 48,
	       (uint32_t)rnd(r, chance(r, 50) ? 100 : UINT32_MAX));
	for (uint32_t i = 0; i < names; i++) {
		struct ulnet_nid nid = some_nid(l);

		put_ni(lie, lnet_nid_to_nid4(&nid),
		       chance(r, 70) ? 0x15aac0de : 0xdeadface);
	}
	if (chance(r, 10))
		lie->length = rnd(r, lie->length);
}

/* ---- pushes ---- */

struct push {
	struct liar *liar;
	char *buf;
};

static void on_push(const struct ulnet_event *ev)
{
	struct push *p = ev->user_ptr;

	if (!ev->unlinked)
		return;
	lnet_sim_buf_retire(p->liar->run->sim, p->buf);
	free(p);
}

static void push(struct liar *l, struct ulnet_nid to)
{
	struct push *p = calloc(1, sizeof(*p));
	struct ulnet_id id = { to, LNET_PID_LUSTRE };
	struct ulnet_md md = { .threshold = 2,
			       .timeout = LNET_TIME / US,
			       .user_ptr = p,
			       .handler = on_push };
	struct ulnet_md_handle handle;
	struct lie lie;

	if (!p)
		abort();
	lie_make(l, &lie);
	p->liar = l;
	p->buf = lnet_sim_buf(l->run->sim, LIE_MAX);
	memcpy(p->buf, lie.bytes, lie.length);
	md.start = p->buf;
	md.length = (uint32_t)lie.length;
	if (LNetMDBind(l->node, &md, LNET_UNLINK, &handle))
		abort();
	if (LNetPut(LNET_NID_ANY, handle, LNET_ACK_REQ, id, 0, PING_MATCH_BITS,
		    0, 0))
		LNetMDUnlink(handle);
}

void liar_step(struct run *r)
{
	struct liar *l = r->liar;
	const struct member *m = &r->members[rnd(r, r->n)];

	if (!l)
		return;
	tally_count(r, LIE_IS_TOLD);
	lie_make(l, &l->answer);
	l->answer.length = LIE_MAX;
	push(l, m->nids[rnd(r, m->nnids)]);
}

/* ---- what comes to the liar ---- */

static void on_stray(const struct ulnet_event *ev)
{
	const struct liar *l = ev->user_ptr;

	if (ev->type != LNET_EVENT_UNLINK)
		lnet_sim_fail(l->run->sim,
			      "a message for portal %u comes to the liar",
			      ev->portal);
}

static void attach_trap(struct liar *l, unsigned int portal)
{
	const struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	static char nothing[1];
	struct ulnet_md md = {
		.start = nothing,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_TRUNCATE |
			   LNET_MD_MANAGE_REMOTE,
		.user_ptr = l,
		.handler = on_stray,
	};
	struct ulnet_me_handle me;
	struct ulnet_md_handle handle;

	if (LNetMEAttach(l->node, portal, any, 0, UINT64_MAX, LNET_RETAIN,
			 LNET_INS_AFTER, &me) ||
	    LNetMDAttach(me, &md, LNET_RETAIN, &handle))
		abort();
}

/* Attaches a buffer with a lie in front of the one that the node would answer
 * from. */
static int attach_answer(void *arg)
{
	struct liar *l = arg;
	struct lnet_cpt *cpt = node_cpt_here(l->node);
	const struct me_args args = {
		.match_id = { LNET_NID_ANY, LNET_PID_ANY },
		.match_bits = PING_MATCH_BITS,
	};
	const struct ulnet_md umd = {
		.start = l->answer.bytes,
		.length = LIE_MAX,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_OP_GET | LNET_MD_TRUNCATE |
			   LNET_MD_MANAGE_REMOTE,
	};
	struct lnet_me *me;
	struct lnet_md *md;
	int rc = me_attach(cpt, &args, LNET_INS_BEFORE, &me);

	return rc ? rc : me_attach_md(me, &umd, LNET_RETAIN, &md);
}

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct liar *l = arg;
	int rc = 0;

	(void)index;
	l->node = node;
	for (unsigned int i = 1; i < LNET_PORTALS; i++)
		attach_trap(l, i);
	for (unsigned int i = 0; i < lnet_cpts(node) && !rc; i++)
		rc = lnet_call(node, i, attach_answer, l);
	return rc;
}

int liar_new(struct run *r, unsigned int nets)
{
	struct liar *l = calloc(1, sizeof(*l));
	struct ulnet_conf conf;

	if (!l)
		abort();
	l->run = r;
	l->nnids = nets;
	cluster_nids_on(l->nids, nets, NODES_MAX, nets);
	lie_make(l, &l->answer);
	r->liar = l;
	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	return cluster_node_add(r->sim, l->nids, nets, &conf, start, l);
}

void liar_free(struct run *r)
{
	free(r->liar);
}
