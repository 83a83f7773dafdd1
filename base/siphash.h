/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SipHash-2-4 with a result of 128 bits: a keyed pseudo-random function, by
 * Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012). Without the
 * key, results reveal nothing and cannot be predicted.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_SIZE 16 /* bytes of a key and of a result */

void siphash(const uint8_t key[SIPHASH_SIZE], const void *data, size_t length,
	     uint8_t out[SIPHASH_SIZE]);

#endif
