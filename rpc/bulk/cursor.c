/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/bulk/cursor.h"

#include <errno.h>

#include "base/crc32c.h"
#include "ulnet/rpc.h"

int iov_total(const struct iovec *iov, unsigned int niov, int too_long,
	      uint64_t *length_p)
{
	uint64_t length = 0;

	if (niov && !iov)
		return -EINVAL;
	for (unsigned int i = 0; i < niov; i++) {
		if (iov[i].iov_len && !iov[i].iov_base)
			return -EINVAL;
		if (iov[i].iov_len > ULRPC_BULK_MAX - length)
			return too_long;
		length += iov[i].iov_len;
	}
	*length_p = length;
	return 0;
}

void cursor_move(const struct span *s, struct cursor *at, uint64_t length)
{
	uint64_t n = length;

	at->offset += length;
	while (at->segment < s->nsegments &&
	       n >= s->lengths[at->segment] - at->in_segment) {
		n -= s->lengths[at->segment] - at->in_segment;
		at->segment++;
		at->in_segment = 0;
	}
	at->in_segment += (uint32_t)n;
	n = length;
	while (at->fragment < s->niov &&
	       n >= s->iov[at->fragment].iov_len - at->in_fragment) {
		n -= s->iov[at->fragment].iov_len - at->in_fragment;
		at->fragment++;
		at->in_fragment = 0;
	}
	at->in_fragment += n;
}

unsigned int cursor_slice(const struct span *s, const struct cursor *at,
			  uint64_t length, struct iovec *out, unsigned int max,
			  uint32_t *length_p)
{
	size_t skip = at->in_fragment;
	unsigned int n = 0;
	uint64_t sum = 0;

	while (n < max && sum < length) {
		const struct iovec *v = &s->iov[at->fragment + n];
		size_t here = MIN(v->iov_len - skip, length - sum);

		out[n++] = (struct iovec){ (char *)v->iov_base + skip, here };
		sum += here;
		skip = 0;
	}
	*length_p = (uint32_t)sum;
	return n;
}

uint32_t cursor_crc(const struct span *s, struct cursor at, uint32_t length,
		    uint32_t crc)
{
	while (length) {
		const struct iovec *v = &s->iov[at.fragment];
		uint32_t n = (uint32_t)MIN(v->iov_len - at.in_fragment, length);

		crc = crc32c(crc, (char *)v->iov_base + at.in_fragment, n);
		at.fragment++;
		at.in_fragment = 0;
		length -= n;
	}
	return crc;
}
