/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams at one of several servers: where they are opened, and that those that
 * may have started stay there. */
#include "tests/unit/rpc/replicas/servers.h"

TestSuite(replicas_streams, .timeout = 60);

/* The streams that a server has got. */
struct talks {
	unsigned int n;
	struct ulrpc_stream *last;
};

static struct talks talks[SERVERS + 1];

/* Says which server it is, and leaves the stream open. */
static void talk(void *arg, struct ulrpc_stream *s, const void *body,
		 size_t length)
{
	struct talks *t = arg;
	const char own = (char)('0' + (t - talks));

	cr_assert_eq(length, 5);
	cr_assert_eq(memcmp(body, "hello", 5), 0);
	t->n++;
	cr_assert_eq(ulrpc_stream_send(s, &own, 1), 0);
	ulrpc_stream_put(t->last);
	t->last = s;
}

/* @max: streams that a server takes at a time. */
static void serve(unsigned int server, unsigned int max)
{
	const struct ulrpc_stream_method method = { .name = "talk",
						    .handler = talk,
						    .arg = &talks[server],
						    .run = ULRPC_RUN_INLINE };
	struct ulrpc_stream_service_conf c;
	struct ulrpc_stream_service *service;

	ulrpc_stream_service_conf_init(&c);
	c.service.name = "chat";
	c.methods = &method;
	c.nmethods = 1;
	c.streams_max = max;
	cr_assert_eq(ulrpc_stream_serve(servers[server].rpc, &c, &service), 0);
}

/* What has become of opening a stream, and of the stream. */
struct opened {
	unsigned int n, ended;
	struct ulrpc_stream *stream;
	struct ulrpc_replicas_outcome o;
	struct ulrpc_stream_outcome end;
};

static struct opened opened[8];

static void begin(unsigned int cpts, unsigned int max)
{
	memset(talks, 0, sizeof(talks));
	memset(opened, 0, sizeof(opened));
	sim_open(cpts);
	for (unsigned int i = 1; i <= SERVERS; i++)
		serve(i, i == 1 ? max : 0);
	conf.client.service = "chat";
	conf.choice = ULRPC_CHOOSE_FIRST;
}

static void on_opened(void *arg, const struct ulrpc_replicas_outcome *o,
		      struct ulrpc_stream *stream)
{
	struct opened *x = arg;

	x->n++;
	x->o = *o;
	x->stream = stream;
	cr_assert_eq(stream != NULL, o->call.cause == ULRPC_CAUSE_OK);
}

static void on_ended(void *arg, struct ulrpc_stream *stream,
		     const struct ulrpc_stream_outcome *outcome)
{
	struct opened *x = arg;

	cr_assert_eq(stream, x->stream);
	x->ended++;
	x->end = *outcome;
}

static struct ulrpc_replicas_call *ask(unsigned int i, uint64_t deadline)
{
	struct ulrpc_replicas_stream_conf how;
	struct ulrpc_replicas_call *asked;

	ulrpc_replicas_stream_conf_init(&how);
	how.deadline = deadline;
	how.events.ended = on_ended;
	how.events.arg = &opened[i];
	opened[i] = (struct opened){ .n = 0 };
	cr_assert_eq(ulrpc_replicas_stream_open(rs, "talk", "hello", 5, &how,
						on_opened, &opened[i], &asked),
		     0);
	return asked;
}

/* Opens stream @i, and returns the server where it is. */
static unsigned int open_at(unsigned int i)
{
	struct ulnet_nid nid;
	const void *body;
	size_t length;
	unsigned int by;

	ulrpc_replicas_call_put(ask(i, ULRPC_NEVER));
	lnet_sim_run(sim, SEC);
	cr_assert_eq(opened[i].n, 1);
	cr_assert_not_null(opened[i].stream, "%s: %s",
			   ulrpc_cause_name(opened[i].o.call.cause),
			   opened[i].o.call.text);
	cr_assert_eq(ulrpc_stream_next(opened[i].stream, &body, &length), 1);
	cr_assert_eq(length, 1);
	by = (unsigned int)(*(const char *)body - '0');
	nid = server_nid(by);
	cr_assert(lnet_nid_eq(&opened[i].o.server, &nid));
	return by;
}

