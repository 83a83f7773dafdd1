/* SPDX-License-Identifier: BSD-3-Clause */
#include "option.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define YEAR_US	   (UINT64_C(366) * 86400 * 1000000)
#define ROWS_MAX   64  /* most options of one set */
#define FIRST_LONG 256 /* getopt_long() returns this plus an option's index */
/* column in which the right-hand side of the help begins */
#define COLUMN 31
#define WIDTH  80

/* ---- spelling ---- */

#define LETTERS 40 /* words with more letters are near to no name */
/* number of letters that suffice to mean a name that begins with them */
#define BEGINNING 3

static unsigned int option_least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Fills line @i of the table of distances between the first @i letters of @a
 * and the first j letters of @b. @line is line @i - 1, @above line @i - 2. */
static void next_line(const char *a, unsigned int i, const char *b,
		      const unsigned int *above, const unsigned int *line,
		      unsigned int *next)
{
	next[0] = i;
	for (unsigned int j = 1; j <= strlen(b); j++) {
		next[j] = option_least(option_least(line[j], next[j - 1]) + 1,
				       line[j - 1] + (a[i - 1] != b[j - 1]));
		if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
		    a[i - 2] == b[j - 1])
			next[j] = option_least(next[j], above[j - 2] + 1);
	}
}

static unsigned int distance(const char *a, const char *b)
{
	unsigned int lines[3][LETTERS + 1];
	unsigned int i;

	for (i = 0; i <= strlen(b); i++)
		lines[0][i] = i;
	for (i = 1; i <= strlen(a); i++)
		next_line(a, i, b, lines[(i + 1) % 3], lines[(i + 2) % 3],
			  lines[i % 3]);
	return lines[(i + 2) % 3][strlen(b)];
}

void nearest_init(struct nearest *n, const char *word)
{
	*n = (struct nearest){ .word = word };
}

void nearest_try(struct nearest *n, const char *name)
{
	size_t length = strlen(n->word);
	unsigned int steps;

	if (length > LETTERS || strlen(name) > LETTERS)
		return;
	steps = distance(n->word, name);
	if (length >= BEGINNING && strncmp(n->word, name, length) == 0)
		steps = option_least(steps, 1);
	if (steps > length / 3 + 1 || steps >= strlen(name) ||
	    (n->name && steps >= n->steps))
		return;
	n->name = name;
	n->steps = steps;
}

void nearest_say(const struct nearest *n, const char *before, FILE *to)
{
	if (n->name)
		fprintf(to, "Did you mean '%s%s'?\n", before, n->name);
}

/* ---- values ---- */

int option_bad(const struct option_at *at, const char *what)
{
	bool assigned = at->name[strlen(at->name) - 1] == '=';

	fprintf(stderr, assigned ? "%s: %s%s: %s\n" : "%s: --%s %s: %s\n",
		at->who, at->name, *at->text ? at->text : "''", what);
	return OPTION_USAGE;
}

int option_wrong(const char *who, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", who);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return OPTION_USAGE;
}

bool number_parse(const char *text, uint64_t min, uint64_t max,
		  uint64_t *value_p)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || value < min ||
	    value > max)
		return false;
	*value_p = value;
	return true;
}

static int option_number(const struct option_at *at, uint64_t min, uint64_t max,
			 unsigned int *value_p)
{
	uint64_t value;
	char range[80];

	snprintf(range, sizeof(range),
		 "a number from %" PRIu64 " to %" PRIu64 " is expected", min,
		 max);
	if (!number_parse(at->text, min, max, &value))
		return option_bad(at, range);
	*value_p = (unsigned int)value;
	return 0;
}

struct unit {
	const char *name;
	double factor;
};

/* Returns the factor that the unit @name stands for; 0: there is no such unit.
 */
static double unit_factor(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcmp(units->name, name) == 0)
			return units->factor;
	return 0;
}

