/* SPDX-License-Identifier: BSD-3-Clause */
/* What passes over a connection: as it was seen between kernel nodes, byte for
 * byte; and whatever else the protocol allows, or does not. */
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#define S   NSEC_PER_SEC
#define MIB (1u << 20)

static void end(struct rig *r, struct rig_side *s)
{
	if (s->conn)
		ib_conn_close(s->conn, -ESHUTDOWN);
	rig_run(r, 0);
	if (s->qp)
		rig_flush(s);
	cr_expect_null(s->conn);
}

static void end_all(struct rig *r)
{
	end(r, &r->a);
	end(r, &r->b);
	rig_close(r);
}

/* ---- as it was seen ---- */

static size_t hex(const char *text, uint8_t *out)
{
	size_t n = 0;
	unsigned int v;
	int used;

	while (sscanf(text, " %2x%n", &v, &used) == 1) {
		out[n++] = (uint8_t)v;
		text += used;
	}
	return n;
}

#define N_TO_P                                             \
	"03 02 4d 0a 00 00 05 00 87 7e c0 f0 bc 60 06 00 " \
	"02 02 4d 0a 00 00 05 00 2a 28 3a f0 bc 60 06 00 "
#define P_TO_N                                             \
	"02 02 4d 0a 00 00 05 00 2a 28 3a f0 bc 60 06 00 " \
	"03 02 4d 0a 00 00 05 00 87 7e c0 f0 bc 60 06 00 "
#define LNET_N_TO_P "02 02 4d 0a 00 00 05 00 03 02 4d 0a 00 00 05 00 "
#define LNET_P_TO_N "03 02 4d 0a 00 00 05 00 02 02 4d 0a 00 00 05 00 "

static const char connreq[] = "91 1b e9 0b 12 00 c0 00 38 00 00 00 00 00 00 00 "
			      "03 02 4d 0a 00 00 05 00 87 7e c0 f0 bc 60 06 00 "
			      "02 02 4d 0a 00 00 05 00 00 00 00 00 00 00 00 00 "
			      "08 00 01 01 00 10 00 00";
static const char connack[] =
	"91 1b e9 0b 12 00 c1 00 38 00 00 00 00 00 00 00 " P_TO_N
	"08 00 01 01 00 10 00 00";
static const char ping[] =
	"91 1b e9 0b 12 00 d1 00 78 00 00 00 00 00 00 00 " N_TO_P LNET_N_TO_P
	"39 30 00 00 39 30 00 00 02 00 00 00 00 00 00 00 "
	"16 79 f2 32 0c e2 e9 18 0d 1c 00 00 00 00 00 00 "
	"00 00 00 00 00 00 00 80 00 00 00 00 00 00 00 00 "
	"78 0f 00 00 00 00 00 00";
static const char pong[] =
	"91 1b e9 0b 12 00 d1 01 a8 00 00 00 00 00 00 00 " P_TO_N LNET_P_TO_N
	"39 30 00 00 39 30 00 00 03 00 00 00 30 00 00 00 "
	"16 79 f2 32 0c e2 e9 18 0d 1c 00 00 00 00 00 00 "
	"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
	"00 00 00 00 00 00 00 00 67 6e 69 70 1e 00 00 00 "
	"39 30 00 00 02 00 00 00 00 00 00 00 00 00 09 00 "
	"05 00 00 00 00 00 00 00 02 02 4d 0a 00 00 05 00 "
	"de c0 aa 15 00 00 00 00";
static const char get_req[] =
	"91 1b e9 0b 12 00 d6 01 94 00 00 00 00 00 00 00 " P_TO_N LNET_P_TO_N
	"39 30 00 00 39 30 00 00 02 00 00 00 00 00 00 00 "
	"4a 25 8e 27 0a e2 e9 18 25 20 00 00 00 00 00 00 "
	"08 00 00 00 00 00 87 cc 34 00 00 00 00 00 00 00 "
	"00 00 10 00 00 00 00 00 06 00 00 00 00 00 00 00 "
	"3d 09 02 00 01 00 00 00 00 00 10 00 00 e0 dc 12 "
	"80 88 ff ff";
