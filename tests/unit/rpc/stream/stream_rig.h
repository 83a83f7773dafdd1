/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams between a real client and a real service, in the simulator. The
 * service "flow" has the methods
 *
 *	list	sends as many numbered messages as the client asks for
 *	sum	reads numbered messages, and answers with how many there were
 *	echo	sends back what comes
 *	park	leaves the stream to the test (stream_rig.parked)
 *	fail	ends at once, with -42 and a text
 *	work	as echo, on a worker that waits
 */
#ifndef TESTS_STREAM_RIG_H
#define TESTS_STREAM_RIG_H

#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/stream.h"

#define PARKED 8

struct stream_rig {
	struct serve_rig s;
	uint64_t reply_bytes_max; /* of the client's node; 0: the default */
	struct ulrpc_streams *streams;
	struct ulrpc_stream_service *service;
	/* streams of park, and what became of them */
	unsigned int nparked;
	struct ulrpc_stream *parked[PARKED];
	unsigned int served;	   /* streams that handlers have got */
	unsigned int served_ended; /* and that are over for them */
	struct ulrpc_stream_outcome served_outcome; /* of the last one */
};

void stream_rig_serve(struct stream_rig *g,
		      const struct ulrpc_stream_service_conf *more);
/* Opens RPC on both nodes, the service, and the client. */
void stream_rig_open(struct stream_rig *g,
		     const struct ulrpc_stream_service_conf *more);
void stream_rig_init(struct stream_rig *g, uint64_t seed, unsigned int cpts);
void stream_rig_fini(struct stream_rig *g);

/* A stream, as the client plays it: sends @to_send numbered messages of @size
 * bytes, checks that what comes is numbered, too, and reads unless it is
 * lazy. */
struct flow {
	struct stream_rig *g;
	struct ulrpc_stream *stream;
	uint32_t to_send, sent;
	uint32_t size;
	uint32_t received;
	bool lazy;
	bool open_ended; /* it does not end its messages */
	unsigned int ended;
	struct ulrpc_stream_outcome outcome;
};

#define FLOW_FOREVER ULRPC_NEVER

/* @f has its settings. @deadline: us. */
void flow_open(struct stream_rig *g, struct flow *f, const char *method,
	       const void *body, size_t length, uint64_t deadline);
/* Reads what has come. */
void flow_read(struct flow *f);
/* Sends what is left, as far as there is credit. */
void flow_send(struct flow *f);
/* Lets time pass until @f is over. */
void flow_finish(struct flow *f);
/* Asserts that @f ended well, with so many messages in both directions. */
void flow_went_well(const struct flow *f, uint32_t sent, uint32_t received);

#endif
