/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_LND_HOSTILE_H
#define TESTS_LND_HOSTILE_H

#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/raw_peer.h"

extern const struct topic topic_greeting; /* hostile_greeting.c */
extern const struct topic topic_frames;	  /* hostile_frame.c */
extern const struct topic topic_answers;  /* hostile_answer.c */
extern const struct topic topic_shares;	  /* hostile_share.c */

/* A number that replaces another one in otherwise correct bytes. */
struct patch {
	const char *name;
	unsigned int at, width; /* 0: nothing is replaced */
	uint64_t value;
	int then; /* what must happen: a value of the table's own */
};

typedef void patch_fn(struct fx *fx, struct raw_peer *s, const struct patch *p);

/* Tries each patch of a table, in both byte orders, and prints the patch if one
 * of its expectations fails. */
void each_patch(struct fx *fx, struct raw_peer *s, const struct patch *list,
		unsigned int n, patch_fn *try);
/* Prints @name if an expectation has failed since; for tables of another kind.
 */
void say_which(struct fx *fx, unsigned int failures_before, const char *name);

/* Sends byte by byte. */
void say_slowly(int fd, const uint8_t *bytes, size_t n);

/* ---- chance ---- */

/* Does round @k. Returns false if there is no use in going on. */
typedef bool random_fn(struct fx *fx, struct raw_peer *s, unsigned int k,
		       uint64_t *state);

/* Runs the rounds. Returns the seed, which say_seed() prints if the behaviour
 * has failed. */
uint64_t each_random(struct fx *fx, struct raw_peer *s, unsigned int rounds,
		     random_fn *try);
void say_seed(struct fx *fx, uint64_t seed);
/* Returns the next number of a generator. */
uint32_t hostile_random(uint64_t *state);
void fill_randomly(uint64_t *state, uint8_t *bytes, size_t n);
void turn_bits(uint64_t *state, uint8_t *bytes, size_t n, unsigned int times);

#define TCP_NID(addr) (UINT64_C(0x0002000000000000) | (addr))

#endif
