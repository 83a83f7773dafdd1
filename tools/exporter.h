/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serves a node's metrics to Prometheus, by HTTP. One thread of its own, which
 * asks the node at most once a second, however many ask; EXPORTER_CONNECTIONS
 * connections at once, others wait in the kernel; EXPORTER_TIMEOUT_S of silence
 * end one, so who does not read, or does not ask, has it only so long.
 */
#ifndef TOOLS_EXPORTER_H
#define TOOLS_EXPORTER_H

#include "say.h"

struct lnet;
struct exporter;
struct metrics_more;
struct metrics_options;

#define EXPORTER_CONNECTIONS 32
#define EXPORTER_MEMORY	     16384 /* bytes of a connection: headers */
#define EXPORTER_TIMEOUT_S   5

/*
 * Serves at the address in @o: "[ADDRESS:]PORT", with the address in brackets
 * if it has colons; without one 127.0.0.1. If it is NULL, nothing is done.
 * @node, @say and @more, which may be NULL, are borrowed until exporter_stop().
 * Logs what fails; -EINVAL, -ENOMEM, or what the address is refused with.
 */
int exporter_start(struct lnet *node, const struct metrics_options *o,
		   const struct metrics_more *more, const struct say *say,
		   struct exporter **exporter_p);
/* Waits for its thread, and so for the node's. NULL is fine. */
void exporter_stop(struct exporter *e);

/* 0, or -EINVAL: not such a text. */
int exporter_check(const char *address);

#endif
