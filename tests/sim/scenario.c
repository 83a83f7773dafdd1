/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster.h"

#define NODES_MAX  6
#define OPERATIONS 600

/* What the portals are for, on every node. */
enum {
	PORTAL_SINK = 4,   /* PUTs from anybody, packed into large buffers */
	PORTAL_SOURCE = 5, /* GETs from anybody */
	PORTAL_LAZY = 6,   /* PUTs; buffers come late */
	PORTAL_ONE = 7,	   /* PUTs of one peer, unique entries, used once */
	PORTAL_NOBODY = 8, /* nothing is attached */
	PORTAL_ECHO = 9,   /* PUTs that are answered by a PUT to PORTAL_SINK */
};

#define SINK_SIZE UINT32_C(262144)
#define ONE_SIZE  UINT32_C(20480) /* some PUTs are truncated */
#define ONES	  16		  /* unique entries for each peer, at a time */

const unsigned int scenario_seeds_long = 1000;

bool scenario_is_for(const char *mutation)
{
	return strncmp(mutation, "rpc_", 4) != 0;
}

struct run;

struct member {
	struct run *run;
	unsigned int index;
	unsigned int nnids;
	struct ulnet_nid nids[RAILS_MAX];
	bool deleted[RAILS_MAX];
	struct use *uses; /* MDs that live in it */
};

/* An MD with its buffer, from attach or bind to its last event. */
struct use {
	struct use *next, **prev;
	struct member *m;
	struct ulnet_md_handle md;
	char *buf;
	uint32_t size;
	int portal; /* passive; -1: active */
	uint64_t pattern;
	unsigned int peer; /* PORTAL_ONE */
	uint64_t bits;
	bool get;
};

#define DISTURBANCES 10

struct run {
	struct lnet_sim *sim;
	struct splits splits;
	struct member members[NODES_MAX];
	unsigned int n;
	unsigned int left; /* operations to begin */
	uint64_t next_pattern;
	bool over;
	bool slow;		/* much is on its way at any time */
	bool harsh;		/* every fault, all the time */
	struct ulnet_conf conf; /* of all nodes */
	uint64_t disturbed[DISTURBANCES];
};

static uint64_t rnd(struct run *r, uint64_t below)
{
	return lnet_sim_random(r->sim, below);
}

static bool chance(struct run *r, unsigned int percent)
{
	return rnd(r, 100) < percent;
}

/* ---- MDs ---- */

static struct use *use_new(struct member *m, uint32_t size)
{
	struct use *u = calloc(1, sizeof(*u));

	if (!u)
		abort();
	u->m = m;
	u->size = size;
	u->buf = lnet_sim_buf(m->run->sim, size ? size : 1);
	u->next = m->uses;
	u->prev = &m->uses;
	if (u->next)
		u->next->prev = &u->next;
	m->uses = u;
	return u;
}

/* LNet has said, or its process is dead: nobody touches the buffer again. */
static void use_end(struct use *u)
{
	*u->prev = u->next;
	if (u->next)
		u->next->prev = u->prev;
	lnet_sim_buf_retire(u->m->run->sim, u->buf);
	free(u);
}

static struct lnet *node_of(struct member *m)
{
	return lnet_sim_node(m->run->sim, m->index);
}

/* ---- passive side ---- */

static void post(struct lnet *node, struct member *m, int portal,
		 unsigned int peer, uint64_t bits);

static void echo(struct member *m, const struct ulnet_event *ev);

static void check_put(struct use *u, const struct ulnet_event *ev)
{
	if (ev->status == 0 &&
	    !pattern_holds(u->buf + ev->offset, ev->mlength, ev->hdr_data))
		lnet_sim_fail(u->m->run->sim,
			      "node %u: PUT on portal %u with wrong contents",
			      u->m->index, ev->portal);
}

static void on_passive(const struct ulnet_event *ev)
{
	struct use *u = ev->user_ptr;
	struct member *m = u->m;
	struct lnet *node = ev->md.node;

	if (ev->type == LNET_EVENT_PUT) {
		check_put(u, ev);
		if (u->portal == PORTAL_ECHO && ev->status == 0)
			echo(m, ev);
	}
	if (!ev->unlinked)
		return;
	if (!m->run->over)
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
		md->max_size = SINK_SIZE / 8;
		break;
	}
}

