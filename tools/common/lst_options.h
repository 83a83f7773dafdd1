/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a command line that lets a node take part in LNet's self-test:
 * the same for all programs that can. */
#ifndef TOOLS_LST_OPTIONS_H
#define TOOLS_LST_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "say.h"
#include "services/lst/lst.h"

struct lst_options {
	bool wanted;
	struct ulnet_nidlist *consoles; /* NULL: anybody */
	unsigned int rpc_s, session_s;	/* 0: as usual */
};

enum { LST_OPT = 640, LST_OPT_RPC, LST_OPT_SESSION };

/* clang-format off */
#define LST_OPTIONS                                                            \
	{ "lst", required_argument, NULL, LST_OPT },                           \
	{ "lst-rpc-timeout", required_argument, NULL, LST_OPT_RPC },           \
	{ "lst-session-timeout", required_argument, NULL, LST_OPT_SESSION }
/* clang-format on */

#define LST_HELP                                                             \
	"      --lst CONSOLES           take part in LNet's self-test, "     \
	"lnet_selftest(7),\n"                                                \
	"                               by the word of these NIDs: "         \
	"\"10.0.0.[1-3]@tcp\",\n"                                            \
	"                               or of all\n"                         \
	"      --lst-rpc-timeout S      in which those it sends to have to " \
	"answer (64)\n"                                                      \
	"      --lst-session-timeout S  of silence, after which it is free " \
	"again (100)\n"

/* As node_options_take(). */
int lst_options_take(struct lst_options *o, const char *who, int option,
		     const char *arg);
/* When all are there: 0, or the exit status, after a message. */
int lst_options_check(const struct lst_options *o, const char *who);
/* Serves, if that is wanted: lst_open(). */
int lst_options_open(const struct lst_options *o, const struct say *say,
		     struct lnet *node, struct lst **lst_p);
/* After lst_free(). */
void lst_options_free(struct lst_options *o);

#endif
