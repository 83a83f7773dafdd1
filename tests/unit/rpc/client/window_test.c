/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "rpc/client/client.h"

static struct window w;

static void begin(uint32_t granted)
{
	window_init(&w, 0, granted);
}

/* The window doubles each time as many calls have been answered as it allows.
 */
Test(window, slow_start)
{
	uint32_t answers = 0;

	begin(1000);
	cr_assert_eq(w.limit, 2);
	for (uint32_t limit = 2; limit < 1000; limit *= 2) {
		for (uint32_t i = 0; i < limit; i++) {
			cr_assert_eq(w.limit, limit, "after %u", answers);
			cr_assert(window_is_slow(&w));
			window_served(&w, 1);
			answers++;
		}
	}
	cr_assert_eq(w.limit, 1000);
	cr_assert_not(window_is_slow(&w));
	window_served(&w, 5000);
	cr_assert_eq(w.limit, 1000);
}

Test(window, many_answers_at_once)
{
	begin(1000);
	window_served(&w, 2 + 4 + 8 + 1);
	cr_assert_eq(w.limit, 16);
	window_served(&w, 14);
	cr_assert_eq(w.limit, 16);
	window_served(&w, 1);
	cr_assert_eq(w.limit, 32);
}

Test(window, grants)
{
	begin(1);
	cr_assert_eq(w.limit, 1);
	cr_assert_not(window_is_slow(&w));
	window_grant(&w, 64);
	cr_assert_eq(w.limit, 1, "it grows");
	window_served(&w, 1000);
	cr_assert_eq(w.limit, 64);
	window_grant(&w, 10);
	cr_assert_eq(w.limit, 10, "at once");
	window_grant(&w, 0);
	cr_assert_eq(w.limit, 1, "never none");
	window_grant(&w, 12);
	window_double(&w);
	window_double(&w);
	window_double(&w);
	window_double(&w);
	cr_assert_eq(w.limit, 12);
}

/* The server can take calls at once: the window does not begin with two. */
Test(window, begins_with_what_the_server_takes)
{
	begin(100);
	window_promised(&w, 0);
	cr_assert_eq(w.limit, 2);
	window_promised(&w, 64);
	cr_assert_eq(w.limit, 64);
	window_served(&w, 63);
	cr_assert_eq(w.limit, 64);
	window_promised(&w, 10);
	cr_assert_eq(w.limit, 64, "nothing is taken back");
	window_served(&w, 1);
	cr_assert_eq(w.limit, 100);
	begin(100);
	window_promised(&w, UINT32_MAX);
	cr_assert_eq(w.limit, 100);
	window_init(&w, 3, 100);
	window_promised(&w, 64);
	cr_assert_eq(w.limit, 3, "the user wants three");
}

Test(window, begins_as_it_is_told)
{
	window_init(&w, 32, 100);
	cr_assert_eq(w.limit, 32);
	window_served(&w, 32);
	cr_assert_eq(w.limit, 64);
	window_begin(&w);
	cr_assert_eq(w.limit, 32);
	window_init(&w, 32, 10);
	cr_assert_eq(w.limit, 10);
}

Test(window, largest)
{
	begin(UINT32_MAX);
	window_served(&w, UINT32_MAX);
	while (window_is_slow(&w))
		window_double(&w);
	cr_assert_eq(w.limit, UINT32_MAX);
}