int option_size(const struct option_at *at, uint64_t min, uint64_t max,
		uint64_t *value_p)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "k", 1u << 10 },
		{ "K", 1u << 10 },
		{ "m", 1u << 20 },
		{ "M", 1u << 20 },
		{ "G", 1u << 30 },
		{ 0 },
	};
	unsigned long long value;
	uint64_t factor;
	char range[128], *end;

	errno = 0;
	value = strtoull(at->text, &end, 10);
	factor = (uint64_t)unit_factor(units, end);
	snprintf(range, sizeof(range),
		 "a number from %" PRIu64 " to %" PRIu64
		 " is expected, or one with k, M or G",
		 min, max);
	if (!isdigit((unsigned char)*at->text) || errno || !factor ||
	    value > max / factor || value * factor < min)
		return option_bad(at, range);
	*value_p = value * factor;
	return 0;
}

/* Parses a number that may have a fraction, but no sign and no exponent.
 * *@end_p: what follows the number. Returns -1 if the number is malformed. */
static double option_take_decimal(const char *text, char **end_p)
{
	size_t length = strspn(text, "0123456789.");
	char number[64];

	*end_p = (char *)text + length;
	if (!isdigit((unsigned char)*text) || length >= sizeof(number))
		return -1;
	memcpy(number, text, length);
	number[length] = 0;
	if (strchr(number, '.') != strrchr(number, '.'))
		return -1;
	return strtod(number, NULL);
}

int option_rate(const struct option_at *at, double max, double *value_p)
{
	static const struct unit units[] = {
		{ "", 1 },    { "k", 1e3 }, { "K", 1e3 },
		{ "M", 1e6 }, { "G", 1e9 }, { 0 },
	};
	char range[128], *end;
	double value =
		option_take_decimal(at->text, &end) * unit_factor(units, end);

	if (value > 0 && value <= max) {
		*value_p = value;
		return 0;
	}
	snprintf(range, sizeof(range),
		 "a number above 0, at most %.0f, is expected, or one with "
		 "k or M",
		 max);
	return option_bad(at, range);
}

int option_time(const struct option_at *at, uint64_t min, uint64_t *us_p)
{
	static const struct unit units[] = {
		{ "", 1e6 },   { "us", 1 },	{ "ms", 1e3 }, { "s", 1e6 },
		{ "m", 60e6 }, { "h", 3600e6 }, { 0 },
	};
	char range[128], *end;
	double number = option_take_decimal(at->text, &end);
	double factor = unit_factor(units, end), value = number * factor;

	if (number >= 0 && factor > 0 && value >= (double)min &&
	    value <= (double)YEAR_US) {
		*us_p = (uint64_t)(value + 0.5);
		return 0;
	}
	snprintf(range, sizeof(range),
		 "a time %s 0, at most 366 days, is expected: seconds, or a "
		 "number with us, ms, s, m or h",
		 min ? "above" : "from");
	return option_bad(at, range);
}

/* If the value is none of the words, the message lists them: "a, b or c is
 * expected". */
int option_word(const struct option_at *at, const char *const *words,
		unsigned int first, unsigned int *index_p)
{
	char what[256];
	size_t length = 0;

	for (unsigned int i = first; words[i]; i++) {
		if (strcmp(words[i], at->text) == 0) {
			*index_p = i;
			return 0;
		}
		length += (size_t)snprintf(what + length, sizeof(what) - length,
					   "%s%s",
					   i == first	  ? ""
					   : words[i + 1] ? ", "
							  : " or ",
					   words[i]);
	}
	snprintf(what + length, sizeof(what) - length, " is expected");
	return option_bad(at, what);
}

static int option_text(const struct option_at *at, const char **text_p)
{
	size_t length = strlen(at->text);
	char what[80];

	if (length >= at->row->min &&
	    (!at->row->max || length <= at->row->max)) {
		*text_p = at->text;
		return 0;
	}
	if (!at->row->max)
		return option_bad(at, "a text is expected");
	snprintf(what, sizeof(what),
		 "%" PRIu64 " to %" PRIu64 " bytes are expected", at->row->min,
		 at->row->max);
	return option_bad(at, what);
}