/* Both sides of stream @i still talk. */
static void talks_on(unsigned int i, unsigned int server)
{
	const void *body;
	size_t length;

	cr_assert_eq(opened[i].ended, 0);
	cr_assert_eq(ulrpc_stream_send(opened[i].stream, "ping", 4), 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_stream_next(talks[server].last, &body, &length), 1);
	cr_assert_eq(ulrpc_stream_send(talks[server].last, "pong", 4), 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_stream_next(opened[i].stream, &body, &length), 1);
	cr_assert_eq(length, 4);
}

static void crash(unsigned int server)
{
	cr_assert_eq(lnet_sim_crash(sim, server), 0);
	ulrpc_stream_put(talks[server].last);
	talks[server].last = NULL;
}

static void end(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(opened); i++)
		ulrpc_stream_put(opened[i].stream);
	lnet_sim_run(sim, 20 * SEC);
	for (unsigned int i = 1; i <= SERVERS; i++)
		ulrpc_stream_put(talks[i].last);
	sim_close();
}

static void by_the_policy_of_the_set(unsigned int cpts)
{
	begin(cpts, 0);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(3);
	cr_assert_eq(open_at(0), 1);
	cr_assert_eq(open_at(1), 2);
	cr_assert_eq(open_at(2), 3);
	cr_assert_eq(open_at(3), 1);
	talks_on(1, 2);
	talks_on(3, 1);
	ulrpc_stream_end(talks[2].last, 0, NULL);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(opened[1].ended, 1);
	cr_assert_eq(opened[1].end.cause, ULRPC_CAUSE_OK);
	end();
}

Test(replicas_streams, by_the_policy_of_the_set)
{
	by_the_policy_of_the_set(1);
	by_the_policy_of_the_set(4);
}

Test(replicas_streams, a_stream_that_did_not_start_is_opened_elsewhere)
{
	begin(1, 2);
	open_nids(3);
	cr_assert_eq(open_at(0), 1);
	/* The first server has no room for more. */
	cr_assert_eq(open_at(1), 2);
	cr_assert_eq(opened[1].o.moves, 1);
	cr_assert_eq(talks[1].n, 1);
	/* The second one is not there. */
	crash(2);
	lnet_sim_run(sim, 100 * SEC);
	cr_assert_eq(opened[1].ended, 1);
	cr_assert_eq(open_at(2), 3);
	talks_on(0, 1);
	talks_on(2, 3);
	end();
}

/* The server dies before its answer has come: the stream may have started, and
 * it has. */
