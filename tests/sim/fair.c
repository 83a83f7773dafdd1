/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many senders, one router, and receivers behind it, each of which the router
 * reaches by a link of its own: do the senders get fair shares (requirement
 * B2)? Senders that always have more to send get the same. A node that floods
 * the router gets no more than a sender. One that floods a slow or dead
 * receiver takes neither buffers nor time from others: a prober sends one
 * message after the other, and the longest that one takes is bounded. Virtual
 * time makes a run exact.
 *
 *	senders, flooders, prober --- router --- receivers
 *
 *	fair [--long] [--only TEXT]
 *
 * --long: for longer, and with more senders. --only: only circumstances whose
 * name contains TEXT.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/route.h>
#include <ulnet/sim.h>

#define MSEC	  UINT64_C(1000000)
#define SEC	  (1000 * MSEC)
#define NEAR	  LNET_NET(LNET_TYPE_SOCK, 0)
#define FAR	  LNET_NET(LNET_TYPE_SOCK, 1)
#define LATENCY	  (MSEC / 20)
#define BANDWIDTH UINT64_C(12500000) /* bytes/s, of each link */
#define SLOW	  (BANDWIDTH / 20)   /* bandwidth of a slow receiver */
#define SIZE	  8192		     /* bytes of a PUT */
#define WINDOW	  16 /* messages that a sender's connection holds */
#define PORTAL	  4
#define BITS	  1
#define TIMEOUT	  UINT64_C(40000000) /* of a PUT, us */
#define PARTIES	  64
#define RECEIVERS 16

/* ns for which a PUT keeps the router's link busy */
#define BUSY ((SIZE + UINT64_C(72)) * SEC / BANDWIDTH)

enum flood {
	NO_FLOOD,
	FLOOD_SAME, /* flooders send to the same receivers as all others */
	FLOOD_SLOW, /* ... to a receiver of their own, which is slow */
	FLOOD_DEAD, /* ... to one that does not answer */
	FLOOD_EACH, /* ... each flooder to a silent receiver of its own */
	/* as FLOOD_EACH, but these receivers were discovered, and die later */
	FLOOD_DIES,
};

/* The circumstances of a run. */
struct setup {
	const char *what;
	/* number of senders; PUTs that each has under way */
	unsigned int senders, depth;
	unsigned int receivers; /* receivers that are neither slow nor dead */
	enum flood flood;
	unsigned int flooders, flood_depth;
	uint32_t large; /* large buffers of the router; 0: the default */
	unsigned int cpts;
};

/* A node that sends. */
struct party {
	struct race *race;
	unsigned int node;
	/* it sends to @n receivers from @first on, in turn */
	unsigned int first, n;
	unsigned int next;
	uint64_t bytes;		      /* delivered */
	uint64_t lost;		      /* PUTs that failed */
	uint64_t longest, sum, count; /* us: latencies of delivered PUTs */
};

struct race {
	const struct setup *setup;
	struct lnet_sim *sim;
	struct party parties[PARTIES];
	unsigned int nparties;
	char memory[SIZE];
	bool counts, over;
};

static int passed, failed;

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "fair: %s: %s\n", what, strerror(-rc));
	exit(1);
}

/* ---- nodes: 0 is the router, then come the receivers, then the senders ----
 */

static struct ulnet_nid nid_of(uint32_t net, unsigned int node)
{
	return lnet_nid_make(net, 0x0a000001 + ((net & 0xffff) << 16) + node);
}

static void route_to(struct lnet *node, uint32_t net, uint32_t near)
{
	const struct ulnet_route route = { .net = net,
					   .gateway = nid_of(near, 0) };

	must(lnet_route_add(node, &route), "a route");
}

static int start_router(void *arg, unsigned int index, struct lnet *node)
{
	const struct race *r = arg;
	const struct ulnet_routing routing = {
		.enabled = true, .buffers = { 0, 0, r->setup->large }
	};

	(void)index;
	must(lnet_routing_set(node, &routing), "routing");
	return 0;
}

static int start_receiver(void *arg, unsigned int index, struct lnet *node)
{
	static char sink[SIZE];
	const struct ulnet_id anybody = { LNET_NID_ANY, LNET_PID_ANY };
	const struct ulnet_md md = { .start = sink,
				     .length = sizeof(sink),
				     .threshold = LNET_MD_THRESH_INF,
				     .options = LNET_MD_OP_PUT |
						LNET_MD_MANAGE_REMOTE };
	struct ulnet_me_handle me;
	struct ulnet_md_handle handle;

	(void)arg;
	(void)index;
	route_to(node, NEAR, FAR);
	must(LNetMEAttach(node, PORTAL, anybody, BITS, 0, LNET_UNLINK,
			  LNET_INS_AFTER, &me),
	     "an entry");
	must(LNetMDAttach(me, &md, LNET_UNLINK, &handle), "its memory");
	return 0;
}

