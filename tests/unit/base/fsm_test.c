/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include "base/fsm.h"

enum { IDLE, HELLO, UP, DEAD, STATES };

static const struct fsm_state table[STATES] = {
	[IDLE] = { "idle", FSM_TO(HELLO) | FSM_TO(DEAD) },
	[HELLO] = { "hello", FSM_TO(UP) | FSM_TO(DEAD) },
	[UP] = { "up", FSM_TO(UP) | FSM_TO(DEAD) },
	[DEAD] = { "dead", 0 },
};

Test(fsm, allowed_moves)
{
	static const unsigned int way[] = { HELLO, UP, UP, DEAD };
	struct fsm f = { .state = IDLE };

	cr_assert_str_eq(fsm_name(&f, table), "idle");
	for (size_t i = 0; i < ARRAY_SIZE(way); i++) {
		cr_assert(fsm_may(&f, table, way[i]));
		fsm_move(&f, table, way[i]);
		cr_assert_eq(f.state, way[i]);
	}
	cr_assert_str_eq(fsm_name(&f, table), "dead");
	for (unsigned int to = 0; to < STATES; to++)
		cr_assert(!fsm_may(&f, table, to));
}

Test(fsm, bad_move_aborts, .signal = SIGABRT)
{
	struct fsm f = { .state = IDLE };

	fsm_move(&f, table, UP);
}
