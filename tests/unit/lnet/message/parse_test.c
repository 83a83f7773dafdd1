/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node does with messages that no correct peer sends, and with messages
 * that come to nothing. */
#include <criterion/criterion.h>
#include <errno.h>
#include "base/log.h"
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/golden.h"
#include "tests/unit/lnet/injector.h"
#include "lnet/message/wire.h"
#include "lnet/peer/member.h"

#define PORTAL 5
#define BITS   0x77

static struct seen seen, sent;
static uint8_t memory[2 * LNET_MTU], source[LNET_MTU];

static struct injector *open_node(unsigned int cpts)
{
	struct ulnet_nid nids[2] = { nid_of("10.77.0.2@tcp"),
				     nid_of("10.77.1.2@tcp1") };
	struct ulnet_conf conf;

	seen.n = 0;
	sent.n = 0;
	lnet_conf_init(&conf);
	conf.cpts = cpts;
	return inject_open(&conf, nids, 2);
}

/* Returns a header from 10.77.0.3@tcp to the first NI. */
static struct lnet_hdr hdr_of(enum ulnet_msg_type type, uint32_t length)
{
	return (struct lnet_hdr){ .dest_nid = nid_of("10.77.0.2@tcp"),
				  .src_nid = nid_of("10.77.0.3@tcp"),
				  .dest_pid = 12345,
				  .src_pid = 12345,
				  .type = type,
				  .payload_length = length,
				  .wmd = LNET_WIRE_NONE,
				  .match_bits = BITS,
				  .portal = PORTAL };
}

static void give(struct injector *in, const struct lnet_hdr *hdr)
{
	const struct ulnet_nid from = nid_of("10.77.0.3@tcp");
	uint8_t bytes[LNET_HDR_LARGE_SIZE];

	hdr_encode(hdr, bytes, sizeof(bytes));
	inject(in, 0, bytes, sizeof(bytes), &from, source,
	       MIN(hdr->payload_length, sizeof(source)));
	inject_run(in, MSEC);
}

/* ---- golden frames, as they are ---- */

static void give_golden(struct injector *in, const char *name, const char *from)
{
	struct golden g = golden(name);
	struct ulnet_nid nid = nid_of(from);

	inject(in, 0, g.bytes, g.hdr_len, &nid, golden_payload(&g),
	       (uint32_t)golden_payload_len(&g));
	inject_run(in, MSEC);
}

Test(parse, golden_ping)
{
	struct injector *in = open_node(1);
	struct golden g = golden("get-ping");
	struct lnet_hdr get;

	cr_assert_eq(hdr_decode(&get, g.bytes, g.hdr_len), 0);
	give_golden(in, "get-ping", "10.77.0.3@tcp");
	cr_assert_eq(in->nsent, 1);
	cr_assert_eq(in->sent[0].hdr.type, LNET_MSG_REPLY);
	cr_assert_eq(in->sent[0].hdr.payload_length, 64);
	cr_assert(nid_is(&in->sent[0].to, "10.77.0.3@tcp"));
	cr_assert(nid_is(&in->sent[0].hdr.dest_nid, "10.77.0.3@tcp"));
	cr_assert(nid_is(&in->sent[0].hdr.src_nid, "10.77.0.2@tcp"));
	cr_assert_eq(in->sent[0].hdr.dest_pid, 12345);
	cr_assert_eq(in->sent[0].hdr.src_pid, 12345);
	cr_assert_eq(memcmp(&in->sent[0].hdr.wmd, &get.wmd, sizeof(get.wmd)),
		     0);
	inject_close(in);
}

Test(parse, golden_push)
{
	struct injector *in = open_node(1);
	struct golden ack = golden("ack-push");
	uint8_t bytes[LNET_HDR_SIZE];

	give_golden(in, "put-push", "10.77.0.3@tcp");
	cr_assert_eq(in->nsent, 1);
	/* The ACK is, byte for byte, the one that a real node has sent. */
	hdr_encode(&in->sent[0].hdr, bytes, sizeof(bytes));
	cr_assert_eq(memcmp(bytes, ack.bytes, sizeof(bytes)), 0);
	cr_assert_eq(counter(in->node, "pushes"), 1);
	inject_close(in);
}

