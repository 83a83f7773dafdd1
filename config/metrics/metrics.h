/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that print a node to @out as text that is no YAML. Errors of
 * writing are in ferror(@out). They return 0, -ENOMEM, or the error of reading
 * the node. Not for threads of CPTs.
 */
#ifndef CONFIG_METRICS_METRICS_H
#define CONFIG_METRICS_METRICS_H

#include "config/node/list.h"

/* Metrics, in the text format of Prometheus, with at most @peers NIDs of peers:
 * ulnet_metrics(7). */
int metrics_print(FILE *out, struct lnet *node, unsigned int peers) must_check;

/* What "lnetctl top" reads: counters and gauges, in lines that lnet_control(7)
 * describes. */
int top_print(FILE *out, struct lnet *node, unsigned int peers) must_check;

/* A drawing of the node and its peers for Graphviz. @peers is ignored. */
int dot_print(FILE *out, struct lnet *node, unsigned int peers) must_check;

#endif
