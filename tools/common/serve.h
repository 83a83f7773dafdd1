/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program that is a node serves if its command line says so: metrics,
 * and LNet's self-test. */
#ifndef TOOLS_SERVE_H
#define TOOLS_SERVE_H

#include "exporter.h"
#include "option.h"
#include "program.h"
#include "services/lst/lst.h"

struct lnet_control;

struct serve {
	/* From the command line: */
	struct metrics_options metrics;
	bool selftest; /* --lst: the self-test is wanted */
	/* NIDs of nodes that may be consoles; NULL: of any node */
	struct ulnet_nidlist *consoles;
	/* s: time-outs of the self-test; 0: the default */
	unsigned int rpc_s, session_s;
	/* What runs: */
	struct lst *lst; /* NULL: none */
	struct metrics_source source;
	struct exporter *exporter; /* NULL: none */
};

void serve_init(struct serve *s);
extern const struct option_row serve_rows[];
/* Checks that the options go together, once all of them are read. Returns 0,
 * or, after a message, the exit status. */
int serve_check(const struct serve *s, const char *who);

/* Start what the command line says. Return 0, or -errno after a message. The
 * self-test must be started before networks are added, so that no console finds
 * the node without it. */
int serve_selftest(struct serve *s, const struct say *say, struct lnet *node);
int serve_metrics(struct serve *s, const struct say *say,
		  struct lnet_control *control);
/* serve_stop() must be called before the node is closed, serve_free() after
 * that. */
void serve_stop(struct serve *s);
void serve_free(struct serve *s);

#endif
