/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes with two CPTs each, in threads, over a simulated network on real
 * loops, over TCP, over shared memory, or over simulated queue pairs:
 *
 *	callers (plain threads, two a node): PUT with and without ACK, GET, and
 *		"calls": a PUT that the other side's handler answers by a PUT to
 *		an entry that names it; some to the own node, some through an
 *		event queue that a plain thread polls
 *	watchers: statistics, interfaces, peers, settings, pings
 *	a changer: adds and deletes an NI of another net, changes settings,
 *		resets statistics
 *
 * Request buffers are attached on one CPT only, so half of all requests look
 * for theirs on the other CPT; they are used up and posted again all the time,
 * and what comes meanwhile is held by a lazy portal. NIDs of one node are used
 * on both CPTs of the other before discovery finds out that they are one
 * peer's, and brings them together under traffic, with their connections if the
 * network has any. All contents are verified, and what was sent is counted
 * where it arrives.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lnd/lnds.h"
#include "lnd/simlnd/simlnd.h"
#include "lnet/node/node.h"
#include "tests/port.h"
#include "tests/thread/check.h"

#ifndef OVER_TCP
#define OVER_TCP 0
#endif
#ifndef OVER_O2IB
#define OVER_O2IB 0
#endif
#ifndef OVER_SHM
#define OVER_SHM 0
#endif

#define CPTS	  2
#define NIDS_MAX  32
#define CALLERS	  2
#define OPS	  5000 /* of each caller */
#define WINDOW	  64
#define LAZY_PUTS 400
#define TIMEOUT	  (60 * 1000000) /* us: nothing should take so long */

#define REQUESTS 10 /* lazy; all buffers are on one CPT */
#define ANSWERS	 11 /* entries that name a NID */
#define SOURCE	 12 /* the source of GETs */
#define LATER	 13 /* lazy; buffers come after the messages */

#define SMALL	    4096
#define SOURCE_SIZE 131072
#define BUFFER_SIZE 32768
#define BUFFERS	    3

#define ANSWER_PLEASE (UINT64_C(1) << 63)

/* ---- counting ---- */

struct counter {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t n;
};
#define COUNTER                                                        \
	{                                                              \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 \
	}

static void counter_add(struct counter *c)
{
	pthread_mutex_lock(&c->lock);
	c->n++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void counter_wait(struct counter *c, uint64_t n)
{
	pthread_mutex_lock(&c->lock);
	while (c->n < n)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

/* ---- sides ---- */

struct side {
	unsigned int index;
	struct lnet *node;
	struct side *other;
	struct ulnet_nid nids[NIDS_MAX];
	unsigned int nnids;
	struct ulnet_nid changing; /* the NI that is added and deleted */
	struct ulnet_eq_handle eq;
	uint8_t source[SOURCE_SIZE];
	struct ulnet_me_handle source_me;
	atomic_bool closing;	 /* buffers are not attached again */
	atomic_ullong sent_to;	 /* requests that were sent here */
	struct counter received; /* requests that came */
	struct counter answered; /* answers that were sent, and ended */
	atomic_ullong answers;	 /* answers that were begun */
	struct counter buffers_gone;
	struct counter later; /* PUTs that came before their buffer */
	struct counter later_gone;
	_Atomic uint64_t
		/* requests that came, by the CPT of their buffer's event */
		on_cpt[CPTS];
};

static struct side sides[2] = {
	{ .received = COUNTER,
	  .answered = COUNTER,
	  .buffers_gone = COUNTER,
	  .later = COUNTER,
	  .later_gone = COUNTER },
	{ .received = COUNTER,
	  .answered = COUNTER,
	  .buffers_gone = COUNTER,
	  .later = COUNTER,
	  .later_gone = COUNTER },
};
static atomic_bool traffic_over;

static struct ulnet_id any_id(void)
{
	return (struct ulnet_id){ LNET_NID_ANY, LNET_PID_ANY };
}

static struct ulnet_id id_of(const struct ulnet_nid *nid)
{
	return (struct ulnet_id){ *nid, LNET_PID_LUSTRE };
}

static uint8_t pattern(uint32_t seed, uint32_t i)
{
	return (uint8_t)(seed * 7 + i * 13 + (i >> 8));
}

static void fill(uint8_t *p, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = pattern(seed, i);
}

/* Are these the bytes that @seed makes from offset @at on? */
static bool holds(const uint8_t *p, uint32_t n, uint32_t seed, uint32_t at)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != pattern(seed, at + i))
			return false;
	return true;
}

