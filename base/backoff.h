/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The law of pauses between attempts: full jitter. The first pause is drawn
 * from (0, base]; with each failure in a row the range doubles, up to a
 * ceiling. So parties that failed at the same moment spread themselves over the
 * whole range, and the ceiling is the longest that anybody waits once an
 * attempt would succeed.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include "base/util.h"

/* The pause after failure number @attempt in a row (the first one: 0), ns: at
 * least 1, at most @ceiling_ns. @base_ns and @ceiling_ns: not 0; a base above
 * the ceiling counts as the ceiling. @random: 64 random bits. */
static inline uint64_t backoff_ns(uint64_t base_ns, uint64_t ceiling_ns,
				  unsigned int attempt, uint64_t random)
{
	uint64_t range = MIN(base_ns, ceiling_ns);

	/* Doubling must not overflow, however many failures there were. */
	if (attempt < 64 && range <= ceiling_ns >> attempt)
		range <<= attempt;
	else
		range = ceiling_ns;
	return random % range + 1;
}

#endif
