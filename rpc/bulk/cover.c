/* SPDX-License-Identifier: BSD-3-Clause */
/* The seals of the memory that a caller lends: sources are sealed before they
 * are offered; sinks are opened when the server has replied, and no message can
 * find them any more. */
#include <errno.h>
#include <string.h>

#include "rpc/bulk/bulk_priv.h"
#include "rpc/bulk/seal.h"
#include "rpc/bulk/sealers.h"

struct cover {
	struct shard *shard;
	struct piece_key *key;
	enum seal_protection protection;
	uint32_t index;
	/* Source: how many segments are sealed. Sink: how many segments are
	 * opened, of those @taken to which the server has put something.
	 * Segments that sealers work on count, too: as long as there are any,
	 * the bulk is not idle. */
	unsigned int done, taken;
	int failed;	/* 0, or why a segment has failed: a negative errno */
	uint32_t *put;	/* of a sink: bytes of each segment that were put */
	uint8_t *seals; /* PIECE_SEAL bytes for each segment */
	union {
		/* of a source with privacy: the encrypted form of each segment;
		 * NULL: none yet */
		void **sealed;
		/* Of a sink: for each of the segments @taken, the key that
		 * opens it; NULL: nothing was put to it. The client may connect
		 * again, any number of times, before the sink is idle. */
		struct piece_key **opens;
	};
};

/* ---- life ---- */

static struct cover *cover_new(const struct ulrpc_bulk *b)
{
	struct cover *c =
		calloc(1, sizeof(*c) + b->n * (sizeof(*c->sealed) +
					       sizeof(*c->put) + PIECE_SEAL));

	if (!c)
		return NULL;
	c->sealed = (void **)(c + 1);
	c->put = (uint32_t *)(c->sealed + b->n);
	c->seals = (uint8_t *)(c->put + b->n);
	return c;
}

/* Drops the seals of a sink that were taken, and their keys. */
static void cover_untake(struct cover *c)
{
	while (c->taken) {
		struct piece_key **key = &c->opens[--c->taken];

		piece_key_put(*key);
		*key = NULL;
	}
}

/* Frees the encrypted form of a source. */
static void cover_unseal(const struct ulrpc_bulk *b, struct cover *c)
{
	for (unsigned int i = 0; i < b->n; i++) {
		if (c->sealed[i])
			slab_put(&c->shard->bulk_pool->slab, c->sealed[i],
				 b->lengths[i]);
		c->sealed[i] = NULL;
	}
}

static void cover_clear(const struct ulrpc_bulk *b, struct cover *c)
{
	if (b->access == ULRPC_BULK_SINK)
		cover_untake(c);
	else
		cover_unseal(b, c);
	piece_key_put(c->key);
	c->key = NULL;
	c->done = c->taken = 0;
	c->failed = 0;
}

void bulk_uncover(struct ulrpc_bulk *b)
{
	if (likely(!b->cover))
		return;
	cover_clear(b, b->cover);
	free(b->cover);
	b->cover = NULL;
}

void *cover_of(const struct ulrpc_bulk *b, unsigned int i)
{
	return b->access == ULRPC_BULK_SOURCE ? b->cover->sealed[i] : NULL;
}

void cover_describe(const struct ulrpc_bulk *b, struct wire_segments *out)
{
	const struct cover *c = b->cover;

	out->checked = false;
	out->checksum = NULL;
	out->protection = c->protection;
	if (b->access == ULRPC_BULK_SOURCE)
		out->seals = (struct wire_view){
			c->seals, c->seals + b->n * (size_t)PIECE_SEAL
		};
}

/* ---- segments ---- */

static struct piece_place place_of(const struct ulrpc_bulk *b, unsigned int i)
{
	return (struct piece_place){ b->cover->protection, b->cover->index, i,
				     b->lengths[i] };
}

/* Seals or opens the first @length bytes of segment @i. With privacy the result
 * is written to @out; NULL: in place. */
static int segment_add(const struct ulrpc_bulk *b, unsigned int i,
		       uint32_t length, struct piece *p, uint8_t *out)
{
	int rc = 0;

	for (const struct iovec *v = b->segments[i].iov; length && !rc; v++) {
		uint32_t n = (uint32_t)MIN(v->iov_len, length);

		rc = piece_add(p, v->iov_base, n, out ? out : v->iov_base);
		if (out)
			out += n;
		length -= n;
	}
	return rc;
}