/* Returns the CPT whose thread this is. */
static int cpt_here(const struct side *s)
{
	for (unsigned int i = 0; i < CPTS; i++)
		if (loop_current() == s->node->loops[i])
			return (int)i;
	return -1;
}

/* ---- answers, from within handlers ---- */

struct answer {
	struct side *s;
	bool ack;
	uint8_t bytes[SMALL];
};

static void answer_event(const struct ulnet_event *ev)
{
	struct answer *a = ev->user_ptr;

	check(cpt_here(a->s) >= 0 && ev->status == 0);
	if (ev->terminal && a->ack)
		check(ev->outcome == LNET_OUTCOME_DELIVERED);
	if (!ev->unlinked)
		return;
	counter_add(&a->s->answered);
	free(a);
}

/* Answers a request with as many bytes, made of the request's seed plus 1. */
static void answer(struct side *s, const struct ulnet_event *ev)
{
	struct answer *a = malloc(sizeof(*a));
	uint32_t seed = (uint32_t)ev->hdr_data;
	struct ulnet_md umd = { .length = ev->mlength,
				.user_ptr = a,
				.handler = answer_event,
				.timeout = TIMEOUT };
	struct ulnet_md_handle md;

	BUG_ON(!a);
	a->s = s;
	a->ack = seed % 2;
	umd.start = a->bytes;
	umd.threshold = a->ack ? 2 : 1;
	fill(a->bytes, ev->mlength, seed + 1);
	atomic_fetch_add(&s->answers, 1);
	if (!check(!LNetMDBind(s->node, &umd, LNET_UNLINK, &md)))
		return;
	check(!LNetPut(ev->target.nid, md,
		       a->ack ? LNET_ACK_REQ : LNET_NOACK_REQ, ev->initiator,
		       ANSWERS, ev->match_bits, 0, seed + 1));
}

/* ---- request buffers: attached on one CPT, again and again ---- */

struct buffer {
	struct side *s;
	struct ulnet_me_handle me;
	uint8_t bytes[BUFFER_SIZE];
};

static struct buffer buffers[2][BUFFERS];

static void buffer_event(const struct ulnet_event *ev);

static int buffer_post(void *arg)
{
	struct buffer *b = arg;
	struct ulnet_md umd = { .start = b->bytes,
				.length = sizeof(b->bytes),
				.threshold = LNET_MD_THRESH_INF,
				.max_size = SMALL,
				.options = LNET_MD_OP_PUT | LNET_MD_MAX_SIZE,
				.user_ptr = b,
				.handler = buffer_event };
	struct ulnet_md_handle md;
	int rc = LNetMEAttach(b->s->node, REQUESTS, any_id(), 0, UINT64_MAX,
			      LNET_UNLINK, LNET_INS_LOCAL, &b->me);

	return rc ? rc : LNetMDAttach(b->me, &umd, LNET_UNLINK, &md);
}

static void buffer_event(const struct ulnet_event *ev)
{
	struct buffer *b = ev->user_ptr;
	struct side *s = b->s;
	int cpt = cpt_here(s);

	if (ev->type == LNET_EVENT_PUT) {
		check(ev->status == 0 && ev->mlength == ev->rlength);
		check(holds(b->bytes + ev->offset, ev->mlength,
			    (uint32_t)ev->hdr_data, 0));
		if (check(cpt >= 0))
			s->on_cpt[cpt]++;
		if (ev->match_bits & ANSWER_PLEASE)
			answer(s, ev);
		counter_add(&s->received);
	}
	if (!ev->unlinked)
		return;
	if (atomic_load(&s->closing))
		counter_add(&s->buffers_gone);
	else
		check(!buffer_post(b));
}

static int buffer_unlink(void *arg)
{
	struct buffer *b = arg;

	/* A buffer that was just used up is not attached again: closing is set.
	 */
	int rc = LNetMEUnlink(b->me);

	return rc == -ENOENT ? 0 : rc;
}

