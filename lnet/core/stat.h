/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's counters. Each CPT has an array of them (base/stat.h). */
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

/* Messages by type (LNET_MSG_*), and bytes of payload, that went through an NI
 * or peer NI. */
#define TRAFFIC_TYPES 4
struct traffic {
	stat_t count[TRAFFIC_TYPES];
	stat_t length;
};
/* A sum of measured times. */
struct times {
	stat_t n; /* number of measured times */
	stat_t ns;
};
/* Why messages are sent again. After other time-outs and errors they are not,
 * because the peer may have got them (lnd/cause.h). */
enum resent {
	RESENT_TIMEOUT, /* LNET_CAUSE_LOCAL_TIMEOUT */
	RESENT_LOCAL,	/* another cause of this node */
	RESENT_REMOTE,	/* LNET_CAUSE_REMOTE_DROPPED */
	RESENT_COUNT
};
struct traffic_stats {
	struct traffic send, recv, drop;
	stat_t resent[RESENT_COUNT]; /* messages that failed, and went again */
	/* Measured for one in TIMES_EVERY PUTs and GETs: the time from the
	 * beginning until the message was sent, and until its ACK or REPLY
	 * came. */
	struct times sending, answered;
};

/* @type must have been checked, as hdr_decode() does. Owner. */
static inline void traffic_add(struct traffic *t, uint32_t type,
			       uint32_t length)
{
	stat_inc(&t->count[type]);
	stat_add(&t->length, length);
}

/* Owner. */
static inline void times_add(struct times *t, uint64_t ns)
{
	stat_inc(&t->n);
	stat_add(&t->ns, ns);
}

/* Is the time of the message that @t has just counted to be measured? That is
 * so for one message in TIMES_EVERY. */
#define TIMES_EVERY 16
static inline bool times_is_turn(const struct traffic *t, uint32_t type)
{
	return stat_get(&t->count[type]) % TIMES_EVERY == 0;
}

/* Resets all counters except those that tell what is alive now. Owner. */
void cpt_stats_reset(struct lnet_cpt *cpt);

/* Add the counters in @t to the second argument. Any thread. */
void traffic_sum(const struct traffic *t, struct ulnet_counts *counts);
void times_sum(const struct times *t, struct ulnet_times *times);
void resent_sum(const struct traffic_stats *t, struct ulnet_resends *by);
uint64_t resends_total(const struct ulnet_resends *by);
uint64_t counts_total(const struct ulnet_counts *counts);
/* Sets all counters to 0. Owner. */
void traffic_reset(struct traffic_stats *t);

/* Returns the counter of sends that fail with @cause, or STAT_COUNT if there is
 * none. */
enum lnet_stat stat_of_cause(enum ulnet_cause cause);
/* A message that has failed with @cause is sent again. */
enum resent resent_by(enum ulnet_cause cause);

#endif
