/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of transmits; work requests that write between lists of parts. */
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "base/buf.h"

/* ---- pools ---- */

Test(o2ib_tx, pool)
{
	struct ib_tx *txs[130], *more;
	struct rig r;

	rig_open(&r, 8);
	r.a.pool.max = 128;
	cr_expect_eq(r.a.mrs, 0, "nothing before it is needed");
	for (unsigned int i = 0; i < 128; i++) {
		txs[i] = ib_tx_new(&r.a.pool, false);
		cr_assert_not_null(txs[i]);
		cr_expect_eq(ib_tx_name(txs[i]), i);
		memset(ib_tx_buf(txs[i]), (int)i, IB_MSG_SIZE_MAX);
	}
	cr_expect_eq(r.a.mrs, 2, "slabs of 64");
	cr_expect_null(ib_tx_new(&r.a.pool, false));
	cr_expect_eq(r.a.pool.refused, 1);
	more = ib_tx_new(&r.a.pool, true);
	cr_assert_not_null(more, "answers are always possible");
	cr_expect_eq(r.a.pool.used, 129);
	for (unsigned int i = 0; i < 128; i++) {
		for (unsigned int k = 0; k < IB_MSG_SIZE_MAX; k++)
			cr_assert_eq(ib_tx_buf(txs[i])[k], i);
		ib_tx_put(txs[i]);
	}
	ib_tx_put(more);
	cr_expect_eq(r.a.pool.used, 0);
	rig_close(&r);
}

/* However many answers are made for peers, this side may send requests. */
Test(o2ib_tx, answers_do_not_count)
{
	struct ib_tx *answers[8], *tx;
	struct rig r;

	rig_open(&r, 8);
	r.a.pool.max = 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(answers); i++) {
		answers[i] = ib_tx_new(&r.a.pool, true);
		cr_assert_not_null(answers[i]);
	}
	tx = ib_tx_new(&r.a.pool, false);
	cr_assert_not_null(tx);
	cr_expect_null(ib_tx_new(&r.a.pool, false));
	for (unsigned int i = 0; i < ARRAY_SIZE(answers); i++)
		ib_tx_put(answers[i]);
	cr_expect_null(ib_tx_new(&r.a.pool, false));
	ib_tx_put(tx);
	cr_expect_eq(r.a.pool.used, 0);
	cr_expect_eq(r.a.pool.requests, 0);
	rig_close(&r);
}

Test(o2ib_tx, no_memory)
{
	struct ib_tx *tx;
	struct rig r;

	rig_open(&r, 8);
	r.a.fail_reg = -ENOMEM;
	cr_expect_null(ib_tx_new(&r.a.pool, true));
	cr_expect_eq(r.a.pool.failed, 1);
	r.a.fail_reg = 0;
	tx = ib_tx_new(&r.a.pool, true);
	cr_assert_not_null(tx);
	ib_tx_put(tx);
	rig_close(&r);
}

Test(o2ib_tx, first_result)
{
	struct ib_tx tx = { 0 };

	ib_tx_result(&tx, -ETIMEDOUT, LNET_CAUSE_NETWORK_TIMEOUT);
	ib_tx_result(&tx, 0, LNET_CAUSE_OK);
	cr_expect_eq(tx.status, -ETIMEDOUT);
	cr_expect_eq(tx.cause, LNET_CAUSE_NETWORK_TIMEOUT);
}

/* ---- writes ---- */

#define BYTES 4000

struct far {
	uint8_t bytes[2 * BYTES];
	uint8_t frags[IB_FRAGS_MAX * IB_FRAG_SIZE];
	struct ib_rdma rdma;
};

/* The peer's addresses begin here, so that none is a valid pointer. */
#define FAR UINT64_C(0x7f0000000000)

static uint32_t random_length(struct rng *rng, uint32_t left)
{
	uint32_t n =
		rng_below(rng, 8)
			? (uint32_t)rng_below(rng, rng_below(rng, 3) ? 20 : 600)
			: 0;

	return MIN(n, left);
}

/* Fragments of @total bytes, with gaps, in random order. */
static void far_fill(struct far *f, struct rng *rng, uint32_t total)
{
	uint64_t at = rng_below(rng, 100);
	unsigned int n = 0;
	uint32_t left = total;

	f->rdma = (struct ib_rdma){ .key = 7, .frags = f->frags };
	while (left || !n) {
		uint32_t nob =
			n == IB_FRAGS_MAX - 1 ? left : random_length(rng, left);

		store_le32(&f->frags[n * IB_FRAG_SIZE], nob);
		store_le64(&f->frags[n * IB_FRAG_SIZE + 4], FAR + at);
		at += nob + rng_below(rng, 10);
		left -= nob;
		n++;
	}
	f->rdma.nfrags = n;
}

