/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams at one of several servers: where they are opened, and that those that
 * may have started stay there. */
#include "rpc/replicas/replicas.h"

#include "tests/unit/rpc/replicas/servers.h"

/* The streams that a server has got. */
struct talks {
	unsigned int n;
	struct ulrpc_stream *last;
	/* those before the last one, which is open only as long as it is the
	 * last, unless @keeps */
	struct ulrpc_stream *kept[16];
	unsigned int nkept;
	bool keeps;
};

static struct talks talks[SERVERS + 1];

/* Says which server it is, and leaves the stream open, or only the last one. */
static void talk(void *arg, struct ulrpc_stream *s, const void *body,
		 size_t length)
{
	struct talks *t = arg;
	const char own = (char)('0' + (t - talks));
	struct ulrpc_metadata pair;

	if (!ulrpc_stream_find(s, "who", &pair))
		memcpy(said, pair.value, pair.length);
	cr_assert_eq(length, 5);
	cr_assert_eq(memcmp(body, "hello", 5), 0);
	t->n++;
	cr_assert_eq(ulrpc_stream_send(s, &own, 1), 0);
	if (t->keeps && t->last)
		t->kept[t->nkept++] = t->last;
	else
		ulrpc_stream_put(t->last);
	t->last = s;
}

static void keep_all(void)
{
	for (unsigned int i = 1; i <= SERVERS; i++)
		talks[i].keeps = true;
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
struct attempt_end {
	unsigned int n, ended;
	struct ulrpc_stream *stream;
	struct ulrpc_replicas_outcome o;
	struct ulrpc_stream_outcome end;
};

static struct attempt_end opened[16];

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
	struct attempt_end *x = arg;

	x->n++;
	x->o = *o;
	x->stream = stream;
	cr_assert_eq(stream != NULL, o->call.cause == ULRPC_CAUSE_OK);
}

static void on_ended(void *arg, struct ulrpc_stream *stream,
		     const struct ulrpc_stream_outcome *outcome)
{
	struct attempt_end *x = arg;

	cr_assert(!x->stream || stream == x->stream);
	x->ended++;
	x->end = *outcome;
}

static struct ulrpc_replicas_call *ask_with(
	unsigned int i, struct ulrpc_replicas_stream_conf *how)
{
	struct ulrpc_replicas_call *asked;

	how->events.ended = on_ended;
	how->events.arg = &opened[i];
	opened[i] = (struct attempt_end){ .n = 0 };
	cr_assert_eq(ulrpc_replicas_stream_open(rs, "talk", "hello", 5, how,
						on_opened, &opened[i], &asked),
		     0);
	return asked;
}

static struct ulrpc_replicas_call *ask(unsigned int i, uint64_t deadline)
{
	struct ulrpc_replicas_stream_conf how;

