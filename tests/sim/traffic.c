/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/traffic.h"

#include <stdlib.h>

/* The portals of every node. */
enum {
	PORTAL_SINK = 4,   /* PUTs from any peer, packed into large buffers */
	PORTAL_SOURCE = 5, /* GETs from any peer */
	PORTAL_LAZY = 6,   /* PUTs that come before their buffers */
	PORTAL_ONE = 7,	   /* PUTs of one peer; unique entries, used once */
	PORTAL_NOBODY = 8, /* nothing is attached */
	PORTAL_ECHO = 9,   /* PUTs that are answered by a PUT to PORTAL_SINK */
};

#define LARGE	UINT32_C(262144)
#define PATTERN UINT32_C(65536) /* the period of patterns */
/* shorter than some PUTs, which are truncated */
#define ONE_SIZE UINT32_C(20480)
/* unique entries for each peer at the same time */
#define ONES 16

/* An MD with its buffer, from attach or bind to its last event. */
struct use {
	struct use *next, **prev;
	struct talker *m;
	struct ulnet_md_handle md;
	char *buf;
	uint32_t size;
	int portal; /* of passive MDs; -1: active */
	uint64_t pattern;
	unsigned int peer; /* of an MD on PORTAL_ONE */
	uint64_t bits;
	bool get;
};

static uint64_t rnd(struct traffic *t, uint64_t below)
{
	return lnet_sim_random(t->sim, below);
}

static bool chance(struct traffic *t, unsigned int percent)
{
	return rnd(t, 100) < percent;
}

/* ---- MDs ---- */

static struct use *use_new(struct talker *m, uint32_t size)
{
	struct use *u = calloc(1, sizeof(*u));

	if (!u)
		abort();
	u->m = m;
	u->size = size;
	u->buf = lnet_sim_buf(m->traffic->sim, size ? size : 1);
	u->next = m->uses;
	u->prev = &m->uses;
	if (u->next)
		u->next->prev = &u->next;
	m->uses = u;
	return u;
}

/* LNet has given the buffer back, or the process has died: from now on nobody
 * may touch it. */
static void use_end(struct use *u)
{
	*u->prev = u->next;
	if (u->next)
		u->next->prev = u->prev;
	lnet_sim_buf_retire(u->m->traffic->sim, u->buf);
	free(u);
}

static struct lnet *node_of(struct talker *m)
{
	return lnet_sim_node(m->traffic->sim, m->index);
}

/* ---- passive side ---- */

static void post(struct lnet *node, struct talker *m, int portal,
		 unsigned int peer, uint64_t bits);

static void echo(struct talker *m, const struct ulnet_event *ev);

static void check_put(struct use *u, const struct ulnet_event *ev)
{
	if (ev->status == 0 &&
	    !pattern_holds(u->buf + ev->offset, ev->mlength, ev->hdr_data))
		lnet_sim_fail(u->m->traffic->sim,
			      "node %u: PUT on portal %u with wrong contents",
			      u->m->index, ev->portal);
}

static void on_passive(const struct ulnet_event *ev)
{
	struct use *u = ev->user_ptr;
	struct talker *m = u->m;
	struct lnet *node = ev->md.node;

	if (ev->type == LNET_EVENT_PUT) {
		check_put(u, ev);
		if (u->portal == PORTAL_ECHO && ev->status == 0)
			echo(m, ev);
	}
	if (!ev->unlinked)
		return;
	if (!m->traffic->over)
		post(node, m, u->portal, u->peer, u->bits);
	use_end(u);
}

static void passive_md(struct use *u, struct ulnet_md *md)
{
	*md = (struct ulnet_md){ .start = u->buf,
				 .length = u->size,
				 .threshold = LNET_MD_THRESH_INF,
				 .user_ptr = u,
				 .handler = on_passive };
	switch (u->portal) {
	case PORTAL_SOURCE:
		md->options = LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE |
			      LNET_MD_TRUNCATE;
		md->threshold = 20;
		pattern_fill(u->buf, u->size, 0);
		break;
	case PORTAL_ONE:
	case PORTAL_LAZY:
		md->options = LNET_MD_OP_PUT | LNET_MD_TRUNCATE;
		md->threshold = 1;
		break;
	default:
		md->options = LNET_MD_OP_PUT | LNET_MD_MAX_SIZE;
		md->max_size = u->m->traffic->large / 8;
		break;
	}
}

