/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when a connection is silent: something that was sent has not been
 * acknowledged for longer than usual. The LND supplies the measurements (those
 * of TCP are the system's).
 *
 * The limit is 4 times (srtt + 4 rttvar), but at least path_silent_min and at
 * most path_silent_max. Within path_silent_min TCP repeats a lost segment at
 * least once. The time runs from the first look that finds something
 * unacknowledged.
 *
 * A peer that does not read is not silent: its system, or its device,
 * acknowledges what it has room for.
 */
#ifndef LND_SILENCE_H
#define LND_SILENCE_H

#include "base/util.h"

/* Measurements of a connection with something unacknowledged. Times in ns. */
struct silence_acks {
	bool in_flight;	       /* a segment, or more than one window probe */
	uint64_t srtt, rttvar; /* 0: not measured */
	uint64_t ack_age;      /* since the last acknowledgement of any kind */
};

struct silence_law {
	uint64_t min, max; /* ns; a min of 0: nothing is ever silent */
};

/* The caller sets it to 0 at first, and when everything is acknowledged. */
struct silence {
	uint64_t looked; /* ns: time of the last look; 0: none */
	uint64_t quiet;	 /* ns: how long no acknowledgement was seen */
};

/* How long a connection may be quiet, ns. */
uint64_t silence_allowed(const struct silence_law *law,
			 const struct silence_acks *acks);

/* The time between two looks, ns. */
static inline uint64_t silence_period(const struct silence_law *law)
{
	return law->min / 3;
}

/* Updates srtt and rttvar: an acknowledgement took @ns (RFC 6298). */
void silence_measure(struct silence_acks *acks, uint64_t ns);

/* Looks at @now (ns) whether the connection is silent. To be called every
 * silence_period() while something is unacknowledged. At most one period counts
 * for the time between two looks: if it took longer, this process, or the
 * machine, has been suspended, and so could not see acknowledgements. */
bool silence_look(struct silence *s, const struct silence_law *law,
		  uint64_t now, const struct silence_acks *acks);

#endif