/* Golden frames that are not for this node, or that it has not asked for. */
Test(parse, golden_frames_for_others)
{
	struct injector *in = open_node(2);

	give_golden(in, "ack-push", "10.77.0.2@tcp");
	cr_assert_eq(in->refused, 1); /* for 10.77.0.3: misdirected */
	give_golden(in, "reply-routed", "10.77.1.3@tcp2");
	cr_assert_eq(counter(in->node, "drop_not_mine"), 1);
	give_golden(in, "put-request", "10.77.0.3@tcp");
	cr_assert_eq(counter(in->node, "drop_no_match"), 1);
	give_golden(in, "get-large", "fd77::3@tcp");
	cr_assert_eq(in->refused, 2);
	inject_close(in);
}

/* ---- addresses ---- */

static const struct {
	const char *dest, *src;
	unsigned int refused;
	const char *counter; /* NULL: none, the message is refused */
} addresses[] = {
	{ "10.77.0.2@tcp", "10.77.0.3@tcp", 0, "drop_no_match" },
	/* This NID is on the sender's net: it should have sent directly. */
	{ "10.77.0.9@tcp", "10.77.0.3@tcp", 1, NULL },
	/* This is another NI of ours: it should have been sent there. */
	{ "10.77.1.2@tcp1", "10.77.0.3@tcp", 1, NULL },
	{ "0@lo", "10.77.0.3@tcp", 1, NULL },
	/* These NIDs are behind us, but we do not route. */
	{ "10.77.2.9@tcp2", "10.77.0.3@tcp", 0, "drop_not_mine" },
	{ "10.77.0.2@o2ib", "10.77.0.3@tcp", 0, "drop_not_mine" },
	/* No source can have these NIDs. */
	{ "10.77.0.2@tcp", "0@lo", 0, "drop_bad_source" },
	{ "10.77.0.2@tcp", NULL, 0, "drop_bad_source" },
	/* This source is behind a router. */
	{ "10.77.0.2@tcp", "10.77.2.9@tcp2", 0, "drop_no_match" },
	/* These sources are our own NIDs, which the connection is not from. */
	{ "10.77.0.2@tcp", "10.77.0.2@tcp", 0, "drop_bad_source" },
	{ "10.77.0.2@tcp", "10.77.1.2@tcp1", 0, "drop_bad_source" },
	/* These sources are as near as the sender, and not the sender. */
	{ "10.77.0.2@tcp", "10.77.0.4@tcp", 0, "drop_false_source" },
	{ "10.77.0.2@tcp", "fd77::4@tcp", 0, "drop_false_source" },
	/* This source would come to our other NI. */
	{ "10.77.0.2@tcp", "10.77.1.9@tcp1", 0, "drop_false_source" },
};

Test(parse, addresses)
{
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct injector *in = open_node(1 + i % 3);
		struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);

		hdr.dest_nid = nid_of(addresses[i].dest);
		hdr.src_nid = addresses[i].src ? nid_of(addresses[i].src)
					       : LNET_NID_ANY;
		give(in, &hdr);
		cr_assert_eq(in->refused, addresses[i].refused, "case %zu", i);
		cr_assert_eq(counter(in->node, "protocol_errors"),
			     addresses[i].refused);
		cr_assert_eq(counter(in->node, "drop_count"),
			     !addresses[i].refused, "case %zu", i);
		if (addresses[i].counter) {
			cr_assert_eq(counter(in->node, addresses[i].counter), 1,
				     "case %zu", i);
			cr_assert_eq(counter(in->node, "drop_length"), 10);
		}
		inject_close(in);
	}
}

Test(parse, portals)
{
	static const uint32_t bad[] = { LNET_PORTALS, 255, 1 << 16,
					UINT32_MAX };
	struct injector *in = open_node(2);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct lnet_hdr put = hdr_of(LNET_MSG_PUT, 10);
		struct lnet_hdr get = hdr_of(LNET_MSG_GET, 0);

		put.portal = bad[i];
		get.portal = bad[i];
		give(in, &put);
		give(in, &get);
		cr_assert_eq(counter(in->node, "drop_bad_portal"), 2 * i + 2);
	}
	cr_assert_eq(in->refused, 0);
	cr_assert_eq(counter(in->node, "drop_length"), 10 * ARRAY_SIZE(bad));
	inject_close(in);
}

