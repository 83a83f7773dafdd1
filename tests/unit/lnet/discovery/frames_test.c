/* SPDX-License-Identifier: BSD-3-Clause */
/* Discovery frame by frame: a node gets what real nodes have sent, and must
 * send what real nodes have sent. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "lnet/message/wire.h"
#include "tests/unit/lnet/discovery/ping_rig.h"
#include "tests/unit/lnet/injector.h"

#define FIRST_SINK 272
/* a few turns of the loop, in which no timer expires */
#define SOON MSEC

struct fx {
	struct injector *in;
	unsigned int seen; /* messages of in->nsent that were looked at */
	bool over;
	int status;
};

static struct fx open_node(const char *a, const char *b)
{
	struct ulnet_nid nids[2] = { nid_of(a), b ? nid_of(b) : nid_of(a) };
	struct ulnet_conf conf;
	struct fx fx = { 0 };

	lnet_conf_init(&conf);
	conf.cpts = 1;
	fx.in = inject_open(&conf, nids, b ? 2 : 1);
	/* For the real nodes discovery was on from the beginning: that it is
	 * turned on here counts as no change. */
	cr_assert_eq(lnet_setting_set(fx.in->node, "discovery", 1), 0);
	atomic_fetch_sub(&fx.in->node->info_version, 1);
	return fx;
}

static void on_discovered(void *arg, int status)
{
	struct fx *fx = arg;

	fx->over = true;
	fx->status = status;
}

static void discover(struct fx *fx, const char *nid)
{
	struct ulnet_nid target = nid_of(nid);

	fx->over = false;
	cr_assert_eq(lnet_discover(fx->in->node, &target, 0, on_discovered, fx),
		     0);
	inject_run(fx->in, SOON);
}

/* Returns the next message that the node has sent; there must be one. */
static struct inject_sent *next(struct fx *fx)
{
	cr_assert_lt(fx->seen, fx->in->nsent, "the node says nothing");
	return &fx->in->sent[fx->seen++ % INJECT_SENT];
}

/* Returns the message that next() has returned last. */
static struct inject_sent *last(const struct fx *fx)
{
	return &fx->in->sent[(fx->seen - 1) % INJECT_SENT];
}

static void says_no_more(const struct fx *fx)
{
	cr_assert_eq(fx->seen, fx->in->nsent, "the node says more");
}

/* ---- what it says ---- */

static size_t handle_at(const struct golden *g)
{
	return g->hdr_len == LNET_HDR_SIZE ? 32 : 56;
}

/* Asserts header and payload of a message, except the handle, which is the
 * node's own. */
static void is_frame(const struct inject_sent *s, const struct golden *g)
{
	size_t handle = handle_at(g), length = golden_payload_len(g);
	uint8_t hdr[LNET_HDR_LARGE_SIZE];

	hdr_encode(&s->hdr, hdr, g->hdr_len);
	cr_assert_eq(memcmp(hdr, g->bytes, handle), 0);
	cr_assert(!wire_handle_is_none(&s->hdr.wmd));
	cr_assert_eq(memcmp(hdr + handle + 16, g->bytes + handle + 16,
			    g->hdr_len - handle - 16),
		     0);
	cr_assert_leq(length, INJECT_HEAD);
	cr_assert_eq(memcmp(s->head, golden_payload(g), length), 0);
}

static void says(struct fx *fx, const char *name)
{
	struct golden g = golden(name);

	is_frame(next(fx), &g);
}

/* ---- frames that were not captured, but follow from one that was ---- */

static struct lnet_hdr hdr_of(const struct golden *g)
{
	struct lnet_hdr hdr;

	cr_assert_eq(hdr_decode(&hdr, g->bytes, g->hdr_len), 0);
	return hdr;
}

/* Returns a frame like @like, but with this header, and with @payload of the
 * length that the header says. */
static struct golden frame_of(const struct golden *like,
			      const struct lnet_hdr *hdr, const void *payload)
{
	struct golden g = *like;

	hdr_encode(hdr, g.bytes, g.hdr_len);
	g.len = g.hdr_len + hdr->payload_length;
	cr_assert_leq(g.len, sizeof(g.bytes));
	if (hdr->payload_length)
		memcpy(g.bytes + g.hdr_len, payload, hdr->payload_length);
	return g;
}