static const char get_done[] =
	"91 1b e9 0b 12 00 d7 00 3c 00 00 00 00 00 00 00 " N_TO_P
	"06 00 00 00 00 00 00 00 00 00 10 00";
static const char put_req[] =
	"91 1b e9 0b 12 00 d2 01 80 00 00 00 00 00 00 00 " P_TO_N LNET_P_TO_N
	"39 30 00 00 39 30 00 00 01 00 00 00 00 00 10 00 "
	"ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff "
	"16 00 00 00 00 00 87 cc 00 00 00 00 00 00 00 00 "
	"34 00 00 00 00 00 00 00 0c 00 00 00 00 00 00 00";
static const char put_ack[] =
	"91 1b e9 0b 12 00 d4 00 54 00 00 00 00 00 00 00 " N_TO_P
	"0c 00 00 00 00 00 00 00 29 00 00 00 00 00 00 00 "
	"86 26 02 00 01 00 00 00 00 00 10 00 00 70 eb 0f "
	"80 88 ff ff";
static const char put_done[] =
	"91 1b e9 0b 12 00 d5 00 3c 00 00 00 00 00 00 00 " P_TO_N
	"29 00 00 00 00 00 00 00 00 00 10 00";

static void check_last(const struct rig_side *s, const char *what)
{
	const struct rig_call *c = rig_last(s);
	uint8_t want[IB_MSG_SIZE_MAX];
	size_t n = hex(what, want);

	cr_expect_eq(c->length, n);
	for (size_t i = 0; i < n; i++)
		cr_expect_eq(c->bytes[i], want[i], "%.24s...: byte 0x%zx: %02x",
			     what + 18, i, c->bytes[i]);
}

/* The LNet header, and payload, of the message that was seen. */
static struct ib_tx *tx_like(struct rig_side *s, const char *what)
{
	struct ib_tx *tx = ib_tx_get(s->conn);
	uint8_t seen[IB_MSG_SIZE_MAX];
	size_t n = hex(what, seen);

	cr_assert_not_null(tx);
	memcpy(ib_tx_header(tx), seen + IB_LNET_OFFSET, n - IB_LNET_OFFSET);
	return tx;
}

static void arrives(struct rig *r, struct rig_side *from)
{
	cr_assert_not_null(rig_carry(from));
	rig_complete(from, IB_WC_OK);
	rig_run(r, 0);
}

/* The last message that has arrived is taken. */
static void take(struct rig_side *s)
{
	cr_assert(s->ngot);
	ib_rx_end(s->got[s->ngot - 1].rx, 0);
}

/* A message of the conversation of which only the credits are known. */
static void talk(struct rig *r, struct rig_side *from, uint8_t credits,
		 int number)
{
	cr_assert_not_null(rig_send(from, 160, NULL));
	cr_expect_eq(rig_last(from)->bytes[7], credits, "#%d: %u credits",
		     number, rig_last(from)->bytes[7]);
	cr_expect_eq(rig_last(from)->length, 280);
	arrives(r, from);
}

static void seen_small(struct rig *r, struct rig_side *n, struct rig_side *p)
{
	ib_send_immediate(tx_like(n, ping), 0);
	check_last(n, ping);
	arrives(r, n);
	take(p);
	ib_send_immediate(tx_like(p, pong), 48);
	check_last(p, pong);
	arrives(r, p);
	take(n);
	talk(r, n, 1, 8);
	take(p);
	talk(r, p, 1, 10);
	take(n);
	talk(r, n, 1, 12);
	talk(r, p, 0, 14);
	ib_rx_end(p->got[p->ngot - 1].rx, 0);
	talk(r, p, 1, 16);
	cr_expect_eq(p->conn->credit.have, 6);
	ib_rx_end(n->got[n->ngot - 1].rx, 0); /* #14 */
	rig_run(r, 0);
	talk(r, n, 1, 18);
	take(n); /* #16 */
	take(p);
}