static void post(struct lnet *node, struct member *m, int portal,
		 unsigned int peer, uint64_t bits)
{
	struct ulnet_id who = { LNET_NID_ANY, LNET_PID_ANY };
	bool once = portal == PORTAL_ONE || portal == PORTAL_LAZY;
	struct use *u = use_new(m, once ? ONE_SIZE : SINK_SIZE);
	struct ulnet_me_handle me;
	struct ulnet_md md;
	int rc;

	u->portal = portal;
	u->peer = peer;
	u->bits = bits;
	if (portal == PORTAL_ONE)
		who = (struct ulnet_id){ m->run->members[peer].nids[0],
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

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct run *r = arg;
	struct member *m = &r->members[index];

	m->run = r;
	m->index = index;
	memset(m->deleted, 0, sizeof(m->deleted));
	LNetSetLazyPortal(node, PORTAL_LAZY);
	post(node, m, PORTAL_SINK, 0, 0);
	post(node, m, PORTAL_SINK, 0, 0);
	post(node, m, PORTAL_SOURCE, 0, 0);
	post(node, m, PORTAL_ECHO, 0, 0);
	for (unsigned int p = 0; p < r->n; p++)
		for (unsigned int i = 0; i < ONES; i++)
			post(node, m, PORTAL_ONE, p, i);
	return 0;
}

/* ---- active side ---- */

static void again(struct member *m, const struct ulnet_event *ev);

static void on_active(const struct ulnet_event *ev)
{
	struct use *u = ev->user_ptr;

	if (ev->type == LNET_EVENT_REPLY && ev->status == 0 &&
	    !pattern_holds(u->buf, ev->mlength, u->pattern))
		lnet_sim_fail(u->m->run->sim,
			      "node %u: REPLY with wrong contents",
			      u->m->index);
	/* It ended before its MD was used up. */
	if (ev->terminal && !ev->unlinked)
		LNetMDUnlink(ev->md);
	if (ev->terminal && ev->outcome == LNET_OUTCOME_NOT_DELIVERED)
		again(u->m, ev);
	if (ev->unlinked)
		use_end(u);
}

static uint32_t size_of_put(struct run *r)
{
	static const uint32_t sizes[] = { 0, 1, 64, 4096, 4097, 30000 };

	return sizes[rnd(r, sizeof(sizes) / sizeof(sizes[0]))];
}

static void put(struct member *m, struct ulnet_nid self, struct ulnet_id to,
		unsigned int portal, uint64_t bits, bool ack)
{
	struct run *r = m->run;
	struct use *u = use_new(m, size_of_put(r));
	struct ulnet_md md = { .start = u->buf,
			       .length = u->size,
			       .threshold = ack ? 2 : 1,
			       .user_ptr = u,
			       .handler = on_active,
			       .timeout = 1000 + rnd(r, 2000000) };
	int rc;

	u->portal = -1;
	u->pattern = ++r->next_pattern;
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

static void get(struct member *m, struct ulnet_id to, uint32_t offset)
{
	struct run *r = m->run;
	struct use *u = use_new(m, (uint32_t)rnd(r, 100000));
	struct ulnet_md md = { .start = u->buf,
			       .length = u->size,
			       .threshold = 2,
			       .user_ptr = u,
			       .handler = on_active,
			       .timeout = 1000 + rnd(r, 2000000) };
	int rc;

	u->portal = -1;
	u->pattern = 0;
	u->get = true;
	rc = LNetMDBind(node_of(m), &md, LNET_UNLINK, &u->md);
	if (rc) {
		use_end(u);
		return;
	}
	/* The pattern repeats with 65536 bytes. */
	rc = LNetGet(LNET_NID_ANY, u->md, to, PORTAL_SOURCE, 0, offset);
	if (rc)
		LNetMDUnlink(u->md);
}

/* From within a handler, on whatever CPT it runs. */
static void echo(struct member *m, const struct ulnet_event *ev)
{
	struct ulnet_id to = { ev->source, ev->initiator.pid };

	if (node_of(m))
		put(m, LNET_NID_ANY, to, PORTAL_SINK, 1, true);
}

/* Not delivered: sent anew from the handler itself, sometimes. */
static void again(struct member *m, const struct ulnet_event *ev)
{
	struct run *r = m->run;

	if (node_of(m) && r->left && !r->over && chance(r, 50)) {
		r->left--;
		put(m, LNET_NID_ANY, ev->target, PORTAL_SINK, 2, chance(r, 50));
	}
}

static struct member *some_member(struct run *r)
{
	return &r->members[rnd(r, r->n)];
}

static struct ulnet_id some_target(struct run *r)
{
	struct member *to = some_member(r);
	struct ulnet_id id = { to->nids[rnd(r, to->nnids)], LNET_PID_LUSTRE };

	if (chance(r, 5))
		id.nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 1);
	if (chance(r, 3))
		id.nid = LNET_NID_LO;
	return id;
}

static void ping_done(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct member *m = arg;

	if (status == 0 && info->nnis > RAILS_MAX)
		lnet_sim_fail(m->run->sim, "ping: %u NIs", info->nnis);
}

static void operate(struct run *r, struct member *m)
{
	static const unsigned int portals[] = { PORTAL_SINK, PORTAL_SINK,
						PORTAL_ONE,  PORTAL_LAZY,
						PORTAL_ECHO, PORTAL_NOBODY };
	struct ulnet_nid self = LNET_NID_ANY;
	struct ulnet_id to = some_target(r);

	if (chance(r, 10))
		self = m->nids[rnd(r, m->nnids)];
	if (chance(r, 3))
		lnet_ping(node_of(m), to, 1 + rnd(r, 1000000), ping_done, m);
	else if (chance(r, 30))
		get(m, to, (uint32_t)(rnd(r, 4) * 65536));
	else
		put(m, self, to, portals[rnd(r, 6)], rnd(r, ONES),
		    chance(r, 60));
}

/* ---- what happens to the cluster ---- */

static void restart(void *arg)
{
	struct member *m = arg;

	if (!m->run->over)
		lnet_sim_restart(m->run->sim, m->index);
}

static void crash(struct run *r, struct member *m)
{
	if (lnet_sim_crash(r->sim, m->index))
		return;
	while (m->uses)		  /* use_end() takes it off: */
		use_end(m->uses); /* NOLINT(clang-analyzer-unix.Malloc) */
	lnet_sim_at(r->sim, 1 + rnd(r, 100 * MS), restart, m);
}

static void unlink_one(struct run *r, struct member *m)
{
	struct use *u = m->uses;

	for (uint64_t skip = rnd(r, 20); u && skip; skip--)
		u = u->next;
	if (u && u->portal < 0)
		LNetMDUnlink(u->md);
}

static void toggle(struct run *r, struct member *m, unsigned int i)
{
	/* It comes back with so few credits that messages queue. */
	struct ulnet_ni_conf conf = { .nid = m->nids[i],
				      .credits = 1 + (uint32_t)rnd(r, 8),
				      .peer_credits = 1 + (uint32_t)rnd(r, 4) };

	if (m->deleted[i]) {
		if (!lnet_ni_add(node_of(m), &conf))
			m->deleted[i] = false;
	} else if (!lnet_ni_del(node_of(m), &m->nids[i])) {
		m->deleted[i] = true;
	}
}

/* One that is gone comes back, or else one goes. */
static void toggle_ni(struct run *r, struct member *m)
{
	unsigned int i = (unsigned int)rnd(r, m->nnids);

	for (unsigned int k = 0; k < m->nnids; k++)
		if (m->deleted[k])
			i = k;
	toggle(r, m, i);
}

static struct ulnet_nid some_nid(struct run *r)
{
	struct member *m = some_member(r);

	return chance(r, 20) ? LNET_NID_ANY : m->nids[rnd(r, m->nnids)];
}

static void random_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b)
{
	struct ulnet_sim_link l = { .latency =
					    rnd(r, r->slow ? 20 * MS : MS / 5),
				    .jitter =
					    rnd(r, r->slow ? 5 * MS : MS / 10),
				    .reorder_window = rnd(r, 5 * MS) };

	if (chance(r, 50))
		l.bandwidth = 1000000 + rnd(r, 1000000000);
	if (chance(r, 30))
		l.connect = 1 + rnd(r, r->slow ? 50 * MS : MS);
	if (chance(r, 30))
		l.window = 1 + (uint32_t)rnd(r, 16);
	link_faults(r->sim, r->harsh, &l);
	lnet_sim_link_set(r->sim, &a, &b, &l);
}

