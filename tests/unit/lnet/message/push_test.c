/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that the LND takes at once, by push(). */
#include <criterion/criterion.h>
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/injector.h"
#include "ulnet/loop.h"

#define PORTAL 5
#define BITS   0x77
#define PEER   "10.77.0.3@tcp"
/* peer_credits, as they are by default */
#define CREDITS 8

static struct seen seen;
static uint8_t source[4096];

static struct injector *open_node(void)
{
	const struct ulnet_nid nid = nid_of("10.77.0.2@tcp");
	struct ulnet_conf conf;

	seen.n = 0;
	for (unsigned int i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)i;
	lnet_conf_init(&conf);
	conf.cpts = 1;
	return inject_open(&conf, &nid, 1);
}

static struct ulnet_md_handle put(struct injector *in, uint64_t bits,
				  size_t length, enum ulnet_ack_req ack)
{
	struct ulnet_md umd = md_of(source, length, 0, &seen);
	struct ulnet_md_handle md;

	umd.threshold = ack == LNET_ACK_REQ ? 2 : 1;
	md = bind_md(in->node, &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, ack, id_of(PEER), PORTAL, bits,
			     0, 0),
		     0);
	return md;
}

static int64_t credits_min(struct injector *in)
{
	struct ulnet_nid nid = nid_of(PEER);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_peer_info(in->node, &nid, &info), 0);
	return info.credits_min;
}

/* Opens a node whose LND takes messages at once. known: it knows that there is
 * one path only to the peer, since it has sent a message before. */
static struct injector *open_pushing(bool known)
{
	struct injector *in = open_node();

	if (known)
		put(in, BITS - 1, 10, LNET_NOACK_REQ);
	inject_run(in, MSEC);
	cr_assert_eq(lnet_stats_reset(in->node), 0);
	seen.n = 0;
	in->nsent = 0;
	in->push = true;
	return in;
}

/* The LND has the message when LNetPut() returns, and its user hears of that
 * later, once. Over the only path, there is nothing left to end then. */
static void sent_at_once(bool known)
{
	struct injector *in = open_pushing(known);

	put(in, BITS, 100, LNET_NOACK_REQ);
	cr_assert_eq(in->pushed, 1);
	cr_assert_eq(in->sent[0].hdr.match_bits, BITS);
	cr_assert_eq(in->sent[0].hdr.portal, PORTAL);
	cr_assert(nid_is(&in->sent[0].hdr.src_nid, "10.77.0.2@tcp"));
	cr_assert(nid_is(&in->sent[0].hdr.dest_nid, PEER));
	cr_assert(nid_is(&in->sent[0].to, PEER));
	cr_assert_eq(memcmp(in->sent[0].head, source, 100), 0);
	cr_assert_eq(seen.n, 0);
	cr_assert_eq(counter(in->node, "msgs_alloc"), !known);
	inject_run(in, MSEC);
	seen_types(&seen, LNET_EVENT_SEND, 0);
	seen_end(&seen, LNET_EVENT_SEND, 0, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_OK);
	cr_assert(seen.ev[0].unlinked);
	cr_assert(nid_is(&seen.ev[0].path_local, "10.77.0.2@tcp"));
	cr_assert(nid_is(&seen.ev[0].path_peer, PEER));
	cr_assert(nid_is(&seen.ev[0].path_hop, PEER));
	cr_assert(nid_is(&seen.ev[0].target.nid, PEER));
	cr_assert_eq(seen.ev[0].match_bits, BITS);
	cr_assert_eq(seen.ev[0].mlength, 100);
	cr_assert_eq(seen.ev[0].paths_tried, 1);
	cr_assert_eq(credits_min(in), CREDITS);
	cr_assert_eq(counter(in->node, "send_count"), 1);
	cr_assert_eq(counter(in->node, "send_length"), 100);
	inject_close(in);
}

Test(push, is_sent_at_once)
{
	sent_at_once(false);
	sent_at_once(true);
}

