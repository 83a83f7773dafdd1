/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/log_share.h"

#include <criterion/criterion.h>

#include "tests/unit/lnet/cluster.h"

#define SEC UINT64_C(1000000000)

static bool may(struct log_share *l, unsigned int who, uint64_t now)
{
	const struct ulnet_nid nid = nth_id(who).nid;

	return log_share_may(l, &nid, now);
}

/* Each has a line a minute, whatever others do. */
Test(log_share, each_has_its_own)
{
	struct log_share l = { 0 };

	cr_assert(may(&l, 1, 5));
	cr_assert_not(may(&l, 1, 6));
	cr_assert(may(&l, 2, 7));
	cr_assert_not(may(&l, 1, 59 * SEC));
	cr_assert(may(&l, 1, 61 * SEC));
	cr_assert_not(may(&l, 1, 62 * SEC));
}

/* Very many together have no more than some. */
Test(log_share, all_together)
{
	struct log_share l = { 0 };
	unsigned int lines = 0;

	for (unsigned int i = 0; i < 1000; i++)
		lines += may(&l, i % 200, i);
	cr_assert_eq(lines, LOG_SHARE_NIDS);
	cr_assert(may(&l, 7, 61 * SEC));
}