static void separate(struct run *r)
{
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	split(&r->splits, r->sim, a, b, rnd(r, 50 * MS));
}

static const char *const disturbances[DISTURBANCES] = {
	[0] = "a node crashes",
	[1] = "a partition begins",
	[2] = "an interface goes down",
	[3] = "an interface comes up",
	[5] = "an interface is added, or deleted",
	[6] = "links change",
	[7] = "room for messages is added",
};
/* Some are more frequent. */
static const uint8_t disturbance_of[DISTURBANCES] = { 0, 1, 2, 3, 3,
						      5, 6, 7, 5, 5 };

static void disturb(struct run *r)
{
	struct member *m = some_member(r);
	const struct ulnet_nid *nid = &m->nids[rnd(r, m->nnids)];
	uint64_t which = rnd(r, DISTURBANCES);

	r->disturbed[disturbance_of[which]]++;
	switch (which) {
	case 0:
		crash(r, m);
		break;
	case 1:
		separate(r);
		break;
	case 2:
		lnet_sim_ni_set(r->sim, nid, false);
		break;
	case 3:
	case 4:
		lnet_sim_ni_set(r->sim, nid, true);
		break;
	case 5:
	case 8:
	case 9:
		if (node_of(m))
			toggle_ni(r, m);
		break;
	case 6:
		random_link(r, some_nid(r), some_nid(r));
		break;
	default:
		if (node_of(m))
			post(node_of(m), m, PORTAL_LAZY, 0, rnd(r, ONES));
		break;
	}
}

