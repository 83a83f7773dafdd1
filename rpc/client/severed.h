/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection of the LND to a server has ended, and requests or replies that
 * it had taken may be lost with it. The import stays as it is; but the server
 * is asked at once about the calls that were sent until then, and for the long
 * replies that are being fetched, instead of when their time has passed. This
 * is a hint only: whatever it misses is found out by that time.
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

struct import;

struct severed {
	uint64_t at;		  /* ns: the last end */
	uint64_t asked;		  /* ns: when calls were asked about for one */
	struct ulnet_timer timer; /* they are to be */
};

void severed_init(struct severed *s);
/* imports.watch: connections to @peer have ended. */
void severed_on_peer(struct ulnet_peer_watch *watch,
		     const struct ulnet_id *peer);

#endif
