/* SPDX-License-Identifier: BSD-3-Clause */
/* What "lnetctl top" makes its view of: counters and gauges of a node, its
 * interfaces and its peers, as they are now. */
#ifndef CONFIG_TOP_H
#define CONFIG_TOP_H

#include "config/request.h"

/* The request "top". Its lines are told in lnet_control(7). */
void top_request(struct request *r);
extern const char *const top_keys[];

#endif
