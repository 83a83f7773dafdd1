/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls and bulk between nodes with two rails, of which one fails. Client and
 * service are both real. With discovery the client is given one NID of the
 * server, and uses both rails; without discovery it is given both NIDs, and
 * uses one at a time.
 */
#include "lnet/net/net.h"
#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "rpc/conn_event.h"
#include "tests/unit/rpc/mover.h"

#define LENGTH 3000000
#define LONG   100000 /* bytes of a reply that is held and fetched */

static const char *const one_net[2] = { "10.0.0.1@tcp 10.1.0.1@tcp",
					"10.0.0.2@tcp 10.1.0.2@tcp" };
static const char *const two_nets[2] = { "10.0.0.1@tcp 10.1.0.1@tcp1",
					 "10.0.0.2@tcp 10.1.0.2@tcp1" };
static const char *const *nids = one_net;
static bool has_numa;

static struct {
	struct serve_rig g;
	struct mover m;
	struct ulnet_nid nid[2][2]; /* NIDs by node and rail */
	struct called call;
} w;

/* ---- the service ---- */

/* Replies with more than the call has room for: the reply is held, and fetched.
 */
static void tell_much(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	note_request(arg, r, body, length);
	ulrpc_reply(r, w.m.own, LONG);
}

static void serve(void)
{
	struct served *s = &w.g.served;
	const struct ulrpc_method_conf methods[] = {
		{ .name = "much",
		  .handler = tell_much,
		  .arg = s,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "echo",
		  .handler = echo,
		  .arg = s,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "hold",
		  .handler = hold,
		  .arg = s,
		  .run = ULRPC_RUN_INLINE },
		mover_method(&w.m),
	};

	serve_open(&w.g, NULL);
	serve_methods(&w.g, methods, ARRAY_SIZE(methods));
}

/* ---- the rig ---- */

/* Distances of a machine with NUMA nodes that are all equally far away. */
static struct numa *numa_even(void)
{
	struct numa *numa = calloc(1, sizeof(*numa));

	cr_assert_not_null(numa);
	numa->farthest = NUMA_FAR;
	for (unsigned int a = 0; a < NUMA_NODES_MAX; a++)
		for (unsigned int b = 0; b < NUMA_NODES_MAX; b++)
			numa->distance[a][b] = a == b ? NUMA_NEAR : NUMA_FAR;
	return numa;
}

static void nodes(unsigned int cpts, const struct ulnet_conf *caller,
		  const struct ulnet_conf *server)
{
	const struct ulnet_conf conf[2] = { *caller, *server };
	const struct ulnet_sim_link link = { .latency = MSEC };
	struct ulnet_id id;

	serve_init_on(&w.g, cpts, nids, conf);
	cluster_links(w.g.sim, &link);
	mover_init(&w.m, w.g.sim, LENGTH);
	for (unsigned int i = 0; i < 2; i++) {
		if (has_numa)
			net_node(w.g.node[i])->numa = numa_even();
		for (unsigned int rail = 0; rail < 2; rail++) {
			cr_assert_eq(LNetGetId(w.g.node[i], rail + 1, &id), 0);
			w.nid[i][rail] = id.nid;
		}
	}
	cr_assert_eq(ulrpc_open(w.g.node[CALLER], NULL, &w.g.rpc[CALLER]), 0);
	serve();
}

/* Opens a client that is given the first @n of @nid. */
static struct ulrpc_client *client_of(const struct ulnet_nid *nid,
				      unsigned int n)
{
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	ulrpc_client_conf_init(&conf);
	conf.nids = nid;
	conf.nnids = n;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(w.g.rpc[CALLER], &conf, &c), 0);
	return c;
}

static void client(unsigned int nnids)
{
	w.g.client = client_of(w.nid[SERVER], nnids);
}

static struct ulrpc_client *client_by(unsigned int first)
{
	const struct ulnet_nid order[2] = { w.nid[SERVER][first],
					    w.nid[SERVER][1 - first] };

	return client_of(order, 2);
}

/* Opens both nodes with discovery, and a client that is given one NID of the
 * server. @calls: the caller's node only makes connections, and accepts none.
 */
