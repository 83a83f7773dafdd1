/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which numbers of an endless sequence have been seen, in little memory: a
 * window of bits over the last ones, which moves up; what was not seen when the
 * window left it behind (a hole) is remembered as long as there is room.
 *
 * What is not known any more counts as seen: a number is never called new twice.
 *
 * Thread: owner.
 */
#ifndef RPC_XIDS_H
#define RPC_XIDS_H

#include "base/util.h"

#define XIDS_WORDS_SMALL 2u  /* 128 numbers, without allocation */
#define XIDS_WORDS_LARGE 64u /* 4096 */
#define XIDS_HOLES	 16u /* words of them */

struct xids_large;

struct xids {
	uint64_t base; /* words below this one are left behind */
	uint64_t small[XIDS_WORDS_SMALL];
	struct xids_large *large; /* instead of small, with the holes */
	uint64_t forgotten; /* holes that there was no room for: numbers */
};

void xids_init(struct xids *s);
void xids_fini(struct xids *s);
/* Was @n new? Then it is seen now. */
bool xids_add(struct xids *s, uint64_t n);
/* Numbers up to @n do not come any more; those that do count as seen. */
void xids_below(struct xids *s, uint64_t n);
/* Gives memory back that is not needed now. */
void xids_trim(struct xids *s);

#endif
