/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands for batches and tests: lst(8). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"
#include "services/lst/message.h"

#define STOP_S 60

/* Asks the clients of @batch every second until none of them runs a test.
 * @stop: the batch has been stopped, so this takes at most STOP_S. @say: prints
 * progress. */
static int wait_idle(struct lst_console *c, const char *batch, uint64_t id,
		     bool stop, bool say)
{
	struct lst_msg query = { .type = LST_BATCH,
				 .batch = { .id = id, .op = LST_QUERY } };
	struct lst_nodes nodes = { 0 };
	int status = lst_nodes_add_batch(&nodes, &c->state, batch, false);

	if (stop)
		lst_nodes_filter(&nodes, &c->state, NODES_MEMBERS);
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
	int status = lst_nodes_add_batch(&nodes, &c->state, b->name, false);

	lst_nodes_filter(&nodes, &c->state, NODES_MEMBERS);
	status = lst_nodes_request(c, &nodes, status, &stop, b->name, ESRCH);
	return status ? status : wait_idle(c, b->name, b->id, true, false);
}

/* Makes a batch; there must be room for it. */
static struct state_batch *batch_new(struct state *s, const char *name)
{
	struct state_batch *b = &s->batches[s->nbatches++];

	state_name_copy(b->name, name);
	b->id = s->next_batch++;
	return b;
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
	batch_new(s, w->args[0]);
	return 0;
}

struct state_batch *lst_batch_named(struct lst_console *c, const char *name)
{
	struct state *s = &c->state;
	struct state_batch *b;
	bool make;

	if (!name && s->nbatches == 1)
		return &s->batches[0];
	b = state_batch(s, name ? name : LST_BATCH_DEFAULT);
	make = name ? strcmp(name, LST_BATCH_DEFAULT) == 0 : !s->nbatches;
	if (!b && make && s->nbatches < STATE_BATCHES)
		b = batch_new(s, LST_BATCH_DEFAULT);
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

	if (w->args[0] && !(one = lst_batch_named(c, w->args[0])))
		return FAILED;
	lst_list_begin(c, "batches");
	for (unsigned int i = 0; i < s->nbatches; i++) {
		if (one && one != &s->batches[i])
			continue;
		lst_list_next(c);
		printf(c->json ? "{\"batch\": \"%s\", \"tests\": [" : "%s:\n",
		       s->batches[i].name);
		list_tests(c, s->batches[i].name);
		fputs(c->json ? "]}" : "", stdout);
	}
	lst_list_end(c);
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
	status = lst_nodes_add_batch(&nodes, &c->state, b->name, false);
	if (!status && !nodes.n)
		status = lst_fail("batch %s has no tests", b->name);
	if (!status)
		status = lst_nodes_need_active(&nodes, &c->state, b->name);
	status = lst_nodes_request(c, &nodes, status, &start, b->name, 0);
	if (!status && w->wait)
		status = wait_idle(c, b->name, b->id, false, true);
	return status;
}

int lst_stop(struct lst_console *c, const struct lst_words *w)
{
	struct state_batch *b = lst_batch_named(c, w->args[0]);

	return b ? lst_batch_stop(c, b, w->force) : FAILED;
}

/* ---- query ---- */

/* Returns test @k of the batch; the first one is 1. NULL: there is no such
 * test, and a message was printed. */
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

/* Returns the index of @test among the tests of its batch on @node. The node
 * counts only tests in which it takes part: one if it is a server, and then one
 * if it is a client. */
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

/* Sets which nodes are to be asked, and the message for each. */
static int query_nodes(struct lst_nodes *nodes, struct state *s,
		       const struct state_batch *b, const struct lst_words *w)
{
	const struct state_test *test = NULL;
	int status;

	if (w->test && !(test = test_of(s, b->name, w->test)))
		return FAILED;
	status = test ? lst_nodes_add_group(nodes, s, test->from)
		      : lst_nodes_add_batch(nodes, s, b->name, false);
	if (w->server)
		status |= test ? lst_nodes_add_group(nodes, s, test->to)
			       : lst_nodes_add_batch(nodes, s, b->name, true);
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

static void print_running(struct lst_console *c, const struct lst_ask *ask,
			  bool requests)
{
	char nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&ask->to.nid, nid, sizeof(nid));
	lst_list_next(c);
	if (c->json)
		printf("{\"nid\": \"%s\", \"running\": %u}", nid,
		       ask->reply.batch.active);
	else
		printf("%s: %u %s are running\n", nid, ask->reply.batch.active,
		       requests ? "requests" : "tests");
}

