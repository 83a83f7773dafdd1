/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slowest calls, or requests, of a service on one CPT, in the last minutes,
 * and where their time went: a table of a fixed size. What is not slower than
 * the least slow entry of a full table does not enter it, which is all that a
 * call costs. Nothing is allocated.
 *
 * Calls that end in one turn and are alike (rpc/run.h) count as one, of which
 * the first is in the table. A table is for SLOW_WINDOW; the one before it is
 * kept, so that there are always entries of SLOW_WINDOW or more.
 *
 * Owner: the CPT, also for reading.
 */
#ifndef RPC_SLOW_H
#define RPC_SLOW_H

#include "base/util.h"
#include "ulnet/nid.h"

#define SLOW_PLACES 8
#define SLOW_WINDOW (UINT64_C(120) * NSEC_PER_SEC)
#define SLOW_TIMES  8  /* as many as a call, or a request, has */
#define SLOW_NAME   64 /* bytes of the name of a peer; it is cut off there */
#define SLOW_TRACE  26

struct slow_entry {
	/* ns: when the call or request ended; in a sum over CPTs, how long ago
	 */
	uint64_t ended;
	/* ns: by enum stat_call_time, or enum stat_request_time */
	uint64_t times[SLOW_TIMES];
	uint32_t known;	 /* which times are known: bits */
	uint32_t method; /* its number */
	unsigned int end;
	/* of calls: as in struct ulrpc_outcome */
	uint32_t attempts, retries, refusals;
	struct ulnet_id peer; /* the server of a call, or the client */
	char name[SLOW_NAME]; /* what the peer has proved to be; "": nothing */
	bool traced;	      /* trace is set */
	uint8_t trace[SLOW_TRACE];
};

struct slow_table {
	unsigned int n;
	struct slow_entry entries[SLOW_PLACES]; /* in no order */
};

/* Zeroed memory is empty. */
struct slow {
	/* ns: the least total time in @now if it is full; else 0 */
	uint64_t least;
	uint64_t until; /* ns: when the window of @now ends */
	struct slow_table now, before;
};

/* Is what ends @now, after @total ns, to be given to slow_add()? */
static inline bool slow_enters(const struct slow *sl, uint64_t total,
			       uint64_t now)
{
	return unlikely(total > sl->least) || unlikely(now >= sl->until);
}

/* Adds @e if it is slow enough. It has ended now. */
void slow_add(struct slow *sl, const struct slow_entry *e);
/* Adds what ended in the last two windows before @now, ns, to the sum @to. */
void slow_merge(struct slow *to, const struct slow *from, uint64_t now);
/* Sorts the entries of a sum: the slowest first. */
void slow_sort(struct slow *sum);

#endif
