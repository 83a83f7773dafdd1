/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * o2ibcalc(1): reads the command line and files, calculates with
 * lnet_o2ib_calculate(3), and prints the results. Options that set inputs of
 * nodes are applied after all files were read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "o2ibcalc.h"
#include "tools/common/program.h"
#include "tools/common/option.h"

#define WHO "o2ibcalc"

#define SETTINGS_MAX 64

struct o2ibcalc {
	struct report report;
	const char *files[3]; /* files with inputs of A, of B, and of both */
	unsigned int nsettings;
	/* values of --a, --b and --both, in the order of the command line */
	struct {
		enum ulnet_o2ib_side side;
		const char *option;
		const char *text;
	} settings[SETTINGS_MAX];
	unsigned int nwhat_ifs;
	const char *what_ifs[WHAT_IFS];
	enum ulnet_o2ib_side initiator; /* LNET_O2IB_BOTH: not given */
	unsigned int npeers;		/* 0: not given */
	bool yaml, json;
};

/* Prints @c, which is about @where: an option or a file. */
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

static int read_file(struct o2ibcalc *o, enum ulnet_o2ib_side side)
{
	const char *path = o->files[side];
	struct complaint c = { 0 };
	struct shown_ni ni;
	char *text;
	int rc;

	if (!path)
		return 0;
	if (file_read(WHO, path, &text))
		return OPTION_USAGE;
	rc = nodes_read(text, &o->report.pair, side, &ni, &c);
	free(text);
	if (rc)
		return refuse(path, &c);
	if (ni.others)
		option_wrong(WHO,
			     "%s: %s is used, the first of %u NIs on o2ib nets",
			     path, ni.nid, ni.others + 1);
	return 0;
}

