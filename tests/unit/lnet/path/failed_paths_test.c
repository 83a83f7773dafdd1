/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of paths on which a message has failed. */
#include "lnet/path/failed_paths.h"

#include <criterion/criterion.h>

#include "base/util.h"

static struct ulnet_nid nid(const char *text)
{
	struct ulnet_nid n;

	cr_assert_eq(lnet_nid_parse(text, &n), 0, "%s", text);
	return n;
}

Test(failed_paths, counts_paths_and_their_ends)
{
	struct ulnet_nid a = nid("10.0.0.1@tcp"), b = nid("10.0.1.1@tcp");
	struct ulnet_nid x = nid("10.0.0.2@tcp"), y = nid("10.0.1.2@tcp");
	struct failed_paths t = { .n = 0 };

	cr_assert_eq(failed_paths_count(&t, NULL, NULL), 0);
	failed_paths_add(&t, &a, &x);
	failed_paths_add(&t, &b, &x);
	failed_paths_add(&t, &b, &x);
	cr_assert_eq(failed_paths_count(&t, &a, &x), 1);
	cr_assert_eq(failed_paths_count(&t, &b, &x), 2);
	cr_assert_eq(failed_paths_count(&t, &b, &y), 0);
	cr_assert_eq(failed_paths_count(&t, &b, NULL), 2);
	cr_assert_eq(failed_paths_count(&t, NULL, &x), 3);
	cr_assert_eq(failed_paths_count(&t, NULL, &y), 0);
	cr_assert_eq(failed_paths_count(&t, NULL, NULL), 3);
}

Test(failed_paths, knows_the_last_ones)
{
	struct ulnet_nid a = nid("10.0.0.1@tcp"), b = nid("10.0.1.1@tcp");
	struct ulnet_nid x = nid("10.0.0.2@tcp");
	struct failed_paths t = { .n = 0 };

	failed_paths_add(&t, &a, &x);
	for (unsigned int i = 0; i < FAILED_PATHS_MAX - 1; i++)
		failed_paths_add(&t, &b, &x);
	cr_assert_eq(failed_paths_count(&t, &a, &x), 1);
	failed_paths_add(&t, &b, &x);
	cr_assert_eq(failed_paths_count(&t, &a, &x), 0);
	cr_assert_eq(failed_paths_count(&t, &b, &x), FAILED_PATHS_MAX);
	cr_assert_eq(t.n, FAILED_PATHS_MAX + 1);
}
