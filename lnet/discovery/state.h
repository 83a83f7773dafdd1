/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The discovery of a peer as tables without I/O: the next state (peer/peer.h)
 * and the action for each event, and the next step when the peer has its turn.
 *
 *	wanted -> QUEUED -> DISCOVERING -> QUEUED -> MERGING -> QUEUED ->
 *		  PUSHING -> QUEUED -> DISCOVERED
 *
 * Between two steps a peer is QUEUED, and disc_step() computes the next step
 * from what is known and what is missing. So a push from the peer, or a change
 * of a local interface, may come at any time.
 */
#ifndef LNET_DISCOVERY_STATE_H
#define LNET_DISCOVERY_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "lnet/peer/peer.h"
#include "ulnet/lnet.h"

enum disc_event {
	/* There is a message for the peer, or a change to tell it, and the peer
	 * is not up to date. */
	DISC_ON_WANTED,
	/* The peer has sent a push, or a user asks for its discovery. Unlike
	 * DISC_ON_WANTED, this ends a pause. */
	DISC_ON_NEWS,
	/* The peer has its turn, and disc_step() has decided: */
	DISC_ON_STEP_PING,
	DISC_ON_STEP_MERGE,
	DISC_ON_STEP_PUSH,
	DISC_ON_STEP_END,
	/* While DISCOVERING: */
	DISC_ON_ANSWER, /* the answer is kept, to be merged */
	DISC_ON_CUT,	/* the answer did not fit into the buffer */
	/* a NID has not answered, and there is another one to ask */
	DISC_ON_SILENT,
	DISC_ON_PING_FAILED,
	/* While MERGING: */
	DISC_ON_MERGED,
	DISC_ON_MERGE_FAILED, /* no memory; nothing is changed */
	/* While PUSHING: */
	DISC_ON_ACK,
	DISC_ON_PUSH_FAILED,
	/* While FAILED: */
	DISC_ON_PAUSE_OVER,
	DISC_ON_GIVE_UP, /* there were too many failures */
	/* Another peer has all NIDs of this peer now, or the CPT closes. */
	DISC_ON_OVER,
	DISC_EVENTS
};

enum disc_action {
	/* the event cannot happen in this state: there is a bug */
	DISC_NO_MOVE,
	/* nothing is done: the next step will take the news into account */
	DISC_IGNORE,
	DISC_ENQUEUE, /* wait for a turn */
	DISC_LOOK,    /* the turn goes on: disc_step() */
	DISC_PING,
	DISC_MERGE,
	DISC_PUSH,
	DISC_END, /* end the turn, and send messages that wait */
	/* end the turn, send messages that wait to the NIDs that they name, and
	 * try again later */
	DISC_PAUSE,
	DISC_FORGET, /* end the session, and send messages that wait */
	DISC_ACTIONS
};

/* Sets *@action and *@to to what @ev does in the state @from. Returns false if
 * @ev cannot happen there. */
bool disc_row(enum peer_state from, enum disc_event ev,
	      enum disc_action *action, enum peer_state *to);

/* Moves @fsm, and returns the action. */
enum disc_action disc_move(struct fsm *fsm, enum disc_event ev);

/* What the next step depends on. Fields are about the peer, unless they say
 * otherwise. */
struct disc_facts {
	enum ulnet_discovery mode;
	bool announced;	 /* an announcement is to be merged */
	bool up_to_date; /* lnet_peer.merged */
	/* the peer was merged, but in an earlier era (disc_cpt.era) */
	bool old_era;
	bool questioned; /* an NI is to be asked whose it is */
	bool force_ping; /* it must be asked in any case */
	bool force_push; /* it must be pushed to in any case */
	bool multi_rail;
	bool no_discovery; /* it does not take part in discovery */
	/* this node only calls, so that no peer needs its NIDs */
	bool calls_only;
	/* the version of this node's information that it has acknowledged; 0:
	 * none */
	uint32_t acked_version;
	/* the present version of this node's information */
	uint32_t own_version;
};

/* Is @a later than @b? Both are sequence numbers, which wrap around. */
static inline bool disc_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Must this node's information be pushed to the peer? */
bool disc_needs_push(const struct disc_facts *f);
/* Returns the next step, DISC_ON_STEP_*. The order is: merge, ping, push, end.
 * But a peer that is asked only because of a new era is pushed to first. */
enum disc_event disc_step(const struct disc_facts *f);
/* Is there nothing to do? */
static inline bool disc_up_to_date(const struct disc_facts *f)
{
	return disc_step(f) == DISC_ON_STEP_END;
}

#endif
