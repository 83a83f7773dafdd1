/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>
#include "base/log.h"

struct seen {
	unsigned int lines;
	enum log_level level;
	char last[2048];
};

static void sink(int level, const char *line, void *arg)
{
	struct seen *s = arg;

	s->lines++;
	s->level = (enum log_level)level;
	snprintf(s->last, sizeof(s->last), "%s", line);
}

static int evaluated;

static int count(void)
{
	return ++evaluated;
}

Test(log, levels)
{
	for (int at = LOG_ERR; at <= LOG_DEBUG; at++) {
		struct seen s = { .lines = 0 };

		evaluated = 0;
		log_setup((enum log_level)at, sink, &s);
		log_err("x", "%d", count());
		log_warn("x", "%d", count());
		log_info("x", "%d", count());
		log_debug("x", "%d", count());
		cr_assert_eq(s.lines, (unsigned int)at + 1);
		cr_assert_eq(evaluated, at + 1, "arguments of silent calls");
		cr_assert_eq(s.level, (enum log_level)at);
	}
}

Test(log, default_is_warnings)
{
	cr_assert(log_on(LOG_WARN));
	cr_assert(!log_on(LOG_INFO));
}

/* Each subsystem has a level of its own; those that are not the library's have
 * that of programs. */
Test(log, levels_of_subsystems)
{
	struct seen s = { .lines = 0 };
	struct log_levels l;
	struct log_limit limit = { 0 };

	log_setup(LOG_WARN, sink, &s);
	l = log_levels();
	for (unsigned int i = 0; i < LOG_SUBSYSTEMS; i++) {
		unsigned int lines = s.lines;

		l.of[i] = LOG_DEBUG;
		log_levels_set(&l);
		cr_assert(log_on(LOG_DEBUG));
		for (unsigned int k = 0; k < LOG_SUBSYSTEMS; k++)
			log_debug(log_subsystems[k], "%u", k);
		log_debug("mine", "of a program");
		cr_assert_eq(s.lines, lines + 1, "%s", log_subsystems[i]);
		cr_assert(log_wants(LOG_DEBUG, log_subsystems[i]));
		cr_assert(!log_wants(LOG_DEBUG, "mine"));
		l.of[i] = LOG_ERR;
		log_levels_set(&l);
		cr_assert(!log_on(LOG_INFO));
		log_warn(log_subsystems[i], "silent");
		cr_assert(!log_limit_pass(&limit, log_subsystems[i], 1));
		cr_assert_eq(s.lines, lines + 1, "%s", log_subsystems[i]);
		l.of[i] = LOG_WARN;
	}
	l.all = LOG_INFO;
	log_levels_set(&l);
	s.lines = 0;
	log_info("mine", "of a program");
	log_info("rpc", "silent");
	cr_assert_eq(s.lines, 1);
}

Test(log, one_line)
{
	struct seen s = { .lines = 0 };

	log_setup(LOG_WARN, sink, &s);
	log_warn("peer", "%s: down", "1.2.3.4@tcp");
	cr_assert_str_eq(s.last, "peer: 1.2.3.4@tcp: down");
	log_warn("peer", "%s", "a\nerror: fake\x1b[2J");
	cr_assert_str_eq(s.last, "peer: a?error: fake?[2J");
	/* a control of two bytes, and what is not UTF-8 */
	log_warn("peer", "%s", "\xc3\xa4\xc2\x9b\x7f \xff\xc3 \xed\xa0\x80");
	cr_assert_str_eq(s.last, "peer: \xc3\xa4??? ?? ???");
	cr_assert_eq(s.lines, 3);
}

Test(log, long_lines_are_cut)
{
	struct seen s = { .lines = 0 };
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_setup(LOG_WARN, sink, &s);
	log_err("peer", "%s", text);
	cr_assert_eq(strlen(s.last), 1023);
	log_err(text, "%s", text);
	cr_assert_eq(strlen(s.last), 1023);
}

