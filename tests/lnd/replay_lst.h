/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet's self-test on tapes. A node that accepts connections is a member of the
 * session: its service answers the console's bytes. A node that connects is the
 * console, and a member as well: the commands of lst(8) that were typed for the
 * tape are run on it, and must print what the kernel's have printed.
 *
 * Whoever asks chooses the ids (match bits) of replies and bulk data. Those
 * that our node chooses are compared with the tape by the request that they
 * came in, and frames that answer them are sent with its ids. Frames of our
 * node that follow each other on a connection, without one of the other node in
 * between, may come in any order, as they are independent.
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

/* Takes frame @i of ours, and before it those of the next ones that arrive
 * earlier. */
bool replay_lst_take(struct replay *r, unsigned int i) must_check;
/* Checks @got, received for frame @i: what a node chooses itself is noted, and
 * made equal. */
bool replay_lst_own(struct replay *r, unsigned int i, uint8_t *got) must_check;
/* Replaces the id in frame @i of theirs, if it answers a request of ours. */
bool replay_lst_patch(const struct replay *r, unsigned int i,
		      uint8_t *bytes) must_check;

/* Waits before frame @i of theirs: questions about a batch, and orders to it,
 * came a second after the last of its requests, when nothing was running. */
bool replay_lst_pause(struct replay *r, unsigned int i) must_check;

/* Is this a request of a console, or (@reply) the reply to one?
 * replay_console.c stops there. */
bool replay_lst_is_console(const struct replay *r, unsigned int i, bool reply);
/* Plays frames until the commands have been run. */
bool replay_console(struct replay *r) must_check;

#endif
