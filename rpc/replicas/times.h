/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long calls of each method take. From this follows after which time a call
 * is made at a second server, too; how many may be is counted for each method,
 * so that one that is slow does not take what others have saved up. Owner: the
 * CPT of the set.
 */
#ifndef RPC_REPLICAS_TIMES_H
#define RPC_REPLICAS_TIMES_H

#include "base/list.h"
#include "base/util.h"

/* Methods of one set whose times are kept, at most; calls of other methods are
 * not hedged. */
#define TIMES_METHODS 64
/* With fewer answers than this, nothing is known of a method. */
#define TIMES_MIN 20u

struct times {
	struct list methods; /* of times_method.link */
	unsigned int n;
};

void times_init(struct times *t);
void times_free(struct times *t);
/* Adds the time of a call: @ns. @slower: at a server that is slower than the
 * others, which counts for times_usual() only. Returns true if the method was
 * not known before. */
bool times_add(struct times *t, uint32_t method, uint64_t ns, bool slower);
/* Returns the mean time, in ns, of the last calls; 0: it is not known. */
uint64_t times_usual(const struct times *t, uint32_t method);
/* Returns how many calls may be hedged now, in thousandths, which the caller
 * counts; NULL: the method is not known. */
unsigned int *times_hedges(struct times *t, uint32_t method);
/* Returns the time, in ns, within which 19 of 20 of the last calls have ended
 * that were not at a slower server; TIME_NEVER: it is not known. */
uint64_t times_most(const struct times *t, uint32_t method);

#endif
