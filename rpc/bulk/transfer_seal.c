/* SPDX-License-Identifier: BSD-3-Clause */
/* The seals of the caller's memory, at the server: those of sources are checked
 * when all of a segment has come; a sink's segment is sealed chunk by chunk, in
 * the order of its bytes, as one piece. */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/bulk/transfer_priv.h"

static struct piece_place place_of(const struct remote *r, unsigned int segment)
{
	return (struct piece_place){ r->protection, r->index, segment,
				     r->lengths[segment] };
}

static uint8_t *seal_of(const struct remote *r, unsigned int segment)
{
	return r->seals + segment * (size_t)PIECE_SEAL;
}

/* Goes on with the @length bytes at @at. With privacy they are written to @out;
 * NULL: where they are. */
static int span_add(const struct span *s, struct cursor at, uint32_t length,
		    struct piece *p, uint8_t *out)
{
	int rc = 0;

	while (length && !rc) {
		const struct iovec *v = &s->iov[at.fragment];
		uint32_t n = (uint32_t)MIN(v->iov_len - at.in_fragment, length);
		uint8_t *in = (uint8_t *)v->iov_base + at.in_fragment;

		rc = piece_add(p, in, n, out ? out : in);
		if (out)
			out += n;
		at.fragment++;
		at.in_fragment = 0;
		length -= n;
	}
	return rc;
}

/* ---- sources ---- */

int transfer_seal_check(struct transfer *x, struct cursor at)
{
	const struct remote *r = x->r;
	const struct piece_place place = place_of(r, at.segment);
	struct piece_seal seal;
	struct piece *p;
	int rc;

	piece_seal_get(seal_of(r, at.segment), &seal);
	rc = piece_open_begin(x->t->conf.opens, &place, &seal, &p);
	if (rc)
		return rc;
	if (span_add(&x->span, at, place.length, p, NULL)) {
		piece_drop(p);
		return -EBADMSG;
	}
	return piece_open_end(p);
}

/* Takes the memory for the rest of segments of which a part is wanted: once for
 * the transfer. */
static bool rest_take(struct transfer *x)
{
	struct span *s = &x->span;

	if (likely(!(x->skip | x->after)) || x->rest.bytes)
		return true;
	if (!bulk_room_take(x->t->conf.shard, &x->t->conf.peer.nid,
			    x->skip + x->after, &x->rest))
		return false;
	if (x->skip)
		s->iov[0].iov_base = x->rest.bytes;
	if (x->after)
		s->iov[s->niov - 1].iov_base =
			(uint8_t *)x->rest.bytes + x->skip;
	return true;
}

/* ---- sinks ---- */

uint64_t transfer_seal_pause(struct transfer *x)
{
	struct shard *s = x->t->conf.shard;

	if (!x->r->protection)
		return 0;
	if (x->r->access == ULRPC_BULK_SOURCE)
		return rest_take(x) ? 0 : SEAL_PAUSE;
	return bulk_may_seal(s->bulk_pool, shard_now(s)) ? 0 : SEAL_NEXT;
}

/* The piece that the segment of @p is. The first chunk begins it. */
static int segment_piece(struct transfer *x, const struct chunk *p,
			 struct piece **piece_p)
{
	struct remote *r = x->r;
	unsigned int i = p->at.segment;
	const struct piece_place place = place_of(r, i);
	struct piece_seal seal;
	int rc;

	if (p->at.in_segment == 0) {
		piece_drop(r->open[i]);
		r->open[i] = NULL;
		rc = piece_seal_begin(x->t->conf.seals, &place,
				      shard_now(x->t->conf.shard), &seal,
				      &r->open[i]);
		if (rc)
			return rc;
		piece_seal_put(&seal, seal_of(r, i));
	}
	*piece_p = r->open[i];
	/* transfer_sum_forget() of an earlier transfer may have come between.
	 */
	return *piece_p ? 0 : -ESTALE;
}

/* Ends the piece of a segment, if it is not ended yet. */
static int segment_end(struct remote *r, unsigned int i)
{
	struct piece *p = r->open[i];

	r->open[i] = NULL;
	return p ? piece_seal_end(p, seal_of(r, i)) : 0;
}

int transfer_seal_chunk(struct transfer *x, struct chunk *p)
{
	struct shard *s = x->t->conf.shard;
	struct remote *r = x->r;
	struct piece *piece;
	int rc;

	if (r->protection == SEAL_PRIVACY &&
	    !bulk_room_take(s, &x->t->conf.peer.nid, p->length, &p->sealed))
		return -ENOBUFS;
	rc = segment_piece(x, p, &piece);
	if (!rc)
		rc = span_add(&x->span, p->at, p->length, piece,
			      p->sealed.bytes);
	if (!rc && p->at.in_segment + p->length == r->lengths[p->at.segment])
		rc = segment_end(r, p->at.segment);
	if (rc) {
		bulk_room_give(s, &p->sealed);
		return rc;
	}
	bulk_sealed(s->bulk_pool, shard_now(s), p->length);
	p->crc = p->sealed.bytes ? crc32c(0, p->sealed.bytes, p->length)
				 : cursor_crc(&x->span, p->at, p->length, 0);
	return 0;
}

uint64_t transfer_seal_proof(const struct chunk *p, uint64_t match)
{
	uint32_t crc = bulk_place_crc(match, p->at.in_segment, p->length);

	return crc32c_join(crc, p->crc, p->length);
}

bool remote_seal_end(struct remote *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (segment_end(r, i))
			return false;
	return true;
}

void remote_seal_forget(struct remote *r, unsigned int segment)
{
	if (!r->open)
		return;
	piece_drop(r->open[segment]);
	r->open[segment] = NULL;
}

void remote_seal_fini(struct remote *r)
{
	for (unsigned int i = 0; r->open && i < r->n; i++)
		piece_drop(r->open[i]);
	free(r->open);
	free(r->seals);
}

int remote_seal_init(struct remote *r, const struct wire_segments_in *s,
		     unsigned int index)
{
	bool source = r->access == ULRPC_BULK_SOURCE;

	r->protection = (enum seal_protection)s->protection;
	r->index = index;
	if (!r->protection || !r->n)
		return 0;
	if (source && !view_length(s->seals))
		return -EPROTO;
	r->seals = calloc(r->n, PIECE_SEAL);
	r->open = source ? NULL : calloc(r->n, sizeof(*r->open));
	if (!r->seals || (!source && !r->open))
		return -ENOMEM;
	if (source)
		memcpy(r->seals, s->seals.p, view_length(s->seals));
	return 0;
}

void remote_seal_refresh(struct remote *r, const struct wire_segments_in *s)
{
	if (r->seals && r->access == ULRPC_BULK_SOURCE && view_length(s->seals))
		memcpy(r->seals, s->seals.p, view_length(s->seals));
}
