/* SPDX-License-Identifier: BSD-3-Clause */
/* Which long replies are fetched next, if there is not room for all of them at
 * the client (struct reply_room), and what becomes of their memory. */
#include "rpc/client/client.h"
#include "rpc/client/fetch.h"
#include "tests/unit/rpc/serve_rig.h"

#define SMALL	UINT32_C(65536)
#define ROOM	(16 * SMALL)
#define SERVERS 3
#define AT_ONCE 12 /* small replies that each server owes at any time */
#define MOST	400

static struct serve_rig g;

/* One server for the client, as connections of other NIDs are others. */
struct asker {
	struct ulrpc_client *client;
	unsigned int under_way, ended;
	bool stops;
};

static struct asker askers[SERVERS + 1];

/* Replies with as many bytes as the request says. */
static void make(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	uint32_t n;
	void *reply;

	note_request(arg, r, body, length);
	memcpy(&n, body, sizeof(n));
	reply = calloc(1, n);
	cr_assert_not_null(reply);
	ulrpc_reply(r, reply, n);
	free(reply);
}

static struct reply_room *room(void)
{
	return &askers[0].client->shard->imports->reply_room;
}

static struct ulrpc_client *client_of(unsigned int n)
{
	const struct ulnet_nid nids[] = { nth_id(SERVER).nid,
					  nth_id(10 + n).nid };
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	ulrpc_client_conf_init(&conf);
	conf.nids = nids;
	conf.nnids = ARRAY_SIZE(nids);
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(g.rpc[CALLER], &conf, &c), 0);
	return c;
}

