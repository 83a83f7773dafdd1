/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdalign.h>
#include <string.h>
#include "base/pool.h"

/* All objects are alive at once, aligned, and do not overlap. */
static void check_size(size_t size)
{
	enum { N = 300 };
	unsigned char *obj[N];
	struct pool p;

	pool_init(&p, size, 0);
	for (unsigned int i = 0; i < N; i++) {
		obj[i] = pool_get(&p);
		cr_assert_not_null(obj[i]);
		cr_assert_eq((uintptr_t)obj[i] % alignof(max_align_t), 0);
		memset(obj[i], (int)i, size);
	}
	for (unsigned int i = 0; i < N; i++) {
		for (size_t k = 0; k < size; k++) {
			if (obj[i][k] != (unsigned char)i)
				cr_assert_fail("size %zu, object %u", size, i);
		}
		pool_put(&p, obj[i]);
	}
	cr_assert_eq(p.used, 0);
	cr_assert_eq(p.peak, N);
	pool_fini(&p);
}

Test(pool, sizes)
{
	static const size_t sizes[] = { 1, 8, 17, 64, 200, 4096, 70000 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		check_size(sizes[i]);
}

Test(pool, limit_and_accounting)
{
	struct pool p;
	void *obj[5];

	pool_init(&p, 100, 5);
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_not_null(obj[i] = pool_get(&p));
	cr_assert_null(pool_get(&p));
	cr_assert_eq(p.used, 5);
	pool_put(&p, obj[2]);
	cr_assert_eq(p.used, 4);
	cr_assert_not_null(obj[2] = pool_get(&p));
	cr_assert_null(pool_get(&p));
	for (unsigned int i = 0; i < 5; i++)
		pool_put(&p, obj[i]);
	cr_assert_eq(p.used, 0);
	cr_assert_eq(p.peak, 5);
	pool_fini(&p);
}

Test(pool, last_in_first_out)
{
	struct pool p;
	void *a, *b;

	pool_init(&p, 64, 0);
	a = pool_get(&p);
	b = pool_get(&p);
	cr_assert_neq(a, b);
	pool_put(&p, a);
	pool_put(&p, b);
#if !defined(__SANITIZE_ADDRESS__)
	if (p.chunks) {
		cr_assert_eq(pool_get(&p), b);
		cr_assert_eq(pool_get(&p), a);
		pool_put(&p, a);
		pool_put(&p, b);
	}
#endif
	pool_fini(&p);
}