static struct golden with_sink(const char *name, uint32_t sink)
{
	struct golden g = golden(name);
	struct lnet_hdr hdr = hdr_of(&g);

	hdr.length = sink;
	return frame_of(&g, &hdr, NULL);
}

/* ---- what it hears ---- */

static void hears_bytes(struct fx *fx, const struct golden *g)
{
	struct lnet_hdr hdr = hdr_of(g);

	inject(fx->in, 0, g->bytes, g->hdr_len, &hdr.src_nid, golden_payload(g),
	       (uint32_t)golden_payload_len(g));
	inject_run(fx->in, SOON);
}

static void hears(struct fx *fx, const char *name)
{
	struct golden g = golden(name);

	hears_bytes(fx, &g);
}

/* Answers the last message of the node with the golden frame @name. */
static void is_answered(struct fx *fx, const char *name)
{
	struct golden g = golden(name);

	memcpy(g.bytes + handle_at(&g), &last(fx)->hdr.wmd, 16);
	hears_bytes(fx, &g);
}

/* Answers the last GET of the node with as much of the @len bytes of @told as
 * it asks for. */
static void is_told(struct fx *fx, const uint8_t *told, size_t len)
{
	const struct lnet_hdr *get = &last(fx)->hdr;
	struct lnet_hdr hdr = {
		.dest_nid = get->src_nid,
		.src_nid = get->dest_nid,
		.dest_pid = get->src_pid,
		.src_pid = get->dest_pid,
		.type = LNET_MSG_REPLY,
		.payload_length = (uint32_t)MIN(len, get->length),
		.wmd = get->wmd,
	};
	uint8_t bytes[LNET_HDR_SIZE];

	cr_assert_eq(get->type, LNET_MSG_GET);
	hdr_encode(&hdr, bytes, sizeof(bytes));
	inject(fx->in, 0, bytes, sizeof(bytes), &hdr.src_nid, told,
	       hdr.payload_length);
	inject_run(fx->in, SOON);
}

/* ---- what it knows ---- */

static void knows(struct fx *fx, const char *nid, const char *primary)
{
	struct ulnet_nid asked = nid_of(nid);
	struct ulnet_peer_info peer;

	cr_assert_eq(lnet_peer_info(fx->in->node, &asked, &peer), 0, "%s", nid);
	cr_assert(nid_is(&peer.primary, primary), "%s", nid);
	cr_assert(peer.multi_rail, "%s", nid);
}

static void is_discovered(struct fx *fx)
{
	says_no_more(fx);
	cr_assert(fx->over);
	cr_assert_eq(fx->status, 0);
}

/* ---- the usual ---- */

Test(frames, asks_and_pushes)
{
	struct fx fx = open_node("10.77.0.3@tcp", NULL);

	discover(&fx, "10.77.0.2@tcp");
	says(&fx, "get-discover");
	says_no_more(&fx);
	is_answered(&fx, "reply-discover");
	says(&fx, "put-push");
	says_no_more(&fx);
	cr_assert(!fx.over);
	is_answered(&fx, "ack-push");
	is_discovered(&fx);
	knows(&fx, "10.77.0.2@tcp", "10.77.0.2@tcp");
	inject_close(fx.in);
}

/* A node that gets a push believes it, pushes its own NIDs, and asks nothing.
 */
Test(frames, gets_a_push)
{
	struct fx fx = open_node("10.77.0.42@tcp", "10.77.1.42@tcp");
	struct golden push = golden("put-push-two-nis"), frame;
	struct golden own = golden("reply-two-nis");
	struct lnet_hdr hdr = hdr_of(&push);
	struct inject_sent *s;

	hears(&fx, "put-push-two-nis");
	says(&fx, "ack-push-two-nis");
	s = next(&fx);
	/* The push may take any path. */
	hdr.src_nid = s->hdr.src_nid;
	hdr.dest_nid = s->hdr.dest_nid;
	frame = frame_of(&push, &hdr, golden_payload(&own));
	is_frame(s, &frame);
	knows(&fx, "10.77.1.41@tcp", "10.77.0.41@tcp");
	inject_close(fx.in);
}

/* ---- large NIDs ---- */

