/* SPDX-License-Identifier: BSD-3-Clause */
/* The seals of the caller's memory, at the server. A segment of a source is
 * opened as a whole, when all of it has come. A segment of a sink is sealed as
 * one piece, chunk by chunk, in the order of its bytes. */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/bulk/sealers.h"
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

/* ---- jobs of sealers ---- */

/* A job for a sealer: a segment that is opened, or a chunk that is a whole
 * segment and is sealed. Meanwhile the chunk is CHUNK_AWAY. */
struct chunk_job {
	struct seal_job job;
	struct chunk *p;
	struct cursor at;
	struct piece *piece;
	struct piece_seal seal;
	uint32_t crc; /* CRC32C of what was sealed */
	int rc;
	uint64_t since; /* ns: when the job was given */
};

static bool chunk_job_give(const struct chunk_job *like)
{
	struct shard *s = like->p->x->t->conf.shard;
	struct chunk_job *j = malloc(sizeof(*j));

	if (!j)
		return false;
	*j = *like;
	j->since = shard_now(s);
	if (sealers_give(s, &like->p->x->t->conf.peer.nid, &j->job))
		return true;
	free(j);
	return false;
}

/* ---- sources ---- */

/* Opens the @length bytes at @at in place. */
static int span_open(const struct span *s, struct cursor at, uint32_t length,
		     struct piece *p)
{
	while (length) {
		const struct iovec *v = &s->iov[at.fragment];
		uint32_t n = (uint32_t)MIN(v->iov_len - at.in_fragment, length);
		uint8_t *in = (uint8_t *)v->iov_base + at.in_fragment;

		if (piece_add(p, in, n, in)) {
			piece_drop(p);
			return -EBADMSG;
		}
		at.fragment++;
		at.in_fragment = 0;
		length -= n;
	}
	return piece_open_end(p);
}

static void chunk_job_open(struct seal_job *job)
{
	struct chunk_job *j = container_of(job, struct chunk_job, job);
	const struct transfer *x = j->p->x;

	j->rc = span_open(&x->span, j->at, x->r->lengths[j->at.segment],
			  j->piece);
}

static void chunk_job_opened(struct seal_job *job)
{
	struct chunk_job *j = container_of(job, struct chunk_job, job);

	chunk_on_away(j->p, j->rc, j->since);
	free(j);
}

int transfer_seal_check(struct transfer *x, struct chunk *p, struct cursor at)
{
	const struct remote *r = x->r;
	const struct piece_place place = place_of(r, at.segment);
	struct chunk_job j = { .job = { .run = chunk_job_open,
					.done = chunk_job_opened },
			       .p = p,
			       .at = at };
	int rc;

	piece_seal_get(seal_of(r, at.segment), &j.seal);
	rc = piece_open_begin(x->t->conf.opens, &place, &j.seal, &j.piece);
	if (rc)
		return rc;
	if (place.length >= SEALERS_PIECE && chunk_job_give(&j))
		return 1;
	return span_open(&x->span, at, place.length, j.piece);
}

/* If only a part of segments is wanted, takes memory for the rest of them, once
 * for the transfer. Returns false if there is none. */
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

/* Bytes that are sealed and then summed at a time, while they are in the
 * processor's cache. */
#define STEP (UINT32_C(16) << 10)

/* Seals the @length bytes at @at. With privacy the result is written to @out;
 * NULL: in place. Sets *@crc to the CRC32C of the result. */
static int span_seal(const struct span *s, struct cursor at, uint32_t length,
		     struct piece *p, uint8_t *out, uint32_t *crc)
{
	int rc = 0;

	*crc = 0;
	while (length && !rc) {
		const struct iovec *v = &s->iov[at.fragment];
		size_t here = v->iov_len - at.in_fragment;
		uint32_t n = (uint32_t)MIN(MIN(here, length), STEP);
		uint8_t *in = (uint8_t *)v->iov_base + at.in_fragment;

		rc = piece_add(p, in, n, out ? out : in);
		*crc = crc32c(*crc, out ? out : in, n);
		if (out)
			out += n;
		at.in_fragment = n == here ? 0 : at.in_fragment + n;
		at.fragment += n == here;
		length -= n;
	}
	return rc;
}

static void chunk_job_seal(struct seal_job *job)
{
	struct chunk_job *j = container_of(job, struct chunk_job, job);
	const struct chunk *p = j->p;

	j->rc = span_seal(&p->x->span, p->at, p->length, j->piece,
			  p->sealed.bytes, &j->crc);
	if (j->rc)
		piece_drop(j->piece);
	else
		j->rc = piece_seal_end(j->piece, j->seal.tag);
}

static void chunk_job_sealed(struct seal_job *job)
{
	struct chunk_job *j = container_of(job, struct chunk_job, job);
	uint8_t *seal = seal_of(j->p->x->r, j->at.segment);
	struct piece_seal now;

	/* The seal may be of another transfer by now, which has put something
	 * else to the segment since. */
	piece_seal_get(seal, &now);
	if (!j->rc && now.counter == j->seal.counter &&
	    now.epoch == j->seal.epoch)
		piece_seal_put(&j->seal, seal);
	j->p->crc = j->crc;
	chunk_on_away(j->p, j->rc, j->since);
	free(j);
}

/* Gives @p, whose piece has begun, to a sealer. Returns false if @p is not a
 * whole, large segment, or if there is no sealer or memory. */
static bool seal_elsewhere(struct chunk *p)
{
	struct remote *r = p->x->r;
	unsigned int i = p->at.segment;
	struct chunk_job j = { .job = { .run = chunk_job_seal,
					.done = chunk_job_sealed },
			       .p = p,
			       .at = p->at,
			       .piece = r->open[i] };

	if (p->length != r->lengths[i] || p->length < SEALERS_PIECE)
		return false;
	piece_seal_get(seal_of(r, i), &j.seal);
	if (!chunk_job_give(&j))
		return false;
	r->open[i] = NULL;
	return true;
}

uint64_t transfer_seal_pause(struct transfer *x)
{
	struct shard *s = x->t->conf.shard;

	if (!x->r->protection)
		return 0;
	if (x->r->access == ULRPC_BULK_SOURCE)
		return rest_take(x) ? 0 : SEAL_PAUSE;
	return bulk_may_seal(s->bulk_pool, shard_now(s)) ? 0 : SEAL_NEXT_TURN;
}

/* Sets *@piece_p to the piece of the segment of @p. The first chunk begins the
 * piece. */
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
	/* transfer_sum_forget() of an earlier transfer may have dropped the
	 * piece. */
	return *piece_p ? 0 : -ESTALE;
}

/* Ends the piece of a segment, if it has not ended yet. Returns 0 or -EIO. */
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
	if (!rc && seal_elsewhere(p))
		return 1;
	if (!rc)
		rc = span_seal(&x->span, p->at, p->length, piece,
			       p->sealed.bytes, &p->crc);
	if (!rc && p->at.in_segment + p->length == r->lengths[p->at.segment])
		rc = segment_end(r, p->at.segment);
	if (rc) {
		bulk_room_give(s, &p->sealed);
		return rc;
	}
	bulk_sealed(s->bulk_pool, shard_now(s), p->length);
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
