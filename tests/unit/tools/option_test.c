/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <string.h>
#include "tools/common/option.h"

#define NO UINT64_MAX /* in place of a value: an error is expected */

struct row {
	const char *text;
	uint64_t value;
};

static const struct row sizes[] = {
	{ "1", 1 },
	{ "0", 0 },
	{ "4k", 4096 },
	{ "4K", 4096 },
	{ "3M", 3u << 20 },
	{ "1G", 1u << 30 },
	{ "64G", UINT64_C(1) << 36 },
	{ "65G", NO },
	{ "68719476737", NO },
	{ "", NO },
	{ "k", NO },
	{ "-1", NO },
	{ "+1", NO },
	{ " 1", NO },
	{ "1 k", NO },
	{ "1kk", NO },
	{ "1.5k", NO },
	{ "0x10", NO },
	{ "18446744073709551616", NO },
	{ "18446744073709551615G", NO },
};

static const struct row times[] = {
	{ "1", 1000000 },
	{ "1s", 1000000 },
	{ "0.5", 500000 },
	{ "1.25ms", 1250 },
	{ "7us", 7 },
	{ "2m", 120000000 },
	{ "1h", UINT64_C(3600000000) },
	{ "8784h", UINT64_C(366) * 86400 * 1000000 },
	{ "8785h", NO },
	{ "0", NO },
	{ "0.0000001", NO },
	{ "", NO },
	{ "s", NO },
	{ ".5", NO },
	{ "-1", NO },
	{ "1.2.3", NO },
	{ "1e3", NO },
	{ "inf", NO },
	{ "1d", NO },
	{ "1S", NO },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct option_at *at(const char *text)
{
	static struct option_at given = { .who = "who", .name = "what" };

	given.text = text;
	return &given;
}

Test(option, size, .init = cr_redirect_stderr)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		uint64_t value = NO;
		int status = option_size(at(sizes[i].text), 0,
					 UINT64_C(1) << 36, &value);

		cr_expect_eq(value, sizes[i].value, "%s", sizes[i].text);
		cr_expect_eq(status, sizes[i].value == NO ? OPTION_USAGE : 0,
			     "%s", sizes[i].text);
	}
}

Test(option, time, .init = cr_redirect_stderr)
{
	for (size_t i = 0; i < COUNT(times); i++) {
		uint64_t value = NO;
		int status = option_time(at(times[i].text), 1, &value);

		cr_expect_eq(value, times[i].value, "%s", times[i].text);
		cr_expect_eq(status, times[i].value == NO ? OPTION_USAGE : 0,
			     "%s", times[i].text);
	}
}

Test(option, time_from_0, .init = cr_redirect_stderr)
{
	static const char *const bad[] = {
		"", "-1", "x", "0x", "1e3", "367000h"
	};
	uint64_t value = NO;

	cr_expect_eq(option_time(at("0"), 0, &value), 0);
	cr_expect_eq(value, 0);
	cr_expect_eq(option_time(at("0ms"), 0, &value), 0);
	cr_expect_eq(option_time(at("1"), 0, &value), 0);
	cr_expect_eq(value, 1000000);
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_eq(option_time(at(bad[i]), 0, &value), OPTION_USAGE,
			     "%s", bad[i]);
	cr_expect_eq(value, 1000000);
}

Test(option, rate, .init = cr_redirect_stderr)
{
	static const char *const bad[] = { "",	  "0",	"-1", "k",
					   "1e9", "2G", "nan" };
	double value = 0;

	cr_expect_eq(option_rate(at("2.5k"), 1e9, &value), 0);
	cr_expect_float_eq(value, 2500, 1e-9);
	cr_expect_eq(option_rate(at("1G"), 1e9, &value), 0);
	cr_expect_float_eq(value, 1e9, 1e-3);
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_eq(option_rate(at(bad[i]), 1e9, &value), OPTION_USAGE,
			     "%s", bad[i]);
	cr_expect_float_eq(value, 1e9, 1e-3);
}

/* ---- command lines ---- */

struct all {
	bool flag;
	unsigned int number, bits, word;
	uint64_t size, time;
	double rate;
	const char *text, *called;
	char *path, *file;
	const char *level;
	unsigned int levels;
};