static void begin_discovered_on(unsigned int cpts, bool calls)
{
	struct ulnet_conf caller, server;

	lnet_conf_init(&caller);
	caller.discovery = LNET_DISCOVERY_ON;
	server = caller;
	if (calls)
		caller.accept = LNET_ACCEPT_NONE;
	nodes(cpts, &caller, &server);
	client(1);
}

static void begin_discovered(bool calls)
{
	begin_discovered_on(1, calls);
}

static void begin_named(unsigned int cpts)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	nodes(cpts, &conf, &conf);
	client(2);
}

static void end(void)
{
	ulrpc_client_close(w.g.client);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_close(w.g.rpc[i]), 0);
	mover_fini(&w.m);
	cr_assert_eq(lnet_sim_free(w.g.sim), 0);
}

static void cut(unsigned int rail, bool on)
{
	cr_assert_eq(lnet_sim_partition(w.g.sim, &w.nid[CALLER][rail],
					&LNET_NID_ANY, on),
		     0);
	cr_assert_eq(lnet_sim_partition(w.g.sim, &w.nid[SERVER][rail],
					&LNET_NID_ANY, on),
		     0);
}

static void call(const char *method, struct ulrpc_bulk **bulk)
{
	struct ulrpc_call_conf conf = { .deadline = 20000000,
					.semantics = ULRPC_AT_MOST_ONCE,
					.bulks = bulk,
					.nbulks = bulk ? 1 : 0 };

	w.call = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method(method), "hello", 5,
				&conf, on_called, &w.call, NULL),
		     0);
}

static void ended_well(uint64_t within)
{
	uint64_t until = lnet_sim_now(w.g.sim) + within;

	while (!w.call.ended && lnet_sim_now(w.g.sim) < until)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_eq(w.call.ended, 1);
	cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(w.call.outcome.cause));
}

static void calls_end_well(unsigned int n, uint64_t within)
{
	for (unsigned int i = 0; i < n; i++) {
		call("echo", NULL);
		ended_well(within);
	}
}

static uint64_t counted(unsigned int node, enum rpc_stat stat)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < w.g.rpc[node]->ncpts; i++)
		sum += w.g.rpc[node]->shards[i].stats->counts[stat];
	return sum;
}

static uint64_t sent_by(unsigned int node, unsigned int rail)
{
	struct ulnet_ni_info info;

	cr_assert_eq(lnet_ni_info(w.g.node[node], rail + 1, &info), 0);
	return info.send_length;
}

/* ---- calls ---- */

static void use_both_rails(bool calls)
{
	uint64_t before[2];

	begin_discovered(calls);
	/* After some round trips no call waits until it is sent again. */
	calls_end_well(20, 50 * MSEC);
	for (unsigned int rail = 0; rail < 2; rail++)
		before[rail] = sent_by(CALLER, rail);
	calls_end_well(100, 10 * MSEC);
	for (unsigned int rail = 0; rail < 2; rail++)
		cr_assert_gt(sent_by(CALLER, rail), before[rail]);
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	end();
}

Test(rails, one_is_named_and_both_are_used)
{
	use_both_rails(false);
}

/* The caller accepts no connections, so the server cannot discover it: it is
 * told of each of the caller's NIDs. */
Test(rails, one_is_named_by_who_accepts_nothing)
{
	use_both_rails(true);
}

/* Calls go out by the interface that is near to the memory that they are made
 * in (seed 002), on a machine with several NUMA nodes; and by both again, if
 * the user wants that. */
Test(rails, calls_go_by_the_near_one)
{
	uint64_t before[2];
	struct lnet *node;
	int here;

	has_numa = true;
	begin_discovered(false);
	node = w.g.node[CALLER];
	here = w.g.rpc[CALLER]->shards[0].numa_node;
	cr_assert_geq(here, 0);
	net_node(node)->config->ni[1]->lnd.numa_node = here + 1;
	net_node(node)->config->ni[2]->lnd.numa_node = here;
	calls_end_well(20, 50 * MSEC);
	for (unsigned int rail = 0; rail < 2; rail++)
		before[rail] = sent_by(CALLER, rail);
	calls_end_well(100, 10 * MSEC);
	cr_assert_eq(sent_by(CALLER, 0), before[0]);
	cr_assert_gt(sent_by(CALLER, 1), before[1]);
	cr_assert_eq(lnet_setting_set(node, "numa_range", 100), 0);
	calls_end_well(100, 10 * MSEC);
	cr_assert_gt(sent_by(CALLER, 0), before[0]);
	end();
	has_numa = false;
}

