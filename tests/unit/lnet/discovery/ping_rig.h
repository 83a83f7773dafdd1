/* SPDX-License-Identifier: BSD-3-Clause */
/* Ping information: decoding, and making it by hand. */
#ifndef TESTS_PING_RIG_H
#define TESTS_PING_RIG_H

#include "lnet/discovery/info.h"
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/golden.h"

#define MAX_NIS 300

static struct ulnet_ping_ni nis[MAX_NIS];
static struct ulnet_ping_info info;
static size_t need;

static inline int decode(const void *bytes, size_t len, unsigned int max)
{
	/* The copies have memory of their own, so that sanitizers find accesses
	 * past their end. */
	uint8_t *copy = malloc(len ? len : 1);
	unsigned int room = ping_info_room(len, max);
	struct ulnet_ping_ni *ni = calloc(room, sizeof(*ni));
	int rc;

	memcpy(copy, bytes, len);
	rc = ping_info_decode(copy, len, &info, ni, max, &need);
	cr_assert(rc || info.nnis <= room);
	memcpy(nis, ni, MIN(room, MAX_NIS) * sizeof(*ni));
	info.ni = nis;
	free(ni);
	free(copy);
	return rc;
}

static inline size_t put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
	return sizeof(v);
}

/* Writes the header and the entries of 0@lo and of small NIDs 10.0.0.1@tcp and
 * on; @nsmall is the number of entries. Returns the length. */
static inline size_t put_head(uint8_t *p, uint32_t features, uint32_t nsmall)
{
	uint8_t *at = p;
	uint64_t lo = UINT64_C(9) << 48;

	at += put32(at, 0x70696e67);
	at += put32(at, features);
	at += put32(at, 12345);
	at += put32(at, nsmall);
	memcpy(at, &lo, sizeof(lo));
	at += 8;
	at += put32(at, 7);
	at += put32(at, 0);
	for (uint32_t i = 1; i < nsmall; i++) {
		uint64_t nid4 = UINT64_C(0x000200000a000000) + i;

		memcpy(at, &nid4, sizeof(nid4));
		at += 8;
		at += put32(at, 0x15aac0de);
		at += put32(at, 0);
	}
	return (size_t)(at - p);
}

#endif
