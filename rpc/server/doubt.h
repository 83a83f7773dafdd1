/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients a connection of which has ended, that of the LND, while requests of
 * theirs are under way. A client that is there hears of that, too, and asks
 * what has become of its calls (client/severed.h), over a new connection. If
 * nothing has come from it for two seconds (of which clients of a busy server
 * may spread their questions over one), it is sent a word. When that is refused
 * by each of its rails (rails.h), or the client does not listen and so has no
 * connection any more, the client is gone, and is forgotten at once, instead of
 * after its lease: its requests are canceled, and no worker waits for its bulk.
 *
 * A host that answers nothing may just be cut off for a while. It, and whoever
 * vanishes without the end of a connection, as a host that loses its power, is
 * forgotten after the lease.
 *
 * Bulk that was being moved may be lost with the connection, and is moved again
 * at once: transfers_severed().
 *
 * Owner: the CPT of the export.
 */
#ifndef RPC_DOUBT_H
#define RPC_DOUBT_H

#include "base/list.h"
#include "ulnet/loop.h"

struct end;
struct export;
struct exports;
struct shard;

/* Of an export, as long as it is in doubt. */
struct doubt {
	struct export *export;
	struct list link; /* doubts.open; not while it is asked */
	uint64_t at;	  /* ns: when the connection ended */
};

/* Of a CPT. */
struct doubts {
	struct exports *exports;
	struct list open;	  /* of doubt.link, by time */
	struct ulnet_timer timer; /* for the first one */
};

void doubts_init(struct doubts *ds, struct exports *x);
/* No client is asked any more. */
void doubts_stop(struct doubts *ds);
/* A connection with clients of @s has ended, or is silent. */
void doubts_on_end(struct shard *s, const struct end *end);

/* @e is not in doubt any more. */
void doubt_end(struct export *e);

#endif
