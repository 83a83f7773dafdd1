/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges over a connection that the protocol allows. */
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

/* ---- PUT ---- */

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
		rig_send_put(&r.a, &source, 5000, NULL);
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
	rig_end_all(&r);
}

/* The sink is shorter than the source, and has gaps. */
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
	rig_send_put(&r.a, source, 5000, NULL);
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
	rig_end_all(&r);
}

/* The answer arrives before the completion of its request. */
Test(o2ib_exchange, put_answered_early)
{
	const struct ib_frag frag = { 0x1000, 5000 };
	const struct ib_sink sink = { 9, 1, &frag };
	struct ib_sge source = { NULL, 5000, 1 };
	struct ib_tx *tx;
	struct rig r;

	rig_open(&r, 8);
	rig_connect(&r);
	rig_send_put(&r.a, &source, 5000, NULL);
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
	rig_end_all(&r);
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
	rig_send_put(&r.a, &source, 5000, NULL);
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
	list_del(&tx->all);
	ib_tx_put(tx);
	rig_settle(&r);
	cr_expect_eq(r.a.done[0].status, -EMSGSIZE);
	rig_end_all(&r);
}

/* ---- GET ---- */

Test(o2ib_exchange, gets)
{
	static const struct {
		int status; /* the error to refuse with; 1: answers */
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

		rig_send_get(&r.a, &sink, NULL);
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
	rig_end_all(&r);
}

/* ---- many WRITEs ---- */

/* More WRITEs than one batch has: NOOPs stand between batches, two posted at
 * most, the DONE comes last, and other messages are sent meanwhile. */
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
	rig_send_put(&r.a, &source, 256 * 20, &tx);
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
	rig_end_all(&r);
}

/* The connection ends between the batches. */
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
		rig_send_put(&r.a, &source, 256 * 20, &r);
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
		rig_end_side(&r, &r.a);
		cr_assert_eq(r.a.ndone, 1);
		cr_expect_eq(r.a.done[0].cause,
			     fail_post ? LNET_CAUSE_LOCAL_ERROR
				       : LNET_CAUSE_REMOTE_ERROR);
		rig_end_all(&r);
	}
}

/* Part of the answer to a GET was written when the connection ends. */
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
	rig_send_get(&r.a, &sink, NULL);
	rig_settle(&r);
	cr_assert_eq(ib_rx_answer(r.b.got[0].rx, &source, 256 * 20, &r, &tx),
		     0);
	cr_expect(tx->begun);
	cr_expect_eq(tx->fsm.state, IB_TX_WRITING);
	cr_expect(ib_tx_abandon(tx, false));
	cr_expect(!ib_conn_is_open(r.b.conn), "its memory is read");
	rig_end_side(&r, &r.b);
	cr_assert_eq(r.b.ndone, 1);
	cr_expect_eq(r.b.done[0].status, -ECANCELED);
	rig_end_all(&r);
}

/* ---- to give up ---- */

enum stage { QUEUED, POSTED, WAITING, ANSWERED, WRITTEN };

/* A PUT or GET is abandoned at each of its stages. */
Test(o2ib_exchange, abandon)
{
	static const struct {
		bool get;
		enum stage stage;
		bool stays; /* bytes of memory */
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
		tx = cases[i].get ? rig_send_get(&r.a, &sink, &r)
				  : rig_send_put(&r.a, &source, 5000, &r);
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
			rig_end_side(&r, &r.a);
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
		rig_end_all(&r);
	}
}