/* A header that cannot be decoded ends the connection, and is counted. */
Test(parse, bad_headers)
{
	struct injector *in = open_node(1);
	const struct ulnet_nid from = nid_of("10.77.0.3@tcp");
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, LNET_MTU + 1);
	uint8_t bytes[LNET_HDR_LARGE_SIZE] = { 0 };

	give(in, &hdr);
	cr_assert_eq(in->refused, 1);
	hdr = hdr_of(LNET_MSG_HELLO, 0);
	give(in, &hdr);
	cr_assert_eq(in->refused, 2);
	inject(in, 0, bytes, 71, &from, NULL, 0);
	inject_run(in, MSEC);
	cr_assert_eq(in->refused, 3);
	cr_assert_eq(counter(in->node, "protocol_errors"), 3);
	cr_assert_eq(counter(in->node, "drop_count"), 0);
	inject_close(in);
}

/* ---- answers that nobody asked for ---- */

static struct ulnet_md_handle ask(struct injector *in, bool get, size_t length,
				  uint32_t options)
{
	struct ulnet_md umd = md_of(source, length, options, &sent);
	struct ulnet_md_handle md;
	int rc;

	umd.threshold = 2;
	md = bind_md(in->node, &umd);
	if (get)
		rc = LNetGet(LNET_NID_ANY, md, id_of("10.77.0.3@tcp"), PORTAL,
			     BITS, 0);
	else
		rc = LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ,
			     id_of("10.77.0.3@tcp"), PORTAL, BITS, 0, 0);
	cr_assert_eq(rc, 0);
	inject_run(in, MSEC);
	return md;
}

static struct lnet_hdr answer_of(const struct injector *in, uint32_t length)
{
	const struct lnet_hdr *req =
		&in->sent[(in->nsent - 1) % INJECT_SENT].hdr;
	bool get = req->type == LNET_MSG_GET;
	struct lnet_hdr hdr =
		hdr_of(get ? LNET_MSG_REPLY : LNET_MSG_ACK, get ? length : 0);

	hdr.wmd = req->wmd;
	hdr.length = get ? 0 : length;
	return hdr;
}

static void bad_handles(unsigned int cpts, bool get)
{
	struct injector *in = open_node(cpts);
	struct lnet_hdr hdr;
	unsigned int n = 0;

	ask(in, get, 100, 0);
	for (unsigned int i = 0; i < 128; i++) {
		hdr = answer_of(in, 10);
		if (i < 64)
			hdr.wmd.object ^= UINT64_C(1) << i;
		else
			hdr.wmd.node ^= UINT64_C(1) << (i - 64);
		give(in, &hdr);
		cr_assert_eq(counter(in->node, "drop_bad_handle"), ++n,
			     "bit %u", i);
	}
	cr_assert_eq(sent.n, 1); /* the SEND */
	/* The true handle still works, once. */
	hdr = answer_of(in, 10);
	give(in, &hdr);
	cr_assert_eq(sent.n, 2);
	cr_assert_eq(sent.ev[1].mlength, 10);
	cr_assert_eq(sent.ev[1].outcome, LNET_OUTCOME_DELIVERED);
	give(in, &hdr);
	cr_assert_eq(counter(in->node, "drop_bad_handle"), n + 1);
	cr_assert_eq(sent.n, 2);
	inject_close(in);
}

Test(parse, handles)
{
	bad_handles(1, true);
	bad_handles(1, false);
	bad_handles(3, true);
	bad_handles(16, false);
}

/* A REPLY to a PUT, or an ACK of a GET, is dropped. */
Test(parse, wrong_kind_of_answer)
{
	for (int get = 0; get < 2; get++) {
		struct injector *in = open_node(1);
		struct lnet_hdr hdr;

		ask(in, get, 100, 0);
		hdr = answer_of(in, 0);
		hdr.type = get ? LNET_MSG_ACK : LNET_MSG_REPLY;
		give(in, &hdr);
		cr_assert_eq(counter(in->node, "drop_bad_handle"), 1);
		cr_assert_eq(sent.n, 1);
		inject_close(in);
	}
}

