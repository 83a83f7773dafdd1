/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes exchange messages of random sizes over TCP in both directions,
 * while their connections are cut at random. What box.h promises must hold for
 * each message, no outcome may be false, and at the end nothing may be left.
 *
 *	soak [--long | MESSAGES] [--seed S]
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lnd/socklnd/peer.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "sim/sim.h"
#include "tests/lnd/behaviour.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MESSAGES 3000
#else
#define MESSAGES 10000
#endif
#define MESSAGES_LONG 100000

#define EPOCH	   2000 /* messages, after which everything is checked */
#define WINDOW	   48	/* messages under way at once */
#define CUT_EVERY  100	/* messages, on average */
#define OP_TIMEOUT UINT64_C(300000)
#define CPTS	   2
#define FIRST_BITS 1000

enum kind { PUT_ACK, PUT_NOACK, GET, KINDS };

struct soak {
	struct fx *fx;
	uint64_t random; /* the state of the random numbers */
	atomic_uint ended;
	unsigned int cuts, outcomes[KINDS][LNET_OUTCOME_UNKNOWN + 1];
};

/* One operation: from @active to @passive. */
struct pair {
	enum kind kind;
	struct box *active, *passive;
};

static uint32_t soak_random(struct soak *s)
{
	uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x >> 32);
}

static uint32_t random_size(struct soak *s)
{
	uint32_t die = soak_random(s) % 100;
	uint32_t max = die < 3 ? LNET_MTU : die < 20 ? 65536 : 1500;

	return soak_random(s) % (max + 1);
}

/* ---- cutting ---- */

struct cut {
	struct lnet_cpt *cpt;
	uint32_t die;
	bool reset, done;
};

static struct sock_cpt *sock_cpt_of(const struct lnet_cpt *cpt)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++) {
		struct lnd_ni *ni = &cpt->config->ni[i]->lnd;

		if (ni->lnd->type == LNET_TYPE_SOCK)
			return &sock_ni_of(ni)->cpts[cpt->index];
	}
	return NULL;
}

/* Runs on the thread that owns the connections: ends one of them. */
static int cut(void *arg)
{
	struct cut *k = arg;
	struct sock_cpt *cpt = sock_cpt_of(k->cpt);
	struct linger linger = { .l_onoff = 1 };
	const struct sock_conn *conn;
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	while (cpt && !k->done && (n = hash_walk(&cpt->peers, &bucket, n)))
		list_for_each_entry (
			conn, &container_of(n, struct sock_peer, hash)->conns,
			link) {
			if (k->die-- % 4)
				continue;
			/* what TCP has still to send is lost, too */
			if (k->reset)
				setsockopt(conn->io.fd, SOL_SOCKET, SO_LINGER,
					   &linger, sizeof(linger));
			shutdown(conn->io.fd, SHUT_RDWR);
			k->done = true;
			break;
		}
	return 0;
}

static void cut_one(struct soak *s)
{
	struct lnet *node = s->fx->rig->node[soak_random(s) % 2];

	for (unsigned int i = 0; i < node->cpts; i++) {
		struct cut k = { .cpt = node->cpt[i],
				 .die = soak_random(s),
				 .reset = soak_random(s) % 2 };

		expect(s->fx, lnet_call(node, i, cut, &k) == 0);
		s->cuts += k.done;
	}
}

/* ---- messages ---- */

static void count_end(struct box *b, const struct ulnet_event *ev)
{
	struct soak *s = b->hook_arg;

	if (ev->terminal)
		atomic_fetch_add(&s->ended, 1);
}

static bool begin(struct soak *s, struct pair *p, uint64_t bits)
{
	static const enum box_cut cuts[] = { CUT_NONE, CUT_NONE, CUT_ODD };
	unsigned int from = soak_random(s) % 2;
	uint32_t size = random_size(s), seed = (uint32_t)bits;
	struct post post = { .side = 1 - from, .portal = PORTAL, .bits = bits };

	p->kind = soak_random(s) % KINDS;
	p->active = box_new(s->fx, size, cuts[soak_random(s) % 3]);
	p->passive = box_new(s->fx, size, cuts[soak_random(s) % 3]);
	p->active->hook = count_end;
	p->active->hook_arg = s;
	box_fill(p->kind == GET ? p->passive : p->active, seed);
	post.options = p->kind == GET ? LNET_MD_OP_GET : LNET_MD_OP_PUT;
	if (!box_post(p->passive, &post) ||
	    !box_bind(p->active, from, 0, OP_TIMEOUT))
		return false;
	if (p->kind == GET)
		return box_get(p->active, 1 - from, PORTAL, bits);
	return box_put(p->active, 1 - from, p->kind == PUT_ACK, PORTAL, bits,
		       HDR(seed, 0));
}

/* Checks that the outcome of the operation says what happened. */
static void look_at(struct soak *s, const struct pair *p)
{
	enum ulnet_outcome outcome = p->active->terminal.outcome;
	unsigned int there =
		p->passive->n[p->kind == GET ? LNET_EVENT_GET : LNET_EVENT_PUT];

	s->outcomes[p->kind][outcome]++;
	expect(s->fx, outcome != LNET_OUTCOME_NONE);
	if (outcome == LNET_OUTCOME_NOT_DELIVERED) {
		expect(s->fx, there == 0);
		expect(s->fx, p->active->terminal.status != 0);
	}
	if (outcome != LNET_OUTCOME_DELIVERED)
		return;
	/* A GET is delivered even if its REPLY was cut in the middle. The
	 * target may know that, or not. */
	if (p->kind == PUT_ACK) {
		expect(s->fx, p->active->n[LNET_EVENT_ACK] == 1);
		expect(s->fx, there == 1);
	} else {
		expect(s->fx,
		       p->active->n[LNET_EVENT_REPLY] +
				       p->active->failed[LNET_EVENT_REPLY] ==
			       1);
		expect(s->fx, p->active->n[LNET_EVENT_REPLY] ==
				      (p->active->terminal.status == 0));
	}
}

