/* SPDX-License-Identifier: BSD-3-Clause */
/* The straight way of a message (take.c): which messages take it, and that a
 * message on it does what it does on the general way. */
#include <criterion/criterion.h>
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/injector.h"
#include "lnet/message/wire.h"
#include "ulnet/fault.h"

#define PORTAL 5
#define BITS   0x77
#define LENGTH 40
#define ME     "10.77.0.2@tcp"
#define PEER   "10.77.0.3@tcp"

static struct seen seen;
static uint8_t memory[4 * LENGTH], source[LENGTH];

static struct lnet_hdr put_of(uint64_t bits)
{
	return (struct lnet_hdr){ .dest_nid = nid_of(ME),
				  .src_nid = nid_of(PEER),
				  .dest_pid = LNET_PID_LUSTRE,
				  .src_pid = 4711,
				  .type = LNET_MSG_PUT,
				  .payload_length = LENGTH,
				  .wmd = LNET_WIRE_NONE,
				  .match_bits = bits,
				  .hdr_data = 0x1234,
				  .portal = PORTAL,
				  .offset = 3 };
}

static void give(struct injector *in, const struct lnet_hdr *hdr)
{
	const struct ulnet_nid from = nid_of(PEER);
	uint8_t bytes[LNET_HDR_SIZE];

	hdr_encode(hdr, bytes, sizeof(bytes));
	inject(in, 0, bytes, sizeof(bytes), &from, source, LENGTH);
	inject_run(in, MSEC);
}

/* Opens a node that has heard of the peer, and has a buffer. */
static struct injector *open_met(bool straight, uint32_t options)
{
	const struct ulnet_nid nid = nid_of(ME);
	struct lnet_hdr first = put_of(BITS + 1);
	struct ulnet_conf conf;
	struct injector *in;
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_OP_GET | options, &seen);

	seen.n = 0;
	memset(memory, 0, sizeof(memory));
	for (unsigned int i = 0; i < LENGTH; i++)
		source[i] = (uint8_t)(i + 1);
	lnet_conf_init(&conf);
	conf.cpts = 1;
	in = inject_open(&conf, &nid, 1);
	in->straight = straight;
	give(in, &first);
	cr_assert_eq(in->taken, 0);
	post_md(in->node, PORTAL, BITS, &umd);
	return in;
}

/* ---- the same on both ways ---- */

static void same_event(const struct ulnet_event *a, const struct ulnet_event *b)
{
#define SAME(field)	cr_assert_eq(a->field, b->field, #field)
#define SAME_NID(field) cr_assert(lnet_nid_eq(&a->field, &b->field), #field)
	SAME(type);
	SAME(status);
	SAME(terminal);
	SAME(outcome);
	SAME(cause);
	SAME(msg_type);
	SAME_NID(target.nid);
	SAME(target.pid);
	SAME_NID(initiator.nid);
	SAME(initiator.pid);
	SAME_NID(source);
	SAME_NID(sender);
	SAME_NID(path_local);
	SAME_NID(path_peer);
	SAME_NID(path_hop);
	SAME(paths_tried);
	SAME(portal);
	SAME(match_bits);
	SAME(rlength);
	SAME(mlength);
	SAME(offset);
	SAME(hdr_data);
	SAME(elapsed);
	SAME(md_start);
	SAME(md_options);
	SAME(sequence);
	SAME(unlinked);
}

/* What a node has of three PUTs, of which the last finds no room. */
struct result {
	struct seen seen;
	uint8_t memory[sizeof(memory)];
	uint64_t count, length, drops;
	struct ulnet_peer_info peer;
	unsigned int taken;
};

static void run(bool straight, uint32_t options, struct result *r)
{
	struct injector *in = open_met(straight, options);
	struct ulnet_nid peer = nid_of(PEER);
	struct lnet_hdr hdr = put_of(BITS);

	for (unsigned int i = 0; i < 3; i++)
		give(in, &hdr);
	r->seen = seen;
	memcpy(r->memory, memory, sizeof(memory));
	r->count = counter(in->node, "recv_count");
	r->length = counter(in->node, "recv_length");
	r->drops = counter(in->node, "drop_count");
	r->taken = in->taken;
	cr_assert_eq(lnet_peer_info(in->node, &peer, &r->peer), 0);
	inject_close(in);
}

Test(take, does_what_the_general_way_does)
{
	static const uint32_t options[] = { 0, LNET_MD_MANAGE_REMOTE,
					    LNET_MD_TRUNCATE };
	static struct result a, b;

	for (unsigned int i = 0; i < ARRAY_SIZE(options); i++) {
		run(false, options[i], &a);
		run(true, options[i], &b);
		cr_assert_eq(a.taken, 0);
		cr_assert_eq(b.taken, 3);
		cr_assert_eq(a.seen.n, 3);
		cr_assert_eq(b.seen.n, 3);
		for (unsigned int j = 0; j < 3; j++)
			same_event(&a.seen.ev[j], &b.seen.ev[j]);
		cr_assert_eq(memcmp(a.memory, b.memory, sizeof(memory)), 0);
		cr_assert_eq(a.count, b.count);
		cr_assert_eq(a.length, b.length);
		cr_assert_eq(a.drops, b.drops);
		cr_assert_eq(a.peer.recv_count, b.peer.recv_count);
		cr_assert_eq(a.peer.refs, b.peer.refs);
	}
}

