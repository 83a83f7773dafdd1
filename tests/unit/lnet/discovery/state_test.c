/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of discovery, without I/O. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

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

/*
 * Facts as letters: t the peer has announced something, u up to date, o but in
 * an earlier era, p force a ping, P force a push, m multi-rail, n discovery is
 * off at the peer, d its provenance is questioned, c this node accepts no
 * connections.
 */
struct step_case {
	enum ulnet_discovery mode;
	const char *facts;
	uint32_t told, own;
	enum disc_event step;
};

static struct disc_facts facts_of(const struct step_case *c)
{
	return (struct disc_facts){
		.mode = c->mode,
		.announced = strchr(c->facts, 't'),
		.up_to_date = strchr(c->facts, 'u'),
		.old_era = strchr(c->facts, 'o'),
		.force_ping = strchr(c->facts, 'p'),
		.force_push = strchr(c->facts, 'P'),
		.multi_rail = strchr(c->facts, 'm'),
		.no_discovery = strchr(c->facts, 'n'),
		.questioned = strchr(c->facts, 'd'),
		.calls_only = strchr(c->facts, 'c'),
		.acked_version = c->told,
		.own_version = c->own,
	};
}

Test(disc_state, next_step)
{
	static const struct step_case cases[] = {
		{ ON, "", 0, 2, PING },
		{ ON, "t", 0, 2, MERGE },
		{ ON, "tupPm", 0, 2, MERGE },
		{ ON, "um", 0, 2, PUSH },
		{ ON, "um", 2, 2, END },
		{ ON, "um", 2, 3, PUSH },
		{ ON, "uPm", 2, 2, PUSH },
		{ ON, "upm", 2, 2, PING },
		{ ON, "upPm", 2, 3, PING },
		/* A push comes first if all that is missing could not be asked
		 * for. */
		{ ON, "uom", 2, 3, PUSH },
		{ ON, "uom", 2, 2, PING },
		{ OFF, "uom", 2, 2, END },
		/* A peer that is not multi-rail never gets a push. */
		{ ON, "uP", 0, 2, END },
		/* A peer with discovery off is pushed to only if a push is
		 * forced. */
		{ ON, "umn", 0, 2, END },
		{ ON, "uPmn", 0, 2, PUSH },
		/* Version numbers wrap. */
		{ ON, "um", UINT32_MAX, 1, PUSH },
		{ ON, "um", 1, UINT32_MAX, END },
		{ VER, "", 0, 2, PING },
		{ VER, "um", 0, 2, PUSH },
		/* With discovery off there are only forced pings and pushes,
		 * merges of what was pushed, and pushes to peers that got one
		 * before. */
		{ OFF, "m", 0, 2, END },
		{ OFF, "pm", 0, 2, PING },
		{ OFF, "Pm", 2, 2, PUSH },
		{ OFF, "um", 0, 2, END },
		{ OFF, "um", 2, 2, END },
		{ OFF, "um", 2, 3, PUSH },
		{ OFF, "tm", 0, 2, MERGE },
		/* A questioned peer is pinged, unless nothing would come of it.
		 */
		{ ON, "umd", 2, 2, PING },
		{ ON, "tumd", 2, 2, MERGE },
		{ VER, "umd", 2, 2, END },
		{ OFF, "umd", 2, 2, END },
		/* A node that accepts no connections discovers others, but does
		 * not push. */
		{ ON, "mc", 0, 2, PING },
		{ ON, "umc", 0, 2, END },
		{ ON, "uPmc", 0, 2, END },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct disc_facts facts = facts_of(&cases[i]);

		cr_assert_eq(disc_step(&facts), cases[i].step, "%zu", i);
		cr_assert_eq(disc_up_to_date(&facts), cases[i].step == END,
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

/* A peer that does not answer is left alone for a while, unless something is
 * heard from it. */
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

/* Another peer may take the NIDs in any of these states. */
Test(disc_state, nids_go_to_another_peer)
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

/* These events come from outside at any time, so each state accepts them. */
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