static void one_fails_on(const char *const *where, bool calls,
			 unsigned int rail)
{
	nids = where;
	begin_discovered(calls);
	calls_end_well(20, SEC);
	cut(rail, true);
	calls_end_well(100, 20 * SEC);
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	cr_assert_eq(w.g.served.runs, 120);
	cut(rail, false);
	calls_end_well(20, SEC);
	end();
}

/* When one rail fails, the client does not connect anew. */
static void one_fails(bool calls, unsigned int rail)
{
	one_fails_on(one_net, calls, rail);
	one_fails_on(two_nets, calls, rail);
}

Test(rails, first_fails)
{
	one_fails(false, 0);
}

Test(rails, second_fails)
{
	one_fails(false, 1);
}

Test(rails, first_fails_of_who_accepts_nothing)
{
	one_fails(true, 0);
}

Test(rails, second_fails_of_who_accepts_nothing)
{
	one_fails(true, 1);
}

/* ---- connecting ---- */

static void discovered(void *arg, int status)
{
	(void)arg;
	cr_assert_eq(status, 0);
}

static void discover(unsigned int from, unsigned int to)
{
	cr_assert_eq(lnet_discover(w.g.node[from], &w.nid[to][0], 0, discovered,
				   NULL),
		     0);
	lnet_sim_run(w.g.sim, 100 * MSEC);
}

static void knows_both(struct export *e, void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < 2; i++)
		cr_assert(rails_know(e, &w.nid[CALLER][i]));
}

/* The answer to a Connect may have to take another rail than the Connect. The
 * server must know its client by both NIDs, whatever it forgets of the peer. */
Test(rails, connected_takes_another_rail)
{
	const struct ulnet_sim_link refuses = { .latency = MSEC,
						.refuse = LNET_SIM_ALWAYS };
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	nodes(1, &conf, &conf);
	discover(CALLER, SERVER);
	cr_assert_eq(lnet_sim_link_set(w.g.sim, &w.nid[CALLER][1],
				       &LNET_NID_ANY, &refuses),
		     0);
	cr_assert_eq(lnet_sim_link_set(w.g.sim, &LNET_NID_ANY,
				       &w.nid[CALLER][0], &refuses),
		     0);
	client(1);
	call("echo", NULL);
	while (!counted(CALLER, RPC_STAT_connections_made))
		lnet_sim_run(w.g.sim, MSEC);
	exports_each(w.g.rpc[SERVER]->shards[0].exports, knows_both, NULL);
	ended_well(SEC);
	end();
}

static struct ulnet_nid nth_nid(unsigned int n)
{
	struct ulnet_nid nid;
	char text[32];

	snprintf(text, sizeof(text), "10.9.0.%u@tcp", n + 1);
	cr_assert_eq(lnet_nid_parse(text, &nid), 0);
	return nid;
}

/* For a server that only verifies what it is told, each NID of its client is a
 * peer of its own. If probes take rails by which the server does not know the
 * client, the connection is suspected no more when the server knows the rail,
 * too: it stays, however many such rails there are. */
Test(rails, probes_by_rails_that_the_server_does_not_know)
{
	struct ulnet_conf caller, server;

	lnet_conf_init(&caller);
	caller.discovery = LNET_DISCOVERY_ON;
	server = caller;
	server.discovery = LNET_DISCOVERY_VERIFY;
	nodes(1, &caller, &server);
	client(1);
	call("echo", NULL);
	ended_well(SEC);
	w.g.client->imp->join.n = 0;
	for (unsigned int i = 0; i < 14; i++) {
		const struct ulnet_ni_conf ni = { .nid = nth_nid(i) };

		cr_assert_eq(lnet_ni_add(lnet_sim_node(w.g.sim, CALLER), &ni),
			     0);
	}
	lnet_sim_run(w.g.sim, 60 * SEC);
	cr_assert_gt(w.g.client->imp->join.n, 0);
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	end();
}

/* ---- the server's interface goes down ---- */

static void server_ni_set(unsigned int rail, bool up)
{
	cr_assert_eq(lnet_sim_ni_set(w.g.sim, &w.nid[SERVER][rail], up), 0);
}

