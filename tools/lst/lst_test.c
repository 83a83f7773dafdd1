/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of a batch: lst(8). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"
#include "lst_nodes.h"
#include "services/lst/list.h"

static bool word_is(const char *word, const char *key, const char **value_p)
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

/* Kernel nodes crash over sizes and offsets that this refuses. */
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
		else if (word_is(argv[i], "check", &value))
			status = take_check(value, &brw->flags);
		else if (word_is(argv[i], "size", &value))
			status = take_size("size=", value, 8, LNET_MTU, &size);
		else if (word_is(argv[i], "off", &value))
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
				 "off: what begins there has to end in "
				 "as many pages of 4096 bytes as size "
				 "has");
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

/* --distribute D:S: D clients have the same S servers. */
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
	if (!status) {
		lst_nodes_ask(c, &nodes, &msg, ASK_S);
		status = lst_nodes_failed(&nodes, "add_test", 0);
	}
	free(nodes.asks);
	return status;
}

/* Each client fetches its list of servers. */
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
	if (!status) {
		lst_nodes_ask(c, &nodes, &msg, ASK_S);
		status = lst_nodes_failed(&nodes, "add_test", 0);
	}
	free(nodes.asks);
	free(lists);
	return status;
}

static void note_test(struct state *s, const struct lst_words *w,
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
		note_test(st, w, b, w->n, w->args);
	return status;
}