/* An ACK of a PUT that has asked for none is dropped. */
Test(parse, unwanted_ack)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(source, 10, 0, &sent);
	struct lnet_hdr hdr;

	in->send = INJECT_LATER;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(in->node, &umd),
			     LNET_NOACK_REQ, id_of("10.77.0.3@tcp"), PORTAL,
			     BITS, 0, 0),
		     0);
	inject_run(in, MSEC);
	cr_assert(wire_handle_is_none(&in->sent[0].hdr.wmd));
	hdr = answer_of(in, 10);
	give(in, &hdr);
	cr_assert_eq(counter(in->node, "drop_bad_handle"), 1);
	cr_assert_eq(sent.n, 0);
	inject_close(in);
}

/* A REPLY that is longer than the MD is dropped, or truncated if the MD says
 * so. */
Test(parse, long_reply)
{
	for (int cut = 0; cut < 2; cut++) {
		struct injector *in = open_node(1);
		struct lnet_hdr hdr;

		ask(in, true, 100, cut ? LNET_MD_TRUNCATE : 0);
		hdr = answer_of(in, 101);
		memset(source, 0xee, 200);
		give(in, &hdr);
		if (cut) {
			cr_assert_eq(sent.n, 2);
			cr_assert_eq(sent.ev[1].rlength, 101);
			cr_assert_eq(sent.ev[1].mlength, 100);
		} else {
			cr_assert_eq(sent.n, 1);
			cr_assert_eq(counter(in->node, "drop_too_long"), 1);
			/* A REPLY that fits may still come. */
			hdr = answer_of(in, 100);
			give(in, &hdr);
			cr_assert_eq(sent.n, 2);
		}
		inject_close(in);
	}
}

/* The MD has no operations left, but the LND has not confirmed the GET yet: the
 * REPLY is dropped. */
Test(parse, reply_without_operations_left)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct lnet_hdr hdr;

	in->send = INJECT_LATER;
	umd.threshold = 1;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(in->node, &umd),
			     id_of("10.77.0.3@tcp"), PORTAL, BITS, 0),
		     0);
	inject_run(in, MSEC);
	hdr = answer_of(in, 10);
	give(in, &hdr);
	cr_assert_eq(counter(in->node, "drop_inactive"), 1);
	inject_close(in);
}

/* An answer counts only if it comes from the peer that was asked: neither a
 * neighbour nor somebody behind a router answers for it (requirement I3). */
static void answer_of_another(unsigned int cpts, bool get, const char *src,
			      const char *from)
{
	struct injector *in = open_node(cpts);
	const struct ulnet_nid sender = nid_of(from);
	struct lnet_hdr hdr;
	uint8_t bytes[LNET_HDR_SIZE];

	memset(source, 1, 100);
	ask(in, get, 100, 0);
	hdr = answer_of(in, 100);
	hdr.src_nid = nid_of(src);
	hdr_encode(&hdr, bytes, sizeof(bytes));
	inject(in, 0, bytes, sizeof(bytes), &sender, memory, get ? 100 : 0);
	inject_run(in, MSEC);
	cr_assert_eq(counter(in->node, "drop_not_asked"), 1);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(source[0], 1, "a stranger's bytes are in the buffer");
	/* The operation goes on, and ends with the answer of the right peer. */
	hdr = answer_of(in, 100);
	in->sender_pid = 9;
	give(in, &hdr);
	cr_assert_eq(sent.n, 2);
	cr_assert_eq(sent.ev[1].outcome, LNET_OUTCOME_DELIVERED);
	cr_assert(nid_is(&sent.ev[1].source, "10.77.0.3@tcp"));
	cr_assert(nid_is(&sent.ev[1].sender, "10.77.0.3@tcp"));
	cr_assert_eq(sent.ev[1].initiator.pid, 9);
	inject_close(in);
}

