/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rail that has failed: what was under way by it then may be lost, and is
 * asked about, or begun anew, after a random pause. Pure: any thread.
 */
#ifndef RPC_SEVERED_H
#define RPC_SEVERED_H

#include "base/backoff.h"
#include "ulnet/nid.h"

struct severed {
	uint64_t at;	       /* ns: the last failure */
	struct ulnet_nid rail; /* the peer's NID; ANY: perhaps all */
};

/* @rail has failed at @now. @pending: what was lost before is not dealt with
 * yet; of several rails none is told from the others. */
static inline void severed_note(struct severed *s, const struct ulnet_nid *rail,
				uint64_t now, bool pending)
{
	s->at = now;
	if (!pending)
		s->rail = *rail;
	else if (!lnet_nid_eq(&s->rail, rail))
		s->rail = LNET_NID_ANY;
}

/* Was what was sent at @sent, ns, to @nid (ANY: not known) under way by it? */
static inline bool severed_has(const struct severed *s, uint64_t sent,
			       const struct ulnet_nid *nid)
{
	return sent <= s->at &&
	       (lnet_nid_is_any(&s->rail) || lnet_nid_is_any(nid) ||
		lnet_nid_eq(&s->rail, nid));
}

/* ns: about a round trip of @rtt (0: not known), or up to @spread if that is
 * longer. Longer and longer pauses follow the @n-th failure in a row, of which
 * there are many if the network is at fault. @random: 64 bits. */
static inline uint64_t severed_pause(uint64_t rtt, uint64_t spread,
				     unsigned int n, uint64_t random)
{
	const uint64_t most = 10 * NSEC_PER_MSEC;
	uint64_t base = rtt ? MIN(MAX(rtt, NSEC_PER_MSEC), most) : most;
	const struct backoff_law law = {
		.base = MAX(base, spread),
		.cap = MAX(100 * NSEC_PER_MSEC, spread),
	};

	return backoff_pause(&law, n, random);
}

#endif