	ulrpc_replicas_stream_conf_init(&how);
	how.deadline = deadline;
	return ask_with(i, &how);
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

static void put_all(struct talks *t)
{
	ulrpc_stream_put(t->last);
	t->last = NULL;
	while (t->nkept)
		ulrpc_stream_put(t->kept[--t->nkept]);
}

static void crash(unsigned int server)
{
	cr_assert_eq(lnet_sim_crash(sim, server), 0);
	put_all(&talks[server]);
}

static void end(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(opened); i++)
		ulrpc_stream_put(opened[i].stream);
	lnet_sim_run(sim, 20 * SEC);
	for (unsigned int i = 1; i <= SERVERS; i++)
		put_all(&talks[i]);
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
	cr_assert(lnet_nid_eq(&opened[1].end.server, &opened[1].o.server));
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

/* ---- how many are open ---- */

static unsigned int open_count(unsigned int server)
{
	const atomic_uint *open = rs->all[server - 1]->open;

	return open ? atomic_load(open) : 0;
}

static void counts_are(unsigned int first, unsigned int second)
{
	lnet_sim_run(sim, SEC);
	cr_assert_eq(open_count(1), first, "%u, %u", open_count(1),
		     open_count(2));
	cr_assert_eq(open_count(2), second);
}

/* An open stream counts as a call under way, until its end. */
Test(replicas_streams, the_server_with_fewer_open)
{
	begin(1, 0);
	conf.choice = ULRPC_CHOOSE_LEAST;
	open_nids(2);
	keep_all();
	for (unsigned int i = 0; i < 8; i++)
		open_at(i);
	counts_are(4, 4);
	end();
}

static void ends_at(unsigned int server, void (*ending)(unsigned int i))
{
	unsigned int by = 0, i = 0;

	begin(1, 0);
	conf.choice = ULRPC_CHOOSE_LEAST;
	open_nids(2);
	keep_all();
	for (; i < 4; i++)
		by = open_at(i);
	/* The last one at @server ends: the next one goes there. */
	if (by != server)
		by = open_at(i++);
	while (by != server)
		by = open_at(i++);
	ending(i - 1);
	lnet_sim_run(sim, 20 * SEC);
	while (open_count(server) < open_count(3 - server))
		cr_assert_eq(open_at(i++), server);
	counts_are(open_count(server), open_count(server));
	end();
}

static void by_cancel(unsigned int i)
{
	ulrpc_stream_cancel(opened[i].stream);
}

static void by_put(unsigned int i)
{
	ulrpc_stream_put(opened[i].stream);
	opened[i].stream = NULL;
}

static void by_the_service(unsigned int i)
{
	const unsigned int by =
		lnet_nid_eq(&opened[i].o.server, &rs->all[0]->address.nid) ? 1
									   : 2;

	ulrpc_stream_end(talks[by].last, -EIO, NULL);
}

Test(replicas_streams, one_that_has_ended_does_not_count)
{
	ends_at(1, by_cancel);
	ends_at(2, by_put);
	ends_at(1, by_the_service);
}

Test(replicas_streams, one_that_ends_by_itself_does_not_count)
{
	struct ulrpc_replicas_call *asked;

	begin(1, 0);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(2);
	keep_all();
	cr_assert_eq(open_at(0), 1);
	cr_assert_eq(open_at(1), 2);
	counts_are(1, 1);
	/* by its deadline */
	ulrpc_replicas_call_put(ask(2, 5000000));
	ulrpc_replicas_call_put(ask(3, 5000000));
	counts_are(2, 2);
	lnet_sim_run(sim, 10 * SEC);
	counts_are(1, 1);
	/* with its server */
	crash(2);
	lnet_sim_run(sim, 100 * SEC);
	cr_assert_eq(opened[1].ended, 1);
	counts_are(1, 0);
	/* It was never open. */
	asked = ask(4, ULRPC_NEVER);
	ulrpc_replicas_cancel(asked);
	ulrpc_replicas_call_put(asked);
	counts_are(1, 0);
	end();
}

/* ---- what can be set ---- */

Test(replicas_streams, windows_are_those_of_the_set)
{
	unsigned int sent = 0;

	begin(1, 0);
	conf.window_messages = 8;
	open_nids(1);
	cr_assert_eq(open_at(0), 1);
	while (!ulrpc_stream_send(talks[1].last, "x", 1))
		sent++;
	cr_assert_gt(sent, 4);
	cr_assert_leq(sent, 8);
	end();
	begin(1, 0);
	conf.window_messages = 0;
	conf.window_bytes = 3;
	open_nids(1);
	cr_assert_eq(open_at(0), 1);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_stream_send(talks[1].last, "1234", 4), 0);
	cr_assert_eq(ulrpc_stream_send(talks[1].last, "x", 1), -EAGAIN);
	conf.window_bytes = 0;
	end();
}

static void lose_server(unsigned int server)
{
	const struct ulnet_nid nid = server_nid(server), own = server_nid(0);

	cr_assert_eq(lnet_sim_partition(sim, &nid, &own, true), 0);
	cr_assert_eq(lnet_sim_partition(sim, &own, &nid, true), 0);
}