Test(parse, answer_from_another_nid)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		for (int get = 0; get < 2; get++) {
			answer_of_another(cpts, get, "10.77.0.99@tcp",
					  "10.77.0.99@tcp");
			answer_of_another(cpts, get, "10.77.2.9@tcp2",
					  "10.77.0.3@tcp");
		}
	}
}

/* A peer with several NIDs may answer from any of them (requirement C2). */
static void answer_of_the_same_peer(bool get)
{
	struct injector *in = open_node(1);
	const struct ulnet_nid named = nid_of("10.77.0.3@tcp");
	const struct ulnet_nid other = nid_of("10.77.0.99@tcp");
	struct lnet_cpt *cpt = in->node->cpt[0];
	struct lnet_peer_ni *lpni = peer_get(cpt, &other);
	struct lnet_hdr hdr;
	uint8_t bytes[LNET_HDR_SIZE];

	memset(source, 1, 100);
	cr_assert_eq(member_add(cpt, lpni->peer, &named), 0);
	peer_unref(lpni);
	ask(in, get, 100, 0);
	hdr = answer_of(in, 100);
	hdr.src_nid = other;
	hdr_encode(&hdr, bytes, sizeof(bytes));
	inject(in, 0, bytes, sizeof(bytes), &other, memory, get ? 100 : 0);
	inject_run(in, MSEC);
	cr_assert_eq(counter(in->node, "drop_not_asked"), 0);
	cr_assert_eq(sent.n, 2);
	cr_assert_eq(sent.ev[1].outcome, LNET_OUTCOME_DELIVERED);
	cr_assert(nid_is(&sent.ev[1].target.nid, "10.77.0.3@tcp"));
	cr_assert(nid_is(&sent.ev[1].source, "10.77.0.99@tcp"));
	inject_close(in);
}

Test(parse, answer_from_another_nid_of_the_peer)
{
	answer_of_the_same_peer(false);
	answer_of_the_same_peer(true);
}

/* What a node asks itself it alone answers. */
Test(parse, answer_to_ourselves)
{
	struct injector *in = open_node(1);
	struct ulnet_md here = md_of(memory, 100, LNET_MD_OP_GET, &seen);
	struct ulnet_md umd = md_of(source, 100, 0, &sent);

	post_md(in->node, PORTAL, BITS, &here);
	umd.threshold = 2;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(in->node, &umd),
			     id_of("10.77.1.2@tcp1"), PORTAL, BITS, 0),
		     0);
	inject_run(in, MSEC);
	seen_end(&sent, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	cr_assert_eq(counter(in->node, "drop_count"), 0);
	inject_close(in);
}

/* ---- processes: a NID may have many ---- */

#define USER_A (LNET_PID_USERFLAG | 777)
#define USER_B (LNET_PID_USERFLAG | 778)

/* The PID of an initiator is the connection's, whatever the header says. */
Test(parse, pid_is_the_connections)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);

	umd.threshold = 2;
	post_md(in->node, PORTAL, BITS, &umd);
	hdr.wmd = (struct lnet_wire_handle){ 5, 6 };
	in->sender_pid = USER_A;
	give(in, &hdr);
	hdr.src_pid = USER_A; /* a lie */
	in->sender_pid = USER_B;
	give(in, &hdr);
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(seen.ev[0].initiator.pid, USER_A);
	cr_assert_eq(seen.ev[1].initiator.pid, USER_B);
	/* Each ACK goes to the process that has sent the PUT. */
	cr_assert_eq(in->nsent, 2);
	cr_assert_eq(in->sent[0].to_pid, USER_A);
	cr_assert_eq(in->sent[0].hdr.dest_pid, USER_A);
	cr_assert_eq(in->sent[1].to_pid, USER_B);
	cr_assert_eq(in->sent[1].hdr.src_pid, 12345);
	inject_close(in);
}