/* ---- GET's source ---- */

static void source_event(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	check(ev->status == 0 && cpt_here(s) >= 0);
	if (ev->unlinked)
		counter_add(&s->buffers_gone);
}

static int source_post(void *arg)
{
	struct side *s = arg;
	struct ulnet_md umd = { .start = s->source,
				.length = SOURCE_SIZE,
				.threshold = LNET_MD_THRESH_INF,
				.options =
					LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE,
				.user_ptr = s,
				.handler = source_event };
	struct ulnet_md_handle md;
	int rc = LNetMEAttach(s->node, SOURCE, any_id(), 1, 0, LNET_RETAIN,
			      LNET_INS_AFTER, &s->source_me);

	return rc ? rc : LNetMDAttach(s->source_me, &umd, LNET_RETAIN, &md);
}

/* ---- operations ---- */

enum kind { PUT_ACK, PUT_NOACK, GET, CALL, KINDS };

struct caller {
	struct side *s;
	unsigned int index;
	pthread_t thread;
	sem_t window;
	struct rng rng;
};

struct op {
	struct caller *c;
	enum kind kind;
	bool queued; /* its events come through the queue */
	uint32_t size, seed, at;
	atomic_uint left; /* MDs that are not unlinked yet */
	unsigned int terminals;
	enum ulnet_outcome outcome;
	bool answered;
	uint8_t *bytes;
	uint8_t answer[SMALL];
};

static void op_put(struct op *o)
{
	struct caller *c = o->c;

	if (atomic_fetch_sub(&o->left, 1) > 1)
		return;
	check(o->terminals == 1);
	if (o->kind == PUT_NOACK)
		check(o->outcome != LNET_OUTCOME_NOT_DELIVERED);
	else
		check(o->outcome == LNET_OUTCOME_DELIVERED);
	check(o->answered == (o->kind == CALL));
	free(o->bytes);
	free(o);
	sem_post(&c->window);
}

static void op_event(const struct ulnet_event *ev)
{
	struct op *o = ev->user_ptr;

	check((cpt_here(o->c->s) >= 0) == !o->queued);
	check(ev->status == 0);
	if (ev->type == LNET_EVENT_REPLY)
		check(ev->mlength == o->size &&
		      holds(o->bytes, o->size, 0, o->at));
	if (ev->terminal) {
		o->terminals++;
		o->outcome = ev->outcome;
	}
	if (ev->unlinked)
		op_put(o);
}

static void op_answer_event(const struct ulnet_event *ev)
{
	struct op *o = ev->user_ptr;

	if (ev->type == LNET_EVENT_PUT) {
		check(ev->status == 0 && ev->mlength == o->size);
		check(holds(o->answer, o->size, o->seed + 1, 0));
		o->answered = true;
	}
	if (ev->unlinked)
		op_put(o);
}

static int op_attach_answer(struct op *o, const struct ulnet_nid *peer,
			    uint64_t bits)
{
	struct lnet *node = o->c->s->node;
	struct ulnet_md umd = { .start = o->answer,
				.length = o->size,
				.threshold = 1,
				.options = LNET_MD_OP_PUT,
				.user_ptr = o,
				.handler = op_answer_event };
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;
	int rc = LNetMEAttach(node, ANSWERS, id_of(peer), bits, 0, LNET_UNLINK,
			      LNET_INS_AFTER, &me);

	return rc ? rc : LNetMDAttach(me, &umd, LNET_UNLINK, &md);
}

static int op_begin_on(struct op *o, const struct ulnet_nid *peer,
		       uint64_t bits)
{
	struct side *s = o->c->s;
	struct ulnet_md umd = { .start = o->bytes,
				.length = o->size,
				.threshold = o->kind == PUT_NOACK ? 1 : 2,
				.user_ptr = o,
				.timeout = TIMEOUT };
	struct ulnet_md_handle md;
	int rc;

	if (o->queued)
		umd.eq = s->eq;
	else
		umd.handler = op_event;
	rc = LNetMDBind(s->node, &umd, LNET_UNLINK, &md);
	if (rc)
		return rc;
	if (o->kind == GET)
		return LNetGet(LNET_NID_ANY, md, id_of(peer), SOURCE, 1, o->at);
	return LNetPut(LNET_NID_ANY, md,
		       o->kind == PUT_NOACK ? LNET_NOACK_REQ : LNET_ACK_REQ,
		       id_of(peer), REQUESTS, bits, 0, o->seed);
}

