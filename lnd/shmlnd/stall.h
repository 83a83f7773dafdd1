/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the peer do what this side waits for? A connection has a shm_stall for
 * each thing that it may wait for, since a peer that goes on with one of them
 * says nothing of the others. It is looked at SHM_STALL_LOOKS times in the
 * longest time that the peer may need, and the peer has stalled if nothing has
 * moved from one look to the next for so many looks. A look that comes late
 * does not count: this process was stopped, or did not poll, and may not have
 * done its own part. No time is kept, and nothing is done for each message.
 */
#ifndef LND_SHMLND_STALL_H
#define LND_SHMLND_STALL_H

#include "base/util.h"

#define SHM_STALL_LOOKS 4

struct shm_stall {
	bool waits;	    /* at the last look */
	uint32_t mark;	    /* likewise */
	unsigned int looks; /* in a row at which nothing had moved */
};

/* A look. @waits: this side waits for the peer; @mark: a number that changes
 * whenever the peer goes on; @late: the look should have been earlier. Returns
 * whether the peer has stalled. */
bool shm_stall_look(struct shm_stall *s, bool waits, uint32_t mark, bool late);

#endif
