/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Suspects: clients that may be gone, because the LND's connection with them
 * was lost while requests of theirs were under way. A client that is alive
 * learns of the loss, too, and asks over a new connection what has become of
 * its calls. If nothing comes from it for two seconds, the server probes it
 * with a message. If all rails of the client (rails.h) refuse the probe, or the
 * client does not listen and so cannot be reached any more, it is gone, and
 * forgotten at once instead of after its lease: its requests are canceled, and
 * no worker waits for its bulk.
 *
 * A client whose host answers nothing at all may be cut off for a while only,
 * and is forgotten after its lease. So is one that vanishes without the loss of
 * a connection, for example because its host loses power.
 *
 * Bulk that was being moved over the lost connection is moved again at once.
 *
 * Owner: the CPT of the export.
 */
#ifndef RPC_SUSPECT_H
#define RPC_SUSPECT_H

#include "base/list.h"
#include "ulnet/loop.h"

struct conn_event;
struct export;
struct exports;
struct shard;

/* Of an export. */
struct suspect {
	struct list link; /* suspects.waiting; empty: it is being probed */
	uint64_t at;	  /* ns: when the connection was lost; 0: no suspect */
};

/* Of a CPT. */
struct suspects {
	struct list waiting;	  /* of suspect.link, by time; to be probed */
	struct ulnet_timer timer; /* for the first one */
};

void suspects_init(struct suspects *suspects);
/* rpc_side.on_conn_event */
void suspects_on_conn_event(struct shard *s, const struct conn_event *event);

/* The client of @e is not a suspect, or not any more. */
void suspect_end(struct export *e);

#endif
