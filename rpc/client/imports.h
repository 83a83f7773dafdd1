/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The imports of a CPT: found by their handles, by the NIDs of their servers,
 * and by the primary NID of the NID in use. All client state of the CPT begins
 * and ends with them.
 *
 * Owner: the CPT.
 */
#ifndef RPC_IMPORTS_H
#define RPC_IMPORTS_H

#include "base/hash.h"
#include "base/id.h"
#include "rpc/bulk/loss.h"
#include "rpc/rpc.h"
#include "rpc/slab.h"

struct conn_event;
struct import;
struct reply_buf_users;
struct ulrpc_call;
struct wire_gone;

/*
 * The id by which servers know an import. To a server an id is one client with
 * one connection, so no two imports of this process have the same. Ids are
 * computed with the process's own id as the key: a server cannot tell from its
 * id those that other servers know.
 *
 * An id that is to outlive the process (ulrpc_conf.client_id) is computed from
 * the target, which is the set of NIDs, and a number among the imports to that
 * target, of which there are several if NIDs have moved between CPTs.
 */
struct import_name {
	struct hash_node by_target; /* ulrpc.names */
	bool listed;		    /* there */
	uint32_t number;	    /* among those of its target, from 0 */
	uint8_t id[RPC_ID_SIZE];
};

/*
 * Cancels: calls of an import that end without an answer after they were sent.
 * The server is told, so that it does not begin to execute them, and handlers
 * can stop. Those of one turn travel together. If the message is lost, the
 * server learns the same from the next call in the slot.
 */
struct cancels {
	struct list link;	/* imports.canceling, if n is not 0 */
	struct wire_gone *list; /* WIRE_ENTRIES_MAX of them; NULL: never used */
	unsigned int n;
};

/*
 * What an import does when an LND's connection to its server was lost, or is
 * silent, and requests or replies perhaps with it. The import stays connected,
 * for one rail is not the server. It asks about the calls that were sent over
 * that connection, and repeats the fetching of long replies, instead of waiting
 * until their time has passed, which finds out what this misses.
 *
 * It does so after a random pause, because all clients of a server lose it at
 * the same moment: about a round trip, or longer if the server has many
 * clients. The pause doubles with each loss in a row without an answered call
 * between. An import asks at most 100 times a second, however often connections
 * are lost.
 */
struct import_conn_loss {
	struct conn_loss last;
	uint64_t asked;		  /* ns: the last round of asking */
	struct ulnet_timer timer; /* the next one */
};

/* All client state of a CPT, and the memory that calls are made from. */
struct imports {
	struct shard *shard;
	struct list canceling; /* import.cancels */
	struct ulnet_work cancel_work;
	bool cancel_given; /* cancel_work has been given */
	struct id_table handles;
	struct hash by_nids; /* import.hash */
	/* Where a new import begins to number its calls: above the numbers of
	 * imports that have gone, and of earlier processes with the same id. */
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

/* Adds @fresh to the tables, or frees it if there is one with the same target;
 * *@imp_p is the one that is there. -ENOMEM, -ENOSPC: @fresh is still the
 * caller's. */
int import_attach(struct import *fresh, struct import **imp_p) must_check;
/* The last client has left: ends and frees the import. */
void import_close(struct import *imp);
/* The import with this handle on the wire, or NULL. */
struct import *import_find(struct shard *s, uint64_t handle);

/* From now on imp->nids[@nid] is the NID in use. */
void imports_use_nid(struct import *imp, unsigned int nid);
/* Looks up again to which peer the NID in use belongs. */
void imports_renew_nid(struct import *imp);
/* The node with this NID has sent something: import_on_sign() for imports that
 * use a NID of it. */
void imports_on_sign(struct shard *s, const struct ulnet_nid *nid);
/* Connections of the LND have ended, or are silent: rpc_side.on_conn_event. */
void imports_on_end(struct shard *s, const struct conn_event *end);

/* @call, which holds a slot, is about to end without an answer: tells the
 * server at the end of this turn. */
void cancel_call(const struct ulrpc_call *call);
/* Frees what import_new() has made. Any thread. */
void import_free(struct import *imp);

#endif
