/* SPDX-License-Identifier: BSD-3-Clause */
/* With a new connection few calls are in flight at first. Calls that take long
 * must not keep others from being sent for long. */
#include "tests/unit/rpc/client/call_rig.h"

#define SLOW  5
#define LATER 20

static struct call_rig g;
static struct note slow[SLOW], later[LATER];

/* Opens the rig with a window that begins as usual, and a server that does not
 * answer. */
static void begin(void)
{
	rig_open(&g);
	g.client->window.begin = WINDOW_BEGIN;
	window_begin(&g.client->window);
	g.fake->mute_calls = true;
}

/* Makes @some calls. */
static void calls(struct note *n, unsigned int some)
{
	for (unsigned int i = 0; i < some; i++)
		call(&g, &n[i], 100000000);
}

/* Without answers the window doubles each half second. */
Test(slow_start, goes_on_without_answers)
{
	begin();
	calls(later, LATER);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	run(&g, 500 * MSEC);
	cr_assert_eq(g.fake->ncalls, 4);
	run(&g, 2 * SEC);
	cr_assert_eq(g.fake->ncalls, LATER);
	for (unsigned int i = 0; i < LATER; i++)
		fake_echo(g.fake, &g.fake->calls[i]);
	run(&g, SEC);
	for (unsigned int i = 0; i < LATER; i++)
		ended_well(&later[i]);
	rig_close(&g);
}

/* The window doubles also if the calls that fill it were made long before those
 * that wait. */
Test(slow_start, goes_on_for_calls_that_come_later)
{
	begin();
	calls(slow, 2);
	run(&g, 10 * SEC);
	cr_assert_eq(g.fake->ncalls, 2);
	g.fake->mute_calls = false;
	calls(later, LATER);
	run(&g, SEC);
	for (unsigned int i = 0; i < LATER; i++)
		ended_well(&later[i]);
	for (unsigned int i = 0; i < 2; i++) {
		fake_echo(g.fake, &g.fake->calls[i]);
		run(&g, MSEC);
		ended_well(&slow[i]);
	}
	rig_close(&g);
}

/* After the connection was made again, more calls are under way than the new
 * window allows. */
Test(slow_start, goes_on_after_a_connection_was_made_again)
{
	begin();
	g.client->window.begin = SLOW;
	window_begin(&g.client->window);
	calls(slow, SLOW);
	run(&g, 100 * MSEC);
	g.client->window.begin = WINDOW_BEGIN;
	import_lost(g.client->imp, g.client->imp->epoch);
	run(&g, 10 * SEC);
	cr_assert_eq(g.fake->connects, 2);
	cr_assert_eq(g.fake->ncalls, SLOW);
	g.fake->mute_calls = false;
	calls(later, LATER);
	run(&g, 2 * SEC);
	for (unsigned int i = 0; i < LATER; i++)
		ended_well(&later[i]);
	for (unsigned int i = 0; i < SLOW; i++) {
		fake_echo(g.fake, &g.fake->calls[i]);
		run(&g, MSEC);
		ended_well(&slow[i]);
	}
	rig_close(&g);
}
