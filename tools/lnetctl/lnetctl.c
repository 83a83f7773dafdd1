/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lnetctl(8): takes commands, from which command.c makes requests; sends the
 * requests to a node, and prints the answers.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ulnet/control.h>

#include "command.h"
#include "tools/common/exporter.h"
#include "tools/common/program.h"
#include "tools/common/option.h"

#define TIMEOUT_S     10
#define TIMEOUT_S_MAX 86400
/* columns of a terminal that does not say its width */
#define TERMINAL_WIDTH 80

struct session {
	/* path of the control socket; NULL: the library's default */
	const char *path;
	/* s to wait for an answer, in addition to the time that the command
	 * itself may take; 0: for ever */
	unsigned int timeout_s;
	struct lnet_ctl *ctl; /* NULL: not connected */
};

/* Returns the exit status for @rc. It is never 0 if @rc is an error, although a
 * shell sees only the lowest 8 bits. */
static int lnetctl_status_of(int rc)
{
	return rc && !(rc & 0xff) ? 255 : rc & 0xff;
}

/* ---- the node ---- */

static const char *path_of(const struct session *s)
{
	const char *path = s->path ? s->path : getenv("ULNET_SOCKET");

	return path && *path ? path : LNET_CTL_PATH;
}

static void say_unreachable(const struct session *s, int rc)
{
	const char *what = "is there a node? Start lnetd(8), or name its "
			   "socket: --socket PATH or ULNET_SOCKET";

	if (rc == -EACCES || rc == -EPERM)
		what = "the node's owner may use it, and the group that lnetd "
		       "was given with --group";
	else if (rc == -ETIMEDOUT)
		what = "too many programs wait for the node already: is it "
		       "stopped, or busy?";
	else if (rc != -ENOENT && rc != -ECONNREFUSED)
		what = "no connection to a node";
	fprintf(stderr, "lnetctl: %s: %s: %s\n", path_of(s), strerror(-rc),
		what);
}

static void say_no_answer(const struct session *s, int rc, uint64_t us)
{
	fprintf(stderr, "lnetctl: %s: ", path_of(s));
	if (rc == -ETIMEDOUT)
		fprintf(stderr,
			"no answer within %ju s: is the node stopped, or busy? "
			"See --timeout. The",
			(uintmax_t)(us / 1000000));
	else if (rc == -ECONNRESET)
		fprintf(stderr, "%s: the node went away; the", strerror(-rc));
	else
		fprintf(stderr, "%s. The", strerror(-rc));
	fputs(" request may or may not have been carried out\n", stderr);
}

/* Returns how many us of @us are left, at least 1, if they began at @began
 * (us). If @us is 0, which stands for ever: 0. */
static uint64_t lnetctl_time_left(uint64_t us, uint64_t began)
{
	uint64_t gone = clock_ns() / 1000 - began;

	if (!us)
		return 0;
	return us > gone ? us - gone : 1;
}

/* Connects if need be, sends the request, and waits for the answer. @us: how
 * long the node may take for the request, in addition to the session's timeout.
 * Returns 0; or -errno, after a message. */
static int lnetctl_ask(struct session *s, const char *request, uint64_t us,
		       char **answer_p)
{
	uint64_t began = clock_ns() / 1000;
	int rc = 0;

	us = s->timeout_s ? us + s->timeout_s * UINT64_C(1000000) : 0;
	if (!s->ctl)
		rc = lnet_ctl_connect(s->path, us, &s->ctl);
	if (rc) {
		say_unreachable(s, rc);
		return rc;
	}
	rc = lnet_ctl_request(s->ctl, request, lnetctl_time_left(us, began),
			      answer_p);
	if (rc) {
		lnet_ctl_close(s->ctl);
		s->ctl = NULL;
		if (rc == -EMSGSIZE)
			fprintf(stderr,
				"lnetctl: %s: the request, or its answer, is "
				"too long\n",
				path_of(s));
		else
			say_no_answer(s, rc, us);
	}
	return rc;
}

/* ---- answers ---- */

/* Sets *@text_p, to be freed, to that part of @answer which is to be printed on
 * stdout. */
static int output_of(const char *answer, char **text_p)
{
	size_t size;
	FILE *out = open_memstream(text_p, &size);
	int rc;

	if (!out)
		return -ENOMEM;
	rc = lnet_ctl_print(answer, out, NULL, NULL);
	if (fclose(out) && !rc)
		rc = -ENOMEM;
	if (rc) {
		free(*text_p);
		*text_p = NULL;
	}
	return rc;
}

