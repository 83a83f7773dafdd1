/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/state.h"

#include "base/util.h"
#include "lnet/peer/peer.h"

struct disc_row {
	uint8_t action; /* enum disc_action */
	uint8_t next;	/* enum peer_state */
};

/* clang-format off */
#define STAY(state) { DISC_IGNORE, state }

static const struct disc_row rows[PEER_STATES][DISC_EVENTS] = {
	[PEER_UNKNOWN] = {
		[DISC_ON_WANTED]	= { DISC_ENQUEUE, PEER_QUEUED },
		[DISC_ON_NEWS]		= { DISC_ENQUEUE, PEER_QUEUED },
	},
	[PEER_QUEUED] = {
		[DISC_ON_WANTED]	= STAY(PEER_QUEUED),
		[DISC_ON_NEWS]		= STAY(PEER_QUEUED),
		[DISC_ON_STEP_PING]	= { DISC_PING, PEER_DISCOVERING },
		[DISC_ON_STEP_MERGE]	= { DISC_MERGE, PEER_MERGING },
		[DISC_ON_STEP_PUSH]	= { DISC_PUSH, PEER_PUSHING },
		[DISC_ON_STEP_END]	= { DISC_END, PEER_DISCOVERED },
		[DISC_ON_OVER]		= { DISC_FORGET, PEER_UNKNOWN },
	},
	[PEER_DISCOVERING] = {
		[DISC_ON_WANTED]	= STAY(PEER_DISCOVERING),
		[DISC_ON_NEWS]		= STAY(PEER_DISCOVERING),
		[DISC_ON_ANSWER]	= { DISC_LOOK, PEER_QUEUED },
		[DISC_ON_CUT]		= { DISC_PING, PEER_DISCOVERING },
		[DISC_ON_SILENT]	= { DISC_PING, PEER_DISCOVERING },
		[DISC_ON_PING_FAILED]	= { DISC_PAUSE, PEER_FAILED },
		[DISC_ON_OVER]		= { DISC_FORGET, PEER_UNKNOWN },
	},
	[PEER_MERGING] = {
		[DISC_ON_WANTED]	= STAY(PEER_MERGING),
		[DISC_ON_NEWS]		= STAY(PEER_MERGING),
		[DISC_ON_MERGED]	= { DISC_LOOK, PEER_QUEUED },
		[DISC_ON_MERGE_FAILED]	= { DISC_PAUSE, PEER_FAILED },
		[DISC_ON_OVER]		= { DISC_FORGET, PEER_UNKNOWN },
	},
	[PEER_PUSHING] = {
		[DISC_ON_WANTED]	= STAY(PEER_PUSHING),
		[DISC_ON_NEWS]		= STAY(PEER_PUSHING),
		[DISC_ON_ACK]		= { DISC_LOOK, PEER_QUEUED },
		[DISC_ON_PUSH_FAILED]	= { DISC_PAUSE, PEER_FAILED },
		[DISC_ON_OVER]		= { DISC_FORGET, PEER_UNKNOWN },
	},
	[PEER_DISCOVERED] = {
		[DISC_ON_WANTED]	= { DISC_ENQUEUE, PEER_QUEUED },
		[DISC_ON_NEWS]		= { DISC_ENQUEUE, PEER_QUEUED },
	},
	[PEER_FAILED] = {
		[DISC_ON_WANTED]	= STAY(PEER_FAILED),
		[DISC_ON_NEWS]		= { DISC_ENQUEUE, PEER_QUEUED },
		[DISC_ON_PAUSE_OVER]	= { DISC_ENQUEUE, PEER_QUEUED },
		[DISC_ON_GIVE_UP]	= { DISC_FORGET, PEER_UNKNOWN },
		[DISC_ON_OVER]		= { DISC_FORGET, PEER_UNKNOWN },
	},
};
/* clang-format on */

bool disc_row(enum peer_state from, enum disc_event ev,
	      enum disc_action *action, enum peer_state *to)
{
	const struct disc_row *row = &rows[from][ev];

	*action = (enum disc_action)row->action;
	*to = (enum peer_state)row->next;
	return row->action != DISC_NO_MOVE;
}

enum disc_action disc_move(struct fsm *fsm, enum disc_event ev)
{
	enum peer_state from = (enum peer_state)fsm->state, to;
	enum disc_action action;

	BUG_ON(!disc_row(from, ev, &action, &to));
	if (to != from)
		fsm_move(fsm, peer_states, to);
	return action;
}

bool disc_needs_push(const struct disc_facts *f)
{
	if (!f->multi_rail || f->calls_only)
		return false;
	if (f->force_push)
		return true;
	if (f->no_discovery)
		return false;
	/* If discovery is off, a peer that was pushed to before learns that
	 * this node does not take part any more. */
	if (!f->acked_version)
		return f->mode != LNET_DISCOVERY_OFF;
	return disc_later(f->own_version, f->acked_version);
}

enum disc_event disc_step(const struct disc_facts *f)
{
	if (f->announced)
		return DISC_ON_STEP_MERGE;
	if (f->force_ping || (f->mode != LNET_DISCOVERY_OFF && !f->up_to_date))
		return DISC_ON_STEP_PING;
	if (f->questioned && f->mode == LNET_DISCOVERY_ON)
		return DISC_ON_STEP_PING;
	if (disc_needs_push(f))
		return DISC_ON_STEP_PUSH;
	if (f->old_era && f->mode != LNET_DISCOVERY_OFF)
		return DISC_ON_STEP_PING;
	return DISC_ON_STEP_END;
}