static void write_one(struct far *f, const struct ib_wr *wr)
{
	uint64_t at = wr->remote_addr - FAR;

	cr_assert_eq(wr->type, IB_WR_WRITE);
	cr_assert_eq(wr->rkey, 7);
	cr_assert(wr->nsge);
	for (unsigned int i = 0; i < wr->nsge; i++) {
		cr_assert(wr->sge[i].length);
		cr_assert_leq(at + wr->sge[i].length, sizeof(f->bytes));
		for (uint32_t k = 0; k < wr->sge[i].length; k++)
			cr_assert_eq(f->bytes[at + k], 0, "written twice");
		memcpy(&f->bytes[at], wr->sge[i].addr, wr->sge[i].length);
		at += wr->sge[i].length;
	}
}

static void check_far(const struct far *f, const uint8_t *near, uint32_t length)
{
	uint32_t done = 0, written = 0;

	for (unsigned int i = 0; i < f->rdma.nfrags; i++) {
		uint64_t addr;
		uint32_t nob;

		ib_rdma_frag(&f->rdma, i, &addr, &nob);
		for (uint32_t k = 0; k < nob; k++, done++)
			cr_assert_eq(f->bytes[addr - FAR + k],
				     done < length ? near[done] : 0);
	}
	for (unsigned int i = 0; i < sizeof(f->bytes); i++)
		written += f->bytes[i] != 0;
	cr_assert_eq(written, length, "nothing beside it");
}

static void run_writes(uint64_t seed)
{
	struct far *f = calloc(1, sizeof(*f));
	uint8_t near[BYTES];
	struct ib_sge sge[BYTES], out[IB_WRITE_SGES];
	unsigned int n = 0, nwr = 0, max_sge;
	struct ib_writes w;
	struct rng rng;
	uint32_t total, length, left = BYTES;
	struct ib_wr wr;

	cr_assert_not_null(f);
	rng_seed(&rng, seed);
	for (unsigned int i = 0; i < BYTES; i++)
		near[i] = (uint8_t)(1 + rng_below(&rng, 255));
	for (; left; n++) {
		uint32_t piece = random_length(&rng, left);

		sge[n] = (struct ib_sge){ near + BYTES - left, piece, n };
		left -= piece;
		cr_assert_lt(n, BYTES - 1);
	}
	total = (uint32_t)rng_below(&rng, BYTES + 1);
	far_fill(f, &rng, total);
	length = (uint32_t)rng_below(&rng, total + 1);
	max_sge = 1 + (unsigned int)rng_below(&rng, IB_WRITE_SGES);
	ib_writes_init(&w, &f->rdma, sge, length);
	nwr = ib_writes_count(&w, max_sge);
	for (; !ib_writes_end(&w); nwr--) {
		cr_assert(nwr);
		ib_writes_next(&w, &wr, out, max_sge);
		cr_assert_leq(wr.nsge, max_sge);
		write_one(f, &wr);
	}
	cr_assert_eq(nwr, 0, "seed %ju", (uintmax_t)seed);
	check_far(f, near, length);
	free(f);
}

Test(o2ib_writes, random)
{
	for (uint64_t seed = 1; seed <= 500; seed++)
		run_writes(seed);
}

/* A megabyte from one part to one fragment is one WRITE. */
Test(o2ib_writes, one)
{
	struct far f = { .rdma = { 7, 1, f.frags, false } };
	struct ib_sge sge = { NULL, 1u << 20, 1 }, out[4];
	struct ib_writes w;
	struct ib_wr wr;

	store_le32(f.frags, 1u << 20);
	store_le64(f.frags + 4, UINT64_MAX - 5);
	ib_writes_init(&w, &f.rdma, &sge, 1u << 20);
	cr_assert_eq(ib_writes_count(&w, 4), 1);
	ib_writes_next(&w, &wr, out, 4);
	cr_expect_eq(wr.remote_addr, UINT64_MAX - 5);
	cr_expect_eq(out[0].length, 1u << 20);
	cr_expect(ib_writes_end(&w));
}
