/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that says what no client does: it is refused, and others do not
 * notice it. */
#include "rpc/stream/stream.h"
#include "rpc/stream/streams.h"
#include "tests/unit/rpc/stream/raw_stream.h"

static void hostile_open(struct hostile *h)
{
	memset(h, 0, sizeof(*h));
	stream_rig_init(&h->g, 1, 1);
	hostile_begin(h);
}

/* An honest client is served, and nothing is left of the hostile one. */
static void hostile_close(struct hostile *h)
{
	struct flow f = { .to_send = 200 };
	struct ulrpc_stream_outcome o;

	flow_open(&h->g, &f, "echo", NULL, 0, MINUTE);
	flow_finish(&f);
	flow_went_well(&f, 200, 200);
	lnet_sim_run(h->g.s.sim, 70 * SEC);
	for (unsigned int i = 0; i < h->g.nparked; i++)
		cr_assert_eq(ulrpc_stream_outcome(h->g.parked[i], &o), 0);
	ulrpc_client_close(h->flow);
	ulrpc_client_close(h->carrier);
	stream_rig_fini(&h->g);
}

/* The push was refused, and the channel has ended. */
static void refused(struct hostile *h, struct called c)
{
	struct ulrpc_stream_outcome o;

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_HANDLER, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.status, -EPROTO);
	cr_assert_eq(ulrpc_stream_outcome(h->g.parked[0], &o), 0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(push(h, h->number, NULL, 0).outcome.status, -ENOENT);
}

Test(hostile_stream, frames_of_unknown_streams)
{
	static const uint32_t kinds[] = { FRAME_MESSAGE, FRAME_CREDIT,
					  FRAME_HALF };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct hostile h;

		hostile_open(&h);
		refused(&h, push_frame(&h, 2, kinds[i], NULL, 0));
		hostile_close(&h);
	}
}

Test(hostile_stream, kinds_that_only_servers_send)
{
	static const uint32_t kinds[] = { 0, FRAME_END, FRAME_KINDS, 255 };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct hostile h;

		hostile_open(&h);
		refused(&h, push_frame(&h, 1, kinds[i], NULL, 0));
		hostile_close(&h);
	}
}

Test(hostile_stream, more_than_it_has_credit_for)
{
	struct hostile h;

	hostile_open(&h);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(
			push_frame(&h, 1, FRAME_MESSAGE, "x", 1).outcome.cause,
			ULRPC_CAUSE_OK);
	refused(&h, push_frame(&h, 1, FRAME_MESSAGE, "x", 1));
	hostile_close(&h);
}

Test(hostile_stream, credit_for_what_was_not_sent)
{
	struct hostile h;
	uint8_t credit[CREDIT_SIZE] = { 0 };

	hostile_open(&h);
	cr_assert_eq(ulrpc_stream_send(h.g.parked[0], "x", 1), 0);
	store_le64(credit, 1);
	store_le64(credit + 8, 1);
	cr_assert_eq(push_frame(&h, 1, FRAME_CREDIT, credit, sizeof(credit))
			     .outcome.cause,
		     ULRPC_CAUSE_OK);
	store_le64(credit, 2);
	refused(&h, push_frame(&h, 1, FRAME_CREDIT, credit, sizeof(credit)));
	hostile_close(&h);
}

Test(hostile_stream, messages_after_the_last_one)
{
	struct hostile h;

	hostile_open(&h);
	cr_assert_eq(push_frame(&h, 1, FRAME_HALF, NULL, 0).outcome.cause,
		     ULRPC_CAUSE_OK);
	refused(&h, push_frame(&h, 1, FRAME_MESSAGE, "x", 1));
	hostile_close(&h);
}

Test(hostile_stream, lengths_that_lie)
{
	struct hostile h;
	uint8_t frame[FRAME_HEAD + 4] = { 0 };

	hostile_open(&h);
	frame_head(frame, 1, FRAME_MESSAGE, 5);
	refused(&h, push(&h, h.number++, frame, sizeof(frame)));
	hostile_close(&h);
	hostile_open(&h);
	frame_head(frame, 1, FRAME_MESSAGE, 4);
	refused(&h, push(&h, h.number++, frame, FRAME_HEAD - 1));
	hostile_close(&h);
	hostile_open(&h);
	refused(&h, push_frame(&h, 1, FRAME_CLOSE, "1234", 4));
	hostile_close(&h);
}

