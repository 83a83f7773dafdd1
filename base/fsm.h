/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State machines as tables of at most 32 states, each with a name and the set
 * of states that may follow it. Only fsm_move() writes a state, and aborts on a
 * move that the table does not allow.
 */
#ifndef BASE_FSM_H
#define BASE_FSM_H

#include "base/util.h"

#define FSM_TO(state) (UINT32_C(1) << (state))

struct fsm_state {
	const char *name;
	uint32_t next; /* FSM_TO() of each state that may follow, or-ed */
};

struct fsm {
	uint8_t state;
};

static inline bool fsm_may(const struct fsm *f, const struct fsm_state *table,
			   unsigned int to)
{
	return table[f->state].next & FSM_TO(to);
}

static inline const char *fsm_name(const struct fsm *f,
				   const struct fsm_state *table)
{
	return table[f->state].name;
}

/* Prints the move that is not allowed, and aborts. */
static __attribute__((noreturn, cold, unused)) void fsm_bad_move(
	const struct fsm *f, const struct fsm_state *table, unsigned int to)
{
	fprintf(stderr, "BUG fsm %p: state \"%s\" may not become %u (\"%s\")\n",
		(const void *)table, fsm_name(f, table), to, table[to].name);
	abort();
}

static inline void fsm_move(struct fsm *f, const struct fsm_state *table,
			    unsigned int to)
{
	if (unlikely(!fsm_may(f, table, to)))
		fsm_bad_move(f, table, to);
	f->state = (uint8_t)to;
}

#endif
