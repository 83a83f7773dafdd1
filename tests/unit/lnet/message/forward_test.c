/* SPDX-License-Identifier: BSD-3-Clause */
/* How a router forwards messages unchanged, and which share of its buffers
 * senders and receivers get (requirements B2, I1). */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/golden.h"
#include "tests/unit/lnet/injector.h"
#include "lnet/message/wire.h"
#include "ulnet/route.h"

#define SECOND (1000 * MSEC)

static uint8_t payload[LNET_MTU];

/* Opens a router with NIs 10.77.0.4@tcp1 and 10.77.1.4@tcp2, and @third unless
 * that is NULL. @large is the number of its large buffers; 0: the default. */
static struct injector *router_with(unsigned int cpts, uint32_t large,
				    const char *third)
{
	struct ulnet_nid nids[3] = { nid_of("10.77.0.4@tcp1"),
				     nid_of("10.77.1.4@tcp2") };
	struct ulnet_routing routing = { .enabled = true,
					 .buffers = { 0, 0, large } };
	struct ulnet_conf conf;
	struct injector *in;

	if (third)
		nids[2] = nid_of(third);
	lnet_conf_init(&conf);
	conf.cpts = cpts;
	in = inject_open(&conf, nids, third ? 3 : 2);
	cr_assert_eq(lnet_routing_set(in->node, &routing), 0);
	return in;
}

static void give_from(struct injector *in, unsigned int ni, const char *from,
		      const struct lnet_hdr *hdr)
{
	const struct ulnet_nid nid = nid_of(from);
	uint8_t bytes[LNET_HDR_SIZE];

	hdr_encode(hdr, bytes, sizeof(bytes));
	inject(in, ni, bytes, sizeof(bytes), &nid, payload,
	       hdr->payload_length);
	inject_run(in, MSEC);
}

/* Gives the router a PUT from @src to @dest, on its NI on tcp1. */
static void put(struct injector *in, const char *src, const char *dest,
		uint32_t length)
{
	const struct lnet_hdr hdr = { .dest_nid = nid_of(dest),
				      .src_nid = nid_of(src),
				      .dest_pid = 12345,
				      .src_pid = 12345,
				      .type = LNET_MSG_PUT,
				      .payload_length = length,
				      .wmd = LNET_WIRE_NONE,
				      .match_bits = 7,
				      .portal = 5 };

	give_from(in, 0, src, &hdr);
}

static int64_t buffers_free(struct injector *in, enum ulnet_buffer_kind kind)
{
	struct ulnet_buffers_info infos[LNET_BUFFER_KINDS];

	cr_assert_eq(lnet_routing_buffers(in->node, 0, infos), 0);
	return infos[kind].free;
}

/* ---- as they came ---- */

/* A frame that a real router has forwarded leaves as it came. */
static void golden_passes(const char *name, unsigned int ni, const char *from,
			  const char *to)
{
	struct injector *in = router_with(1, 0, NULL);
	struct golden g = golden(name);
	struct ulnet_nid nid = nid_of(from);
	uint8_t bytes[LNET_HDR_SIZE];

	inject(in, ni, g.bytes, g.hdr_len, &nid, golden_payload(&g),
	       (uint32_t)golden_payload_len(&g));
	inject_run(in, MSEC);
	cr_assert_eq(in->nsent, 1);
	cr_assert(nid_is(&in->sent[0].to, to));
	hdr_encode(&in->sent[0].hdr, bytes, sizeof(bytes));
	cr_assert_eq(memcmp(bytes, g.bytes, sizeof(bytes)), 0);
	cr_assert_eq(memcmp(in->sent[0].head, golden_payload(&g),
			    MIN(golden_payload_len(&g), INJECT_HEAD)),
		     0);
	cr_assert_eq(counter(in->node, "route_count"), 1);
	cr_assert_eq(counter(in->node, "route_length"), golden_payload_len(&g));
	cr_assert_eq(counter(in->node, "send_count"), 0);
	inject_close(in);
}