/* The handler of the last message of a buffer sees that. */
Test(take, last_message_unlinks)
{
	struct injector *in = open_met(true, 0);
	struct ulnet_md umd = md_of(memory, LENGTH, LNET_MD_OP_PUT, &seen);
	struct lnet_hdr hdr = put_of(BITS + 2);

	umd.threshold = 1;
	post_md(in->node, PORTAL, BITS + 2, &umd);
	give(in, &hdr);
	cr_assert_eq(in->taken, 1);
	seen_types(&seen, LNET_EVENT_PUT, 0);
	cr_assert(seen.ev[0].unlinked);
	cr_assert_eq(memcmp(memory, source, LENGTH), 0);
	give(in, &hdr);
	cr_assert_eq(in->taken, 1);
	cr_assert_eq(seen.n, 1);
	inject_close(in);
}

/* A buffer for a process is not found by another one with the same NID, even if
 * it was the last that was found. */
Test(take, buffer_is_for_one_process)
{
	struct injector *in = open_met(true, 0);
	struct ulnet_id process = { nid_of(PEER), 77 };
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);
	struct lnet_hdr hdr = put_of(BITS);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	hdr.portal = PORTAL + 1;
	cr_assert_eq(LNetMEAttach(in->node, PORTAL + 1, process, BITS, 0,
				  LNET_UNLINK, LNET_INS_LOCAL, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
	in->sender_pid = 77;
	give(in, &hdr);
	give(in, &hdr);
	cr_assert_eq(seen.n, 2);
	in->sender_pid = 78;
	give(in, &hdr);
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(in->taken, 2);
	in->sender_pid = 77;
	give(in, &hdr);
	cr_assert_eq(seen.n, 3);
	inject_close(in);
}

/* ---- what takes the general way ---- */

static const struct {
	const char *what;
	enum ulnet_msg_type type;
	uint64_t bits;
	const char *dest, *src;
	uint32_t portal;
	bool ack;
	unsigned int events, answers, refused, dropped;
} others[] = {
	{ "a GET", LNET_MSG_GET, BITS, ME, PEER, PORTAL, false, 1, 1, 0, 0 },
	{ "wants an ACK", LNET_MSG_PUT, BITS, ME, PEER, PORTAL, true, 1, 1, 0,
	  0 },
	{ "no buffer", LNET_MSG_PUT, BITS + 9, ME, PEER, PORTAL, false, 0, 0, 0,
	  1 },
	{ "no portal", LNET_MSG_PUT, BITS, ME, PEER, LNET_PORTALS, false, 0, 0,
	  0, 1 },
	{ "misdirected", LNET_MSG_PUT, BITS, "10.77.0.9@tcp", PEER, PORTAL,
	  false, 0, 0, 1, 0 },
	{ "false source", LNET_MSG_PUT, BITS, ME, "10.77.0.8@tcp", PORTAL,
	  false, 0, 0, 0, 1 },
};

Test(take, others_take_the_general_way)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(others); i++) {
		struct injector *in = open_met(true, 0);
		uint64_t drops = counter(in->node, "drop_count");
		struct lnet_hdr hdr = put_of(others[i].bits);

		hdr.type = others[i].type;
		hdr.dest_nid = nid_of(others[i].dest);
		hdr.src_nid = nid_of(others[i].src);
		hdr.portal = others[i].portal;
		if (others[i].ack || hdr.type == LNET_MSG_GET)
			hdr.wmd = (struct lnet_wire_handle){ 7, 8 };
		if (hdr.type == LNET_MSG_GET) {
			hdr.payload_length = 0;
			hdr.length = LENGTH;
		}
		give(in, &hdr);
		cr_assert_eq(in->taken, 0, "%s", others[i].what);
		cr_assert_eq(seen.n, others[i].events, "%s", others[i].what);
		cr_assert_eq(in->nsent, others[i].answers, "%s",
			     others[i].what);
		cr_assert_eq(in->refused, others[i].refused, "%s",
			     others[i].what);
		cr_assert_eq(counter(in->node, "drop_count") - drops,
			     others[i].dropped, "%s", others[i].what);
		inject_close(in);
	}
}

/* While an earlier message of the sender is being stored, later ones go the
 * general way, where their sender's share is counted. */
Test(take, sender_with_messages_takes_the_general_way)
{
	struct injector *in = open_met(true, 0);
	struct lnet_hdr held = put_of(BITS), hdr = put_of(BITS);

	held.wmd = (struct lnet_wire_handle){ 7, 8 };
	in->store = INJECT_LATER;
	give(in, &held);
	cr_assert_eq(seen.n, 0);
	in->store = INJECT_NOW;
	give(in, &hdr);
	cr_assert_eq(in->taken, 0);
	cr_assert_eq(seen.n, 1);
	inject_pump(in);
	inject_run(in, MSEC);
	cr_assert_eq(seen.n, 2);
	give(in, &hdr);
	cr_assert_eq(in->taken, 1);
	inject_close(in);
}

/* Fault rules are for all messages. */
Test(take, faults_meet_all_messages)
{
	struct injector *in = open_met(true, 0);
	struct lnet_hdr hdr = put_of(BITS);
	struct ulnet_fault f;

	lnet_fault_init(&f, LNET_FAULT_DROP);
	f.rate = 1;
	cr_assert_eq(lnet_fault_add(in->node, &f), 0);
	give(in, &hdr);
	cr_assert_eq(in->taken, 0);
	cr_assert_eq(seen.n, 0);
	inject_close(in);
}
