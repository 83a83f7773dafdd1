/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * o2iblnd on several CPTs, in threads, over simulated queue pairs, whose ports
 * go and come back: a node of 4 CPTs and one of 2, with two NIs each.
 *
 *	callers (plain threads, two a node): PUTs with ACK and GETs, small ones
 *		and some that are fetched or written, to all NIDs of the other
 *	a disturber: of one NI after the other the link goes down, then the
 *		device goes, then the NI itself, each of them with messages
 *		under way, and comes back
 *
 * Meanwhile each operation ends once, and what has come is what was sent; after
 * that all succeed.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "lnet/node/node.h"
#include "tests/all_memory.h"
#include "tests/thread/check.h"
#include "tests/thread/ferry.h"

#define NIS	2
#define NODES	2
#define CALLERS 2 /* of a node */
#define WINDOW	16
/* operations of each caller once there are no more faults */
#define CALM   200
#define PASSED 50 /* operations that end between two faults */
/* us: how long an operation lasts whose ACK or REPLY is lost */
#define TIMEOUT	     1000000
#define CALM_TIMEOUT 60000000

#define SINK	    10
#define SOURCE	    11
#define LARGEST	    16384
#define SOURCE_SIZE 65536
#define BUFFER_SIZE 65536
#define BUFFERS	    4

static struct ferry *ferry;

struct side;

struct buffer {
	struct side *s;
	struct ulnet_me_handle me;
	uint8_t bytes[BUFFER_SIZE];
};

static struct side {
	unsigned int cpts;
	struct lnet *node;
	struct ulnet_nid nids[NIS];
	uint8_t source[SOURCE_SIZE];
	struct ulnet_me_handle source_me;
	struct buffer buffers[BUFFERS];
	sem_t unlinked; /* posted for each buffer, and for the source */
} sides[NODES] = { { .cpts = 4 }, { .cpts = 2 } };

static atomic_bool calm;    /* there are no more faults of ports */
static atomic_bool closing; /* buffers are not attached again */
static atomic_uint ended;   /* operations that have ended */

static uint8_t pattern(uint32_t seed, uint32_t i)
{
	return (uint8_t)(seed * 7 + i * 13 + (i >> 8));
}

static void fill(uint8_t *p, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = pattern(seed, i);
}

static bool holds(const uint8_t *p, uint32_t n, uint32_t seed, uint32_t at)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != pattern(seed, at + i))
			return false;
	return true;
}

static struct ulnet_id any_id(void)
{
	return (struct ulnet_id){ LNET_NID_ANY, LNET_PID_ANY };
}

/* ---- what is sent to, and fetched ---- */

static void buffer_event(const struct ulnet_event *ev);

static int buffer_post(void *arg)
{
	struct buffer *b = arg;
	struct ulnet_md umd = { .start = b->bytes,
				.length = sizeof(b->bytes),
				.threshold = LNET_MD_THRESH_INF,
				.max_size = LARGEST,
				.options = LNET_MD_OP_PUT | LNET_MD_MAX_SIZE,
				.user_ptr = b,
				.handler = buffer_event };
	struct ulnet_md_handle md;
	int rc = LNetMEAttach(b->s->node, SINK, any_id(), 0, UINT64_MAX,
			      LNET_UNLINK, LNET_INS_LOCAL, &b->me);

	return rc ? rc : LNetMDAttach(b->me, &umd, LNET_UNLINK, &md);
}

static void buffer_event(const struct ulnet_event *ev)
{
	struct buffer *b = ev->user_ptr;

	if (ev->type == LNET_EVENT_PUT && ev->status == 0)
		check(holds(b->bytes + ev->offset, ev->mlength,
			    (uint32_t)ev->hdr_data, 0));
	if (!ev->unlinked)
		return;
	if (atomic_load(&closing))
		sem_post(&b->s->unlinked);
	else
		check(!buffer_post(b));
}

static void source_event(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	if (ev->unlinked)
		sem_post(&s->unlinked);
}

static int source_post(struct side *s)
{
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

	fill(s->source, SOURCE_SIZE, 0);
	return rc ? rc : LNetMDAttach(s->source_me, &umd, LNET_RETAIN, &md);
}

/* ---- operations ---- */

struct caller {
	struct side *from, *to;
	pthread_t thread;
	sem_t window;
	struct rng rng;
};