Test(forward, golden)
{
	golden_passes("get-routed", 0, "10.77.0.2@tcp1", "10.77.1.3@tcp2");
	golden_passes("reply-routed", 1, "10.77.1.3@tcp2", "10.77.0.2@tcp1");
	golden_passes("put-routed", 0, "10.77.0.2@tcp1", "10.77.1.3@tcp2");
	golden_passes("ack-routed", 1, "10.77.1.3@tcp2", "10.77.0.2@tcp1");
}

Test(forward, all_kinds)
{
	const uint32_t lengths[] = { 0, 1, 4096, 4097, LNET_MTU };

	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct injector *in = router_with(cpts, 0, NULL);
		uint64_t sum = 0;

		for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
			memset(payload, (int)i + 1, sizeof(payload));
			put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", lengths[i]);
			inject_run(in, MSEC);
			cr_assert_eq(in->nsent, i + 1);
			cr_assert_eq(in->sent[i].sum,
				     (uint64_t)lengths[i] * (i + 1));
			cr_assert_eq(in->sent[i].to_pid, 12345);
			sum += lengths[i];
		}
		cr_assert_eq(counter(in->node, "route_length"), sum);
		cr_assert_eq(counter(in->node, "drop_count"), 0);
		inject_close(in);
	}
}

/* ---- who is not served ---- */

Test(forward, off)
{
	struct injector *in = router_with(1, 0, NULL);
	struct ulnet_routing routing = { .enabled = false };

	cr_assert_eq(lnet_routing_set(in->node, &routing), 0);
	put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10);
	cr_assert_eq(in->nsent, 0);
	cr_assert_eq(counter(in->node, "drop_not_mine"), 1);
	routing.enabled = true;
	cr_assert_eq(lnet_routing_set(in->node, &routing), 0);
	put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10);
	cr_assert_eq(in->nsent, 1);
	inject_close(in);
}

Test(forward, no_way)
{
	struct injector *in = router_with(1, 0, NULL);

	put(in, "10.77.0.2@tcp1", "10.77.9.3@tcp9", 10);
	cr_assert_eq(counter(in->node, "drop_no_route"), 1);
	/* The sender should have sent these to the target directly. */
	put(in, "10.77.0.2@tcp1", "10.77.0.3@tcp1", 10);
	put(in, "10.77.0.2@tcp1", "10.77.1.4@tcp2", 10);
	cr_assert_eq(in->refused, 2);
	cr_assert_eq(in->nsent, 0);
	inject_close(in);
}

/* A source on the sender's own net that is not the sender, or on another net of
 * the router, is not believed. */
Test(forward, false_source)
{
	struct injector *in = router_with(1, 0, NULL);
	struct lnet_hdr hdr = { .dest_nid = nid_of("10.77.1.3@tcp2"),
				.src_nid = nid_of("10.77.0.9@tcp1"),
				.dest_pid = 12345,
				.src_pid = 12345,
				.type = LNET_MSG_PUT,
				.wmd = LNET_WIRE_NONE };

	give_from(in, 0, "10.77.0.2@tcp1", &hdr);
	hdr.src_nid = nid_of("10.77.1.9@tcp2");
	give_from(in, 0, "10.77.0.2@tcp1", &hdr);
	cr_assert_eq(counter(in->node, "drop_false_source"), 2);
	cr_assert_eq(in->nsent, 0);
	inject_close(in);
}

/* ---- by other routers ---- */

static void route(struct injector *in, const char *net, const char *gateway)
{
	struct ulnet_route r = { .gateway = nid_of(gateway) };

	cr_assert_eq(lnet_net_parse(net, &r.net), 0);
	cr_assert_eq(lnet_route_add(in->node, &r), 0);
	inject_run(in, MSEC);
}

