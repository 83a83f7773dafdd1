/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node as a text that is no YAML, each for a reader of its own. They write to
 * @out, whose errors are in ferror(@out), and return 0, or what reading the
 * node fails with; -ENOMEM. Not for threads of CPTs.
 */
#ifndef CONFIG_METRICS_METRICS_H
#define CONFIG_METRICS_METRICS_H

#include "config/node/list.h"

/* What it counts, in the text format of Prometheus; with at most @peers NIDs of
 * peers. Manual: ulnet_metrics(7), which lists the metrics. */
int metrics_print(FILE *out, struct lnet *node, unsigned int peers) must_check;

/* What "lnetctl top" makes its view of: counters and gauges, as they are now.
 * The lines are told in lnet_control(7). */
int top_print(FILE *out, struct lnet *node, unsigned int peers) must_check;

/* A drawing for Graphviz: this node with its interfaces, nets, peers with their
 * NIDs, routes. */
int dot_print(FILE *out, struct lnet *node, unsigned int peers) must_check;

#endif