static void op_run(struct caller *c, uint32_t i)
{
	struct op *o = calloc(1, sizeof(*o));
	/* one in eight goes to the own node */
	struct side *to = rng_below(&c->rng, 8) ? c->s->other : c->s;
	const struct ulnet_nid *peer = &to->nids[rng_below(&c->rng, to->nnids)];
	uint64_t bits = (uint64_t)c->index << 32 | i;

	BUG_ON(!o);
	o->c = c;
	o->kind = (enum kind)rng_below(&c->rng, KINDS);
	o->queued = rng_below(&c->rng, 4) == 0;
	o->size = (uint32_t)rng_below(&c->rng, SMALL + 1);
	if (o->kind == GET && rng_below(&c->rng, 16) == 0)
		o->size *= 16;
	o->at = (uint32_t)rng_below(&c->rng, SOURCE_SIZE - o->size);
	o->seed = (uint32_t)rng_next(&c->rng);
	o->bytes = malloc(o->size + 1);
	BUG_ON(!o->bytes);
	fill(o->bytes, o->size, o->seed);
	atomic_store(&o->left, o->kind == CALL ? 2 : 1);
	if (o->kind == CALL) {
		bits |= ANSWER_PLEASE;
		check(!op_attach_answer(o, peer, bits));
	}
	if (o->kind != GET)
		atomic_fetch_add(&to->sent_to, 1);
	check(!op_begin_on(o, peer, bits));
}

static void *caller_run(void *arg)
{
	struct caller *c = arg;

	for (uint32_t i = 0; i < OPS; i++) {
		sem_wait(&c->window);
		op_run(c, i);
	}
	for (unsigned int i = 0; i < WINDOW; i++)
		sem_wait(&c->window);
	return NULL;
}

/* ---- those who look on ---- */

static void *poller_run(void *arg)
{
	struct side *s = arg;
	struct ulnet_event ev;
	int rc, which;

	do {
		rc = LNetEQPoll(&s->eq, 1, 100000, &ev, &which);
		check(rc == 0 || (rc == 1 && which == 0));
		if (rc == 1)
			op_event(&ev);
	} while (rc == 1 || !atomic_load(&traffic_over));
	return NULL;
}

static void pinged(void *arg, int status, const struct ulnet_ping_info *info)
{
	check(status == 0 && info && info->nnis > 0);
	sem_post(arg);
}

static void look(struct side *s, sem_t *pong, unsigned int round)
{
	const struct ulnet_nid *nid = &s->other->nids[round % s->other->nnids];
	struct ulnet_stat stats[96];
	struct ulnet_setting settings[4];
	struct ulnet_peer_info peer = { 0 }, peers[4];
	struct ulnet_ni_info ni;
	struct ulnet_id id;

	check(lnet_settings(s->node, settings, ARRAY_SIZE(settings)) > 4);
	check(lnet_peers(s->node, peers, ARRAY_SIZE(peers)) >= 0);
	check(lnet_stats(s->node, stats, ARRAY_SIZE(stats)) > 0);
	for (unsigned int i = 0; !lnet_ni_info(s->node, i, &ni); i++)
		check(ni.credits <= (int64_t)ni.credits_max);
	for (unsigned int i = 0; !LNetGetId(s->node, i, &id); i++)
		check(id.pid == LNET_PID_LUSTRE);
	/* Discovery may merge the peer into another one at any time. */
	if (!lnet_peer_info(s->node, nid, &peer))
		check(peer.cpt < CPTS);
	check(!lnet_ping(s->node, id_of(nid), TIMEOUT, pinged, pong));
	sem_wait(pong);
}

static void *watcher_run(void *arg)
{
	sem_t pong;

	sem_init(&pong, 0, 0);
	for (unsigned int i = 0; !atomic_load(&traffic_over); i++)
		look(arg, &pong, i);
	sem_destroy(&pong);
	return NULL;
}