Test(replicas_streams, a_stream_that_may_have_started_is_not_opened_again)
{
	const struct ulnet_nid first = server_nid(1), own = server_nid(0);

	begin(1, 0);
	open_nids(3);
	cr_assert_eq(open_at(0), 1);
	ulrpc_replicas_call_put(ask(1, 100000000));
	lnet_sim_run(sim, 20000);
	cr_assert_eq(lnet_sim_partition(sim, &first, &own, true), 0);
	lnet_sim_run(sim, 100000);
	cr_assert_eq(talks[1].n, 2);
	cr_assert_eq(opened[1].n, 0);
	crash(1);
	lnet_sim_run(sim, 100 * SEC);
	cr_assert_eq(opened[1].n, 1);
	cr_assert_null(opened[1].stream);
	cr_assert_eq(opened[1].o.call.execution, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(opened[1].o.moves, 0);
	cr_assert_eq(talks[2].n + talks[3].n, 0);
	/* The one that was open is over, and is not moved either. */
	cr_assert_eq(opened[0].ended, 1);
	cr_assert_neq(opened[0].end.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(open_at(2), 2);
	end();
}

Test(replicas_streams, what_cannot_be_opened)
{
	struct ulrpc_replicas_stream_conf none = { .deadline = 0 };
	struct ulrpc_replicas_call *asked;

	begin(1, 0);
	open_nids(3);
	cr_assert_eq(ulrpc_replicas_stream_open(rs, "talk", "hello", 5, &none,
						on_opened, &opened[0], NULL),
		     -EINVAL);
	none.deadline = 1;
	cr_assert_eq(ulrpc_replicas_stream_open(
			     rs, "talk", NULL, ULRPC_STREAM_MESSAGE_MAX + 1,
			     &none, on_opened, &opened[0], NULL),
		     -EMSGSIZE);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
	/* Its deadline passes, or it is canceled. */
	ulrpc_replicas_call_put(ask(0, 2000000));
	asked = ask(1, ULRPC_NEVER);
	ulrpc_replicas_cancel(asked);
	ulrpc_replicas_call_put(asked);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(opened[0].n, 1);
	cr_assert_null(opened[0].stream);
	cr_assert_eq(opened[0].o.call.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(opened[1].n, 1);
	cr_assert_eq(opened[1].o.call.cause, ULRPC_CAUSE_CANCELED);
	end();
}

/* What is open goes on at a server that leaves the name, until it is over, and
 * ends with the set at one that is in it. */
Test(replicas_streams, the_name_changes_and_the_set_is_closed)
{
	begin(1, 0);
	set_servers(SERVERS_OF(1, 2));
	conf.client.target = "servers";
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	cr_assert_eq(open_at(0), 1);
	set_servers(SERVERS_OF(2, 3));
	lnet_sim_run(sim, 20 * SEC);
	cr_assert_eq(open_at(1), 2);
	talks_on(0, 1);
	ulrpc_stream_end(talks[1].last, -EIO, "over");
	lnet_sim_run(sim, SEC);
	cr_assert_eq(opened[0].ended, 1);
	cr_assert_str_eq(opened[0].end.text, "over");
	ulrpc_replicas_close(rs);
	rs = NULL;
	lnet_sim_run(sim, SEC);
	cr_assert_eq(opened[1].ended, 1);
	cr_assert_eq(opened[1].end.cause, ULRPC_CAUSE_CANCELED);
	end();
}

/* A stream that is canceled while the server opens it does not stay there. */
Test(replicas_streams, canceled_while_it_is_opened)
{
	struct ulrpc_stream_outcome o;
	struct ulrpc_replicas_call *asked;

	begin(1, 0);
	open_nids(3);
	cr_assert_eq(open_at(0), 1);
	asked = ask(1, ULRPC_NEVER);
	while (talks[1].n < 2)
		lnet_sim_run(sim, 1000);
	ulrpc_replicas_cancel(asked);
	ulrpc_replicas_call_put(asked);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(opened[1].n, 1);
	cr_assert_null(opened[1].stream);
	cr_assert_eq(opened[1].o.call.cause, ULRPC_CAUSE_CANCELED);
	lnet_sim_run(sim, 60 * SEC);
	cr_assert_eq(ulrpc_stream_outcome(talks[1].last, &o), 0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_CANCELED);
	end();
}

Test(replicas_streams, a_crash_of_the_caller_leaves_nothing)
{
	begin(1, 0);
	open_nids(3);
	cr_assert_eq(open_at(0), 1);
	for (unsigned int i = 1; i < 4; i++) {
		ulrpc_replicas_call_put(ask(i, ULRPC_NEVER));
		lnet_sim_run(sim, 20000 * i);
	}
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	rs = NULL;
	lnet_sim_run(sim, 20 * SEC);
	end();
}

Test(replicas_streams, rpc_that_closes_ends_them)
{
	begin(1, 0);
	open_nids(3);
	cr_assert_eq(open_at(0), 1);
	ulrpc_replicas_call_put(ask(1, ULRPC_NEVER));
	lnet_sim_run(sim, 20000);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cr_assert_eq(opened[1].n, 1);
	cr_assert_eq(opened[0].ended, 1);
	rs = NULL;
	end();
}

Test(replicas_streams, opening_may_wait)
{
	struct ulrpc_replicas_stream_conf how = { .deadline = 10000000 };

	begin(1, 0);
	open_nids(3);
	cr_assert_eq(ulrpc_replicas_stream_open_wait(
			     rs, "talk", "hello", 5, &how, &opened[0].stream,
			     &opened[0].o),
		     0);
	cr_assert_not_null(opened[0].stream);
	cr_assert_eq(opened[0].o.call.cause, ULRPC_CAUSE_OK);
	end();
}