static void seen_get(struct rig *r, struct rig_side *n, struct rig_side *p)
{
	const struct ib_frag frag = { UINT64_C(0xffff888012dce000), MIB };
	const struct ib_sink sink = { 0x0002093d, 1, &frag };
	struct ib_sge source = { NULL, MIB, 1 };
	struct ib_tx *tx;

	talk(r, n, 1, 9);
	cr_expect_eq(p->conn->credit.have, 8);
	take(p);
	p->pool.next_cookie = 6;
	cr_assert_eq(ib_send_get(tx_like(p, get_req), &sink), 0);
	check_last(p, get_req);
	cr_expect_eq(p->conn->credit.have, 7);
	cr_expect_eq(p->conn->credit.reserved, 7);
	arrives(r, p);
	cr_assert_eq(
		ib_rx_answer(n->got[n->ngot - 1].rx, &source, MIB, NULL, &tx),
		0);
	check_last(n, get_done);
	cr_expect_eq(rig_last(n)->nwrites, 1);
	cr_expect_eq(rig_last(n)->writes[0].addr, frag.addr);
	cr_expect_eq(rig_last(n)->writes[0].rkey, 0x0002093d);
	cr_expect_eq(rig_last(n)->writes[0].length, MIB);
	arrives(r, n);
	cr_expect_eq(p->conn->credit.have, 7);
	cr_expect_eq(p->conn->credit.reserved, 8);
	cr_expect_eq(p->done[p->ndone - 1].nob, MIB);
	talk(r, p, 0, 1055);
	cr_expect_eq(p->conn->credit.have, 6);
	take(n);
	talk(r, n, 2, 1057);
	cr_expect_eq(p->conn->credit.have, 8);
	take(p);
}

static void seen_put(struct rig *r, struct rig_side *n, struct rig_side *p)
{
	const struct ib_frag frag = { UINT64_C(0xffff88800feb7000), MIB };
	const struct ib_sink sink = { 0x00022686, 1, &frag };
	struct ib_sge source = { NULL, MIB, 1 };
	struct ib_tx *tx;

	talk(r, n, 1, 1073);
	take(p);
	p->pool.next_cookie = 12;
	ib_send_put(tx_like(p, put_req), &source, MIB);
	check_last(p, put_req);
	cr_expect_eq(p->conn->credit.have, 7);
	cr_expect_eq(p->conn->credit.reserved, 7);
	arrives(r, p);
	n->pool.next_cookie = 41;
	cr_assert_eq(ib_rx_accept(n->got[n->ngot - 1].rx, &sink, NULL, &tx), 0);
	check_last(n, put_ack);
	arrives(r, n);
	check_last(p, put_done);
	cr_expect_eq(p->conn->credit.reserved, 8);
	cr_expect_eq(rig_last(p)->nwrites, 1);
	cr_expect_eq(rig_last(p)->writes[0].addr, frag.addr);
	cr_expect_eq(rig_last(p)->writes[0].rkey, 0x00022686);
	arrives(r, p);
	cr_expect_eq(p->conn->credit.have, 7);
	cr_expect_eq(n->done[n->ndone - 1].nob, MIB);
	talk(r, p, 0, 2121);
	cr_expect_eq(p->conn->credit.have, 6);
	take(n);
	talk(r, n, 2, 2123);
	cr_expect_eq(p->conn->credit.have, 8);
	cr_expect_eq(p->conn->credit.reserved, 8);
	take(p);
}