struct op {
	struct caller *c;
	bool get;
	bool calm; /* there are no faults: it has to succeed */
	uint32_t size, at;
	unsigned int terminals;
	uint8_t bytes[LARGEST];
};

static void op_event(const struct ulnet_event *ev)
{
	struct op *o = ev->user_ptr;

	if (o->calm)
		check(ev->status == 0);
	if (ev->type == LNET_EVENT_REPLY && ev->status == 0)
		check(ev->mlength == o->size &&
		      holds(o->bytes, o->size, 0, o->at));
	if (ev->terminal) {
		o->terminals++;
		if (o->calm)
			check(ev->outcome == LNET_OUTCOME_DELIVERED);
		/* The MD of an operation that has failed may not be used up. */
		if (!ev->unlinked)
			check(!LNetMDUnlink(ev->md));
	}
	if (!ev->unlinked)
		return;
	check(o->terminals == 1);
	atomic_fetch_add(&ended, 1);
	sem_post(&o->c->window);
	free(o);
}

static void op_begin(struct caller *c, bool is_calm)
{
	struct op *o = calloc(1, sizeof(*o));
	struct ulnet_id to = { c->to->nids[rng_below(&c->rng, NIS)],
			       LNET_PID_LUSTRE };
	uint32_t seed = (uint32_t)rng_next(&c->rng);
	struct ulnet_md umd = { .threshold = 2, .handler = op_event };
	struct ulnet_md_handle md;

	BUG_ON(!o);
	o->c = c;
	o->get = rng_below(&c->rng, 2);
	o->calm = is_calm;
	o->size = (uint32_t)rng_below(&c->rng,
				      rng_below(&c->rng, 4) ? 3000 : LARGEST);
	o->at = (uint32_t)rng_below(&c->rng, SOURCE_SIZE - o->size);
	fill(o->bytes, o->size, seed);
	umd.start = o->bytes;
	umd.length = o->size;
	umd.user_ptr = o;
	umd.timeout = is_calm ? CALM_TIMEOUT : TIMEOUT;
	if (!check(!LNetMDBind(c->from->node, &umd, LNET_UNLINK, &md)))
		return;
	if (o->get)
		check(!LNetGet(LNET_NID_ANY, md, to, SOURCE, 1, o->at));
	else
		check(!LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, to, SINK, 0, 0,
			       seed));
}

static void *caller_run(void *arg)
{
	struct caller *c = arg;

	while (!atomic_load(&calm)) {
		sem_wait(&c->window);
		op_begin(c, false);
	}
	for (unsigned int i = 0; i < CALM; i++) {
		sem_wait(&c->window);
		op_begin(c, true);
	}
	for (unsigned int i = 0; i < WINDOW; i++)
		sem_wait(&c->window);
	return NULL;
}

/* ---- what happens to ports ---- */

static bool is_open(const struct ulnet_nid *nid)
{
	struct simqp_usage usage;

	simqp_usage(ferry_take(ferry), nid, &usage);
	ferry_give(ferry);
	return usage.open;
}

static bool is_up(const struct side *s, const struct ulnet_nid *nid)
{
	struct ulnet_ni_info info;

	for (unsigned int i = 0; !lnet_ni_info(s->node, i, &info); i++)
		if (lnet_nid_eq(&info.nid, nid))
			return info.up;
	return false;
}

static void let_pass(unsigned int operations)
{
	unsigned int until = atomic_load(&ended) + operations;

	while ((int)(atomic_load(&ended) - until) < 0)
		sched_yield();
}

static void link_goes(const struct side *s, const struct ulnet_nid *nid)
{
	simqp_port_set(ferry_take(ferry), nid, false, "the cable is out");
	ferry_give(ferry);
	while (is_up(s, nid))
		sched_yield();
	let_pass(PASSED);
	simqp_port_set(ferry_take(ferry), nid, true, "the cable is in");
	ferry_give(ferry);
	while (!is_up(s, nid))
		sched_yield();
	let_pass(PASSED);
}

static void device_goes(const struct side *s, const struct ulnet_nid *nid)
{
	simqp_remove(ferry_take(ferry), nid);
	ferry_give(ferry);
	while (is_open(nid))
		sched_yield();
	let_pass(PASSED);
	simqp_insert(ferry_take(ferry), nid);
	ferry_give(ferry);
	while (!is_open(nid) || !is_up(s, nid))
		sched_yield();
	let_pass(PASSED);
}