static void post(struct lnet *node, struct talker *m, int portal,
		 unsigned int peer, uint64_t bits)
{
	struct ulnet_id who = { LNET_NID_ANY, LNET_PID_ANY };
	bool once = portal == PORTAL_ONE || portal == PORTAL_LAZY;
	struct use *u = use_new(m, once ? ONE_SIZE : m->traffic->large);
	struct ulnet_me_handle me;
	struct ulnet_md md;
	int rc;

	u->portal = portal;
	u->peer = peer;
	u->bits = bits;
	if (portal == PORTAL_ONE)
		who = (struct ulnet_id){ m->traffic->talkers[peer].nids[0],
					 LNET_PID_LUSTRE };
	rc = LNetMEAttach(node, (unsigned int)portal, who, bits,
			  portal == PORTAL_SINK ? UINT64_MAX : 0, LNET_UNLINK,
			  LNET_INS_AFTER, &me);
	passive_md(u, &md);
	if (!rc)
		rc = LNetMDAttach(me, &md, LNET_UNLINK, &u->md);
	if (rc)
		use_end(u); /* the node is closing */
}

void traffic_start(struct traffic *t, unsigned int index, struct lnet *node)
{
	struct talker *m = &t->talkers[index];

	LNetSetLazyPortal(node, PORTAL_LAZY);
	post(node, m, PORTAL_SINK, 0, 0);
	post(node, m, PORTAL_SINK, 0, 0);
	post(node, m, PORTAL_SOURCE, 0, 0);
	post(node, m, PORTAL_ECHO, 0, 0);
	for (unsigned int p = 0; p < t->one_peers; p++)
		for (unsigned int i = 0; i < ONES; i++)
			post(node, m, PORTAL_ONE, p, i);
}

/* ---- active side ---- */

static void again(struct talker *m, const struct ulnet_event *ev);

static void on_active(const struct ulnet_event *ev)
{
	struct use *u = ev->user_ptr;

	if (ev->type == LNET_EVENT_REPLY && ev->status == 0 &&
	    !pattern_holds(u->buf, ev->mlength, u->pattern))
		lnet_sim_fail(u->m->traffic->sim,
			      "node %u: REPLY with wrong contents",
			      u->m->index);
	/* The operation ended before its MD was used up. */
	if (ev->terminal && !ev->unlinked)
		LNetMDUnlink(ev->md);
	if (ev->terminal && ev->outcome == LNET_OUTCOME_NOT_DELIVERED)
		again(u->m, ev);
	if (ev->unlinked)
		use_end(u);
}

static uint32_t size_of_put(struct traffic *t)
{
	static const uint32_t sizes[] = { 0, 1, 64, 4096, 4097, 30000 };
	unsigned int n = 6;

	while (sizes[n - 1] > t->large / 8)
		n--;
	return sizes[rnd(t, n)];
}

static void put(struct talker *m, struct ulnet_nid self, struct ulnet_id to,
		unsigned int portal, uint64_t bits, bool ack)
{
	struct traffic *t = m->traffic;
	struct use *u = use_new(m, size_of_put(t));
	struct ulnet_md md = { .start = u->buf,
			       .length = u->size,
			       .threshold = ack ? 2 : 1,
			       .user_ptr = u,
			       .handler = on_active,
			       .timeout = 1000 + rnd(t, 2000000) };
	int rc;

	u->portal = -1;
	u->pattern = ++t->next_pattern;
	pattern_fill(u->buf, u->size, u->pattern);
	rc = LNetMDBind(node_of(m), &md, LNET_UNLINK, &u->md);
	if (!rc) {
		rc = LNetPut(self, u->md, ack ? LNET_ACK_REQ : LNET_NOACK_REQ,
			     to, portal, bits, 0, u->pattern);
		if (rc)
			LNetMDUnlink(u->md);
	} else {
		use_end(u);
	}
}

static void get(struct talker *m, struct ulnet_id to, uint32_t offset)
{
	struct traffic *t = m->traffic;
	struct use *u = use_new(m, (uint32_t)rnd(t, 100000));
	struct ulnet_md md = { .start = u->buf,
			       .length = u->size,
			       .threshold = 2,
			       .user_ptr = u,
			       .handler = on_active,
			       .timeout = 1000 + rnd(t, 2000000) };
	int rc;

	u->portal = -1;
	u->pattern = 0;
	u->get = true;
	rc = LNetMDBind(node_of(m), &md, LNET_UNLINK, &u->md);
	if (rc) {
		use_end(u);
		return;
	}
	rc = LNetGet(LNET_NID_ANY, u->md, to, PORTAL_SOURCE, 0, offset);
	if (rc)
		LNetMDUnlink(u->md);
}

