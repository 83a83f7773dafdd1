/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: the table of commands, and what each does.
 */
#ifndef CONFIG_REQUEST_H
#define CONFIG_REQUEST_H

#include "config/answer.h"
#include "config/control.h"

struct request {
	struct lnet_control *control;
	struct answer *answer;
	const struct tree *args; /* a mapping, or null */
	struct scope scope;
	struct cancel *cancel; /* NULL: nobody can end it */
};

/* Carries out the request @root; the outcome is in @answer. */
void request_carry_out(struct lnet_control *control, const struct tree *root,
		       struct cancel *cancel, struct answer *answer);

/* Is there a command @name that the program cannot add? */
bool request_is_ours(const char *name);

/* Answers what is asked of a node that "lnet unconfigure" has taken down. */
int request_down(struct request *r);

#endif