static int path_set(const struct option_at *at, const char *here, char **path_p)
{
	char *text;

	if (asprintf(&text, "%s%s%s", here, *here ? "/" : "", at->text) < 0)
		return option_bad(at, strerror(ENOMEM));
	free(*path_p);
	*path_p = text;
	return 0;
}

static int option_path(const struct option_at *at, char **path_p)
{
	char *here;
	int status;

	if (!*at->text)
		return option_bad(at, "a path is expected");
	if (*at->text == '/')
		return path_set(at, "", path_p);
	here = getcwd(NULL, 0);
	status = here ? path_set(at, here, path_p)
		      : option_bad(at, strerror(errno));
	free(here);
	return status;
}

static int option_take(const struct option_at *at)
{
	const struct option_row *row = at->row;
	void *field = (char *)at->object + row->at;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_BITS:
		*(unsigned int *)field |= (unsigned int)row->min;
		return 0;
	case OPTION_NUMBER:
		return option_number(at, row->min, row->max, field);
	case OPTION_SIZE:
		return option_size(at, row->min, row->max, field);
	case OPTION_RATE:
		return option_rate(at, (double)row->max, field);
	case OPTION_TIME:
		return option_time(at, row->min, field);
	case OPTION_TEXT:
		return option_text(at, field);
	case OPTION_FILE:
		if (strcmp(at->text, "-") == 0)
			return path_set(at, "", field);
		return option_path(at, field);
	case OPTION_PATH:
		return option_path(at, field);
	case OPTION_WORD:
		return option_word(at, row->words, (unsigned int)row->min,
				   field);
	case OPTION_CALL:
		return row->take(at);
	default:
		return 0;
	}
}

int options_take(const struct option_row *rows, void *object, const char *who,
		 const char *name, const char *text)
{
	struct option_at at = { who, name, text, rows, object };

	for (; at.row->name || at.row->help; at.row++)
		if (at.row->name && strcmp(at.row->name, name) == 0)
			return option_take(&at);
	return option_wrong(who, "unrecognized option '--%s'", name);
}

/* ---- help ---- */

const struct option_row option_rows[] = {
	{ "help", 'h', NULL, "print this", .kind = OPTION_HELP },
	{ "version", 'V', NULL, "print the version", .kind = OPTION_VERSION },
	{ 0 },
};

void option_explain(FILE *out, int written, const char *text)
{
	if (written >= COLUMN)
		written = fprintf(out, "\n") - 1;
	while (*text) {
		size_t length = strcspn(text, " ");

		if (written < COLUMN)
			written += fprintf(out, "%*s", COLUMN - written, "");
		else if (written + 1 + (int)length < WIDTH)
			written += fprintf(out, " ");
		else
			written = fprintf(out, "\n%*s", COLUMN, "") - 1;
		written += fprintf(out, "%.*s", (int)length, text);
		text += length + (text[length] == ' ');
	}
	fputc('\n', out);
}

void option_help(const struct option_row *row, FILE *out)
{
	int n;

	if (!row->name) {
		fprintf(out, "%s\n", row->help);
		return;
	}
	n = row->letter ? fprintf(out, "  -%c, --%s", row->letter, row->name)
			: fprintf(out, "      --%s", row->name);
	if (row->arg)
		n += fprintf(out, row->optional ? " [%s]" : " %s", row->arg);
	option_explain(out, n, row->help);
}

void options_help(const struct option_set *s, FILE *out)
{
	fputs(s->head ? s->head : "", out);
	for (unsigned int i = 0; i < OPTION_PARTS && s->parts[i].rows; i++)
		for (const struct option_row *row = s->parts[i].rows;
		     row->name || row->help; row++)
			option_help(row, out);
	fputs(s->tail ? s->tail : "", out);
}

int option_printed(const char *who)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return OPTION_DONE;
	/* If an earlier write has failed, errno is 0 here. */
	fprintf(stderr, "%s: stdout: %s\n", who, strerror(errno ? errno : EIO));
	return 1;
}

/* ---- command lines ---- */

/* A set of options as getopt_long() wants it: options are numbered from 0. */
struct scan {
	struct option_set *set;
	unsigned int n;
	const struct option_row *rows[ROWS_MAX];
	void *objects[ROWS_MAX];
	struct option longs[ROWS_MAX + 1];
	char letters[3 * ROWS_MAX + 2];
};

