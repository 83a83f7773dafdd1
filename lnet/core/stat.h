/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's counters, of which each CPT has an array (base/stat.h). */
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

/* Messages by type (LNET_MSG_*), and payload bytes, through an NI or peer
 * NI. */
#define TRAFFIC_TYPES 4
struct traffic {
	stat_t count[TRAFFIC_TYPES];
	stat_t length;
};
/* A sum of measured times. */
struct times {
	stat_t n; /* how many times were measured */
	stat_t ns;
};
struct traffic_stats {
	struct traffic send, recv, drop;
	stat_t resent; /* messages that were sent again after a failure */
	/* From the beginning of PUTs and GETs until they were sent, for one in
	 * TIMES_EVERY; and until their ACK or REPLY came. */
	struct times sending, answered;
};

/* @type must have been checked, as hdr_decode() does. */
static inline void traffic_add(struct traffic *t, uint32_t type,
			       uint32_t length)
{
	stat_inc(&t->count[type]);
	stat_add(&t->length, length);
}

/* The owner's thread. */
static inline void times_add(struct times *t, uint64_t ns)
{
	stat_inc(&t->n);
	stat_add(&t->ns, ns);
}

/* Is the time of the message that @t has counted last to be measured? That is
 * so for one in TIMES_EVERY. */
#define TIMES_EVERY 16
static inline bool times_is_turn(const struct traffic *t, uint32_t type)
{
	return stat_get(&t->count[type]) % TIMES_EVERY == 0;
}

/* Resets all counters but those of what is alive. Owner. */
void cpt_stats_reset(struct lnet_cpt *cpt);

/* Add what @t has counted. Any thread. */
void traffic_sum(const struct traffic *t, struct ulnet_counts *counts);
void times_sum(const struct times *t, struct ulnet_times *times);
uint64_t counts_total(const struct ulnet_counts *counts);
/* Sets all counters to 0. Owner. */
void traffic_reset(struct traffic_stats *t);

/* The counter of sends that fail with @cause, or STAT_COUNT: there is none. */
enum lnet_stat stat_of_cause(enum ulnet_cause cause);

#endif
