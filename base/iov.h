/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying between lists of fragments. Ranges must lie within the lists; with a
 * length of 0 a list may be NULL. */
#ifndef BASE_IOV_H
#define BASE_IOV_H

#include <sys/uio.h>
#include "base/util.h"

/* A range of addresses; end is exclusive. */
struct span {
	uintptr_t start, end;
};

/* iov_gather() copies @len bytes, from @offset in @iov, to @out; iov_scatter()
 * copies them from @in to @offset in @iov. */
void iov_gather(void *out, const struct iovec *iov, unsigned int niov,
		size_t offset, size_t len);
void iov_scatter(const struct iovec *iov, unsigned int niov, size_t offset,
		 const void *in, size_t len);
/* Copies from one list to another. */
void iov_copy(const struct iovec *dst, unsigned int ndst, size_t dst_offset,
	      const struct iovec *src, unsigned int nsrc, size_t src_offset,
	      size_t len);

/* Writes to @out, which has room for @niov, the fragments that hold the @len
 * bytes from @offset; returns their number. */
unsigned int iov_slice(struct iovec *out, const struct iovec *iov,
		       unsigned int niov, size_t offset, size_t len);

#endif
