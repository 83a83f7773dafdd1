/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The imports of a CPT, found by their handles, by the NIDs of their servers,
 * and by the primary NID of that one that is in use. With them begins and ends
 * all that is a client's on the CPT.
 *
 * Owner: the CPT.
 */
#ifndef RPC_IMPORTS_H
#define RPC_IMPORTS_H

#include "base/hash.h"
#include "base/id.h"
#include "rpc/rpc.h"
#include "rpc/slab.h"

struct import;
struct reply_buf_users;

/* Also what the calls of clients are made of. */
struct imports {
	struct shard *shard;
	struct list canceling; /* import.cancels */
	struct ulnet_work cancel_work;
	bool telling; /* that is under way */
	struct id_table handles;
	struct hash by_nids;
	/* Where the numbers of the next import begin: above those of imports
	 * that have gone, and of processes before with this one's id. */
	uint64_t xid;
	struct hash by_nid; /* import.by_nid */
	struct list all;
	uint64_t hash_seed;
	struct slab slab;	       /* calls, parcels, replies */
	struct list parcels;	       /* parcel.link: all there are */
	struct list reply_bufs;	       /* reply_buf.link: no longer kept */
	const struct reply_buf_users *reply_buf_users;
	struct list fetches;	       /* fetch.link: all there are */
};

extern const struct rpc_part import_part;

#define IMPORT_TAG 0x49 /* of handles: with the CPT in them */

/* The CPT of the import with this handle, which a stranger may have made up:
 * perhaps there is no such CPT. */
static inline unsigned int import_cpt(uint64_t handle)
{
	return (uint8_t)(id_tag(handle) - IMPORT_TAG);
}

/* Makes @fresh known, or frees it and finds the one that is known already.
 * -ENOMEM, -ENOSPC: @fresh is still the caller's. */
int import_attach(struct import *fresh, struct import **imp_p) must_check;
/* The last client has left: frees the import. */
void import_close(struct import *imp);
/* The import with this handle on the wire, or NULL. */
struct import *import_find(struct shard *s, uint64_t handle);

/* From now on nids[@nid] of its NIDs is the one in use. */
void imports_use_nid(struct import *imp, unsigned int nid);
/* The NID in use may belong to another peer by now: then the import is found by
 * that one from now on. */
void imports_renew_nid(struct import *imp);
/* For each import that uses a NID of the peer that has @nid, as of its last
 * imports_renew_nid(); @fn changes none of that. */
void imports_each_at(struct shard *s, const struct ulnet_nid *nid,
		     void (*fn)(struct import *imp, void *arg), void *arg);
/* For each whose server has NIDs that other CPTs may own. */
void imports_each_far(struct shard *s,
		      void (*fn)(struct import *imp, void *arg), void *arg);
/* The node with this NID has sent something: whoever waits to try it, tries. */
void imports_on_sign(struct shard *s, const struct ulnet_nid *nid);

#endif