/* Returns how many PUTs have gone to @to. */
static unsigned int puts_to(const struct injector *in, const char *to)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < MIN(in->nsent, INJECT_SENT); i++)
		n += in->sent[i].hdr.type == LNET_MSG_PUT &&
		     nid_is(&in->sent[i].to, to);
	return n;
}

Test(forward, next_router)
{
	struct injector *in = router_with(1, 0, NULL);

	route(in, "tcp3", "10.77.1.5@tcp2");
	put(in, "10.77.0.2@tcp1", "10.77.3.3@tcp3", 10);
	cr_assert_eq(puts_to(in, "10.77.1.5@tcp2"), 1);
	inject_close(in);
}

/* A message is not forwarded to the gateway that it came from, which would send
 * it back. */
Test(forward, no_loop)
{
	struct injector *in = router_with(1, 0, NULL);

	route(in, "tcp3", "10.77.0.5@tcp1");
	put(in, "10.77.0.5@tcp1", "10.77.3.3@tcp3", 10);
	cr_assert_eq(puts_to(in, "10.77.0.5@tcp1"), 0);
	cr_assert_eq(counter(in->node, "drop_route_failed"), 1);
	put(in, "10.77.0.2@tcp1", "10.77.3.3@tcp3", 10);
	cr_assert_eq(puts_to(in, "10.77.0.5@tcp1"), 1);
	inject_close(in);
}

/* ---- shares ---- */

/* peer_buffer_credits is 8, the default of peer_credits. Messages beyond that
 * wait, but do not hold up those of other senders. */
Test(forward, credits_of_a_sender)
{
	struct injector *in = router_with(1, 64, NULL);

	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < 12; i++)
		put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	cr_assert_eq(in->nsent, 8);
	cr_assert_eq(buffers_free(in, LNET_LARGE_BUFFERS), 64 - 12);
	inject_check(in);
	put(in, "10.77.0.9@tcp1", "10.77.1.9@tcp2", 10000);
	cr_assert_eq(in->nsent, 9);
	in->send = INJECT_NOW;
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert_eq(in->nsent, 13);
	cr_assert_eq(buffers_free(in, LNET_LARGE_BUFFERS), 64);
	cr_assert_eq(counter(in->node, "drop_count"), 0);
	inject_close(in);
}

/* A receiver that does not read gets half of the buffers if it is the only one;
 * others are served from the rest. */
Test(forward, share_of_a_receiver)
{
	struct injector *in = router_with(1, 16, NULL);
	char src[LNET_NIDSTR_SIZE];

	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < 20; i++) {
		snprintf(src, sizeof(src), "10.77.0.%u@tcp1", i + 10);
		put(in, src, "10.77.1.3@tcp2", 10000);
	}
	/* It gets buffers while it has no more of the 16 than are left. */
	cr_assert_leq(in->nsent, 9);
	inject_check(in);
	put(in, "10.77.0.2@tcp1", "10.77.1.9@tcp2", 10000);
	cr_assert_eq(puts_to(in, "10.77.1.9@tcp2"), 1);
	in->send = INJECT_NOW;
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert_eq(in->nsent, 21);
	inject_close(in);
}

/* A message that waits too long is dropped and counted, and frees its buffer.
 */
Test(forward, late)
{
	struct injector *in = router_with(1, 64, NULL);

	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < 12; i++)
		put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	inject_run(in, 40 * SECOND);
	cr_assert_eq(counter(in->node, "drop_route_late") +
			     counter(in->node, "drop_route_failed"),
		     12);
	cr_assert_eq(buffers_free(in, LNET_LARGE_BUFFERS), 64);
	inject_close(in);
}

/* A message waits less long for a next hop that has failed lately, even if
 * there is just one path to it, which is not selected for each message. */
