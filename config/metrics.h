/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node counts, in the text format of Prometheus. Manual:
 * ulnet_metrics(7), which lists the metrics. Knows nothing of HTTP. */
#ifndef CONFIG_METRICS_H
#define CONFIG_METRICS_H

#include "config/request.h"

/* The request "metrics". */
void metrics_request(struct request *r);
extern const char *const metrics_keys[];

#endif
