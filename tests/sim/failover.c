/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes, two rails, and a steady load of calls; then one rail fails, and
 * comes back. Measures how long the longest call takes, how many are lost, when
 * as many calls as usual succeed again, and when the rail is used again, all in
 * virtual time, so that a run is exact. The rail fails while requests are on
 * their way, or while replies are. Both rails are of the simulated network, as
 * over TCP, or one of them has simulated RDMA devices.
 *
 *	failover [--long] [--gain N] [--moments N]
 *
 * --long: all combinations of circumstances. --gain N: the setting health_gain
 * of both nodes, to see what another one would do; the limits are those of the
 * default. --moments N: instead, how the longest call is distributed over N
 * moments of the failure, while the callers are busy, and while they call now
 * and then.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "tests/sim/failover_load.h"

/* What is allowed in a run. */
struct limit {
	unsigned int longest; /* ms: the longest call */
	/* ms until the rail is used again, once it is back; EVER: any time */
	unsigned int again;
	unsigned int lost; /* calls that are lost */
};

struct failure {
	const char *what;
	void (*fail)(struct load *l);
	void (*mend)(struct load *l);
	struct limit aim; /* the limit if the nodes discover each other */
	/* ... if the caller, besides, does not accept connections */
	struct limit caller;
	/* ... without discovery, if the caller names all NIDs of the server, or
	 * one */
	struct limit all, one;
};

/* What the user has asked for; 0: the defaults. */
static int64_t gain;

static int passed, failed;

/* ---- what fails ---- */

static bool is_verbs(const struct load *l)
{
	return l->fabric && l->rail == VERBS;
}

static void ni_set(struct load *l, unsigned int node, bool up)
{
	const struct ulnet_nid *nid = &l->nids[node][l->rail];

	if (is_verbs(l))
		simqp_port_set(l->fabric, nid, up, "its link");
	else
		must(lnet_sim_ni_set(l->sim, nid, up), "a link");
}

static void local_down(struct load *l)
{
	ni_set(l, CLIENT, false);
}

static void local_up(struct load *l)
{
	ni_set(l, CLIENT, true);
}

static void peer_down(struct load *l)
{
	ni_set(l, SERVER, false);
}

static void peer_up(struct load *l)
{
	ni_set(l, SERVER, true);
}

static void del(struct load *l, unsigned int node)
{
	must(lnet_ni_del(lnet_sim_node(l->sim, node), &l->nids[node][l->rail]),
	     "an address goes");
}

static void add(struct load *l, unsigned int node)
{
	const struct ulnet_ni_conf conf = { .nid = l->nids[node][l->rail] };

	must(lnet_ni_add(lnet_sim_node(l->sim, node), &conf),
	     "an address comes");
}

static void local_del(struct load *l)
{
	del(l, CLIENT);
}

static void local_add(struct load *l)
{
	add(l, CLIENT);
}

static void peer_del(struct load *l)
{
	del(l, SERVER);
}

static void peer_add(struct load *l)
{
	add(l, SERVER);
}

/* The rails are separate networks below one net: a frame from a NID of one rail
 * to a NID of the other leaves on the first and arrives on the second. So an
 * interface of the server that is cut loses its paths to the client on both
 * rails. */
static void crossing(struct load *l, bool cut)
{
	must(lnet_sim_partition(l->sim, &l->nids[CLIENT][l->rail],
				&l->nids[SERVER][!l->rail], cut),
	     "what crosses");
}

static void peer_rail_down(struct load *l)
{
	crossing(l, true);
	peer_down(l);
}

static void peer_rail_up(struct load *l)
{
	crossing(l, false);
	peer_up(l);
}

static void peer_rail_del(struct load *l)
{
	crossing(l, true);
	peer_del(l);
}

static void peer_rail_add(struct load *l)
{
	crossing(l, false);
	peer_add(l);
}

/* Cuts the client's NI off from everybody, or connects it again. */
static void cut(struct load *l, bool on)
{
	const struct ulnet_nid *nid = &l->nids[CLIENT][l->rail];
	const struct ulnet_nid any = LNET_NID_ANY;

	if (!is_verbs(l)) {
		must(lnet_sim_partition(l->sim, nid, &any, on), "silence");
		return;
	}
	simqp_silence(l->fabric, nid, &any, on ? NEVER : 0);
	simqp_silence(l->fabric, &any, nid, on ? NEVER : 0);
}

static void silence(struct load *l)
{
	cut(l, true);
}

static void speech(struct load *l)
{
	cut(l, false);
}

