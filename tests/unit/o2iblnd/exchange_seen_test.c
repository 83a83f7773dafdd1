/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversations of kernel nodes, replayed byte for byte. */
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#define MIB (1u << 20)

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

/* The LNet header and payload of the captured message. */
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

/* Answers the last message that has arrived. */
static void take(struct rig_side *s)
{
	cr_assert(s->ngot);
	ib_rx_end(s->got[s->ngot - 1].rx, 0);
}

/* A message that was not captured; only its credits are known. */
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
	/* what was sent between the two captures */
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
	rig_end_all(&r);
}
