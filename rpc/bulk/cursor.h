/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans, which are the same bytes in two memories: in the segments of a caller,
 * of which only the lengths are known, and in fragments of this process; and
 * cursors, which are positions in a span. Pure functions: any thread.
 */
#ifndef RPC_CURSOR_H
#define RPC_CURSOR_H

#include <sys/uio.h>
#include "base/util.h"

struct span {
	uint64_t length;
	const uint32_t *lengths; /* of the segments; none is 0 */
	unsigned int nsegments;
	unsigned int segment; /* where the span begins, */
	uint32_t in_segment;  /* at this offset */
	unsigned int niov;
	struct iovec *iov; /* @length bytes; no fragment is empty */
};

struct cursor {
	uint64_t offset; /* from the beginning of the span */
	unsigned int segment;
	uint32_t in_segment;
	unsigned int fragment;
	size_t in_fragment;
};

static inline struct cursor cursor_begin(const struct span *s)
{
	return (struct cursor){ .segment = s->segment,
				.in_segment = s->in_segment };
}

/* Bytes of the span from @at to the end of @at's segment. */
static inline uint32_t cursor_room(const struct span *s,
				   const struct cursor *at)
{
	return (uint32_t)MIN(s->lengths[at->segment] - at->in_segment,
			     s->length - at->offset);
}

/* Goes @length bytes on, at most to the end. */
void cursor_move(const struct span *s, struct cursor *at, uint64_t length);
/* Fills @out with up to @max fragments of the @length bytes at @at; returns
 * their number, and in *@length_p their bytes. */
unsigned int cursor_slice(const struct span *s, const struct cursor *at,
			  uint64_t length, struct iovec *out, unsigned int max,
			  uint32_t *length_p);
/* CRC32C of the @length bytes at @at; @crc: of the bytes before these. */
uint32_t cursor_crc(const struct span *s, struct cursor at, uint32_t length,
		    uint32_t crc);

/* Sets *@length_p to the bytes of all @iov. -EINVAL: a pointer is NULL;
 * @too_long: more than ULRPC_BULK_MAX. */
int iov_total(const struct iovec *iov, unsigned int niov, int too_long,
	      uint64_t *length_p) must_check;

/* Goes over a span segment by segment. */
#define cursor_for_each_segment(at, s)                        \
	for (at = cursor_begin(s); (at).offset < (s)->length; \
	     cursor_move(s, &(at), cursor_room(s, &(at))))

#endif
