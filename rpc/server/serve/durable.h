/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Durable services remember beyond their own end which requests they have
 * executed. In the transaction with the effects of a request, the handler also
 * stores the reply (ulrpc_request_record(3)), under the client's id and the
 * slot of the call. A client that has lost its server sends the call again to
 * the server that has the store now, and that server answers from the store.
 * This applies to methods that are to be executed exactly once.
 *
 * For each key of a store, at most one request is under way: otherwise the
 * record of an older request, which its client has given up, might replace that
 * of a newer one. The keys of requests under way are in a table with a lock,
 * because a client may come back by another CPT, and a request that is LOST
 * ends on any thread, perhaps after its service, and even after RPC. The table
 * exists as long as RPC or any key in it.
 */
#ifndef RPC_DURABLE_H
#define RPC_DURABLE_H

#include "base/hash.h"
#include "rpc/rpc.h"
#include "rpc/server/session/client_ids.h"
#include "rpc/wire/wire.h"
#include "ulnet/service.h"

struct ulrpc_request;
struct ulrpc_service;
struct wire_call;
struct wire_moved;
struct wire_opened;

/* What a service keeps for durability. */
struct durables {
	/* immutable after start: */
	/* conf.lookup is NULL if the service is not durable */
	struct ulrpc_durable conf;
	/* the incarnation of the store; random if the service is not durable */
	uint8_t incarnation[RPC_ID_SIZE];
};

struct durable_keys;

/* What a request of a durable service has in addition. */
struct durable {
	struct hash_node hash;
	/* the table that has the key of this request */
	struct durable_keys *keys;
	uint8_t store[RPC_ID_SIZE];
	uint8_t key[ULRPC_RECORD_KEY];
	/* the store has to be asked whether the request was executed before */
	bool look;
	/* the request was executed before, and is answered from the store */
	bool replayed;
	bool proven; /* the store says that the request has not been executed */
	/* the value that is to be stored, or from which the request is
	 * answered; NULL: none */
	void *value;
};

/* Returns a table with the reference of RPC; NULL: no memory. @seed: random, so
 * that nobody can choose keys that hash to one bucket. */
struct durable_keys *durable_keys_new(uint64_t seed);
/* Drops the reference of RPC. @keys may be NULL. */
void durable_keys_put(struct durable_keys *keys);

/* Copies @conf. NULL: the service is not durable. */
void durables_init(struct durables *d, const struct ulrpc_durable *conf);
/* Sets the incarnation, before the first request. Owner of @s. */
void durables_draw(struct durables *d, struct shard *s);
/* Fills in @out with what a client is told about the durability of the service.
 * Any thread. */
void durables_tell(const struct durables *d, struct wire_opened *out);

/* Does the store of @svc know whether @c was executed? That is so if both the
 * method and the caller say exactly once. */
bool durable_knows(const struct ulrpc_service *svc, const struct wire_call *c);

/* Sets r->durable if a record of @r is to be stored. @r has come as @c from the
 * client @client. Returns 0; -EBUSY: another request with the same key
 * is under way; -ENOMEM. */
int durable_begin(struct ulrpc_request *r, const struct wire_call *c,
		  const struct client_id *client) must_check;
/* Called when another attempt of @r's call has come as @c: sets r->resent if @c
 * says that the call was sent before. */
void durable_again(struct ulrpc_request *r, const struct wire_call *c);
/* Asks the store whether @r was executed before, if that is possible. Returns
 * true if @r has been answered, and is gone. Called on the thread that is to
 * run the handler. */
bool durable_answers(struct ulrpc_request *r);
/* Frees r->durable, which is not NULL. Any thread. */
void durable_end(struct ulrpc_request *r);
/* Does what durable_end() does, and counts a request that was replayed. Owner.
 */
void durable_finish(struct ulrpc_request *r);

/* ---- what is stored ---- */

/*
 * The value that is stored for a request: the reply, and the checksums of the
 * data that was put to the caller's sinks, so that the caller can check whether
 * the sinks still hold it. Little endian:
 *
 *	4  version: 2, or, if the reply has an annex, 3, which releases before
 *	   annexes do not know
 *	4  CRC32C of all that follows; in version 3 it goes on from the CRC 3
 *	4  the reply's status, a positive errno or 0
 *	8  xid of the call
 *	4  number of sinks; for each of them
 *		4  index
 *		4  n, segments that were put to
 *		4  1: their lengths follow; 0: each is whole
 *		n * 4  checksums
 *		n * 4  lengths, or nothing
 *	   the reply's body
 *
 * Any thread.
 */
struct stored {
	uint64_t xid;
	uint32_t error; /* status of the reply: a positive errno, or 0 */
	bool annexed;	/* the body has an annex, which has the error, too */
	const uint8_t *body;
	size_t length;
};

/* Returns the value for the reply @s and the @nmoved sinks @moved. It has
 * *@length_p bytes, and is freed by free(). NULL: no memory. */
void *stored_new(const struct stored *s, const struct wire_moved *moved,
		 unsigned int nmoved, size_t *length_p);
/* Reads @value, which is aligned as by malloc(), into @out. out->body points
 * into @value. To be called only once for each value, because it converts the
 * tables in @value to this machine's byte order. Returns 0; -EPROTONOSUPPORT: a
 * later release has written @value; -EBADMSG: @value cannot be read. */
int stored_read(void *value, size_t length, struct stored *out) must_check;
/* Fills in up to ULRPC_BULKS_MAX entries of @out from @value, which
 * stored_read() has read. The entries borrow from @value. Returns how many
 * there are. */
unsigned int stored_moved(const void *value, struct wire_moved *out);

#endif
