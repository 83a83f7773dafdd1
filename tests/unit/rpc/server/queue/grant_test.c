/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "rpc/server/queue/share.h"

#define MS     NSEC_PER_MSEC
#define TARGET (5 * MS)

static struct grant g;
static uint64_t now;
static uint32_t whole;

/* 100 ms, in which requests come each 10 ms and wait from @least to @most. */
static bool interval(uint64_t least, uint64_t most, uint32_t flight)
{
	bool shrinks = false;

	for (unsigned int i = 0; i < 10; i++) {
		now += 10 * MS;
		shrinks |= grant_sample(&g, i == 4 ? least : most, TARGET,
					whole, flight, now);
	}
	return shrinks;
}

static void begin(uint32_t window)
{
	now = 1000 * MS;
	whole = window;
	g = (struct grant){ 0 };
	grant_sample(&g, 0, TARGET, whole, 1, now);
}

Test(grant, whole_without_a_queue)
{
	begin(1024);
	for (unsigned int i = 0; i < 50; i++)
		cr_assert_not(interval(0, 50 * MS, 4000));
	cr_assert_eq(grant_of(&g, whole), 1024);
}

Test(grant, shrinks_and_grows)
{
	uint32_t was;

	begin(1024);
	interval(0, 0, 100);
	interval(6 * MS, 9 * MS, 100);
	cr_assert(interval(6 * MS, 9 * MS, 100));
	cr_assert_eq(grant_of(&g, whole), 80, "of what is under way");
	interval(6 * MS, 9 * MS, 100);
	cr_assert_eq(grant_of(&g, whole), 64);
	interval(4 * MS, 9 * MS, 100);
	was = grant_of(&g, whole);
	interval(4 * MS, 9 * MS, 100);
	cr_assert_eq(grant_of(&g, whole), was + was / 8);
	for (unsigned int i = 0; i < 100; i++)
		interval(0, 0, 100);
	cr_assert_eq(grant_of(&g, whole), 1024);
}

Test(grant, never_less_than_one)
{
	begin(16);
	for (unsigned int i = 0; i < 100; i++)
		interval(6 * MS, 9 * MS, 16);
	cr_assert_eq(grant_of(&g, whole), 1);
	/* From there it grows by one: the 100 ms in which that is seen may
	 * have begun before. */
	interval(0, 0, 1);
	interval(0, 0, 1);
	cr_assert_geq(grant_of(&g, whole), 2);
	cr_assert_leq(grant_of(&g, whole), 3);
}

/* The client asks for nothing for a while: then it has all of it. */
Test(grant, grows_in_silence)
{
	begin(1024);
	for (unsigned int i = 0; i < 100; i++)
		interval(6 * MS, 9 * MS, 100);
	now += 60 * 1000 * MS;
	grant_sample(&g, 0, TARGET, whole, 1, now);
	cr_assert_eq(grant_of(&g, whole), 1024);
}

Test(grant, of_one)
{
	begin(1);
	for (unsigned int i = 0; i < 10; i++) {
		interval(6 * MS, 9 * MS, 16);
		cr_assert_eq(grant_of(&g, whole), 1);
	}
	for (unsigned int i = 0; i < 10; i++) {
		interval(0, 0, 16);
		cr_assert_eq(grant_of(&g, whole), 1);
	}
}
