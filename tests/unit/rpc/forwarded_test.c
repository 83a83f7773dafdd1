/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that arrive on another CPT than their connection's, and answers to
 * peers without a connection: no peer may use up what others need. */
#include "rpc/control.h"
#include "rpc/quota.h"
#include "rpc/forwarded.h"
#include "tests/unit/rpc/server/request_rig.h"

#define CPTS  2
#define FLOOD 100000
#define HEAD  (4u << 10)
#define LONG  (512u << 10)

static struct serve_rig g;
static unsigned int there, back;

static void on_there(struct forwarded *forwarded)
{
	cr_assert_eq(forwarded->to->cpt, 1);
	there++;
}

static void on_back(struct forwarded *forwarded)
{
	cr_assert_eq(forwarded->from->cpt, 0);
	back++;
}

static void on_passed(struct forwarded *forwarded)
{
	(void)forwarded;
}

static struct ulnet_event event_of(unsigned int node)
{
	return (struct ulnet_event){ .type = LNET_EVENT_PUT,
				     .initiator = nth_id(node),
				     .source = nth_id(node).nid,
				     .target = nth_id(SERVER),
				     .match_bits = 5 };
}

/* Forwards messages of @node until one is refused. Returns how many were
 * accepted. */
static unsigned int flood(unsigned int node, const void *whole, size_t length)
{
	struct ulnet_event ev = event_of(node);
	struct shard *s = cpt0(&g)->shard;
	unsigned int n = 0;

	for (; n < FLOOD; n++) {
		struct forwarded *forwarded =
			forwarded_new(s, 1, &ev, whole, length, whole != NULL);

		if (!forwarded)
			break;
		forwarded_send(forwarded, on_there, n % 2 ? on_back : NULL,
			       NULL);
	}
	return n;
}

static uint64_t dropped(void)
{
	return serve_counted(cpt0(&g), RPC_STAT_strays_dropped);
}

/* Each NID has its share of the memory for forwarded messages, at most half of
 * what is free, until its messages have been served. Heads and whole messages
 * have separate limits. */
Test(forwarded, shares)
{
	static const uint8_t whole[LONG];
	const unsigned int most[] = {
		FORWARDED_HEADS_MAX / (sizeof(struct forwarded) + HEAD),
		FORWARDED_WHOLE_MAX / (sizeof(struct forwarded) + LONG),
	};

	rig_with(&g, NULL, CPTS);
	for (unsigned int i = 0; i < 6; i++) {
		const void *what = i % 2 ? whole : NULL;
		size_t length = i % 2 ? LONG : HEAD;
		unsigned int n = flood(5, what, length), max = most[i % 2];

		there = back = 0;
		cr_assert_geq(n, max / 2);
		cr_assert_leq(n, max / 2 + 1);
		cr_assert_eq(flood(5, what, length), 0);
		n += flood(6, what, length);
		cr_assert_geq(n, max / 4 * 3);
		cr_assert_lt(n, max);
		n += flood(7, i % 2 ? NULL : whole, 10);
		cr_assert_gt(n, max + 1000);
		cr_assert_eq(there, 0);
		settle(&g);
		cr_assert_eq(there, n);
		cr_assert_geq(back, there / 2 - 2);
		cr_assert_eq(dropped(), 4 * (i + 1));
	}
	serve_fini(&g);
}

/* One peer sends messages to the wrong CPT as fast as it can. A client whose
 * messages arrive there, too, must be served. */
Test(forwarded, one_floods)
{
	struct wire_call c = raw_client_call_of(1, "echo", 1);
	struct wire_control m = { .kind = WIRE_KEEPALIVE };
	struct ulnet_event ev, control_ev;
	uint8_t bytes[200], control[CONTROL_MESSAGE_MAX];
	unsigned int home;
	size_t length, control_length;

	rig_with(&g, NULL, CPTS);
	home = export_cpt(a.connection);
	ev = event_of(7);
	length = raw_client_pack(&a, &c, 1, "x", 0, bytes, &ev.hdr_data);
	m.keepalive.connection = a.connection;
	control_ev = ev;
	control_length = wire_control_encode(&m, control, &control_ev.hdr_data);
	for (unsigned int i = 0; i < FLOOD; i++)
		control_on_message(g.service->cpt[!home].shard, &control_ev,
				   control, control_length);
	for (unsigned int i = 0; i < FLOOD; i++)
		request_on_message(&g.service->cpt[!home], &ev, bytes, length);
	cr_assert_gt(
		serve_counted(&g.service->cpt[!home], RPC_STAT_strays_dropped),
		FLOOD);
	/* So many requests were dropped without a refusal. */
	cr_assert_gt(serve_counted(&g.service->cpt[!home],
				   RPC_STAT_requests_dropped),
		     FLOOD / 2);
	ev = event_of(CALLER);
	(void)raw_client_pack(&a, &c, 1, "x", 0, bytes, &ev.hdr_data);
	request_on_message(&g.service->cpt[!home], &ev, bytes, length);
	m.keepalive.client = a.client;
	m.keepalive.epoch = a.epoch;
	a.controls = 0;
	control_ev = ev;
	control_length = wire_control_encode(&m, control, &control_ev.hdr_data);
	control_on_message(g.service->cpt[!home].shard, &control_ev, control,
			   control_length);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(a.controls, 1);
	cr_assert_eq(a.control.alive.status, WIRE_OK);
	serve_fini(&g);
}

/* Forwards messages of @node until none that is longer than a head is accepted
 * in this turn. */
