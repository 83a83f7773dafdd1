/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of streams that makes their calls itself, and says in them what the
 * test tells it to. */
#ifndef TESTS_RAW_STREAM_H
#define TESTS_RAW_STREAM_H

#include "rpc/stream/frame.h"
#include "rpc/text.h"
#include "tests/unit/rpc/stream/stream_rig.h"

#define MINUTE UINT64_C(60000000) /* us */
#define KEY    UINT64_C(0x1234)

struct hostile {
	struct stream_rig g;
	struct ulrpc_client *flow, *carrier;
	uint64_t making;
	uint64_t number; /* of the next batch */
	/* calls that are refused as overloaded are not made again */
	bool at_once;
};

static inline struct called call(struct hostile *h, struct ulrpc_client *client,
				 const char *method, const void *body,
				 size_t length)
{
	struct ulrpc_retry retry = { .tell_overloaded = h->at_once };
	struct ulrpc_call_conf conf = { .deadline = MINUTE, .retry = &retry };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(client, ulrpc_method(method), body, length,
				&conf, on_called, &c, NULL),
		     0);
	while (!c.ended)
		lnet_sim_run(h->g.s.sim, MSEC);
	return c;
}

static inline struct called open_method(struct hostile *h, const char *method,
					uint32_t id, uint32_t window,
					uint64_t time_left)
{
	uint8_t body[OPEN_HEAD] = { 0 };

	store_le64(body, KEY);
	store_le32(body + 8, id);
	store_le32(body + 12, window);
	store_le32(body + 16, window);
	store_le64(body + 24, time_left);
	return call(h, h->flow, method, body, sizeof(body));
}

static inline struct called open_raw(struct hostile *h, uint32_t id,
				     uint32_t window, uint64_t time_left)
{
	return open_method(h, "park", id, window, time_left);
}

/* Pushes a batch of @length bytes. */
static inline struct called push(struct hostile *h, uint64_t number,
				 const uint8_t *frames, size_t length)
{
	uint8_t body[BATCH_MAX] = { 0 };

	store_le64(body, KEY);
	store_le64(body + 8, h->making);
	store_le64(body + PUSH_HEAD, number);
	if (length)
		memcpy(body + (PUSH_HEAD + BATCH_HEAD), frames, length);
	return call(h, h->carrier, STREAM_PUSH, body,
		    (PUSH_HEAD + BATCH_HEAD) + length);
}

static inline struct called push_frame(struct hostile *h, uint32_t stream,
				       uint32_t kind, const void *body,
				       uint32_t length)
{
	uint8_t frame[FRAME_HEAD + 64] = { 0 };

	frame_head(frame, stream, kind, length);
	if (length)
		memcpy(frame + FRAME_HEAD, body, length);
	return push(h, h->number++, frame, FRAME_HEAD + length);
}

/* The streams' server is running: opens the clients, and stream 1 of method
 * park. */
static inline void hostile_begin(struct hostile *h)
{
	struct called c;

	h->flow = serve_client_of(h->g.s.rpc[CALLER], "flow");
	h->carrier = serve_client_of(h->g.s.rpc[CALLER], RPC_STREAM_CARRIER);
	c = open_raw(h, 1, 64, MINUTE);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(c.length, OPENED_SIZE);
	h->making = load_le64((const uint8_t *)c.reply + 12);
}

#endif
