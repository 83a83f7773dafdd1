/* SPDX-License-Identifier: BSD-3-Clause */
/* The course of a discovery, without I/O. */
#include <criterion/criterion.h>
#include <signal.h>

#include "base/util.h"
#include "lnet/discovery/state.h"
#include "lnet/peer/peer.h"

/* ---- the next step ---- */

#define OFF   LNET_DISCOVERY_OFF
#define ON    LNET_DISCOVERY_ON
#define VER   LNET_DISCOVERY_VERIFY
#define MERGE DISC_ON_STEP_MERGE
#define PING  DISC_ON_STEP_PING
#define PUSH  DISC_ON_STEP_PUSH
#define END   DISC_ON_STEP_END

Test(disc_state, next_step)
{
	static const struct {
		struct disc_facts f;
		enum disc_event step;
	} cases[] = {
		/* mode, told_us, up_to_date, force: ping, push, multi_rail,
		 * no_discovery, told, own */
		{ { ON, false, false, false, false, false, false, 0, 2 },
		  PING },
		{ { ON, true, false, false, false, false, false, 0, 2 },
		  MERGE },
		{ { ON, true, true, true, true, true, false, 0, 2 }, MERGE },
		{ { ON, false, true, false, false, true, false, 0, 2 }, PUSH },
		{ { ON, false, true, false, false, true, false, 2, 2 }, END },
		{ { ON, false, true, false, false, true, false, 2, 3 }, PUSH },
		{ { ON, false, true, false, true, true, false, 2, 2 }, PUSH },
		{ { ON, false, true, true, false, true, false, 2, 2 }, PING },
		{ { ON, false, true, true, true, true, false, 2, 3 }, PING },
		/* Who is not multi-rail is never pushed to. */
		{ { ON, false, true, false, true, false, false, 0, 2 }, END },
		/* Who takes no part is told that we do not, either. */
		{ { ON, false, true, false, false, true, true, 0, 2 }, END },
		{ { ON, false, true, false, true, true, true, 0, 2 }, PUSH },
		/* The numbers wrap. */
		{ { ON, false, true, false, false, true, false, UINT32_MAX, 1 },
		  PUSH },
		{ { ON, false, true, false, false, true, false, 1, UINT32_MAX },
		  END },
		{ { VER, false, false, false, false, false, false, 0, 2 },
		  PING },
		{ { VER, false, true, false, false, true, false, 0, 2 }, PUSH },
		/* Off: only what is asked for, and what was pushed. */
		{ { OFF, false, false, false, false, true, false, 0, 2 }, END },
		{ { OFF, false, false, true, false, true, false, 0, 2 }, PING },
		{ { OFF, false, false, false, true, true, false, 2, 2 }, PUSH },
		{ { OFF, false, true, false, false, true, false, 0, 2 }, END },
		{ { OFF, false, true, false, false, true, false, 2, 2 }, END },
		{ { OFF, false, true, false, false, true, false, 2, 3 }, PUSH },
		{ { OFF, true, false, false, false, true, false, 0, 2 },
		  MERGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_assert_eq(disc_step(&cases[i].f), cases[i].step, "%zu", i);
		cr_assert_eq(disc_up_to_date(&cases[i].f), cases[i].step == END,
			     "%zu", i);
	}
}

/* ---- the table ---- */

struct way {
	enum disc_event ev;
	enum disc_action action;
	unsigned int state;
};

static void go(const struct way *way, size_t n)
{
	struct fsm fsm = { PEER_UNKNOWN };

	for (size_t i = 0; i < n; i++) {
		enum disc_action action = disc_move(&fsm, way[i].ev);

		cr_assert_eq(action, way[i].action, "%zu", i);
		cr_assert_eq(fsm.state, way[i].state, "%zu: %s", i,
			     fsm_name(&fsm, peer_states));
	}
}

Test(disc_state, all_goes_well)
{
	static const struct way way[] = {
		{ DISC_ON_WANTED, DISC_ENQUEUE, PEER_QUEUED },
		{ DISC_ON_WANTED, DISC_IGNORE, PEER_QUEUED },
		{ DISC_ON_STEP_PING, DISC_PING, PEER_DISCOVERING },
		{ DISC_ON_CUT, DISC_PING, PEER_DISCOVERING },
		{ DISC_ON_ANSWER, DISC_LOOK, PEER_QUEUED },
		{ DISC_ON_STEP_MERGE, DISC_MERGE, PEER_MERGING },
		{ DISC_ON_MERGED, DISC_LOOK, PEER_QUEUED },
		{ DISC_ON_STEP_PUSH, DISC_PUSH, PEER_PUSHING },
		{ DISC_ON_NEWS, DISC_IGNORE, PEER_PUSHING },
		{ DISC_ON_ACK, DISC_LOOK, PEER_QUEUED },
		{ DISC_ON_STEP_MERGE, DISC_MERGE, PEER_MERGING },
		{ DISC_ON_MERGED, DISC_LOOK, PEER_QUEUED },
		{ DISC_ON_STEP_END, DISC_END, PEER_DISCOVERED },
		{ DISC_ON_WANTED, DISC_ENQUEUE, PEER_QUEUED },
	};

	go(way, ARRAY_SIZE(way));
}

/* A peer that does not answer is left alone for a while, unless it is heard of
 * again. */
Test(disc_state, failures_pause)
{
	static const struct way way[] = {
		{ DISC_ON_WANTED, DISC_ENQUEUE, PEER_QUEUED },
		{ DISC_ON_STEP_PING, DISC_PING, PEER_DISCOVERING },
		{ DISC_ON_SILENT, DISC_PING, PEER_DISCOVERING },
		{ DISC_ON_PING_FAILED, DISC_PAUSE, PEER_FAILED },
		{ DISC_ON_WANTED, DISC_IGNORE, PEER_FAILED },
		{ DISC_ON_PAUSE_OVER, DISC_ENQUEUE, PEER_QUEUED },
		{ DISC_ON_STEP_MERGE, DISC_MERGE, PEER_MERGING },
		{ DISC_ON_MERGE_FAILED, DISC_PAUSE, PEER_FAILED },
		{ DISC_ON_NEWS, DISC_ENQUEUE, PEER_QUEUED },
		{ DISC_ON_STEP_PUSH, DISC_PUSH, PEER_PUSHING },
		{ DISC_ON_PUSH_FAILED, DISC_PAUSE, PEER_FAILED },
	};

	go(way, ARRAY_SIZE(way));
}

Test(disc_state, enough_failures)
{
	static const struct way way[] = {
		{ DISC_ON_WANTED, DISC_ENQUEUE, PEER_QUEUED },
		{ DISC_ON_STEP_PING, DISC_PING, PEER_DISCOVERING },
		{ DISC_ON_PING_FAILED, DISC_PAUSE, PEER_FAILED },
		{ DISC_ON_GIVE_UP, DISC_FORGET, PEER_UNKNOWN },
		{ DISC_ON_WANTED, DISC_ENQUEUE, PEER_QUEUED },
	};

	go(way, ARRAY_SIZE(way));
}

/* Another peer may get its NIDs whatever is under way. */
Test(disc_state, part_of_another)
{
	static const unsigned int under_way[] = { PEER_QUEUED, PEER_DISCOVERING,
						  PEER_MERGING, PEER_PUSHING,
						  PEER_FAILED };

	for (size_t i = 0; i < ARRAY_SIZE(under_way); i++) {
		struct fsm fsm = { (uint8_t)under_way[i] };

		cr_assert_eq(disc_move(&fsm, DISC_ON_OVER), DISC_FORGET);
		cr_assert_eq(fsm.state, PEER_UNKNOWN);
	}
}

/* What may come from outside at any time is a bug in no state. */
Test(disc_state, wanted_and_news_at_any_time)
{
	for (unsigned int s = 0; s < PEER_STATES; s++) {
		struct fsm fsm = { (uint8_t)s };

		disc_move(&fsm, DISC_ON_WANTED);
		fsm.state = (uint8_t)s;
		disc_move(&fsm, DISC_ON_NEWS);
	}
}

Test(disc_state, no_ack_without_push, .signal = SIGABRT)
{
	struct fsm fsm = { PEER_DISCOVERING };

	disc_move(&fsm, DISC_ON_ACK);
}