static int read_negotiated(struct report *r)
{
	struct complaint c = { 0 };
	char *text;
	int rc;

	if (!r->negotiated_file)
		return 0;
	if (file_read(WHO, r->negotiated_file, &text))
		return OPTION_USAGE;
	rc = negotiated_read(text, &r->negotiated, &c);
	free(text);
	return rc ? refuse(r->negotiated_file, &c) : 0;
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

/* Sets the inputs that @text names: NAME=VALUE, separated by commas. */
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

static int apply_settings(struct o2ibcalc *o)
{
	struct complaint c = { 0 };

	for (unsigned int i = 0; i < o->nsettings; i++) {
		enum ulnet_o2ib_side side = o->settings[i].side;

		for (int node = 0; node < 2; node++) {
			if (side != LNET_O2IB_BOTH && (int)side != node)
				continue;
			if (set_all(&o->report.pair.node[node],
				    o->settings[i].text, &c))
				return refuse(o->settings[i].option, &c);
		}
	}
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
		return complain(c, "%s: more than %u values", w->input->name,
				WHAT_IF_VALUES);
	snprintf(w->values[w->n++].text, INPUT_TEXT_SIZE, "%s", value);
	return 0;
}

/* Adds the values of concurrent_sends that matter most: half of peer_credits,
 * peer_credits, and twice as many. */
static int add_usual(const struct o2ibcalc *o, struct what_if *w,
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

static int parse_what_if(const struct o2ibcalc *o, char *text,
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

static int take_what_ifs(struct o2ibcalc *o)
{
	struct report *r = &o->report;
	struct complaint c = { 0 };
	char *copy;
	int rc;

	if (!o->nwhat_ifs)
		return 0;
	r->what_ifs = calloc(o->nwhat_ifs, sizeof(*r->what_ifs));
	if (!r->what_ifs)
		return option_wrong(WHO, "%s", strerror(ENOMEM));
	r->nwhat_ifs = o->nwhat_ifs;
	for (unsigned int i = 0; i < r->nwhat_ifs; i++) {
		copy = strdup(o->what_ifs[i]);
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

static int take_setting(const struct option_at *at)
{
	struct o2ibcalc *o = at->object;
	struct ulnet_o2ib_conf scratch;
	struct complaint c = { 0 };

	if (o->nsettings == SETTINGS_MAX)
		return option_bad(at, "too many of --a, --b and --both");
	/* Checks the text, but does not apply it: that is done after all files
	 * were read. */
	lnet_o2ib_conf_init(&scratch);
	if (set_all(&scratch, at->text, &c))
		return refuse(at->row->key, &c);
	o->settings[o->nsettings].side = (enum ulnet_o2ib_side)at->row->own;
	o->settings[o->nsettings].option = at->row->key;
	o->settings[o->nsettings++].text = at->text;
	return 0;
}

static int take_what_if(const struct option_at *at)
{
	struct o2ibcalc *o = at->object;

	if (o->nwhat_ifs == WHAT_IFS)
		return option_bad(at, "at most 8 of them");
	o->what_ifs[o->nwhat_ifs++] = at->text;
	return 0;
}

static int take_initiator(const struct option_at *at)
{
	struct o2ibcalc *o = at->object;

	return side_parse(at->text, &o->initiator)
		       ? 0
		       : option_bad(at, "A or B is expected");
}

#define AT(field) offsetof(struct o2ibcalc, field)
#define SETTING(letter, name, side, help)                          \
	{                                                          \
		name, letter, "NAME=VALUE[,...]", help,            \
			.kind = OPTION_CALL, .take = take_setting, \
			.own = (side), .key = "--" name,           \
	}

static const struct option_row rows[] = {
	{ .help = "the nodes (o2ibcalc(1) lists the names):" },
	SETTING('a', "a", LNET_O2IB_A, "inputs of A"),
	SETTING('b', "b", LNET_O2IB_B, "inputs of B"),
	SETTING(0, "both", LNET_O2IB_BOTH, "inputs of both"),
	{ "a-file", 0, "FILE", "inputs of A, as lnetctl shows them",
	  .kind = OPTION_TEXT, AT(files[LNET_O2IB_A]) },
	{ "b-file", 0, "FILE", "inputs of B", .kind = OPTION_TEXT,
	  AT(files[LNET_O2IB_B]) },
	{ "initiator", 'i', "A|B", "node that asks for the connection (A)",
	  .kind = OPTION_CALL, .take = take_initiator },
	{ "npeers", 'n', "N", "peers of each node, for its memory (1)",
	  .kind = OPTION_NUMBER, AT(npeers), 1, 1000000 },
	{ .help = "questions:" },
	{ "what-if", 'w', "NAME=VALUE[,VALUE]...",
	  "also calculate with these values; a.NAME, b.NAME: of one node",
	  .kind = OPTION_CALL, .take = take_what_if },
	{ "explain", 'e', NULL, "print the rule that gave each value",
	  .kind = OPTION_FLAG, AT(report.explain) },
	{ "negotiated", 0, "FILE", "compare with what nodes have negotiated",
	  .kind = OPTION_TEXT, AT(report.negotiated_file) },
	{ .help = "output:" },
	{ "yaml", 0, NULL, "print YAML, which can be read as FILE",
	  .kind = OPTION_FLAG, AT(yaml) },
	{ "json", 0, NULL, "print JSON, on one line", .kind = OPTION_FLAG,
	  AT(json) },
	{ 0 },
};

/* ---- the whole command line ---- */

static int read_all(struct o2ibcalc *o)
{
	struct ulnet_o2ib_pair *pair = &o->report.pair;
	int status = 0;

	if (o->yaml && o->json)
		status = option_wrong(WHO, "--yaml and --json: one of them");
	if (!status)
		status = read_file(o, LNET_O2IB_BOTH);
	if (!status)
		status = read_file(o, LNET_O2IB_A);
	if (!status)
		status = read_file(o, LNET_O2IB_B);
	if (!status)
		status = apply_settings(o);
	if (o->initiator != LNET_O2IB_BOTH)
		pair->initiator = o->initiator;
	if (o->npeers)
		pair->npeers = o->npeers;
	if (!status)
		status = take_what_ifs(o);
	return status ? status : read_negotiated(&o->report);
}

/* Is @text NAME=VALUE, given where a file name is expected? */
static bool is_setting(const char *text)
{
	char name[64];

	if (!strchr(text, '='))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	return input_find(name) != NULL;
}

/* Explains what to write instead of "--a.NAME". */
static int hint_side(const char *word)
{
	if (strncmp(word, "--a.", 4) == 0 || strncmp(word, "--b.", 4) == 0)
		fprintf(stderr, "Did you mean '--%c %.*s=VALUE'?\n", word[2],
			(int)strcspn(word + 4, "="), word + 4);
	return OPTION_USAGE;
}

static int o2ibcalc_parse(struct o2ibcalc *o, int argc, char **argv)
{
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
		.parts = { { rows, o }, { option_rows, NULL } },
		.max = 1,
	};
	const char *file;
	int status;

	o->initiator = LNET_O2IB_BOTH;
	o->report.pair.npeers = 1;
	lnet_o2ib_conf_init(&o->report.pair.node[LNET_O2IB_A]);
	lnet_o2ib_conf_init(&o->report.pair.node[LNET_O2IB_B]);
	status = options_parse(&set, argc, argv);
	if (status == OPTION_USAGE)
		return hint_side(set.args[-1]);
	if (status)
		return status;
	file = o->files[LNET_O2IB_BOTH] = set.args[0];
	if (file && is_setting(file))
		return option_wrong(
			WHO, "%s: whose? Say --a, --b or --both before it",
			file);
	return read_all(o);
}

/* ---- results ---- */

static void calculate(struct report *r)
{
	struct complaint c;

	(void)lnet_o2ib_calculate(&r->pair, &r->result, &r->notes);
	for (unsigned int i = 0; i < r->nwhat_ifs; i++) {
		struct what_if *w = &r->what_ifs[i];

		for (unsigned int k = 0; k < w->n; k++) {
			struct ulnet_o2ib_pair pair = r->pair;
			struct variant *v = &w->values[k];

			/* This cannot fail: add_value() has checked the value.
			 */
			for (int side = 0; side < 2; side++)
				if (w->side == LNET_O2IB_BOTH ||
				    (int)w->side == side)
					(void)input_set(w->input, v->text,
							&pair.node[side], &c);
			(void)lnet_o2ib_calculate(&pair, &v->result, &v->notes);
		}
	}
}

static int print(const struct o2ibcalc *o)
{
	int rc = 0;

	if (o->yaml || o->json)
		rc = report_emit(&o->report, o->json, stdout);
	else
		report_table(&o->report, stdout);
	if (rc) {
		option_wrong(WHO, "%s", strerror(-rc));
		return 1;
	}
	return option_printed(WHO) == OPTION_DONE ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct o2ibcalc *o = calloc(1, sizeof(*o));
	int status;

	if (!o) {
		perror(WHO);
		return 1;
	}
	status = o2ibcalc_parse(o, argc, argv);
	if (!status) {
		calculate(&o->report);
		status = print(o);
		if (!status)
			status = o->report.result.conn.verdict !=
					 LNET_O2IB_CONNECTED ||
				 report_differs(&o->report);
	}
	negotiated_free(&o->report.negotiated);
	free(o->report.what_ifs);
	free(o);
	return status < 0 ? 0 : status;
}