/* The rail is away for a second, then it works for two, and so on. */
static void come_or_go(void *arg)
{
	struct load *l = arg;

	if (!l->unstable)
		return;
	l->away = !l->away;
	cut(l, l->away);
	lnet_sim_at(l->sim, (l->away ? 1 : 2) * SEC, come_or_go, l);
}

static void instability(struct load *l)
{
	l->unstable = true;
	come_or_go(l);
}

static void stability(struct load *l)
{
	l->unstable = false;
	cut(l, false);
}

/* Loses everything that node @from sends on the rail, or stops doing so. */
static void mute(struct load *l, unsigned int from, bool on)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .connect = MSEC,
					     .loss = on ? LNET_SIM_ALWAYS : 0 };
	const struct ulnet_nid *nid = &l->nids[from][l->rail];
	const struct ulnet_nid any = LNET_NID_ANY;

	if (is_verbs(l))
		simqp_silence(l->fabric, nid, &any, on ? NEVER : 0);
	else
		must(lnet_sim_link_set(l->sim, nid, &any, &link),
		     "a direction");
}

static void requests_lost(struct load *l)
{
	mute(l, CLIENT, true);
}

static void requests_heard(struct load *l)
{
	mute(l, CLIENT, false);
}

static void replies_lost(struct load *l)
{
	mute(l, SERVER, true);
}

static void replies_heard(struct load *l)
{
	mute(l, SERVER, false);
}

/* Removes the device of the client's rail. */
static void local_remove(struct load *l)
{
	simqp_remove(l->fabric, &l->nids[CLIENT][l->rail]);
}

static void local_insert(struct load *l)
{
	simqp_insert(l->fabric, &l->nids[CLIENT][l->rail]);
}

static void peer_remove(struct load *l)
{
	simqp_remove(l->fabric, &l->nids[SERVER][l->rail]);
}

static void peer_insert(struct load *l)
{
	simqp_insert(l->fabric, &l->nids[SERVER][l->rail]);
}

static void queues_break(struct load *l)
{
	simqp_cut(l->fabric, &l->nids[CLIENT][l->rail],
		  &l->nids[SERVER][l->rail]);
}

static void nothing(struct load *l)
{
	(void)l;
}

#define EVER UINT32_MAX
/* A limit for rails that may be away: if the only NID that the caller names is
 * on the rail that failed, calls wait until it is back. */
#define UNTIL_BACK                            \
	{                                     \
		FAILED / MSEC + 1000, EVER, 0 \
	}

static const struct failure failures[] = {
	{ "the link of the caller's interface goes down",
	  local_down,
	  local_up,
	  { 50, 1000, 0 },
	  { 50, 1000, 0 },
	  { 50, EVER, 0 },
	  UNTIL_BACK },
	{ "the caller's address is removed",
	  local_del,
	  local_add,
	  { 50, 1000, 0 },
	  { 50, 1000, 0 },
	  { 100, EVER, 0 },
	  UNTIL_BACK },
	{ "the server's interface dies",
	  peer_down,
	  peer_up,
	  { 60, 1000, 0 },
	  { 60, 1000, 0 },
	  { 1000, EVER, 0 },
	  UNTIL_BACK },
	{ "the server's address is removed",
	  peer_del,
	  peer_add,
	  { 50, 1000, 0 },
	  { 50, 1000, 0 },
	  { 50, EVER, 0 },
	  UNTIL_BACK },
	{ "the server's interface dies, and what crosses to its rail",
	  peer_rail_down,
	  peer_rail_up,
	  { 350, 1000, 0 },
	  { 50, 1000, 0 },
	  { 1000, EVER, 0 },
	  UNTIL_BACK },
	{ "the server's address is removed, and what crosses to its rail",
	  peer_rail_del,
	  peer_rail_add,
	  { 1000, 1000, 0 },
	  { 50, 1000, 0 },
	  { 1000, EVER, 0 },
	  UNTIL_BACK },
	{ "the rail is silent",
	  silence,
	  speech,
	  { 1000, 1000, 0 },
	  { 1000, 1000, 0 },
	  { 1000, EVER, 0 },
	  UNTIL_BACK },
	{ "the rail is away for one of three seconds",
	  instability,
	  stability,
	  { 1000, 1000, 0 },
	  { 1000, 1000, 0 },
	  { 1000, EVER, 0 },
	  UNTIL_BACK },
	{ "requests are lost",
	  requests_lost,
	  requests_heard,
	  { 1000, 1000, 0 },
	  { 1000, 1000, 0 },
	  { 1000, EVER, 0 },
	  UNTIL_BACK },
	{ "replies are lost",
	  replies_lost,
	  replies_heard,
	  { 1000, 1000, 0 },
	  { 1000, 1000, 0 },
	  { 1000, EVER, 0 },
	  UNTIL_BACK },
};