/* Headers are larger, and large NIDs have entries behind the small ones. */
Test(frames, large_nids)
{
	struct fx fx = open_node("fd77::3@tcp", NULL);
	/* The golden frame is of "lnetctl ping", which asks for more than
	 * discovery does. */
	struct golden get = with_sink("get-large", FIRST_SINK), frame;
	struct golden of = golden("reply-large");
	struct lnet_hdr push = hdr_of(&get), ack;

	discover(&fx, "fd77::2@tcp");
	is_frame(next(&fx), &get);
	is_answered(&fx, "reply-large");
	push.type = LNET_MSG_PUT;
	push.length = 0;
	push.payload_length = (uint32_t)golden_payload_len(&of);
	/* The push says the same of fd77::3. */
	of.bytes[of.len - 1] = 3;
	frame = frame_of(&of, &push, golden_payload(&of));
	is_frame(next(&fx), &frame);
	ack = (struct lnet_hdr){ .dest_nid = push.src_nid,
				 .src_nid = push.dest_nid,
				 .dest_pid = LNET_PID_LUSTRE,
				 .src_pid = LNET_PID_LUSTRE,
				 .type = LNET_MSG_ACK,
				 .wmd = last(&fx)->hdr.wmd,
				 .match_bits = PING_MATCH_BITS,
				 .length = push.payload_length };
	frame = frame_of(&get, &ack, NULL);
	hears_bytes(&fx, &frame);
	is_discovered(&fx);
	knows(&fx, "fd77::2@tcp", "fd77::2@tcp");
	inject_close(fx.in);
}

/* ---- more than there is room for ---- */

/* Makes ping information of @n entries: 0@lo, 10.77.0.2@tcp, then 10.0.0.2@tcp
 * and on. Returns its length. */
static size_t nis_of(uint8_t *told, uint32_t features, uint32_t n)
{
	size_t len = put_head(told, features, n);

	store_le32(told + 32, UINT32_C(0x0a4d0002));
	return len;
}

/* The GET is repeated with room for as many NIs as the first REPLY has
 * announced; nothing of a truncated REPLY is believed. */
static void is_asked_again(const uint8_t *told, size_t len)
{
	struct fx fx = open_node("10.77.0.3@tcp", NULL);
	struct golden get = with_sink("get-discover", FIRST_SINK);

	discover(&fx, "10.77.0.2@tcp");
	is_frame(next(&fx), &get);
	is_told(&fx, told, len);
	get = with_sink("get-discover", (uint32_t)len);
	is_frame(next(&fx), &get);
	says_no_more(&fx);
	is_told(&fx, told, len);
	cr_assert_eq(next(&fx)->hdr.type, LNET_MSG_PUT);
	says_no_more(&fx);
	knows(&fx, "10.77.0.2@tcp", "10.77.0.2@tcp");
	knows(&fx, "10.0.0.16@tcp", "10.77.0.2@tcp");
	inject_close(fx.in);
}

Test(frames, more_nis_than_the_sink)
{
	static uint8_t told[1024];

	/* One NI more than fit, and many more. */
	is_asked_again(told, nis_of(told, 0x1e, 17));
	is_asked_again(told, nis_of(told, 0x1e, 40));
}

/* If there are large NIDs, the information contains its length. */
Test(frames, more_large_nis_than_the_sink)
{
	static uint8_t told[1024];
	struct golden large = golden("reply-large");
	const uint8_t *entry = large.bytes + large.len - 24;
	size_t len = nis_of(told, 0x3e, 17);

	for (unsigned int i = 0; i < 10; i++, len += 24) {
		memcpy(told + len, entry, 24);
		told[len + 23] = (uint8_t)(0x10 + i);
	}
	store_le32(told + 28, (uint32_t)len);
	cr_assert_gt(len, FIRST_SINK);
	is_asked_again(told, len);
}

/* A peer that announces more than it ever sends is not asked for ever. */
Test(frames, truncated_for_ever)
{
	struct fx fx = open_node("10.77.0.3@tcp", NULL);
	static uint8_t told[1024];
	unsigned int asked = 0;

	nis_of(told, 0x1e, 40);
	discover(&fx, "10.77.0.2@tcp");
	while (fx.seen < fx.in->nsent && asked < 10) {
		cr_assert_eq(next(&fx)->hdr.type, LNET_MSG_GET);
		asked++;
		is_told(&fx, told, FIRST_SINK);
	}
	cr_assert_eq(asked, 2);
	cr_assert(fx.over);
	cr_assert_eq(fx.status, -EPROTO);
	inject_close(fx.in);
}