static uint64_t pushes_to(unsigned int node)
{
	struct ulnet_stat stats[512];
	int n = lnet_stats(w.g.node[node], stats, ARRAY_SIZE(stats));

	for (int i = 0; i < n && i < (int)ARRAY_SIZE(stats); i++)
		if (!strcmp(stats[i].name, "pushes"))
			return stats[i].value;
	cr_assert(false, "no such counter");
	return 0;
}

/* A caller that is not told of the server's lost NID would have to notice that
 * no answers come, which takes at least 50 ms. */
static void server_loses(unsigned int rail)
{
	uint64_t before;

	begin_discovered(true);
	calls_end_well(20, SEC);
	for (unsigned int i = 1; i <= 2; i++) {
		server_ni_set(rail, false);
		calls_end_well(20, 30 * MSEC);
		cr_assert_eq(counted(SERVER, RPC_STAT_callers_told), 2 * i - 1);
		before = sent_by(CALLER, rail);
		server_ni_set(rail, true);
		calls_end_well(20, 30 * MSEC);
		cr_assert_eq(counted(SERVER, RPC_STAT_callers_told), 2 * i);
		cr_assert_gt(sent_by(CALLER, rail), before);
	}
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	end();
}

Test(rails, who_accepts_nothing_is_told_of_the_first)
{
	server_loses(0);
}

Test(rails, who_accepts_nothing_is_told_of_the_second)
{
	server_loses(1);
}

/* A caller that accepts connections is told by discovery. */
Test(rails, who_listens_is_told_by_discovery)
{
	uint64_t before;

	begin_discovered(false);
	calls_end_well(20, SEC);
	before = pushes_to(CALLER);
	server_ni_set(1, false);
	calls_end_well(20, 30 * MSEC);
	cr_assert_gt(pushes_to(CALLER), before);
	cr_assert_eq(counted(SERVER, RPC_STAT_callers_told), 0);
	end();
}

/* ---- what CPTs tell each other ---- */

static unsigned int far_of(unsigned int node)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < w.g.rpc[node]->ncpts; i++)
		sum += atomic_load(&w.g.rpc[node]->shards[i].far);
	return sum;
}

Test(rails, what_is_discovered_may_be_of_other_cpts)
{
	begin_discovered_on(2, false);
	calls_end_well(20, SEC);
	cr_assert_eq(far_of(CALLER), 1);
	end();
}

/* Makes the server look up the owner of a client's NID anew, as after the NID
 * has moved to another CPT. */
Test(rails, who_owns_a_rail_is_looked_up_anew)
{
	struct shard *s;
	struct export *e;
	uint32_t pos = 0;

	begin_discovered_on(1, true);
	calls_end_well(20, SEC);
	s = &w.g.rpc[SERVER]->shards[0];
	e = id_walk(&s->exports->table, &pos);
	list_first(&e->rails, struct export_rail, link)->far = true;
	atomic_fetch_add(&s->far, 1);
	lnet_sim_run(w.g.sim, 2 * s->rpc->conf.keepalive * 1000);
	cr_assert_eq(far_of(SERVER), 0);
	end();
}

Test(rails, signs_without_room_are_counted)
{
	unsigned int home, other;

	begin_named(2);
	home = (unsigned int)lnet_cpt_of(w.g.node[CALLER], &w.nid[SERVER][0]);
	other = 1 - home;
	calls_end_well(1, SEC);
	for (unsigned int i = 0; i < CONN_EVENTS_MAX; i++)
		conn_event_heard(&w.g.rpc[CALLER]->shards[other],
				 &w.nid[SERVER][1]);
	cr_assert_eq(counted(CALLER, RPC_STAT_ends_untold),
		     CONN_EVENTS_MAX / 2);
	calls_end_well(1, SEC);
	conn_event_heard(&w.g.rpc[CALLER]->shards[other], &w.nid[SERVER][1]);
	cr_assert_eq(counted(CALLER, RPC_STAT_ends_untold),
		     CONN_EVENTS_MAX / 2);
	end();
}

