/* SPDX-License-Identifier: BSD-3-Clause */
/* Two real nodes: both connect at once; one of them is killed. */
#include "tests/lnd/fault.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* ---- both connect at once ---- */

struct starter {
	struct fx *fx;
	pthread_barrier_t *start;
	unsigned int from;
	struct box *src[4];
};

static void *put_all(void *arg)
{
	struct starter *st = arg;

	pthread_barrier_wait(st->start);
	for (unsigned int i = 0; i < ARRAY_SIZE(st->src); i++)
		box_put(st->src[i], 1 - st->from, true, PORTAL, st->from,
			HDR(7, i));
	return NULL;
}

static bool prepare(struct starter *st, struct fx *fx, pthread_barrier_t *start,
		    unsigned int from)
{
	enum { N = ARRAY_SIZE(st->src) };
	struct box *dst = box_new(fx, N * 5000, CUT_NONE);

	*st = (struct starter){ .fx = fx, .start = start, .from = from };
	for (unsigned int i = 0; i < N; i++) {
		st->src[i] = box_new(fx, i % 2 ? 5000 : 100, CUT_NONE);
		box_fill(st->src[i], 7);
		if (!box_bind(st->src[i], from, 0, fx_patience(fx)))
			return false;
	}
	return box_post(dst, &(struct post){ .side = 1 - from,
					     .portal = PORTAL,
					     .bits = from,
					     .threshold = N,
					     .options = LNET_MD_OP_PUT });
}

/* Do both nodes have the same connections? What is a local port to the one is a
 * remote port to the other. */
static bool same_conns(const struct census *a, const struct census *b)
{
	unsigned int same = 0;

	for (unsigned int i = 0; i < a->keys; i++)
		for (unsigned int k = 0; k < b->keys; k++)
			same += a->key[i] ==
				(b->key[k] << 16 | b->key[k] >> 16);
	return a->keys == b->keys && same == a->keys;
}

static void one_race(struct fx *fx, pthread_barrier_t *start)
{
	struct starter st[2];
	struct census c[2];
	pthread_t other;

	for (unsigned int i = 0; i < 2; i++)
		if (!prepare(&st[i], fx, start, i))
			return;
	pthread_create(&other, NULL, put_all, &st[1]);
	put_all(&st[0]);
	pthread_join(other, NULL);
	expect(fx, fx_wait_ops(fx));
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < ARRAY_SIZE(st[i].src); k++)
			expect(fx,
			       st[i].src[k]->outcomes[LNET_OUTCOME_DELIVERED] ==
				       1);
	for (unsigned int i = 0; i < 2; i++)
		expect(fx, census_wait(fx, fx->rig->node[i], NULL,
				       census_conns_are, 3));
	for (unsigned int i = 0; i < 2; i++)
		census_take(fx->rig->node[i], NULL, &c[i]);
	expect(fx, same_conns(&c[0], &c[1]));
	expect(fx, fx_wait_idle(fx));
}

static void races(struct fx *fx)
{
	enum { RACES = 60 };
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, 2);
	for (unsigned int k = 0; k < RACES && !fx->failures; k++) {
		one_race(fx, &start);
		if (!fx_again(fx))
			break;
	}
	pthread_barrier_destroy(&start);
}

/* ---- the peer is killed in the middle of 1 MiB ---- */

static bool is_writing(const struct census *c, unsigned int arg)
{
	return c->writing >= arg;
}

static bool is_reading(const struct census *c, unsigned int arg)
{
	return c->reading >= arg;
}

static bool has_no_conns(const struct census *c, unsigned int arg)
{
	(void)arg;
	return c->conns == 0 && c->attempts == 0;
}

static bool child_nid(struct fx *fx, struct ulnet_nid *nid)
{
	return expect(fx, lnet_nid_parse(CHILD_NID, nid) == 0);
}

/* Starts the child again, and checks that everything works. */
static void expect_new_child(struct fx *fx, const struct ulnet_nid *nid)
{
	pid_t pid = child_start(fx, CHILD_TAKES);
	struct box *b;

	if (!expect(fx, pid > 0))
		return;
	do {
		b = box_new(fx, LNET_MTU, CUT_NONE);
		box_fill(b, CHILD_BITS);
		if (!box_bind(b, 0, 0, fx_patience(fx)))
			break;
		box_put_to(b, nid, true, PORTAL, CHILD_BITS,
			   HDR(CHILD_BITS, 0));
		expect(fx, fx_wait(fx, &b->terminals, 1));
		box_end(b);
		/* the node may remember the failure for a moment */
	} while (b->outcomes[LNET_OUTCOME_NOT_DELIVERED]);
	expect(fx, b->outcomes[LNET_OUTCOME_DELIVERED] == 1);
	child_kill(pid);
	expect(fx, census_wait(fx, fx->rig->node[0], nid, has_no_conns, 0));
}

