/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls and bulk between nodes of which rails have MTU holes: pings, short
 * calls and extensions get through, what is longer vanishes. Where another rail
 * is whole, calls and bulk go on by that one; where none is, their outcomes say
 * only what is known.
 */
#include "tests/unit/lnet/cluster.h"
#include "ulnet/rpc.h"
#include "ulnet/service.h"

#define SEC    (1000 * MSEC)
#define HOLE   1400 /* bytes */
#define BODY   8000
#define LENGTH 3000000
#define DEPTH  4
#define PAUSE  (10 * MSEC) /* between two calls of a caller */

enum { CALLER, SERVER };

/* Which messages meet the holes. */
enum { REQUESTS = 1, REPLIES = 2, BOTH = 3 };

struct rig {
	struct lnet_sim *sim;
	uint64_t connect; /* of all links, ns */
	struct ulrpc *rpc[2];
	struct ulrpc_client *client;
	struct ulnet_nid nid[2][2]; /* by node and rail */
	unsigned int runs;
	bool over;
	struct caller {
		struct rig *g;
		uint64_t began;
	} callers[DEPTH];
	/* of callers: */
	unsigned int calls, lost, used[2];
	uint64_t longest;
	unsigned int usual; /* calls in 10 s while both rails are whole */
	/* of one(): */
	unsigned int ended;
	struct ulrpc_outcome outcome;
};

/* What a call asks for. */
struct ask {
	uint32_t reply; /* length of the reply */
	bool put;	/* the bulk is put, not got */
	uint8_t more[BODY];
};

static uint8_t own[LENGTH], lent[LENGTH];

/* ---- the service ---- */

static void on_moved(void *arg, int status, uint64_t moved)
{
	(void)moved;
	if (status)
		ulrpc_fail(arg, status);
	else
		ulrpc_reply(arg, NULL, 0);
}

static void handle(void *arg, struct ulrpc_request *r, const void *body,
		   size_t length)
{
	struct iovec iov = { own, LENGTH };
	struct ulrpc_request_info info;
	struct rig *g = arg;
	struct ask ask = { .reply = 0 };

	/* The body is not aligned, and short calls send its begin only. */
	memcpy(&ask, body, MIN(length, sizeof(ask)));
	g->runs++;
	ulrpc_request_info(r, &info);
	if (!info.nbulks)
		ulrpc_reply(r, own, ask.reply);
	else if (ask.put)
		cr_assert_eq(ulrpc_bulk_put(r, 0, 0, &iov, 1, on_moved, r), 0);
	else
		cr_assert_eq(ulrpc_bulk_get(r, 0, 0, &iov, 1, on_moved, r), 0);
}

static void serve(struct rig *g)
{
	static const enum ulrpc_semantics kinds[] = { ULRPC_IDEMPOTENT,
						      ULRPC_AT_MOST_ONCE };
	static const char *const names[] = { "again", "once" };
	struct ulrpc_method_conf methods[2];
	struct ulrpc_service_conf conf;
	struct ulrpc_service *svc;

	for (unsigned int i = 0; i < 2; i++)
		methods[i] = (struct ulrpc_method_conf){
			.name = names[i],
			.handler = handle,
			.arg = g,
			.run = ULRPC_RUN_INLINE,
			.semantics = kinds[i],
		};
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = 2;
	cr_assert_eq(ulrpc_service_start(g->rpc[SERVER], &conf, &svc), 0);
}

/* ---- the rig ---- */

static void node_add(struct rig *g, unsigned int node, bool accepts)
{
	static const char *const nids[2] = { "10.0.0.1@tcp 10.1.0.1@tcp1",
					     "10.0.0.2@tcp 10.1.0.2@tcp1" };
	struct ulnet_conf conf;
	struct ulnet_id id;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_ON;
	if (!accepts)
		conf.accept = LNET_ACCEPT_NONE;
	cr_assert_eq(lnet_sim_node_add(g->sim, nids[node], &conf, NULL, NULL),
		     (int)node);
	cr_assert_eq(lnet_setting_set(lnet_sim_node(g->sim, node),
				      "recovery_limit", 0),
		     0);
	for (unsigned int rail = 0; rail < 2; rail++) {
		cr_assert_eq(
			LNetGetId(lnet_sim_node(g->sim, node), rail + 1, &id),
			0);
		g->nid[node][rail] = id.nid;
	}
	cr_assert_eq(
		ulrpc_open(lnet_sim_node(g->sim, node), NULL, &g->rpc[node]),
		0);
}

/* @accepts: the caller's node accepts connections, so that the server can
 * discover it. */