static void setup(void)
{
	const struct ulrpc_method_conf method = { .name = "make",
						  .handler = make,
						  .arg = &g.served,
						  .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.queue_bytes_max = UINT64_C(1) << 30;
	conf.reply_limit = 64 << 20;
	serve_start(&g, &conf);
	cr_assert_eq(ulrpc_open(g.node[CALLER], NULL, &g.rpc[CALLER]), 0);
	cluster_links(g.sim, &(struct ulnet_sim_link){ .latency = MSEC });
	for (unsigned int i = 0; i <= SERVERS; i++)
		askers[i] = (struct asker){ .client = client_of(i) };
	room()->max = ROOM;
}

static void ask(struct asker *a, uint32_t n, ulrpc_done_fn done)
{
	const struct ulrpc_call_conf conf = { .deadline = 600 * 1000000,
					      .reply_max = 100,
					      .reply_limit = ROOM };

	a->under_way++;
	cr_assert_eq(ulrpc_call(a->client, ulrpc_method("make"), &n, sizeof(n),
				&conf, done, a, NULL),
		     0);
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct asker *a = arg;

	(void)reply;
	cr_assert_eq(o->cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(o->cause));
	cr_assert_gt(length, 0);
	a->under_way--;
	a->ended++;
}

/* Asks for another one as soon as one has come. */
static void on_small(void *arg, const struct ulrpc_outcome *o,
		     const void *reply, size_t length)
{
	struct asker *a = arg;

	on_end(arg, o, reply, length);
	if (!a->stops)
		ask(a, SMALL, on_small);
}

/* Returns how many small replies come from @servers servers, each of which
 * always has @at_once more, before one comes that needs all the room. */
static unsigned int overtakes(unsigned int servers, unsigned int at_once)
{
	struct asker *longest = &askers[0];
	unsigned int before = 0, ended = 0;
	uint64_t most = 0;

	setup();
	for (unsigned int i = 1; i <= servers; i++)
		for (unsigned int k = 0; k < at_once; k++)
			ask(&askers[i], SMALL, on_small);
	while (askers[1].ended < 20)
		lnet_sim_run(g.sim, MSEC / 4);
	for (unsigned int i = 1; i <= servers; i++)
		before += askers[i].ended;
	ask(longest, ROOM, on_end);
	for (unsigned int i = 0; longest->under_way && ended < MOST; i++) {
		lnet_sim_run(g.sim, MSEC / 4);
		most = MAX(most, room()->used);
		ended = 0;
		for (unsigned int k = 1; k <= servers; k++)
			ended += askers[k].ended;
		ended -= before;
	}
	cr_assert_leq(most, ROOM + servers * SMALL);
	for (unsigned int i = 1; i <= servers; i++)
		askers[i].stops = true;
	lnet_sim_run(g.sim, 60 * SEC);
	for (unsigned int i = 0; i <= servers; i++)
		cr_assert_eq(askers[i].under_way, 0);
	cr_assert_eq(room()->used, 0);
	serve_fini(&g);
	return ended;
}

/* A reply that needs all the room comes though others, which need little, are
 * never at an end: as much as the room has may overtake it. */
Test(reply_room, a_long_reply_does_not_starve)
{
	cr_assert_leq(overtakes(1, AT_ONCE), 5 * ROOM / SMALL);
	cr_assert_leq(overtakes(SERVERS, AT_ONCE), 5 * ROOM / SMALL);
	/* Each of these alone might always come. */
	cr_assert_leq(overtakes(SERVERS, 1), 5 * ROOM / SMALL);
}

/* ---- long memory ---- */

#define LONG (2 * (uint32_t)GIVE_BACK_MIN)

static unsigned int steps; /* in which memory was given back */

static void on_given(struct give_back *b, void *holder, size_t bytes)
{
	uint64_t before = room()->used;

	steps++;
	fetch_on_given(b, holder, bytes);
	cr_assert_eq(room()->used, before - bytes);
}

/* What is long is given back in steps, and takes room until then. */
Test(reply_room, is_given_back)
{
	struct ulrpc_call_conf conf = { .deadline = 60 * 1000000,
					.reply_limit = LONG };
	const uint32_t n = LONG;

	setup();
	room()->max = LONG;
	room()->bodies.gave = on_given;
	askers[0].under_way = 1;
	cr_assert_eq(ulrpc_call(askers[0].client, ulrpc_method("make"), &n,
				sizeof(n), &conf, on_end, &askers[0], NULL),
		     0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(askers[0].ended, 1);
	cr_assert_geq(steps, LONG / GIVE_BACK_STEP - 1);
	cr_assert_eq(room()->used, 0);
	serve_fini(&g);
}

/* Who waits for it gets the memory itself: nothing is copied. */
Test(reply_room, is_handed_over)
{
	struct ulrpc_call_conf conf = { .deadline = 60 * 1000000,
					.reply_limit = LONG };
	const uint32_t lengths[] = { LONG, ULRPC_BODY_MAX, 5000 };
	struct ulrpc_outcome o;
	uint64_t wrong = 0;
	size_t length;
	void *reply;

	setup();
	room()->max = LONG;
	room()->bodies.gave = on_given;
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		cr_assert_eq(ulrpc_call_wait_alloc(
				     askers[0].client, ulrpc_method("make"),
				     &lengths[i], sizeof(lengths[i]), &conf,
				     &reply, &length, &o),
			     0);
		cr_assert_eq(o.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(length, lengths[i]);
		for (size_t k = 0; k < length; k++)
			wrong += ((const uint8_t *)reply)[k];
		cr_assert_eq(wrong, 0);
		free(reply);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(room()->used, 0);
		cr_assert_eq(steps, 0);
	}
	serve_fini(&g);
}

/* Whoever waits for it with a buffer copies it: the CPT does not, and gives
 * nothing back. */
Test(reply_room, is_copied_by_who_waits)
{
	uint8_t *whole = malloc(LONG), part[9];
	const uint32_t n = LONG;
	struct ulrpc_call_conf conf = { .deadline = 60 * 1000000 };
	void *const buffers[] = { whole, part, NULL };
	const size_t sizes[] = { LONG, sizeof(part), 0 };
	struct ulrpc_outcome o;
	size_t length;

	setup();
	room()->max = LONG;
	room()->bodies.gave = on_given;
	memset(whole, 1, LONG);
	memset(part, 1, sizeof(part));
	for (unsigned int i = 0; i < ARRAY_SIZE(buffers); i++) {
		cr_assert_eq(ulrpc_call_wait(askers[0].client,
					     ulrpc_method("make"), &n,
					     sizeof(n), &conf, buffers[i],
					     sizes[i], &length, &o),
			     0);
		cr_assert_eq(o.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(length, LONG);
	}
	cr_assert_eq(memchr(whole, 1, LONG), NULL);
	cr_assert_eq(memchr(part, 1, sizeof(part)), NULL);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(room()->used, 0);
	cr_assert_eq(steps, 0);
	serve_fini(&g);
	free(whole);
}

/* What belongs to a set is not copied either. */
Test(reply_room, is_handed_to_a_set)
{
	const uint32_t n = LONG;
	struct ulrpc_call_conf conf = { .deadline = 60 * 1000000 };
	struct ulrpc_result result;
	struct ulrpc_set *set;

	setup();
	room()->max = LONG;
	room()->bodies.gave = on_given;
	cr_assert_eq(ulrpc_set_new(g.rpc[CALLER], &set), 0);
	cr_assert_eq(ulrpc_set_call(set, askers[0].client, ulrpc_method("make"),
				    &n, sizeof(n), &conf, NULL, NULL),
		     0);
	cr_assert_eq(ulrpc_set_wait(set, 1, ULRPC_NEVER), 1);
	cr_assert_eq(ulrpc_set_next(set, &result), 0);
	cr_assert_eq(result.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(result.length, LONG);
	cr_assert_eq(((uint8_t *)result.reply)[LONG - 1], 0);
	free(result.reply);
	ulrpc_set_free(set);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(room()->used, 0);
	cr_assert_eq(steps, 0);
	serve_fini(&g);
}
