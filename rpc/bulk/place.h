/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A range of bytes that lies in two memories, each cut in its own way: the
 * segments of a caller, of which only the lengths are known, and fragments
 * here. Pure: any thread.
 */
#ifndef RPC_PLACE_H
#define RPC_PLACE_H

#include <sys/uio.h>
#include "base/util.h"

struct span {
	uint64_t length;
	const uint32_t *lengths; /* of the segments; none is 0 */
	unsigned int nsegments;
	unsigned int segment; /* where it begins */
	uint32_t in_segment;
	unsigned int niov;
	struct iovec *iov; /* as long as it; no fragment is empty */
};

struct place {
	uint64_t offset; /* from the beginning of the span */
	unsigned int segment;
	uint32_t in_segment;
	unsigned int fragment;
	size_t in_fragment;
};

static inline struct place place_begin(const struct span *s)
{
	return (struct place){ .segment = s->segment,
			       .in_segment = s->in_segment };
}

/* How much of the span is in the segment where @at is, from there. */
static inline uint32_t place_room(const struct span *s, const struct place *at)
{
	return (uint32_t)MIN(s->lengths[at->segment] - at->in_segment,
			     s->length - at->offset);
}

/* Goes @length bytes on, at most to the end. */
void place_move(const struct span *s, struct place *at, uint64_t length);
/* The fragments of the @length bytes at @at, in @out, which has room for @max;
 * returns how many, and in *@length_p the bytes in these. */
unsigned int place_slice(const struct span *s, const struct place *at,
			 uint64_t length, struct iovec *out, unsigned int max,
			 uint32_t *length_p);
/* CRC32C of the @length bytes at @at; @crc: of what comes before them. */
uint32_t place_crc(const struct span *s, struct place at, uint32_t length,
		   uint32_t crc);

/* Bytes in all of @iov. -EINVAL: there is no such memory; @too_long: more than
 * ULRPC_BULK_MAX. */
int place_iov_length(const struct iovec *iov, unsigned int niov, int too_long,
		     uint64_t *length_p) must_check;

/* Goes over a span by segments. */
#define place_for_each_segment(at, s)                        \
	for (at = place_begin(s); (at).offset < (s)->length; \
	     place_move(s, &(at), place_room(s, &(at))))

#endif