static void fill(unsigned int node, struct shard *from, unsigned int to)
{
	static const uint8_t whole[LONG];
	struct ulnet_event ev = event_of(node);
	struct forwarded *forwarded;

	for (size_t length = LONG; length; length /= 2)
		while ((forwarded = forwarded_new(from, to, &ev, whole, length,
						  true)))
			forwarded_send(forwarded, on_passed, NULL, NULL);
}

/* An attempt whose message cannot be forwarded whole is refused, and must not
 * change which memory the call lends: the description of that is in the
 * message, which is gone by then. */
Test(forwarded, refused_attempt_lends_nothing)
{
	const uint32_t lent_length = 64;
	struct wire_segments lent = { .match = 0x77000,
				      .access = WIRE_ACCESS_SINK,
				      .n = 1,
				      .length = &lent_length };
	struct wire_call c = raw_client_call_of(1, "hold", 1);
	struct ulnet_event ev = event_of(CALLER);
	struct service_cpt *home, *other;
	uint8_t *bytes = malloc(200);
	size_t length;

	rig_with(&g, NULL, CPTS);
	home = &g.service->cpt[export_cpt(a.connection)];
	other = &g.service->cpt[!home->shard->cpt];
	c.bulks.n = 1;
	c.bulks.list = &lent;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(g.served.parked, 1);
	c.attempt++;
	length = raw_client_pack(&a, &c, 1, "x", 0, bytes, &ev.hdr_data);
	fill(CALLER, other->shard, home->shard->cpt);
	request_on_message(other, &ev, bytes, length);
	free(bytes);
	settle(&g);
	cr_assert_eq(serve_counted(home, RPC_STAT_requests_again), 0);
	cr_assert_eq(serve_counted(home, RPC_STAT_requests_repeated), 1);
	c.attempt++;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(serve_counted(home, RPC_STAT_requests_again), 1);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->attempt, c.attempt);
	serve_fini(&g);
}

/* ---- back-pressure ---- */

#define KEPT_MAX 64

/* A CPT is slow, so that messages of a host which it is to handle take half of
 * the host's share. The host then waits, while others are served, and no
 * message is dropped. */
Test(forwarded, a_slow_cpt_lets_the_host_wait)
{
	static const uint8_t whole[LONG];
	static struct raw_client b;
	struct forwarded *kept[KEPT_MAX];
	struct ulnet_event ev = event_of(CALLER);
	struct service_cpt *from;
	unsigned int cpt, n = 0;

	rig_with(&g, NULL, CPTS);
	raw_client_init(&b, g.sim, serve_node_add(&g, 2), SERVER);
	b.portal = a.portal;
	cpt = (unsigned int)lnet_cpt_of(g.node[SERVER], &ev.source);
	from = &g.service->cpt[cpt];
	while (!serve_counted(from, RPC_STAT_strays_throttled)) {
		cr_assert_lt(n, KEPT_MAX);
		kept[n] = forwarded_new(from->shard, !cpt, &ev, whole, LONG,
					true);
		cr_assert_not_null(kept[n++]);
	}
	raw_client_call(&a, 1, "echo", "x");
	cr_assert_eq(raw_client_connect(&b)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&b, "test")->status, WIRE_OK);
	raw_client_call(&b, 1, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&b, 1)->status, WIRE_OK);
	cr_assert_eq(a.replies, 0);
	cr_assert_eq(counter(g.node[SERVER], "parked"), 1);
	/* what is being received meanwhile has room */
	for (unsigned int i = 0; i < n / 3; i++) {
		kept[n] = forwarded_new(from->shard, !cpt, &ev, whole, LONG,
					true);
		cr_assert_not_null(kept[n++]);
	}
	while (n)
		forwarded_send(kept[--n], on_passed, NULL, NULL);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(serve_counted(from, RPC_STAT_strays_throttled), 1);
	cr_assert_eq(serve_counted(from, RPC_STAT_strays_dropped), 0);
	cr_assert_eq(counter(g.node[SERVER], "drop_count"), 0);
	serve_fini(&g);
}

static uint64_t counted(const struct shard *s)
{
	return s->stats->counts[RPC_STAT_answers_lost];
}

/* No message to one of the raw clients can be sent. The other one must still be
 * told that it is not connected, by a service and after that has stopped. */
Test(forwarded, one_takes_no_answers)
{
	static struct raw_client b;
	struct ulnet_sim_link deaf = { .refuse = LNET_SIM_ALWAYS };
	struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 16 };
	struct wire_call many[100], c = raw_client_call_of(1, "echo", 1);
	struct ulnet_nid from = nth_id(SERVER).nid, to = nth_id(CALLER).nid;

	struct shard *s;

	rig_with(&g, &conf, 1);
	s = cpt0(&g)->shard;
	raw_client_init(&b, g.sim, serve_node_add(&g, 2), SERVER);
	b.portal = a.portal;
	cr_assert_eq(lnet_sim_link_set(g.sim, &from, &to, &deaf), 0);
	a.connection = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = raw_client_call_of(1 + i, "echo", 0);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t before = counted(s);

		for (unsigned int j = 0; j < 1000; j++) {
			raw_client_send(&a, many, ARRAY_SIZE(many), "", 0);
			if (j % 64 == 0)
				lnet_sim_run(g.sim, MSEC);
		}
		cr_assert_gt(counted(s), before + 100);
		b.replies = 0;
		raw_client_send(&b, &c, 1, "x", 0);
		settle(&g);
		cr_assert_eq(raw_client_reply(&b, 1)->status,
			     WIRE_NOT_CONNECTED);
		if (i == 0)
			cr_assert_eq(ulrpc_service_stop(g.service, 0),
				     -ETIMEDOUT);
	}
	serve_fini(&g);
}
