/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of RPC that a test plays with raw LNet messages: it sends exactly
 * what the test tells it to, valid or not, and records the replies and control
 * messages that it gets. */
#ifndef TESTS_RPC_RAW_CLIENT_H
#define TESTS_RPC_RAW_CLIENT_H

#include "rpc/wire/wire_put.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/rpc.h"

#define RAW_CLIENT_ANSWERS    1024
#define RAW_CLIENT_MATCH      0x1000
#define RAW_CLIENT_EXTENSIONS 2560
#define RAW_CLIENT_ROOM	      (4U << 20) /* bytes, for each of both below */

struct raw_client {
	struct lnet *node;
	struct lnet_sim *sim;
	struct ulnet_id server;
	uint8_t client_id[16];
	uint64_t client; /* its handle, as it tells the server */
	/* handle of the connection, as the server has told it */
	uint64_t connection;
	uint32_t epoch;
	uint32_t portal;
	bool numbers; /* it names services by their numbers */
	/* the number of the service, as the server has told it; 0: none */
	uint32_t number;
	/* bits of the last message of requests; replies come to them */
	uint64_t match;
	/* If set, rewrites each message into @to before it is sent, and returns
	 * its new length. */
	size_t (*rewrite)(uint64_t *hdr_data, const void *bytes, size_t length,
			  uint8_t *to);
	bool careless; /* accepts replies that name another client */
	unsigned int controls;
	struct wire_control control; /* the last one but for Extends */
	unsigned int extends;	     /* messages of kind Extend */
	/* us: round trip that it reports; 0: none */
	uint64_t rtt;
	/* us: keepalive that it asks for; 0: none */
	uint64_t keepalive;
	/* extensions in all Extends; the first ones are in extension[] */
	unsigned int nextensions;
	struct wire_extension extension[RAW_CLIENT_EXTENSIONS];
	/* ns: when each of these came */
	uint64_t extended[RAW_CLIENT_EXTENSIONS];
	unsigned int messages; /* messages of replies */
	unsigned int replies;
	struct wire_reply reply[RAW_CLIENT_ANSWERS];
	/* match bits that each reply came to */
	uint64_t to[RAW_CLIENT_ANSWERS];
	char body[RAW_CLIENT_ANSWERS][16]; /* first bytes of its body */
	/* What comes is written there. It is mapped: what is static is read
	 * by each search for leaks. */
	uint8_t *controls_in, *replies_in;
};

void raw_client_attach(struct raw_client *c, unsigned int portal,
		       uint64_t ignore, void *memory, uint32_t length,
		       ulnet_handler_fn handler);
void raw_client_init(struct raw_client *c, struct lnet_sim *sim,
		     unsigned int node, unsigned int server);

void raw_client_put(struct raw_client *c, unsigned int portal, uint64_t match,
		    uint64_t hdr_data, const void *payload, size_t length);
void raw_client_control(struct raw_client *c, const struct wire_control *m);

/* Sends @m, runs the simulator for 1 ms, and returns the answer; there must be
 * exactly one. */
const struct wire_control *raw_client_ask(struct raw_client *c,
					  const struct wire_control *m);
const struct wire_connected *raw_client_connect(struct raw_client *c);
const struct wire_opened *raw_client_open(struct raw_client *c,
					  const char *service);
uint32_t raw_client_keepalive(struct raw_client *c);
void raw_client_disconnect(struct raw_client *c);
struct wire_call raw_client_call_of(uint64_t xid, const char *method,
				    uint32_t length);

/* Sends a Cancel for the @n calls @xids, in the slots that raw_client_call_of()
 * gives them. */
void raw_client_cancel(struct raw_client *c, const uint64_t *xids,
		       unsigned int n);

/* Encodes a message with @n calls, whose bodies follow one another in @bodies,
 * into @to. Returns its length. */
size_t raw_client_pack(struct raw_client *c, const struct wire_call *calls,
		       unsigned int n, const void *bodies, uint64_t acked,
		       uint8_t *to, uint64_t *hdr_data);
void raw_client_send(struct raw_client *c, const struct wire_call *calls,
		     unsigned int n, const void *bodies, uint64_t acked);
void raw_client_call(struct raw_client *c, uint64_t xid, const char *method,
		     const char *body);

/* Returns the reply to call @xid; there must be exactly one. */
const struct wire_reply *raw_client_reply(const struct raw_client *c,
					  uint64_t xid);

#endif
