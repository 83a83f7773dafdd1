/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches: lst(8). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"
#include "lst_nodes.h"

#define STOP_S 60

/* Asks again and again until no client of @batch is running. */
static int await_idle(struct lst_console *c, const char *batch, uint64_t id,
		      bool stop, bool say)
{
	struct lst_msg query = { .type = LST_BATCH,
				 .batch = { .id = id, .op = LST_QUERY } };
	struct lst_nodes nodes = { 0 };
	int status = lst_nodes_add_clients(&nodes, &c->state, batch);

	if (stop)
		lst_nodes_keep(&nodes, &c->state, NODES_MEMBERS);
	for (unsigned int s = 0; !status; s++) {
		unsigned int busy = 0;

		lst_nodes_ask(c, &nodes, &query, ASK_S);
		status = lst_nodes_failed(&nodes, batch, stop ? ESRCH : 0);
		for (unsigned int i = 0; i < nodes.n; i++)
			busy += nodes.asks[i].reply.batch.active > 0;
		if (status || !busy)
			break;
		if (say)
			fprintf(stderr,
				c->json ? "{\"batch\": \"%s\", \"busy\": %u, "
					  "\"nodes\": %u}\n"
					: WHO ": %s: %u of %u nodes are busy\n",
				batch, busy, nodes.n);
		if (stop && s == STOP_S)
			status = lst_fail("%s: does not stop", batch);
		lst_ask_wait(&c->calls, SECOND_US);
		lst_nodes_keep_alive(c);
	}
	free(nodes.asks);
	return status;
}

int lst_batch_stop(struct lst_console *c, const struct state_batch *b,
		   bool force)
{
	struct lst_msg stop = {
		.type = LST_BATCH,
		.batch = { .id = b->id, .op = LST_STOP, .arg = force }
	};
	struct lst_nodes nodes = { 0 };
	int status = lst_nodes_add_clients(&nodes, &c->state, b->name);

	lst_nodes_keep(&nodes, &c->state, NODES_MEMBERS);
	if (!status) {
		lst_nodes_ask(c, &nodes, &stop, ASK_S);
		status = lst_nodes_failed(&nodes, b->name, ESRCH);
	}
	free(nodes.asks);
	return status ? status : await_idle(c, b->name, b->id, true, false);
}

int lst_add_batch(struct lst_console *c, const struct lst_words *w)
{
	struct state *s = &c->state;

	if (lst_check_name("batch", w->args[0]))
		return FAILED;
	if (state_batch(s, w->args[0]))
		return lst_fail("there is a batch %s already", w->args[0]);
	if (s->nbatches == STATE_BATCHES)
		return lst_fail("there are %u batches already", s->nbatches);
	state_name_copy(s->batches[s->nbatches].name, w->args[0]);
	s->batches[s->nbatches++].id = s->next_batch++;
	return 0;
}

struct state_batch *lst_batch_named(struct lst_console *c, const char *name)
{
	struct state_batch *b;

	if (!name && c->state.nbatches == 1)
		return &c->state.batches[0];
	b = name ? state_batch(&c->state, name) : NULL;
	if (!b)
		lst_fail(name ? "there is no batch %s" : "which batch?%s",
			 name ? name : "");
	return b;
}

static void list_tests(const struct lst_console *c, const char *batch)
{
	const struct state *s = &c->state;
	const char *comma = "";

	for (unsigned int i = 0; i < s->ntests; i++) {
		const struct state_test *t = &s->tests[i];

		if (strcmp(t->batch, batch) != 0)
			continue;
		printf(c->json ? "%s{\"from\": \"%s\", \"to\": \"%s\", "
				 "\"test\": \"%s\"}"
			       : "%s    from %s to %s: %s\n",
		       c->json ? comma : "", t->from, t->to, t->text);
		comma = ", ";
	}
}

int lst_list_batch(struct lst_console *c, const struct lst_words *w)
{
	const struct state *s = &c->state;
	const struct state_batch *one = NULL;
	const char *comma = "";

	if (w->args[0] && !(one = lst_batch_named(c, w->args[0])))
		return FAILED;
	fputs(c->json ? "{\"batches\": [" : "", stdout);
	for (unsigned int i = 0; i < s->nbatches; i++) {
		if (one && one != &s->batches[i])
			continue;
		printf(c->json ? "%s{\"batch\": \"%s\", \"tests\": ["
			       : "%s%s:\n",
		       c->json ? comma : "", s->batches[i].name);
		list_tests(c, s->batches[i].name);
		fputs(c->json ? "]}" : "", stdout);
		comma = ", ";
	}
	fputs(c->json ? "]}\n" : "", stdout);
	return 0;
}