static const struct failure device_failures[] = {
	{ .what = "the caller's device is removed",
	  .fail = local_remove,
	  .mend = local_insert },
	{ .what = "the server's device is removed",
	  .fail = peer_remove,
	  .mend = peer_insert },
	{ .what = "its queue pairs break",
	  .fail = queues_break,
	  .mend = nothing },
};

/* ---- a run ---- */

/* Returns how many ms after the failure 90 % of the usual number of calls end
 * within 100 ms; NEVER: they do not. */
static uint64_t goes_on(const struct load *l)
{
	/* DEPTH calls end in each round trip. */
	const uint64_t usual = DEPTH * 100 * MSEC / (2 * LATENCY);
	uint64_t sum = 0;

	for (uint64_t i = 0; i < FAILED / BIN; i++) {
		sum += l->bins[i];
		sum -= i >= 10 ? l->bins[i - 10] : 0;
		if (i >= 9 && sum * 10 >= usual * 9)
			return (i - 9) * BIN / MSEC;
	}
	return NEVER;
}

static void ms_print(const char *what, uint64_t ms)
{
	if (ms == NEVER)
		printf(", %s never", what);
	else
		printf(", %s %lu ms", what, (unsigned long)ms);
}

static void report(const struct failure *f, const struct load *l,
		   const char *where, const struct limit *limit)
{
	uint64_t again = l->again == NEVER ? NEVER : l->again / MSEC;
	bool good = l->longest <= limit->longest * MSEC &&
		    (limit->again == EVER || again <= limit->again) &&
		    l->lost <= limit->lost;

	printf("%s %s: %s: %u calls lost", good ? "PASS" : "FAIL", where,
	       f->what, l->lost);
	ms_print("the longest took", l->longest / MSEC);
	printf(", %u took over %lu ms", l->slow, (unsigned long)(SLOW / MSEC));
	ms_print("others go on after", goes_on(l));
	ms_print("the rail is used again after", again);
	printf("\n");
	good ? passed++ : failed++;
}

static const char *setup_text(const struct setup *s, char *text, size_t size)
{
	snprintf(text, size, "%s%u net%s%s, %u NID%s named, %s, %u CPT%s, %s",
		 !s->verbs	    ? ""
		 : s->rail == VERBS ? "TCP and RDMA, which fails; "
				    : "RDMA and TCP, which fails; ",
		 s->nets, s->nets == 1 ? "" : "s",
		 s->apart ? " of two cables" : "", s->named,
		 s->named == 1 ? "" : "s",
		 s->discovery ? s->listens ? "discovery" : "caller discovers"
			      : "no discovery",
		 s->cpts, s->cpts == 1 ? "" : "s",
		 s->replies ? "replies under way" : "requests under way");
	return text;
}

/* Runs up to the failure. The calls move in step: at that moment all requests,
 * or all replies, are on their way. */
static void run_to_failure(struct load *l)
{
	uint64_t phase = l->setup.replies ? 3 * LATENCY / 2 : LATENCY / 2;
	uint64_t round;

	lnet_sim_run(l->sim, WARM_UP);
	memset(l->used, 0, sizeof(l->used));
	lnet_sim_run(l->sim, SEC);
	l->rail = l->setup.verbs ? l->setup.rail : l->used[1] > l->used[0];
	round = l->callers[0].began;
	while (l->callers[0].began == round)
		lnet_sim_run(l->sim, LATENCY / 10);
	lnet_sim_run(l->sim,
		     l->callers[0].began + phase - lnet_sim_now(l->sim));
	l->at = lnet_sim_now(l->sim);
}

static const struct limit *limit_of(const struct failure *f,
				    const struct setup *setup)
{
	/* The limit for RDMA devices, whatever fails: a device that was removed
	 * is looked for once a second, and an attempt to connect that meets
	 * silence takes about as long as a ping waits. */
	static const struct limit devices = { 150, 3200, 0 };

	if (setup->verbs && setup->rail == VERBS)
		return &devices;
	if (setup->discovery)
		return setup->listens ? &f->aim : &f->caller;
	return setup->named == 1 ? &f->one : &f->all;
}