Test(rails, who_has_too_many_loses_those_not_heard_from)
{
	struct export e = { .nrails = 0 };
	struct ulnet_nid nid[EXPORT_RAILS_MAX + 1];
	struct rails rs;

	begin_named(1);
	rails_init(&rs, &w.g.rpc[SERVER]->shards[0], 1);
	list_init(&e.rails);
	for (unsigned int i = 0; i < EXPORT_RAILS_MAX; i++) {
		nid[i] = nth_nid(i);
		rails_hear(&rs, &e, &nid[i]);
	}
	rails_hear(&rs, &e, &nid[0]);
	cr_assert_eq(counted(SERVER, RPC_STAT_rails_replaced), 0);
	nid[EXPORT_RAILS_MAX] = nth_nid(EXPORT_RAILS_MAX);
	rails_hear(&rs, &e, &nid[EXPORT_RAILS_MAX]);
	cr_assert_eq(counted(SERVER, RPC_STAT_rails_replaced), 1);
	cr_assert(rails_know(&e, &nid[0]));
	cr_assert_not(rails_know(&e, &nid[1]));
	rails_drop(&rs, &e);
	rails_fini(&rs);
	end();
}

/* ---- bulk ---- */

/* Makes a call whose bulk is under way when @cut_rail (negative: none) fails.
 */
static void move_bulk(enum move move, int cut_rail)
{
	unsigned int runs = w.m.runs;
	struct ulrpc_bulk *bulk;

	w.m.move = move;
	mover_fill(&w.m, 0);
	bulk = mover_lend(&w.m, w.g.rpc[CALLER]);
	call("move", &bulk);
	while (w.m.runs == runs)
		lnet_sim_run(w.g.sim, MSEC);
	if (cut_rail >= 0)
		cut((unsigned int)cut_rail, true);
	ended_well(20 * SEC);
	cr_assert_eq(w.m.runs, runs + 1);
	cr_assert(mover_is_done(&w.m));
	if (cut_rail >= 0)
		cut((unsigned int)cut_rail, false);
	ulrpc_bulk_close(bulk, NULL, NULL);
}

Test(rails, bulk_is_spread)
{
	begin_discovered(false);
	calls_end_well(20, SEC);
	for (unsigned int put = 0; put < 2; put++) {
		uint64_t before[2];

		for (unsigned int rail = 0; rail < 2; rail++)
			before[rail] = sent_by(put ? SERVER : CALLER, rail);
		for (unsigned int i = 0; i < 4; i++)
			move_bulk(put ? MOVE_PUT : MOVE_GET, -1);
		for (unsigned int rail = 0; rail < 2; rail++)
			cr_assert_gt(sent_by(put ? SERVER : CALLER, rail) -
					     before[rail],
				     LENGTH);
	}
	end();
}

static void bulk_goes_on(bool calls)
{
	begin_discovered(calls);
	calls_end_well(20, SEC);
	for (unsigned int i = 0; i < 4; i++) {
		move_bulk(i & 1 ? MOVE_PUT : MOVE_GET, (int)i / 2);
		lnet_sim_run(w.g.sim, 10 * SEC);
	}
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	end();
}

Test(rails, bulk_goes_on_by_the_other)
{
	bulk_goes_on(false);
}

Test(rails, bulk_goes_on_of_who_accepts_nothing)
{
	bulk_goes_on(true);
}

/* The client connects to the server's other NID, of which nobody knows that it
 * belongs to the same peer, and sends a query. The service then moves the bulk
 * over that rail, to the memory that was lent. */
static void bulk_follows(unsigned int cpts)
{
	begin_named(cpts);
	calls_end_well(20, SEC);
	for (unsigned int i = 0; i < 4; i++) {
		move_bulk(i & 1 ? MOVE_PUT : MOVE_GET,
			  (int)w.g.client->imp->nid);
		cr_assert_gt(counted(CALLER, RPC_STAT_connections_lost), i);
		calls_end_well(1, SEC);
	}
	end();
}

Test(rails, bulk_follows_to_another_nid)
{
	bulk_follows(1);
}

Test(rails, bulk_follows_to_the_nid_of_another_cpt)
{
	bulk_follows(2);
}

/* Opens nodes each of which has been told both NIDs of the other one. */
static void begin_told(void)
{
	begin_named(1);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(lnet_peer_add(w.g.node[i], w.nid[1 - i], 2, true),
			     0);
}