int lst_run(struct lst_console *c, const struct lst_words *w)
{
	struct lst_msg start = { .type = LST_BATCH, .batch.op = LST_RUN };
	struct lst_nodes nodes = { 0 };
	struct state_batch *b = lst_batch_named(c, w->args[0]);
	int status;

	if (!b)
		return FAILED;
	start.batch.id = b->id;
	start.batch.arg = w->run;
	status = lst_nodes_add_clients(&nodes, &c->state, b->name);
	if (!status && !nodes.n)
		status = lst_fail("batch %s has no tests", b->name);
	if (!status)
		status = lst_nodes_need_active(&nodes, &c->state, b->name);
	if (!status) {
		lst_nodes_ask(c, &nodes, &start, ASK_S);
		status = lst_nodes_failed(&nodes, b->name, 0);
	}
	free(nodes.asks);
	if (!status && w->wait)
		status = await_idle(c, b->name, b->id, false, true);
	return status;
}

int lst_stop(struct lst_console *c, const struct lst_words *w)
{
	struct state_batch *b = lst_batch_named(c, w->args[0]);

	return b ? lst_batch_stop(c, b, w->force) : FAILED;
}

/* ---- what runs ---- */

/* Test @k of the batch, from 1 on. NULL, and it is said. */
static const struct state_test *test_of(const struct state *s,
					const char *batch, unsigned int k)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->ntests; i++)
		if (strcmp(s->tests[i].batch, batch) == 0 && ++n == k)
			return &s->tests[i];
	lst_fail("batch %s has %u tests", batch, n);
	return NULL;
}

/* Which of the node's own tests of the batch @test is: a node has only those it
 * takes part in, and one that sends to itself has two of a test, of which the
 * one that sends is the second. */
static uint32_t index_at(const struct state *s, const struct state_test *test,
			 const struct ulnet_nid *node)
{
	uint32_t n = 0;

	for (const struct state_test *t = s->tests; t <= test; t++) {
		if (strcmp(t->batch, test->batch) != 0)
			continue;
		n += state_group_has(s, t->to, node);
		n += state_group_has(s, t->from, node);
	}
	return n;
}

/* Whom to ask, and what. */
static int query_nodes(struct lst_nodes *nodes, struct state *s,
		       const struct state_batch *b, const struct lst_words *w)
{
	const struct state_test *test = NULL;
	int status;

	if (w->test && !(test = test_of(s, b->name, w->test)))
		return FAILED;
	status = test ? lst_nodes_add_group(nodes, s, test->from)
		      : lst_nodes_add_clients(nodes, s, b->name);
	if (w->server)
		status |= test ? lst_nodes_add_group(nodes, s, test->to)
			       : lst_nodes_add_servers(nodes, s, b->name);
	for (unsigned int i = 0; i < nodes->n; i++) {
		struct lst_ask *ask = &nodes->asks[i];

		ask->msg = (struct lst_msg){ .type = LST_BATCH };
		ask->msg.batch.id = b->id;
		ask->msg.batch.op = LST_QUERY;
		if (test)
			ask->msg.batch.index = index_at(s, test, &ask->to.nid);
	}
	return status;
}

static void print_running(const struct lst_console *c, const char *comma,
			  const struct lst_ask *ask, bool requests)
{
	char nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&ask->to.nid, nid, sizeof(nid));
	if (c->json)
		printf("%s{\"nid\": \"%s\", \"running\": %u}", comma, nid,
		       ask->reply.batch.active);
	else
		printf("%s: %u %s are running\n", nid, ask->reply.batch.active,
		       requests ? "requests" : "tests");
}

int lst_query(struct lst_console *c, const struct lst_words *w)
{
	struct lst_nodes nodes = { 0 };
	struct state_batch *b = lst_batch_named(c, w->args[0]);
	const char *comma = "";
	int status;

	if (!b || query_nodes(&nodes, &c->state, b, w)) {
		free(nodes.asks);
		return FAILED;
	}
	lst_nodes_ask_each(c, &nodes, w->ask);
	status = lst_nodes_failed(&nodes, b->name, 0);
	lst_nodes_keep_alive(c);
	fputs(c->json ? "{\"nodes\": [" : "", stdout);
	for (unsigned int i = 0; i < nodes.n; i++) {
		const struct lst_ask *ask = &nodes.asks[i];

		if (ask->status || ask->reply.status)
			continue;
		print_running(c, comma, ask, w->test);
		comma = ", ";
	}
	fputs(c->json ? "]}\n" : "", stdout);
	free(nodes.asks);
	return status;
}