static int ni_add(struct side *s, const struct ulnet_nid *nid)
{
	/* Connection attempts follow each other quickly. */
	const struct ulnet_tunable quick[] = {
		{ "min_reconnectms", 1 },
		{ "max_reconnectms", 20 },
	};
	const struct ulnet_ni_conf conf = { .nid = *nid,
					    .tunables = quick,
					    .ntunables = ARRAY_SIZE(quick) };

	return lnet_ni_add(s->node, &conf);
}

static void ni_goes(struct side *s, const struct ulnet_nid *nid)
{
	check(!lnet_ni_del(s->node, nid));
	check(!is_open(nid));
	let_pass(PASSED);
	check(!ni_add(s, nid));
	let_pass(PASSED);
}

/* Deletes and adds an NI while its device is away. */
static void ni_goes_without_device(struct side *s, const struct ulnet_nid *nid)
{
	simqp_remove(ferry_take(ferry), nid);
	ferry_give(ferry);
	check(!lnet_ni_del(s->node, nid));
	simqp_insert(ferry_take(ferry), nid);
	ferry_give(ferry);
	check(!ni_add(s, nid));
	let_pass(PASSED);
}

static void disturb(void)
{
	for (unsigned int i = 0; i < NODES * NIS; i++) {
		struct side *s = &sides[i % NODES];
		const struct ulnet_nid *nid = &s->nids[i / NODES % NIS];

		link_goes(s, nid);
		device_goes(s, nid);
		ni_goes(s, nid);
		ni_goes_without_device(s, nid);
	}
}

/* ---- life ---- */

static void side_open(struct side *s, unsigned int index)
{
	struct node_params p = { .lnds = open_lnds,
				 .fabric = ferry_fabric(ferry) };

	lnet_conf_init(&p.conf);
	p.conf.cpts = s->cpts;
	BUG_ON(node_open(&p, &s->node));
	BUG_ON(all_memory_register(s->node));
	sem_init(&s->unlinked, 0, 0);
	for (unsigned int i = 0; i < NIS; i++) {
		s->nids[i] = lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 0),
					   0x0a000001 + 256 * index + i);
		BUG_ON(ni_add(s, &s->nids[i]));
	}
	BUG_ON(LNetSetLazyPortal(s->node, SINK) || source_post(s));
	for (unsigned int i = 0; i < BUFFERS; i++) {
		s->buffers[i].s = s;
		BUG_ON(lnet_call(s->node, index, buffer_post, &s->buffers[i]));
	}
}

static int buffer_unlink(void *arg)
{
	struct buffer *b = arg;
	/* -ENOENT: the buffer was just used up, and its event is still to come.
	 */
	int rc = LNetMEUnlink(b->me);

	return rc == -ENOENT ? 0 : rc;
}

static void side_close(struct side *s, unsigned int index)
{
	check(!LNetMEUnlink(s->source_me));
	for (unsigned int i = 0; i < BUFFERS; i++)
		check(!lnet_call(s->node, index, buffer_unlink,
				 &s->buffers[i]));
	for (unsigned int i = 0; i < BUFFERS + 1; i++)
		sem_wait(&s->unlinked);
	lnet_close(s->node);
	sem_destroy(&s->unlinked);
}

int main(void)
{
	static struct caller callers[NODES * CALLERS];

	/* A peer that does not answer is given up soon. */
	const struct simqp_conf conf = {
		.ack_ns = 10 * NSEC_PER_MSEC,
		.cm_ns = 200 * NSEC_PER_MSEC,
	};

	ferry = ferry_new(&conf);
	for (unsigned int i = 0; i < NODES; i++)
		side_open(&sides[i], i);
	for (unsigned int i = 0; i < ARRAY_SIZE(callers); i++) {
		struct caller *c = &callers[i];

		c->from = &sides[i % NODES];
		c->to = &sides[1 - i % NODES];
		rng_seed(&c->rng, i + 1);
		sem_init(&c->window, 0, WINDOW);
		BUG_ON(pthread_create(&c->thread, NULL, caller_run, c));
	}
	disturb();
	atomic_store(&calm, true);
	for (unsigned int i = 0; i < ARRAY_SIZE(callers); i++) {
		pthread_join(callers[i].thread, NULL);
		sem_destroy(&callers[i].window);
	}
	atomic_store(&closing, true);
	for (unsigned int i = 0; i < NODES; i++)
		side_close(&sides[i], i);
	check(ferry_free(ferry));
	return atomic_load(&failures) ? 1 : 0;
}