Test(replicas_streams, patience_is_that_of_the_set)
{
	begin(1, 0);
	conf.patience = 5000000;
	open_nids(2);
	conf.patience = 0;
	cr_assert_eq(open_at(0), 1);
	lose_server(1);
	lnet_sim_run(sim, 3 * SEC);
	cr_assert_eq(opened[0].ended, 0);
	lnet_sim_run(sim, 15 * SEC);
	cr_assert_eq(opened[0].ended, 1);
	/* It also is the longest time for opening one. */
	lose_server(2);
	ulrpc_replicas_call_put(ask(1, ULRPC_NEVER));
	lnet_sim_run(sim, 4 * SEC);
	cr_assert_eq(opened[1].n, 0);
	lnet_sim_run(sim, 2 * SEC);
	cr_assert_eq(opened[1].n, 1);
	cr_assert_null(opened[1].stream);
	end();
}

Test(replicas_streams, an_open_one_outlives_patience)
{
	begin(1, 0);
	conf.patience = 5000000;
	open_nids(1);
	conf.patience = 0;
	cr_assert_eq(open_at(0), 1);
	lnet_sim_run(sim, 20 * SEC);
	talks_on(0, 1);
	end();
}

Test(replicas_streams, metadata_go_with_the_opening)
{
	struct ulrpc_replicas_stream_conf how;

	begin(1, 2);
	open_nids(2);
	cr_assert_eq(open_at(0), 1);
	memset(said, 0, sizeof(said));
	ulrpc_replicas_stream_conf_init(&how);
	how.deadline = ULRPC_NEVER;
	cr_assert_eq(ulrpc_context_new(&how.context), 0);
	cr_assert_eq(ulrpc_context_add(how.context, "who", "anna", 4), 0);
	/* Server 1 has no room: they go to the next one, too. */
	ulrpc_replicas_call_put(ask_with(1, &how));
	lnet_sim_run(sim, SEC);
	cr_assert_not_null(opened[1].stream);
	cr_assert_eq(talks[2].n, 1);
	cr_assert_str_eq(said, "anna");
	/* The opening does not have the context any more. */
	cr_assert_eq(ulrpc_context_add(how.context, "more", "x", 1), 0);
	ulrpc_context_free(how.context);
	end();
}

/* An open stream ends with the stream that it was opened for. */
Test(replicas_streams, one_that_is_opened_for_another)
{
	struct ulrpc_replicas_stream_conf how;

	begin(1, 0);
	keep_all();
	open_nids(2);
	cr_assert_eq(open_at(0), 1);
	ulrpc_replicas_stream_conf_init(&how);
	how.deadline = ULRPC_NEVER;
	cr_assert_eq(ulrpc_context_new(&how.context), 0);
	cr_assert_eq(ulrpc_context_under_stream(how.context, talks[1].last), 0);
	ulrpc_replicas_call_put(ask_with(1, &how));
	lnet_sim_run(sim, SEC);
	cr_assert_not_null(opened[1].stream);
	ulrpc_stream_cancel(opened[0].stream);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(opened[1].ended, 1);
	cr_assert_eq(opened[1].end.cause, ULRPC_CAUSE_CANCELED);
	/* One that is opened later does not start. */
	cr_assert_eq(ulrpc_replicas_stream_open(rs, "talk", "hello", 5, &how,
						on_opened, &opened[2], NULL),
		     -ECANCELED);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(talks[1].n, 2);
	ulrpc_context_free(how.context);
	end();
}

/* ---- a server that is mute ---- */

/* The server never answers the call that opens a stream, and the set is closed.
 * @crash: the caller's node crashes then. */
static void closed_while_mute(bool crashes)
{
	begin(1, 0);
	open_nids(2);
	cr_assert_eq(open_at(0), 1);
	lose_server(1);
	ulrpc_replicas_call_put(ask(1, ULRPC_NEVER));
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_eq(opened[1].n, 0);
	ulrpc_replicas_close(rs);
	rs = NULL;
	if (!crashes)
		lnet_sim_run(sim, SEC);
	else
		cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	cr_assert_eq(opened[1].n, !crashes);
	cr_assert_null(opened[1].stream);
	/* The one that was open ends when patience is at its end. */
	lnet_sim_run(sim, 100 * SEC);
	cr_assert_eq(opened[0].ended, !crashes);
	end();
}

