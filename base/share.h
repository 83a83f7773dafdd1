/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much one holder may take of something that all holders share (messages,
 * bytes, exports): a dynamic threshold.
 *
 * A holder may take more as long as it holds no more than what is still free.
 * So a single holder gets half, two get a third each, k get 1 / (k + 1) each,
 * and as much stays free for the next one. Holders need not be known in
 * advance, and nothing is reserved for those that are idle.
 *
 * A holder must be something that cannot be made up at will, such as a NID that
 * its connection confirms: otherwise one party with many names would get many
 * parts.
 */
#ifndef BASE_SHARE_H
#define BASE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* May a holder that has @held take @n more of @max, of which all holders
 * together use @used? All four have the same unit. @used may exceed @max, which
 * may have been lowered. @n may be more than half of what is free: otherwise a
 * large @n could not be had even by a holder that has nothing. */
static inline bool share_allows(uint64_t held, uint64_t used, uint64_t max,
				uint64_t n)
{
	uint64_t left = used < max ? max - used : 0;

	return n <= left && held <= left;
}

#endif