Test(forward, next_hop_that_failed)
{
	const struct ulnet_nid hop = nid_of("10.77.1.3@tcp2");
	struct injector *in = router_with(1, 64, NULL);

	for (unsigned int i = 0; i < 3; i++)
		put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	cr_assert_eq(puts_to(in, "10.77.1.3@tcp2"), 3);
	cr_assert_eq(lnet_peer_set_health(in->node, &hop, 500), 0);
	in->send = INJECT_LATER;
	put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	inject_run(in, 240 * MSEC);
	cr_assert_eq(counter(in->node, "drop_route_late"), 0);
	inject_run(in, 20 * MSEC);
	cr_assert_eq(counter(in->node, "drop_route_late"), 1);
	cr_assert_eq(counter(in->node, "drop_length"), 10000);
	inject_close(in);
}

/* NIDs that the last message could not be sent to share a quarter of the
 * buffers, until something can be sent to them. */
Test(forward, dead_receivers)
{
	struct injector *in = router_with(1, 16, NULL);
	char text[2][LNET_NIDSTR_SIZE];

	for (unsigned int round = 0; round < 2; round++) {
		in->send = INJECT_LATER;
		for (unsigned int i = 0; i < 12; i++) {
			snprintf(text[0], sizeof(text[0]), "10.77.0.%u@tcp1",
				 i + 10);
			snprintf(text[1], sizeof(text[1]), "10.77.1.%u@tcp2",
				 i + 10);
			put(in, text[0], text[1], 10000);
		}
		inject_check(in);
		cr_assert_eq(in->nsent, round == 0 ? 12 : 12 + 4);
		inject_run(in, round == 0 ? 40 * SECOND : 0);
	}
	put(in, "10.77.0.2@tcp1", "10.77.1.9@tcp2", 10000);
	cr_assert_eq(puts_to(in, "10.77.1.9@tcp2"), 1);
	in->send = INJECT_NOW;
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert_eq(buffers_free(in, LNET_LARGE_BUFFERS), 16);
	for (unsigned int i = 0; i < 12; i++) {
		snprintf(text[1], sizeof(text[1]), "10.77.1.%u@tcp2", i + 10);
		put(in, "10.77.0.2@tcp1", text[1], 10000);
	}
	cr_assert_eq(puts_to(in, "10.77.1.21@tcp2"), 3);
	inject_close(in);
}

/* The sender's connection breaks in the middle of a payload. */
Test(forward, broken)
{
	struct injector *in = router_with(1, 64, NULL);

	in->store = INJECT_FAIL;
	put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	cr_assert_eq(in->nsent, 0);
	cr_assert_eq(counter(in->node, "drop_route_failed"), 1);
	cr_assert_eq(buffers_free(in, LNET_LARGE_BUFFERS), 64);
	inject_close(in);
}

/* Routing is turned off while messages wait. */
Test(forward, turned_off)
{
	struct injector *in = router_with(1, 64, NULL);
	struct ulnet_routing routing = { .enabled = false };

	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < 12; i++)
		put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	cr_assert_eq(lnet_routing_set(in->node, &routing), 0);
	inject_check(in);
	cr_assert_eq(counter(in->node, "drop_closing"), 4);
	in->send = INJECT_NOW;
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert_eq(counter(in->node, "route_count"), 8);
	inject_close(in);
}

Test(forward, ni_goes)
{
	struct injector *in = router_with(1, 64, NULL);
	const struct ulnet_nid ni = nid_of("10.77.0.4@tcp1");

	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < 12; i++)
		put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	cr_assert_eq(lnet_ni_del(in->node, &ni), 0);
	inject_run(in, MSEC);
	cr_assert_eq(counter(in->node, "drop_closing"), 4);
	in->send = INJECT_NOW;
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert_eq(counter(in->node, "route_count"), 8);
	inject_close(in);
}

Test(forward, closed)
{
	struct injector *in = router_with(2, 64, NULL);

	in->send = INJECT_LATER;
	for (unsigned int i = 0; i < 12; i++)
		put(in, "10.77.0.2@tcp1", "10.77.1.3@tcp2", 10000);
	inject_close(in);
}
