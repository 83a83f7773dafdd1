/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of memory that users register, and MDs in them. */
#include "lnet/portal/mem.h"

#include <criterion/criterion.h>
#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"

static uint8_t memory[10000];

static uintptr_t at(size_t offset)
{
	return (uintptr_t)memory + offset;
}

static int add(struct mems *m, size_t start, size_t end)
{
	cr_assert_eq(mems_reserve(m), 0);
	return mems_add(m, at(start), at(end));
}

/* Returns where the range begins that has all these pieces; -1: none has. */
static int found(const struct mems *m, const struct iovec *iov,
		 unsigned int niov)
{
	const struct lnet_mem *mem = mems_find(m, iov, niov);

	return mem ? (int)(mem->range.start - at(0)) : -1;
}

static int found_one(const struct mems *m, size_t start, size_t length)
{
	struct iovec iov = { memory + start, length };

	return found(m, &iov, 1);
}

Test(mem, ranges)
{
	struct mems m = { 0 };

	for (unsigned int i = 0; i < 20; i++)
		cr_assert_eq(add(&m, 400 * (19 - i), 400 * (19 - i) + 300), 0);
	cr_expect_eq(add(&m, 0, 1), -EEXIST);
	cr_expect_eq(add(&m, 299, 400), -EEXIST);
	cr_expect_eq(add(&m, 350, 401), -EEXIST);
	cr_expect_eq(add(&m, 100, 9000), -EEXIST);
	cr_expect_eq(add(&m, 300, 400), 0, "it is next to others");
	cr_expect_eq(mems_check(&m, at(300), at(400)), 0);
	cr_expect_eq(mems_check(&m, at(300), at(399)), -ENOENT);
	cr_expect_eq(mems_check(&m, at(301), at(400)), -ENOENT);
	cr_expect_eq(mems_check(&m, at(0), at(400)), -ENOENT);
	mems_del(&m, at(0), at(301));
	cr_expect_eq(m.n, 21);
	mems_del(&m, at(300), at(400));
	cr_expect_eq(m.n, 20);
	cr_expect_eq(add(&m, 300, 400), 0);
	mems_fini(&m);
}

Test(mem, pieces)
{
	struct mems m = { 0 };
	struct iovec iov[] = { { NULL, 0 },
			       { memory + 500, 100 },
			       { memory + 7, 0 },
			       { memory + 400, 50 } };

	cr_expect_eq(found_one(&m, 0, 10), -1);
	cr_assert_eq(add(&m, 400, 600), 0);
	cr_assert_eq(add(&m, 600, 700), 0);
	cr_expect_eq(found_one(&m, 400, 200), 400);
	cr_expect_eq(found_one(&m, 600, 100), 600);
	cr_expect_eq(found_one(&m, 399, 10), -1);
	cr_expect_eq(found_one(&m, 699, 2), -1);
	cr_expect_eq(found_one(&m, 700, 1), -1);
	cr_expect_eq(found_one(&m, 500, 150), -1, "it is in two");
	cr_expect_eq(found_one(&m, 500, SIZE_MAX), -1);
	cr_expect_eq(found_one(&m, 500, 0), -1, "there is nothing");
	cr_expect_eq(found(&m, iov, 4), 400);
	iov[3].iov_len = 201;
	cr_expect_eq(found(&m, iov, 4), -1);
	iov[3] = (struct iovec){ memory + 650, 1 };
	cr_expect_eq(found(&m, iov, 4), -1, "they are in two");
	mems_fini(&m);
}

/* A range that is deleted while MDs use it is not found any more, and goes with
 * the last of them. */
Test(mem, used)
{
	struct mems m = { 0 };
	struct iovec iov = { memory, 10 };
	struct lnet_mem *mem;

	cr_assert_eq(add(&m, 0, 100), 0);
	mem = mems_find(&m, &iov, 1);
	mem_use(mem);
	mem_use(mem);
	cr_expect_eq(mems_check(&m, at(0), at(100)), -EBUSY);
	mem_unuse(mem);
	cr_expect_eq(mems_check(&m, at(0), at(100)), -EBUSY);
	mems_del(&m, at(0), at(100));
	cr_expect_eq(mems_check(&m, at(0), at(100)), -ENOENT);
	cr_expect_eq(found_one(&m, 0, 10), -1);
	cr_expect_eq(add(&m, 0, 100), 0);
	mem_unuse(mem);
	mems_fini(&m);
}

