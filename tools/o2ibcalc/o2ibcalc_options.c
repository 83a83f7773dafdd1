/* SPDX-License-Identifier: BSD-3-Clause */
/* Files come first, whatever the order, and then what the command line says of
 * nodes, in its order. */
#include "o2ibcalc_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/file.h"
#include "tools/common/option.h"

#define WHO "o2ibcalc"

/* What is said of nodes, in the order of the command line. */
#define SAYINGS_MAX 64

struct given {
	const char *files[3]; /* of A, of B, of both */
	unsigned int n;
	struct {
		enum ulnet_o2ib_side side;
		const char *option;
		const char *text;
	} sayings[SAYINGS_MAX];
	unsigned int nwhat_ifs;
	const char *what_ifs[WHAT_IFS];
	const char *negotiated;
	enum ulnet_o2ib_side initiator; /* LNET_O2IB_BOTH: not given */
	unsigned int npeers;		/* 0: the same */
	bool explain, yaml, json;
};

/* @where: an option or a file. */
static int refuse(const char *where, const struct complaint *c)
{
	fprintf(stderr, WHO ": %s", where);
	if (c->line)
		fprintf(stderr, ":%lu", c->line);
	fprintf(stderr, ": %s\n", c->what);
	if (c->near)
		fprintf(stderr, "Did you mean '%s'?\n", c->near);
	return OPTION_USAGE;
}

/* ---- files ---- */

/* Status 0 or the exit status. */
static int read_text(const char *path, char **text_p)
{
	return file_read(WHO, path, text_p) ? OPTION_USAGE : 0;
}

static void say_origin(const char *path, const struct node_origin *origin)
{
	if (origin->others)
		fprintf(stderr,
			WHO ": %s: %s is used, the first of %u NIs on o2ib "
			    "nets\n",
			path, origin->nid, origin->others + 1);
}

static int read_file(struct o2ibcalc_options *o, const char *path,
		     enum ulnet_o2ib_side side)
{
	struct ulnet_o2ib_pair *pair = &o->report.pair;
	struct complaint c = { 0 };
	struct node_origin origin;
	char *text;
	int rc = read_text(path, &text);

	if (rc)
		return rc;
	if (side == LNET_O2IB_BOTH)
		rc = pair_read(text, strlen(text), pair, &origin, &c);
	else
		rc = node_read(text, strlen(text), &pair->node[side], &origin,
			       &c);
	free(text);
	if (rc)
		return refuse(path, &c);
	say_origin(path, &origin);
	return 0;
}

static int read_files(struct o2ibcalc_options *o, const struct given *given)
{
	static const enum ulnet_o2ib_side order[] = { LNET_O2IB_BOTH,
						      LNET_O2IB_A,
						      LNET_O2IB_B };
	int status = 0;

	for (unsigned int i = 0; !status && i < 3; i++)
		if (given->files[order[i]])
			status = read_file(o, given->files[order[i]], order[i]);
	return status;
}

static int read_negotiated(struct o2ibcalc_options *o, const char *path)
{
	struct complaint c = { 0 };
	char *text;
	int rc;

	if (!path)
		return 0;
	rc = read_text(path, &text);
	if (rc)
		return rc;
	rc = negotiated_read(text, strlen(text), &o->report.negotiated, &c);
	free(text);
	if (rc)
		return refuse(path, &c);
	o->report.negotiated_file = path;
	return 0;
}

/* ---- nodes ---- */

static int no_input(const char *name, struct complaint *c)
{
	complain(c, "%.80s: there is no such input", name);
	c->near = input_near(name);
	return -1;
}

static int set_one(struct ulnet_o2ib_conf *conf, char *setting,
		   struct complaint *c)
{
	char *value = strchr(setting, '=');
	const struct input *in;

	if (!value)
		return complain(c, "'%.80s': NAME=VALUE is expected", setting);
	*value++ = 0;
	in = input_find(setting);
	return in ? input_set(in, value, conf, c) : no_input(setting, c);
}

/* NAME=VALUE, separated by commas. */
static int set_all(struct ulnet_o2ib_conf *conf, const char *text,
		   struct complaint *c)
{
	char *copy = strdup(text), *rest = copy, *setting;
	int rc = 0;

	if (!copy)
		return complain(c, "%s", strerror(ENOMEM));
	while (!rc && (setting = strsep(&rest, ",")))
		rc = set_one(conf, setting, c);
	free(copy);
	return rc;
}

static int take_sayings(struct o2ibcalc_options *o, const struct given *given)
{
	struct complaint c = { 0 };

	for (unsigned int i = 0; i < given->n; i++) {
		enum ulnet_o2ib_side side = given->sayings[i].side;

		for (int node = 0; node < 2; node++) {
			if (side != LNET_O2IB_BOTH && (int)side != node)
				continue;
			if (set_all(&o->report.pair.node[node],
				    given->sayings[i].text, &c))
				return refuse(given->sayings[i].option, &c);
		}
	}
	return 0;
}