Test(hostile_stream, gaps)
{
	struct hostile h;

	hostile_open(&h);
	/* Early ones wait, up to a bound, each once. */
	for (uint64_t i = 1; i < BATCHES_AHEAD; i++)
		cr_assert_eq(push(&h, i, NULL, 0).outcome.cause,
			     ULRPC_CAUSE_OK);
	refused(&h, push(&h, BATCHES_AHEAD, NULL, 0));
	hostile_close(&h);
	hostile_open(&h);
	cr_assert_eq(push(&h, 1, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	refused(&h, push(&h, 1, NULL, 0));
	hostile_close(&h);
	hostile_open(&h);
	cr_assert_eq(push(&h, 0, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	refused(&h, push(&h, 0, NULL, 0));
	hostile_close(&h);
}

Test(hostile_stream, calls_that_cannot_be_read)
{
	struct hostile h;
	uint8_t body[PULL_SIZE] = { 0 };

	hostile_open(&h);
	cr_assert_eq(call(&h, h.flow, "park", "", 0).outcome.cause,
		     ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(open_raw(&h, 0, 1, MINUTE).outcome.cause,
		     ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(open_raw(&h, 1, 1, MINUTE).outcome.cause,
		     ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(open_raw(&h, 2, 0, MINUTE).outcome.cause,
		     ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(open_raw(&h, 2, 1, 0).outcome.cause,
		     ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(call(&h, h.carrier, STREAM_PULL, body, 8).outcome.cause,
		     ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(call(&h, h.carrier, STREAM_PUSH, body, 8).outcome.cause,
		     ULRPC_CAUSE_BAD_REQUEST);
	/* There is no such channel. */
	cr_assert_eq(call(&h, h.carrier, STREAM_PULL, body, sizeof(body))
			     .outcome.status,
		     -ENOENT);
	hostile_close(&h);
}

/* The server has forgotten the channel, and made it again. */
Test(hostile_stream, another_making)
{
	struct hostile h;

	hostile_open(&h);
	h.making++;
	cr_assert_eq(push(&h, 0, NULL, 0).outcome.status, -ENOENT);
	h.making--;
	cr_assert_eq(push(&h, 0, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	hostile_close(&h);
}

/* More calls are kept than there are places: the oldest are answered. */
Test(hostile_stream, many_pulls)
{
	struct hostile h;
	struct called c[10] = { 0 };
	struct ulrpc_call_conf conf = { .deadline = MINUTE };
	uint8_t body[PULL_SIZE] = { 0 };

	hostile_open(&h);
	store_le64(body, KEY);
	store_le64(body + 8, h.making);
	store_le32(body + 24, UINT32_MAX);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(ulrpc_call(h.carrier, ulrpc_method(STREAM_PULL),
					body, sizeof(body), &conf, on_called,
					&c[i], NULL),
			     0);
	lnet_sim_run(h.g.s.sim, SEC);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(c[i].ended, i < 6);
	lnet_sim_run(h.g.s.sim, 10 * SEC);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(c[i].ended, 1);
	hostile_close(&h);
}

/* The server tells everybody its id: what is derived from that, everybody can
 * choose ids and keys by, so that all hash to one bucket. */
Test(hostile_stream, hashes_that_nobody_can_choose)
{
	struct hostile h;
	const struct ulrpc *rpc;

	hostile_open(&h);
	rpc = h.g.s.rpc[SERVER];
	for (size_t told = 0; told < RPC_ID_SIZE; told += 8) {
		uint64_t seed = load_le64(rpc->server_id + told);
		unsigned int chosen = 0, hit = 0;

		for (uint64_t id = 1; chosen < 64; id++) {
			if (hash_u64(id, seed) & 0xfff)
				continue;
			chosen++;
			hit += !(hash_u64(id, rpc->streams->seed) & 0xfff);
		}
		cr_assert_lt(hit, 8);
	}
	hostile_close(&h);
}

/* ---- what such a client can make the server keep ---- */

/* The channel that the server has. */
static struct channel *channel_of(struct hostile *h)
{
	return list_first(&h->g.s.rpc[SERVER]->streams->channels,
			  struct channel, of_node);
}

static size_t waiting_bytes(struct hostile *h)
{
	struct channel *ch = channel_of(h);
	struct chunk *c;
	size_t n = 0;

	list_for_each_entry (c, &ch->out, link)
		n += c->len - c->off;
	return n;
}

static struct called pull_once(struct hostile *h)
{
	uint8_t body[PULL_SIZE] = { 0 };

	store_le64(body, KEY);
	store_le64(body + 8, h->making);
	store_le32(body + 24, 10);
	return call(h, h->carrier, STREAM_PULL, body, sizeof(body));
}

/* Whoever does not fetch the ends of its streams cannot open more and more. */
Test(hostile_stream, ends_that_nobody_fetches)
{
	struct ulrpc_stream_service_conf conf;
	struct hostile h;
	struct called c;
	const uint8_t read[CLOSE_SIZE] = { 0 };
	uint32_t id = 1;

	ulrpc_stream_service_conf_init(&conf);
	conf.streams_max = 32;
	memset(&h, 0, sizeof(h));
	serve_init(&h.g.s, 1, 1);
	stream_rig_open(&h.g, &conf);
	hostile_begin(&h);
	h.at_once = true;
	while (1) {
		c = open_method(&h, "echo", ++id, 64, MINUTE);
		if (c.outcome.cause == ULRPC_CAUSE_OVERLOADED)
			break;
		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
		cr_assert_lt(id, 32);
		cr_assert_eq(push_frame(&h, id, FRAME_CLOSE, read, sizeof(read))
				     .outcome.cause,
			     ULRPC_CAUSE_OK);
	}
	cr_assert_lt(waiting_bytes(&h), 32 * (FRAME_HEAD + END_SIZE));
	/* It fetches them. */
	cr_assert_eq(pull_once(&h).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(waiting_bytes(&h), 0);
	cr_assert_eq(channel_of(&h)->streams.count, 1);
	cr_assert_eq(open_method(&h, "echo", ++id, 64, MINUTE).outcome.cause,
		     ULRPC_CAUSE_OK);
	hostile_close(&h);
}

/* What was read is told once, however much that is. */
Test(hostile_stream, credit_that_nobody_fetches)
{
	struct hostile h;
	uint8_t frames[64 * (FRAME_HEAD + 4)];

	hostile_open(&h);
	cr_assert_eq(open_method(&h, "sum", 2, 64, MINUTE).outcome.cause,
		     ULRPC_CAUSE_OK);
	for (uint32_t n = 0; n < 64 * 64; n++) {
		uint8_t *p = frames + n % 64 * (FRAME_HEAD + 4);

		frame_head(p, 2, FRAME_MESSAGE, 4);
		store_le32(p + FRAME_HEAD, n);
		if (n % 64 == 63)
			cr_assert_eq(
				push(&h, h.number++, frames, sizeof(frames))
					.outcome.cause,
				ULRPC_CAUSE_OK);
	}
	cr_assert_eq(waiting_bytes(&h), FRAME_HEAD + CREDIT_SIZE);
	/* The next one tells all. */
	cr_assert_eq(pull_once(&h).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(pull_once(&h).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(channel_find(channel_of(&h), 2)->told.messages, 64 * 64);
	hostile_close(&h);
}

/* A batch that does not come, and those that wait for it. */
Test(hostile_stream, a_gap_that_stays)
{
	struct hostile h;
	struct quotas *early;
	struct ulrpc_stream_outcome o;
	struct ulnet_nid nid = nth_id(CALLER).nid;

	hostile_open(&h);
	early = &h.g.s.rpc[SERVER]->streams->early;
	cr_assert_eq(push(&h, 1, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(push(&h, 2, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(quota_used(early, &nid), 2 * BATCH_HEAD);
	cr_assert_eq(push(&h, 0, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(quota_used(early, &nid), 0);
	cr_assert_eq(push(&h, 4, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(open_raw(&h, 2, 64, 10 * MINUTE).outcome.cause,
		     ULRPC_CAUSE_OK);
	/* The client is there all the time. */
	for (int i = 0; i < 80; i++) {
		lnet_sim_run(h.g.s.sim, SEC);
		if (ulrpc_stream_outcome(h.g.parked[1], &o) == 0)
			break;
		cr_assert_eq(pull_once(&h).outcome.cause, ULRPC_CAUSE_OK);
	}
	cr_assert_eq(ulrpc_stream_outcome(h.g.parked[1], &o), 0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_LOST);
	cr_assert_eq(quota_used(early, &nid), 0);
	hostile_close(&h);
}

/* The host has its share of bytes that wait for batches before them; what goes
 * beyond is to be sent again. */
Test(hostile_stream, more_early_than_its_share)
{
	struct hostile h;
	struct quotas *early;

	hostile_open(&h);
	early = &h.g.s.rpc[SERVER]->streams->early;
	early->max = 2 * BATCH_HEAD - 1;
	h.at_once = true;
	cr_assert_eq(push(&h, 1, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(push(&h, 2, NULL, 0).outcome.cause,
		     ULRPC_CAUSE_OVERLOADED);
	cr_assert_eq(early->used, BATCH_HEAD);
	cr_assert_eq(push(&h, 0, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(early->used, 0);
	cr_assert_eq(push(&h, 2, NULL, 0).outcome.cause, ULRPC_CAUSE_OK);
	hostile_close(&h);
}

/* ---- a server that says what no server does ---- */

#define FLOOD	4000 /* messages in a reply */
#define REPLIES 50

struct flooding {
	struct stream_rig g;
	unsigned int nheld; /* calls that get no answer */
	struct ulrpc_request *held[16];
	uint64_t number; /* of the next batch */
	bool begun, empty;
	/* bytes of the only reply, if it is one long message */
	uint32_t length;
	uint32_t window;	     /* bytes, of both sides; 0: the default */
	unsigned int empties;	     /* replies without a batch */
	struct ulrpc_request *first; /* pull call */
};

static void flood_open(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	const struct flooding *fl = arg;
	uint8_t reply[OPENED_SIZE] = { 0 };

	(void)body;
	(void)length;
	store_le32(reply, 64);
	store_le32(reply + 4, MAX(fl->window, 65536u));
	store_le32(reply + 8, ULRPC_FLAVOUR_NONE);
	store_le64(reply + 12, 7);
	ulrpc_reply(r, reply, sizeof(reply));
}

static void flood_push(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	struct flooding *fl = arg;

	(void)body;
	(void)length;
	cr_assert_lt(fl->nheld, ARRAY_SIZE(fl->held));
	fl->held[fl->nheld++] = r;
}

/* A batch of one message of stream 1. */
static void flood_long(struct flooding *fl, struct ulrpc_request *r)
{
	uint8_t *reply = calloc(1, fl->length);

	cr_assert(reply);
	store_le64(reply, fl->number);
	frame_head(reply + BATCH_HEAD, 1, FRAME_MESSAGE,
		   fl->length - BATCH_HEAD - FRAME_HEAD);
	ulrpc_reply(r, reply, fl->length);
	free(reply);
	fl->length = 0;
	fl->begun = true;
	fl->number = REPLIES;
}

/* Messages of stream 2, as many as the client has room for. */
static void flood_pull(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	static uint8_t reply[BATCH_HEAD + FLOOD * FRAME_HEAD];
	struct flooding *fl = arg;
	struct ulrpc_request_info info;
	size_t room;

	(void)body;
	(void)length;
	if (fl->empty) {
		fl->empties++;
		ulrpc_reply(r, NULL, 0);
		return;
	}
	if (fl->length) {
		flood_long(fl, r);
		return;
	}
	if (!fl->begun) {
		cr_assert_null(fl->first);
		fl->first = r;
		return;
	}
	if (fl->number == REPLIES) {
		flood_push(fl, r, NULL, 0);
		return;
	}
	ulrpc_request_info(r, &info);
	room = MIN(info.reply_max, sizeof(reply)) - BATCH_HEAD;
	store_le64(reply, fl->number++);
	for (size_t i = 0; i < room / FRAME_HEAD; i++)
		frame_head(reply + BATCH_HEAD + i * FRAME_HEAD, 2,
			   FRAME_MESSAGE, 0);
	ulrpc_reply(r, reply, BATCH_HEAD + room / FRAME_HEAD * FRAME_HEAD);
}

static void flood_start(struct flooding *fl, const char *name,
			const struct ulrpc_method_conf *methods, unsigned int n)
{
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = name;
	conf.methods = methods;
	conf.nmethods = n;
	conf.request_max = PUSH_HEAD + BATCH_MAX;
	cr_assert_eq(ulrpc_service_start(fl->g.s.rpc[SERVER], &conf, NULL), 0);
}

static void flood_init(struct flooding *fl)
{
	const struct ulrpc_method_conf park = { "park", flood_open, fl,
						.run = ULRPC_RUN_INLINE };
	const struct ulrpc_method_conf carrier[] = {
		{ STREAM_PUSH, flood_push, fl, .run = ULRPC_RUN_INLINE },
		{ STREAM_PULL, flood_pull, fl, .run = ULRPC_RUN_INLINE },
	};
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_streams_conf conf;
	struct stream_rig *g = &fl->g;

	serve_init(&g->s, 1, 1);
	serve_open(&g->s, NULL);
	flood_start(fl, "flow", &park, 1);
	flood_start(fl, RPC_STREAM_CARRIER, carrier, 2);
	cr_assert_eq(ulrpc_open(g->s.node[CALLER], NULL, &g->s.rpc[CALLER]), 0);
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = "flow";
	conf.window_bytes = fl->window;
	cr_assert_eq(ulrpc_streams_open(g->s.rpc[CALLER], &conf, &g->streams),
		     0);
}

/* It goes on and on with a stream that the client has given up, and answers no
 * push: the client does not queue a CLOSE for each message. */
Test(hostile_stream, a_server_that_does_not_stop)
{
	struct flooding fl = { 0 };
	struct flow given_up = { .g = &fl.g, .open_ended = true };
	struct flow other = { .g = &fl.g, .open_ended = true };
	struct channel *ch;
	struct chunk *c;
	size_t n = 0;

	flood_init(&fl);
	flow_open(&fl.g, &other, "park", NULL, 0, FLOW_FOREVER);
	flow_open(&fl.g, &given_up, "park", NULL, 0, 10000);
	flow_finish(&given_up);
	fl.begun = true;
	cr_assert(fl.first);
	flood_pull(&fl, fl.first, NULL, 0);
	for (int i = 0; i < 1000 && fl.number < REPLIES; i++)
		lnet_sim_run(fl.g.s.sim, MSEC);
	cr_assert_eq(fl.number, REPLIES);
	cr_assert_eq(given_up.outcome.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_not(other.ended);
	ch = list_first(&fl.g.s.rpc[CALLER]->streams->channels, struct channel,
			of_node);
	list_for_each_entry (c, &ch->out, link)
		n += c->len - c->off;
	cr_assert_gt(n, 0);
	cr_assert_leq(n, 1100 * (FRAME_HEAD + CLOSE_SIZE));
	for (unsigned int i = 0; i < fl.nheld; i++)
		ulrpc_fail(fl.held[i], -EIO);
	ulrpc_stream_put(other.stream);
	stream_rig_fini(&fl.g);
	cr_assert_eq(other.ended, 1);
}

/* It does not keep a call until there is something to send: its client does not
 * ask it again and again, as fast as both can. */
Test(hostile_stream, a_server_that_has_nothing_at_once)
{
	struct flooding fl = { .empty = true };
	struct flow f = { .g = &fl.g, .open_ended = true };

	flood_init(&fl);
	flow_open(&fl.g, &f, "park", NULL, 0, FLOW_FOREVER);
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_BAD_REPLY);
	cr_assert_leq(fl.empties, 110);
	stream_rig_fini(&fl.g);
}

/* The only stream of a client that has @window, and is sent one batch, @number,
 * of @length bytes. Returns how it ended; ULRPC_CAUSE_OK: it goes on. */
static enum ulrpc_cause after_long(uint32_t window, uint64_t number,
				   uint32_t length, uint32_t *nearly)
{
	struct flooding fl = { .number = number,
			       .length = length,
			       .window = window };
	struct flow f = { .g = &fl.g, .open_ended = true };
	enum ulrpc_cause cause;
	struct channel *ch;

	flood_init(&fl);
	flow_open(&fl.g, &f, "park", NULL, 0, FLOW_FOREVER);
	lnet_sim_run(fl.g.s.sim, SEC);
	ch = list_first(&fl.g.s.rpc[CALLER]->streams->channels, struct channel,
			of_node);
	*nearly = f.ended ? 0 : ch->nearly;
	cause = f.outcome.cause;
	for (unsigned int i = 0; i < fl.nheld; i++)
		ulrpc_fail(fl.held[i], -EIO);
	ulrpc_stream_put(f.stream);
	stream_rig_fini(&fl.g);
	return cause;
}

/* A server makes a client hold no more than its windows say: not even for a
 * batch that comes before its turn, and nothing that could be no batch at all
 * is fetched. */
Test(hostile_stream, a_server_with_long_batches)
{
	uint32_t nearly;

	cr_expect_eq(after_long(0, 1, BATCH_MAX, &nearly), ULRPC_CAUSE_OK);
	cr_expect_eq(nearly, 1);
	cr_expect_eq(after_long(0, 1, BATCH_MAX + 1, &nearly),
		     ULRPC_CAUSE_BAD_REPLY);
	cr_expect_eq(after_long(500000, 1, BATCH_HEAD + FRAME_HEAD + 500000,
				&nearly),
		     ULRPC_CAUSE_OK);
	cr_expect_eq(nearly, 1);
	cr_expect_eq(after_long(500000, 1, BATCH_HEAD + FRAME_HEAD + 500001,
				&nearly),
		     ULRPC_CAUSE_BAD_REPLY);
	cr_expect_eq(after_long(1 << 20, 1, BATCH_LONG, &nearly),
		     ULRPC_CAUSE_OK);
	cr_expect_eq(after_long(1 << 20, 0, ULRPC_BODY_MAX + 1, &nearly),
		     ULRPC_CAUSE_TOO_LONG);
}

/* ---- those of earlier releases, which say nothing of long messages ---- */

Test(hostile_stream, a_server_without_long_messages)
{
	struct flooding fl = { .window = 1 << 20 };
	struct flow f = { .g = &fl.g, .open_ended = true };
	static const uint8_t body[ULRPC_STREAM_MESSAGE_MAX + 1];

	flood_init(&fl);
	flow_open(&fl.g, &f, "park", NULL, 0, FLOW_FOREVER);
	lnet_sim_run(fl.g.s.sim, SEC);
	cr_expect_eq(ulrpc_stream_message_max(f.stream),
		     ULRPC_STREAM_MESSAGE_MAX);
	cr_expect_eq(ulrpc_stream_send(f.stream, body, sizeof(body)),
		     -EMSGSIZE);
	cr_expect_eq(ulrpc_stream_send(f.stream, body, sizeof(body) - 1), 0);
	lnet_sim_run(fl.g.s.sim, SEC);
	for (unsigned int i = 0; i < fl.nheld; i++)
		ulrpc_fail(fl.held[i], -EIO);
	ulrpc_fail(fl.first, -EIO);
	ulrpc_stream_put(f.stream);
	stream_rig_fini(&fl.g);
}

Test(hostile_stream, a_client_without_long_messages)
{
	struct ulrpc_stream_service_conf conf;
	struct hostile h;
	struct called c;

	ulrpc_stream_service_conf_init(&conf);
	conf.window_bytes = 1 << 20;
	memset(&h, 0, sizeof(h));
	serve_init(&h.g.s, 1, 1);
	stream_rig_open(&h.g, &conf);
	hostile_begin(&h);
	c = open_raw(&h, 2, 1 << 20, MINUTE);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_expect_eq(load_le32((const uint8_t *)c.reply + 8),
		     ULRPC_FLAVOUR_NONE);
	cr_expect_eq(ulrpc_stream_message_max(h.g.parked[1]),
		     ULRPC_STREAM_MESSAGE_MAX);
	hostile_close(&h);
}