static void begin(struct rig *g, uint64_t connect, bool accepts)
{
	const struct ulnet_sim_link link = { .latency = MSEC / 10,
					     .connect = connect };
	struct ulrpc_client_conf conf;

	*g = (struct rig){ .connect = connect };
	cr_assert_eq(lnet_sim_new(1, 1, &g->sim), 0);
	cluster_links(g->sim, &link);
	node_add(g, CALLER, accepts);
	node_add(g, SERVER, true);
	serve(g);
	ulrpc_client_conf_init(&conf);
	conf.nids = g->nid[SERVER];
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(g->rpc[CALLER], &conf, &g->client), 0);
}

static void end(struct rig *g)
{
	g->over = true;
	ulrpc_client_close(g->client);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_close(g->rpc[i]), 0);
	cr_assert_eq(lnet_sim_free(g->sim), 0);
}

/* Makes or mends holes in @rail for the messages of @which. */
static void holes(const struct rig *g, unsigned int rail, unsigned int which,
		  bool on)
{
	const struct ulnet_sim_link link = { .latency = MSEC / 10,
					     .connect = g->connect,
					     .hole = on ? HOLE : 0 };

	for (unsigned int i = 0; i < 2; i++)
		if (which & 1u << i)
			cr_assert_eq(lnet_sim_link_set(g->sim, &g->nid[i][rail],
						       &LNET_NID_ANY, &link),
				     0);
}

/* Calls @fn with each kind of links, callers and holes. */
static void in_all(void (*fn)(struct rig *g, unsigned int which))
{
	for (unsigned int i = 0; i < 12; i++) {
		struct rig g;

		begin(&g, i & 1 ? MSEC : 0, i & 2);
		fn(&g, 1 + i / 4);
		end(&g);
	}
}

/* ---- callers ---- */

static void go(void *arg);

static void on_called(void *arg, const struct ulrpc_outcome *o,
		      const void *reply, size_t length)
{
	struct caller *c = arg;
	struct rig *g = c->g;

	(void)reply;
	(void)length;
	if (g->over)
		return;
	g->calls++;
	g->lost += o->cause != ULRPC_CAUSE_OK;
	g->longest = MAX(g->longest, lnet_sim_now(g->sim) - c->began);
	for (unsigned int i = 0; i < 2; i++)
		g->used[i] += lnet_nid_eq(&o->local, &g->nid[CALLER][i]);
	cr_assert_eq(lnet_sim_at(g->sim, PAUSE, go, c), 0);
}

/* Makes a call with a large body and a large reply. */
static void go(void *arg)
{
	static const struct ask ask = { .reply = BODY };
	const struct ulrpc_call_conf conf = { .deadline = 20000000,
					      .reply_max = BODY,
					      .semantics = ULRPC_AT_MOST_ONCE };
	struct caller *c = arg;

	c->began = lnet_sim_now(c->g->sim);
	cr_assert_eq(ulrpc_call(c->g->client, ulrpc_method("once"), &ask,
				sizeof(ask), &conf, on_called, c, NULL),
		     0);
}

/* Lets @ns pass, and counts the calls that end meanwhile. */
static void count(struct rig *g, uint64_t ns)
{
	g->calls = g->lost = g->used[0] = g->used[1] = 0;
	g->longest = 0;
	lnet_sim_run(g->sim, ns);
}

static void go_on(struct rig *g, unsigned int which)
{
	for (unsigned int i = 0; i < DEPTH; i++) {
		g->callers[i].g = g;
		go(&g->callers[i]);
	}
	lnet_sim_run(g->sim, 5 * SEC);
	count(g, 10 * SEC);
	g->usual = g->calls;
	holes(g, 1, which, true);
	count(g, 10 * SEC);
	cr_assert_eq(g->lost, 0);
	cr_assert_gt(g->calls, 9 * g->usual / 10);
	cr_assert_lt(g->longest, 500 * MSEC);
	cr_assert_gt(g->used[0], 9 * g->calls / 10);
}

Test(hole, calls_go_on_by_the_other_rail)
{
	in_all(go_on);
}

/* After some tries the rail is left alone for ten seconds each time; when it is
 * whole, it is used again. */
Test(hole, what_fails_again_and_again_is_seldom_tried)
{
	struct rig g;

	begin(&g, MSEC, true);
	go_on(&g, REPLIES);
	count(&g, 60 * SEC);
	cr_assert_eq(g.lost, 0);
	cr_assert_gt(g.calls, 6 * (g.usual - g.usual / 50));
	holes(&g, 1, REPLIES, false);
	lnet_sim_run(g.sim, 120 * SEC);
	count(&g, 10 * SEC);
	cr_assert_eq(g.lost, 0);
	cr_assert_gt(g.used[1], g.calls / 10);
	end(&g);
}

/* ---- bulk, and single calls ---- */