/* Prints errors and notes to stderr, and the output to @file, or, if that is
 * NULL, to stdout. Returns the exit status. */
static int answer_print(const struct command *command, const char *file,
			const char *answer)
{
	char *output = NULL;
	int status = 0;
	int rc = output_of(answer, &output);

	if (!rc && !file)
		/* close_stdout() finds out whether it has failed */
		fputs(output, stdout);
	if (!rc)
		rc = lnet_ctl_print(answer, NULL, stderr, &status);
	if (rc)
		fprintf(stderr, "lnetctl: the node's answer: %s\n",
			rc == -EINVAL ? "makes no sense" : strerror(-rc));
	else if (file && !status)
		rc = file_write("lnetctl", file, output);
	free(output);
	/* For scripts 255 means that a node did not answer. */
	if (!rc && status && command->kind == COMMAND_PING)
		return 255;
	return lnetctl_status_of(rc ? rc : status);
}

static int not_here(const struct command *command)
{
	fprintf(stderr,
		"---\n"
		"manage:\n"
		"-     %s:\n"
		"      errno: %d\n"
		"      descr: ! \"only for kernel nodes: %s\"\n"
		"...\n",
		command->name, -EOPNOTSUPP, command->help);
	return lnetctl_status_of(-EOPNOTSUPP);
}

/* ---- commands ---- */

static int lnetctl_import_text(const char *file, struct request *r)
{
	char *text;
	int rc = file_read("lnetctl", file ? file : "-", &text);

	if (rc)
		return rc;
	request_text(r, "text", text);
	free(text);
	return 0;
}

static void print_version(void)
{
	puts("lnetctl (" PACKAGE_NAME ") " PACKAGE_VERSION);
}

/* ---- top ---- */

/* For commands that a signal ends. A shell that starts programs in the
 * background may have set SIGINT to be ignored. */
static int open_signals(void)
{
	signal(SIGINT, SIG_DFL);
	return signals_open("lnetctl", 0);
}

static void close_signals(int signals)
{
	if (signals < 0)
		return;
	signals_take(signals);
	close(signals);
	signals_release();
}

/* Asks for a sample. Returns 0, and *@sample_p is to be freed, or the exit
 * status. */
static int top_ask(struct session *s, const struct command *command,
		   const struct request *r, struct top_sample **sample_p)
{
	char *answer, *text;
	int rc = lnetctl_ask(s, r->text, 0, &answer), status = 0;

	if (rc)
		return lnetctl_status_of(rc);
	rc = lnet_ctl_print(answer, NULL, NULL, &status);
	if (rc || status) {
		status = answer_print(command, NULL, answer);
	} else if (output_of(answer, &text) == 0) {
		*sample_p = top_read(text);
		free(text);
	}
	free(answer);
	if (!status && !*sample_p) {
		fputs("lnetctl top: the node's answer makes no sense\n",
		      stderr);
		status = 1;
	}
	return status;
}

/* Asks for a sample of calls. Returns NULL if the node's program runs no RPC,
 * or is of an earlier release. */
static struct rpc_sample *top_ask_rpc(struct session *s)
{
	struct rpc_sample *sample = NULL;
	char *answer, *text;
	int status = 0;

	if (lnetctl_ask(s, "rpc top: {}", 0, &answer))
		return NULL;
	if (!lnet_ctl_print(answer, NULL, NULL, &status) && !status &&
	    output_of(answer, &text) == 0) {
		sample = top_rpc_read(text);
		free(text);
	}
	free(answer);
	return sample;
}

/* What the node was asked for at one moment. */
struct top_both {
	struct top_sample *node;
	struct rpc_sample *rpc; /* NULL: the node's program runs no RPC */
};

static int top_ask_both(struct session *s, const struct command *command,
			const struct request *r, struct top_both *both)
{
	int status = top_ask(s, command, r, &both->node);

	if (!status)
		both->rpc = top_ask_rpc(s);
	return status;
}

static void top_free_both(struct top_both *both)
{
	top_free(both->node);
	top_rpc_free(both->rpc);
}

/* Returns the width that $COLUMNS says or, without it, that of the terminal; 0:
 * not known. */
static unsigned int top_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && *columns && !columns[strspn(columns, "0123456789")])
		return (unsigned int)strtoul(columns, NULL, 10);
	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col
		       ? size.ws_col
		       : TERMINAL_WIDTH;
}

/* Prints a block: if @screen in place of the block before it, otherwise below
 * it. */