static int ni_add(struct side *s, const struct ulnet_nid *nid)
{
	struct ulnet_ni_conf conf = { .nid = *nid };

	return lnet_ni_add(s->node, &conf);
}

static void *changer_run(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; !atomic_load(&traffic_over); i++) {
		struct side *s = &sides[i % 2];

		check(!ni_add(s, &s->changing));
		check(!lnet_ni_del(s->node, &s->changing));
		check(!lnet_setting_set(s->node, "transaction_timeout",
					60 + i % 7));
		check(!lnet_setting_set(s->node, "retry_count", i % 5));
		check(!lnet_setting_set(s->node, "max_interfaces",
					100 + i % 100));
		check(!lnet_stats_reset(s->node));
	}
	return NULL;
}

/* ---- a lazy portal whose buffer comes late ---- */

struct later {
	struct side *s;
	struct counter sent, ended;
	uint8_t bytes[LAZY_PUTS * 64];
	uint8_t payload[64];
	bool seen[LAZY_PUTS];
};

static struct later later[2] = { { .sent = COUNTER, .ended = COUNTER },
				 { .sent = COUNTER, .ended = COUNTER } };

static void later_sent(const struct ulnet_event *ev)
{
	struct later *l = ev->user_ptr;

	check(ev->status == 0);
	if (ev->type == LNET_EVENT_SEND)
		counter_add(&l->sent);
	if (ev->terminal) {
		check(ev->outcome == LNET_OUTCOME_DELIVERED);
		counter_add(&l->ended);
	}
}

static void later_came(const struct ulnet_event *ev)
{
	struct later *l = ev->user_ptr;

	if (ev->type == LNET_EVENT_PUT) {
		check(ev->status == 0 && ev->hdr_data < LAZY_PUTS);
		check(!l->seen[ev->hdr_data % LAZY_PUTS]);
		l->seen[ev->hdr_data % LAZY_PUTS] = true;
		check(holds(l->bytes + ev->offset, ev->mlength, 5, 0));
		counter_add(&l->s->other->later);
	}
	if (ev->unlinked)
		counter_add(&l->s->other->later_gone);
}

/* Runs on the CPT where the buffer shall be. */
static int later_post(void *arg)
{
	struct later *l = arg;
	struct lnet *node = l->s->other->node;
	struct ulnet_md umd = { .start = l->bytes,
				.length = sizeof(l->bytes),
				.threshold = LAZY_PUTS,
				.options = LNET_MD_OP_PUT,
				.user_ptr = l,
				.handler = later_came };
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;
	int rc = LNetMEAttach(node, LATER, any_id(), 9, 0, LNET_UNLINK,
			      LNET_INS_LOCAL, &me);

	return rc ? rc : LNetMDAttach(me, &umd, LNET_UNLINK, &md);
}

static void later_run(struct side *s)
{
	struct later *l = &later[s->index];
	struct side *to = s->other;
	struct ulnet_md umd = { .start = l->payload,
				.length = sizeof(l->payload),
				.threshold = 2 * LAZY_PUTS,
				.user_ptr = l,
				.handler = later_sent,
				.timeout = TIMEOUT };
	struct ulnet_md_handle md;

	l->s = s;
	fill(l->payload, sizeof(l->payload), 5);
	check(!LNetSetLazyPortal(to->node, LATER));
	if (!check(!LNetMDBind(s->node, &umd, LNET_UNLINK, &md)))
		return;
	for (unsigned int i = 0; i < LAZY_PUTS; i++)
		check(!LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ,
			       id_of(&to->nids[i % to->nnids]), LATER, 9, 0,
			       i));
	counter_wait(&l->sent, LAZY_PUTS);
	check(to->later.n == 0);
	check(!lnet_call(to->node, s->index, later_post, l));
	counter_wait(&to->later, LAZY_PUTS);
	counter_wait(&to->later_gone, 1);
	counter_wait(&l->ended, LAZY_PUTS);
}

/* ---- life ---- */

/* The program is built four times: over the simulator's network, over TCP, over
 * shared memory, and over queue pairs. */
