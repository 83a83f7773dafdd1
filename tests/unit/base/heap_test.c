/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/heap.h"

#define N 200

static struct heap heap;
static struct heap_node nodes[N];
static bool in[N];

/* The entry that must be first: least key, then longest in the heap. */
static int first(void)
{
	int best = -1;

	for (int i = 0; i < N; i++)
		if (in[i] && (best < 0 || nodes[i].key < nodes[best].key ||
			      (nodes[i].key == nodes[best].key &&
			       nodes[i].order < nodes[best].order)))
			best = i;
	return best;
}

static void check_first(void)
{
	int i = first();

	cr_assert_eq(heap_first(&heap), i < 0 ? NULL : &nodes[i]);
}

static void toggle(unsigned int i, uint64_t key)
{
	if (in[i])
		heap_del(&heap, &nodes[i]);
	else
		heap_add(&heap, &nodes[i], key);
	in[i] = !in[i];
}

Test(heap, empty)
{
	heap_init(&heap);
	cr_assert_null(heap_first(&heap));
}

Test(heap, equal_keys_keep_their_order)
{
	heap_init(&heap);
	for (unsigned int i = 0; i < N; i++)
		heap_add(&heap, &nodes[i], i % 2);
	for (unsigned int i = 0; i < N; i++) {
		struct heap_node *n = heap_first(&heap);

		cr_assert_eq(n, &nodes[i < N / 2 ? 2 * i : 2 * i - N + 1]);
		heap_del(&heap, n);
	}
	cr_assert_null(heap_first(&heap));
}

/* Random additions and removals, with few keys and with many. */
Test(heap, any_order)
{
	uint64_t x = 1;

	heap_init(&heap);
	for (unsigned int i = 0; i < 20000; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		toggle((unsigned int)(x >> 33) % N,
		       x >> 40 & (i % 2 ? 7 : 0xffff));
		check_first();
	}
	for (unsigned int i = 0; i < N; i++)
		if (in[i])
			toggle(i, 0);
	check_first();
}
