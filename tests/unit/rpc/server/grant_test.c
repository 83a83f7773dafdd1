/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "rpc/server/grant.h"

#define MS     NSEC_PER_MSEC
#define TARGET (5 * MS)

static struct grant g;
static uint64_t now;

/* 100 ms, in which requests come each 10 ms and wait from @least to @most. */
static void interval(uint64_t least, uint64_t most, uint32_t flight)
{
	for (unsigned int i = 0; i < 10; i++) {
		now += 10 * MS;
		grant_sample(&g, i == 4 ? least : most, TARGET, flight, now);
	}
}

static void begin(uint32_t max)
{
	now = 1000 * MS;
	grant_init(&g, max);
	grant_sample(&g, 0, TARGET, 1, now);
}

Test(grant, whole_without_a_queue)
{
	begin(1024);
	for (unsigned int i = 0; i < 50; i++)
		interval(0, 50 * MS, 4000);
	cr_assert_eq(grant_of(&g, 1), 1024);
	cr_assert_eq(grant_of(&g, 0), 1024);
	cr_assert_eq(grant_of(&g, GRANT_CLIENTS), 1024);
	cr_assert_eq(grant_of(&g, 2 * GRANT_CLIENTS), 512);
}

Test(grant, shrinks_and_grows)
{
	uint32_t was;

	begin(1024);
	interval(0, 0, 100);
	interval(6 * MS, 9 * MS, 100);
	interval(6 * MS, 9 * MS, 100);
	cr_assert_leq(grant_of(&g, 1), 80, "of what is under way");
	was = grant_of(&g, 1);
	interval(6 * MS, 9 * MS, 100);
	cr_assert_eq(grant_of(&g, 1), was * 4 / 5);
	was = grant_of(&g, 1);
	interval(4 * MS, 9 * MS, 100);
	interval(4 * MS, 9 * MS, 100);
	cr_assert_gt(grant_of(&g, 1), was);
	for (unsigned int i = 0; i < 100; i++)
		interval(0, 0, 100);
	cr_assert_eq(grant_of(&g, 1), 1024);
}

Test(grant, never_less_than_one)
{
	begin(16);
	for (unsigned int i = 0; i < 100; i++)
		interval(6 * MS, 9 * MS, 16);
	cr_assert_eq(grant_of(&g, 1), 1);
	cr_assert_eq(grant_of(&g, 100), 1);
	/* From there it grows by one: the 100 ms in which that is seen may
	 * have begun before. */
	interval(0, 0, 1);
	interval(0, 0, 1);
	cr_assert_geq(grant_of(&g, 1), 2);
	cr_assert_leq(grant_of(&g, 1), 3);
}

/* Nobody asks for anything for a while: whoever comes then has all of it. */
Test(grant, grows_in_silence)
{
	begin(1024);
	for (unsigned int i = 0; i < 100; i++)
		interval(6 * MS, 9 * MS, 100);
	now += 60 * 1000 * MS;
	grant_sample(&g, 0, TARGET, 1, now);
	cr_assert_eq(grant_of(&g, 1), 1024);
}

Test(grant, largest)
{
	begin(UINT32_MAX);
	cr_assert_eq(grant_of(&g, 1), UINT32_MAX / GRANT_CLIENTS);
	interval(0, 0, 1);
	interval(0, 0, 1);
	cr_assert_eq(grant_of(&g, 1), UINT32_MAX / GRANT_CLIENTS);
}