static void killed_taking(struct fx *fx)
{
	enum { N = 6 };
	struct ulnet_nid nid;
	struct box *b[N];
	struct bystander bystander;
	pid_t pid;

	if (!child_nid(fx, &nid) || !bystander_begin(fx, &bystander))
		return;
	pid = child_start(fx, CHILD_TAKES);
	if (!expect(fx, pid > 0))
		return;
	for (unsigned int i = 0; i < N; i++) {
		b[i] = box_new(fx, LNET_MTU, CUT_ODD);
		box_fill(b[i], CHILD_BITS);
		box_bind(b[i], 0, 0, fx_patience(fx));
	}
	box_put_to(b[0], &nid, true, PORTAL, CHILD_BITS, HDR(CHILD_BITS, 0));
	expect(fx, fx_wait(fx, &b[0]->terminals, 1));
	expect(fx, b[0]->outcomes[LNET_OUTCOME_DELIVERED] == 1);
	child_stop(pid);
	for (unsigned int i = 1; i < N; i++)
		box_put_to(b[i], &nid, true, PORTAL, CHILD_BITS,
			   HDR(CHILD_BITS, 0));
	expect(fx, census_wait(fx, fx->rig->node[0], &nid, is_writing, 1));
	bystander_goes_on(fx, &bystander);
	child_kill(pid);
	for (unsigned int i = 1; i < N; i++) {
		expect(fx, fx_wait(fx, &b[i]->terminals, 1));
		expect(fx, b[i]->outcomes[LNET_OUTCOME_DELIVERED] == 0);
	}
	expect(fx, b[1]->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	for (unsigned int i = 0; i < N; i++)
		box_end(b[i]);
	expect(fx, census_wait(fx, fx->rig->node[0], &nid, has_no_conns, 0));
	expect_new_child(fx, &nid);
	bystander_check(fx, &bystander);
}

static bool stop_while_it_sends(struct fx *fx, const struct ulnet_nid *nid,
				pid_t pid)
{
	for (unsigned int k = 0; k < 1000; k++) {
		struct census c;

		if (!census_wait(fx, fx->rig->node[0], nid, is_reading, 1))
			return false;
		child_stop(pid);
		/* Waits until nothing more arrives. */
		for (unsigned int same = 0; same < 20; same++) {
			fx_run(fx, 500);
			census_take(fx->rig->node[0], nid, &c);
			if (!c.reading)
				break;
		}
		if (c.reading)
			return true;
		kill(pid, SIGCONT);
	}
	return false;
}

static void killed_sending(struct fx *fx)
{
	struct ulnet_nid nid;
	struct bystander bystander;
	struct box *dst;
	pid_t pid;

	if (!child_nid(fx, &nid) || !bystander_begin(fx, &bystander))
		return;
	dst = box_new(fx, LNET_MTU, CUT_ODD);
	if (!box_post(dst, &(struct post){ .portal = PORTAL,
					   .bits = CHILD_BITS,
					   .threshold = LNET_MD_THRESH_INF,
					   .options = LNET_MD_OP_PUT |
						      LNET_MD_MANAGE_REMOTE }))
		return;
	pid = child_start(fx, CHILD_SENDS);
	if (!expect(fx, pid > 0))
		return;
	expect(fx, fx_wait(fx, &dst->n[LNET_EVENT_PUT], 1));
	expect(fx, stop_while_it_sends(fx, &nid, pid));
	bystander_goes_on(fx, &bystander);
	expect(fx, fx_read(fx, &dst->failed[LNET_EVENT_PUT]) == 0);
	child_kill(pid);
	expect(fx, fx_wait(fx, &dst->failed[LNET_EVENT_PUT], 1));
	box_end(dst);
	expect(fx, census_wait(fx, fx->rig->node[0], &nid, has_no_conns, 0));
	expect_new_child(fx, &nid);
	bystander_check(fx, &bystander);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "both connect at once", TWO, races },
	{ "the peer is killed while it takes 1 MiB", TWO, killed_taking },
	{ "the peer is killed while it sends 1 MiB", TWO, killed_sending },
};

const struct topic topic_peer = { list, ARRAY_SIZE(list) };
