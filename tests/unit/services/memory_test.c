/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdint.h>
#include "services/brw/memory.h"

#define PAGE 4096

Test(memory, limit)
{
	struct memory m;
	struct piece *a, *b;

	memory_init(&m, 3 * PAGE);
	cr_assert_null(memory_get(&m, 0));
	cr_assert_null(memory_get(&m, 3 * PAGE + 1));
	cr_assert_null(memory_get(&m, SIZE_MAX));
	a = memory_get(&m, PAGE + 1);
	cr_assert_not_null(a);
	cr_assert_geq(a->size, PAGE + 1);
	cr_assert_eq((uintptr_t)a->data % PAGE, 0);
	cr_assert_null(memory_get(&m, PAGE + 1), "one page is left");
	b = memory_get(&m, 1);
	cr_assert_not_null(b);
	cr_assert_null(memory_get(&m, 1));
	memory_put(&m, a);
	memory_put(&m, b);
	memory_fini(&m);
}

Test(memory, used_again)
{
	struct memory m;
	struct piece *a, *b;
	unsigned char *data;

	memory_init(&m, 8 * PAGE);
	a = memory_get(&m, 4 * PAGE);
	data = a->data;
	memory_put(&m, a);
	b = memory_get(&m, 3 * PAGE);
	cr_assert_eq(b->data, data, "much of it is of use");
	memory_put(&m, b);
	/* Small ones do not keep large ones busy. */
	a = memory_get(&m, PAGE);
	cr_assert_neq(a->data, data);
	memory_put(&m, a);
	cr_assert_eq(m.bytes, 5 * PAGE);
	/* What is free, but too small, makes room. */
	a = memory_get(&m, 8 * PAGE);
	cr_assert_not_null(a);
	cr_assert_eq(m.bytes, 8 * PAGE);
	memory_put(&m, a);
	memory_fini(&m);
}
