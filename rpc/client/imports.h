/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The imports of a CPT. They are found by their handles, by the NIDs of their
 * servers, and by the primary NID of the server NID in use. They are told
 * together when rails have failed. All client state of the CPT begins and ends
 * with them.
 *
 * Owner: the CPT.
 */
#ifndef RPC_IMPORTS_H
#define RPC_IMPORTS_H

#include "base/hash.h"
#include "base/id.h"
#include "rpc/bulk/severed.h"
#include "rpc/rpc.h"
#include "rpc/slab.h"

struct end;
struct import;
struct reply_buf_users;
struct ulrpc_call;
struct wire_gone;

/*
 * The id by which servers know an import. For a server an id is one client with
 * one connection, so no two imports of this process have the same. Each is
 * computed with the process's own id as the key: a server that has been told
 * one of them cannot tell those that other servers know.
 *
 * An id that is to outlive the process is computed from the target, which is
 * the set of NIDs that its clients name, and so is the same in the next
 * process. If there is an import to that target already (perhaps on another
 * CPT, as NIDs move between CPTs), a new one counts as the target's second, or
 * third.
 */
struct import_name {
	struct hash_node by_target; /* ulrpc.names */
	bool listed;
	uint32_t number; /* among those of its target, from 0 */
	uint8_t id[RPC_ID_SIZE];
};

/*
 * Calls of an import that end without an answer after they were sent: their
 * server is told that nobody waits. So it does not execute calls that it has
 * not begun, and handlers that serve one can stop. Those of one turn travel
 * together. A server that is not told learns the same from the next call in the
 * slot.
 */
struct cancels {
	struct list link;	/* imports.canceling, if n is not 0 */
	struct wire_gone *list; /* WIRE_ENTRIES_MAX of them; NULL: never used */
	unsigned int n;
};

/*
 * A connection of the LND to the server of an import has ended, or nothing
 * comes back over it any more: requests or replies may be lost with it. The
 * import stays as it is, for one rail is not the server. But the server is
 * asked at once about the calls that were sent that way until then, instead of
 * when their time has passed; and long replies that were being fetched that way
 * are fetched again. This is a hint only: what it misses is found out when the
 * time has passed.
 *
 * At once means after a random pause, because all clients of a server lose it
 * in the same moment. The pause is about a round trip, or longer if the server
 * has many clients, and doubles with each end in a row without an answered call
 * between; an import asks so at most 100 times a second, however often
 * connections end.
 */
struct import_severed {
	struct severed last;
	uint64_t asked;		  /* ns: when calls were asked about for one */
	struct ulnet_timer timer; /* they are to be */
};

/* All client state of a CPT, and the memory that calls are made from. */
struct imports {
	struct shard *shard;
	struct list canceling; /* import.cancels */
	struct ulnet_work cancel_work;
	bool telling; /* cancel_work has been given */
	struct id_table handles;
	struct hash by_nids;
	/* Where the numbers of the next import begin: above those of imports
	 * that have gone, and of processes before with this one's id. */
	uint64_t xid;
	struct hash by_nid; /* import.by_nid */
	struct list all;
	uint64_t hash_seed;
	struct slab slab;    /* calls, batches, replies */
	struct list batches; /* batch.all: all there are */
	struct list fetches; /* fetch.link: all there are */
	const struct reply_buf_users *reply_buf_users;
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

/* From now on imp->nids[@nid] is the NID in use. */
void imports_use_nid(struct import *imp, unsigned int nid);
/* The NID in use may belong to another peer by now: if so, the import is found
 * by that peer's primary NID from now on. */
void imports_renew_nid(struct import *imp);
/* The node with this NID has sent something: imports that wait before they try
 * it again, try now. */
void imports_on_sign(struct shard *s, const struct ulnet_nid *nid);
/* Connections of the LND have ended, or are silent: rpc_side.on_end. */
void imports_on_end(struct shard *s, const struct end *end);

/* @call, which holds a slot, is about to end without an answer. */
void cancel_call(const struct ulrpc_call *call);
/* Any thread: frees what import_new() has made, and the import's id. */
void import_free(struct import *imp);

#endif
