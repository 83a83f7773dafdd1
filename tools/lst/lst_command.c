/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_command.h"

#include <stdarg.h>
#include <string.h>

/* ---- errors ---- */

int lst_usage(const char *command, const char *what)
{
	option_wrong(WHO, "%s: %s", command, what);
	fprintf(stderr, "See '" WHO " --help %s'.\n", command);
	return OPTION_USAGE;
}

int lst_fail(const char *fmt, ...)
{
	va_list ap;

	fputs(WHO ": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return FAILED;
}

int lst_check_name(const char *what, const char *name)
{
	if (state_name_good(name))
		return 0;
	return lst_fail("%s '%s': 1 to 31 letters, digits, or one of . _ - are "
			"expected",
			what, name);
}

/* Unlike isprint(), this is the same in each locale, because names go to other
 * nodes. */
static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

int lst_check_label(const char *name)
{
	size_t length = strlen(name), i = 0;

	while (i < length && is_printable(name[i]))
		i++;
	if (length && length < STATE_NAME_SIZE && i == length)
		return 0;
	return lst_fail("a session's name: 1 to 31 printable characters of "
			"ASCII are expected");
}

const char *lst_label(const char *name, bool json, char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < STATE_NAME_SIZE - 1 && name[i]; i++) {
		if (json && (name[i] == '"' || name[i] == '\\'))
			text[n++] = '\\';
		text[n++] = is_printable(name[i]) ? name[i] : '?';
	}
	text[n] = '\0';
	return text;
}

/* ---- lists ---- */

void lst_list_begin(struct lst_console *c, const char *name)
{
	if (c->json)
		printf("{\"%s\": [", name);
	c->comma = "";
}

void lst_list_next(struct lst_console *c)
{
	if (c->json)
		fputs(c->comma, stdout);
	c->comma = ", ";
}

void lst_list_end(struct lst_console *c)
{
	if (c->json)
		fputs("]}\n", stdout);
}

/* ---- options ---- */

#define AT(field) offsetof(struct lst_words, field)
#define FLAG(name, letter, field)                                   \
	{                                                           \
		name, letter, .kind = OPTION_FLAG, .at = AT(field), \
	}
#define STATE(name, bits)                                    \
	{                                                    \
		name, .kind = OPTION_BITS, AT(states), bits, \
	}
#define TEXT(name, letter, field)                                 \
	{                                                         \
		name, letter, .arg = "TEXT", .kind = OPTION_TEXT, \
			      .at = AT(field),                    \
	}
#define NUMBER(name, letter, field, least, most)                            \
	{                                                                   \
		name, letter, .arg = "N", .kind = OPTION_NUMBER, AT(field), \
			      least, most,                                  \
	}
/* seconds within which nodes have to answer */
#define TIMEOUT NUMBER("timeout", 't', ask, 3, 60)

static const struct option_row no_rows[] = { { 0 } };
static const struct option_row force_rows[] = { FLAG("force", 'f', force),
						{ 0 } };

static const struct option_row new_rows[] = {
	FLAG("force", 'f', force),
	NUMBER("timeout", 't', timeout, 0, INT32_MAX),
	{ 0 },
};

static const struct option_row update_rows[] = {
	FLAG("refresh", 0, refresh),
	TEXT("clean", 'c', clean),
	TEXT("remove", 'r', remove),
	{ 0 },
};

static const struct option_row list_rows[] = {
	STATE("all", NODES_ALL),
	STATE("active", 1u << NODE_ACTIVE),
	STATE("busy", 1u << NODE_BUSY),
	STATE("down", 1u << NODE_DOWN),
	STATE("unknown", 1u << NODE_UNKNOWN),
	{ 0 },
};

static const struct option_row test_rows[] = {
	TEXT("batch", 'b', batch),
	NUMBER("loop", 'l', loop, 1, INT32_MAX),
	NUMBER("concurrency", 'c', concurrency, 1, 1024),
	TEXT("distribute", 'd', distribute),
	TEXT("from", 'f', from),
	TEXT("to", 't', to),
	{ 0 },
};

static const struct option_row run_rows[] = {
	FLAG("wait", 'w', wait),
	NUMBER("timeout", 't', run, 0, INT32_MAX),
	{ 0 },
};

static const struct option_row query_rows[] = {
	NUMBER("test", 0, test, 1, STATE_TESTS),
	FLAG("server", 0, server),
	FLAG("all", 0, all),
	NUMBER("loop", 0, loop, 1, INT32_MAX),
	NUMBER("delay", 'd', delay, 1, 60),
	TIMEOUT,
	{ 0 },
};

