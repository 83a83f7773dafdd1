/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The self-test on tapes. A node that accepts is a member: its service answers
 * the console's bytes, and sends what it wants. A node that connects is the
 * console, and the member that is sent to: the commands of lst(8) that were
 * typed then are run on it, and must say what the kernel's have said.
 *
 * Ids of replies and bulk data are those of whoever asks: the node's own are
 * compared with the tape by which request they came in, and what answers them
 * is sent to where the node expects it. Its messages that follow each other on
 * a connection, with none of the other one in between, may come in any order:
 * no two of them have to do with each other.
 */
#ifndef TESTS_LND_REPLAY_LST_H
#define TESTS_LND_REPLAY_LST_H

#include "tests/lnd/replay.h"

/* Is it a PUT or GET of the self-test? */
bool replay_lst_is(const struct lnet_hdr *hdr);
/* The service, on a node with its NIs. 0 or a negative errno. */
int replay_lst_open(struct replay *r) must_check;
/* The node has gone. */
void replay_lst_close(struct replay *r);

/* Takes frame @i of ours, and before it those after it that come first. */
bool replay_lst_take(struct replay *r, unsigned int i) must_check;
/* The bytes @got for frame @i: what is the node's own is noted, and made equal.
 */
bool replay_lst_own(struct replay *r, unsigned int i, uint8_t *got) must_check;
/* Frame @i of theirs: for an id of ours, if it answers one. */
bool replay_lst_patch(const struct replay *r, unsigned int i,
		      uint8_t *bytes) must_check;

/* Before frame @i of theirs: what is asked about a batch, and told it, was a
 * second after the last of its requests, when nothing was running. */
bool replay_lst_pause(struct replay *r, unsigned int i) must_check;

/* A request of a console, or the reply to one: replay_console.c stops there. */
bool replay_lst_is_console(const struct replay *r, unsigned int i, bool reply);
/* Plays frames until the commands have been run. */
bool replay_console(struct replay *r) must_check;

#endif
