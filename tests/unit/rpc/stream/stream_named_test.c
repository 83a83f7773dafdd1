/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams at a name that stands for several servers: a stream goes to one of
 * them, and stays there. Node 0 calls, nodes 1 to 3 serve; if @routed, they are
 * on a net of their own, behind node 4. */
#include "rpc/rpc.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/route.h"
#include "ulnet/stream.h"

#define SEC	(1000 * MSEC)
#define SECONDS UINT64_C(1000000) /* us */
#define SERVERS 3
#define TALKS	4
#define ROUTER	(SERVERS + 1)
#define NEAR	LNET_NET(LNET_TYPE_SOCK, 0)
#define FAR	LNET_NET(LNET_TYPE_SOCK, 1)

static struct lnet_sim *sim;
static struct ulrpc *rpc;
static struct ulrpc_streams *streams;
static struct ulrpc_stream *served[SERVERS + 1][2 * TALKS];
static unsigned int nserved[SERVERS + 1];
static uint32_t streams_max; /* of each server */
static uint64_t patience;    /* us; 0: 5 s */
static bool mute; /* what servers send is lost from the next stream on */

static bool routed;
static bool by_nid; /* the client has server 1, and no name */

static const struct ulnet_sim_link connected = { .latency = MSEC / 10,
						 .connect = MSEC };

/* A stream, as its client has it. */
struct talk {
	struct ulrpc_stream *stream;
	unsigned int ended;
	struct ulrpc_stream_outcome o;
};

static struct talk talks[TALKS];

static struct ulnet_nid nid_on(uint32_t net, unsigned int index)
{
	return lnet_nid_make(net, 0x0a000000 + index + 1);
}

static struct ulnet_nid server_nid(unsigned int index)
{
	return nid_on(routed && index ? FAR : NEAR, index);
}

/* Adds the route from node @index to the other net. */
static int route_add(struct lnet *node, unsigned int index)
{
	const struct ulnet_route route = {
		.net = index ? NEAR : FAR,
		.gateway = nid_on(index ? FAR : NEAR, ROUTER),
	};

	return lnet_route_add(node, &route);
}

static int start_router(void *arg, unsigned int index, struct lnet *node)
{
	const struct ulnet_routing routing = { .enabled = true };

	(void)arg, (void)index;
	return lnet_routing_set(node, &routing);
}

static void router_add(void)
{
	struct ulnet_nid near = nid_on(NEAR, ROUTER), far = nid_on(FAR, ROUTER);
	char nids[2 * LNET_NIDSTR_SIZE];
	size_t n;

	lnet_nid_format(&near, nids, LNET_NIDSTR_SIZE);
	n = strlen(nids);
	nids[n++] = ' ';
	lnet_nid_format(&far, nids + n, LNET_NIDSTR_SIZE);
	cr_assert_eq(lnet_sim_node_add(sim, nids, NULL, start_router, NULL),
		     ROUTER);
}

static void set_mute(unsigned int server, bool on)
{
	const struct ulnet_nid from = server_nid(server), to = server_nid(0);
	struct ulnet_sim_link link = connected;

	link.loss = on ? LNET_SIM_ALWAYS : 0;
	cr_assert_eq(lnet_sim_link_set(sim, &from, &to, &link), 0);
}

static void on_talk(void *arg, struct ulrpc_stream *s, const void *body,
		    size_t length)
{
	const unsigned int *server = arg;
	const char who = (char)('0' + *server);

	(void)body, (void)length;
	served[*server][nserved[*server]++] = s;
	cr_assert_eq(ulrpc_stream_send(s, &who, 1), 0);
	if (mute)
		set_mute(*server, true);
}

static int start(void *arg, unsigned int index, struct lnet *node)
{
	static unsigned int numbers[SERVERS + 1];
	const struct ulrpc_stream_method method = { "talk", on_talk,
						    &numbers[index],
						    ULRPC_RUN_INLINE, 0 };
	struct ulrpc_stream_service_conf conf;
	struct ulrpc *own;

	(void)arg;
	if (routed)
		cr_assert_eq(route_add(node, index), 0);
	cr_assert_eq(ulrpc_open(node, NULL, &own), 0);
	if (!index) {
		rpc = own;
		return 0;
	}
	numbers[index] = index;
	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "chat";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.streams_max = streams_max;
	return ulrpc_stream_serve(own, &conf, NULL);
}

/* The name stands for the servers from @first to @last, each as likely to be
 * the first one that is tried. */
static void set_servers(unsigned int first, unsigned int last)
{
	struct ulnet_address addresses[SERVERS] = { 0 };
	struct ulnet_name_answer a = { .addresses = addresses };

	for (unsigned int i = first; i <= last; i++)
		addresses[a.n++] = (struct ulnet_address){
			.nid = server_nid(i),
			.weight = 1,
		};
	cr_assert_eq(lnet_sim_name_set(sim, "servers", &a, 0), 0);
}