Test(log, back_to_stderr)
{
	struct seen s = { .lines = 0 };

	log_setup(LOG_WARN, sink, &s);
	log_setup(LOG_WARN, NULL, NULL);
	log_warn("test", "this line belongs here");
	cr_assert_eq(s.lines, 0);
}

static unsigned int passed(struct log_limit *l, uint64_t now, unsigned int n)
{
	unsigned int good = 0;

	while (n--)
		good += log_limit_pass(l, "peer", now);
	return good;
}

Test(log, limit)
{
	const uint64_t start = 1000 * NSEC_PER_SEC;
	struct seen s = { .lines = 0 };
	struct log_limit l = { 0 };

	log_setup(LOG_WARN, sink, &s);
	cr_assert_eq(passed(&l, start, 4), 4);
	cr_assert_eq(passed(&l, start + 5, 100), LOG_LIMIT_LINES - 4);
	cr_assert_eq(passed(&l, start + NSEC_PER_SEC - 1, 1), 0);
	cr_assert_eq(s.lines, 0, "the lines themselves are the caller's");
	cr_assert_eq(passed(&l, start + NSEC_PER_SEC, 1), 1);
	cr_assert_eq(s.lines, 1);
	cr_assert_str_eq(s.last, "peer: 95 lines left out");
	/* The number of lines left out is logged once, and not if it is 0. */
	cr_assert_eq(passed(&l, start + 2 * NSEC_PER_SEC, 10), 10);
	cr_assert_eq(passed(&l, start + 9 * NSEC_PER_SEC, 10), 10);
	cr_assert_eq(s.lines, 1);
}

Test(log, limit_of_silent_lines)
{
	struct seen s = { .lines = 0 };
	struct log_limit l = { 0 };

	log_setup(LOG_ERR, sink, &s);
	cr_assert_eq(passed(&l, 0, 100), 0);
	cr_assert_eq(passed(&l, 2 * NSEC_PER_SEC, 1), 0);
	cr_assert_eq(s.lines, 0);
	/* Warnings that the log level suppresses do not count. */
	log_setup(LOG_WARN, sink, &s);
	cr_assert_eq(passed(&l, 3 * NSEC_PER_SEC, 20), LOG_LIMIT_LINES);
	cr_assert_eq(s.lines, 0);
}

Test(log, limited_lines)
{
	struct seen s = { .lines = 0 };
	struct log_limit l = { 0 };

	log_setup(LOG_WARN, sink, &s);
	evaluated = 0;
	for (unsigned int i = 0; i < 50; i++)
		log_warn_limited(&l, NSEC_PER_SEC, "peer", "%d", count());
	cr_assert_eq(s.lines, LOG_LIMIT_LINES);
	cr_assert_eq(evaluated, LOG_LIMIT_LINES);
	cr_assert_str_eq(s.last, "peer: 10");
}

/* ---- stamps ---- */

/* Asserts that lines outside of turns name the node @name. */
static void stamped(const char *name)
{
	char text[LOG_STAMP], want[LOG_STAMP];

	snprintf(want, sizeof(want), "Z %s ", name);
	log_stamp(text, sizeof(text));
	cr_assert(strstr(text, want), "%s", text);
}

/* A line outside of turns could be of any node, unless there is one alone. */
Test(log, stamps_of_several_nodes)
{
	struct log_node a, b;

	setenv(LOG_STAMP_VARIABLE, "1", 1);
	unsetenv("JOURNAL_STREAM");
	stamped("-");
	log_node_add(&a);
	stamped("-");
	log_node_rename(&a, "10.0.0.1@tcp");
	stamped("10.0.0.1@tcp");
	log_node_add(&b);
	stamped("-");
	log_node_rename(&b, "10.0.0.2@tcp");
	stamped("-");
	log_node_rename(&a, "10.0.0.3@tcp");
	log_node_del(&b);
	stamped("10.0.0.3@tcp");
	log_node_del(&a);
	stamped("-");
}
