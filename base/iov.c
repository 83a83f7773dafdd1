/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/iov.h"

#include <string.h>

/* A position in a list of fragments. */
struct iov_cursor {
	const struct iovec *iov;
	const struct iovec *end;
	size_t offset; /* bytes from the beginning of *iov */
};

static void cursor_advance(struct iov_cursor *c, size_t len)
{
	c->offset += len;
	while (c->iov != c->end && c->offset >= c->iov->iov_len) {
		c->offset -= c->iov->iov_len;
		c->iov++;
	}
}

static struct iov_cursor cursor_at(const struct iovec *iov, unsigned int niov,
				   size_t offset)
{
	struct iov_cursor c = { iov, iov + niov, 0 };

	cursor_advance(&c, offset);
	return c;
}

/* Returns the bytes at the cursor. *@left: how many bytes its fragment still
 * has from there. */
static char *cursor_bytes(const struct iov_cursor *c, size_t *left)
{
	BUG_ON(c->iov == c->end);
	*left = c->iov->iov_len - c->offset;
	return (char *)c->iov->iov_base + c->offset;
}

/* Do the @len bytes lie in the first fragment? Most copies are small and do.
 * Code for the others is not inlined, since it would make the short path save
 * registers. */
static inline bool is_in_first(const struct iovec *iov, unsigned int niov,
			       size_t offset, size_t len)
{
	return niov && offset < iov->iov_len && len <= iov->iov_len - offset;
}

/* Copies from @iov to @flat (@to_flat), or from @flat to @iov. */
static in_line void copy_flat(const struct iovec *iov, unsigned int niov,
			      size_t offset, char *flat, size_t len,
			      bool to_flat)
{
	const struct iovec *end = iov + niov;

	for (; len; iov++) {
		char *at;
		size_t n;

		BUG_ON(iov == end);
		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		at = (char *)iov->iov_base + offset;
		n = MIN(len, iov->iov_len - offset);
		memcpy(to_flat ? flat : at, to_flat ? at : flat, n);
		flat += n;
		len -= n;
		offset = 0;
	}
}

static out_of_line void gather_all(void *out, const struct iovec *iov,
				   unsigned int niov, size_t offset, size_t len)
{
	copy_flat(iov, niov, offset, out, len, true);
}

void iov_gather(void *out, const struct iovec *iov, unsigned int niov,
		size_t offset, size_t len)
{
	if (!len)
		return;
	if (likely(is_in_first(iov, niov, offset, len)))
		memcpy(out, (const char *)iov->iov_base + offset, len);
	else
		gather_all(out, iov, niov, offset, len);
}

static out_of_line void scatter_all(const struct iovec *iov, unsigned int niov,
				    size_t offset, const void *in, size_t len)
{
	copy_flat(iov, niov, offset, (char *)(uintptr_t)in, len, false);
}

void iov_scatter(const struct iovec *iov, unsigned int niov, size_t offset,
		 const void *in, size_t len)
{
	if (!len)
		return;
	if (likely(is_in_first(iov, niov, offset, len)))
		memcpy((char *)iov->iov_base + offset, in, len);
	else
		scatter_all(iov, niov, offset, in, len);
}

void iov_copy(const struct iovec *dst, unsigned int ndst, size_t dst_offset,
	      const struct iovec *src, unsigned int nsrc, size_t src_offset,
	      size_t len)
{
	struct iov_cursor d, s;

	if (!len)
		return;
	d = cursor_at(dst, ndst, dst_offset);
	s = cursor_at(src, nsrc, src_offset);
	while (len) {
		size_t dn, sn, n;
		char *to = cursor_bytes(&d, &dn);
		const char *from = cursor_bytes(&s, &sn);

		n = MIN(len, MIN(dn, sn));
		memcpy(to, from, n);
		cursor_advance(&d, n);
		cursor_advance(&s, n);
		len -= n;
	}
}

unsigned int iov_slice(struct iovec *out, const struct iovec *iov,
		       unsigned int niov, size_t offset, size_t len)
{
	struct iov_cursor c = cursor_at(iov, niov, offset);
	unsigned int n = 0;

	while (len) {
		size_t here;
		char *bytes = cursor_bytes(&c, &here);

		here = MIN(here, len);
		out[n++] = (struct iovec){ bytes, here };
		cursor_advance(&c, here);
		len -= here;
	}
	return n;
}