static void begin(uint64_t seed, unsigned int cpts)
{
	const struct ulnet_nid first = server_nid(1);
	struct ulrpc_streams_conf conf;
	char nid[LNET_NIDSTR_SIZE];

	memset(nserved, 0, sizeof(nserved));
	memset(talks, 0, sizeof(talks));
	cr_assert_eq(lnet_sim_new(seed, cpts, &sim), 0);
	for (unsigned int i = 0; i <= SERVERS; i++) {
		struct ulnet_nid own = server_nid(i);

		lnet_nid_format(&own, nid, sizeof(nid));
		cr_assert_eq(lnet_sim_node_add(sim, nid, NULL, start, NULL),
			     (int)i);
	}
	if (routed)
		router_add();
	set_servers(1, SERVERS);
	ulrpc_streams_conf_init(&conf);
	if (by_nid) {
		conf.client.nids = &first;
		conf.client.nnids = 1;
	} else {
		conf.client.target = "servers";
	}
	conf.client.service = "chat";
	conf.patience = patience ? patience : 5 * SECONDS;
	cr_assert_eq(ulrpc_streams_open(rpc, &conf, &streams), 0);
}

static void end(void)
{
	for (unsigned int i = 0; i < TALKS; i++)
		ulrpc_stream_put(talks[i].stream);
	lnet_sim_run(sim, SEC);
	for (unsigned int i = 1; i <= SERVERS; i++)
		while (nserved[i])
			ulrpc_stream_put(served[i][--nserved[i]]);
	ulrpc_streams_close(streams);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

static void on_ended(void *arg, struct ulrpc_stream *s,
		     const struct ulrpc_stream_outcome *o)
{
	struct talk *t = arg;

	(void)s;
	t->ended++;
	t->o = *o;
}

static void talk_open(unsigned int i)
{
	const struct ulrpc_stream_conf conf = {
		.deadline = ULRPC_NEVER,
		.events = { .ended = on_ended, .arg = &talks[i] },
	};

	ulrpc_stream_put(talks[i].stream);
	talks[i] = (struct talk){ .ended = 0 };
	cr_assert_eq(ulrpc_stream_open(streams, "talk", NULL, 0, &conf,
				       &talks[i].stream),
		     0);
}

/* Returns the server that talk @i is at: that says so by a message, and is told
 * something. */
static unsigned int talk_at(unsigned int i)
{
	unsigned int server;
	const void *body;
	size_t length;

	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[i].ended, 0, "%s",
		     ulrpc_cause_name(talks[i].o.cause));
	cr_assert_eq(ulrpc_stream_next(talks[i].stream, &body, &length), 1);
	server = (unsigned int)(*(const char *)body - '0');
	return server;
}

/* Talk @i still works; its other side is the one that @server got as @nth. */
static void talk_goes_on(unsigned int i, unsigned int server, unsigned int nth)
{
	const void *body;
	size_t length;

	cr_assert_eq(ulrpc_stream_send(talks[i].stream, "ping", 4), 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_stream_next(served[server][nth], &body, &length), 1);
	cr_assert_eq(ulrpc_stream_send(served[server][nth], "pong", 4), 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_stream_next(talks[i].stream, &body, &length), 1);
}

static void ends_at(unsigned int i, unsigned int server, unsigned int nth)
{
	struct ulnet_nid nid = server_nid(server);
	const void *body;
	size_t length;

	ulrpc_stream_end(served[server][nth], 0, NULL);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_stream_next(talks[i].stream, &body, &length), 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[i].ended, 1);
	cr_assert_eq(talks[i].o.cause, ULRPC_CAUSE_OK);
	cr_assert(lnet_nid_eq(&talks[i].o.server, &nid));
}

/* Whatever the order of the servers is: the messages of a stream go where it
 * was opened, and so do further streams, also those that are opened at the same
 * time. */
Test(stream_named, all_go_to_one_server)
{
	unsigned int seen = 0;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		unsigned int at;

		begin(seed, 1 + seed % 2);
		talk_open(0);
		talk_open(1);
		at = talk_at(0);
		cr_assert_eq(talk_at(1), at);
		talk_open(2);
		cr_assert_eq(talk_at(2), at);
		for (unsigned int i = 0; i < 3; i++)
			talk_goes_on(i, at, i);
		for (unsigned int i = 0; i < 3; i++)
			ends_at(i, at, i);
		seen |= 1u << at;
		end();
	}
	/* not always the same one */
	cr_assert_neq(seen & (seen - 1), 0);
}