static int take_called(const struct option_at *given)
{
	struct all *all = given->object;

	if (strcmp(given->text, "bad") == 0)
		return option_bad(given, "that is bad");
	all->called = given->text;
	return 0;
}

#define AT(field) offsetof(struct all, field)

static const char *const words[] = { "red", "green", "blue", NULL };

static const struct option_row rows[] = {
	{ .help = "all:" },
	{ "flag", 'f', NULL, "a flag", .kind = OPTION_FLAG, AT(flag) },
	{ "one", 0, NULL, "a bit", .kind = OPTION_BITS, AT(bits), 1 },
	{ "two", 0, NULL, "another", .kind = OPTION_BITS, AT(bits), 2 },
	{ "number", 'n', "N", "a number", .kind = OPTION_NUMBER, AT(number), 2,
	  64 },
	{ "size", 0, "N", "a size", .kind = OPTION_SIZE, AT(size), 0, 4096 },
	{ "time", 0, "T", "a time", .kind = OPTION_TIME, AT(time), 1 },
	{ "rate", 0, "R", "a rate", .kind = OPTION_RATE, AT(rate), .max = 9 },
	{ "text", 't', "TEXT", "a text", .kind = OPTION_TEXT, AT(text), 1, 3 },
	{ "any", 0, "TEXT", "any text", .kind = OPTION_TEXT, AT(text) },
	{ 0 },
};
static const struct option_row more_rows[] = {
	{ "path", 0, "FILE", "a path", .kind = OPTION_PATH, AT(path) },
	{ "file", 0, "FILE", "the same, or -", .kind = OPTION_FILE, AT(file) },
	{ "word", 0, "WORD",
	  "a word whose explanation goes on and on, and fits into no line",
	  .kind = OPTION_WORD, AT(word), .words = words },
	{ "colour", 0, "WORD", "not the first", .kind = OPTION_WORD, AT(word),
	  1, .words = words },
	{ "called", 0, "X", "taken", .kind = OPTION_CALL, .take = take_called },
	{ "level", 'l', "N", "may be left out", .kind = OPTION_OWN,
	  .optional = true },
	{ 0 },
};

static int taken(void *arg, const struct option_at *given)
{
	struct all *all = arg;

	if (strcmp(given->name, "level") == 0) {
		all->level = given->text;
		all->levels++;
	}
	return 0;
}

static struct option_set set;

