/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/iov.h"

#include <string.h>

/* A place in a list: the rest of a fragment. */
struct place {
	const struct iovec *iov;
	const struct iovec *end;
	size_t offset; /* in *iov */
};

static struct place place_at(const struct iovec *iov, unsigned int niov,
			     size_t offset)
{
	struct place p = { iov, iov + niov, offset };

	while (p.iov != p.end && p.offset >= p.iov->iov_len) {
		p.offset -= p.iov->iov_len;
		p.iov++;
	}
	return p;
}

static char *place_bytes(const struct place *p, size_t *left)
{
	BUG_ON(p->iov == p->end);
	*left = p->iov->iov_len - p->offset;
	return (char *)p->iov->iov_base + p->offset;
}

static void place_step(struct place *p, size_t len)
{
	p->offset += len;
	while (p->iov != p->end && p->offset >= p->iov->iov_len) {
		p->offset -= p->iov->iov_len;
		p->iov++;
	}
}

/* Most of what is copied is small, and in the first fragment. What has to look
 * further is not inlined: it would save its registers each time. */

static inline bool is_in_first(const struct iovec *iov, unsigned int niov,
			       size_t offset, size_t len)
{
	return niov && offset < iov->iov_len && len <= iov->iov_len - offset;
}

static out_of_line void gather_all(void *out, const struct iovec *iov,
				   unsigned int niov, size_t offset, size_t len)
{
	const struct iovec *end = iov + niov;
	char *to = out;

	for (; len; iov++) {
		size_t n;

		BUG_ON(iov == end);
		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		n = MIN(len, iov->iov_len - offset);
		memcpy(to, (const char *)iov->iov_base + offset, n);
		to += n;
		len -= n;
		offset = 0;
	}
}

void iov_gather(void *out, const struct iovec *iov, unsigned int niov,
		size_t offset, size_t len)
{
	if (!len)
		return; /* the list may be NULL */
	if (likely(is_in_first(iov, niov, offset, len)))
		memcpy(out, (const char *)iov->iov_base + offset, len);
	else
		gather_all(out, iov, niov, offset, len);
}

static out_of_line void scatter_all(const struct iovec *iov, unsigned int niov,
				    size_t offset, const void *in, size_t len)
{
	const struct iovec *end = iov + niov;
	const char *from = in;

	for (; len; iov++) {
		size_t n;

		BUG_ON(iov == end);
		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		n = MIN(len, iov->iov_len - offset);
		memcpy((char *)iov->iov_base + offset, from, n);
		from += n;
		len -= n;
		offset = 0;
	}
}

void iov_scatter(const struct iovec *iov, unsigned int niov, size_t offset,
		 const void *in, size_t len)
{
	if (!len)
		return; /* the list may be NULL */
	if (likely(is_in_first(iov, niov, offset, len)))
		memcpy((char *)iov->iov_base + offset, in, len);
	else
		scatter_all(iov, niov, offset, in, len);
}

void iov_copy(const struct iovec *dst, unsigned int ndst, size_t dst_offset,
	      const struct iovec *src, unsigned int nsrc, size_t src_offset,
	      size_t len)
{
	struct place d, s;

	/* Without bytes there may be no lists either. */
	if (!len)
		return;
	d = place_at(dst, ndst, dst_offset);
	s = place_at(src, nsrc, src_offset);
	while (len) {
		size_t dn, sn, n;
		char *to = place_bytes(&d, &dn);
		const char *from = place_bytes(&s, &sn);

		n = MIN(len, MIN(dn, sn));
		memcpy(to, from, n);
		place_step(&d, n);
		place_step(&s, n);
		len -= n;
	}
}

unsigned int iov_slice(struct iovec *out, const struct iovec *iov,
		       unsigned int niov, size_t offset, size_t len)
{
	struct place p = place_at(iov, niov, offset);
	unsigned int n = 0;

	while (len) {
		size_t here;
		char *bytes = place_bytes(&p, &here);

		here = MIN(here, len);
		out[n++] = (struct iovec){ bytes, here };
		place_step(&p, here);
		len -= here;
	}
	return n;
}
