/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIDs that clients are heard from: those of an export, and the exports of
 * a NID. A client with several rails sends over any of them. Its NIDs are those
 * of the peer that has connected. But discovery may not know yet which NIDs
 * belong to one peer, or never know it if the client only calls. So the NIDs
 * that a client has sent a Connect from are its own, too: nobody else knows its
 * id. Its messages count for the host that it connected from last, whatever
 * rail they take.
 *
 * Notifies clients that accept no connections when an NI of this node goes, or
 * comes back. Discovery does not know such clients: they hear of this node's
 * NIs over the connections that they have made themselves, or not at all. So
 * each of them is told at every NID that it has been heard from (lnet_tell(3)).
 * It then leaves a rail that has gone at once, instead of after a timeout.
 *
 * At most NOTIFIER_SLICE clients are told in a millisecond, so that calls go on
 * meanwhile. A notification that is lost is not repeated: that client has to
 * notice by itself.
 *
 * Owner: the CPT of the exports.
 */
#ifndef RPC_RAILS_H
#define RPC_RAILS_H

#include "base/hash.h"
#include "base/list.h"
#include "ulnet/loop.h"
#include "ulnet/nid.h"
#include "ulnet/rpc.h"

struct export;
struct exports;
struct shard;

/* Of one export: as many as a client may name of a server. One more takes the
 * place of the one that was heard from longest ago, which is counted. If the
 * forgotten NID was known from a Connect only, the client has to connect from
 * it again. */
#define EXPORT_RAILS_MAX ULRPC_NIDS_MAX

/* Of a CPT. */
struct rails {
	struct shard *shard;
	struct hash by_nid;
	uint64_t seed;
	uint64_t said; /* ns: last warning of too many; or 0 */
};

struct export_rail {
	struct list link;      /* export.rails, by when it was heard of */
	struct hash_node hash; /* rails.by_nid */
	struct export *export;
	struct ulnet_nid nid;
	bool far; /* another CPT owns it, or did when that was looked up */
};

/* @seed: random. */
void rails_init(struct rails *rs, struct shard *s, uint64_t seed);
/* There is no export any more. */
void rails_fini(struct rails *rs);

/* @e has been heard from @nid, which is forgotten if there is no memory.
 * Returns whether @nid is new. */
bool rails_hear(struct rails *rs, struct export *e,
		const struct ulnet_nid *nid);
/* Looks up again which of @e's NIDs other CPTs own, as that may have changed.
 * Once per keepalive of each client. */
void rails_look(struct rails *rs, const struct export *e);
bool rails_know(const struct export *e, const struct ulnet_nid *nid);
/* @e cannot be reached by @nid. Returns whether it has another rail. */
bool rails_leave(struct rails *rs, struct export *e,
		 const struct ulnet_nid *nid);
/* Forgets all rails of @e. */
void rails_drop(struct rails *rs, struct export *e);

/* Calls @fn for each export that was heard from @nid; @fn neither adds nor
 * drops any. */
void rails_each_at(struct rails *rs, const struct ulnet_nid *nid,
		   void (*fn)(struct export *e, void *arg), void *arg);

/* ---- notification ---- */

#define NOTIFIER_SLICE 32

struct notifier {
	struct exports *exports;
	struct ulnet_timer timer; /* armed while there are some to be told */
	uint32_t pos;		  /* in exports.table */
};

void notifier_init(struct notifier *notifier, struct exports *x);
void notifier_stop(struct notifier *notifier);

/* The node's NIs, or their states, have changed: begins to notify clients. */
void notifier_begin(struct shard *s);

#endif