static int start_party(void *arg, unsigned int index, struct lnet *node)
{
	(void)arg;
	(void)index;
	route_to(node, FAR, NEAR);
	return 0;
}

static int node_add(struct race *r, const char *nids, lnet_sim_start_fn start)
{
	struct ulnet_conf conf;
	int node;

	lnet_conf_init(&conf);
	if (r->setup->flood != FLOOD_DIES)
		conf.discovery = LNET_DISCOVERY_OFF;
	node = lnet_sim_node_add(r->sim, nids, &conf, start, r);
	must(node, "a node");
	return node;
}

static int node_add_on(struct race *r, uint32_t net, unsigned int node,
		       lnet_sim_start_fn start)
{
	const struct ulnet_nid nid = nid_of(net, node);
	char text[LNET_NIDSTR_SIZE];

	return node_add(r, lnet_nid_format(&nid, text, sizeof(text)), start);
}

static void router_add(struct race *r)
{
	const struct ulnet_nid near = nid_of(NEAR, 0), far = nid_of(FAR, 0);
	char text[2 * LNET_NIDSTR_SIZE + 1], *p = text;

	lnet_nid_format(&near, p, LNET_NIDSTR_SIZE);
	p += strlen(p);
	*p++ = ' ';
	lnet_nid_format(&far, p, LNET_NIDSTR_SIZE);
	node_add(r, text, start_router);
}

/* ---- sending ---- */

static void send_one(struct party *p);

static void send_later(void *arg)
{
	send_one(arg);
}

static void on_event(const struct ulnet_event *ev)
{
	struct party *p = ev->user_ptr;
	struct race *r = p->race;

	if (!ev->terminal || r->over)
		return;
	if (ev->outcome != LNET_OUTCOME_DELIVERED) {
		p->lost += r->counts;
		must(lnet_sim_at(r->sim, MSEC, send_later, p), "a pause");
		return;
	}
	if (r->counts) {
		p->bytes += SIZE;
		p->count++;
		p->sum += ev->elapsed;
		p->longest =
			ev->elapsed > p->longest ? ev->elapsed : p->longest;
	}
	send_one(p);
}

static void send_one(struct party *p)
{
	struct race *r = p->race;
	const struct ulnet_md md = { .start = r->memory,
				     .length = SIZE,
				     .threshold = 2,
				     .timeout = TIMEOUT,
				     .user_ptr = p,
				     .handler = on_event };
	struct ulnet_id to = { nid_of(FAR, p->first + p->next++ % p->n),
			       LNET_PID_LUSTRE };
	struct ulnet_md_handle handle;

	if (r->over)
		return;
	must(LNetMDBind(lnet_sim_node(r->sim, p->node), &md, LNET_UNLINK,
			&handle),
	     "memory");
	must(LNetPut(LNET_NID_ANY, handle, LNET_ACK_REQ, to, PORTAL, BITS, 0,
		     0),
	     "a PUT");
}

/* Adds a node that keeps @depth PUTs under way, to @n receivers from @first on
 * in turn. */
static struct party *party_add(struct race *r, unsigned int depth,
			       unsigned int first, unsigned int n)
{
	struct party *p = &r->parties[r->nparties];

	if (r->nparties++ == PARTIES)
		abort();
	*p = (struct party){
		.race = r, .first = first, .n = n, .next = r->nparties
	};
	p->node = (unsigned int)node_add_on(r, NEAR, RECEIVERS + r->nparties,
					    start_party);
	for (unsigned int i = 0; i < depth; i++)
		send_one(p);
	return p;
}

/* ---- setting up ---- */

static void link_set(struct race *r, const struct ulnet_nid *from,
		     const struct ulnet_nid *to, uint64_t bandwidth)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .connect = MSEC,
					     .window = WINDOW,
					     .bandwidth = bandwidth };

	must(lnet_sim_link_set(r->sim, from, to, &link), "a link");
}

/* Returns the number of receivers to which only flooders send. Their indices
 * come after those of the other receivers. */
static unsigned int bad_receivers(const struct setup *s)
{
	switch (s->flood) {
	case FLOOD_SLOW:
	case FLOOD_DEAD:
		return 1;
	case FLOOD_EACH:
	case FLOOD_DIES:
		return s->flooders;
	default:
		return 0;
	}
}

static void receiver_dies(struct race *r, unsigned int i)
{
	const struct ulnet_nid any = LNET_NID_ANY, nid = nid_of(FAR, i);

	must(lnet_sim_partition(r->sim, &nid, &any, true), "a partition");
}