static void on_one(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct rig *g = arg;

	(void)reply;
	(void)length;
	g->ended++;
	g->outcome = *o;
}

/* Makes a call, which ends within @within ns. */
static void one(struct rig *g, const struct ask *ask, size_t length,
		struct ulrpc_bulk **bulk, enum ulrpc_semantics semantics,
		uint64_t within)
{
	const struct ulrpc_call_conf conf = { .deadline = within / 1000,
					      .reply_max = BODY,
					      .semantics = semantics,
					      .bulks = bulk,
					      .nbulks = bulk != NULL };
	bool again = semantics == ULRPC_IDEMPOTENT;

	g->ended = g->runs = 0;
	cr_assert_eq(ulrpc_call(g->client,
				ulrpc_method(again ? "again" : "once"), ask,
				length, &conf, on_one, g, NULL),
		     0);
	for (uint64_t ms = within / MSEC; ms && !g->ended; ms--)
		lnet_sim_run(g->sim, MSEC);
	lnet_sim_run(g->sim, MSEC);
	cr_assert_eq(g->ended, 1);
}

static void fill(uint8_t *bytes, unsigned int by)
{
	for (unsigned int i = 0; i < LENGTH; i++)
		bytes[i] = (uint8_t)(i * by);
}

static void move(struct rig *g, bool put)
{
	struct iovec iov = { lent, LENGTH };
	const struct ulrpc_bulk_conf lend = {
		.iov = &iov,
		.niov = 1,
		.access = put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE,
	};
	const struct ask ask = { .put = put };
	struct ulrpc_bulk *bulk;

	fill(own, 7);
	fill(lent, 11);
	cr_assert_eq(ulrpc_bulk_new(g->rpc[CALLER], &lend, &bulk), 0);
	one(g, &ask, 8, &bulk, ULRPC_AT_MOST_ONCE, 20 * SEC);
	cr_assert_eq(g->outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(g->outcome.cause));
	cr_assert_eq(g->runs, 1);
	cr_assert_eq(memcmp(own, lent, LENGTH), 0);
	ulrpc_bulk_close(bulk, NULL, NULL);
}

/* The first try of the first bulk waits for 5 s if all of it went by the rail
 * with the hole, as nobody knows how long bulk takes. */
static void bulk_goes_on(struct rig *g, unsigned int which)
{
	for (unsigned int i = 0; i < 10; i++) {
		uint64_t began = lnet_sim_now(g->sim);

		move(g, i & 1);
		cr_assert_lt(lnet_sim_now(g->sim) - began,
			     i < 4 ? 6 * SEC : SEC);
		if (i == 1)
			holes(g, 1, which, true);
		lnet_sim_run(g->sim, 200 * MSEC);
	}
}

Test(hole, bulk_goes_on_by_the_other_rail)
{
	in_all(bulk_goes_on);
}

/* ---- no rail is whole ---- */

static void outcome_is_true(struct rig *g)
{
	cr_assert_neq(g->outcome.cause, ULRPC_CAUSE_OK);
	if (g->outcome.execution == ULRPC_EXECUTED)
		cr_assert_gt(g->runs, 0);
	lnet_sim_run(g->sim, 60 * SEC);
	if (g->outcome.execution == ULRPC_NOT_EXECUTED)
		cr_assert_eq(g->runs, 0);
}

static void says_what_is_known(struct rig *g, unsigned int which)
{
	static const enum ulrpc_semantics kinds[] = { ULRPC_IDEMPOTENT,
						      ULRPC_AT_MOST_ONCE,
						      ULRPC_EXACTLY_ONCE };
	const struct ask ask = { .reply = 8 }, more = { .reply = BODY };

	one(g, &ask, 8, NULL, ULRPC_IDEMPOTENT, SEC);
	cr_assert_eq(g->outcome.cause, ULRPC_CAUSE_OK);
	holes(g, 0, which, true);
	holes(g, 1, which, true);
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		one(g, &more, which & REQUESTS ? sizeof(more) : 8, NULL,
		    kinds[i], 5 * SEC);
		outcome_is_true(g);
		cr_assert_leq(g->runs, kinds[i] == ULRPC_IDEMPOTENT ? 100 : 1);
		one(g, &ask, 8, NULL, kinds[i], SEC);
		cr_assert_eq(g->outcome.cause, ULRPC_CAUSE_OK,
			     "what is short passes");
	}
	holes(g, 0, which, false);
	one(g, &more, sizeof(more), NULL, ULRPC_AT_MOST_ONCE, 5 * SEC);
	cr_assert_eq(g->outcome.cause, ULRPC_CAUSE_OK);
}

Test(hole, without_a_way_outcomes_are_true)
{
	in_all(says_what_is_known);
}
