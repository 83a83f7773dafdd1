/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that stay unread in their connections: a peer that has many
 * connections, or opens one after the other, leaves room for others
 * (requirement I1). Each message here comes over a connection of its own. */
#include <criterion/criterion.h>
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/injector.h"
#include "lnet/message/wire.h"
#include "lnet/peer/member.h"

#define PORTAL 5

static uint8_t source[16];

/* Opens a node with lazy portal 5, for which no buffer is posted. */
static struct injector *open_node(uint32_t messages, uint32_t lazy)
{
	struct ulnet_nid nid = nid_of("10.77.0.2@tcp");
	struct injector *in;
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.messages_max = messages;
	conf.lazy_max = lazy;
	in = inject_open(&conf, &nid, 1);
	cr_assert_eq(LNetSetLazyPortal(in->node, PORTAL), 0);
	return in;
}

static void puts_from(struct injector *in, const char *from, unsigned int n)
{
	const struct ulnet_nid nid = nid_of(from);
	struct lnet_hdr hdr = { .dest_nid = nid_of("10.77.0.2@tcp"),
				.src_nid = nid,
				.dest_pid = LNET_PID_LUSTRE,
				.src_pid = LNET_PID_LUSTRE,
				.type = LNET_MSG_PUT,
				.payload_length = sizeof(source),
				.wmd = LNET_WIRE_NONE,
				.match_bits = 1,
				.portal = PORTAL };
	uint8_t bytes[LNET_HDR_LARGE_SIZE];

	hdr_encode(&hdr, bytes, sizeof(bytes));
	for (unsigned int i = 0; i < n; i++)
		inject(in, 0, bytes, sizeof(bytes), &nid, source,
		       sizeof(source));
	inject_run(in, MSEC);
	inject_check(in);
}

/* The queue for payloads is full. Of the 16 places for messages that stay
 * unread one sender gets half, and the next senders get places, too. */
Test(unread, places_are_shared)
{
	struct injector *in = open_node(64, 1);

	puts_from(in, "10.77.0.3@tcp", 1);
	cr_assert_eq(counter(in->node, "stood"), 0);
	puts_from(in, "10.77.0.4@tcp", 40);
	cr_assert_eq(counter(in->node, "stood"), 9);
	cr_assert_eq(counter(in->node, "drop_lazy_full"), 31);
	for (unsigned int i = 5; i < 8; i++) {
		char nid[LNET_NIDSTR_SIZE];

		snprintf(nid, sizeof(nid), "10.77.0.%u@tcp", i);
		puts_from(in, nid, 1);
	}
	cr_assert_eq(counter(in->node, "stood"), 9 + 3);
	cr_assert_eq(counter(in->node, "drop_lazy_full"), 31);
	inject_close(in);
}

/* A peer may answer from another NI than the one that was asked: meanwhile all
 * connections of that peer are read. */
Test(unread, connections_with_answers_are_read)
{
	const struct ulnet_nid asked = nid_of("10.77.0.4@tcp");
	const struct ulnet_nid other = nid_of("10.77.0.5@tcp");
	struct injector *in = open_node(64, 1);
	struct lnet_cpt *cpt = in->node->cpt[0];
	struct lnet_peer_ni *a, *b;

	puts_from(in, "10.77.0.3@tcp", 1);
	puts_from(in, "10.77.0.4@tcp", 1);
	puts_from(in, "10.77.0.5@tcp", 1);
	cr_assert_eq(counter(in->node, "stood"), 2);
	a = peer_find(cpt, &asked);
	b = peer_find(cpt, &other);
	cr_assert_eq(member_take(cpt, a->peer, b), 0);
	peer_asked(a->peer, loop_now(cpt->loop) + 1000 * MSEC);
	puts_from(in, "10.77.0.5@tcp", 1);
	cr_assert_eq(counter(in->node, "stood"), 2);
	cr_assert_eq(counter(in->node, "drop_lazy_full"), 1);
	inject_run(in, 1000 * MSEC);
	puts_from(in, "10.77.0.5@tcp", 1);
	cr_assert_eq(counter(in->node, "stood"), 3);
	inject_close(in);
}

/* Of 64 messages 56 are for requests, and one sender alone gets half of those.
 * What it sends beyond that is throttled, and takes nothing that others need.
 */
Test(unread, throttled_ones_leave_room)
{
	struct injector *in = open_node(64, 64);

	puts_from(in, "10.77.0.3@tcp", 100);
	cr_assert_eq(counter(in->node, "parked"), 2);
	cr_assert_eq(counter(in->node, "drop_no_memory"), 100 - 29 - 2);
	puts_from(in, "10.77.0.4@tcp", 14);
	cr_assert_eq(counter(in->node, "parked"), 2);
	cr_assert_eq(counter(in->node, "drop_no_memory"), 100 - 29 - 2);
	cr_assert_eq(counter(in->node, "msgs_alloc"), 29 + 2 + 14);
	/* A sender that has its share now may leave one connection unread at
	 * least. */
	puts_from(in, "10.77.0.4@tcp", 1);
	cr_assert_eq(counter(in->node, "parked"), 3);
	cr_assert_eq(counter(in->node, "drop_no_memory"), 100 - 29 - 2);
	inject_close(in);
}