/* Asks the nodes once, and prints their answers. */
static int query_once(struct lst_console *c, struct lst_nodes *nodes,
		      const struct state_batch *b, const struct lst_words *w)
{
	int status;

	lst_nodes_ask_each(c, nodes, w->ask);
	status = lst_nodes_failed(nodes, b->name, 0);
	lst_nodes_keep_alive(c);
	lst_list_begin(c, "nodes");
	for (unsigned int i = 0; i < nodes->n; i++)
		if (!nodes->asks[i].status && !nodes->asks[i].reply.status)
			print_running(c, &nodes->asks[i], w->test);
	lst_list_end(c);
	return status;
}

int lst_query(struct lst_console *c, const struct lst_words *w)
{
	struct lst_nodes nodes = { 0 };
	struct state_batch *b = lst_batch_named(c, w->args[0]);
	int status = !b || query_nodes(&nodes, &c->state, b, w) ? FAILED : 0;
	unsigned int times = w->loop ? w->loop : 1;

	for (unsigned int i = 0; !status && i < times; i++) {
		if (i)
			lst_ask_wait(&c->calls, w->delay * SECOND_US);
		status = query_once(c, &nodes, b, w);
		fflush(stdout);
	}
	free(nodes.asks);
	return status;
}

/* ---- tests ---- */

static bool word_value(const char *word, const char *key, const char **value_p)
{
	size_t length = strlen(key);

	if (strncmp(word, key, length) != 0 || word[length] != '=')
		return false;
	*value_p = word + length + 1;
	return true;
}

static int take_check(const char *value, uint32_t *check_p)
{
	static const char *const words[] = { "", "none", "simple", "full",
					     NULL };
	const struct option_at at = {
		.who = WHO, .name = "check=", .text = value
	};

	return option_word(&at, words, 1, check_p);
}

static int take_size(const char *name, const char *value, uint64_t min,
		     uint64_t max, uint64_t *size_p)
{
	const struct option_at at = { .who = WHO, .name = name, .text = value };

	return option_size(&at, min, max, size_p);
}

/* Parses the arguments of brw. Sizes and offsets that would crash kernel nodes
 * are refused here. */
static int take_brw(struct lst_brw_params *brw, int argc, char **argv)
{
	uint64_t size = LST_PAGE_SIZE, off = 0;
	const char *value;
	int status = 0;

	*brw = (struct lst_brw_params){ .opcode = LST_READ,
					.flags = LST_CHECK_NONE };
	for (int i = 0; i < argc && !status; i++) {
		if (strcmp(argv[i], "read") == 0 || strcmp(argv[i], "r") == 0)
			brw->opcode = LST_READ;
		else if (strcmp(argv[i], "write") == 0 ||
			 strcmp(argv[i], "w") == 0)
			brw->opcode = LST_WRITE;
		else if (word_value(argv[i], "check", &value))
			status = take_check(value, &brw->flags);
		else if (word_value(argv[i], "size", &value))
			status = take_size("size=", value, 8, LNET_MTU, &size);
		else if (word_value(argv[i], "off", &value))
			status = take_size("off=", value, 0, LST_PAGE_SIZE - 8,
					   &off);
		else
			status = lst_usage("add_test", "brw has read, write, "
						       "check=, size=, off=");
	}
	if (status)
		return status;
	if (size % 8 || off % 8)
		return lst_usage("add_test", "size and off: multiples of 8");
	if (off + size >
	    (size + LST_PAGE_SIZE - 1) / LST_PAGE_SIZE * LST_PAGE_SIZE)
		return lst_usage("add_test",
				 "off: the data must not touch more pages of "
				 "4096 bytes than they would without it");
	brw->length = (uint32_t)size;
	brw->offset = (uint32_t)off;
	return 0;
}

static int take_test(struct lst_msg *msg, const struct lst_words *w, int argc,
		     char **argv)
{
	*msg = (struct lst_msg){ .type = LST_TEST,
				 .test = { .loop = w->loop ? w->loop
							   : UINT32_MAX,
					   .concurrency = w->concurrency,
					   .stop_on_error = 1 } };
	if (strcmp(argv[0], "ping") == 0) {
		msg->test.service = LST_SERVICE_PING;
		return argc > 1 ? lst_usage("add_test", "ping has no arguments")
				: 0;
	}
	msg->test.service = LST_SERVICE_BRW;
	if (strcmp(argv[0], "brw") != 0)
		return lst_usage("add_test", "the test is ping or brw");
	return take_brw(&msg->test.brw, argc - 1, argv + 1);
}