/* Whether it can be understood at all, before any file is read. */
static int check_sayings(const struct given *given)
{
	struct ulnet_o2ib_conf scratch;
	struct complaint c = { 0 };

	lnet_o2ib_conf_init(&scratch);
	for (unsigned int i = 0; i < given->n; i++)
		if (set_all(&scratch, given->sayings[i].text, &c))
			return refuse(given->sayings[i].option, &c);
	return 0;
}

/* ---- what if ---- */

static int add_value(struct what_if *w, const char *value, struct complaint *c)
{
	struct ulnet_o2ib_conf scratch;

	lnet_o2ib_conf_init(&scratch);
	if (input_set(w->input, value, &scratch, c))
		return -1;
	if (w->n == WHAT_IF_VALUES)
		return complain(c, "%s: more than %u values",
				input_name(w->input), WHAT_IF_VALUES);
	snprintf(w->values[w->n++].text, INPUT_TEXT_SIZE, "%s", value);
	return 0;
}

/* Of concurrent_sends those are always of interest that it is limited to. */
static int add_usual(const struct o2ibcalc_options *o, struct what_if *w,
		     struct complaint *c)
{
	enum ulnet_o2ib_side side =
		w->side == LNET_O2IB_B ? LNET_O2IB_B : LNET_O2IB_A;
	struct ulnet_o2ib_node node;
	unsigned int pc, known;
	char text[32];

	(void)lnet_o2ib_adjust(&o->report.pair.node[side], &node, NULL);
	pc = node.conf.peer_credits;
	for (unsigned int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "%u", i == 0 ? pc / 2 : i * pc);
		for (known = 0; known < w->n; known++)
			if (strcmp(w->values[known].text, text) == 0)
				break;
		if (known == w->n && w->n < WHAT_IF_VALUES &&
		    add_value(w, text, c))
			return -1;
	}
	return 0;
}

static int parse_what_if(const struct o2ibcalc_options *o, char *text,
			 struct what_if *w, struct complaint *c)
{
	char *values = strchr(text, '='), *value;

	if (values)
		*values++ = 0;
	w->side = LNET_O2IB_BOTH;
	if (strncasecmp(text, "a.", 2) == 0)
		w->side = LNET_O2IB_A;
	if (strncasecmp(text, "b.", 2) == 0)
		w->side = LNET_O2IB_B;
	if (w->side != LNET_O2IB_BOTH)
		text += 2;
	w->input = input_find(text);
	if (!w->input)
		return no_input(text, c);
	while ((value = strsep(&values, ",")))
		if (add_value(w, value, c))
			return -1;
	if (strcmp(text, "concurrent_sends") == 0)
		return add_usual(o, w, c);
	return w->n ? 0
		    : complain(c, "%s: NAME=VALUE[,VALUE]... is expected",
			       text);
}

static int take_what_ifs(struct o2ibcalc_options *o, const struct given *given)
{
	struct report *r = &o->report;
	struct complaint c = { 0 };
	char *copy;
	int rc;

	if (!given->nwhat_ifs)
		return 0;
	r->what_ifs = calloc(given->nwhat_ifs, sizeof(*r->what_ifs));
	if (!r->what_ifs)
		return option_wrong(WHO, "%s", strerror(ENOMEM));
	r->nwhat_ifs = given->nwhat_ifs;
	for (unsigned int i = 0; i < r->nwhat_ifs; i++) {
		copy = strdup(given->what_ifs[i]);
		if (!copy)
			return option_wrong(WHO, "%s", strerror(ENOMEM));
		rc = parse_what_if(o, copy, &r->what_ifs[i], &c);
		free(copy);
		if (rc)
			return refuse("--what-if", &c);
	}
	return 0;
}

/* ---- options ---- */

static int take_saying(const struct option_at *at)
{
	struct given *given = at->object;

	if (given->n == SAYINGS_MAX)
		return option_bad(at, "too many of --a, --b and --both");
	given->sayings[given->n].side = (enum ulnet_o2ib_side)at->row->own;
	given->sayings[given->n].option = at->row->key;
	given->sayings[given->n++].text = at->text;
	return 0;
}

static int take_what_if(const struct option_at *at)
{
	struct given *given = at->object;

	if (given->nwhat_ifs == WHAT_IFS)
		return option_bad(at, "at most 8 of them");
	given->what_ifs[given->nwhat_ifs++] = at->text;
	return 0;
}

static int take_initiator(const struct option_at *at)
{
	struct given *given = at->object;

	if (strcasecmp(at->text, "a") != 0 && strcasecmp(at->text, "b") != 0)
		return option_bad(at, "A or B is expected");
	given->initiator =
		strcasecmp(at->text, "b") == 0 ? LNET_O2IB_B : LNET_O2IB_A;
	return 0;
}

#define AT(field) offsetof(struct given, field)
#define SAYING(letter, name, side, help)                          \
	{                                                         \
		name, letter, "NAME=VALUE[,...]", help,           \
			.kind = OPTION_CALL, .take = take_saying, \
			.own = (side), .key = "--" name,          \
	}

