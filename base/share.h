/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares: how much one holder may take of something that all holders together
 * have a limited amount of (messages, bytes on hold, exports).
 *
 * The law: a holder may take more while what it holds is at most what is still
 * free. A holder that is alone gets half, two get a third each, k get a part of
 * 1 / (k + 1) each, and one part stays free for whoever comes next. So nobody
 * has to be known in advance, nobody's part is reserved while he does not use
 * it, and a holder that was alone gives way to others as it gives back.
 *
 * A holder is something that cannot be made up at will (a peer's NID that its
 * connection confirms): otherwise one with many names would get many parts.
 */
#ifndef BASE_SHARE_H
#define BASE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * May a holder that has @held take @n more of @max, when all holders together
 * use @used? All in the same unit. @used may be above @max, which may have been
 * lowered.
 *
 * One large piece may be more than half: otherwise even a holder that has
 * nothing would wait for it for ever.
 */
static inline bool share_allows(uint64_t held, uint64_t used, uint64_t max,
				uint64_t n)
{
	uint64_t left = used < max ? max - used : 0;

	return n <= left && held <= left;
}

#endif
