/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys that a running program reads again, by SIGHUP and by 'lnetctl reload',
 * for its nets with tls: required and for its RPC. */
#ifndef TOOLS_RELOAD_H
#define TOOLS_RELOAD_H

#include "keys.h"
#include "program.h"

struct lnet;
struct lnet_control;
struct ulrpc;

struct reload {
	struct keys_options *keys;
	const struct say *say;
	struct lnet *lnet;
	struct ulrpc *rpc; /* NULL: the program runs none */
	/* that the command was added to; NULL: it was not */
	struct lnet_control *control;
};

/* Adds the command, for which @r stays where it is until reload_stop(). 0 or
 * -errno. */
int reload_start(struct reload *r, struct lnet_control *control);
/* Ends the command: to be called before anything of @r is closed. */
void reload_stop(struct reload *r);
/* SIGHUP has come: reads the keys again, and logs that, or what is wrong with
 * them; without --keys it logs that nothing was done. Not in a turn. */
void reload_on_hangup(const struct reload *r);

#endif
