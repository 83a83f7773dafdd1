/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The imports of a CPT. They are found by their handles, by the NIDs of their
 * servers, and by the primary NID of the NID in use. All state that a CPT has
 * of clients is made and freed here.
 *
 * Owner: the CPT.
 */
#ifndef RPC_IMPORTS_H
#define RPC_IMPORTS_H

#include "base/hash.h"
#include "base/id.h"
#include "rpc/bulk/loss.h"
#include "rpc/give_back.h"
#include "rpc/rpc.h"
#include "rpc/slab.h"

struct conn_event;
struct import;
struct reply_buf_users;
struct ulrpc_call;
struct wire_gone;

/*
 * The id by which servers know an import. A server takes an id for one client
 * with one connection, so no two imports of this process have the same id. Ids
 * are computed with the process's own id as the key, so that no server can
 * compute, from the id that it knows, the ids that other servers know.
 *
 * An id that is to outlive the process (ulrpc_conf.client_id) is computed from
 * the import's target, which is its pid and set of NIDs, and a number. The
 * number tells imports with one target apart; there are several if NIDs have
 * moved between CPTs.
 */
struct import_name {
	struct hash_node by_target; /* node in ulrpc.names */
	bool listed;		    /* is the name in ulrpc.names? */
	/* tells imports with the same target apart; from 0 */
	uint32_t number;
	uint8_t id[RPC_ID_SIZE];
};

/*
 * Cancels: calls of an import that end without an answer after they were sent.
 * The server is told of them, so that it does not begin to execute them, and
 * their handlers can stop. One message tells of all calls that end in one turn.
 * If the message is lost, the server learns the same from the next call in the
 * slot.
 */
struct cancels {
	struct list link; /* node in imports.canceling, if @n is not 0 */
	/* array of WIRE_ENTRIES_MAX; NULL: nothing was canceled yet */
	struct wire_gone *list;
	unsigned int n;
};

/*
 * What an import does when an LND's connection to its server was lost, or is
 * silent: requests or replies may be lost with it. The import stays connected,
 * as the server may be reached by other rails. It asks about the calls that
 * were sent over the LND's connection, and repeats the fetching of long
 * replies, without waiting until they are late. Calls that this misses are
 * asked about when they are late.
 *
 * It does so after a random pause, because all clients of a server lose it at
 * the same moment: about a round trip, or longer if the server has many
 * clients. The pause doubles with each loss in a row without an answered call
 * between. An import asks at most 100 times a second, however often connections
 * are lost.
 */
struct import_conn_loss {
	struct conn_loss last;
	/* ns: when the import last asked about calls */
	uint64_t asked;
	/* fires when the import may ask about calls */
	struct ulnet_timer timer;
};

/* The memory for replies that are fetched (fetch.h). */
struct reply_room {
	uint64_t used, max; /* bytes */
	/* bytes of @used that servers have only because they had nothing */
	uint64_t extra;
	uint64_t taken;	     /* bytes that all fetches together have taken */
	struct list waiting; /* of fetch.wait, in the order of their arrival */
	struct ulnet_work work;
	bool given;	    /* is @work posted? */
	/* long bodies of fetches that are over: they take room until they have
	 * been given back */
	struct give_back bodies;
	unsigned int looks; /* how often @work has run */
};

/* All state that a CPT has of clients, with the memory for their calls. */
struct imports {
	struct shard *shard;
	struct list canceling; /* of import.cancels */
	struct ulnet_work cancel_work;
	bool cancel_given; /* is cancel_work posted? */
	struct id_table handles;
	struct hash by_nids; /* of import.hash */
	/* Where a new import begins to number its calls: above the numbers of
	 * imports that have gone, and of earlier processes with the same id. */
	uint64_t xid;
	struct hash by_nid; /* of import.by_nid */
	struct list all;
	uint64_t hash_seed;
	/* while a sealed message is handled: the import whose server has sent
	 * it; else NULL */
	struct import *proved;
	struct slab slab;    /* memory for calls, batches and replies */
	struct list batches; /* of batch.all: all batches */
	struct list fetches; /* of fetch.link: all fetches */
	struct reply_room reply_room;
	/* while a caller is told of a reply that was fetched: its fetch */
	struct fetch *told;
	const struct reply_buf_users *reply_buf_users;
};

extern const struct rpc_part import_part;

/* Tag of imports' handles; the number of the CPT is added to it. */
#define IMPORT_TAG 0x49

/* Adds @fresh to the tables, and sets *@imp_p to it. If the tables have an
 * import with the same target, frees @fresh instead, and sets *@imp_p to that
 * import. Returns 0; or -ENOMEM or -ENOSPC: @fresh is still the caller's. */
int import_attach(struct import *fresh, struct import **imp_p) must_check;
/* Called when the last client has left: ends and frees the import. */
void import_close(struct import *imp);
/* Returns the import with @handle on the wire; NULL: there is none. */
struct import *import_find(struct shard *s, uint64_t handle);

/* Makes imp->nids[@nid] the NID in use. */
void imports_use_nid(struct import *imp, unsigned int nid);
/* Looks up again to which peer the NID in use belongs. */
void imports_renew_nid(struct import *imp);
/* Called when the node with the NID @nid has sent something: calls
 * import_on_sign() for each import that uses a NID of that node. */
void imports_on_sign(struct shard *s, const struct ulnet_nid *nid);
/* What rpc_side.on_conn_event calls: connections of the LND have ended, or are
 * silent. */
void imports_on_end(struct shard *s, const struct conn_event *end);
/* What rpc_side.on_keys calls. */
void imports_on_keys(struct shard *s, const struct keys *keys);

/* Called when @call, which holds a slot, is about to end without an answer:
 * tells the server at the end of this turn. */
void cancel_call(const struct ulrpc_call *call);
/* Frees what import_new() has made. Any thread. */
void import_free(struct import *imp);

#endif
