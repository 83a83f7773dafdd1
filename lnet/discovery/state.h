/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The course of a peer's discovery, as tables without I/O: what an event makes
 * of the peer's state (peer/peer.h) and what is then to be done, and which step
 * is next when it is the peer's turn.
 *
 *	wanted -> QUEUED -> DISCOVERING -> QUEUED -> MERGING -> QUEUED ->
 *		  PUSHING -> QUEUED -> DISCOVERED
 *
 * Between two steps a peer is QUEUED, and disc_step() says what is missing yet:
 * there is no order of steps but the one that follows from what is known. So a
 * push that comes from the peer, or a local interface that changes, whenever it
 * may, changes what is known, and with it the next step.
 *
 * Whether messages to the peer wait meanwhile is not said here: those to a peer
 * that was discovered once do not.
 */
#ifndef LNET_DISCOVERY_STATE_H
#define LNET_DISCOVERY_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "lnet/peer/peer.h"
#include "ulnet/lnet.h"

enum disc_event {
	/* The peer is not up to date, and that matters: there is a message for
	 * it, or a change of ours to tell. */
	DISC_ON_WANTED,
	/* A push came from it, or somebody asks for its discovery: no reason
	 * to pause any longer. */
	DISC_ON_NEWS,
	/* Its turn; what disc_step() has said. */
	DISC_ON_STEP_PING,
	DISC_ON_STEP_MERGE,
	DISC_ON_STEP_PUSH,
	DISC_ON_STEP_END,
	/* While DISCOVERING. */
	DISC_ON_ANSWER, /* what it told is kept, to be merged */
	DISC_ON_CUT,	/* the answer did not fit; a longer one will */
	DISC_ON_SILENT, /* this NID gave no answer; there is another */
	DISC_ON_PING_FAILED,
	/* While MERGING. */
	DISC_ON_MERGED,
	DISC_ON_MERGE_FAILED, /* no memory; nothing is changed */
	/* While PUSHING. */
	DISC_ON_ACK,
	DISC_ON_PUSH_FAILED,
	/* While FAILED. */
	DISC_ON_PAUSE_OVER,
	DISC_ON_GIVE_UP, /* it has failed often enough */
	/* Nothing is to be done any more: another peer has all of its NIDs now,
	 * or the CPT closes. */
	DISC_ON_OVER,
	DISC_EVENTS
};

enum disc_action {
	DISC_NO_MOVE, /* the event cannot be: a bug */
	DISC_IGNORE,  /* nothing: the next step will see what is new */
	DISC_ENQUEUE, /* let it wait for its turn */
	DISC_LOOK,    /* still its turn: disc_step() */
	DISC_PING,
	DISC_MERGE,
	DISC_PUSH,
	DISC_END,    /* give the turn back; messages go their ways */
	DISC_PAUSE,  /* as DISC_END, but nothing is discovered: to the NIDs
			 * that the messages name; and try again later */
	DISC_FORGET, /* what was under way; messages go their ways */
	DISC_ACTIONS
};

/* What @ev does in the state @from. False: it cannot be. */
bool disc_row(enum peer_state from, enum disc_event ev,
	      enum disc_action *action, enum peer_state *to);

/* Moves @fsm, and returns what is to be done. */
enum disc_action disc_move(struct fsm *fsm, enum disc_event ev);

/* What the next step depends on. */
struct disc_facts {
	enum ulnet_discovery mode;
	bool told_us;	   /* there is something to be merged */
	bool up_to_date;   /* what it told was merged, and it told all ... */
	bool of_old;	   /* ... when other things could be merged (era) */
	bool questioned;   /* one of its NIs is to be asked whose it is */
	bool force_ping;   /* ask, whatever we know */
	bool force_push;   /* tell, whatever it knows */
	bool multi_rail;   /* the peer is */
	bool no_discovery; /* it does not take part */
	bool calls_only;   /* this node cannot be called: nobody need know its
			    * NIDs */
	uint32_t told;	   /* version of our information that it has; 0: none */
	uint32_t own;	   /* version of what is so now */
};

/* Of two numbers of ping informations: is @a the later one? They wrap. */
static inline bool disc_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Does the peer need to hear of us? */
bool disc_needs_push(const struct disc_facts *f);
/* DISC_ON_STEP_*, in the order merge, ping, push, end. One exception: a peer
 * that is to be asked only because more can be merged now is told first. */
enum disc_event disc_step(const struct disc_facts *f);
/* Is there nothing to do about it? */
static inline bool disc_up_to_date(const struct disc_facts *f)
{
	return disc_step(f) == DISC_ON_STEP_END;
}

#endif