Test(parse, entry_for_one_process)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct ulnet_id who = { nid_of("10.77.0.3@tcp"), USER_B };
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	cr_assert_eq(LNetMEAttach(in->node, PORTAL, who, BITS, 0, LNET_RETAIN,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
	in->sender_pid = USER_A;
	give(in, &hdr);
	cr_assert_eq(seen.n, 0);
	in->sender_pid = USER_B;
	give(in, &hdr);
	cr_assert_eq(seen.n, 1);
	inject_close(in);
}

/* Another process may have an address of this node: it is not this node. */
Test(parse, process_on_our_address)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	const struct ulnet_nid own = nid_of("10.77.0.2@tcp");
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);
	uint8_t bytes[LNET_HDR_SIZE];

	post_md(in->node, PORTAL, BITS, &umd);
	hdr.src_nid = own;
	hdr.wmd = (struct lnet_wire_handle){ 5, 6 };
	in->sender_pid = USER_A;
	hdr_encode(&hdr, bytes, sizeof(bytes));
	inject(in, 0, bytes, sizeof(bytes), &own, source, 10);
	inject_run(in, MSEC);
	cr_assert_eq(seen.n, 1);
	cr_assert(nid_is(&seen.ev[0].initiator.nid, "10.77.0.2@tcp"));
	cr_assert_eq(in->nsent, 1);
	cr_assert(nid_is(&in->sent[0].to, "10.77.0.2@tcp"));
	cr_assert_eq(in->sent[0].to_pid, USER_A);
	inject_close(in);
}

/* A node that accepts no connections shares its address with one that does, but
 * is not that one. */
Test(parse, caller_and_listener_share_an_address)
{
	struct ulnet_nid nid = nid_of("10.77.0.2@tcp");
	struct ulnet_md umd = md_of(memory, 10, 0, &sent);
	struct ulnet_md_handle md;
	struct ulnet_conf conf;
	struct injector *in;
	struct ulnet_id id;

	seen.n = sent.n = 0;
	lnet_conf_init(&conf);
	conf.accept = LNET_ACCEPT_NONE;
	in = inject_open(&conf, &nid, 1);
	cr_assert_eq(LNetGetId(in->node, 1, &id), 0);
	cr_assert(id.pid & LNET_PID_USERFLAG);
	cr_assert_neq(id.pid, LNET_PID_ANY);
	umd.threshold = 2;
	cr_assert_eq(LNetMDBind(in->node, &umd, LNET_RETAIN, &md), 0);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, id, PORTAL, BITS,
			     0, 0),
		     0);
	inject_run(in, MSEC);
	cr_assert_eq(in->nsent, 0); /* the PUT went to the node itself */
	id.pid = LNET_PID_LUSTRE;
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, id, PORTAL, BITS,
			     0, 0),
		     0);
	inject_run(in, MSEC);
	cr_assert_eq(in->nsent, 1);
	cr_assert_eq(in->sent[0].to_pid, LNET_PID_LUSTRE);
	inject_close(in);
}

/* ---- requests ---- */

/* A PUT from behind a router: its sender is not its source. */
Test(parse, routed_put)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);

	post_md(in->node, PORTAL, BITS, &umd);
	hdr.src_nid = nid_of("10.77.2.9@tcp2");
	hdr.wmd = (struct lnet_wire_handle){ 1, 2 };
	give(in, &hdr);
	cr_assert_eq(seen.n, 1);
	cr_assert(nid_is(&seen.ev[0].source, "10.77.2.9@tcp2"));
	cr_assert(nid_is(&seen.ev[0].initiator.nid, "10.77.2.9@tcp2"));
	cr_assert(nid_is(&seen.ev[0].sender, "10.77.0.3@tcp"));
	/* There is no path back, so the ACK is not sent. */
	cr_assert_eq(in->nsent, 0);
	cr_assert_eq(counter(in->node, "local_no_route_count"), 1);
	inject_close(in);
}

/* If there is no path for the REPLY of a GET, the event still says who has sent
 * the GET. */