/* What the LND does not take goes by send(), with credits. */
Test(push, that_is_refused_is_sent)
{
	struct injector *in = open_node();

	put(in, BITS, 100, LNET_NOACK_REQ);
	inject_run(in, MSEC);
	cr_assert_eq(in->pushed, 0);
	cr_assert_eq(in->nsent, 1);
	seen_types(&seen, LNET_EVENT_SEND, 0);
	cr_assert_eq(seen.ev[0].paths_tried, 1);
	cr_assert_eq(credits_min(in), CREDITS - 1);
	inject_close(in);
}

Test(push, is_for_small_messages)
{
	struct injector *in = open_node();

	in->push = true;
	put(in, BITS, 1024, LNET_NOACK_REQ);
	cr_assert_eq(in->pushed, 1);
	put(in, BITS, 1025, LNET_NOACK_REQ);
	inject_run(in, MSEC);
	cr_assert_eq(in->pushed, 1);
	cr_assert_eq(in->nsent, 2);
	inject_close(in);
}

/* Messages do not overtake those that wait for credits. */
Test(push, overtakes_none_that_waits)
{
	struct injector *in = open_node();

	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < CREDITS + 1; i++)
		put(in, i, 10, LNET_NOACK_REQ);
	in->push = true;
	put(in, CREDITS + 1, 10, LNET_NOACK_REQ);
	inject_run(in, MSEC);
	cr_assert_eq(in->pushed, 0);
	cr_assert_eq(in->nsent, CREDITS);
	in->send = INJECT_NOW;
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert_eq(in->pushed, 0);
	cr_assert_eq(in->nsent, CREDITS + 2);
	for (unsigned int i = 0; i < in->nsent; i++)
		cr_assert_eq(in->sent[i].hdr.match_bits, i);
	put(in, CREDITS + 2, 10, LNET_NOACK_REQ);
	cr_assert_eq(in->pushed, 1);
	inject_run(in, MSEC);
	cr_assert_eq(seen.n, CREDITS + 3);
	inject_close(in);
}

/* A message that was pushed cannot be canceled any more. */
static void not_canceled(bool known)
{
	struct injector *in = open_pushing(known);
	struct ulnet_md_handle md;

	md = put(in, BITS, 100, LNET_NOACK_REQ);
	cr_assert_eq(LNetMDUnlink(md), 0);
	inject_run(in, MSEC);
	seen_types(&seen, LNET_EVENT_SEND, 0);
	cr_assert_eq(seen.ev[0].status, 0);
	cr_assert(seen.ev[0].unlinked);
	inject_close(in);
}

Test(push, is_not_canceled)
{
	not_canceled(false);
	not_canceled(true);
}

/* A node that is closed meanwhile still tells of the message. */
Test(push, ends_before_its_node)
{
	struct injector *in = open_pushing(true);

	put(in, BITS, 100, LNET_NOACK_REQ);
	inject_close(in);
	seen_types(&seen, LNET_EVENT_SEND, 0);
	cr_assert_eq(seen.ev[0].status, 0);
}

