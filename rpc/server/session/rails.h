/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rails of clients: the NIDs that each export was heard from, and the
 * exports of each NID. A client may send over any of the NIDs of its peer. As
 * discovery may not know yet, or never, which NIDs belong to one peer, the NIDs
 * that a client has sent a Connect from are its own, too: nobody else knows its
 * id. All messages of a client count for the host that it connected from last,
 * whatever rail they take.
 *
 * The notifier tells clients that accept no connections when an NI of this node
 * goes down, or comes back: such a client leaves that rail at once, instead of
 * after a timeout. Discovery does not know these clients, and they can hear of
 * this node's NIs only over connections that they have made themselves. So the
 * notifier sends to every NID that such a client was heard from (lnet_tell(3)).
 * At most NOTIFIER_SLICE clients are told in a millisecond. A notification that
 * is lost is not repeated.
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

/* Rails of one export, at most: as many as the NIDs that a client may name of a
 * server. One more rail replaces the one that was heard from longest ago, which
 * is counted. The client may then have to connect again from the NID that was
 * replaced. */
#define EXPORT_RAILS_MAX ULRPC_NIDS_MAX

/* clients that are told in one go; between two goes there is a pause of 1 ms */
#define NOTIFIER_SLICE 32

/* The rails of all exports of a CPT. */
struct rails {
	struct shard *shard;
	struct hash by_nid;
	uint64_t seed;
	/* ns: when it was last logged that a client has too many rails; 0:
	 * never */
	uint64_t logged_at;
	/* armed while there are clients to be told */
	struct ulnet_timer notifier;
	/* the position in exports.table that the notifier has reached */
	uint32_t notifier_pos;
};

struct export_rail {
	/* node in export.rails; the rail that was heard from last is at the end
	 */
	struct list link;
	struct hash_node hash; /* node in rails.by_nid */
	struct export *export;
	struct ulnet_nid nid;
	/* another CPT owns the NID, or did when rails_look() last looked */
	bool far;
};

/* @seed: random, so that nobody can choose NIDs that hash to one bucket. */
void rails_init(struct rails *rs, struct shard *s, uint64_t seed);
/* To be called when all exports are dropped. */
void rails_fini(struct rails *rs);

/* Called when @e has been heard from @nid: notes @nid, unless there is no
 * memory. Returns whether @nid is new. */
bool rails_hear(struct rails *rs, struct export *e,
		const struct ulnet_nid *nid);
/* Looks up again which of @e's NIDs other CPTs own, as that may have changed.
 * Called once per keepalive of each client. */
void rails_look(struct rails *rs, const struct export *e);
/* Has @e been heard from @nid? */
bool rails_know(const struct export *e, const struct ulnet_nid *nid);
/* Sets *@nid to another NID that @e was heard from, the last one of several.
 * Returns false if there is none. */
bool rails_other(const struct export *e, struct ulnet_nid *nid);
/* Forgets @nid, by which @e cannot be reached. Returns whether @e has another
 * rail. */
bool rails_leave(struct rails *rs, struct export *e,
		 const struct ulnet_nid *nid);
/* Forgets all rails of @e. */
void rails_drop(struct rails *rs, struct export *e);

/* Calls @fn(e, @arg) for each export that was heard from @nid. @fn must neither
 * add nor drop rails. */
void rails_each_at(struct rails *rs, const struct ulnet_nid *nid,
		   void (*fn)(struct export *e, void *arg), void *arg);

/* What rpc_side.on_changed calls: begins to notify clients. */
void notifier_begin(struct shard *s);

#endif
