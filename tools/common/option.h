/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command lines, as tables: a row says how an option is called, what its value
 * may be, where the value is stored, and what --help says of it. Errors are
 * printed on stderr.
 */
#ifndef TOOLS_OPTION_H
#define TOOLS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTION_USAGE 2	/* exit status: the command line is wrong */
#define OPTION_DONE  -1 /* no error, but the program is to end: after --help */

/* Kinds of options, and the type of the field where the value is stored. */
enum option_kind {
	OPTION_TITLE,  /* no option: a line of the help */
	OPTION_FLAG,   /* bool */
	OPTION_BITS,   /* unsigned int: sets the bits of @min */
	OPTION_NUMBER, /* unsigned int: from @min to @max */
	/* uint64_t: from @min to @max; may have k, M, G (powers of 1024) */
	OPTION_SIZE,
	/* double: above 0, to @max; may have k, M, G (powers of 1000) */
	OPTION_RATE,
	/* uint64_t, us: at least @min (0 or 1), at most 366 days; given in
	 * seconds, or with us, ms, s, m, h */
	OPTION_TIME,
	/* const char *, borrowed: of @min to @max bytes, but of any length if
	 * @max is 0 */
	OPTION_TEXT,
	/* char *, to be freed: made absolute, because the program's working
	 * directory may change */
	OPTION_PATH,
	OPTION_FILE, /* OPTION_PATH, or "-" */
	/* unsigned int: the index in @words, from @min on; they end with
	 * NULL */
	OPTION_WORD,
	OPTION_CALL, /* any type: the row's take() stores the value */
	OPTION_OWN,  /* no field: only the set's taken() gets the value */
	OPTION_HELP,
	OPTION_VERSION,
};

struct option_row;

/* An option, or another word, as it was given on the command line. */
struct option_at {
	const char *who;
	const char *name; /* without dashes; or "size=", the beginning of a word
			   * that is no option */
	const char *text; /* the value; NULL: there is none */
	/* the row of the option; NULL: the word is no option */
	const struct option_row *row;
	/* the object whose field gets the value */
	void *object;
};

struct option_row {
	/* NULL: the row is a title, or, without @help, the end of the table */
	const char *name;
	char letter;	 /* the short option; 0: there is none */
	const char *arg; /* what --help calls the value; NULL: there is none */
	const char *help;
	enum option_kind kind;
	size_t at; /* offset of the field in the object */
	uint64_t min, max;
	const char *const *words;
	/* OPTION_CALL: stores the value. Returns 0, OPTION_DONE, or the exit
	 * status. */
	int (*take)(const struct option_at *at);
	bool optional; /* the value may be left out; the next word is the value
			* only if it is a number */
	/* For the program's own use: */
	int own;
	const char *key;
};

#define OPTION_PARTS 10

struct option_set {
	const char *who; /* name of the program, with which messages begin */
	const char *see; /* "lnetd --help", which messages advise; NULL: they do
			  * not */
	/* first and last lines of --help; NULL: none */
	const char *head, *tail;
	struct {
		/* table of options; NULL: no further table */
		const struct option_row *rows;
		void *object;
	} parts[OPTION_PARTS];
	/* words behind the first word that is no option are no options */
	bool in_order;
	/* NULL, or a function that is called for each option, after its value
	 * was stored; it returns what a row's take() returns. */
	int (*taken)(void *arg, const struct option_at *at);
	void *arg;
	const char *words; /* what messages call words that are no options */
	/* how many such words there may be; max < 0: any number */
	int min, max;
	/* Results of options_parse(): the words that are no options, up to
	 * NULL. */
	char **args;
	int nargs;
};

/* the rows of --help and --version */
extern const struct option_row option_rows[];

/* Returns 0, OPTION_DONE, or, after a message, the exit status. */
int options_parse(struct option_set *s, int argc, char **argv);
/* Stores @text as the value of the option @name of @rows. Returns what
 * options_parse() returns. */
int options_take(const struct option_row *rows, void *object, const char *who,
		 const char *name, const char *text);
void options_help(const struct option_set *s, FILE *out);
/* Prints what --help says of an option. */
void option_help(const struct option_row *row, FILE *out);
/* Prints @text in the right-hand column of the help, behind the @written
 * characters that are in the line already. */
void option_explain(FILE *out, int written, const char *text);
/* Flushes stdout. Returns OPTION_DONE; or 1 if stdout could not be written. */
int option_printed(const char *who);

/* For a row's take(): check the value of @at and store it, or print a message
 * and return OPTION_USAGE. */
int option_bad(const struct option_at *at, const char *what);
int option_size(const struct option_at *at, uint64_t min, uint64_t max,
		uint64_t *value_p);
int option_rate(const struct option_at *at, double max, double *value_p);
int option_time(const struct option_at *at, uint64_t min, uint64_t *us_p);
int option_word(const struct option_at *at, const char *const *words,
		unsigned int first, unsigned int *index_p);
/* Is all of @text a number from @min to @max? */
bool number_parse(const char *text, uint64_t min, uint64_t max,
		  uint64_t *value_p);
/* Prints a message that is not about the value of one option; returns
 * OPTION_USAGE. */
int option_wrong(const char *who, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- spelling ---- */

/* Finds the name that a mistyped word was probably meant to be. */
struct nearest {
	const char *word;   /* the mistyped word; borrowed, as are names */
	const char *name;   /* the nearest name so far; NULL: none is near */
	unsigned int steps; /* number of steps from the word to that name */
};

void nearest_init(struct nearest *n, const char *word);

/* Considers @name. A step inserts, removes or replaces a letter, or swaps it
 * with the next one; a name that begins with the word is one step away if the
 * word has three letters or more. A name is near if it takes at most one step
 * for each three letters of the word, and one more. Of equally near names the
 * first one is kept. */
void nearest_try(struct nearest *n, const char *name);

/* If a name is near, prints "Did you mean '@before NAME'?", but without the
 * blank. */
void nearest_say(const struct nearest *n, const char *before, FILE *to);

#endif