/* The name stands for another server: open streams, and further ones, stay
 * where they are; when none is open, the next one goes there. */
Test(stream_named, the_name_changes)
{
	unsigned int at;

	begin(1, 1);
	talk_open(0);
	at = talk_at(0);
	set_servers(at % SERVERS + 1, at % SERVERS + 1);
	lnet_sim_run(sim, 30 * SEC);
	talk_goes_on(0, at, 0);
	talk_open(1);
	cr_assert_eq(talk_at(1), at);
	ends_at(0, at, 0);
	ends_at(1, at, 1);
	lnet_sim_run(sim, 30 * SEC);
	talk_open(2);
	cr_assert_eq(talk_at(2), at % SERVERS + 1);
	ends_at(2, at % SERVERS + 1, 0);
	end();
}

/* A server has no room for a second stream, which waits for it, but it
 * restarts. The server that has the name now gets that stream, and is told at
 * once that nobody wants it any more: it has ended with the first one. */
Test(stream_named, opened_elsewhere)
{
	struct ulrpc_stream_outcome o;
	unsigned int at, other;

	streams_max = 3; /* of which the channel is one */
	begin(1, 1);
	streams_max = 0;
	talk_open(0);
	talk_open(1);
	at = talk_at(0);
	cr_assert_eq(nserved[at], 1);
	other = at % SERVERS + 1;
	set_servers(other, other);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(lnet_sim_crash(sim, at), 0);
	ulrpc_stream_put(served[at][0]);
	nserved[at] = 0;
	cr_assert_eq(lnet_sim_restart(sim, at), 0);
	lnet_sim_run(sim, 3 * SEC);
	cr_assert_eq(talks[0].ended, 1);
	cr_assert_eq(talks[1].ended, 1);
	cr_assert_eq(nserved[other], 1);
	cr_expect_eq(ulrpc_stream_outcome(served[other][0], &o), 0);
	cr_expect_eq(o.cause, ULRPC_CAUSE_CANCELED);
	end();
}

/* The server dies silently: its streams end when patience is at its end, and
 * the next one goes to another server. */
Test(stream_named, the_server_dies)
{
	struct ulnet_nid nid;
	unsigned int at, next;

	begin(1, 1);
	talk_open(0);
	at = talk_at(0);
	nid = server_nid(at);
	cr_assert_eq(lnet_sim_crash(sim, at), 0);
	ulrpc_stream_put(served[at][0]);
	nserved[at] = 0;
	lnet_sim_run(sim, 30 * SEC);
	cr_assert_eq(talks[0].ended, 1);
	cr_assert_neq(talks[0].o.cause, ULRPC_CAUSE_OK);
	cr_assert(lnet_nid_eq(&talks[0].o.server, &nid));
	talk_open(1);
	lnet_sim_run(sim, 2 * SEC);
	next = talk_at(1);
	cr_assert_neq(next, at);
	talk_goes_on(1, next, 0);
	ends_at(1, next, 0);
	end();
}

/* Messages need connections, so a server that is gone refuses them. */
static void begin_connected(void)
{
	patience = 60 * SECONDS;
	begin(1, 1);
	patience = 0;
	cluster_links(sim, &connected);
}

static void crash(unsigned int server)
{
	cr_assert_eq(lnet_sim_crash(sim, server), 0);
	while (nserved[server])
		ulrpc_stream_put(served[server][--nserved[server]]);
}

static void ends_as_lost(unsigned int i, unsigned int server,
			 enum ulrpc_execution execution)
{
	struct ulnet_nid nid = server_nid(server);
	char text[ULRPC_TEXT_MAX];

	cr_assert_eq(talks[i].ended, 1);
	cr_assert_eq(talks[i].o.cause, ULRPC_CAUSE_UNREACHABLE, "%s",
		     ulrpc_cause_name(talks[i].o.cause));
	cr_assert_eq(talks[i].o.execution, execution);
	cr_assert(lnet_nid_eq(&talks[i].o.server, &nid));
	snprintf(text, sizeof(text),
		 "10.0.0.%u@tcp: nobody has listened there for 2 s",
		 server + 1);
	cr_assert_str_eq(talks[i].o.text, text);
}

/* Nobody listens any more at the host of the server: its streams end long
 * before patience is at its end, and the next one goes to another server. What
 * was on the way may have been read or not; what never left was not. */
Test(stream_named, the_server_is_gone)
{
	unsigned int at;

	begin_connected();
	talk_open(0);
	at = talk_at(0);
	cr_assert_eq(ulrpc_stream_send(talks[0].stream, "read", 4), 0);
	crash(at);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[0].ended, 0);
	talk_open(1);
	lnet_sim_run(sim, 4 * SEC);
	ends_as_lost(0, at, ULRPC_EXECUTED);
	cr_assert_eq(talks[0].o.sent, 1);
	cr_assert_eq(talks[0].o.delivered, 0);
	ends_as_lost(1, at, ULRPC_NOT_EXECUTED);
	talk_open(2);
	cr_assert_neq(talk_at(2), at);
	end();
}

