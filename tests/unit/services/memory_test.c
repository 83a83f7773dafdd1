/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdint.h>
#include <sys/mman.h>
#include "services/brw/memory.h"

#define PAGE 4096

static struct ulnet_nid nid(unsigned char i)
{
	struct ulnet_nid n = { .size = 4 };

	n.addr[3] = i;
	return n;
}

/* Gets a chunk for another NID each time. */
static struct chunk *get(struct memory *m, size_t size)
{
	static unsigned char next;
	struct ulnet_nid n = nid(next++);

	return memory_get(m, size, &n);
}

Test(memory, limit)
{
	struct memory m;
	struct chunk *a, *b;

	cr_assert_eq(memory_init(&m, NULL, 3 * PAGE), 0);
	cr_assert_null(get(&m, 0));
	cr_assert_null(get(&m, 3 * PAGE + 1));
	cr_assert_null(get(&m, SIZE_MAX));
	a = get(&m, PAGE + 1);
	cr_assert_not_null(a);
	cr_assert_geq(a->size, PAGE + 1);
	cr_assert_eq((uintptr_t)a->data % PAGE, 0);
	cr_assert_null(get(&m, PAGE + 1), "one page is left");
	b = get(&m, 1);
	cr_assert_not_null(b);
	cr_assert_null(get(&m, 1));
	memory_put(&m, a);
	memory_put(&m, b);
	memory_fini(&m);
}

Test(memory, used_again)
{
	struct memory m;
	struct chunk *a, *b;
	unsigned char *data;

	cr_assert_eq(memory_init(&m, NULL, 8 * PAGE), 0);
	a = get(&m, 4 * PAGE);
	data = a->data;
	memory_put(&m, a);
	b = get(&m, 3 * PAGE);
	cr_assert_eq(b->data, data, "much of it is of use");
	memory_put(&m, b);
	/* Free chunks are merged, in whatever order they are put back. */
	for (unsigned int i = 0; i < 6; i++) {
		static const unsigned char order[6][3] = {
			{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
			{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
		};
		struct chunk *p[3];

		for (unsigned int k = 0; k < 3; k++)
			cr_assert_not_null(p[k] = get(&m, (1 + k) * PAGE));
		for (unsigned int k = 0; k < 3; k++)
			memory_put(&m, p[order[i][k]]);
		a = get(&m, 8 * PAGE);
		cr_assert_not_null(a);
		cr_assert_eq(a->data, data);
		memory_put(&m, a);
	}
	memory_fini(&m);
}

/* A single NID gets half of the memory, two get a third each, and a third one
 * still gets some. */
Test(memory, shares)
{
	struct ulnet_nid a = nid(1), b = nid(2);
	struct chunk *of_a[64], *of_b[64];
	unsigned int na = 0, nb = 0;
	struct memory m;

	cr_assert_eq(memory_init(&m, NULL, 60 * PAGE), 0);
	while ((of_a[na] = memory_get(&m, PAGE, &a)))
		na++;
	cr_assert_eq(na, 31);
	while ((of_b[nb] = memory_get(&m, PAGE, &b)))
		nb++;
	cr_assert_eq(nb, 15);
	for (unsigned int i = 0; i < 16; i++)
		memory_put(&m, of_a[--na]);
	while ((of_b[nb] = memory_get(&m, PAGE, &b)))
		nb++;
	cr_assert_eq(nb, 23);
	cr_assert_not_null(of_a[na] = memory_get(&m, 16 * PAGE, &a),
			   "it has less than what is left");
	na++;
	while (na)
		memory_put(&m, of_a[--na]);
	while (nb)
		memory_put(&m, of_b[--nb]);
	cr_assert_eq(m.out, 0);
	memory_fini(&m);
}

/* Returns how many pages of the pool have memory of their own. */
static unsigned int pages_touched(const struct memory *m)
{
	unsigned char in[64];
	unsigned int n = 0;

	cr_assert_leq(m->bytes_max / PAGE, sizeof(in));
	cr_assert_eq(mincore(m->pool, m->bytes_max, in), 0);
	for (size_t i = 0; i < m->bytes_max / PAGE; i++)
		n += in[i] & 1;
	return n;
}

/* Only bytes that are used for the first time are touched, and not before
 * somebody asks for that, who may have to choose the thread. */
Test(memory, touched_when_asked)
{
	struct memory m;
	struct chunk *a, *b;

	cr_assert_eq(memory_init(&m, NULL, 40 * PAGE), 0);
	a = get(&m, 10 * PAGE);
	cr_assert_eq(a->fresh, 10 * PAGE);
	cr_assert_eq(pages_touched(&m), 0);
	memory_touch(a);
	cr_assert_eq(a->fresh, 0);
	cr_assert_eq(pages_touched(&m), 10);
	memory_put(&m, a);
	b = get(&m, 15 * PAGE);
	cr_assert_eq(b->fresh, 5 * PAGE);
	memory_touch(b);
	cr_assert_eq(pages_touched(&m), 15);
	memory_put(&m, b);
	a = get(&m, 15 * PAGE);
	cr_assert_eq(a->fresh, 0);
	memory_put(&m, a);
	memory_fini(&m);
}