/* Parses @line, whose first word is the program's name, into @all. */
static int parse(struct all *all, const char *line)
{
	static char text[256], *argv[16];
	char *save = NULL;
	int argc = 0;

	strcpy(text, line);
	for (char *w = strtok_r(text, " ", &save); w;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	*all = (struct all){ 0 };
	set = (struct option_set){
		.who = "prog",
		.see = "prog --help",
		.head = "usage: prog\n",
		.tail = "That is all.\n",
		.parts = { { rows, all },
			   { more_rows, all },
			   { option_rows, NULL } },
		.taken = taken,
		.arg = all,
		.words = "WORD",
		.max = 2,
	};
	return options_parse(&set, argc, argv);
}

Test(option, row_kinds)
{
	struct all all;

	cr_assert_eq(parse(&all, "x -f one --two -n5 --size=4k --time 2ms "
				 "--rate 2.5 -t abc two"),
		     0);
	cr_expect(all.flag);
	cr_expect_eq(all.bits, 2);
	cr_expect_eq(all.number, 5);
	cr_expect_eq(all.size, 4096);
	cr_expect_eq(all.time, 2000);
	cr_expect_float_eq(all.rate, 2.5, 1e-9);
	cr_expect_str_eq(all.text, "abc");
	cr_expect_eq(set.nargs, 2);
	cr_expect_str_eq(set.args[0], "one");
	cr_expect_str_eq(set.args[1], "two");
	cr_assert_eq(parse(&all, "x --one --two --path /a --file - --word blue "
				 "--called so"),
		     0);
	cr_expect_eq(all.bits, 3);
	cr_expect_str_eq(all.path, "/a");
	cr_expect_str_eq(all.file, "-");
	cr_expect_eq(all.word, 2);
	cr_expect_str_eq(all.called, "so");
	free(all.path);
	free(all.file);
	cr_assert_eq(parse(&all, "x --colour green --path b"), 0);
	cr_expect_eq(all.word, 1);
	cr_expect_eq(all.path[0], '/');
	cr_expect_str_eq(strrchr(all.path, '/'), "/b");
	free(all.path);
}

Test(option, value_left_out)
{
	struct all all;

	cr_assert_eq(parse(&all, "x --level"), 0);
	cr_expect_null(all.level);
	cr_expect_eq(all.levels, 1);
	cr_assert_eq(parse(&all, "x -l 7 word"), 0);
	cr_expect_str_eq(all.level, "7");
	cr_expect_eq(set.nargs, 1);
	cr_assert_eq(parse(&all, "x --level -1"), 0);
	cr_expect_str_eq(all.level, "-1");
	cr_assert_eq(parse(&all, "x -l7 --level word"), 0);
	cr_expect_null(all.level);
	cr_expect_eq(all.levels, 2);
	cr_expect_eq(set.nargs, 1);
}

Test(option, by_name, .init = cr_redirect_stderr)
{
	struct all all = { 0 };

	cr_expect_eq(options_take(rows, &all, "prog", "number", "9"), 0);
	cr_expect_eq(all.number, 9);
	cr_expect_eq(options_take(rows, &all, "prog", "path", "x"),
		     OPTION_USAGE);
}

Test(option, says_what, .init = cr_redirect_stderr)
{
	static const char *const wrong[] = {
		"x -n 1",	  "x --number=65x", "x --size 5k",
		"x --text=",	  "x --text abcd",  "x --word pink",
		"x --colour red", "x --called bad", "x --path=",
		"x --nubmer 5",	  "x --flag=1",	    "x one two three",
	};
	struct all all;

	for (size_t i = 0; i < COUNT(wrong); i++)
		cr_expect_eq(parse(&all, wrong[i]), OPTION_USAGE, "%s",
			     wrong[i]);
	fflush(stderr);
	cr_expect_stderr_eq_str(
		"prog: --number 1: a number from 2 to 64 is expected\n"
		"prog: --number 65x: a number from 2 to 64 is expected\n"
		"prog: --size 5k: a number from 0 to 4096 is expected, or one "
		"with k, M or G\n"
		"prog: --text '': 1 to 3 bytes are expected\n"
		"prog: --text abcd: 1 to 3 bytes are expected\n"
		"prog: --word pink: red, green or blue is expected\n"
		"prog: --colour red: green or blue is expected\n"
		"prog: --called bad: that is bad\n"
		"prog: --path '': a path is expected\n"
		"prog: unrecognized option '--nubmer'\n"
		"Did you mean '--number'?\n"
		"See 'prog --help'.\n"
		"prog: option '--flag' doesn't allow an argument\n"
		"See 'prog --help'.\n"
		"prog: unexpected argument: three\n"
		"See 'prog --help'.\n");
}

Test(option, help)
{
	struct all all;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(parse(&all, "x"), 0);
	options_help(&set, out);
	fclose(out);
	cr_expect_str_eq(text,
			 "usage: prog\n"
			 "all:\n"
			 "  -f, --flag                   a flag\n"
			 "      --one                    a bit\n"
			 "      --two                    another\n"
			 "  -n, --number N               a number\n"
			 "      --size N                 a size\n"
			 "      --time T                 a time\n"
			 "      --rate R                 a rate\n"
			 "  -t, --text TEXT              a text\n"
			 "      --any TEXT               any text\n"
			 "      --path FILE              a path\n"
			 "      --file FILE              the same, or -\n"
			 "      --word WORD              a word whose "
			 "explanation goes on "
			 "and on, and\n"
			 "                               fits into no line\n"
			 "      --colour WORD            not the first\n"
			 "      --called X               taken\n"
			 "  -l, --level [N]              may be left out\n"
			 "  -h, --help                   print this\n"
			 "  -V, --version                print the version\n"
			 "That is all.\n");
	free(text);
}

Test(option, help_asked_for, .init = cr_redirect_stdout)
{
	struct all all;

	cr_expect_eq(parse(&all, "x --help --number 1"), OPTION_DONE);
	cr_expect_eq(parse(&all, "x -V --number 1"), OPTION_DONE);
}
