/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silence: something was sent, and is not acknowledged for longer than it
 * usually takes on this connection. Knows nothing of connections: whoever has
 * them says how they do (TCP measures it itself).
 *
 * A connection may be silent for 4 times (srtt + 4 rttvar), but not for less
 * than path_silent_min, in which TCP has repeated what was lost at least once,
 * nor for more than path_silent_max. It costs nothing while all is
 * acknowledged: the time runs from the first look at which something is not.
 *
 * Who does not read is not silent: the peer's system, or its device,
 * acknowledges what it has room for.
 */
#ifndef LND_SILENCE_H
#define LND_SILENCE_H

#include "base/util.h"

/* What is known of a connection with something unacknowledged. Times in ns. */
struct silence_acks {
	bool in_flight; /* a segment, or more than one question for room */
	uint64_t srtt, rttvar; /* 0: not measured */
	uint64_t ack_age;      /* since the last acknowledgement of any kind */
};

struct silence_law {
	uint64_t min, max; /* ns; a min of 0: nothing is ever silent */
};

/* All 0 at first, and whenever all is acknowledged. */
struct silence {
	uint64_t looked; /* ns: when it was looked at last; 0: never */
	uint64_t quiet;	 /* ns: for so long, as far as it was looked at */
};

/* How long there may be silence, ns. */
uint64_t silence_allowed(const struct silence_law *law,
			 const struct silence_acks *acks);

/* How long to wait between two looks, ns. */
static inline uint64_t silence_period(const struct silence_law *law)
{
	return law->min / 3;
}

/* An acknowledgement took @ns: srtt and rttvar follow (RFC 6298). */
void silence_measure(struct silence_acks *acks, uint64_t ns);

/* A look at @now (ns), at which something is not acknowledged that was not at
 * the look before either. Is it silent? Between two looks no more than a period
 * counts: if there was more, this process, or all of the machine, has stood
 * still, and acknowledgements with it. */
bool silence_look(struct silence *s, const struct silence_law *law,
		  uint64_t now, const struct silence_acks *acks);

#endif