static void play(const struct failure *f, const struct setup *setup)
{
	const struct limit *limit = limit_of(f, setup);
	struct load *l = load_new(setup, gain);
	char where[128];

	run_to_failure(l);
	f->fail(l);
	lnet_sim_run(l->sim, FAILED);
	f->mend(l);
	l->back = lnet_sim_now(l->sim);
	lnet_sim_run(l->sim, BACK);
	/* A call that is still under way has taken at least this long. */
	for (unsigned int i = 0; i < DEPTH; i++) {
		uint64_t took = l->back + BACK - l->callers[i].began;

		l->longest = took > l->longest ? took : l->longest;
	}
	report(f, l, setup_text(setup, where, sizeof(where)), limit);
	failed += load_free(l) != 0;
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- any moment ---- */

#define MOMENTS_MAX 10000
#define MOMENTS	    8 /* of each row, unless the user says another number */
#define SPREAD	    (1500 * MSEC) /* in which the moments are */

/* A cable goes, at both ends, and a second after it is back the server's
 * address on the other one does: what is known of a rail must be true again
 * when the next one fails. */
static void cable_and_address(struct load *l)
{
	local_down(l);
	peer_down(l);
	lnet_sim_run(l->sim, 3 * SEC);
	local_up(l);
	peer_up(l);
	lnet_sim_run(l->sim, SEC);
	l->rail = !l->rail;
	peer_down(l);
	lnet_sim_run(l->sim, 2 * SEC);
	peer_up(l);
}

static const struct failure both = {
	.what = "a cable, and then the server's address on the other one",
	.fail = cable_and_address,
};

/* Returns how long the longest call took, ns, if the rail fails at moment @i of
 * @n. */
static uint64_t longest_at(const struct failure *f, const struct setup *setup,
			   unsigned int i, unsigned int n)
{
	struct load *l = load_new(setup, gain);
	uint64_t longest, end;

	lnet_sim_run(l->sim, SEC + i * SPREAD / n + i * 7919);
	l->rail = setup->verbs ? setup->rail : l->used[1] > l->used[0];
	l->at = lnet_sim_now(l->sim);
	f->fail(l);
	lnet_sim_run(l->sim, SEC);
	longest = l->longest;
	end = lnet_sim_now(l->sim);
	for (unsigned int k = 0; k < DEPTH; k++)
		if (l->callers[k].under_way &&
		    end - l->callers[k].began > longest)
			longest = end - l->callers[k].began;
	failed += load_free(l) != 0;
	return longest;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool breaks_crossing(const struct failure *f)
{
	return f->fail == peer_rail_down || f->fail == peer_rail_del;
}

/* Within how many ms each call ends, whatever the moment of the failure. Of
 * some failures a node is told; others show only in answers that do not come,
 * which takes a round trip and 50 ms, and another round trip that asks. */
static unsigned int moment_limit(const struct failure *f,
				 const struct setup *setup)
{
	bool crosses = breaks_crossing(f);
	bool silent = f->fail == silence || f->fail == requests_lost ||
		      f->fail == replies_lost;

	if (setup->verbs && setup->rail == VERBS)
		return 100;
	/* The caller is told, but of the two ways to the server's other NI one
	 * is cut, of which nobody is told. */
	if (setup->nets == 1 && setup->listens && crosses)
		return 150;
	return silent ? 100 : 50;
}

static void play_moments(const struct failure *f, const struct setup *setup,
			 unsigned int n)
{
	unsigned int limit = moment_limit(f, setup);
	static uint64_t longest[MOMENTS_MAX];
	char where[128];
	bool good;

	for (unsigned int i = 0; i < n; i++)
		longest[i] = longest_at(f, setup, i, n);
	qsort(longest, n, sizeof(longest[0]), compare);
	good = longest[n - 1] <= limit * MSEC;
	printf("%s %s, %s: %s: at %u moments the longest call took, ms: min "
	       "%lu, median %lu, p95 %lu, max %lu (limit %u)\n",
	       good ? "PASS" : "FAIL", setup_text(setup, where, sizeof(where)),
	       setup->idle ? "idle" : "busy", f->what, n,
	       (unsigned long)(longest[0] / MSEC),
	       (unsigned long)(longest[n / 2] / MSEC),
	       (unsigned long)(longest[n * 95 / 100] / MSEC),
	       (unsigned long)(longest[n - 1] / MSEC), limit);
	good ? passed++ : failed++;
}

/* Kinds of rails and callers. */
static const struct setup moments[] = {
	{ .nets = RAILS, .named = 1, .discovery = true, .listens = true },
	{ .nets = RAILS, .named = 1, .discovery = true, .listens = false },
	{ .nets = 1, .named = 1, .discovery = true, .listens = true },
	{ .nets = 1, .named = 1, .discovery = true, .listens = false },
	{ .nets = 1,
	  .apart = true,
	  .named = 1,
	  .discovery = true,
	  .listens = true },
	{ .nets = 1,
	  .apart = true,
	  .named = 1,
	  .discovery = true,
	  .listens = false },
	{ .nets = RAILS,
	  .named = 1,
	  .discovery = true,
	  .listens = true,
	  .verbs = true,
	  .rail = 0 },
	{ .nets = RAILS,
	  .named = 1,
	  .discovery = true,
	  .listens = true,
	  .verbs = true,
	  .rail = VERBS },
};

static void play_all_moments(unsigned int n)
{
	for (size_t i = 0; i < 2 * COUNT(moments); i++) {
		struct setup setup = moments[i / 2];

		setup.cpts = 1;
		setup.idle = i % 2;
		for (size_t k = 0; k < COUNT(failures); k++)
			if (failures[k].fail != instability &&
			    !(setup.apart && breaks_crossing(&failures[k])) &&
			    (!setup.verbs ||
			     failures[k].fail != peer_rail_down))
				play_moments(&failures[k], &setup, n);
		if (!setup.verbs)
			play_moments(&both, &setup, n);
		for (size_t k = 0; setup.verbs && setup.rail == VERBS &&
				   k < COUNT(device_failures);
		     k++)
			play_moments(&device_failures[k], &setup, n);
	}
}

static void play_all(const struct setup *setup)
{
	for (size_t i = 0; i < COUNT(failures); i++)
		if (!setup->verbs || failures[i].fail != peer_rail_down)
			play(&failures[i], setup);
	for (size_t i = 0;
	     setup->verbs && setup->rail == VERBS && i < COUNT(device_failures);
	     i++)
		play(&device_failures[i], setup);
}

/* Bits that together choose a setup. */
#define ONE_NET	       1u
#define CPTS	       2u
#define ONLY_CALLS     4u
#define REPLIES	       8u
#define ALL_NAMED      16u
#define NOT_DISCOVERED 32u
#define SETUPS	       64u

static void play_setup(unsigned int bits)
{
	const struct setup setup = {
		.nets = bits & ONE_NET ? 1 : RAILS,
		.named = bits & ALL_NAMED ? RAILS : 1,
		.discovery = !(bits & NOT_DISCOVERED),
		.listens = !(bits & ONLY_CALLS),
		.cpts = bits & CPTS ? 4 : 1,
		.replies = bits & REPLIES,
	};

	play_all(&setup);
}

/* Plays a rail over TCP and one over RDMA: first the former fails, then the
 * latter. */
static void play_verbs(unsigned int bits)
{
	struct setup setup = {
		.nets = RAILS,
		.named = 1,
		.discovery = true,
		.listens = !(bits & ONLY_CALLS),
		.cpts = bits & CPTS ? 4 : 1,
		.replies = bits & REPLIES,
		.verbs = true,
	};

	for (setup.rail = 0; setup.rail < RAILS; setup.rail++)
		play_all(&setup);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "long", no_argument, NULL, 'l' },
		{ "gain", required_argument, NULL, 'g' },
		{ "moments", required_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 },
	};
	static const unsigned int usual[] = {
		0,
		REPLIES,
		ONLY_CALLS,
		ONLY_CALLS | REPLIES,
		CPTS,
		CPTS | REPLIES,
		ONE_NET,
		ONE_NET | ONLY_CALLS,
		CPTS | ONLY_CALLS,
		NOT_DISCOVERED,
		NOT_DISCOVERED | ALL_NAMED,
	};
	unsigned int n = 0;
	bool all = false;
	int c;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'l') {
			all = true;
		} else if (c == 'g') {
			gain = atoi(optarg);
		} else if (c == 'm' && atoi(optarg) > 0 &&
			   atoi(optarg) <= MOMENTS_MAX) {
			n = (unsigned int)atoi(optarg);
		} else {
			fprintf(stderr, "usage: failover [--long] [--gain N] "
					"[--moments N]\n");
			return 2;
		}
	}
	play_all_moments(n ? n : MOMENTS);
	if (n) {
		printf("%d passed, %d failed\n", passed, failed);
		return failed ? 1 : 0;
	}
	for (unsigned int i = 0; all && i < SETUPS; i++)
		play_setup(i);
	for (size_t i = 0; !all && i < sizeof(usual) / sizeof(usual[0]); i++)
		play_setup(usual[i]);
	for (unsigned int i = 0; i <= (CPTS | REPLIES | ONLY_CALLS); i++)
		if (!(i & ONE_NET) &&
		    (all || !i || i == CPTS || i == (REPLIES | ONLY_CALLS)))
			play_verbs(i);
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
