/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums of the caller's segments: those of a source are compared with what
 * came, those of a sink are made from what is put. */
#include "rpc/bulk/transfer_priv.h"

#include <errno.h>

bool transfer_checkable(const struct transfer *x)
{
	struct place end = place_begin(&x->span);

	if (!x->r->checked || x->r->access != ULRPC_BULK_SOURCE)
		return true;
	place_move(&x->span, &end, x->span.length);
	return x->span.in_segment == 0 && end.in_segment == 0;
}

static void source_expect(struct transfer *x)
{
	struct place at;

	place_for_each_segment (at, &x->span)
		x->left[at.segment - x->span.segment] =
			place_room(&x->span, &at);
}

static void sink_sum(struct transfer *x)
{
	struct place at;

	place_for_each_segment (at, &x->span)
		if (at.in_segment == 0)
			x->crc[at.segment - x->span.segment] = place_crc(
				&x->span, at, place_room(&x->span, &at), 0);
}

void transfer_sum(struct transfer *x)
{
	if (x->left)
		source_expect(x);
	if (x->crc)
		sink_sum(x);
}

int transfer_sum_merge(struct transfer *x)
{
	struct remote *r = x->r;
	struct place at = place_begin(&x->span);

	if (at.in_segment && r->put[at.segment] != at.in_segment) {
		x->crc = NULL; /* nothing to forget, then */
		return -EINVAL;
	}
	place_for_each_segment (at, &x->span) {
		uint32_t *crc = &r->crc[at.segment];
		uint32_t room = place_room(&x->span, &at);

		*crc = at.in_segment ? place_crc(&x->span, at, room, *crc)
				     : x->crc[at.segment - x->span.segment];
		r->put[at.segment] = at.in_segment + room;
	}
	return 0;
}

void transfer_sum_forget(struct transfer *x)
{
	struct place at;

	if (!x->crc)
		return;
	place_for_each_segment (at, &x->span) {
		x->r->crc[at.segment] = 0;
		x->r->put[at.segment] = 0;
	}
}

int transfer_sum_check(struct transfer *x, const struct piece *p)
{
	unsigned int segment = p->at.segment;
	uint32_t length = x->r->lengths[segment];
	uint32_t *left = &x->left[segment - x->span.segment];
	struct place at = p->at;

	*left -= p->length;
	if (*left)
		return 0;
	if (p->length != length) {
		at = place_begin(&x->span);
		while (at.segment != segment)
			place_move(&x->span, &at, place_room(&x->span, &at));
	}
	return place_crc(&x->span, at, length, 0) == x->r->crc[segment]
		       ? 0
		       : -EBADMSG;
}
