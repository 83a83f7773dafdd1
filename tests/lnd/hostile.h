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

/* A number in otherwise good bytes. */
struct patch {
	const char *name;
	unsigned int at, width; /* 0: nothing */
	uint64_t value;
	int then; /* what is to happen: of the table */
};

typedef void patch_fn(struct fx *fx, struct raw_peer *s, const struct patch *p);

/* Tries each patch of a table, in both byte orders; says which one it was when
 * one of its expectations failed. */
void each_patch(struct fx *fx, struct raw_peer *s, const struct patch *list,
		unsigned int n, patch_fn *try);
/* ... for tables of another kind. */
void say_which(struct fx *fx, unsigned int failures_before, const char *name);

/* Byte by byte. */
void say_slowly(int fd, const uint8_t *bytes, size_t n);

/* ---- chance ---- */

/* The @k-th of some rounds; false: there is no use in going on. */
typedef bool random_fn(struct fx *fx, struct raw_peer *s, unsigned int k,
		       uint64_t *state);

/* Returns the seed, which say_seed() says when the behaviour failed. */
uint64_t each_random(struct fx *fx, struct raw_peer *s, unsigned int rounds,
		     random_fn *try);
void say_seed(struct fx *fx, uint64_t seed);
/* The next number of a generator. */
uint32_t hostile_random(uint64_t *state);
void fill_randomly(uint64_t *state, uint8_t *bytes, size_t n);
void turn_bits(uint64_t *state, uint8_t *bytes, size_t n, unsigned int times);

#define TCP_NID(addr) (UINT64_C(0x0002000000000000) | (addr))

#endif