static const struct option_row rows[] = {
	{ .help = "the nodes (o2ibcalc(1) lists the names):" },
	SAYING('a', "a", LNET_O2IB_A, "of A"),
	SAYING('b', "b", LNET_O2IB_B, "of B"),
	SAYING(0, "both", LNET_O2IB_BOTH, "of both"),
	{ "a-file", 0, "FILE", "A is what lnetctl shows there",
	  .kind = OPTION_TEXT, AT(files[LNET_O2IB_A]) },
	{ "b-file", 0, "FILE", "B is", .kind = OPTION_TEXT,
	  AT(files[LNET_O2IB_B]) },
	{ "initiator", 'i', "A|B", "which asks for the connection (A)",
	  .kind = OPTION_CALL, .take = take_initiator },
	{ "npeers", 'n', "N", "peers of each, for memory (1)",
	  .kind = OPTION_NUMBER, AT(npeers), 1, 1000000 },
	{ .help = "what is asked:" },
	{ "what-if", 'w', "NAME=VALUE[,VALUE]...",
	  "answers for other values, beside the current ones; a.NAME, b.NAME: "
	  "of one node",
	  .kind = OPTION_CALL, .take = take_what_if },
	{ "explain", 'e', NULL, "say which rule made each value",
	  .kind = OPTION_FLAG, AT(explain) },
	{ "negotiated", 0, "FILE", "compare with what nodes have negotiated",
	  .kind = OPTION_TEXT, AT(negotiated) },
	{ .help = "output:" },
	{ "yaml", 0, NULL, "YAML, which can be a FILE", .kind = OPTION_FLAG,
	  AT(yaml) },
	{ "json", 0, NULL, "JSON, on one line", .kind = OPTION_FLAG, AT(json) },
	{ 0 },
};

/* ---- all of them ---- */

static int complete(struct o2ibcalc_options *o, const struct given *given)
{
	int status = check_sayings(given);

	if (!status && given->yaml && given->json)
		status = option_wrong(WHO, "--yaml and --json: one of them");
	if (!status)
		status = read_files(o, given);
	if (!status)
		status = take_sayings(o, given);
	if (given->initiator != LNET_O2IB_BOTH)
		o->report.pair.initiator = given->initiator;
	if (given->npeers)
		o->report.pair.npeers = given->npeers;
	o->report.explain = given->explain;
	o->format = given->yaml	  ? FORMAT_YAML
		    : given->json ? FORMAT_JSON
				  : FORMAT_TABLE;
	if (!status)
		status = take_what_ifs(o, given);
	if (!status)
		status = read_negotiated(o, given->negotiated);
	return status;
}

/* An input with a value, where a file is expected? */
static bool is_setting(const char *text)
{
	char name[64];

	if (!strchr(text, '='))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	return input_find(name) != NULL;
}

/* An input is no option of its own. */
static int hint_side(const char *word)
{
	if (strncmp(word, "--a.", 4) == 0 || strncmp(word, "--b.", 4) == 0)
		fprintf(stderr, "Did you mean '--%c %.*s=VALUE'?\n", word[2],
			(int)strcspn(word + 4, "="), word + 4);
	return OPTION_USAGE;
}

int o2ibcalc_options_parse(struct o2ibcalc_options *o, int argc, char **argv)
{
	struct given given = { .initiator = LNET_O2IB_BOTH };
	struct option_set set = {
		.who = WHO,
		.head = "usage: o2ibcalc [OPTION]... [FILE]\n"
			"Calculates what the tunables of two nodes, A and B, "
			"on "
			"an o2ib net come to: how\n"
			"they are adjusted, what a connection is negotiated "
			"to, "
			"work requests, memory.\n"
			"FILE is YAML with \"a:\" and \"b:\", or what "
			"\"lnetctl "
			"net show -v 4\" prints.\n"
			"\n",
		.tail = "\n"
			"Exit status: 0: there is a connection; 1: there is "
			"none, or it is not as in the\n"
			"file of --negotiated; 2: the command line or a file "
			"is wrong.\n",
		.parts = { { rows, &given }, { option_rows } },
		.max = 1,
	};
	const char *file;
	int status;

	*o = (struct o2ibcalc_options){ .report.pair.npeers = 1 };
	lnet_o2ib_conf_init(&o->report.pair.node[LNET_O2IB_A]);
	lnet_o2ib_conf_init(&o->report.pair.node[LNET_O2IB_B]);
	status = options_parse(&set, argc, argv);
	if (status == OPTION_USAGE)
		return hint_side(set.args[-1]);
	if (status)
		return status;
	file = given.files[LNET_O2IB_BOTH] = set.args[0];
	if (file && is_setting(file))
		return option_wrong(
			WHO, "%s: whose? Say --a, --b or --both before it",
			file);
	return complete(o, &given);
}

void o2ibcalc_options_free(struct o2ibcalc_options *o)
{
	negotiated_free(&o->report.negotiated);
	free(o->report.what_ifs);
}