/* A segment that is sealed or opened, by a sealer or by this thread. */
struct cover_job {
	struct seal_job job;
	struct ulrpc_bulk *b;
	unsigned int i;
	uint32_t length;
	struct piece *piece;
	struct piece_seal seal;
	int rc;
};

static void cover_job_seal(struct seal_job *job)
{
	struct cover_job *j = container_of(job, struct cover_job, job);

	j->rc = segment_add(j->b, j->i, j->length, j->piece,
			    j->b->cover->sealed[j->i]);
	if (j->rc)
		piece_drop(j->piece);
	else
		j->rc = piece_seal_end(j->piece, j->seal.tag);
}

/* What opens a segment in place. */
static void cover_job_open(struct seal_job *job)
{
	struct cover_job *j = container_of(job, struct cover_job, job);

	j->rc = -EBADMSG;
	if (segment_add(j->b, j->i, j->length, j->piece, NULL))
		piece_drop(j->piece);
	else
		j->rc = piece_open_end(j->piece);
}

static void cover_job_end(const struct cover_job *j)
{
	struct cover *c = j->b->cover;

	if (j->rc)
		c->failed = j->rc;
	else if (j->b->access == ULRPC_BULK_SOURCE)
		piece_seal_put(&j->seal, c->seals + j->i * (size_t)PIECE_SEAL);
}

static void cover_job_done(struct seal_job *job)
{
	struct cover_job *j = container_of(job, struct cover_job, job);

	cover_job_end(j);
	bulk_unuse(j->b);
	free(j);
}

/* Gives a copy of the job @like to the sealers, and adds its bytes to *@away,
 * which counts the bytes that sealers have got in this turn. Returns false if
 * the job is too small, if *@away is SEALERS_ROUND or more, or if there is no
 * sealer or no memory. */
static bool cover_job_give(const struct cover_job *like, uint64_t *away)
{
	struct ulrpc_bulk *b = like->b;
	struct cover_job *j;

	if (like->length < SEALERS_PIECE || *away >= SEALERS_ROUND)
		return false;
	j = malloc(sizeof(*j));
	if (!j)
		return false;
	*j = *like;
	j->job.done = cover_job_done;
	if (!sealers_give(b->cover->shard, NULL, &j->job)) {
		free(j);
		return false;
	}
	bulk_use(b);
	*away += j->length;
	return true;
}

/* What bulk_cover() or bulk_open() does in a turn. */
struct cover_slice {
	uint64_t *left; /* bytes that this thread may still seal or open */
	uint64_t away;	/* bytes that were given to sealers */
};

static bool slice_is_over(const struct cover_slice *s)
{
	return !*s->left || s->away >= SEALERS_ROUND;
}

static void cover_job_start(struct cover_job *j, struct cover_slice *s)
{
	if (cover_job_give(j, &s->away))
		return;
	j->job.run(&j->job);
	cover_job_end(j);
	*s->left -= MIN(*s->left, j->length);
}

/* ---- sources ---- */

static int segment_seal(struct ulrpc_bulk *b, unsigned int i,
			struct cover_slice *s)
{
	struct cover *c = b->cover;
	const struct piece_place place = place_of(b, i);
	struct cover_job j = { .job.run = cover_job_seal,
			       .b = b,
			       .i = i,
			       .length = b->lengths[i] };
	int rc;

	if (c->protection == SEAL_PRIVACY && !c->sealed[i]) {
		c->sealed[i] =
			slab_get(&c->shard->bulk_pool->slab, b->lengths[i]);
		if (!c->sealed[i])
			return -ENOMEM;
	}
	rc = piece_seal_begin(c->key, &place, shard_now(c->shard), &j.seal,
			      &j.piece);
	if (!rc)
		cover_job_start(&j, s);
	return rc;
}

/* Gives @b a cover as @how says, in which no seal is made yet. */
static int cover_begin(struct ulrpc_bulk *b, struct shard *s,
		       const struct bulk_cover *how)
{
	struct cover *c = b->cover ? b->cover : cover_new(b);

	if (!c)
		return -ENOMEM;
	if (b->cover)
		cover_clear(b, c);
	b->cover = c;
	c->shard = s;
	c->key = piece_key_ref(how->key);
	c->protection = (enum seal_protection)how->protection;
	c->index = how->index;
	return 0;
}

