/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#include <string.h>

/* Mixes the seed, so that neighbouring seeds do not give overlapping
 * patterns. */
static uint64_t start_of(uint64_t seed)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
	return seed ^ seed >> 31;
}

static inline uint64_t word_at(uint64_t start, uint64_t index)
{
	uint64_t word = (start + index) * UINT64_C(0x9e3779b97f4a7c15);

	return word ^ word >> 32;
}

void pattern_fill(void *buf, size_t length, uint64_t seed, uint64_t offset)
{
	uint64_t start = start_of(seed) + offset / PATTERN_ALIGN, word;
	unsigned char *p = buf;
	size_t n = length / sizeof(word);

	for (size_t i = 0; i < n; i++) {
		word = word_at(start, i);
		memcpy(p + i * sizeof(word), &word, sizeof(word));
	}
	word = word_at(start, n);
	memcpy(p + n * sizeof(word), &word, length % sizeof(word));
}

size_t pattern_check(const void *buf, size_t length, uint64_t seed,
		     uint64_t offset)
{
	uint64_t start = start_of(seed) + offset / PATTERN_ALIGN, word, found;
	const unsigned char *p = buf, *expected;
	size_t n = length / sizeof(word), i, left;

	for (i = 0; i < n; i++) {
		word = word_at(start, i);
		memcpy(&found, p + i * sizeof(word), sizeof(found));
		if (found != word)
			break;
	}
	word = word_at(start, i);
	expected = (const unsigned char *)&word;
	left = length - i * sizeof(word);
	for (size_t k = 0; k < left && k < sizeof(word); k++)
		if (p[i * sizeof(word) + k] != expected[k])
			return i * sizeof(word) + k;
	return length;
}