static void receivers_add(struct race *r)
{
	const struct setup *s = r->setup;
	const struct ulnet_nid router = nid_of(FAR, 0);
	unsigned int bad = bad_receivers(s);

	if (s->receivers + bad > RECEIVERS)
		abort();
	for (unsigned int i = 1; i <= s->receivers + bad; i++) {
		const struct ulnet_nid nid = nid_of(FAR, i);

		node_add_on(r, FAR, i, start_receiver);
		if (i <= s->receivers)
			continue;
		if (s->flood == FLOOD_SLOW)
			link_set(r, &router, &nid, SLOW);
		else if (s->flood != FLOOD_DIES)
			receiver_dies(r, i);
	}
}

static struct race *race_new(const struct setup *s)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	struct race *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->setup = s;
	must(lnet_sim_new(1, s->cpts, &r->sim), "the simulation");
	link_set(r, &any, &any, BANDWIDTH);
	router_add(r);
	receivers_add(r);
	/* The prober comes first, then the senders. */
	party_add(r, 1, 1, s->receivers);
	for (unsigned int i = 0; i < s->senders; i++)
		party_add(r, s->depth, 1, s->receivers);
	for (unsigned int i = 0; i < s->flooders; i++) {
		bool same = s->flood == FLOOD_SAME;
		unsigned int own = s->flood == FLOOD_EACH ? i : 0;

		party_add(r, s->flood_depth, same ? 1 : s->receivers + 1 + own,
			  same ? s->receivers : 1);
	}
	return r;
}

/* ---- what is expected ---- */

static void expect(const struct race *r, bool right, const char *what,
		   double is, const char *limit, double bound)
{
	printf("%s %s, %u CPT%s: %s: %.3f, %s %.3f\n", right ? "PASS" : "FAIL",
	       r->setup->what, r->setup->cpts, r->setup->cpts == 1 ? "" : "s",
	       what, is, limit, bound);
	right ? passed++ : failed++;
}

static void at_least(const struct race *r, const char *what, double is,
		     double bound)
{
	expect(r, is >= bound, what, is, "at least", bound);
}

static void at_most(const struct race *r, const char *what, double is,
		    double bound)
{
	expect(r, is <= bound, what, is, "at most", bound);
}

/* Returns how many nodes compete for the good receivers: the senders, and
 * flooders of the same receivers. */
static unsigned int rivals(const struct race *r)
{
	const struct setup *s = r->setup;

	return s->senders + (s->flood == FLOOD_SAME ? s->flooders : 0);
}

/* Returns Jain's index of fairness: 1 if all have the same, 1/n if one has all.
 */
static double jain(const struct race *r)
{
	double sum = 0, squares = 0;

	for (unsigned int i = 1; i <= rivals(r); i++) {
		double x = (double)r->parties[i].bytes;

		sum += x;
		squares += x * x;
	}
	return squares > 0 ? sum * sum / (rivals(r) * squares) : 0;
}

static uint64_t delivered(const struct race *r)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i <= rivals(r); i++)
		sum += r->parties[i].bytes;
	return sum;
}

static uint64_t lost(const struct race *r)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i <= rivals(r); i++)
		sum += r->parties[i].lost;
	return sum;
}

/* Returns the most messages of one sender that the router had at a time, those
 * that waited included, beyond what a sender may have. */
static double most_beyond(const struct race *r)
{
	struct lnet *router = lnet_sim_node(r->sim, 0);
	int64_t least = 0;

	for (unsigned int i = 0; i < r->nparties; i++) {
		const struct ulnet_nid nid = nid_of(NEAR, RECEIVERS + 1 + i);
		struct ulnet_peer_info info;

		must(lnet_peer_info(router, &nid, &info), "a peer");
		if (info.router_credits_min < least)
			least = info.router_credits_min;
	}
	return (double)-least;
}

/* Returns how many ms a message of the prober may take. It may have to wait
 * until the router has sent what it holds for that receiver, and then until it
 * gets a buffer; its rivals take their turns both times. The result is half as
 * long again. */
static double patience(const struct race *r)
{
	const struct setup *s = r->setup;
	struct ulnet_peer_info info;
	const struct ulnet_nid nid = nid_of(NEAR, RECEIVERS + 1);
	uint64_t ahead, ns;

	must(lnet_peer_info(lnet_sim_node(r->sim, 0), &nid, &info), "a peer");
	ahead = (uint64_t)rivals(r) * info.credits_max / s->receivers + 1;
	ns = 3 * ahead * BUSY / 2 + 20 * LATENCY + 4 * BUSY;
	return (double)ns / MSEC;
}

static void judge(const struct race *r, uint64_t ns)
{
	const struct setup *s = r->setup;
	double all = (double)BANDWIDTH * s->receivers * (double)ns / SEC;

	at_least(r, "Jain's index", jain(r), 0.95);
	at_least(r, "part of the links that is used",
		 (double)delivered(r) / all, 0.9);
	at_most(r, "ms that the prober waited",
		(double)r->parties[0].longest / 1000, patience(r));
	at_most(r, "messages lost of those that reach somebody",
		(double)lost(r), 0);
	/* One message may wait in the connection itself. */
	at_most(r, "messages of a sender beyond its credits", most_beyond(r),
		1);
}

