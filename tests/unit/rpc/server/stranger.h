/* SPDX-License-Identifier: BSD-3-Clause */
/* A client played by hand: it says what it is told to, right or wrong, and
 * notes what it is answered. */
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
	uint64_t client;     /* its handle */
	uint64_t connection; /* what the server said */
	uint32_t epoch;
	uint32_t portal;
	uint64_t match; /* of the last request */
	/* says it in another way; or NULL */
	size_t (*say)(uint64_t *hdr_data, const void *bytes, size_t length,
		      uint8_t *to);
	bool careless; /* replies may be for another client */
	unsigned int controls;
	struct wire_control control; /* the last one */
	unsigned int extends;	     /* messages */
	uint64_t rtt;		     /* us: it says; 0: nothing */
	uint64_t keepalive;	     /* us: it wishes; 0: nothing */
	unsigned int nextensions;    /* in them; the first ones: */
	struct wire_extension extension[STRANGER_EXTENSIONS];
	uint64_t extended[STRANGER_EXTENSIONS]; /* when, ns */
	unsigned int messages;			/* of replies */
	unsigned int replies;
	struct wire_reply reply[STRANGER_ANSWERS];
	uint64_t to[STRANGER_ANSWERS];	 /* match value that it came to */
	char body[STRANGER_ANSWERS][16]; /* its beginning */
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

/* Asks, lets it happen, and returns the answer, which there must be. */
const struct wire_control *stranger_ask(struct stranger *c,
					const struct wire_control *m);
const struct wire_connected *stranger_connect(struct stranger *c);
const struct wire_opened *stranger_open(struct stranger *c,
					const char *service);
uint32_t stranger_keepalive(struct stranger *c);
void stranger_disconnect(struct stranger *c);
struct wire_call stranger_call_of(uint64_t xid, const char *method,
				  uint32_t length);

/* The calls of these numbers, in the slots that stranger_call_of() gives them,
 * are over. */
void stranger_cancel(struct stranger *c, const uint64_t *xids, unsigned int n);

/* A message with these calls, whose bodies stand one behind the other. Returns
 * its length. */
size_t stranger_pack(struct stranger *c, const struct wire_call *calls,
		     unsigned int n, const void *bodies, uint64_t acked,
		     uint8_t *to, uint64_t *hdr_data);
void stranger_send(struct stranger *c, const struct wire_call *calls,
		   unsigned int n, const void *bodies, uint64_t acked);
void stranger_call(struct stranger *c, uint64_t xid, const char *method,
		   const char *body);

/* The reply to it: exactly one. */
const struct wire_reply *stranger_reply(const struct stranger *c, uint64_t xid);

#endif