static void step(void *arg)
{
	struct run *r = arg;
	struct member *m = some_member(r);
	unsigned int burst = chance(r, 10) ? 30 : 1;

	for (; burst && r->left && node_of(m); burst--, r->left--)
		operate(r, m);
	if (chance(r, 15))
		disturb(r);
	m = some_member(r);
	if (chance(r, 10))
		unlink_one(r, m);
	if (node_of(m) && chance(r, 20) &&
	    (m->deleted[0] || m->deleted[1] || m->deleted[2]))
		toggle_ni(r, m);
	lnet_sim_check(r->sim);
	if (r->left)
		lnet_sim_at(r->sim, rnd(r, 5 * MS), step, r);
}

/* ---- setting up ---- */

static int add_member(struct run *r, unsigned int index, unsigned int rails)
{
	struct member *m = &r->members[index];

	m->nnids = rails;
	return cluster_node_add(r->sim, index, rails, m->nids, &r->conf, start,
				r);
}

static int set_up(struct run *r)
{
	unsigned int rails = 1 + (unsigned int)rnd(r, RAILS_MAX);
	bool same = chance(r, 75);
	int rc = 0;

	r->n = 2 + (unsigned int)rnd(r, NODES_MAX - 1);
	r->left = OPERATIONS;
	r->slow = chance(r, 25);
	r->harsh = chance(r, 25);
	lnet_conf_init(&r->conf);
	/* Few messages: peers have their shares of them, and wait. */
	if (chance(r, 40))
		r->conf.messages_max = 8 + (uint32_t)rnd(r, 16);
	/* Little is held: what finds no room stands, or is dropped. */
	if (chance(r, 40))
		r->conf.lazy_max = 1 + (uint32_t)rnd(r, 4);
	for (unsigned int i = 0; i < r->n; i++)
		r->members[i].nids[0] = lnet_nid_make(
			LNET_NET(LNET_TYPE_SOCK, 0), 0x0a000001 + i);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		rc = add_member(r, i,
				same ? rails
				     : 1 + (unsigned int)rnd(r, RAILS_MAX));
	random_link(r, LNET_NID_ANY, LNET_NID_ANY);
	return rc < 0 ? rc : 0;
}

struct run *scenario_new(struct lnet_sim *sim)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->sim = sim;
	return r;
}

int scenario_play(struct run *r)
{
	int rc = set_up(r);

	if (!rc) {
		lnet_sim_at(r->sim, MS, step, r);
		/* Sometimes everything ends in the middle. */
		lnet_sim_run(r->sim, chance(r, 30) ? rnd(r, SEC) : 60 * SEC);
	}
	r->over = true;
	return rc;
}

void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg)
{
	for (unsigned int i = 0; i < DISTURBANCES; i++)
		if (disturbances[i])
			tell(arg, "", disturbances[i], r->disturbed[i]);
}

unsigned int scenario_free(struct run *r)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < NODES_MAX; i++)
		left += r->members[i].uses != NULL;
	free(r);
	return left;
}