static void play(const struct setup *s, bool again)
{
	/* Long enough for the router to give up messages for dead receivers
	 * several times. */
	uint64_t ns = (s->flood >= FLOOD_SLOW ? 40 : 10) * SEC;
	struct race *r = race_new(s);

	ns *= again ? 4 : 1;
	lnet_sim_run(r->sim, SEC);
	if (s->flood == FLOOD_DIES) {
		for (unsigned int i = 1; i <= s->flooders; i++)
			receiver_dies(r, s->receivers + i);
		/* until the router knows that they are dead */
		lnet_sim_run(r->sim, 2 * SEC);
	}
	r->counts = true;
	lnet_sim_run(r->sim, ns);
	r->counts = false;
	judge(r, ns);
	r->over = true;
	lnet_sim_check(r->sim);
	failed += lnet_sim_free(r->sim) != 0;
	free(r);
}

static const struct setup setups[] = {
	{ "equal senders, one receiver", 8, 16, 1, NO_FLOOD, 0, 0, 0, 1 },
	{ "equal senders, one receiver", 12, 16, 1, NO_FLOOD, 0, 0, 0, 4 },
	{ "equal senders, four receivers", 8, 16, 4, NO_FLOOD, 0, 0, 0, 1 },
	{ "equal senders, four receivers", 12, 16, 4, NO_FLOOD, 0, 0, 0, 4 },
	{ "few buffers, one receiver", 8, 16, 1, NO_FLOOD, 0, 0, 12, 1 },
	{ "few buffers, three receivers", 8, 16, 3, NO_FLOOD, 0, 0, 24, 1 },
	{ "one floods", 6, 16, 1, FLOOD_SAME, 1, 300, 0, 1 },
	{ "one floods, few buffers", 6, 16, 2, FLOOD_SAME, 1, 300, 16, 1 },
	{ "one floods a slow node", 6, 16, 2, FLOOD_SLOW, 1, 300, 0, 1 },
	{ "four flood a slow node, few buffers", 6, 16, 2, FLOOD_SLOW, 4, 300,
	  32, 1 },
	{ "one floods a dead node", 6, 16, 2, FLOOD_DEAD, 1, 300, 0, 4 },
	{ "four flood a dead node, few buffers", 6, 16, 2, FLOOD_DEAD, 4, 300,
	  32, 1 },
	{ "six flood a dead node each, few buffers", 6, 16, 2, FLOOD_EACH, 6,
	  300, 48, 1 },
	{ "20 flood a slow node, few buffers", 4, 16, 2, FLOOD_SLOW, 20, 300,
	  16, 1 },
	{ "six flood a dead node each, very few buffers", 6, 16, 2, FLOOD_EACH,
	  6, 300, 8, 1 },
	{ "14 flood a dead node each, few buffers", 6, 16, 2, FLOOD_EACH, 14,
	  300, 16, 1 },
	{ "14 flood a dead node each, more buffers", 6, 16, 2, FLOOD_EACH, 14,
	  300, 32, 1 },
	{ "14 flood a node each that dies, few buffers", 6, 16, 2, FLOOD_DIES,
	  14, 300, 16, 1 },
};

static const struct setup setups_long[] = {
	{ "equal senders, one receiver", 48, 16, 1, NO_FLOOD, 0, 0, 0, 1 },
	{ "equal senders, eight receivers", 48, 16, 8, NO_FLOOD, 0, 0, 0, 4 },
	{ "few buffers, four receivers", 48, 16, 4, NO_FLOOD, 0, 0, 64, 1 },
	{ "ten flood", 20, 16, 4, FLOOD_SAME, 10, 300, 0, 1 },
	{ "ten flood a dead node each, few buffers", 20, 16, 4, FLOOD_EACH, 10,
	  300, 80, 1 },
};

#define NSETUPS	     (sizeof(setups) / sizeof(setups[0]))
#define NSETUPS_LONG (sizeof(setups_long) / sizeof(setups_long[0]))

static void play_all(const struct setup *setup, size_t n, const char *only,
		     bool longer)
{
	for (size_t i = 0; i < n; i++)
		if (!only || strstr(setup[i].what, only))
			play(&setup[i], longer);
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	bool all = false;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--long")) {
			all = true;
		} else if (!strcmp(argv[i], "--only") && i + 1 < argc) {
			only = argv[++i];
		} else {
			fprintf(stderr, "usage: fair [--long] [--only TEXT]\n");
			return 2;
		}
	}
	play_all(setups, NSETUPS, only, all);
	if (all)
		play_all(setups_long, NSETUPS_LONG, only, false);
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed ? 1 : 0;
}
