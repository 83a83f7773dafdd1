/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/state.h"

#include "base/util.h"

const struct fsm_state disc_states[DISC_STATES] = {
	[DISC_UNKNOWN] = { "unknown", FSM_TO(DISC_QUEUED) },
	[DISC_QUEUED] = { "queued",
			  FSM_TO(DISC_PINGING) | FSM_TO(DISC_MERGING) |
				  FSM_TO(DISC_PUSHING) |
				  FSM_TO(DISC_DISCOVERED) |
				  FSM_TO(DISC_UNKNOWN) },
	[DISC_PINGING] = { "pinging", FSM_TO(DISC_QUEUED) |
					      FSM_TO(DISC_FAILED) |
					      FSM_TO(DISC_UNKNOWN) },
	[DISC_MERGING] = { "merging", FSM_TO(DISC_QUEUED) |
					      FSM_TO(DISC_FAILED) |
					      FSM_TO(DISC_UNKNOWN) },
	[DISC_PUSHING] = { "pushing", FSM_TO(DISC_QUEUED) |
					      FSM_TO(DISC_FAILED) |
					      FSM_TO(DISC_UNKNOWN) },
	[DISC_DISCOVERED] = { "discovered", FSM_TO(DISC_QUEUED) },
	[DISC_FAILED] = { "failed",
			  FSM_TO(DISC_QUEUED) | FSM_TO(DISC_UNKNOWN) },
};

struct disc_row {
	uint8_t action; /* enum disc_action */
	uint8_t next;	/* enum disc_state */
};

/* clang-format off */
#define STAY(state) { DISC_IGNORE, state }

static const struct disc_row rows[DISC_STATES][DISC_EVENTS] = {
	[DISC_UNKNOWN] = {
		[DISC_ON_WANTED]	= { DISC_ENQUEUE, DISC_QUEUED },
		[DISC_ON_NEWS]		= { DISC_ENQUEUE, DISC_QUEUED },
	},
	[DISC_QUEUED] = {
		[DISC_ON_WANTED]	= STAY(DISC_QUEUED),
		[DISC_ON_NEWS]		= STAY(DISC_QUEUED),
		[DISC_ON_STEP_PING]	= { DISC_PING, DISC_PINGING },
		[DISC_ON_STEP_MERGE]	= { DISC_MERGE, DISC_MERGING },
		[DISC_ON_STEP_PUSH]	= { DISC_PUSH, DISC_PUSHING },
		[DISC_ON_STEP_END]	= { DISC_END, DISC_DISCOVERED },
		[DISC_ON_TAKEN]		= { DISC_FORGET, DISC_UNKNOWN },
	},
	[DISC_PINGING] = {
		[DISC_ON_WANTED]	= STAY(DISC_PINGING),
		[DISC_ON_NEWS]		= STAY(DISC_PINGING),
		[DISC_ON_ANSWER]	= { DISC_LOOK, DISC_QUEUED },
		[DISC_ON_CUT]		= { DISC_PING, DISC_PINGING },
		[DISC_ON_SILENT]	= { DISC_PING, DISC_PINGING },
		[DISC_ON_PING_FAILED]	= { DISC_PAUSE, DISC_FAILED },
		[DISC_ON_TAKEN]		= { DISC_FORGET, DISC_UNKNOWN },
	},
	[DISC_MERGING] = {
		[DISC_ON_WANTED]	= STAY(DISC_MERGING),
		[DISC_ON_NEWS]		= STAY(DISC_MERGING),
		[DISC_ON_MERGED]	= { DISC_LOOK, DISC_QUEUED },
		[DISC_ON_MERGE_FAILED]	= { DISC_PAUSE, DISC_FAILED },
		[DISC_ON_TAKEN]		= { DISC_FORGET, DISC_UNKNOWN },
	},
	[DISC_PUSHING] = {
		[DISC_ON_WANTED]	= STAY(DISC_PUSHING),
		[DISC_ON_NEWS]		= STAY(DISC_PUSHING),
		[DISC_ON_ACK]		= { DISC_LOOK, DISC_QUEUED },
		[DISC_ON_PUSH_FAILED]	= { DISC_PAUSE, DISC_FAILED },
		[DISC_ON_TAKEN]		= { DISC_FORGET, DISC_UNKNOWN },
	},
	[DISC_DISCOVERED] = {
		[DISC_ON_WANTED]	= { DISC_ENQUEUE, DISC_QUEUED },
		[DISC_ON_NEWS]		= { DISC_ENQUEUE, DISC_QUEUED },
	},
	[DISC_FAILED] = {
		[DISC_ON_WANTED]	= STAY(DISC_FAILED),
		[DISC_ON_NEWS]		= { DISC_ENQUEUE, DISC_QUEUED },
		[DISC_ON_PAUSE_OVER]	= { DISC_ENQUEUE, DISC_QUEUED },
		[DISC_ON_GIVE_UP]	= { DISC_FORGET, DISC_UNKNOWN },
		[DISC_ON_TAKEN]		= { DISC_FORGET, DISC_UNKNOWN },
	},
};
/* clang-format on */

enum disc_action disc_move(struct fsm *fsm, enum disc_event ev)
{
	const struct disc_row *row = &rows[fsm->state][ev];

	BUG_ON(row->action == DISC_NO_MOVE);
	if (row->next != fsm->state)
		fsm_move(fsm, disc_states, row->next);
	return row->action;
}

bool disc_needs_push(const struct disc_facts *f)
{
	if (!f->multi_rail)
		return false;
	if (f->force_push)
		return true;
	return f->mode != DISC_MODE_OFF && !f->no_discovery &&
	       (!f->told || disc_later(f->own, f->told));
}

enum disc_event disc_step(const struct disc_facts *f)
{
	if (f->told_us)
		return DISC_ON_STEP_MERGE;
	if (f->force_ping || (f->mode != DISC_MODE_OFF && !f->up_to_date))
		return DISC_ON_STEP_PING;
	if (disc_needs_push(f))
		return DISC_ON_STEP_PUSH;
	return DISC_ON_STEP_END;
}
