/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SipHash-2-4 with a result of 128 bits: a keyed function of bytes, by Aumasson
 * and Bernstein, "SipHash: a fast short-input PRF" (2012). Who does not have
 * the key learns nothing from results, and cannot compute others.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_SIZE 16 /* bytes, of keys and of results */

void siphash(const uint8_t key[SIPHASH_SIZE], const void *data, size_t length,
	     uint8_t out[SIPHASH_SIZE]);

#endif
