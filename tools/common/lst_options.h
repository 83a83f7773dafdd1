/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a command line that lets a node take part in LNet's self-test:
 * the same for all programs that can. */
#ifndef TOOLS_LST_OPTIONS_H
#define TOOLS_LST_OPTIONS_H

#include "option.h"
#include "program.h"
#include "services/lst/lst.h"

struct lst_options {
	bool wanted;
	struct ulnet_nidlist *consoles; /* NULL: anybody */
	unsigned int rpc_s, session_s;	/* 0: as usual */
};

extern const struct option_row lst_rows[];

/* When all are there: 0, or the exit status, after a message. */
int lst_options_check(const struct lst_options *o, const char *who);
/* Serves, if that is wanted: lst_open(). */
int lst_options_open(const struct lst_options *o, const struct say *say,
		     struct lnet *node, struct lst **lst_p);
/* After lst_free(). */
void lst_options_free(struct lst_options *o);

#endif
