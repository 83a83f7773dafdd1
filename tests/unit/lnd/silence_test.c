/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a connection may be silent (D8). Times in ms. */
#include "lnd/silence.h"

#include <criterion/criterion.h>

#define MS NSEC_PER_MSEC

static const struct silence_law usual = { 300 * MS, 50000 * MS };

Test(silence, allowed)
{
	static const struct {
		uint64_t min, max, srtt, rttvar, want;
	} cases[] = {
		{ 300, 50000, 0, 0, 300 },	/* not measured */
		{ 300, 50000, 1, 1, 300 },	/* a local network */
		{ 300, 50000, 75, 0, 300 },	/* at the limit */
		{ 300, 50000, 100, 25, 800 },	/* far away */
		{ 300, 50000, 100, 300, 5200 }, /* far away, with much jitter */
		{ 300, 1000, 100, 300, 1000 },	/* bounded by the maximum */
		{ 300, 100, 1, 1, 300 }, /* the maximum is below the minimum */
		{ 50, 50000, 1, 1, 50 },	{ 50, 50000, 10, 5, 120 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct silence_law law = { cases[i].min * MS,
					   cases[i].max * MS };
		struct silence_acks acks = { true, cases[i].srtt * MS,
					     cases[i].rttvar * MS, 0 };

		cr_expect_eq(silence_allowed(&law, &acks), cases[i].want * MS,
			     "case %u", i);
	}
}

/* What each look finds. Looks are 100 ms apart unless @pause says otherwise. */
struct look {
	uint64_t ack_age;
	bool in_flight;
	uint64_t pause; /* 0: 100 */
	bool silent;
};

static void run(const char *what, const struct look *l, unsigned int n)
{
	struct silence s = { 0 };
	uint64_t now = 1000000 * MS;

	for (unsigned int i = 0; i < n; i++) {
		struct silence_acks acks = { l[i].in_flight, MS, MS,
					     l[i].ack_age * MS };

		now += (l[i].pause ? l[i].pause : 100) * MS;
		cr_expect_eq(silence_look(&s, &usual, now, &acks), l[i].silent,
			     "%s: look %u", what, i);
	}
}

#define RUN(what, ...)                                      \
	do {                                                \
		static const struct look l[] = __VA_ARGS__; \
		run(what, l, ARRAY_SIZE(l));                \
	} while (0)

Test(silence, begins)
{
	/* Time before the first look does not count. */
	RUN("after a pause", { { 99999, true, 0, false },
			       { 99999, true, 0, false },
			       { 99999, true, 0, false },
			       { 99999, true, 0, true },
			       { 99999, true, 0, true } });
	RUN("in full flow", { { 5, true, 0, false },
			      { 105, true, 0, false },
			      { 205, true, 0, false },
			      { 305, true, 0, true } });
	/* A packet is lost, but others are acknowledged. */
	RUN("signs of life", { { 5, true, 0, false },
			       { 105, true, 0, false },
			       { 205, true, 0, false },
			       { 20, true, 0, false },
			       { 120, true, 0, false },
			       { 220, true, 0, false },
			       { 320, true, 0, true } });
}

Test(silence, a_peer_that_does_not_read)
{
	RUN("no room", { { 5, false, 0, false },
			 { 105, false, 0, false },
			 { 205, false, 0, false },
			 { 305, false, 0, false },
			 { 4000, false, 0, false } });
}

Test(silence, ends)
{
	RUN("an acknowledgement", { { 99999, true, 0, false },
				    { 99999, true, 0, false },
				    { 99999, true, 0, false },
				    { 99999, true, 0, true },
				    { 99999, true, 50, true },
				    { 99999, true, 5000, true },
				    { 10, true, 50, false },
				    { 60, true, 50, false } });
	RUN("nothing is in flight any more", { { 99999, true, 0, false },
					       { 99999, true, 0, false },
					       { 99999, true, 0, false },
					       { 99999, true, 0, true },
					       { 99999, false, 0, false },
					       { 99999, true, 0, false } });
}

/* Looks that come late, because this process or the machine was suspended:
 * acknowledgements may be waiting to be seen. One late look proves little,
 * several do. */
Test(silence, late_looks)
{
	RUN("late", { { 5, true, 0, false },
		      { 105, true, 0, false },
		      { 5105, true, 5000, false },
		      { 5205, true, 0, true } });
	RUN("and then acknowledged", { { 5, true, 0, false },
				       { 105, true, 0, false },
				       { 205, true, 0, false },
				       { 10, true, 5000, false },
				       { 110, true, 0, false } });
	RUN("always late", { { 99999, true, 0, false },
			     { 99999, true, 5000, false },
			     { 99999, true, 5000, false },
			     { 99999, true, 5000, true } });
}

Test(silence, never)
{
	static const struct silence_law off = { 0, 1000 * MS };
	struct silence_acks acks = { true, MS, MS, 99999 * MS };
	struct silence s = { 0 };

	for (uint64_t now = 0; now < 1000000 * MS; now += 100 * MS)
		cr_assert_not(silence_look(&s, &off, now + MS, &acks));
}

/* As in RFC 6298: the first measurement is taken as it is; later ones count for
 * an eighth, and their deviation for a quarter. */
Test(silence, measure)
{
	struct silence_acks a = { 0 };

	silence_measure(&a, 8000);
	cr_expect_eq(a.srtt, 8000);
	cr_expect_eq(a.rttvar, 4000);
	silence_measure(&a, 16000);
	cr_expect_eq(a.srtt, 9000);
	cr_expect_eq(a.rttvar, 5000);
	silence_measure(&a, 1000);
	cr_expect_eq(a.srtt, 8000);
	cr_expect_eq(a.rttvar, 5750);
}
