/* SPDX-License-Identifier: BSD-3-Clause */
/* A NID is configured while it moves from CPT to CPT all the time: whoever
 * calls lnet_peer_add() does not notice. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "lnet/node/node.h"
#include "lnet/peer/claim.h"
#include "lnet/peer/member.h"
#include "tests/thread/check.h"

#define CPTS 3
#define ADDS 3000
/* Moves while a peer is added: as many as fit in, and so few that a call which
 * tries each of its steps a hundred times has not to give up. */
#define MOVES 20

static struct lnet *node;
static atomic_bool over;
static atomic_uint moved;
static sem_t may_move;

/* On each CPT a NID that it owns. */
static struct ulnet_nid on[CPTS];
/* Is added by the test, and claimed for on[1] and on[2]. */
static struct ulnet_nid target;

static struct ulnet_nid nth(unsigned int n)
{
	return (struct ulnet_nid){ .type = LNET_TYPE_SOCK,
				   .addr = { 10, 9, (uint8_t)(n >> 8),
					     (uint8_t)n } };
}

static void nids_choose(void)
{
	unsigned int n = 0;

	for (unsigned int cpt = 0; cpt < CPTS; cpt++)
		do
			on[cpt] = nth(n++);
		while (node_cpt_of(node, &on[cpt]) != cpt);
	do
		target = nth(n++);
	while (node_cpt_of(node, &target) != 0);
}

/* ---- moving ---- */

struct move {
	struct peer_claim claim;
	unsigned int cpt;
	sem_t done;
	int rc;
};

static void on_claimed(struct peer_claim *claim, int rc)
{
	struct move *m = container_of(claim, struct move, claim);

	m->rc = rc;
	sem_post(&m->done);
}

static int move_begin(void *arg)
{
	struct move *m = arg;
	struct lnet_cpt *cpt = node->cpt[m->cpt];
	struct lnet_peer_ni *p = peer_get(cpt, &on[m->cpt]);
	int rc;

	if (!check(p != NULL))
		return -ENOMEM;
	m->claim =
		(struct peer_claim){ .done = on_claimed, .by = LNET_NID_ANY };
	rc = peer_claim(cpt, p->peer, &target, &m->claim);
	peer_unref(p);
	return rc;
}

/* Forgets the peer that has claimed, and so its NIDs return to the CPTs that
 * they came from; but not if it has been configured meanwhile, or has lost the
 * NID that it claimed with. */
static int move_back(void *arg)
{
	const struct move *m = arg;
	struct lnet_cpt *cpt = node->cpt[m->cpt];
	const struct lnet_peer_ni *p = peer_find(cpt, &on[m->cpt]);

	if (p && p->place.state == PEER_HERE && !p->peer->refs)
		check(!peer_forget(cpt, p->peer));
	return 0;
}

static void *move_all(void *arg)
{
	struct move m = { .cpt = 1 };

	(void)arg;
	check(!sem_init(&m.done, 0, 0));
	while (!atomic_load(&over)) {
		int rc;

		while (sem_wait(&may_move))
			;
		rc = lnet_call(node, m.cpt, move_begin, &m);
		if (rc == -EINPROGRESS) {
			while (sem_wait(&m.done))
				;
			if (!m.rc)
				atomic_fetch_add(&moved, 1);
		}
		check(!lnet_call(node, m.cpt, move_back, &m));
		m.cpt = m.cpt % (CPTS - 1) + 1;
	}
	sem_destroy(&m.done);
	return NULL;
}

/* Of the moves that the round before has left, none happens in this one. */
static void moves_allow(void)
{
	while (!sem_trywait(&may_move))
		;
	for (unsigned int i = 0; i < MOVES; i++)
		check(!sem_post(&may_move));
}

/* ---- adding ---- */

/* The target alone; with a NID of the CPT that it comes from; or as a NID of a
 * peer there. */
static void add(unsigned int i)
{
	const struct ulnet_nid nids[] = { on[0], target, on[0] };
	const struct ulnet_nid *from = &nids[i % 3 == 2 ? 0 : 1];
	unsigned int n = i % 3 == 0 ? 1 : 2;
	int rc = lnet_peer_add(node, from, n, true);

	if (rc)
		fprintf(stderr, "round %u: %d\n", i, rc);
	if (check(!rc))
		check(!lnet_peer_del(node, from, NULL, 0));
}

int main(void)
{
	struct ulnet_conf conf;
	pthread_t mover;

	lnet_conf_init(&conf);
	conf.cpts = CPTS;
	if (lnet_open(&conf, &node))
		return 1;
	nids_choose();
	check(!sem_init(&may_move, 0, 0));
	check(!pthread_create(&mover, NULL, move_all, NULL));
	for (unsigned int i = 0; i < ADDS || !atomic_load(&moved); i++) {
		moves_allow();
		add(i);
	}
	atomic_store(&over, true);
	check(!sem_post(&may_move));
	pthread_join(mover, NULL);
	sem_destroy(&may_move);
	lnet_close(node);
	fprintf(stderr, "%u moves\n", atomic_load(&moved));
	return atomic_load(&failures) != 0;
}