/* A pushed message waits for its ACK as others do. */
Test(push, waits_for_its_ack)
{
	struct injector *in = open_node();
	const struct ulnet_nid peer = nid_of(PEER);
	uint8_t bytes[LNET_HDR_SIZE];
	struct lnet_hdr ack;

	in->push = true;
	put(in, BITS, 100, LNET_ACK_REQ);
	inject_run(in, MSEC);
	seen_types(&seen, LNET_EVENT_SEND, 0);
	cr_assert(!seen.ev[0].terminal);
	ack = in->sent[0].hdr;
	ack.dest_nid = in->sent[0].hdr.src_nid;
	ack.src_nid = peer;
	ack.type = LNET_MSG_ACK;
	ack.payload_length = 0;
	ack.length = 100;
	hdr_encode(&ack, bytes, sizeof(bytes));
	inject(in, 0, bytes, sizeof(bytes), &peer, NULL, 0);
	inject_run(in, MSEC);
	seen_types(&seen, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
	seen_end(&seen, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	inject_close(in);
}

/* ---- lnet_put_now() ---- */

struct now {
	struct injector *in;
	struct ulnet_put_now put;
	struct ulnet_nid local;
	bool sent;
};

static int put_now_call(void *arg)
{
	struct now *n = arg;

	n->sent = lnet_put_now(n->in->node, 0, &n->put, &n->local);
	return 0;
}

static struct now now_of(struct injector *in, uint64_t bits, uint32_t length)
{
	return (struct now){ .in = in,
			     .put = { .start = source,
				      .length = length,
				      .self = LNET_NID_ANY,
				      .target = id_of(PEER),
				      .portal = PORTAL,
				      .match_bits = bits,
				      .hdr_data = 0x1234 },
			     .local = LNET_NID_ANY };
}

static bool put_now(struct now *n)
{
	cr_assert_eq(lnet_call(n->in->node, 0, put_now_call, n), 0);
	return n->sent;
}

/* The LND has the same message as after LNetPut(). It counts, and its user
 * hears of nothing more. */
Test(push, without_a_descriptor)
{
	struct injector *in = open_pushing(true);
	struct now n = now_of(in, BITS, 100);
	const struct lnet_hdr *hdr = &in->sent[0].hdr;
	struct lnet_hdr by_put;

	cr_assert(put_now(&n));
	cr_assert_eq(in->pushed, 1);
	cr_assert(nid_is(&n.local, "10.77.0.2@tcp"));
	cr_assert_eq(hdr->type, LNET_MSG_PUT);
	cr_assert_eq(hdr->hdr_data, 0x1234);
	cr_assert(nid_is(&in->sent[0].to, PEER));
	cr_assert_eq(memcmp(in->sent[0].head, source, 100), 0);
	cr_assert_eq(counter(in->node, "send_count"), 1);
	cr_assert_eq(counter(in->node, "send_length"), 100);
	n.put.hdr_data = 0;
	cr_assert(put_now(&n));
	put(in, BITS, 100, LNET_NOACK_REQ);
	by_put = in->sent[2].hdr;
	cr_assert_eq(memcmp(&in->sent[1].hdr, &by_put, sizeof(by_put)), 0);
	inject_run(in, MSEC);
	seen_types(&seen, LNET_EVENT_SEND, 0);
	cr_assert_eq(in->nsent, 3);
	inject_close(in);
}

static void not_now(struct now *n)
{
	unsigned int pushed = n->in->pushed, nsent = n->in->nsent;

	cr_assert_not(put_now(n));
	inject_run(n->in, MSEC);
	cr_assert_eq(n->in->pushed, pushed);
	cr_assert_eq(n->in->nsent, nsent);
}

/* What LNetPut() would refuse, or has to decide about, is left to it. */
Test(push, without_a_descriptor_decides_nothing)
{
	struct injector *in = open_pushing(true);
	struct now n = now_of(in, BITS, 1025);

	not_now(&n);
	n = now_of(in, BITS, 10);
	n.put.portal = LNET_PORTALS;
	not_now(&n);
	n = now_of(in, BITS, 10);
	n.put.target.pid = LNET_PID_ANY;
	not_now(&n);
	n = now_of(in, BITS, 10);
	n.put.target.nid = LNET_NID_ANY;
	not_now(&n);
	n = now_of(in, BITS, 10);
	n.put.target = id_of("10.77.0.9@tcp");
	not_now(&n);
	n = now_of(in, BITS, 10);
	n.put.self = nid_of("10.77.0.8@tcp");
	not_now(&n);
	n.put.self = nid_of("10.77.0.2@tcp");
	cr_assert(put_now(&n));
	cr_assert_eq(in->pushed, 1);
	in->push = false;
	not_now(&n);
	inject_close(in);
}

/* Outside of turns it sends nothing. */
Test(push, without_a_descriptor_needs_a_turn)
{
	struct injector *in = open_pushing(true);
	struct now n = now_of(in, BITS, 10);

	cr_assert_not(lnet_put_now(in->node, 0, &n.put, &n.local));
	cr_assert_eq(in->pushed, 0);
	cr_assert(put_now(&n));
	inject_close(in);
}

/* It overtakes no message that waits for credits. */
Test(push, without_a_descriptor_waits_for_none)
{
	struct injector *in = open_pushing(true);
	struct now n = now_of(in, CREDITS + 1, 10);

	in->push = false;
	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < CREDITS + 1; i++)
		put(in, i, 10, LNET_NOACK_REQ);
	in->push = true;
	not_now(&n);
	in->send = INJECT_NOW;
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert(put_now(&n));
	cr_assert_eq(in->pushed, 1);
	inject_close(in);
}
