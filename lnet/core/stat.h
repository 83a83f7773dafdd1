/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of a node's counters; one array of them for each CPT (base/stat.h). */
#ifndef LNET_STAT_H
#define LNET_STAT_H

#include "base/stat.h"
#include "ulnet/lnet.h"

struct lnet_cpt;

enum lnet_stat {
#define STAT(name, help)     STAT_##name,
#define STAT_NOW(name, help) STAT_##name,
#include "lnet/core/stat.def"
#undef STAT
#undef STAT_NOW
	STAT_COUNT
};

/* Messages, by their type (LNET_MSG_*), and payload through one NI or peer NI.
 */
#define TRAFFIC_TYPES 4
struct traffic {
	stat_t count[TRAFFIC_TYPES];
	stat_t length;
};
struct traffic_stats {
	struct traffic send, recv, drop;
};

/* @type: checked, as hdr_decode() does. */
static inline void traffic_add(struct traffic *t, uint32_t type,
			       uint32_t length)
{
	stat_inc(&t->count[type]);
	stat_add(&t->length, length);
}

/* Owner: what has been counted becomes 0. */
void cpt_stats_reset(struct lnet_cpt *cpt);

/* Adds what @t has counted. Any thread. */
void traffic_sum(const struct traffic *t, struct ulnet_counts *counts);
uint64_t counts_total(const struct ulnet_counts *counts);
/* Owner. */
void traffic_reset(struct traffic_stats *t);

/* The counter of a failed send's cause, or STAT_COUNT. */
enum lnet_stat stat_of_cause(enum ulnet_cause cause);

#endif