#if OVER_TCP
#define NID_BASE 0x7f000000u /* 127.0.0.0 */
#define NET_TYPE LNET_TYPE_SOCK

static void lnd_choose(struct node_params *p, struct sim_net *net)
{
	static uint16_t port;

	(void)net;
	if (!port)
		port = free_port();
	p->lnd = &socklnd;
	p->conf.port = port;
	p->conf.accept = LNET_ACCEPT_ALL;
}

static void lnd_done(void)
{
}
#elif OVER_SHM
/* the numbers of this process, which no node gets that is to have any */
#define NID_BASE (UINT32_C(1) << 31 | (uint32_t)getpid() << 8)
#define NID_SIDE 64
#define NET_TYPE LNET_TYPE_SHM

static void lnd_choose(struct node_params *p, struct sim_net *net)
{
	(void)net;
	p->lnd = &shmlnd;
}

static void lnd_done(void)
{
}
#elif OVER_O2IB
#define NID_BASE 0x0a000000u
#define NET_TYPE LNET_TYPE_O2IB

#include "tests/thread/ferry.h"

static struct ferry *ferry;

static void lnd_choose(struct node_params *p, struct sim_net *net)
{
	(void)net;
	if (!ferry)
		ferry = ferry_new(NULL);
	p->fabric = ferry_fabric(ferry);
}

static void lnd_done(void)
{
	check(ferry_free(ferry));
}
#else
#define NID_BASE 0u
#define NET_TYPE LNET_TYPE_SOCK

static void lnd_choose(struct node_params *p, struct sim_net *net)
{
	p->lnd = &simlnd;
	p->lnd_net = net;
}

static void lnd_done(void)
{
}
#endif

/* from the numbers of one side to those of the next */
#ifndef NID_SIDE
#define NID_SIDE 256
#endif

static int side_open(struct side *s, struct sim_net *net)
{
	struct node_params p = { .lnds = open_lnds };

	s->index = (unsigned int)(s - sides);
	s->other = &sides[1 - s->index];
	s->changing = lnet_nid_make(LNET_NET(NET_TYPE, 9),
				    NID_BASE + 3 * NID_SIDE + s->index + 1);
	fill(s->source, SOURCE_SIZE, 0);
	lnet_conf_init(&p.conf);
	p.conf.cpts = CPTS;
	lnd_choose(&p, net);
	return node_open(&p, &s->node);
}

static int side_add_nid(struct side *s)
{
	struct ulnet_nid *nid = &s->nids[s->nnids];

	*nid = lnet_nid_make(LNET_NET(NET_TYPE, 0),
			     NID_BASE + (s->index + 1) * NID_SIDE + s->nnids +
				     1);
	s->nnids++;
	return ni_add(s, nid);
}

/* Do both CPTs of @s own some of the other side's NIDs, and some of its own? */
static bool spread(const struct side *s)
{
	unsigned int seen[2] = { 0, 0 };

	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < sides[side].nnids; i++)
			seen[side] |= 1u << lnet_cpt_of(s->node,
							&sides[side].nids[i]);
	return seen[0] == 3 && seen[1] == 3;
}

static int network(struct sim_net *net)
{
	struct ulnet_sim_link link = { .jitter = 100000 };
	const struct ulnet_nid any = LNET_NID_ANY;
	int rc = 0;

	for (unsigned int i = 0; i < 2 && !rc; i++)
		rc = side_open(&sides[i], net);
	for (unsigned int i = 0; i < 2 && !rc; i++) {
		struct side *s = &sides[i];

		rc = ni_add(s, &s->changing);
		if (!rc)
			rc = lnet_ni_del(s->node, &s->changing);
	}
	while (!rc && (sides[0].nnids < 4 || !spread(&sides[0]) ||
		       !spread(&sides[1]))) {
		BUG_ON(sides[0].nnids == NIDS_MAX);
		rc = side_add_nid(&sides[0]);
		if (!rc)
			rc = side_add_nid(&sides[1]);
	}
	if (rc || OVER_TCP || OVER_SHM || OVER_O2IB)
		return rc;
	/* one link has latency */
	return sim_net_link_set(net, &any, &sides[0].nids[0], &link);
}

