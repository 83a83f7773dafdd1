/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct sip {
	uint64_t v[4];
};

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_half(uint64_t *a, uint64_t *b, unsigned int bits)
{
	*a += *b;
	*b = rotate(*b, bits) ^ *a;
}

static void sip_rounds(struct sip *s, unsigned int rounds)
{
	uint64_t *v = s->v;

	while (rounds--) {
		sip_half(&v[0], &v[1], 13);
		v[0] = rotate(v[0], 32);
		sip_half(&v[2], &v[3], 16);
		sip_half(&v[0], &v[3], 21);
		sip_half(&v[2], &v[1], 17);
		v[2] = rotate(v[2], 32);
	}
}

static void sip_word(struct sip *s, uint64_t word)
{
	s->v[3] ^= word;
	sip_rounds(s, 2);
	s->v[0] ^= word;
}

static uint64_t siphash_load(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return le64toh(word);
}

static void siphash_store(uint8_t *p, const struct sip *s)
{
	uint64_t word = htole64(s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3]);

	memcpy(p, &word, sizeof(word));
}

void siphash(const uint8_t key[SIPHASH_SIZE], const void *data, size_t length,
	     uint8_t out[SIPHASH_SIZE])
{
	uint64_t k0 = siphash_load(key), k1 = siphash_load(key + 8);
	struct sip s = { { k0 ^ UINT64_C(0x736f6d6570736575),
			   k1 ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
			   k0 ^ UINT64_C(0x6c7967656e657261),
			   k1 ^ UINT64_C(0x7465646279746573) } };
	const uint8_t *p = data;
	uint8_t last[8] = { 0 };
	size_t left = length;

	for (; left >= 8; p += 8, left -= 8)
		sip_word(&s, siphash_load(p));
	if (left)
		memcpy(last, p, left);
	last[7] = (uint8_t)length;
	sip_word(&s, siphash_load(last));
	s.v[2] ^= 0xee;
	sip_rounds(&s, 4);
	siphash_store(out, &s);
	s.v[1] ^= 0xdd;
	sip_rounds(&s, 4);
	siphash_store(out + 8, &s);
}
