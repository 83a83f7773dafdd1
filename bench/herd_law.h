/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes when clients that failed at the same moment come back, by the law of
 * their pauses alone (base/backoff.h): without network, queues or turns.
 */
#ifndef BENCH_HERD_LAW_H
#define BENCH_HERD_LAW_H

#include "base/backoff.h"

#define HERD_BIN     (10 * NSEC_PER_MSEC)
#define HERD_RETRIES 8

/* How many clients come at a time. */
struct herd_wave {
	unsigned int n;	   /* in all */
	unsigned int peak; /* within the worst HERD_BIN */
	double mean;	   /* s: average time at which they come */
};

struct herd_conf {
	struct backoff_law law;
	unsigned int clients;
	uint64_t least; /* ns: how long an attempt is waited for at least */
	uint64_t seed;
};

/* All clients lose a message at time 0, and all its repetitions: waves[n] is of
 * retry n, 1 to HERD_RETRIES. */
void herd_lose(const struct herd_conf *conf,
	       struct herd_wave waves[HERD_RETRIES + 1]);
/* All clients lose their connections at time 0, and try to connect until the
 * server is back, at @back. Returns when they come, counted from @back. */
struct herd_wave herd_reconnect(const struct herd_conf *conf, uint64_t back);

#endif
