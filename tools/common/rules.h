/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for callers: the section "rpc" of a node's configuration file. */
#ifndef TOOLS_RULES_H
#define TOOLS_RULES_H

#include "program.h"

struct ulrpc;

/* From now on the rules in the section "rpc" of the file @path, if there is
 * one, count for calls to @rpc. Returns 0, or -errno after a message. */
int rules_use(struct ulrpc *rpc, const char *path, const struct say *say);

#endif