static int set_up(struct side *s)
{
	/* The buffers of one side are on CPT 0, those of the other on CPT 1. */
	unsigned int cpt = s->index;
	int rc = LNetSetLazyPortal(s->node, REQUESTS);

	for (unsigned int i = 0; i < BUFFERS && !rc; i++) {
		buffers[s->index][i].s = s;
		rc = lnet_call(s->node, cpt, buffer_post,
			       &buffers[s->index][i]);
	}
	if (!rc)
		rc = lnet_call(s->node, 1 - cpt, source_post, s);
	return rc ? rc : LNetEQAlloc(s->node, 4096, &s->eq);
}

static void traffic(void)
{
	static struct caller callers[2 * CALLERS];
	pthread_t others[5];

	for (unsigned int i = 0; i < 2; i++) {
		BUG_ON(pthread_create(&others[2 * i], NULL, poller_run,
				      &sides[i]));
		BUG_ON(pthread_create(&others[2 * i + 1], NULL, watcher_run,
				      &sides[i]));
	}
	BUG_ON(pthread_create(&others[4], NULL, changer_run, NULL));
	for (unsigned int i = 0; i < 2 * CALLERS; i++) {
		struct caller *c = &callers[i];

		c->s = &sides[i % 2];
		c->index = i;
		rng_seed(&c->rng, i + 1);
		sem_init(&c->window, 0, WINDOW);
		BUG_ON(pthread_create(&c->thread, NULL, caller_run, c));
	}
	for (unsigned int i = 0; i < 2 * CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		sem_destroy(&callers[i].window);
	}
	atomic_store(&traffic_over, true);
	for (unsigned int i = 0; i < ARRAY_SIZE(others); i++)
		pthread_join(others[i], NULL);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int unlink_there(void *arg)
{
	/* Unlinks from another CPT than the entry's. */
	return LNetMEUnlink(*(struct ulnet_me_handle *)arg);
}

static void tear_down(struct side *s)
{
	counter_wait(&s->received, atomic_load(&s->sent_to));
	check(s->received.n == atomic_load(&s->sent_to));
	counter_wait(&s->answered, atomic_load(&s->answers));
	check(lnet_call(s->node, s->index, unlink_there, &s->source_me) ==
	      -EXDEV);
	check(!LNetMEUnlink(s->source_me));
	counter_wait(&s->buffers_gone, 1);
	atomic_store(&s->closing, true);
	for (unsigned int i = 0; i < BUFFERS; i++)
		check(!lnet_call(s->node, s->index, buffer_unlink,
				 &buffers[s->index][i]));
	counter_wait(&s->buffers_gone, 1 + BUFFERS);
	check(!LNetEQFree(s->eq));
	/* All events came on the CPT of the buffers. */
	check(s->on_cpt[s->index] == s->received.n);
}

/* Each call waits for all that was posted before it. */
static void wait_idle(struct side *s)
{
	struct ulnet_stat stats[96];
	bool idle = false;

	while (!idle) {
		for (unsigned int i = 0; i < CPTS; i++)
			BUG_ON(lnet_call(s->node, i, nothing, NULL));
		BUG_ON(lnet_stats(s->node, stats, ARRAY_SIZE(stats)) <= 0);
		BUG_ON(strcmp(stats[0].name, "msgs_alloc") != 0);
		idle = stats[0].value == 0;
	}
}

int main(void)
{
	struct sim_net *net;

	if (sim_net_new(NULL, &net))
		return 1;
	if (network(net)) {
		puts("no TCP on the loopback interface");
		return OVER_TCP ? 77 : 1;
	}
	for (unsigned int i = 0; i < 2; i++)
		later_run(&sides[i]);
	for (unsigned int i = 0; i < 2; i++)
		if (set_up(&sides[i]))
			return 1;
	traffic();
	for (unsigned int i = 0; i < 2; i++)
		tear_down(&sides[i]);
	for (unsigned int i = 0; i < 2; i++)
		wait_idle(&sides[i]);
	for (unsigned int i = 0; i < 2; i++)
		lnet_close(sides[i].node);
	lnd_done();
	sim_net_free(net);
	return atomic_load(&failures) ? 1 : 0;
}
