/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node counts, in the text format of Prometheus. Manual:
 * ulnet_metrics(7), which lists the metrics. Knows nothing of HTTP.
 */
#ifndef TOOLS_METRICS_H
#define TOOLS_METRICS_H

#include <ulnet/lnet.h>

/* Peer NIs that have metrics of their own, unless more are asked for: each has
 * some forty time series. */
#define METRICS_PEERS	  256
#define METRICS_PEERS_MAX 65536

/*
 * *@text_p, to be freed, becomes the metrics of @node, with at most @peers_max
 * of its peer NIs; how many there are is a metric. 0; -ENOMEM. Thread: any but
 * those of the node, which must serve its CPTs meanwhile: waits for them.
 */
int metrics_print(struct lnet *node, unsigned int peers_max, char **text_p,
		  size_t *len_p);

#endif
