/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client is a suspect if the LND's connection with it has ended while
 * requests of the client were under way: is it still alive? A client that is
 * alive hears of the end, too, and asks over a new connection what has become
 * of its calls (client/severed.h). If nothing comes from it for two seconds
 * (the clients of a busy server may spread their questions over one second),
 * the server sends it a message. If that is refused on each of the client's
 * rails (rails.h), or if the client does not listen and so cannot be reached
 * any more, the client is gone. It is forgotten at once, instead of after its
 * lease: its requests are canceled, and no worker waits for its bulk.
 *
 * A host that answers nothing at all may be cut off for a while only. Its
 * clients are forgotten after the lease. So are clients that vanish without the
 * end of a connection, for example because their host loses power.
 *
 * Bulk that was being moved may be lost with the connection, and is moved again
 * at once: transfers_on_conn_loss().
 *
 * Owner: the CPT of the export.
 */
#ifndef RPC_SUSPECT_H
#define RPC_SUSPECT_H

#include "base/list.h"
#include "ulnet/loop.h"

struct end;
struct export;
struct exports;
struct shard;

/* Of an export. */
struct suspect {
	struct list link; /* suspects.open, unless being asked */
	uint64_t at;	  /* ns: when the connection ended; 0: no suspect */
};

/* Of a CPT. */
struct suspects {
	struct exports *exports;
	struct list open;	  /* of suspect.link, by time */
	struct ulnet_timer timer; /* for the first one */
};

void suspects_init(struct suspects *ds, struct exports *x);
/* No client is asked any more. */
void suspects_stop(struct suspects *ds);
/* A connection with clients of @s has ended, or is silent. */
void suspects_on_end(struct shard *s, const struct end *end);

/* The client of @e is no suspect any more. */
void suspect_end(struct export *e);

#endif
