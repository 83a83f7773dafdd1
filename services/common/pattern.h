/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that follow from a seed and from their place, so that a receiver can
 * tell whether they are the right ones, in the right place. Quick enough for
 * every byte of a measurement.
 */
#ifndef SERVICES_COMMON_PATTERN_H
#define SERVICES_COMMON_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define PATTERN_ALIGN 8 /* offsets are a multiple of it */

/* Fills @buf with bytes @offset to @offset + @length of the pattern. */
void pattern_fill(void *buf, size_t length, uint64_t seed, uint64_t offset);
/* @length if @buf is what pattern_fill() makes, else the index of the first
 * byte that is not. */
size_t pattern_check(const void *buf, size_t length, uint64_t seed,
		     uint64_t offset);

#endif