/* Parses --distribute D:S: groups of D clients have the same S servers. */
static int take_distribute(const char *text, unsigned int servers,
			   unsigned int *d, unsigned int *s)
{
	char end;

	*d = *s = 1;
	if (text && sscanf(text, "%u:%u%c", d, s, &end) != 2)
		*d = 0;
	if (*d && *d <= 1024 && *s && *s <= servers && *s <= LST_LIST_WHOLE)
		return 0;
	lst_fail("--distribute %s: CLIENTS:SERVERS is expected, of which "
		 "the group has %u servers, and a test at most %u",
		 text ? text : "1:1", servers, LST_LIST_WHOLE);
	return FAILED;
}

static int test_servers(struct lst_console *c, const struct state_group *to,
			const struct lst_msg *test, uint32_t wanted)
{
	struct lst_msg msg = *test;
	struct lst_nodes nodes = { 0 };
	int status = lst_nodes_add_group(&nodes, &c->state, to->name);

	msg.test.loop = wanted;
	return lst_nodes_request(c, &nodes, status, &msg, "add_test", 0);
}

/* Adds the test to the clients. Each of them fetches its list of servers. */
static int test_clients(struct lst_console *c, const struct state_group *from,
			const struct state_group *to,
			const struct lst_msg *test, unsigned int d,
			unsigned int s)
{
	struct lst_msg msg = *test;
	struct lst_nodes nodes = { 0 };
	struct ulnet_id ids[LST_LIST_WHOLE];
	uint8_t *lists = malloc((size_t)from->n * s * LST_RECORD_SIZE);
	int status = lst_nodes_add_group(&nodes, &c->state, from->name);

	if (!lists)
		status = lst_fail("%s", strerror(ENOMEM));
	for (unsigned int i = 0; i < nodes.n && !status; i++) {
		uint8_t *list = lists + (size_t)i * s * LST_RECORD_SIZE;

		for (unsigned int k = 0; k < s; k++)
			ids[k] = (struct ulnet_id){
				to->nodes[(i / d * s + k) % to->n].nid,
				LNET_PID_LUSTRE
			};
		lst_list_encode(ids, s, list);
		nodes.asks[i].bulk = (struct lst_bulk){ LNET_MD_OP_GET, list,
							s * LST_RECORD_SIZE };
	}
	msg.test.is_client = 1;
	msg.test.targets = s;
	status = lst_nodes_request(c, &nodes, status, &msg, "add_test", 0);
	free(lists);
	return status;
}

static void record_test(struct state *s, const struct lst_words *w,
			const struct state_batch *b, int argc, char **argv)
{
	struct state_test *t = &s->tests[s->ntests++];
	size_t at = 0;

	state_name_copy(t->batch, b->name);
	state_name_copy(t->from, w->from);
	state_name_copy(t->to, w->to);
	for (int i = 0; i < argc && at < sizeof(t->text) - 1; i++)
		at += (size_t)snprintf(t->text + at, sizeof(t->text) - at,
				       "%s%s", i ? " " : "", argv[i]);
}

static int both_active(struct lst_console *c, const struct state_group *from,
		       const struct state_group *to)
{
	struct lst_nodes nodes = { 0 };
	int status = lst_nodes_add_group(&nodes, &c->state, to->name);

	status |= lst_nodes_add_group(&nodes, &c->state, from->name);
	status |= lst_nodes_need_active(&nodes, &c->state, "add_test");
	free(nodes.asks);
	return status;
}

int lst_add_test(struct lst_console *c, const struct lst_words *w)
{
	struct state *st = &c->state;
	const struct state_group *from, *to;
	struct state_batch *b;
	struct lst_msg msg;
	unsigned int d, s, clients;
	int status = take_test(&msg, w, w->n, w->args);

	if (status)
		return status;
	if (!w->from || !w->to)
		return lst_usage("add_test", "--from and --to are needed");
	b = lst_batch_named(c, w->batch);
	from = state_group(st, w->from);
	to = state_group(st, w->to);
	if (!b)
		return FAILED;
	if (!from || !to)
		return lst_fail("there is no group %s", from ? w->to : w->from);
	if (!from->n)
		return lst_fail("group %s has no nodes", from->name);
	if (st->ntests == STATE_TESTS)
		return lst_fail("there are %u tests already", st->ntests);
	status = take_distribute(w->distribute, to->n, &d, &s);
	if (status)
		return status;
	msg.test.batch = b->id;
	clients = (from->n + d - 1) / d;
	status = both_active(c, from, to);
	if (status)
		return status;
	status = test_servers(c, to, &msg,
			      (clients + to->n / s - 1) / (to->n / s) * d *
				      w->concurrency);
	if (!status)
		status = test_clients(c, from, to, &msg, d, s);
	if (!status)
		record_test(st, w, b, w->n, w->args);
	return status;
}
