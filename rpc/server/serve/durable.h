/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services that remember beyond their own end which requests they have
 * executed. In the transaction with the effects of a request, its handler also
 * stores the reply (ulrpc_request_record(3)), under the client's id and the
 * slot of the call. A client that has lost its server sends the call again to
 * the server that has the store now, which answers from there.
 *
 * For each key of a store, at most one request is under way. Otherwise the
 * record of an older request, which its client has given up, might replace the
 * record of a newer one. The keys of requests under way are in a table behind a
 * lock, because a client may come back by way of another CPT, and a request
 * that is lost ends on any thread. Such a request may end after its service,
 * when another service has the store, and even after RPC: the table lives as
 * long as any of them.
 *
 * Only requests of methods that are to be executed exactly once have anything
 * to do with this.
 */
#ifndef RPC_DURABLE_H
#define RPC_DURABLE_H

#include "base/hash.h"
#include "rpc/rpc.h"
#include "rpc/wire/wire.h"
#include "ulnet/service.h"

struct ulrpc_request;
struct ulrpc_service;
struct wire_call;
struct wire_moved;
struct wire_opened;

/* Of a service. */
struct durables {
	struct ulrpc_durable conf; /* immutable after start; lookup NULL: the
				    * service is not durable */
	uint8_t incarnation[RPC_ID_SIZE]; /* and this */
};

struct durable_keys;

/* Of a request. */
struct durable {
	struct hash_node hash;
	struct durable_keys *keys; /* where it is */
	uint8_t store[RPC_ID_SIZE];
	uint8_t key[ULRPC_RECORD_KEY];
	bool look;     /* it may have been executed before: the store knows */
	bool replayed; /* it has been, and is answered from there */
	bool proven;   /* it has not been: the store has said so */
	void *value;   /* to be stored, or replayed */
};

/* NULL: no memory. @seed: random. */
struct durable_keys *durable_keys_new(uint64_t seed);
/* RPC ends. NULL is fine. */
void durable_keys_put(struct durable_keys *keys);

/* @conf NULL: the service is not durable. 0, -EINVAL. */
int durables_init(struct durables *d, const struct ulrpc_durable *conf);
/* Draws what is random, before the first request. Owner of @s. */
void durables_draw(struct durables *d, struct shard *s);
/* What a client is told of the service. Any thread. */
void durables_tell(const struct durables *d, struct wire_opened *out);

/* Does the store of @svc know whether the call was executed? Only if the caller
 * has asked for exactly once: the others do not mind whether the service has
 * come back with another store. */
bool durable_knows(const struct ulrpc_service *svc, const struct wire_call *c);

/* Sets r->durable if @r is to be stored. @r has come as @c from the client with
 * this id. -EBUSY: another request of its key is under way; -ENOMEM. */
int durable_begin(struct ulrpc_request *r, const struct wire_call *c,
		  const uint8_t client_id[RPC_ID_SIZE]) must_check;
/* Another attempt of @r's call has come as @c: sets r->resent, as does
 * durable_begin(). */
void durable_again(struct ulrpc_request *r, const struct wire_call *c);
/* Asks the store, if that is due. True: @r has been answered from there, and is
 * gone. On the thread that is to run the handler. */
bool durable_answers(struct ulrpc_request *r);
/* What was put to the caller's sinks when the request of @x, which is replayed,
 * was executed: up to ULRPC_BULKS_MAX entries, borrowed from @x. */
unsigned int durable_moved(const struct durable *x, struct wire_moved *out);
/* @r has ended, and had r->durable. Any thread. */
void durable_end(struct ulrpc_request *r);
/* The same, on its CPT; also counts it. */
void durable_finish(struct ulrpc_request *r);

/* ---- what is stored ---- */

/*
 * What the store of a durable service keeps of a request: the reply, as bytes
 * that a later process can read, with the checksums of what was put to the
 * caller's sinks. With the checksums the caller finds out whether the sinks
 * still hold that. Little endian:
 *
 *	4  version
 *	4  CRC32C of all that follows
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
 * Knows nothing of requests, nor of stores. Any thread.
 */
struct stored {
	uint64_t xid;
	uint32_t error; /* the status */
	const uint8_t *body;
	size_t length;
};

/* @s, with the checksums @moved, as *@length_p bytes from malloc(). NULL: no
 * memory. */
void *stored_new(const struct stored *s, const struct wire_moved *moved,
		 unsigned int nmoved, size_t *length_p);
/* Reads @value, which is aligned as malloc() does. Only once for each, as the
 * tables in it are turned into this machine's byte order; out->body points into
 * it. 0; -EBADMSG: it cannot be read; its tables may be half turned. */
int stored_read(void *value, size_t length, struct stored *out) must_check;
/* @value has been read by stored_read(): fills up to ULRPC_BULKS_MAX entries of
 * @out, which borrow from @value, and returns how many there are. */
unsigned int stored_moved(const void *value, struct wire_moved *out);

#endif