static const struct option_row ping_rows[] = {
	FLAG("session", 's', session),
	TEXT("group", 'g', group),
	TEXT("nodes", 'n', nodes),
	TEXT("batch", 'b', batch),
	FLAG("server", 0, server),
	TIMEOUT,
	{ 0 },
};

static const struct option_row stat_rows[] = {
	NUMBER("delay", 'd', delay, 1, 60),
	NUMBER("count", 0, count, 1, 1000000000),
	FLAG("rate", 0, rate),
	FLAG("bw", 'b', bw),
	FLAG("read", 'r', read),
	FLAG("write", 'w', write),
	FLAG("avg", 0, avg),
	FLAG("min", 0, min),
	FLAG("max", 0, max),
	FLAG("mbs", 0, mbs),
	TIMEOUT,
	{ 0 },
};

static const struct option_row error_rows[] = {
	FLAG("session", 's', session),
	TIMEOUT,
	{ 0 },
};

/* ---- commands ---- */

const struct lst_command lst_commands[] = {
	{ "new_session", "[--force] [--timeout S] [NAME]", new_rows, 0, 1,
	  lst_new_session, .makes = true, .asks = true },
	{ "end_session", "", no_rows, 0, 0, lst_end_session, .asks = true },
	{ "show_session", "", no_rows, 0, 0, lst_show_session,
	  .answers = true },
	{ "add_group", "NAME NIDS...", no_rows, 2, -1, lst_add_group,
	  .asks = true },
	{ "del_group", "NAME", no_rows, 1, 1, lst_del_group, .asks = true },
	{ "update_group", "--refresh|--clean STATE|--remove NIDS NAME",
	  update_rows, 1, 1, lst_update_group, .asks = true },
	{ "list_group",
	  "[--all] [--active] [--busy] [--down] [--unknown] [NAME]", list_rows,
	  0, 1, lst_list_group, .answers = true },
	{ "add_batch", "NAME", no_rows, 1, 1, lst_add_batch, .asks = false },
	{ "list_batch", "[NAME]", no_rows, 0, 1, lst_list_batch,
	  .answers = true },
	{ "add_test",
	  "[--batch NAME] [--loop N] [--concurrency N]\n"
	  "               [--distribute C:S] --from GROUP --to GROUP TEST",
	  test_rows, 1, 8, lst_add_test, .asks = true },
	{ "run", "[--wait] [--timeout S] [BATCH]", run_rows, 0, 1, lst_run,
	  .asks = true },
	{ "stop", "[--force] [BATCH]", force_rows, 0, 1, lst_stop,
	  .asks = true },
	{ "query",
	  "[--test N] [--server] [--loop N] [--delay S] [--timeout S] "
	  "[BATCH]",
	  query_rows, 0, 1, lst_query, .asks = true, .answers = true },
	{ "ping",
	  "[--session] [--group NAME] [--nodes NIDS]\n"
	  "               [--batch NAME [--server]] [--timeout S]",
	  ping_rows, 0, 0, lst_ping, .asks = true, .answers = true },
	{ "stat",
	  "[--rate] [--bw] [--read] [--write] [--avg] [--min] [--max]\n"
	  "               [--mbs] [--delay S] [--count N] [--timeout S] "
	  "GROUP|NIDS...",
	  stat_rows, 1, -1, lst_stat, .asks = true, .answers = true },
	{ "show_error", "[--session] [--timeout S] GROUP|NIDS...", error_rows,
	  0, -1, lst_show_error, .asks = true, .answers = true },
	{ 0 },
};

const struct lst_command *lst_command_find(const char *name)
{
	const struct lst_command *c = lst_commands;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}

int lst_words_take(struct lst_words *w, const struct lst_command *command,
		   int argc, char **argv)
{
	char who[64], see[64];
	struct option_set set = {
		.who = who,
		.see = see,
		.parts = { { command->rows, w } },
		.words = "arguments",
		.min = command->min,
		.max = command->max,
	};
	int status;

	*w = (struct lst_words){
		.delay = 5, .concurrency = 1, .ask = 10, .timeout = 300
	};
	snprintf(who, sizeof(who), WHO " %s", command->name);
	snprintf(see, sizeof(see), WHO " --help %s", command->name);
	status = options_parse(&set, argc, argv);
	w->args = set.args;
	w->n = set.nargs;
	return status;
}
