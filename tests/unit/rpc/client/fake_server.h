/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that is played by hand: raw LNet buffers on the control portal and
 * on a service's, which answer as they are told to. Node 0 is a client by the
 * real library, node 1 is the server.
 */
#ifndef TESTS_FAKE_SERVER_H
#define TESTS_FAKE_SERVER_H

#include "rpc/client/import.h"
#include "rpc/wire/wire.h"
#include "rpc/wire/wire_put.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/rpc.h"

#define CLIENT	   0
#define SERVER	   1
#define PORTAL	   40
#define HANDLE	   UINT64_C(0x5e54e4)
#define CALLS_SEEN 512
#define FAKE_BUF   (1u << 20)

/* A call that arrived. */
struct arrived {
	uint64_t match, xid, client;
	uint32_t epoch, attempt, method, length, flags, reply_max;
	uint32_t priority, semantics, slot;
	uint64_t remaining, timeout;
	uint64_t bulk_match; /* of its first bulk */
	uint8_t body[64];    /* the beginning of it */
	struct ulnet_nid source, local;
	uint32_t pid;
};

struct fake {
	struct lnet *node;
	/* how it behaves */
	bool mute_connect, mute_open, mute_alive, mute_calls, mute_queries;
	uint32_t query_status; /* 0: the call is being served, for hours */
	uint32_t connect_status, open_status, call_status, alive_status;
	uint32_t retry_after; /* us */
	uint32_t window, request_max, message_max;
	uint64_t keepalive; /* us */
	uint64_t unknown_for; /* us: it says, when a connection is not known */
	uint64_t queue, service; /* us: it says of calls */
	uint64_t estimate;	 /* us: it says with replies; 0: nothing */
	uint8_t id;		 /* changes with a restart */
	bool forgets;		 /* it never says that it knew the client */
	/* change its answers before they are sent; or NULL */
	void (*on_connected)(struct fake *f, struct wire_connected *c);
	void (*on_opened)(struct fake *f, struct wire_opened *o);
	/* encodes them; or NULL */
	size_t (*say)(uint64_t *hdr_data, const void *bytes, size_t length,
		      uint8_t *to);
	/* what it has seen */
	unsigned int connects, opens, keepalives, disconnects, answers;
	unsigned int messages;
	uint32_t most;	     /* calls in one of them */
	uint32_t epoch;	     /* of the last Connect */
	uint64_t connection; /* its answer */
	void *memory[2];
	unsigned int ncalls;
	struct arrived calls[CALLS_SEEN];
	unsigned int nqueries;
	struct arrived queries[CALLS_SEEN];
};

void fake_put(struct fake *f, struct ulnet_nid self, struct ulnet_id to,
	      unsigned int portal, uint64_t match, uint64_t hdr_data,
	      const void *bytes, size_t length);

/* A reply to @a, with a body. */
void fake_answer(struct fake *f, const struct arrived *a, uint32_t status,
		 const void *body, size_t length);

/* The reply has the request's body. */
void fake_echo(struct fake *f, const struct arrived *a);

/* An extension: the call of @a needs @us more. */
void fake_extend(struct fake *f, const struct arrived *a, uint64_t us);

struct fake *fake_new(struct lnet *node);

/* After its node. */
void fake_free(struct fake *f);

#endif
