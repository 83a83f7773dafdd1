/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes serve besides messages, when the command line wants it: metrics,
 * and LNet's self-test. */
#ifndef TOOLS_SERVE_H
#define TOOLS_SERVE_H

#include "exporter.h"
#include "option.h"
#include "program.h"
#include "services/lst/lst.h"

struct lnet_control;

struct serve {
	/* the command line's */
	struct metrics_options metrics;
	bool lst_wanted;
	struct ulnet_nidlist *consoles; /* NULL: anybody */
	unsigned int rpc_s, session_s;	/* 0: as usual */
	/* what runs */
	struct lst *lst; /* NULL: none */
	struct metrics_source source;
	struct exporter *exporter; /* NULL: none */
};

void serve_init(struct serve *s);
extern const struct option_row serve_rows[];
/* When all options are there: 0, or the exit status, after a message. */
int serve_check(const struct serve *s, const char *who);

/* Before there is a network, so that nobody finds a node that does not
 * answer. */
int serve_selftest(struct serve *s, const struct say *say, struct lnet *node);
int serve_metrics(struct serve *s, const struct say *say,
		  struct lnet_control *control);
/* Before the node closes; after it has closed. */
void serve_stop(struct serve *s);
void serve_free(struct serve *s);

#endif
