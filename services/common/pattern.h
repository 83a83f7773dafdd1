/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patterns for tests: each byte depends on a seed and on its offset, so that a
 * receiver can check that it has the right bytes in the right place. Making and
 * checking them is quick enough for measurements.
 */
#ifndef SERVICES_COMMON_PATTERN_H
#define SERVICES_COMMON_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define PATTERN_ALIGN 8 /* bytes; offsets are multiples of it */

/* Fills @buf with bytes @offset to @offset + @length of the pattern. */
void pattern_fill(void *buf, size_t length, uint64_t seed, uint64_t offset);
/* Returns the index of the first byte of @buf that is not what pattern_fill()
 * would write there; @length if there is none. */
size_t pattern_check(const void *buf, size_t length, uint64_t seed,
		     uint64_t offset);

#endif
