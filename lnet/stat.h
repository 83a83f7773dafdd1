/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of a node's counters; one array of them for each CPT (base/stat.h). */
#ifndef LNET_STAT_H
#define LNET_STAT_H

#include "base/stat.h"
#include "ulnet/lnet.h"

enum lnet_stat {
#define STAT(name, help) STAT_##name,
#include "lnet/stat.def"
#undef STAT
	STAT_COUNT
};

/* Messages and payload through one NI or peer NI. */
struct traffic {
	stat_t count;
	stat_t length;
};
struct traffic_stats {
	struct traffic send, recv, drop;
};

static inline void traffic_add(struct traffic *t, uint32_t length)
{
	stat_inc(&t->count);
	stat_add(&t->length, length);
}

/* The counter of a failed send's cause, or STAT_COUNT. */
enum lnet_stat stat_of_cause(enum ulnet_cause cause);

#endif