Test(parse, routed_get)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_GET, &seen);
	struct lnet_hdr hdr = hdr_of(LNET_MSG_GET, 0);

	post_md(in->node, PORTAL, BITS, &umd);
	hdr.src_nid = nid_of("10.77.2.9@tcp2");
	hdr.length = 50;
	give(in, &hdr);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.ev[0].status, -EHOSTUNREACH);
	cr_assert(nid_is(&seen.ev[0].initiator.nid, "10.77.2.9@tcp2"));
	cr_assert(nid_is(&seen.ev[0].source, "10.77.2.9@tcp2"));
	cr_assert(nid_is(&seen.ev[0].target.nid, "10.77.0.2@tcp"));
	inject_close(in);
}

/* However much a GET asks for, its REPLY is not longer than a message may be.
 */
Test(parse, get_of_too_much)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, sizeof(memory),
				    LNET_MD_OP_GET | LNET_MD_TRUNCATE, &seen);
	struct lnet_hdr hdr = hdr_of(LNET_MSG_GET, 0);

	post_md(in->node, PORTAL, BITS, &umd);
	hdr.length = UINT32_MAX;
	give(in, &hdr);
	cr_assert_eq(in->nsent, 1);
	cr_assert_eq(in->sent[0].hdr.payload_length, LNET_MTU);
	cr_assert_eq(seen.ev[0].mlength, LNET_MTU);
	cr_assert_eq(seen.ev[0].rlength, UINT32_MAX);
	inject_close(in);
}

/* The payload breaks off in the middle. */
Test(parse, broken_payload)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);

	post_md(in->node, PORTAL, BITS, &umd);
	hdr.wmd = (struct lnet_wire_handle){ 1, 2 };
	in->store = INJECT_FAIL;
	give(in, &hdr);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.ev[0].status, -EIO);
	cr_assert_eq(seen.ev[0].cause, LNET_CAUSE_REMOTE_ERROR);
	cr_assert_eq(in->nsent, 0, "acknowledged");
	inject_close(in);
}

/* A payload that does not end is given up after a time. */
Test(parse, endless_payload)
{
	struct injector *in = open_node(1);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);

	post_md(in->node, PORTAL, BITS, &umd);
	in->store = INJECT_LATER;
	give(in, &hdr);
	inject_run(in, 49000 * MSEC);
	cr_assert_eq(seen.n, 0);
	inject_run(in, 2000 * MSEC);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(seen.ev[0].cause, LNET_CAUSE_NETWORK_TIMEOUT);
	inject_close(in);
}

/* An unexpected message is dropped if there is no bounce buffer for its
 * payload. */
Test(parse, no_room_to_bounce)
{
	struct injector *in = open_node(1);
	struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 10);

	cr_assert_eq(LNetSetLazyPortal(in->node, PORTAL), 0);
	in->bounce = INJECT_REFUSE;
	give(in, &hdr);
	cr_assert_eq(counter(in->node, "drop_no_memory"), 1);
	in->bounce = INJECT_NOW;
	give(in, &hdr);
	cr_assert_eq(counter(in->node, "drop_count"), 1);
	cr_assert_eq(counter(in->node, "msgs_alloc"), 1);
	inject_close(in);
}

/* The LND refuses to send. */
Test(parse, send_refused)
{
	struct injector *in = open_node(1);

	cr_assert_eq(lnet_setting_set(in->node, "retry_count", 0), 0);
	in->send = INJECT_REFUSE;
	ask(in, false, 10, 0);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].type, LNET_EVENT_SEND);
	cr_assert_eq(sent.ev[0].status, -EIO);
	cr_assert_eq(sent.ev[0].cause, LNET_CAUSE_LOCAL_DROPPED);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
	inject_close(in);
}

static void count_line(int level, const char *line, void *arg)
{
	(void)level;
	if (strstr(line, "11.0.0.100@tcp is one peer too many"))
		++*(unsigned int *)arg;
}

/* Unexpected messages are queued for as many peers as the node may remember.
 * Those of further peers are dropped, with a single line in the log. */
