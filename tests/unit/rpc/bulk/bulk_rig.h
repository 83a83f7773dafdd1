/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of bulk share: two simulated nodes with a shard each, memory
 * in random fragments between guards, and bytes that can be told apart. Node 0
 * calls, node 1 serves. */
#ifndef TESTS_BULK_RIG_H
#define TESTS_BULK_RIG_H

#include "rpc/rpc.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"
#include "tests/unit/lnet/cluster.h"

#define CALLER 0
#define SERVER 1

struct rig {
	struct lnet_sim *sim;
	uint64_t seed, random;
	struct ulrpc rpc[2];
	struct shard shard[2];
};

uint64_t rig_random(struct rig *g, uint64_t below);
void rig_init(struct rig *g, uint64_t seed);

/* Closes the rig; after a crash shards still hold memory. */
void rig_end(struct rig *g);
void rig_fini(struct rig *g);

/* ---- memory ---- */

#define GUARD_BYTES 16
#define GUARD	    0x5a

/* @length bytes in fragments; each has guards before and behind it. */
struct memory {
	struct iovec *iov;
	unsigned int niov;
	size_t length;
	size_t size;
	uint8_t *buf;  /* inaccessible after memory_retire() */
	uint8_t *copy; /* of its bytes, then */
};

uint8_t nth_byte(uint64_t tag, size_t i);

/* Fragments of at most @longest bytes, a few of them empty; 0: one only. */
struct memory memory_new(struct rig *g, size_t length, size_t longest);

/* Nobody may touch the memory from now on; memory_is() looks at a copy. */
void memory_retire(struct rig *g, struct memory *m);
void memory_free(struct rig *g, struct memory *m);

/* A cursor for going through all bytes of a memory. */
struct walk {
	unsigned int fragment;
	size_t begin;
};

/* Fills byte i with that of @tag. */
void memory_fill(struct memory *m, uint64_t tag);

/* Are the bytes at @offset those of @tag at @from? */
bool memory_is(const struct memory *m, size_t offset, size_t length,
	       uint64_t tag, size_t from);

/* Are the guards as they were? */
bool memory_guarded(const struct memory *m);

#endif
