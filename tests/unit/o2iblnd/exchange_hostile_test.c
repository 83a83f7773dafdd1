/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges over a connection whose peer violates the protocol. */
#include "tests/slice.h"
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

/* A valid message of the peer of r->b, for the test to spoil. */
static size_t peer_msg(const struct rig *r, enum ib_msg_type type, uint8_t *buf)
{
	const struct ib_frag frag = { 0x1000, 5000 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct ib_envelope env = { IB_VERSION_2, r->a.set.self, r->b.set.self };
	struct ib_hdr hdr = ib_hdr_of(&env);
	struct ib_conn_params params = { 8, 256, IB_MSG_SIZE_MAX };

	memset(buf, 0, IB_MSG_SIZE_MAX);
	rig_header(buf + IB_LNET_OFFSET, 1, 10);
	switch (type) {
	case IB_MSG_NOOP:
		return ib_noop_encode(&hdr, buf);
	case IB_MSG_IMMEDIATE:
		return ib_immediate_encode(&hdr, 10, buf);
	case IB_MSG_PUT_REQ:
		return ib_put_req_encode(&hdr, 0, buf);
	case IB_MSG_GET_REQ:
		return ib_get_req_encode(&hdr, 0, &sink, buf);
	case IB_MSG_PUT_ACK:
		return ib_put_ack_encode(&hdr, 0, 0, &sink, buf);
	case IB_MSG_CONNREQ:
	case IB_MSG_CONNACK:
		return ib_conn_encode(&hdr, type, &params, buf);
	default:
		return ib_done_encode(&hdr, type, 0, 0, buf);
	}
}

static void expect_end(struct rig *r, int status, const char *what)
{
	rig_run(r, 0);
	cr_expect(r->b.closed && r->b.qp && r->b.qp->error, "%s", what);
	cr_expect_eq(r->b.status, status, "%s: %d", what, r->b.status);
	rig_end_all(r);
}

Test(o2ib_exchange, hostile_bytes)
{
	static const struct {
		const char *what;
		enum ib_msg_type type;
		unsigned int at;
		uint8_t value;
		int status;
	} cases[] = {
		{ "magic", IB_MSG_NOOP, 0, 0, -EPROTO },
		{ "version", IB_MSG_NOOP, 4, 0x13, -EPROTO },
		{ "version 1", IB_MSG_IMMEDIATE, 4, 0x11, -EPROTO },
		{ "type", IB_MSG_NOOP, 6, 0xd8, -EPROTO },
		{ "connreq", IB_MSG_CONNREQ, 8, IB_CONN_SIZE, -EPROTO },
		{ "connack", IB_MSG_CONNACK, 8, IB_CONN_SIZE, -EPROTO },
		{ "credits", IB_MSG_NOOP, 7, 1, -EPROTO },
		{ "credits", IB_MSG_IMMEDIATE, 7, 255, -EPROTO },
		{ "nob", IB_MSG_NOOP, 8, 47, -EPROTO },
		{ "nob", IB_MSG_NOOP, 8, 49, -EPROTO },
		{ "checksum", IB_MSG_NOOP, 12, 1, -EPROTO },
		{ "checksum", IB_MSG_IMMEDIATE, 12, 1, -EPROTO },
		{ "srcnid", IB_MSG_NOOP, 16, 9, -ESTALE },
		{ "srcstamp", IB_MSG_NOOP, 24, 9, -ESTALE },
		{ "dstnid", IB_MSG_NOOP, 32, 9, -ESTALE },
		{ "dststamp", IB_MSG_NOOP, 40, 9, -ESTALE },
		{ "payload", IB_MSG_IMMEDIATE, 76, 11, -EPROTO },
		{ "fragments", IB_MSG_GET_REQ, 132, 2, -EPROTO },
		{ "fragments", IB_MSG_GET_REQ, 132, 0, -EPROTO },
		{ "a PUT_ACK", IB_MSG_PUT_ACK, 0, 0x91, -EPROTO },
		{ "a PUT_NAK", IB_MSG_PUT_NAK, 0, 0x91, -EPROTO },
		{ "a PUT_DONE", IB_MSG_PUT_DONE, 0, 0x91, -EPROTO },
		{ "a GET_DONE", IB_MSG_GET_DONE, 0, 0x91, -EPROTO },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		struct rig r;
		size_t n;

		rig_open(&r, 8);
		rig_accept(&r);
		n = peer_msg(&r, cases[i].type, buf);
		buf[cases[i].at] = cases[i].value;
		rig_put(&r.b, buf, n);
		cr_expect_eq(r.b.ngot, 0, "%s", cases[i].what);
		expect_end(&r, cases[i].status, cases[i].what);
	}
}

/* Answers that fit their request, or do not. */
Test(o2ib_exchange, hostile_answers)
{
	static const struct {
		const char *what;
		bool get;
		enum ib_msg_type type;
		unsigned int at; /* offset of the byte to change; 0: none */
		uint8_t value;
	} cases[] = {
		{ "another cookie", false, IB_MSG_PUT_NAK, 48, 1 },
		{ "another cookie", true, IB_MSG_GET_DONE, 55, 1 },
		{ "NAK of a GET", true, IB_MSG_PUT_NAK, 0, 0 },
		{ "ACK of a GET", true, IB_MSG_PUT_ACK, 0, 0 },
		{ "DONE of a PUT", false, IB_MSG_GET_DONE, 0, 0 },
		{ "PUT_DONE of a PUT", false, IB_MSG_PUT_DONE, 0, 0 },
		{ "a sink too large", false, IB_MSG_PUT_ACK, 74, 1 },
		{ "more than asked for", true, IB_MSG_GET_DONE, 58, 1 },
	};
	const struct ib_frag frag = { 0x1000, 5000 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct ib_sge source = { NULL, 5000, 1 };

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		struct rig r;
		size_t n;

		rig_open(&r, 8);
		rig_accept(&r);
		if (cases[i].get)
			rig_send_get(&r.b, &sink, NULL);
		else
			rig_send_put(&r.b, &source, 5000, NULL);
		n = peer_msg(&r, cases[i].type, buf);
		if (cases[i].at)
			buf[cases[i].at] = cases[i].value;
		rig_put(&r.b, buf, n);
		expect_end(&r, -EPROTO, cases[i].what);
	}
}

/* A second answer to the same request. */
Test(o2ib_exchange, hostile_twice)
{
	struct ib_sge source = { NULL, 5000, 1 };
	uint8_t buf[IB_MSG_SIZE_MAX];
	struct rig r;
	size_t n;

	rig_open(&r, 8);
	rig_accept(&r);
	rig_send_put(&r.b, &source, 5000, NULL);
	n = peer_msg(&r, IB_MSG_PUT_NAK, buf);
	rig_put(&r.b, buf, n);
	cr_expect(!r.b.closed);
	rig_put(&r.b, buf, n);
	expect_end(&r, -EPROTO, "twice");
}

/* More messages than the peer has credits for; a message that is too long. */
Test(o2ib_exchange, hostile_lengths)
{
	uint8_t buf[IB_MSG_SIZE_MAX + 1] = { 0 };
	struct rig r;
	size_t n;

	rig_open(&r, 4);
	r.b.take = false;
	rig_accept(&r);
	n = peer_msg(&r, IB_MSG_IMMEDIATE, buf);
	for (int i = 0; i < 4; i++)
		rig_put(&r.b, buf, n);
	rig_run(&r, 0);
	cr_expect(!r.b.closed);
	rig_put(&r.b, buf, n);
	rig_run(&r, 0);
	ib_rx_end(r.b.got[0].rx, 0);
	expect_end(&r, -EPROTO, "too many");

	rig_open(&r, 4);
	rig_accept(&r);
	rig_put(&r.b, buf, IB_MSG_SIZE_MAX + 1);
	expect_end(&r, -EPROTO, "too long");

	rig_open(&r, 4);
	rig_accept(&r);
	rig_put(&r.b, buf, 3);
	expect_end(&r, -EPROTO, "too short");
}

Test(o2ib_exchange, checksums)
{
	uint8_t buf[IB_MSG_SIZE_MAX];
	struct ib_msg msg;
	const char *why;
	struct rig r;
	size_t n;

	rig_open(&r, 8);
	r.b.conf.cksum = true;
	rig_accept(&r);
	rig_send(&r.b, 100, NULL);
	cr_assert_eq(ib_msg_decode(rig_last(&r.b)->bytes,
				   rig_last(&r.b)->length, &msg, &why),
		     0);
	cr_expect(msg.cksum);
	n = peer_msg(&r, IB_MSG_IMMEDIATE, buf);
	buf[12] = 1;
	rig_put(&r.b, buf, n);
	expect_end(&r, -EPROTO, "wrong checksum");
}

/* Random changes of messages, and random answers: nothing of this side is
 * harmed. */
static void answer_somehow(struct rig *r, struct rng *rng,
			   const struct ib_sge *source)
{
	const struct ib_frag frag = { 0x1000, 10 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct rig_rx *got = &r->b.got[r->b.ngot - 1];
	struct ib_tx *tx;
	int rc = -ENODATA;

	if (rng_below(rng, 2) && got->type == IB_MSG_PUT_REQ)
		rc = ib_rx_accept(got->rx, &sink, NULL, &tx);
	else if (rng_below(rng, 2) && got->type == IB_MSG_GET_REQ)
		rc = ib_rx_answer(got->rx, source,
				  (uint32_t)rng_below(rng, 6000), NULL, &tx);
	if (rc)
		ib_rx_end(got->rx, -ENODATA);
	r->b.ngot--;
}

/* Answers a request, or sends something else. */
static size_t hostile_msg(struct rig *r, struct rng *rng, uint8_t *buf)
{
	static const enum ib_msg_type others[] = {
		IB_MSG_NOOP, IB_MSG_IMMEDIATE, IB_MSG_PUT_REQ, IB_MSG_GET_REQ
	};
	enum ib_msg_type type = others[rng_below(rng, 4)];
	struct list *waiting = &r->b.conn->waiting;
	struct ib_tx *tx;
	size_t n;

	if (list_empty(waiting) || rng_below(rng, 2)) {
		if (!rng_below(rng, 30))
			type = IB_MSG_NOOP + (unsigned int)rng_below(rng, 8);
		return peer_msg(r, type, buf);
	}
	tx = list_first(waiting, struct ib_tx, link);
	if (tx->type == IB_MSG_GET_REQ)
		type = IB_MSG_GET_DONE;
	else if (tx->type == IB_MSG_PUT_ACK)
		type = IB_MSG_PUT_DONE;
	else
		type = rng_below(rng, 3) ? IB_MSG_PUT_ACK : IB_MSG_PUT_NAK;
	n = peer_msg(r, type, buf);
	memcpy(buf + 48, &tx->cookie, sizeof(tx->cookie));
	return n;
}

static void hostile_step(struct rig *r, struct rng *rng)
{
	static const struct ib_frag frag = { 0x1000, 5000 };
	static const struct ib_sink sink = { 9, 1, &frag };
	static const struct ib_sge source = { NULL, 6000, 1 };
	uint8_t buf[IB_MSG_SIZE_MAX];
	size_t n;

	switch (rng_below(rng, 8)) {
	case 0:
		if (r->b.pool.used < 30)
			rig_send_get(&r->b, &sink, NULL);
		break;
	case 1:
		if (r->b.pool.used < 30)
			rig_send_put(&r->b, &source, 5000, NULL);
		break;
	case 2:
		if (r->b.ngot)
			answer_somehow(r, rng, &source);
		break;
	case 3:
		if (r->b.qp->ncalls)
			rig_complete(&r->b, IB_WC_OK);
		break;
	default:
		n = hostile_msg(r, rng, buf);
		if (!rng_below(rng, 12))
			buf[7] = (uint8_t)rng_below(rng, 3);
		if (!rng_below(rng, 20))
			buf[rng_below(rng, n)] = (uint8_t)rng_below(rng, 256);
		if (!rng_below(rng, 30))
			n = rng_below(rng, sizeof(buf) + 1);
		rig_put(&r->b, buf, n);
	}
	rig_run(r, 0);
}

Test(o2ib_exchange, hostile_random)
{
	const unsigned int seeds = slice_of(2000, 500);
	unsigned int closed = 0, steps = 0;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct rng rng;
		struct rig r;

		rng_seed(&rng, seed);
		rig_open(&r, 1 + (unsigned int)rng_below(&rng, 8));
		r.b.take = false;
		rig_accept(&r);
		for (int i = 0; i < 60 && ib_conn_is_open(r.b.conn); i++) {
			hostile_step(&r, &rng);
			steps++;
			r.b.ndone = 0;
			if (!r.b.conn)
				break;
		}
		closed += r.b.closed != 0;
		rig_end_side(&r, &r.b);
		while (r.b.ngot)
			ib_rx_end(r.b.got[--r.b.ngot].rx, 0);
		rig_end_all(&r);
	}
	/* some are refused and some are accepted */
	cr_expect_gt(closed, seeds / 2);
	cr_expect_gt(steps, 4 * seeds);
}