Test(o2ib_exchange, as_seen)
{
	uint8_t full[IB_PRIVATE_ACCEPT_SIZE] = { 0 }, want[64];
	struct rig_side *n, *p;
	struct rig r;

	rig_open(&r, 8);
	n = &r.a;
	p = &r.b;
	r.frags = 257;
	n->take = p->take = false;
	n->conf.max_inline = p->conf.max_inline = 0;
	rig_ask(&r);
	cr_expect_eq(n->qp->private_len, hex(connreq, want));
	cr_expect_eq(memcmp(n->qp->private, want, 56), 0);
	cr_expect_eq(p->qp->private_len, hex(connack, want));
	cr_expect_eq(memcmp(p->qp->private, want, 56), 0);
	memcpy(full, p->qp->private, p->qp->private_len);
	ib_conn_on_established(&n->qp->qp, full, sizeof(full));
	ib_conn_on_established(&p->qp->qp, NULL, 0);

	seen_small(&r, n, p);
	/* What was between the two captures. */
	talk(&r, p, 1, 0);
	take(n);
	talk(&r, n, 2, 0);
	take(p);
	talk(&r, p, 1, 0);
	take(n);
	seen_get(&r, n, p);
	talk(&r, p, 1, 0);
	take(n);
	seen_put(&r, n, p);
	end_all(&r);
}

/* ---- PUT ---- */

static struct ib_tx *put(struct rig_side *s, const struct ib_sge *source,
			 uint32_t length, void *user)
{
	struct ib_tx *tx = ib_tx_get(s->conn);

	cr_assert_not_null(tx);
	tx->user = user;
	rig_header(ib_tx_header(tx), 1, length);
	ib_send_put(tx, source, length);
	return tx;
}

static struct ib_tx *get(struct rig_side *s, const struct ib_sink *sink,
			 void *user)
{
	struct ib_tx *tx = ib_tx_get(s->conn);

	cr_assert_not_null(tx);
	tx->user = user;
	rig_header(ib_tx_header(tx), 2, 0);
	cr_assert_eq(ib_send_get(tx, sink), 0);
	return tx;
}

static uint32_t written(const struct rig_call *c)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < c->nwrites; i++)
		n += c->writes[i].length;
	return n;
}

Test(o2ib_exchange, put_refused)
{
	static const struct {
		int status, want;
		enum ulnet_cause cause;
	} cases[] = {
		{ 0, 0, LNET_CAUSE_OK },
		{ -ENOMEM, -ENOMEM, LNET_CAUSE_REMOTE_ERROR },
	};
	struct ib_sge source = { NULL, 5000, 1 };
	struct rig r;

	rig_open(&r, 8);
	rig_connect(&r);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		put(&r.a, &source, 5000, NULL);
		cr_expect_eq(r.a.conn->credit.reserved, 7);
		rig_settle(&r);
		ib_rx_end(r.b.got[i].rx, cases[i].status);
		rig_settle(&r);
		cr_assert_eq(r.a.ndone, i + 1);
		cr_expect_eq(r.a.done[i].status, cases[i].want);
		cr_expect_eq(r.a.done[i].cause, cases[i].cause);
		cr_expect_eq(r.a.done[i].nob, 0);
		cr_expect_eq(r.a.conn->credit.reserved, 8);
		cr_expect_eq(r.b.ndone, 0);
	}
	end_all(&r);
}

/* The sink is shorter than what there is; and has gaps. */
Test(o2ib_exchange, put_truncated)
{
	const struct ib_frag frags[] = { { 0x1000, 100 },
					 { 0x9000, 0 },
					 { 0x5000, 1000 } };
	const struct ib_sink sink = { 9, 3, frags };
	struct ib_sge source[] = { { NULL, 3000, 1 }, { NULL, 2000, 2 } };
	struct ib_tx *tx;
	struct rig r;

	rig_open(&r, 8);
	rig_connect(&r);
	put(&r.a, source, 5000, NULL);
	rig_settle(&r);
	cr_assert_eq(ib_rx_accept(r.b.got[0].rx, &sink, &r, &tx), 0);
	rig_carry(&r.b);
	cr_expect_eq(rig_last(&r.a)->nwrites, 2);
	cr_expect_eq(written(rig_last(&r.a)), 1100);
	cr_expect_eq(rig_last(&r.a)->writes[0].addr, 0x1000);
	cr_expect_eq(rig_last(&r.a)->writes[1].addr, 0x5000);
	rig_settle(&r);
	cr_assert_eq(r.a.ndone, 1);
	cr_expect_eq(r.a.done[0].nob, 1100);
	cr_assert_eq(r.b.ndone, 1);
	cr_expect_eq(r.b.done[0].nob, 1100);
	cr_expect_eq(r.b.done[0].user, &r);
	end_all(&r);
}

