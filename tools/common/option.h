/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command lines, as tables: a row says how an option is called, what its value
 * may be, where that goes, and what --help says of it. What is wrong is said on
 * stderr, with the names of the program and the option.
 */
#ifndef TOOLS_OPTION_H
#define TOOLS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTION_USAGE 2	/* exit status: the command line is wrong */
#define OPTION_DONE  -1 /* nothing is left to be done: --help was printed */

/* And what is at the row's offset. */
enum option_kind {
	OPTION_TITLE,  /* no option: a line of the help */
	OPTION_FLAG,   /* bool */
	OPTION_BITS,   /* unsigned int: adds @min */
	OPTION_NUMBER, /* unsigned int: from @min to @max */
	/* uint64_t: the same, or with k, M, G (powers of 1024) */
	OPTION_SIZE,
	/* double: above 0, to @max; with k, M, G (powers of 1000) */
	OPTION_RATE,
	/* uint64_t, us: at least @min (0 or 1), at most 366 days; given in
	 * seconds, or with us, ms, s, m, h */
	OPTION_TIME,
	/* const char *, borrowed: of @min to @max bytes, but of any length if
	 * @max is 0 */
	OPTION_TEXT,
	/* char *, to be freed: absolute, because the program's working
	 * directory may change */
	OPTION_PATH,
	OPTION_FILE, /* the same, or - */
	/* unsigned int: the index in @words, from @min on; they end with
	 * NULL */
	OPTION_WORD,
	OPTION_CALL, /* void *: @take takes it */
	OPTION_OWN,  /* nothing: the set's @taken takes it */
	OPTION_HELP,
	OPTION_VERSION,
};

struct option_row;

/* An option as it was given. */
struct option_at {
	const char *who;
	const char *name; /* without dashes; "size=" is no option, but what a
			   * word begins with */
	const char *text; /* the value; NULL: it has none */
	const struct option_row *row; /* NULL: it is no option */
	void *object;		      /* the part's */
};

struct option_row {
	const char *name; /* NULL: a title, or, without @help, the end */
	char letter;	  /* 0: none */
	const char *arg;  /* what --help calls the value; NULL: there is none */
	const char *help;
	enum option_kind kind;
	size_t at; /* in the part's object */
	uint64_t min, max;
	const char *const *words;
	/* 0; OPTION_DONE; or the exit status */
	int (*take)(const struct option_at *at);
	bool optional;	 /* the value may be left out, or be the next word if
			* that is a number */
	int own;	 /* of a program */
	const char *key; /* the same */
};

#define OPTION_PARTS 8

struct option_set {
	const char *who; /* what messages begin with */
	const char *see; /* "lnetd --help": where to look; NULL: messages do not
			  * say it */
	const char *head, *tail; /* of --help; NULL: none */
	struct {
		const struct option_row *rows; /* NULL: no more */
		void *object;
	} parts[OPTION_PARTS];
	bool in_order; /* options end with the first word that is none */
	/* Each option goes there, too; NULL: nowhere. As a row's take(). */
	int (*taken)(void *arg, const struct option_at *at);
	void *arg;
	const char *words; /* what the other words are called */
	int min, max;	   /* how many there may be; max < 0: any number */
	/* What options_parse() leaves: those words, which end with NULL. */
	char **args;
	int nargs;
};

/* --help and --version */
extern const struct option_row option_rows[];

/* 0: go on; OPTION_DONE; else the exit status. */
int options_parse(struct option_set *s, int argc, char **argv);
/* The same for one option of @rows, by its name. */
int options_take(const struct option_row *rows, void *object, const char *who,
		 const char *name, const char *text);
void options_help(const struct option_set *s, FILE *out);
/* An option's line, or lines; @written characters of something else, and what
 * that means. */
void option_help(const struct option_row *row, FILE *out);
void option_explain(FILE *out, int written, const char *text);
/* After the last line on stdout: OPTION_DONE; 1, if it was not written. */
int option_printed(const char *who);

/* What a row's take() may call. Each returns OPTION_USAGE after a message. */
int option_bad(const struct option_at *at, const char *what);
int option_size(const struct option_at *at, uint64_t min, uint64_t max,
		uint64_t *value_p);
int option_rate(const struct option_at *at, double max, double *value_p);
int option_time(const struct option_at *at, uint64_t min, uint64_t *us_p);
int option_word(const struct option_at *at, const char *const *words,
		unsigned int first, unsigned int *index_p);
/* A number from @min to @max that is all of @text. */
bool number_parse(const char *text, uint64_t min, uint64_t max,
		  uint64_t *value_p);
/* A message that names no option, or several. */
int option_wrong(const char *who, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- spelling ---- */

/* Of several names, which are offered one after the other, the one that a
 * mistyped word was probably meant to be. */

struct nearest {
	const char *word;   /* borrowed, as names are */
	const char *name;   /* NULL: none is near */
	unsigned int steps; /* from the word to the name */
};

void nearest_init(struct nearest *n, const char *word);

/* Near is what takes so few letters to be put in, left out, replaced or
 * swapped with the next one: one for each three of the word, and one more. What
 * begins with the word, if that has three letters or more, is one step away. Of
 * those that are as near the first one counts. */
void nearest_try(struct nearest *n, const char *name);

/* "Did you mean 'BEFORE NAME'?", a line, if one is near. */
void nearest_say(const struct nearest *n, const char *before, FILE *to);

#endif