/* Sends a PUT from within a handler, on whatever CPT that runs. */
static void echo(struct talker *m, const struct ulnet_event *ev)
{
	struct ulnet_id to = { ev->source, ev->initiator.pid };

	if (node_of(m))
		put(m, LNET_NID_ANY, to, PORTAL_SINK, 1, true);
}

/* A message that was not delivered is sometimes sent again, from the handler
 * itself. */
static void again(struct talker *m, const struct ulnet_event *ev)
{
	struct traffic *t = m->traffic;

	if (node_of(m) && t->left && !t->over && chance(t, 50)) {
		t->left--;
		put(m, LNET_NID_ANY, ev->target, PORTAL_SINK, 2, chance(t, 50));
	}
}

static struct talker *some_talker(struct traffic *t)
{
	return &t->talkers[rnd(t, t->n)];
}

static struct ulnet_id some_target(struct traffic *t)
{
	struct talker *to = some_talker(t);
	struct ulnet_id id = { to->nids[rnd(t, to->nnids)], LNET_PID_LUSTRE };

	if (chance(t, 5))
		id.nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 1);
	if (chance(t, 3))
		id.nid = LNET_NID_LO;
	return id;
}

static void ping_done(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct talker *m = arg;

	if (status == 0 && info->nnis > RAILS_MAX)
		lnet_sim_fail(m->traffic->sim, "ping: %u NIs", info->nnis);
}

static void operate(struct traffic *t, struct talker *m)
{
	static const unsigned int portals[] = { PORTAL_SINK, PORTAL_SINK,
						PORTAL_ONE,  PORTAL_LAZY,
						PORTAL_ECHO, PORTAL_NOBODY };
	struct ulnet_nid self = LNET_NID_ANY;
	struct ulnet_id to = some_target(t);

	if (chance(t, 10))
		self = m->nids[rnd(t, m->nnids)];
	if (chance(t, 3))
		lnet_ping(node_of(m), to, 1 + rnd(t, 1000000), ping_done, m);
	else if (chance(t, 30))
		get(m, to, (uint32_t)rnd(t, t->large / PATTERN) * PATTERN);
	else
		put(m, self, to, portals[rnd(t, 6)], rnd(t, ONES),
		    chance(t, 60));
}

void traffic_go(struct traffic *t, unsigned int index, unsigned int n)
{
	struct talker *m = &t->talkers[index];

	for (; n && t->left && node_of(m); n--, t->left--)
		operate(t, m);
}

/* ---- what scenarios call ---- */

void traffic_unlink(struct traffic *t, unsigned int index)
{
	struct use *u = t->talkers[index].uses;

	for (uint64_t skip = rnd(t, 20); u && skip; skip--)
		u = u->next;
	if (u && u->portal < 0)
		LNetMDUnlink(u->md);
}

void traffic_post(struct traffic *t, unsigned int index)
{
	struct talker *m = &t->talkers[index];

	if (node_of(m))
		post(node_of(m), m, PORTAL_LAZY, 0, rnd(t, ONES));
}

void traffic_crashed(struct traffic *t, unsigned int index)
{
	struct talker *m = &t->talkers[index];

	while (m->uses)		  /* use_end() takes the MD off the list */
		use_end(m->uses); /* NOLINT(clang-analyzer-unix.Malloc) */
}

void traffic_init(struct traffic *t, struct lnet_sim *sim, unsigned int n,
		  unsigned int left)
{
	*t = (struct traffic){ .sim = sim,
			       .n = n,
			       .left = left,
			       .large = n < NODES_MANY ? LARGE : PATTERN,
			       .one_peers = n < 6	     ? n
					    : n < NODES_MANY ? 6
							     : 1 };
	t->talkers = calloc(n, sizeof(*t->talkers));
	if (!t->talkers)
		abort();
}

void traffic_add(struct traffic *t, unsigned int index,
		 const struct ulnet_nid *nids, unsigned int nnids)
{
	t->talkers[index] = (struct talker){
		.traffic = t, .index = index, .nids = nids, .nnids = nnids
	};
}

unsigned int traffic_fini(struct traffic *t)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < t->n; i++)
		left += t->talkers[i].uses != NULL;
	free(t->talkers);
	return left;
}