static void scan_begin(struct scan *scan, struct option_set *s)
{
	char *letter = scan->letters;

	scan->set = s;
	if (s->in_order)
		*letter++ = '+';
	for (unsigned int i = 0; i < OPTION_PARTS && s->parts[i].rows; i++) {
		const struct option_row *row = s->parts[i].rows;

		for (; row->name || row->help; row++) {
			int has = !row->arg	  ? no_argument
				  : row->optional ? optional_argument
						  : required_argument;

			if (!row->name)
				continue;
			if (scan->n == ROWS_MAX)
				abort();
			scan->rows[scan->n] = row;
			scan->objects[scan->n] = s->parts[i].object;
			scan->longs[scan->n] =
				(struct option){ row->name, has, NULL,
						 FIRST_LONG + (int)scan->n };
			scan->n++;
			if (row->letter)
				letter += sprintf(letter, "%c%.*s", row->letter,
						  has, "::");
		}
	}
}

static int see(const struct option_set *s)
{
	if (s->see)
		fprintf(stderr, "See '%s'.\n", s->see);
	return OPTION_USAGE;
}

/* Called after getopt_long() has printed an error about @word: an unknown
 * option, or one without its value. */
static int scan_bad(const struct scan *scan, const char *word)
{
	struct nearest near;
	char name[64];

	if (!optopt && strncmp(word, "--", 2) == 0) {
		snprintf(name, sizeof(name), "%.*s",
			 (int)strcspn(word + 2, "="), word + 2);
		nearest_init(&near, name);
		for (unsigned int i = 0; i < scan->n; i++)
			nearest_try(&near, scan->rows[i]->name);
		nearest_say(&near, "--", stderr);
	}
	return see(scan->set);
}

static bool option_is_number(const char *text)
{
	size_t sign = *text == '-';

	return text[sign] && !text[sign + strspn(text + sign, "0123456789")];
}

static int scan_take(const struct scan *scan, int option, int argc, char **argv)
{
	const struct option_set *s = scan->set;
	struct option_at at = { .who = s->who, .text = optarg };
	unsigned int i = 0;
	int status;

	if (option >= FIRST_LONG)
		i = (unsigned int)(option - FIRST_LONG);
	else
		while (scan->rows[i]->letter != option)
			i++;
	at.row = scan->rows[i];
	at.object = scan->objects[i];
	at.name = at.row->name;
	if (at.row->kind == OPTION_HELP) {
		options_help(s, stdout);
		return option_printed(s->who);
	}
	if (at.row->kind == OPTION_VERSION) {
		printf("%s (" PACKAGE_NAME ") " PACKAGE_VERSION "\n", s->who);
		return option_printed(s->who);
	}
	if (at.row->optional && !at.text && optind < argc &&
	    option_is_number(argv[optind]))
		at.text = argv[optind++];
	status = option_take(&at);
	return status || !s->taken ? status : s->taken(s->arg, &at);
}

static int check_words(const struct option_set *s)
{
	if (s->nargs < s->min) {
		option_wrong(s->who, "missing: %s", s->words);
		return see(s);
	}
	if (s->max >= 0 && s->nargs > s->max) {
		option_wrong(s->who, "unexpected argument: %s",
			     s->args[s->max]);
		return see(s);
	}
	return 0;
}

int options_parse(struct option_set *s, int argc, char **argv)
{
	struct scan scan = { .n = 0 };
	char *name = argv[0];
	int option, status = 0;

	scan_begin(&scan, s);
	argv[0] = (char *)s->who; /* what getopt's messages begin with */
	optind = 0;
	while (!status && (option = getopt_long(argc, argv, scan.letters,
						scan.longs, NULL)) != -1)
		status = option == '?' ? scan_bad(&scan, argv[optind - 1])
				       : scan_take(&scan, option, argc, argv);
	argv[0] = name;
	s->args = argv + optind;
	s->nargs = argc - optind;
	return status ? status : check_words(s);
}