Test(parse, too_many_peers)
{
	struct injector *in;
	struct ulnet_nid nids[1] = { nid_of("10.77.0.2@tcp") };
	struct ulnet_conf conf;
	unsigned int lines = 0;

	lnet_conf_init(&conf);
	conf.peers_max = 100;
	in = inject_open(&conf, nids, 1);
	cr_assert_eq(LNetSetLazyPortal(in->node, PORTAL), 0);
	log_setup(LOG_WARN, count_line, &lines);
	for (unsigned int i = 0; i < 110; i++) {
		struct lnet_hdr hdr = hdr_of(LNET_MSG_PUT, 0);
		uint8_t bytes[LNET_HDR_SIZE];

		hdr.src_nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
					    0x0b000000 + i);
		hdr_encode(&hdr, bytes, sizeof(bytes));
		inject(in, 0, bytes, sizeof(bytes), &hdr.src_nid, NULL, 0);
	}
	inject_run(in, MSEC);
	log_setup(LOG_WARN, NULL, NULL);
	cr_assert_eq(counter(in->node, "drop_no_memory"), 10);
	cr_assert_eq(counter(in->node, "peers"), 100);
	cr_assert_eq(lines, 1);
	inject_close(in);
}

/* Messages that are dropped come from many more peers than the node may
 * remember. */
Test(parse, many_peers)
{
	struct injector *in;
	struct ulnet_nid nids[1] = { nid_of("10.77.0.2@tcp") };
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.peers_max = 100;
	in = inject_open(&conf, nids, 1);
	for (unsigned int i = 0; i < 10000; i++) {
		struct lnet_hdr hdr = hdr_of(LNET_MSG_GET, 0);
		uint8_t bytes[LNET_HDR_SIZE];

		hdr.src_nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
					    0x0b000000 + i);
		hdr_encode(&hdr, bytes, sizeof(bytes));
		inject(in, 0, bytes, sizeof(bytes), &hdr.src_nid, NULL, 0);
	}
	inject_run(in, MSEC);
	cr_assert_eq(counter(in->node, "drop_no_match"), 10000);
	cr_assert_eq(counter(in->node, "peers"), 100);
	inject_close(in);
}

/* Pings whose source is not the sender are neither answered nor remembered. */
Test(parse, false_sources)
{
	struct injector *in = open_node(2);

	for (unsigned int i = 0; i < 20000; i++) {
		struct lnet_hdr hdr = hdr_of(LNET_MSG_GET, 0);

		hdr.portal = 0;
		hdr.match_bits = UINT64_C(1) << 63;
		hdr.src_nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
					    0x0b000000 + i);
		give(in, &hdr);
	}
	cr_assert_eq(counter(in->node, "drop_false_source"), 20000);
	cr_assert_eq(in->nsent, 0);
	cr_assert_eq(counter(in->node, "peers"), 0);
	inject_close(in);
}

/* Sources that are said to be behind a router, but that no route leads to, are
 * not remembered either. */
Test(parse, sources_without_a_route)
{
	struct injector *in = open_node(1);

	for (unsigned int i = 0; i < 1000; i++) {
		struct lnet_hdr hdr = hdr_of(LNET_MSG_GET, 0);

		hdr.portal = 0;
		hdr.match_bits = UINT64_C(1) << 63;
		hdr.src_nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 7),
					    0x0b000000 + i);
		give(in, &hdr);
	}
	cr_assert_eq(counter(in->node, "local_no_route_count"), 1000);
	cr_assert_eq(in->nsent, 0);
	cr_assert_eq(counter(in->node, "peers"), 1); /* the sender */
	inject_close(in);
}

/* Bytes after a NID's address must be 0, so that one address has one NID only.
 */
Test(parse, bytes_after_nids)
{
	struct injector *in = open_node(1);
	const struct ulnet_nid from = nid_of("10.77.0.3@tcp");
	struct lnet_hdr hdr = hdr_of(LNET_MSG_GET, 0);
	uint8_t bytes[LNET_HDR_LARGE_SIZE];

	for (unsigned int at = 0; at <= 20; at += 20) {
		for (unsigned int i = 8; i < 20; i++) {
			hdr_encode(&hdr, bytes, sizeof(bytes));
			bytes[at + i] = 1;
			inject(in, 0, bytes, sizeof(bytes), &from, NULL, 0);
		}
	}
	inject_run(in, MSEC);
	cr_assert_eq(in->refused, 24);
	cr_assert_eq(counter(in->node, "peers"), 0);
	inject_close(in);
}