/* The answer comes before this side knows that its request has left. */
Test(o2ib_exchange, put_answered_early)
{
	const struct ib_frag frag = { 0x1000, 5000 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct ib_sge source = { NULL, 5000, 1 };
	struct ib_tx *tx;
	struct rig r;

	rig_open(&r, 8);
	rig_connect(&r);
	put(&r.a, &source, 5000, NULL);
	rig_carry(&r.a);
	cr_assert_eq(ib_rx_accept(r.b.got[0].rx, &sink, &r, &tx), 0);
	rig_carry(&r.b);
	cr_assert_eq(r.a.qp->ncalls, 2);
	rig_carry(&r.a);
	cr_assert_eq(r.b.ndone, 0, "its own PUT_ACK has not completed");
	rig_complete(&r.b, IB_WC_OK);
	cr_assert_eq(r.b.ndone, 1);
	rig_complete(&r.a, IB_WC_OK);
	cr_assert_eq(r.a.ndone, 0);
	rig_complete(&r.a, IB_WC_OK);
	cr_assert_eq(r.a.ndone, 1);
	end_all(&r);
}

Test(o2ib_exchange, too_large)
{
	struct ib_frag frags[9] = { { 0x1000, 5001 } };
	struct ib_sink sink = { 9, 1, frags };
	struct ib_sge source = { NULL, 5000, 1 };
	struct ib_tx *tx;
	struct rig r;

	rig_open(&r, 8);
	r.frags = 8;
	rig_connect(&r);
	put(&r.a, &source, 5000, NULL);
	rig_settle(&r);
	cr_expect_eq(ib_rx_accept(r.b.got[0].rx, &sink, &r, &tx), -EMSGSIZE,
		     "more than there is");
	frags[0].nob = 1;
	sink.nfrags = 9;
	cr_expect_eq(ib_rx_accept(r.b.got[0].rx, &sink, &r, &tx), -EMSGSIZE,
		     "more fragments than agreed upon");
	ib_rx_end(r.b.got[0].rx, -EMSGSIZE);
	tx = ib_tx_get(r.a.conn);
	cr_expect_eq(ib_send_get(tx, &sink), -EMSGSIZE);
	ib_tx_unget(tx);
	rig_settle(&r);
	cr_expect_eq(r.a.done[0].status, -EMSGSIZE);
	end_all(&r);
}

/* ---- GET ---- */

Test(o2ib_exchange, gets)
{
	static const struct {
		int status; /* refused with that; 1: answered */
		uint32_t length;
		int want;
		enum ulnet_cause cause;
	} cases[] = {
		{ -ENODATA, 0, -ENODATA, LNET_CAUSE_REMOTE_ERROR },
		{ 0, 0, 0, LNET_CAUSE_OK },
		{ 1, 0, 0, LNET_CAUSE_OK },
		{ 1, 1, 0, LNET_CAUSE_OK },
		{ 1, 4999, 0, LNET_CAUSE_OK },
		{ 1, 5000, 0, LNET_CAUSE_OK },
		{ 1, 5001, -EMSGSIZE, LNET_CAUSE_REMOTE_ERROR },
	};
	const struct ib_frag frag = { 0x1000, 5000 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct ib_sge source = { NULL, 6000, 1 };
	struct ib_tx *tx;
	struct rig r;

	rig_open(&r, 8);
	rig_connect(&r);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ib_rx *rx;
		int rc = cases[i].status;

		get(&r.a, &sink, NULL);
		rig_settle(&r);
		rx = r.b.got[i].rx;
		if (rc == 1)
			rc = ib_rx_answer(rx, &source, cases[i].length, &r,
					  &tx);
		else
			ib_rx_end(rx, rc);
		if (cases[i].status == 1 && rc)
			ib_rx_end(rx, rc);
		cr_expect_eq(written(rig_last(&r.b)), rc ? 0 : cases[i].length);
		rig_settle(&r);
		cr_assert_eq(r.a.ndone, i + 1);
		cr_expect_eq(r.a.done[i].status, cases[i].want, "case %u", i);
		cr_expect_eq(r.a.done[i].cause, cases[i].cause);
		cr_expect_eq(r.a.done[i].nob,
			     cases[i].want ? 0 : cases[i].length);
	}
	cr_expect_eq(r.b.ndone, 4);
	end_all(&r);
}

/* ---- many WRITEs ---- */

/* More than are posted at a time: NOOPs stand between, two at most, and the
 * DONE comes last; meanwhile others are sent. */
Test(o2ib_exchange, many_writes)
{
	struct ib_frag frags[256];
	const struct ib_sink sink = { 9, 256, frags };
	struct ib_sge source = { NULL, 256 * 20, 1 };
	unsigned int writes = 0, noops = 0;
	struct rig_call *c;
	struct ib_tx *tx;
	struct rig r;

	for (unsigned int i = 0; i < 256; i++)
		frags[i] = (struct ib_frag){ 0x100000 - i * 1000, 20 };
	rig_open(&r, 8);
	rig_connect(&r);
	put(&r.a, &source, 256 * 20, &tx);
	rig_settle(&r);
	cr_assert_eq(ib_rx_accept(r.b.got[0].rx, &sink, &r, &tx), 0);
	rig_carry(&r.b);
	cr_expect_leq(r.a.qp->ncalls, 2);
	rig_send(&r.a, 1, NULL);
	while ((c = rig_carry(&r.a))) {
		for (unsigned int i = 0; i < c->nwrites; i++, writes++) {
			cr_assert_eq(c->writes[i].addr, frags[writes].addr);
			cr_assert_eq(c->writes[i].length, 20);
		}
		noops += c->bytes[6] == IB_MSG_NOOP;
		cr_expect_leq(r.a.conn->noops, 2);
		cr_expect(c->bytes[6] != IB_MSG_PUT_DONE || writes == 256);
		rig_complete(&r.a, IB_WC_OK);
	}
	cr_expect_eq(writes, 256);
	cr_expect_geq(noops, 3);
	rig_settle(&r);
	cr_expect_eq(r.a.ndone, 2);
	cr_expect_eq(r.b.ndone, 1);
	cr_expect_eq(r.a.conn->slots, r.a.conn->max_slots);
	end_all(&r);
}

/* The connection ends in the midst of them. */
Test(o2ib_exchange, many_writes_in_vain)
{
	struct ib_frag frags[256];
	const struct ib_sink sink = { 9, 256, frags };
	struct ib_sge source = { NULL, 256 * 20, 1 };
	struct ib_tx *tx;
	struct rig r;

	for (unsigned int i = 0; i < 256; i++)
		frags[i] = (struct ib_frag){ 0x100000 - i * 1000, 20 };
	for (int fail_post = 0; fail_post < 2; fail_post++) {
		rig_open(&r, 8);
		rig_connect(&r);
		put(&r.a, &source, 256 * 20, &r);
		rig_settle(&r);
		cr_assert_eq(ib_rx_accept(r.b.got[0].rx, &sink, &r, &tx), 0);
		rig_carry(&r.b);
		rig_carry(&r.a);
		if (fail_post)
			r.a.fail_post_send = -EIO;
		else
			r.a.qp->error = true;
		rig_complete(&r.a, fail_post ? IB_WC_OK : IB_WC_REMOTE_ACCESS);
		rig_run(&r, 0);
		cr_expect(r.a.closed);
		cr_expect_eq(r.a.status, fail_post ? -EIO : -EREMOTEIO);
		end(&r, &r.a);
		cr_assert_eq(r.a.ndone, 1);
		cr_expect_eq(r.a.done[0].cause,
			     fail_post ? LNET_CAUSE_LOCAL_ERROR
				       : LNET_CAUSE_REMOTE_ERROR);
		end_all(&r);
	}
}

/* The answer to a GET, of which some was written: it has begun. */
Test(o2ib_exchange, many_writes_of_get)
{
	struct ib_frag frags[256];
	const struct ib_sink sink = { 9, 256, frags };
	struct ib_sge source = { NULL, 256 * 20, 1 };
	struct ib_tx *tx;
	struct rig r;

	for (unsigned int i = 0; i < 256; i++)
		frags[i] = (struct ib_frag){ 0x100000 - i * 1000, 20 };
	rig_open(&r, 8);
	rig_connect(&r);
	get(&r.a, &sink, NULL);
	rig_settle(&r);
	cr_assert_eq(ib_rx_answer(r.b.got[0].rx, &source, 256 * 20, &r, &tx),
		     0);
	cr_expect(tx->begun);
	cr_expect_eq(tx->fsm.state, IB_TX_WRITING);
	cr_expect(ib_tx_abandon(tx, false));
	cr_expect(!ib_conn_is_open(r.b.conn), "its memory is read");
	end(&r, &r.b);
	cr_assert_eq(r.b.ndone, 1);
	cr_expect_eq(r.b.done[0].status, -ECANCELED);
	end_all(&r);
}

/* ---- to give up ---- */

enum stage { QUEUED, POSTED, WAITING, ANSWERED, WRITTEN };

/* A PUT or GET of which so much has happened is given up. */
Test(o2ib_exchange, abandon)
{
	static const struct {
		bool get;
		enum stage stage;
		bool stays; /* memory */
		bool begun, goes_on;
	} cases[] = {
		{ false, QUEUED, false, false, true },
		{ true, QUEUED, false, false, true },
		{ false, POSTED, false, true, true },
		{ false, WAITING, false, true, true },
		{ false, ANSWERED, false, true, true },
		{ false, WRITTEN, false, true, false },
		{ false, WRITTEN, true, true, true },
		{ true, POSTED, false, true, false },
		{ true, WAITING, false, true, false },
		{ true, WAITING, true, true, true },
	};
	const struct ib_frag frag = { 0x1000, 5000 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct ib_sge source = { NULL, 5000, 1 };

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ib_tx *tx, *other;
		enum stage stage = cases[i].stage;
		struct rig r;

		rig_open(&r, 8);
		r.a.conf.concurrent_sends = 1;
		rig_connect(&r);
		if (stage == QUEUED)
			rig_send(&r.a, 1, NULL);
		tx = cases[i].get ? get(&r.a, &sink, &r)
				  : put(&r.a, &source, 5000, &r);
		if (stage >= WAITING) {
			rig_carry(&r.a);
			rig_complete(&r.a, IB_WC_OK);
		}
		if (stage >= ANSWERED) {
			if (stage == ANSWERED)
				rig_send(&r.a, 1, NULL);
			cr_assert_eq(
				ib_rx_accept(r.b.got[0].rx, &sink, &r, &other),
				0);
			rig_carry(&r.b);
		}
		cr_expect_eq(ib_tx_abandon(tx, cases[i].stays), cases[i].begun,
			     "case %u", i);
		cr_expect_eq(ib_conn_is_open(r.a.conn), cases[i].goes_on,
			     "case %u", i);
		cr_expect_eq(r.a.ndone, 0, "not in the call");
		if (cases[i].goes_on) {
			rig_settle(&r);
			if (stage == POSTED || stage == WAITING) {
				if (cases[i].get)
					ib_rx_end(r.b.got[0].rx, -ENODATA);
				else
					cr_assert_eq(ib_rx_accept(r.b.got[0].rx,
								  &sink, &r,
								  &other),
						     0);
				rig_settle(&r);
				if (!cases[i].get)
					cr_expect_eq(r.b.done[0].status,
						     -ECANCELED);
			}
			cr_expect_eq(r.a.conn->credit.reserved, 8);
		} else {
			end(&r, &r.a);
		}
		for (unsigned int k = 0; k < r.b.ngot; k++)
			if (r.b.got[k].type == IB_MSG_GET_REQ &&
			    !cases[i].goes_on)
				ib_rx_end(r.b.got[k].rx, 0);
		for (unsigned int k = 0; k < r.a.ndone; k++)
			if (r.a.done[k].user == &r)
				cr_expect_eq(r.a.done[k].status, -ECANCELED,
					     "case %u: %d", i,
					     r.a.done[k].status);
		end_all(&r);
	}
}

/* ---- peers that do what is not allowed ---- */

/* A message of the peer of r->b, to be made worse. */
static size_t peer_msg(const struct rig *r, enum ib_msg_type type, uint8_t *buf)
{
	const struct ib_frag frag = { 0x1000, 5000 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct ib_envelope env = { IB_VERSION_2, r->a.home.self,
				   r->b.home.self };
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
	end_all(r);
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

/* Answers that fit what was asked for, and do not. */
Test(o2ib_exchange, hostile_answers)
{
	static const struct {
		const char *what;
		bool get;
		enum ib_msg_type type;
		unsigned int at; /* changed there; 0: nothing is */
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
			get(&r.b, &sink, NULL);
		else
			put(&r.b, &source, 5000, NULL);
		n = peer_msg(&r, cases[i].type, buf);
		if (cases[i].at)
			buf[cases[i].at] = cases[i].value;
		rig_put(&r.b, buf, n);
		expect_end(&r, -EPROTO, cases[i].what);
	}
}

/* An answer twice. */
Test(o2ib_exchange, hostile_twice)
{
	struct ib_sge source = { NULL, 5000, 1 };
	uint8_t buf[IB_MSG_SIZE_MAX];
	struct rig r;
	size_t n;

	rig_open(&r, 8);
	rig_accept(&r);
	put(&r.b, &source, 5000, NULL);
	n = peer_msg(&r, IB_MSG_PUT_NAK, buf);
	rig_put(&r.b, buf, n);
	cr_expect(!r.b.closed);
	rig_put(&r.b, buf, n);
	expect_end(&r, -EPROTO, "twice");
}

/* More messages than it has credits for; one that is too long. */
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
	r.b.conf.cksum_lenient = true;
	rig_accept(&r);
	n = peer_msg(&r, IB_MSG_IMMEDIATE, buf);
	buf[12] = 1;
	rig_put(&r.b, buf, n);
	rig_run(&r, 0);
	cr_expect(!r.b.closed, "that is only logged");
	cr_expect_eq(r.b.ngot, 1);
	rig_send(&r.b, 100, NULL);
	cr_assert_eq(ib_msg_decode(rig_last(&r.b)->bytes,
				   rig_last(&r.b)->length, &msg, &why),
		     0);
	cr_expect(msg.cksum);
	cr_expect_eq(msg.credits, 1);
	end_all(&r);
}

/* Anything at all: bytes of messages are changed, and what is asked and
 * answered makes no sense; nothing of this side is harmed. */
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

/* An answer to what has been asked, or something else. */
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
			get(&r->b, &sink, NULL);
		break;
	case 1:
		if (r->b.pool.used < 30)
			put(&r->b, &source, 5000, NULL);
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
	unsigned int closed = 0, steps = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
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
		end(&r, &r.b);
		while (r.b.ngot)
			ib_rx_end(r.b.got[--r.b.ngot].rx, 0);
		end_all(&r);
	}
	/* It is neither all refused nor all let through. */
	cr_expect_gt(closed, 1000);
	cr_expect_gt(steps, 8000);
}