static bool cover_is(const struct cover *c, const struct bulk_cover *how)
{
	return c && c->key == how->key && c->protection == how->protection &&
	       c->index == how->index;
}

int bulk_cover(struct ulrpc_bulk *b, struct shard *s,
	       const struct bulk_cover *how, uint64_t *left)
{
	struct cover_slice slice = { .left = left };
	struct cover *c;
	int rc;

	if (!how->protection) {
		bulk_uncover(b);
		return 1;
	}
	if (!cover_is(b->cover, how)) {
		rc = cover_begin(b, s, how);
		if (rc)
			return rc;
	}
	c = b->cover;
	if (b->access == ULRPC_BULK_SINK)
		return 1;
	b->shard = s;
	while (c->done < b->n && !c->failed && !slice_is_over(&slice)) {
		rc = segment_seal(b, c->done, &slice);
		if (rc)
			return rc;
		c->done++;
	}
	if (!c->failed || !bulk_idle(b))
		return c->done == b->n && bulk_idle(b);
	rc = c->failed;
	bulk_uncover(b);
	return rc;
}

/* ---- sinks ---- */

bool cover_is_damaged(const struct ulnet_event *ev)
{
	uint32_t crc = bulk_place_crc(ev->match_bits, (uint32_t)ev->offset,
				      ev->mlength);

	return !ev->status &&
	       ev->hdr_data != bulk_proof(bulk_crc_of_put(ev, crc));
}

/* Takes a reference of the key for each of the first @n segments to which
 * something was put. Returns false if there is none of an epoch. */
static bool keys_take(struct cover *c, unsigned int n,
		      const struct bulk_keys *keys)
{
	for (; c->taken < n; c->taken++) {
		unsigned int i = c->taken;
		struct piece_seal seal;
		struct piece_key *key;

		if (!c->put[i])
			continue;
		piece_seal_get(c->seals + i * (size_t)PIECE_SEAL, &seal);
		key = keys->of_epoch(keys->arg, seal.epoch);
		if (!key)
			return false;
		c->opens[i] = piece_key_ref(key);
	}
	return true;
}

int cover_take(struct ulrpc_bulk *b, const struct wire_moved_in *m,
	       const struct bulk_keys *keys)
{
	struct cover *c = b->cover;

	if (b->access != ULRPC_BULK_SINK)
		return 0;
	cover_untake(c);
	c->done = 0;
	if (m->n > b->n)
		return -EPROTO;
	if (m->n && !view_length(m->seals))
		return -EBADMSG;
	if (m->has_lengths)
		wire_moved_lengths(m, c->put);
	for (unsigned int i = 0; i < m->n; i++) {
		if (!m->has_lengths)
			c->put[i] = b->lengths[i];
		if (c->put[i] > b->lengths[i])
			return -EPROTO;
	}
	if (m->n)
		memcpy(c->seals, m->seals.p, view_length(m->seals));
	return keys_take(c, m->n, keys) ? 0 : -EBADMSG;
}

bool bulk_owes_open(const struct ulrpc_bulk *b)
{
	return b->cover && b->cover->done < b->cover->taken;
}

static int segment_open(struct ulrpc_bulk *b, unsigned int i,
			struct cover_slice *s)
{
	const struct piece_place place = place_of(b, i);
	struct cover *c = b->cover;
	struct cover_job j = {
		.job.run = cover_job_open, .b = b, .i = i, .length = c->put[i]
	};
	struct piece_seal seal;
	int rc;

	piece_seal_get(c->seals + i * (size_t)PIECE_SEAL, &seal);
	rc = piece_open_begin(c->opens[i], &place, &seal, &j.piece);
	if (!rc)
		cover_job_start(&j, s);
	return rc;
}

int bulk_open(struct ulrpc_bulk *b, uint64_t *left)
{
	struct cover_slice slice = { .left = left };
	struct cover *c = b->cover;

	if (!c)
		return 1;
	while (bulk_owes_open(b) && !c->failed && !slice_is_over(&slice)) {
		unsigned int i = c->done++;
		int rc = c->opens[i] ? segment_open(b, i, &slice) : 0;

		if (rc)
			c->failed = rc;
	}
	if (!bulk_idle(b))
		return 0;
	return c->failed ? c->failed : !bulk_owes_open(b);
}
