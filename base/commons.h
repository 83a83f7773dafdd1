/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that other processes can be given to read: a commons, in a memfd that
 * nobody else can write, shrink or grow, and blocks in it. Knows memory;
 * nothing of LNet.
 *
 * The commons is made by the first allocation, as large as it may become; the
 * system gives it pages as they are written. What was written once stays with
 * the process until the commons ends, and is used again: pages of memory that
 * is sealed against writing cannot be given back one by one.
 *
 * A block may be lent (commons_hold()) to somebody who reads it without asking
 * again. If it is freed meanwhile, it is used for something else only after it
 * has been returned.
 *
 * The other side has a view: the same memory, mapped to be read. The owner may
 * change the memory at any time, but cannot make reading it fail (SIGBUS).
 *
 * A page that nobody has written would be made by the first access to a
 * mapping, and would count as the memory of who reads it for as long as
 * anybody keeps the commons. So a view looks whether a page is there
 * (mincore(2)) before it is touched, and has the system read what is not
 * (preadv(2)), which makes none. A page that was there stays, since the
 * commons is sealed. Of a commons of another user the system does not tell
 * what is there: it is not mapped, and all of it read by the system.
 *
 * Thread: any, for a commons; one at a time, for a view. A child of fork() has
 * neither the memory nor the descriptor, only what ends its copy.
 */
#ifndef BASE_COMMONS_H
#define BASE_COMMONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include "base/util.h"

/* Blocks begin at multiples of it, and are as long. */
#define COMMONS_UNIT 4096u
#define COMMONS_MAX  (UINT64_C(1) << 43)
/* Most fragments of what is read at once. */
#define COMMONS_IOV 256u
/* Bins of free blocks: those of bin i have 2^i units or more. */
#define COMMONS_BINS 32

struct commons_unit;

struct commons {
	pthread_mutex_t lock; /* of what follows, but for max and base */
	uint64_t max;	      /* bytes; never changes */
	int fd;
	unsigned int generation; /* fork_generation() of who has made it */
	struct commons_unit *units;
	uint32_t bins[COMMONS_BINS]; /* the first free block; NONE: none */
	uint32_t nunits;
	/* where it is mapped; NULL: not made yet */
	_Atomic(uint8_t *) base;
};

/* @max: bytes that may be allocated, at most COMMONS_MAX. */
void commons_init(struct commons *a, uint64_t max);
static inline uint64_t commons_max(const struct commons *a)
{
	return a->max;
}
/* Frees all blocks: none is lent. In a child of who has made the commons, what
 * is in the place of its memory and descriptor stays. */
void commons_fini(struct commons *a);

/* Allocates a block of @length bytes. Returns 0; -EINVAL: @length is 0;
 * -ENOSPC: no such block is free; -ENOMEM; -EOPNOTSUPP: the system cannot make
 * such memory; -ESHUTDOWN: a parent has made the commons; or -errno. */
int commons_alloc(struct commons *a, size_t length, void **p) must_check;
/* Frees the block that begins at @p. -EINVAL: there is none; -ESHUTDOWN: a
 * parent has made the commons. */
int commons_free(struct commons *a, void *p) must_check;

/* ---- lending ---- */

/* If [@p, @p + @length) lies in one block, that is lent once more: returns a
 * number for commons_release(), and sets *@offset to where @p is in the
 * commons. Returns 0: it does not. No lock is taken. */
uint32_t commons_hold(struct commons *a, const void *p, size_t length,
		      uint64_t *offset);
void commons_release(struct commons *a, uint32_t block);
/* The memfd, for views of other processes. There is a commons. */
int commons_fd(const struct commons *a);

/* ---- views ---- */

/* All zero: closed. */
struct commons_view {
	uint64_t size;
	int fd;
	const uint8_t *map; /* NULL: not mapped */
	/* If it is mapped: a bit for each page, set if it is known to be there.
	 */
	uint8_t *there;
};

/* Returns the size of the commons @fd; -EPROTO: it is none, whoever has made
 * it; or -errno. */
int64_t commons_view_size(int fd);
/* Opens a view of the commons @fd, of which commons_view_size() has returned
 * @size. Takes @fd, which fork_fd_made() has returned. */
void commons_view_open(struct commons_view *v, int fd, uint64_t size);
/* Maps it, so that reading it costs less. Takes a bit of memory for each page.
 * Returns 0; -EPERM: it could not be seen what is there; or -errno: it can be
 * read, nevertheless. */
int commons_view_map(struct commons_view *v) must_check;
/* Copies what is in the view from @offset on, @length bytes, to @to from
 * @to_offset on; there are @nto, at most COMMONS_IOV. Returns 0; or -errno: the
 * system could not read it, and @to may be written. */
int commons_view_read(struct commons_view *v, uint64_t offset, size_t length,
		      const struct iovec *to, unsigned int nto,
		      size_t to_offset) must_check;
/* No effect on a view that is closed. */
void commons_view_close(struct commons_view *v);
static inline bool commons_view_has(const struct commons_view *v,
				    uint64_t offset, uint64_t length)
{
	return offset <= v->size && length <= v->size - offset;
}

#endif