/* So it is with a server that has no name, but there is no other one: what is
 * opened when all are over waits for it to come back. */
Test(stream_named, the_only_server_is_gone)
{
	by_nid = true;
	begin_connected();
	talk_open(0);
	cr_assert_eq(talk_at(0), 1);
	crash(1);
	lnet_sim_run(sim, SEC);
	talk_open(1);
	lnet_sim_run(sim, 4 * SEC);
	ends_as_lost(0, 1, ULRPC_EXECUTED);
	ends_as_lost(1, 1, ULRPC_NOT_EXECUTED);
	talk_open(2);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(talks[2].ended, 0);
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	lnet_sim_run(sim, 2 * SEC);
	cr_assert_eq(talk_at(2), 1);
	ends_at(2, 1, 0);
	end();
	by_nid = false;
}

/* The server comes again before it counts as gone, and says that it has
 * forgotten the stream. */
Test(stream_named, the_server_restarts)
{
	unsigned int at;

	begin_connected();
	talk_open(0);
	at = talk_at(0);
	crash(at);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(lnet_sim_restart(sim, at), 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[0].ended, 1);
	cr_assert_eq(talks[0].o.cause, ULRPC_CAUSE_RESTARTED);
	end();
}

/* A stream that was to be opened meanwhile was not: the server has forgotten
 * where the others were. */
Test(stream_named, opened_when_the_server_is_back)
{
	by_nid = true;
	begin_connected();
	talk_open(0);
	cr_assert_eq(talk_at(0), 1);
	crash(1);
	talk_open(1);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[1].ended, 0);
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[1].ended, 1);
	cr_assert_eq(talks[1].o.cause, ULRPC_CAUSE_FORGOTTEN, "%s",
		     ulrpc_cause_name(talks[1].o.cause));
	cr_assert_eq(talks[1].o.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(nserved[1], 0);
	end();
	by_nid = false;
}

/* The only server has got the stream, but is gone before it could say so. */
Test(stream_named, gone_while_opening)
{
	begin_connected();
	set_servers(2, 2);
	lnet_sim_run(sim, SEC);
	mute = true;
	talk_open(0);
	lnet_sim_run(sim, MSEC * 10);
	mute = false;
	cr_assert_eq(nserved[2], 1);
	crash(2);
	set_mute(2, false);
	lnet_sim_run(sim, 10 * SEC);
	ends_as_lost(0, 2, ULRPC_EXECUTION_UNKNOWN);
	end();
}

/* A server that is only silent may come back: its streams wait for it. */
Test(stream_named, the_server_is_silent)
{
	struct ulnet_nid self = server_nid(0), nid;
	unsigned int at;

	begin_connected();
	talk_open(0);
	at = talk_at(0);
	nid = server_nid(at);
	cr_assert_eq(lnet_sim_partition(sim, &self, &nid, true), 0);
	lnet_sim_run(sim, 50 * SEC);
	cr_assert_eq(talks[0].ended, 0);
	cr_assert_eq(lnet_sim_partition(sim, &self, &nid, false), 0);
	lnet_sim_run(sim, 5 * SEC);
	talk_goes_on(0, at, 0);
	ends_at(0, at, 0);
	end();
}

/* The only router is gone, and its host refuses connections. That says nothing
 * of the server, whose stream goes on when there is a router again. */
Test(stream_named, the_router_is_gone)
{
	unsigned int at;

	routed = true;
	begin_connected();
	talk_open(0);
	at = talk_at(0);
	cr_assert_eq(lnet_sim_crash(sim, ROUTER), 0);
	lnet_sim_run(sim, 6 * SEC);
	cr_assert_eq(talks[0].ended, 0);
	cr_assert_eq(lnet_sim_restart(sim, ROUTER), 0);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(talks[0].ended, 0, "%s",
		     ulrpc_cause_name(talks[0].o.cause));
	talk_goes_on(0, at, 0);
	ends_at(0, at, 0);
	end();
	routed = false;
}

/* What has no server yet says so. */
Test(stream_named, no_server_yet)
{
	begin(1, 1);
	lnet_sim_run(sim, SEC);
	talk_open(0);
	ulrpc_stream_put(talks[0].stream);
	talks[0].stream = NULL;
	ulrpc_streams_close(streams);
	streams = NULL;
	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[0].ended, 1);
	cr_assert_eq(talks[0].o.cause, ULRPC_CAUSE_CANCELED);
	end();
}
