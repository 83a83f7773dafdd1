/* SPDX-License-Identifier: BSD-3-Clause */
/* Fair shares (requirement I1). */
#include "base/share.h"

#include <criterion/criterion.h>

#include "base/util.h"

#define PARTIES 64

struct pot {
	uint64_t max, used;
	uint64_t held[PARTIES];
};

static bool take(struct pot *p, unsigned int party, uint64_t n)
{
	if (!share_allows(p->held[party], p->used, p->max, n))
		return false;
	p->held[party] += n;
	p->used += n;
	return true;
}

/* The first @parties holders take in turn, until none may. */
static void take_all(struct pot *p, unsigned int parties)
{
	bool more = true;

	while (more) {
		more = false;
		for (unsigned int i = 0; i < parties; i++)
			more |= take(p, i, 1);
	}
}

Test(share, alone_gets_half)
{
	struct pot p = { .max = 1001 };

	take_all(&p, 1);
	cr_assert_eq(p.held[0], 501);
}

Test(share, all_get_the_same_and_as_much_stays_free)
{
	for (unsigned int n = 1; n < PARTIES; n++) {
		struct pot p = { .max = 10000 };
		uint64_t part = p.max / (n + 1);

		take_all(&p, n);
		for (unsigned int i = 0; i < n; i++)
			cr_assert(p.held[i] >= part - 1 &&
					  p.held[i] <= part + 1,
				  "%u parties: %u has %lu of %lu", n, i,
				  p.held[i], p.max);
		cr_assert_geq(p.max - p.used, part - n);
		/* There is room for a new party. */
		cr_assert(take(&p, n, 1));
	}
}

/* A holder that was alone had half, and gets no more until it has given
 * back. */
Test(share, the_first_gives_way)
{
	struct pot p = { .max = 1000 };

	take_all(&p, 1);
	while (take(&p, 1, 1))
		;
	cr_assert(p.held[1] >= 249 && p.held[1] <= 251);
	cr_assert_not(take(&p, 0, 1));
	/* What it gives back goes to the second one, until both have the
	 * same. */
	while (p.held[0] > p.held[1]) {
		p.held[0]--;
		p.used--;
		take(&p, 1, 1);
	}
	cr_assert(p.held[0] >= 332 && p.held[0] <= 334);
}

Test(share, never_more_than_there_is)
{
	for (uint64_t max = 0; max < 5; max++) {
		struct pot p = { .max = max };

		for (unsigned int i = 0; i < PARTIES; i++)
			take(&p, i, 1);
		cr_assert_eq(p.used, max, "%lu of %lu", p.used, max);
	}
}

Test(share, large_pieces)
{
	struct pot p = { .max = 1000 };

	cr_assert_not(take(&p, 0, 1001));
	cr_assert(take(&p, 0, 900));
	cr_assert_not(take(&p, 0, 1));
	cr_assert_not(take(&p, 1, 101));
	cr_assert(take(&p, 1, 100));
}

/* Extreme values do not overflow. */
Test(share, edges)
{
	cr_assert_not(share_allows(0, 10, 5, 1));
	cr_assert_not(share_allows(0, UINT64_MAX, 5, 1));
	cr_assert(share_allows(0, 0, UINT64_MAX, UINT64_MAX));
	cr_assert_not(share_allows(1, UINT64_MAX, UINT64_MAX, UINT64_MAX));
	cr_assert(share_allows(0, 10, 5, 0));
	cr_assert_not(share_allows(1, 10, 5, 0));
}
