/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/backoff.h"

const char *const backoff_names[BACKOFF_POLICIES] = {
	[BACKOFF_FULL] = "full",
	[BACKOFF_EQUAL] = "equal",
	[BACKOFF_MAD] = "mad",
	[BACKOFF_NONE] = "none",
};

/* Returns a number that is uniform in [0, @most], made from @random. It takes
 * the high half of the product, so the quality of the low bits does not matter.
 */
static uint64_t uniform(uint64_t most, uint64_t random)
{
	if (most == UINT64_MAX)
		return random;
	return (uint64_t)((unsigned __int128)random * (most + 1) >> 64);
}

/* Returns win(@n) of backoff.h, for @n > 0. Does not overflow, however large @n
 * is. */
static uint64_t window(const struct backoff_law *law, uint32_t n)
{
	uint32_t shift = n - 1;

	if (shift < 64 && law->base <= law->cap >> shift)
		return law->base << shift;
	return law->cap;
}

static uint64_t mad_pause(const struct backoff_law *law, uint32_t n,
			  uint64_t random)
{
	uint64_t win;

	if (n == 1)
		return 0;
	win = window(law, n - 1);
	return win - uniform(MIN(law->base, win), random);
}

uint64_t backoff_pause(const struct backoff_law *law, uint32_t n,
		       uint64_t random)
{
	uint64_t win;

	if (n == 0)
		return 0;
	win = window(law, n);
	switch (law->policy) {
	case BACKOFF_FULL:
		return uniform(win, random);
	case BACKOFF_EQUAL:
		return win / 2 + uniform(win - win / 2, random);
	case BACKOFF_MAD:
		return mad_pause(law, n, random);
	default:
		return 0;
	}
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return b > TIME_NEVER - a ? TIME_NEVER : a + b;
}

enum backoff_verdict backoff_next(struct backoff *b,
				  const struct backoff_law *law,
				  const struct backoff_failure *f,
				  uint64_t *at_p)
{
	uint32_t n = b->n == UINT32_MAX ? UINT32_MAX : b->n + 1;
	uint64_t at;

	if (law->max != BACKOFF_NO_MAX && n > law->max)
		return BACKOFF_ENOUGH;
	at = sum(f->now, sum(f->least, backoff_pause(law, n, f->random)));
	if (b->until != TIME_NEVER && sum(at, f->answer) >= b->until)
		return BACKOFF_TOO_LATE;
	b->n = n;
	*at_p = at;
	return BACKOFF_RETRY;
}

uint64_t backoff_mad_total(const struct backoff_law *law, uint64_t timeout)
{
	if (law->max == BACKOFF_NO_MAX ||
	    (law->max && timeout > TIME_NEVER / law->max))
		return TIME_NEVER;
	return timeout * law->max;
}
