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
/* How long something took, each time that it was measured. */
struct times {
	stat_t n;
	stat_t ns; /* all of it together */
};
struct traffic_stats {
	struct traffic send, recv, drop;
	stat_t resent; /* messages that had another try, having failed */
	/* PUTs and GETs, until they were sent: samples; and until their ACK or
	 * REPLY came. */
	struct times sending, answered;
};

/* @type: checked, as hdr_decode() does. */
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

/* Is the last message that @t has counted one to be measured? One in
 * TIMES_EVERY is. */
#define TIMES_EVERY 16
static inline bool times_is_turn(const struct traffic *t, uint32_t type)
{
	return stat_get(&t->count[type]) % TIMES_EVERY == 0;
}

/* Owner: what has been counted becomes 0. */
void cpt_stats_reset(struct lnet_cpt *cpt);

/* Adds what @t has counted. Any thread. */
void traffic_sum(const struct traffic *t, struct ulnet_counts *counts);
void times_sum(const struct times *t, struct ulnet_times *times);
uint64_t counts_total(const struct ulnet_counts *counts);
/* Owner. */
void traffic_reset(struct traffic_stats *t);

/* The counter of a failed send's cause, or STAT_COUNT. */
enum lnet_stat stat_of_cause(enum ulnet_cause cause);

#endif
