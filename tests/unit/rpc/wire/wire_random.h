/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random messages, to compare the codec with the code that protoc-c makes of
 * wire.proto. WIRE_SEED=n repeats the run that printed n.
 */
#ifndef TESTS_WIRE_RANDOM_H
#define TESTS_WIRE_RANDOM_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "rpc/wire/wire.h"
#include "rpc/wire/wire.pb-c.h"
#include "wire_hex.h"

#define BUFFER (WIRE_HEAD_MAX + 65536)

static unsigned int seed, state;

static inline void begin(void)
{
	const char *s = getenv("WIRE_SEED");

	seed = s ? (unsigned int)strtoul(s, NULL, 0) : (unsigned int)time(NULL);
	state = seed;
	printf("WIRE_SEED=%u\n", seed);
}

static inline uint32_t below(uint32_t n)
{
	return (uint32_t)rand_r(&state) % n;
}

/* Returns a number of random length; 0 and the largest ones are frequent. */
static inline uint64_t number(void)
{
	uint64_t v = (uint64_t)rand_r(&state) << 62 ^
		     (uint64_t)rand_r(&state) << 31 ^ (uint64_t)rand_r(&state);

	switch (below(8)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return UINT64_MAX;
	case 3:
		return UINT32_MAX;
	case 4:
		return below(256);
	default:
		return v >> below(64);
	}
}

static inline uint32_t number32(void)
{
	return (uint32_t)number();
}

static inline void check_bytes(const char *what, const uint8_t *got, size_t n,
			       const uint8_t *want, size_t nwant)
{
	cr_assert_eq(n, nwant, "seed %u: %s: %zu bytes, not %zu", seed, what, n,
		     nwant);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(got[i], want[i], "seed %u: %s: byte %zu of %zu",
			     seed, what, i, n);
}

#define CHECK(a, b)                                                   \
	cr_assert_eq(a, b, "seed %u: " #a " is %llu, not %llu", seed, \
		     (unsigned long long)(a), (unsigned long long)(b))

/* Checks that protoc-c's code decodes @bytes to @want, and encodes @want to
 * @bytes. */
static inline void check_theirs(const ProtobufCMessage *want,
				const uint8_t *bytes, size_t n)
{
	static uint8_t packed[BUFFER];
	ProtobufCMessage *got;
	uint8_t *copy = exactly(bytes, n);

	BUG_ON(protobuf_c_message_get_packed_size(want) > sizeof(packed));
	check_bytes("encoded", bytes, n, packed,
		    protobuf_c_message_pack(want, packed));
	got = protobuf_c_message_unpack(want->descriptor, NULL, n, copy);
	cr_assert(got, "seed %u: cannot be unpacked", seed);
	check_bytes("unpacked", packed, protobuf_c_message_pack(got, packed),
		    bytes, n);
	protobuf_c_message_free_unpacked(got, NULL);
	free(copy);
}

#endif