static void top_block(const struct top_both *before, const struct top_both *now,
		      unsigned int rows, bool screen, bool first)
{
	if (screen)
		fputs("\033[H\033[J", stdout);
	else if (!first)
		putchar('\n');
	top_print(before->node, now->node, rows, top_width(), stdout);
	if (before->rpc && now->rpc)
		top_rpc_print(before->rpc, now->rpc, rows, top_width(), stdout);
	fflush(stdout);
}

static bool top_has_screen(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

static int top(struct session *s, const struct command *command,
	       const struct command_args *args, const struct request *r)
{
	struct top_both before = { NULL, NULL }, now;
	bool screen = top_has_screen();
	uint64_t at = clock_ns(), interval = args->top.interval_us * 1000;
	int signals = open_signals();
	int status = signals < 0 ? 1 : top_ask_both(s, command, r, &before);

	for (unsigned int n = 0; !status && !ferror(stdout); n++) {
		if (args->top.count && n == args->top.count)
			break;
		at += interval;
		if (signals_wait(signals, at))
			break;
		now = (struct top_both){ NULL, NULL };
		status = top_ask_both(s, command, r, &now);
		if (status)
			break;
		top_block(&before, &now, args->top.rows, screen, n == 0);
		top_free_both(&before);
		before = now;
		if (clock_ns() > at + interval)
			/* The answer of the node has come late. */
			at = clock_ns();
	}
	top_free_both(&before);
	close_signals(signals);
	return status;
}

/* ---- metrics ---- */

/* The function metrics_source.ask. Called by the exporter's thread, if there is
 * an exporter. */
static int metrics_ask(void *arg, const char *request, char **answer_p)
{
	return lnetctl_ask(arg, request, 0, answer_p);
}

static int lnetctl_metrics_print(const struct metrics_source *source)
{
	size_t len;
	char *text;
	int rc = metrics_text(source, &text, &len);

	if (rc)
		return lnetctl_status_of(rc);
	fputs(text, stdout);
	free(text);
	return 0;
}

/* Serves metrics until a signal comes. The node is asked only when an HTTP
 * client asks, and need not run before. */
static int metrics_serve(const struct metrics_source *source,
			 const char *address)
{
	const struct say say = { .who = "lnetctl metrics" };
	struct exporter *exporter = NULL;
	int rc, signals = open_signals();

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	if (signals < 0)
		return 1;
	rc = exporter_start(source, address, &say, &exporter);
	if (!rc) {
		printf("lnetctl metrics: serving at %s\n", address);
		fflush(stdout);
		signals_wait(signals, 0);
		exporter_stop(exporter);
	}
	close_signals(signals);
	return lnetctl_status_of(rc);
}

static int metrics(struct session *s, const struct command_args *args)
{
	const struct metrics_source source = { metrics_ask, s,
					       args->metrics.peers };

	return args->metrics.address
		       ? metrics_serve(&source, args->metrics.address)
		       : lnetctl_metrics_print(&source);
}

/* Carries out a command whose arguments are @args and @r. Returns the exit
 * status. */
static int carry_out(struct session *s, const struct command *command,
		     const struct command_args *args, struct request *r)
{
	char *answer;
	int status;
	int rc;

	if (command->kind == COMMAND_VERSION) {
		print_version();
		return 0;
	}
	if (command->kind == COMMAND_IMPORT ||
	    (command->kind == COMMAND_TEXT && args->file)) {
		rc = lnetctl_import_text(args->file, r);
		if (rc)
			return lnetctl_status_of(rc);
	}
	rc = request_end(r);
	if (rc) {
		fprintf(stderr, "lnetctl: %s: %s\n", command->name,
			rc == -EILSEQ ? "text that is not UTF-8"
				      : strerror(-rc));
		return lnetctl_status_of(rc);
	}
	if (command->kind == COMMAND_TOP)
		return top(s, command, args, r);
	if (command->kind == COMMAND_METRICS)
		return metrics(s, args);
	rc = lnetctl_ask(s, r->text, args->takes_us, &answer);
	if (rc)
		return lnetctl_status_of(rc);
	status = answer_print(
		command, command->kind == COMMAND_EXPORT ? args->file : NULL,
		answer);
	free(answer);
	return status;
}

static int lnetctl_run(struct session *s, const struct command *command,
		       int argc, char **argv)
{
	struct command_args args;
	struct request r;
	char who[64];
	int status;

	snprintf(who, sizeof(who), "lnetctl %s%s%s", command->name,
		 command->sub ? " " : "", command->sub ? command->sub : "");
	status = command_parse(command, who, argc, argv, &args, &r);
	if (!status && args.help)
		command_help(stdout, command);
	else if (!status)
		status = carry_out(s, command, &args, &r);
	request_free(&r);
	return status;
}

/* Suggests the command that @name probably stands for, or, unless @group is
 * NULL, the sub-command of @group. */
static void say_nearest(const char *group, const char *name)
{
	struct nearest near;

	nearest_init(&near, name);
	for (const struct command *c = commands; c->name; c++)
		if (!group && c->kind != COMMAND_KERNEL)
			nearest_try(&near, c->name);
		else if (group && strcmp(c->name, group) == 0 && c->sub)
			nearest_try(&near, c->sub);
	nearest_say(&near, "", stderr);
}

/* Reports that there is no such command, or (@sub) no such sub-command of
 * @argv[0]. Returns the exit status. */
static int lnetctl_no_command(int argc, char **argv, bool sub)
{
	const char *name = sub ? argv[1] : argv[0];
	const char *of = sub ? " " : "", *group = sub ? argv[0] : "";

	if (sub && argc < 2) {
		fprintf(stderr, "lnetctl %s: missing: a sub-command\n",
			argv[0]);
		command_help_group(stderr, argv[0]);
		return EXIT_USAGE;
	}
	fprintf(stderr,
		"lnetctl%s%s: '%s' is not a valid command. "
		"See 'lnetctl%s%s --list-commands'.\n",
		of, group, name, of, group);
	say_nearest(sub ? group : NULL, name);
	return 255;
}

/* Does the @answer say that the node has no command @name? */
static bool is_unknown(const char *answer, const char *name)
{
	char expected[LNET_CONTROL_NAME_MAX + 32], *text = NULL;
	size_t size;
	FILE *err = open_memstream(&text, &size);
	bool unknown;
	int status = 0;

	if (!err)
		return false;
	snprintf(expected, sizeof(expected), "unknown command '%s'", name);
	if (lnet_ctl_print(answer, NULL, err, &status))
		status = 0;
	unknown = fclose(err) == 0 && status && strstr(text, expected);
	free(text);
	return unknown;
}

/* Sends the request @r, for the command @name, which @argv says. */
static int run_added(struct session *s, const char *name, struct request *r,
		     int argc, char **argv, bool sub)
{
	static const struct command added = { .kind = COMMAND_PLAIN };
	char *answer;
	int status, rc = request_end(r);

	if (rc) {
		fprintf(stderr, "lnetctl: %s\n",
			rc == -EILSEQ ? "text that is not UTF-8"
				      : strerror(-rc));
		return lnetctl_status_of(rc);
	}
	/* This message is printed whether or not there is a node: lnetctl does
	 * not know the command. */
	if (!s->ctl &&
	    lnet_ctl_connect(s->path, s->timeout_s * UINT64_C(1000000),
			     &s->ctl))
		return lnetctl_no_command(argc, argv, sub);
	rc = lnetctl_ask(s, r->text, 0, &answer);
	if (rc)
		return lnetctl_status_of(rc);
	status = is_unknown(answer, name) ? lnetctl_no_command(argc, argv, sub)
					  : answer_print(&added, NULL, answer);
	free(answer);
	return status;
}

/* Carries out a command that lnetctl does not know. It may be one that the
 * program of the node has added. Returns the exit status. */
static int run_unknown(struct session *s, int argc, char **argv, bool sub)
{
	char name[LNET_CONTROL_NAME_MAX + 1];
	struct request r;
	int status;

	if ((sub && argc < 2) || !added_name(argc, argv, name))
		return lnetctl_no_command(argc, argv, sub);
	status = added_parse(name, argc, argv, &r);
	if (!status)
		status = run_added(s, name, &r, argc, argv, sub);
	request_free(&r);
	return status;
}

/* Carries out one command; @argv ends with NULL. Returns the exit status. */
static int run_words(struct session *s, int argc, char **argv)
{
	const struct command *command;
	bool sub;

	command = command_find(argc, argv, &sub);
	if (command && command->kind == COMMAND_KERNEL)
		return not_here(command);
	if (sub && argc > 1 && strcmp(argv[1], "--list-commands") == 0) {
		command_list(stdout, argv[0]);
		return 0;
	}
	if (sub && argc > 1 && strcmp(argv[1], "--help") == 0) {
		command_help_group(stdout, argv[0]);
		return 0;
	}
	if (!command)
		return run_unknown(s, argc, argv, sub);
	return lnetctl_run(s, command, argc - !!command->sub,
			   argv + !!command->sub);
}

static void print_help(void);

/* ---- commands from stdin ---- */

/* Carries out a line. Returns the exit status; sets *@quit_p if the line ends
 * the session. */
static int run_line(struct session *s, char *line, bool *quit_p)
{
	char **words;
	int n = words_split(line, &words), status = 0;

	if (n < 0) {
		fprintf(stderr, "lnetctl: %s\n",
			n == -EINVAL ? "a quote is not closed" : strerror(-n));
		return lnetctl_status_of(n);
	}
	if (n == 1 &&
	    (strcmp(words[0], "quit") == 0 || strcmp(words[0], "exit") == 0))
		*quit_p = true;
	else if (n && strcmp(words[0], "help") == 0)
		print_help();
	else if (n && strcmp(words[0], "--list-commands") == 0)
		command_list(stdout, NULL);
	else if (n)
		status = run_words(s, n, words);
	free(words);
	return status;
}

/* Carries out commands from stdin, one a line. Returns the exit status of the
 * last one. */
static int run_lines(struct session *s)
{
	bool tty = isatty(STDIN_FILENO), quit = false;
	char *line = NULL;
	size_t size = 0;
	int status = 0;

	while (!quit && !ferror(stdout)) {
		if (tty)
			fputs("lnetctl > ", stdout);
		fflush(stdout);
		if (getline(&line, &size, stdin) < 0)
			break;
		if (strspn(line, " \t\n") < strlen(line))
			status = run_line(s, line, &quit);
	}
	if (ferror(stdin)) {
		perror("lnetctl: stdin");
		status = 1;
	}
	if (tty && !quit)
		fputc('\n', stdout);
	free(line);
	return status;
}

/* ---- options of lnetctl itself ---- */

static int take_ask(const struct option_at *at)
{
	if (at->row->own == 'l')
		command_list(stdout, NULL);
	else if (at->row->own == 'V')
		print_version();
	else
		print_help();
	return OPTION_DONE;
}

static const struct option_row rows[] = {
	{ "socket", 0, "PATH",
	  "of lnetd(8); else $ULNET_SOCKET, else the usual one",
	  .kind = OPTION_TEXT, offsetof(struct session, path), .min = 1 },
	{ "timeout", 0, "SECONDS",
	  "to wait for the node's answer (10); 0: for ever",
	  .kind = OPTION_NUMBER, offsetof(struct session, timeout_s), 0,
	  TIMEOUT_S_MAX },
	{ "list-commands", 0, NULL, "print the names of commands",
	  .kind = OPTION_CALL, .take = take_ask, .own = 'l' },
	{ "help", 'h', NULL, "print this", .kind = OPTION_CALL,
	  .take = take_ask, .own = 'h' },
	{ "version", 0, NULL, "print the version", .kind = OPTION_CALL,
	  .take = take_ask, .own = 'V' },
	{ 0 },
};

static struct option_set lnetctl_options(struct session *s)
{
	return (struct option_set){
		.who = "lnetctl",
		.see = "lnetctl --help",
		.head = "usage: lnetctl [OPTION]... COMMAND [ARGUMENT]...\n"
			"       lnetctl [OPTION]...                 reads "
			"commands from stdin\n"
			"       lnetctl COMMAND --help\n"
			"\n"
			"options:\n",
		.tail = "\ncommands:\n",
		.parts = { { rows, s } },
		.in_order = true,
		.max = -1,
	};
}

static void print_help(void)
{
	const struct option_set set = lnetctl_options(NULL);

	options_help(&set, stdout);
	command_help_all(stdout);
}

/* Returns @status, or an error if stdout could not be written. */
static int close_stdout(int status)
{
	bool failed = ferror(stdout);

	errno = 0;
	if (fclose(stdout) == 0 && !failed)
		return status;
	fprintf(stderr, "lnetctl: stdout: %s\n",
		errno ? strerror(errno) : "could not be written");
	return status ? status : 1;
}

int main(int argc, char **argv)
{
	struct session s = { .timeout_s = TIMEOUT_S };
	struct option_set set;
	int status;

	if (secure_stdio())
		return 1;
	signal(SIGPIPE, SIG_IGN);
	set = lnetctl_options(&s);
	status = options_parse(&set, argc, argv);
	if (!status)
		status = set.nargs ? run_words(&s, set.nargs, set.args)
				   : run_lines(&s);
	else if (status == OPTION_USAGE)
		status = EXIT_USAGE;
	else if (status == OPTION_DONE)
		status = 0;
	lnet_ctl_close(s.ctl);
	return close_stdout(status);
}
