/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests whose answer is one text, about a node and so many of its peers. */
#ifndef CONFIG_LINES_H
#define CONFIG_LINES_H

#include <stdio.h>

#include "config/request.h"

struct lines {
	const char *what;	  /* "cannot get WHAT: ..." */
	int64_t peers, peers_max; /* if the request says no number; the most */
	/* 0 or a negative errno; what was written is then thrown away. */
	int (*print)(FILE *out, struct lnet *node, unsigned int peers);
};

/* Answers @r, which may have a key "peers". */
void lines_answer(struct request *r, const struct lines *lines);

#endif
