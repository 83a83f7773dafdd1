/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answer to a request: status, output, errors as the kernel's lnetctl
 * prints them, notes.
 */
#ifndef CONFIG_YAML_ANSWER_H
#define CONFIG_YAML_ANSWER_H

#include "config/yaml/tree.h"

#define REQUEST_MAX ((size_t)4 << 20)  /* bytes */
#define ANSWER_MAX  ((size_t)64 << 20) /* bytes */

/* Of what users send; of answers, which the node makes. */
extern const struct tree_limits request_limits, answer_limits;

struct answer {
	struct doc *doc;
	int status;
	struct tree *output, *error, *notes; /* NULL: nothing yet */
};

/* What an error is about. */
struct subject {
	const char *top;	   /* what was done: "add", "manage" */
	const char *item;	   /* to what: "net", "ping" */
	const struct tree *seq_no; /* the user's number for it; NULL: none */
};

/* Longest description of an error; a longer one is cut. */
#define DESCR_SIZE 512

int answer_init(struct answer *a);
void answer_fini(struct answer *a);
/* The mapping that is printed on stdout. NULL: no memory. */
struct tree *answer_output(struct answer *a);
/* One more thing that went wrong; the first one's @rc is the status. */
void answer_error(struct answer *a, const struct subject *s, int rc,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same in the form that the kernel's lnetctl has for settings. */
void answer_setting_error(struct answer *a, const char *top, const char *name,
			  int rc, const char *descr);
void answer_note(struct answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same, but not if there is such a note already, or if there are NOTES_MAX:
 * for what may be true of each item of a long file. */
void answer_note_once(struct answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define NOTES_MAX 64

/* As YAML text, to be freed. -ENOMEM; -EMSGSIZE: longer than @max. */
int answer_text(const struct answer *a, size_t max, char **text_p) must_check;

#endif
