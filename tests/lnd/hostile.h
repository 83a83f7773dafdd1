/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_LND_HOSTILE_H
#define TESTS_LND_HOSTILE_H

#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/stranger.h"

extern const struct topic topic_greeting; /* hostile_greeting.c */
extern const struct topic topic_frames;	  /* hostile_frame.c */
extern const struct topic topic_answers;  /* hostile_answer.c */

/* A number in otherwise good bytes. */
struct patch {
	const char *name;
	unsigned int at, width; /* 0: nothing */
	uint64_t value;
	int then; /* what is to happen: of the table */
};

/* Says which one of a table was it, when one of its expectations failed. */
void say_which(struct fx *fx, unsigned int failures_before, const char *name);

/* The next number of a generator; its seed is printed when a test fails. */
uint32_t hostile_random(uint64_t *state);
uint64_t hostile_seed(void);

#define TCP_NID(addr) (UINT64_C(0x0002000000000000) | (addr))

#endif