/* ---- of nodes ---- */

static struct seen seen;

static struct ulnet_md_handle bind_at(struct lnet *node, size_t offset,
				      uint32_t length)
{
	struct ulnet_md umd = md_of(memory + offset, length, 0, &seen);

	return bind_md(node, &umd);
}

static void node_mems(unsigned int cpts)
{
	struct lnet_sim *sim = cluster_with(1, cpts, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md_handle md[3];

	cr_expect_eq(lnet_mem_register(node, NULL, 10), -EINVAL);
	cr_expect_eq(lnet_mem_register(node, memory, 0), -EINVAL);
	cr_expect_eq(lnet_mem_register(node, memory, SIZE_MAX), -EINVAL);
	md[0] = bind_at(node, 0, 10);
	cr_assert_eq(lnet_mem_register(node, memory, 1000), 0);
	cr_assert_eq(lnet_mem_register(node, memory + 1000, 1000), 0);
	cr_expect_eq(lnet_mem_register(node, memory, 1000), -EEXIST);
	cr_expect_eq(lnet_mem_register(node, memory + 1999, 1), -EEXIST);
	md[1] = bind_at(node, 1000, 1000);
	md[2] = bind_at(node, 999, 1000);
	/* An MD that was bound before a range was registered does not use it,
	 * nor does one that is only partly in a range. */
	cr_expect_eq(lnet_mem_unregister(node, memory, 1000), 0);
	cr_expect_eq(lnet_mem_unregister(node, memory, 1000), -ENOENT);
	cr_expect_eq(lnet_mem_unregister(node, memory + 1000, 1000), -EBUSY);
	cr_expect_eq(lnet_mem_unregister(node, memory + 1000, 999), -ENOENT);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(LNetMDUnlink(md[i]), 0);
	lnet_sim_run(sim, MSEC);
	cr_expect_eq(lnet_mem_unregister(node, memory + 1000, 1000), 0);
	/* A node can be closed with ranges that are still registered. */
	cr_expect_eq(lnet_mem_register(node, memory, 1000), 0);
	cr_expect_eq(lnet_sim_free(sim), 0);
}

Test(mem, node)
{
	node_mems(1);
}

Test(mem, node_4_cpts)
{
	node_mems(4);
}

/* In the handler of an MD's last event its memory can be unregistered. */
static struct lnet *node_of_md;
static int at_end;

static void on_end(const struct ulnet_event *ev)
{
	cr_assert(ev->unlinked);
	at_end = lnet_mem_unregister(node_of_md, memory, 1000);
}

Test(mem, at_the_end)
{
	struct lnet_sim *sim = cluster_with(1, 1, NULL);
	struct ulnet_md umd = md_of(memory, 1000, 0, NULL);
	struct ulnet_md_handle md;

	node_of_md = lnet_sim_node(sim, 0);
	cr_assert_eq(lnet_mem_register(node_of_md, memory, 1000), 0);
	umd.handler = on_end;
	md = bind_md(node_of_md, &umd);
	at_end = 1;
	cr_assert_eq(LNetMDUnlink(md), 0);
	cr_expect_eq(lnet_mem_unregister(node_of_md, memory, 1000), -EBUSY);
	lnet_sim_run(sim, MSEC);
	cr_expect_eq(at_end, 0);
	cr_expect_eq(lnet_sim_free(sim), 0);
}

static struct lnet *node_of_turn;
static int in_turn;

static void register_in_turn(struct ulnet_work *work)
{
	(void)work;
	in_turn = lnet_mem_register(node_of_turn, memory, 1000);
}

/* On a CPT's thread memory can only be registered if there are no other CPTs to
 * wait for. */
Test(mem, in_turn)
{
	for (unsigned int cpts = 1; cpts < 3; cpts++) {
		struct lnet_sim *sim = cluster_with(1, cpts, NULL);
		struct ulnet_work work = { .fn = register_in_turn };

		node_of_turn = lnet_sim_node(sim, 0);
		in_turn = 1;
		lnet_post(node_of_turn, 0, &work);
		lnet_sim_run(sim, MSEC);
		cr_expect_eq(in_turn, cpts == 1 ? 0 : -EXDEV);
		cr_expect_eq(lnet_sim_free(sim), 0);
	}
}