Test(replicas_streams, closed_while_a_server_is_mute)
{
	closed_while_mute(false);
	closed_while_mute(true);
}

/* ---- a server that is gone ---- */

/* Server 1 has got stream @i, but not said so, when its process ends. */
static void ask_and_crash(unsigned int i)
{
	const struct ulnet_nid first = server_nid(1), own = server_nid(0);
	unsigned int before = talks[1].n;

	ulrpc_replicas_call_put(ask(i, 100000000));
	lnet_sim_run(sim, 20000);
	cr_assert_eq(lnet_sim_partition(sim, &first, &own, true), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(talks[1].n, before + 1);
	cr_assert_eq(opened[i].n, 0);
	crash(1);
	cr_assert_eq(lnet_sim_partition(sim, &first, &own, false), 0);
}

static const char gone_text[] =
	"10.0.0.2@tcp: nobody has listened there for 2 s";

/* What may have been executed at server 1 is told soon, and is not made
 * elsewhere. */
static void ends_as_lost(unsigned int i)
{
	const struct ulrpc_outcome *o = &opened[i].o.call;

	cr_assert_eq(opened[i].n, 1);
	cr_assert_null(opened[i].stream);
	cr_assert_eq(o->cause, ULRPC_CAUSE_UNREACHABLE, "%s",
		     ulrpc_cause_name(o->cause));
	cr_assert_eq(o->execution, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_str_eq(o->text, gone_text);
	cr_assert_eq(opened[i].o.moves, 0);
}

Test(replicas_streams, one_that_may_be_lost_ends_soon)
{
	begin(1, 0);
	open_nids(3);
	cr_assert_eq(open_at(0), 1);
	ask_and_crash(1);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(opened[1].n, 0);
	lnet_sim_run(sim, 3 * SEC);
	ends_as_lost(1);
	cr_assert_eq(opened[0].ended, 1);
	cr_assert_eq(opened[0].end.execution, ULRPC_EXECUTED);
	cr_assert_str_eq(opened[0].end.text, gone_text);
	cr_assert_eq(talks[2].n + talks[3].n, 0);
	cr_assert_eq(open_at(2), 2);
	end();
}

/* So does one at a server that has left the name meanwhile. */
Test(replicas_streams, one_that_may_be_lost_outside_of_the_set)
{
	begin(1, 0);
	set_servers(SERVERS_OF(1, 2));
	conf.client.target = "servers";
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	cr_assert_eq(open_at(0), 1);
	ask_and_crash(1);
	set_servers(SERVERS_OF(2, 3));
	lnet_sim_run(sim, 4 * SEC);
	ends_as_lost(1);
	end();
}

/* What was certainly not sent waits for the only server; and although that then
 * says that it has forgotten where it was to be opened, it is opened. */
Test(replicas_streams, one_that_waits_for_the_only_server)
{
	begin(1, 0);
	open_nids(1);
	cr_assert_eq(open_at(0), 1);
	crash(1);
	lnet_sim_run(sim, SEC);
	ulrpc_replicas_call_put(ask(1, 100000000));
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(opened[0].ended, 1);
	cr_assert_eq(opened[1].n, 0);
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	serve(1, 0);
	lnet_sim_run(sim, 3 * SEC);
	cr_assert_eq(opened[1].n, 1);
	cr_assert_not_null(opened[1].stream, "%s, %s",
			   ulrpc_cause_name(opened[1].o.call.cause),
			   opened[1].o.call.text);
	cr_assert_eq(talks[1].n, 2);
	cr_assert_eq(opened[1].ended, 0);
	end();
}

/* A call that may have been executed has its whole deadline, and then says
 * more. */
Test(replicas_streams, a_call_to_a_server_that_is_gone)
{
	begin(1, 0);
	conf.client.service = "test";
	open_nids(1);
	servers[1].delay = 3 * SEC;
	call(0, 4500000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(calls[0].executed, 1);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(calls[0].n, 1);
	cr_assert_eq(calls[0].o.call.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_eq(calls[0].o.call.execution, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(
		strncmp(calls[0].o.call.text, gone_text, strlen(gone_text) - 3),
		0, "%s", calls[0].o.call.text);
	end();
}
