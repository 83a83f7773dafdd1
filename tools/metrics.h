/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node counts, in the text format of Prometheus. Manual:
 * ulnet_metrics(7), which lists the metrics. Knows nothing of HTTP.
 */
#ifndef TOOLS_METRICS_H
#define TOOLS_METRICS_H

#include <stdio.h>

#include <ulnet/lnet.h>

/* Peer NIs that have metrics of their own, unless more are asked for: each has
 * some forty time series. */
#define METRICS_PEERS	  256
#define METRICS_PEERS_MAX 65536

/* What a program adds to the metrics of its node: prints to @out whole metrics
 * that have names of their own. 0 or a negative errno. On the thread of
 * metrics_print(). */
typedef int (*metrics_more_fn)(void *arg, FILE *out);
struct metrics_more {
	metrics_more_fn print;
	void *arg;
};

/*
 * *@text_p, to be freed, becomes the metrics of @node, with at most @peers_max
 * of its peer NIs; how many there are is a metric. Behind them comes @more, if
 * it is not NULL. 0; -ENOMEM; what @more returns. Thread: any but
 * those of the node, which must serve its CPTs meanwhile: waits for them.
 */
int metrics_print(struct lnet *node, unsigned int peers_max,
		  const struct metrics_more *more, char **text_p,
		  size_t *len_p);

/* ---- for those who print more ---- */

/* The two lines before the samples of a metric. */
void metrics_head(FILE *out, const char *name, const char *type,
		  const char *help);
/* The value of a label. */
void metrics_quoted(FILE *out, const char *text);
/* The value of a sample, and the end of its line. */
void metrics_seconds(FILE *out, uint64_t ns);

#endif