static bool epoch(struct soak *s, uint64_t bits, unsigned int n)
{
	static struct pair pairs[EPOCH];

	atomic_store(&s->ended, 0);
	for (unsigned int i = 0; i < n; i++) {
		if (!begin(s, &pairs[i], bits + i))
			return false;
		if (soak_random(s) % CUT_EVERY == 0)
			cut_one(s);
		while (i + 1 - atomic_load(&s->ended) >= WINDOW)
			fx_run(s->fx, 50);
	}
	if (!expect(s->fx, fx_wait_ops(s->fx)))
		return false;
	for (unsigned int i = 0; i < n; i++) {
		box_end(pairs[i].active);
		box_end(pairs[i].passive);
	}
	for (unsigned int i = 0; i < n; i++)
		look_at(s, &pairs[i]);
	return expect(s->fx, fx_settle(s->fx));
}

/* ---- the end ---- */

struct parked {
	struct lnet *node;
	pthread_barrier_t *barrier;
};

/* Blocks CPT 1 while CPT 0 checks. */
static int park(void *arg)
{
	pthread_barrier_t *barrier = arg;

	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return 0;
}

static void *park_cpt_1(void *arg)
{
	struct parked *p = arg;

	BUG_ON(lnet_call(p->node, 1, park, p->barrier));
	return NULL;
}

static int check_node(void *arg)
{
	struct parked *p = arg;
	const char *wrong;
	char buf[256];

	pthread_barrier_wait(p->barrier);
	wrong = node_check(p->node, buf, sizeof(buf));
	pthread_barrier_wait(p->barrier);
	if (wrong)
		printf("  %s\n", wrong);
	return wrong ? 1 : 0;
}

static void expect_sound(struct fx *fx, struct lnet *node)
{
	pthread_barrier_t barrier;
	struct parked p = { node, &barrier };
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, CPTS);
	pthread_create(&other, NULL, park_cpt_1, &p);
	expect(fx, lnet_call(node, 0, check_node, &p) == 0);
	pthread_join(other, NULL);
	pthread_barrier_destroy(&barrier);
}

static void expect_enough(struct soak *s)
{
	static const char *const names[] = { "PUT with ACK", "PUT", "GET" };

	for (unsigned int k = 0; k < KINDS; k++)
		printf("%s: %u delivered, %u not delivered, %u unknown\n",
		       names[k], s->outcomes[k][LNET_OUTCOME_DELIVERED],
		       s->outcomes[k][LNET_OUTCOME_NOT_DELIVERED],
		       s->outcomes[k][LNET_OUTCOME_UNKNOWN]);
	printf("%u connections cut\n", s->cuts);
	expect(s->fx, s->cuts > 0);
	expect(s->fx, s->outcomes[PUT_ACK][LNET_OUTCOME_DELIVERED] > 0);
	expect(s->fx, s->outcomes[GET][LNET_OUTCOME_DELIVERED] > 0);
}

static void soak(struct soak *s, unsigned int messages)
{
	struct fx *fx = s->fx;
	unsigned int n;

	for (unsigned int done = 0; done < messages; done += n) {
		n = MIN(EPOCH, messages - done);
		if (!epoch(s, FIRST_BITS + done, n) || fx->failures)
			return;
	}
	works_again(fx);
	expect(fx, fx_wait_idle(fx));
	for (unsigned int i = 0; i < 2; i++)
		expect_sound(fx, fx->rig->node[i]);
	expect_enough(s);
}

/* ---- */

static const struct ulnet_tunable tunables[] = {
	{ "min_reconnectms", 1 },
	{ "max_reconnectms", 5 },
	{ "conns_per_peer", 2 },
};

static struct real_net net = { .nids = { "127.0.0.5@tcp", "127.0.0.6@tcp" },
			       .absent = "127.0.0.99@tcp",
			       .run = LNET_RUN_THREADS,
			       .cpts = CPTS,
			       .port = true,
			       .tunables = tunables,
			       .ntunables = ARRAY_SIZE(tunables) };

static struct lnd_rig rig = { .name = "soak",
			      .can = RIG_THREADS | RIG_OVERTAKE,
			      .ops = &real_ops,
			      .arg = &net };

int main(int argc, char **argv)
{
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };
	unsigned int messages = MESSAGES;
	uint64_t seed = (uint64_t)time(NULL);
	struct soak s = { .fx = &fx };

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--long"))
			messages = MESSAGES_LONG;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
		else
			messages = (unsigned int)strtoul(argv[i], NULL, 0);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	s.random = seed;
	if (fx_up(&fx, &rig)) {
		printf("the nodes do not come up\n");
		return 1;
	}
	soak(&s, messages);
	fx_down(&fx);
	printf("%s: %u messages, seed %llu\n", fx.failures ? "FAIL" : "PASS",
	       messages, (unsigned long long)seed);
	return fx.failures ? 1 : 0;
}
