/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a server sees of many clients that fail at the same moment, by the law
 * of their pauses alone (base/backoff.h): no network, no queue, no turns.
 */
#ifndef BENCH_HERD_LAW_H
#define BENCH_HERD_LAW_H

#include "base/backoff.h"

#define HERD_BIN     (10 * NSEC_PER_MSEC)
#define HERD_RETRIES 8

/* How many come at a time. */
struct herd_wave {
	unsigned int n;	   /* in all */
	unsigned int peak; /* within the worst HERD_BIN */
	double mean;	   /* s: when, on average */
};

struct herd_conf {
	struct backoff_law law;
	unsigned int clients;
	uint64_t least; /* ns that each attempt is waited for, at least */
	uint64_t seed;
};

/* All lose a message at time 0, and each of its repetitions, too:
 * waves[n] is of retry n, 1 to HERD_RETRIES. */
void herd_lose(const struct herd_conf *conf,
	       struct herd_wave waves[HERD_RETRIES + 1]);
/* All lose their connections at time 0, and try to connect until the server is
 * back, at @back: when they come, counted from then. */
struct herd_wave herd_reconnect(const struct herd_conf *conf, uint64_t back);

#endif
