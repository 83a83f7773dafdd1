/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection of the LND to a server has ended, or nothing comes back over it
 * any more: requests or replies may be lost with it. The import stays as it is,
 * for one rail is not the server. But the server is asked at once about the
 * calls that were sent that way until then, instead of when their time has
 * passed; and long replies that were being fetched that way are fetched again.
 * This is a hint only: what it misses is found out when the time has passed.
 *
 * At once means after a random pause, because all clients of a server lose it
 * in the same moment. The pause is about a round trip, or longer if the server
 * has many clients, and doubles with each end in a row without an answered call
 * between; an import asks so at most 100 times a second, however often
 * connections end.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_SEVERED_H
#define RPC_CLIENT_SEVERED_H

#include "ulnet/loop.h"

struct end;
struct import;
struct shard;

struct severed {
	uint64_t at;		  /* ns: the last end */
	struct ulnet_nid rail;	  /* the server's NID; ANY: perhaps all */
	uint64_t asked;		  /* ns: when calls were asked about for one */
	struct ulnet_timer timer; /* they are to be */
};

static inline void severed_init(struct severed *s)
{
	lnet_timer_init(&s->timer, NULL);
}

/* Owner of @s. */
void severed_on_end(struct shard *s, const struct end *end);

/* Is the rail to this NID (ANY: not known) the one that has failed? */
static inline bool severed_is_at(const struct severed *s,
				 const struct ulnet_nid *nid)
{
	return lnet_nid_is_any(&s->rail) || lnet_nid_is_any(nid) ||
	       lnet_nid_eq(&s->rail, nid);
}

#endif
