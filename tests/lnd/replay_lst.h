/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet's self-test on tapes. A node that accepts connections is a member of the
 * session: its service answers the console's bytes. A node that connects is the
 * console, and a member as well: the commands of lst(8) that were typed for the
 * tape are run on it, and must send what the kernel's have sent.
 *
 * Whoever sends a request chooses the ids (match bits) of its reply and bulk
 * data. Where our node has chosen other ids than the tape has, replay_lst_own()
 * notes both, and replay_lst_patch() puts ours into the frames that answer
 * them. Frames of our node that follow each other on a connection, without one
 * of the other node in between, may come in any order, as they are independent.
 */
#ifndef TESTS_LND_REPLAY_LST_H
#define TESTS_LND_REPLAY_LST_H

#include "tests/lnd/replay.h"

/* Is this a PUT or GET of the self-test? */
bool replay_lst_is(const struct lnet_hdr *hdr);
/* Opens the self-test's service on a node that has NIs. Returns 0 or a negative
 * errno. */
int replay_lst_open(struct replay *r) must_check;
/* To be called when the node is closed. */
void replay_lst_close(struct replay *r);

/* Receives frame @i of ours, and before it those of our next frames that arrive
 * earlier. */
bool replay_lst_take(struct replay *r, unsigned int i) must_check;
/* Makes equal, in @got, received for frame @i, what a node chooses itself, and
 * notes the ids. */
bool replay_lst_own(struct replay *r, unsigned int i, uint8_t *got) must_check;
/* Replaces the id in frame @i of theirs, if it answers a request of ours. */
bool replay_lst_patch(const struct replay *r, unsigned int i,
		      uint8_t *bytes) must_check;

/* Waits, if frame @i of theirs queries or stops a batch, until no test of our
 * node runs: on the tape, that was a second after the last request of the test.
 */
bool replay_lst_pause(struct replay *r, unsigned int i) must_check;

/* Is this a request of a console, or (@reply) the reply to one?
 * replay_console.c stops there. */
bool replay_lst_is_console(const struct replay *r, unsigned int i, bool reply);
/* Plays frames until the commands have been run. */
bool replay_console(struct replay *r) must_check;

#endif