/* The server loses the NID to which the call was made, although the message
 * took the other rail: so no message is lost, and the caller sends no query.
 * The bulk then comes from the other NID, as does the extension that says that
 * the call is being served. */
Test(rails, bulk_comes_from_who_has_lost_a_nid)
{
	struct ulrpc_bulk *bulk;

	begin_told();
	w.m.move = MOVE_GET;
	mover_fill(&w.m, 0);
	calls_end_well(20, SEC);
	cut(0, true);
	calls_end_well(20, 20 * SEC);
	bulk = mover_lend(&w.m, w.g.rpc[CALLER]);
	call("hold", &bulk);
	while (!w.g.served.parked)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_eq(
		lnet_peer_del(w.g.node[CALLER], &w.nid[SERVER][0], NULL, 0), 0);
	mover_go(&w.m, unpark(&w.g.served));
	ended_well(20 * SEC);
	cr_assert(mover_is_done(&w.m));
	ulrpc_bulk_close(bulk, NULL, NULL);
	end();
}

/* ---- long replies ---- */

static void fetch_begins(void)
{
	uint64_t before = counted(CALLER, RPC_STAT_replies_fetched);

	call("much", NULL);
	while (counted(CALLER, RPC_STAT_replies_fetched) == before)
		lnet_sim_run(w.g.sim, MSEC / 10);
}

/* A rail fails while the client fetches a held reply: it fetches the reply over
 * the other rail. */
static void fetch_goes_on(void (*begin)(void))
{
	begin();
	calls_end_well(20, SEC);
	for (unsigned int i = 0; i < 8; i++) {
		fetch_begins();
		cut(i % 2, true);
		ended_well(21 * SEC); /* the deadline of the call */
		cut(i % 2, false);
		lnet_sim_run(w.g.sim, 10 * SEC);
	}
	cr_assert_eq(counted(CALLER, RPC_STAT_replies_fetched), 8);
	cr_assert_eq(w.g.served.runs, 28);
	end();
}

static void begin_listening(void)
{
	begin_discovered(false);
}

static void begin_calling(void)
{
	begin_discovered(true);
}

static void begin_two_named(void)
{
	begin_named(1);
}

Test(rails, fetch_goes_on_by_the_other)
{
	fetch_goes_on(begin_listening);
}

Test(rails, fetch_goes_on_of_who_accepts_nothing)
{
	fetch_goes_on(begin_calling);
}

static void begin_two_named_on_two_cpts(void)
{
	begin_named(2);
}

Test(rails, fetch_goes_on_to_another_nid)
{
	fetch_goes_on(begin_two_named);
}

Test(rails, fetch_goes_on_to_the_nid_of_another_cpt)
{
	fetch_goes_on(begin_two_named_on_two_cpts);
}

/* ---- the id of the caller ---- */

/* Opens nodes on which the server's NIDs belong to different CPTs of the
 * caller. */
static void begin_apart(void)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	for (unsigned int cpts = 2;; cpts++) {
		struct lnet *node;

		cr_assert_leq(cpts, 16);
		nodes(cpts, &conf, &conf);
		node = w.g.node[CALLER];
		if (lnet_cpt_of(node, &w.nid[SERVER][0]) !=
		    lnet_cpt_of(node, &w.nid[SERVER][1]))
			return;
		end();
	}
}

/* A server has one connection with each client id. Two clients of a process
 * with a fixed id, which reach the server from two CPTs, must not take each
 * other's connection. */
Test(rails, an_id_that_is_kept)
{
	const struct ulrpc_conf conf = { .client_id = "who I am always",
					 .client_generation = 1 };
	struct ulrpc_client *clients[2];

	begin_apart();
	cr_assert_eq(ulrpc_close(w.g.rpc[CALLER]), 0);
	cr_assert_eq(ulrpc_open(w.g.node[CALLER], &conf, &w.g.rpc[CALLER]), 0);
	for (unsigned int i = 0; i < 2; i++)
		clients[i] = client_by(i);
	for (unsigned int i = 0; i < 10; i++) {
		w.g.client = clients[i % 2];
		calls_end_well(1, 50 * MSEC);
	}
	cr_assert_eq(counted(SERVER, RPC_STAT_clients_accepted), 2);
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	ulrpc_client_close(clients[0]);
	w.g.client = clients[1];
	end();
}
