/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of bulk share: two simulated nodes with a shard each, memory
 * in random fragments between guards, and patterns of bytes that can be told
 * apart. Node 0 is the caller, node 1 the server. */
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

/* Closes the rig; unlike rig_fini(), also if the shards still hold memory, as
 * they do after a crash. */
void rig_end(struct rig *g);
void rig_fini(struct rig *g);

/* ---- memory ---- */

#define GUARD_BYTES 16
#define GUARD	    0x5a

/* @length bytes in fragments, with guard bytes before and behind each. */
struct memory {
	struct iovec *iov;
	unsigned int niov;
	size_t length;
	size_t size;
	uint8_t *buf;  /* inaccessible after memory_retire() */
	uint8_t *copy; /* after memory_retire(): a copy of its bytes */
};

uint8_t nth_byte(uint64_t tag, size_t i);

/* Makes memory of fragments of at most @longest bytes, a few of them empty; 0:
 * it is one fragment. */
struct memory memory_new(struct rig *g, size_t length, size_t longest);

/* Makes the memory inaccessible; memory_is() looks at a copy from then on. */
void memory_retire(struct rig *g, struct memory *m);
void memory_free(struct rig *g, struct memory *m);

/* A cursor that goes through all bytes of a memory. */
struct walk {
	unsigned int fragment;
	size_t begin;
};

/* Fills the memory with the pattern of @tag. */
void memory_fill(struct memory *m, uint64_t tag);

/* Returns whether @length bytes from @offset on are those of the pattern of
 * @tag from byte @from on. */
bool memory_is(const struct memory *m, size_t offset, size_t length,
	       uint64_t tag, size_t from);

/* Returns whether all guard bytes are unchanged. */
bool memory_guarded(const struct memory *m);

#endif
