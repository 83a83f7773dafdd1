/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a router, those of all CPTs together. */
#ifndef CONFIG_BUFFERS_H
#define CONFIG_BUFFERS_H

#include <stdbool.h>

#include "ulnet/route.h"

struct buffers_sum {
	const char *kind; /* "tiny", "small", "large" */
	uint32_t count;
	int64_t free;
	int64_t free_min; /* the lowest of each CPT; negative: so many
			   * messages have waited */
	int64_t waiting;  /* messages that wait for one */
};

/* False: @node is no router. Not for threads of CPTs. */
bool buffers_sum(struct lnet *node, struct buffers_sum sums[LNET_BUFFER_KINDS]);

#endif
