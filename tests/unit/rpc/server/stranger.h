/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of RPC that a test plays with raw LNet messages: it sends exactly
 * what the test tells it to, valid or not, and records the replies and control
 * messages that it gets. */
#ifndef TESTS_RPC_STRANGER_H
#define TESTS_RPC_STRANGER_H

#include "rpc/wire/wire_put.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/rpc.h"

#define STRANGER_ANSWERS    1024
#define STRANGER_MATCH	    0x1000
#define STRANGER_EXTENSIONS 2560

struct stranger {
	struct lnet *node;
	struct lnet_sim *sim;
	struct ulnet_id server;
	uint8_t client_id[16];
	uint64_t client;     /* its handle, as it tells the server */
	/* handle of the connection, as the server has told it */
	uint64_t connection;
	uint32_t epoch;
	uint32_t portal;
	/* bits of the last message of requests; replies come to them */
	uint64_t match;
	/* If set, rewrites each message into @to before it is sent, and returns
	 * its new length. */
	size_t (*say)(uint64_t *hdr_data, const void *bytes, size_t length,
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
	struct wire_extension extension[STRANGER_EXTENSIONS];
	/* ns: when each of these came */
	uint64_t extended[STRANGER_EXTENSIONS];
	unsigned int messages;			/* messages of replies */
	unsigned int replies;
	struct wire_reply reply[STRANGER_ANSWERS];
	/* match bits that each reply came to */
	uint64_t to[STRANGER_ANSWERS];
	char body[STRANGER_ANSWERS][16]; /* first bytes of its body */
	uint8_t controls_in[4 << 20];
	uint8_t replies_in[4 << 20];
};

void stranger_attach(struct stranger *c, unsigned int portal, uint64_t ignore,
		     void *memory, uint32_t length, ulnet_handler_fn handler);
void stranger_init(struct stranger *c, struct lnet_sim *sim, unsigned int node,
		   unsigned int server);

void stranger_put(struct stranger *c, unsigned int portal, uint64_t match,
		  uint64_t hdr_data, const void *payload, size_t length);
void stranger_control(struct stranger *c, const struct wire_control *m);

/* Sends @m, runs the simulator for 1 ms, and returns the answer; there must be
 * exactly one. */
const struct wire_control *stranger_ask(struct stranger *c,
					const struct wire_control *m);
const struct wire_connected *stranger_connect(struct stranger *c);
const struct wire_opened *stranger_open(struct stranger *c,
					const char *service);
uint32_t stranger_keepalive(struct stranger *c);
void stranger_disconnect(struct stranger *c);
struct wire_call stranger_call_of(uint64_t xid, const char *method,
				  uint32_t length);

/* Sends a Cancel for the @n calls @xids, in the slots that raw_client_call_of()
 * gives them. */
void stranger_cancel(struct stranger *c, const uint64_t *xids, unsigned int n);

/* Encodes a message with @n calls, whose bodies follow one another in @bodies,
 * into @to. Returns its length. */
size_t stranger_pack(struct stranger *c, const struct wire_call *calls,
		     unsigned int n, const void *bodies, uint64_t acked,
		     uint8_t *to, uint64_t *hdr_data);
void stranger_send(struct stranger *c, const struct wire_call *calls,
		   unsigned int n, const void *bodies, uint64_t acked);
void stranger_call(struct stranger *c, uint64_t xid, const char *method,
		   const char *body);

/* Returns the reply to call @xid; there must be exactly one. */
const struct wire_reply *stranger_reply(const struct stranger *c, uint64_t xid);

#endif
