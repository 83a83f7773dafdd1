/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server played by the test: raw LNet buffers on the control portal and on a
 * service's portal, which answer as struct fake says. Node 0 is a client that
 * uses the real library, node 1 is this server.
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

/* A call or query that has arrived. */
struct arrived {
	uint64_t match, xid, client;
	uint32_t epoch, attempt, method, length, flags, reply_max;
	uint32_t priority, semantics, slot, reply_limit;
	uint64_t remaining, timeout;
	bool traced;
	uint64_t bulk_match; /* match bits of its first bulk */
	uint8_t body[64];    /* the beginning of the body */
	struct ulnet_nid source, local;
	uint32_t pid;
};

struct fake {
	struct lnet *node;
	/* how the server answers */
	bool mute_connect, mute_open, mute_alive, mute_calls, mute_queries;
	/* 0: it answers queries that the call needs an hour more */
	uint32_t query_status;
	uint32_t connect_status, open_status, call_status, alive_status;
	uint32_t retry_after; /* us */
	uint32_t window, request_max, message_max;
	uint32_t request_limit; /* 0: it takes no bodies that are lent */
	uint64_t keepalive; /* us, in its Connected */
	/* us: for how long, it says, it has not known the client */
	uint64_t unknown_for;
	/* us: the times that it reports for each call */
	uint64_t queue, service;
	/* us: the estimate that it sends with replies; 0: none */
	uint64_t estimate;
	uint8_t id; /* of the server: changes when it restarts */
	/* it never says that it knew the client before */
	bool forgets;
	/* change the server's answers before they are sent; or NULL */
	void (*on_connected)(struct fake *f, struct wire_connected *c);
	void (*on_opened)(struct fake *f, struct wire_opened *o);
	/* encodes the server's messages; or NULL */
	size_t (*rewrite)(uint64_t *hdr_data, const void *bytes, size_t length,
			  uint8_t *to);
	/* what the server has received */
	unsigned int connects, opens, keepalives, disconnects, answers;
	unsigned int messages;
	uint32_t most;	     /* calls in the longest of these messages */
	uint32_t epoch;	     /* of the last Connect */
	uint64_t connection; /* which its Connected has named */
	void *memory[2];
	unsigned int ncalls;
	struct arrived calls[CALLS_SEEN];
	unsigned int nqueries;
	struct arrived queries[CALLS_SEEN];
};

void fake_put(struct fake *f, struct ulnet_nid self, struct ulnet_id to,
	      unsigned int portal, uint64_t match, uint64_t hdr_data,
	      const void *bytes, size_t length);

/* Sends a reply to the call or query @a, with @status and @body. */
void fake_answer(struct fake *f, const struct arrived *a, uint32_t status,
		 const void *body, size_t length);

/* Sends a reply to @a, with call_status and, if that is OK, the request's body.
 */
void fake_echo(struct fake *f, const struct arrived *a);

/* Sends an extension: the call of @a needs @us more. */
void fake_extend(struct fake *f, const struct arrived *a, uint64_t us);

struct fake *fake_new(struct lnet *node);

/* Called after the node of @f has ended. */
void fake_free(struct fake *f);

#endif
