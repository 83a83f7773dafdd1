/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/bulk/bulk.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/util.h"
#include "rpc/bulk/field.h"
#include "rpc/rpc.h"
#include "ulnet/stub.h"

/* A part of the memory that one message at a time is about. */
struct segment {
	struct iovec *iov;
	unsigned int niov;
	struct ulnet_md_handle md; /* of this attempt */
};

struct ulrpc_bulk {
	/* immutable after ulrpc_bulk_new() */
	struct ulrpc *rpc; /* only compared */
	enum ulrpc_bulk_access access;
	bool checked;
	uint64_t length;
	unsigned int n;
	struct segment *segments;
	uint32_t *lengths;
	struct iovec *iov; /* of all segments */

	Ulrpc__Bulk field; /* the user's: for messages */

	uint32_t *crc; /* the claimant's: of each segment of a source */

	/* Who needs it: its user, and a claim. Any thread. */
	atomic_uint refs;
	/* Written before the user's reference is dropped. */
	void (*released)(void *arg);
	void *released_arg;

	/* owner CPT, while claimed */
	struct shard *shard; /* held while MDs are linked */
	struct list link;    /* shard.lent, while they are */
	unsigned int linked; /* MDs whose last event has not come */
	bool attached;	     /* handles of segments mean something */
	struct ulnet_id peer; /* attached: whose messages may come, */
	uint64_t match;	     /* with these bits, from the first segment on */
	bool touched;	     /* the server has put something, in this attempt */
	uint64_t moved;	     /* bytes, of all attempts */
	uint64_t *heard;     /* attached: who counts signs of life; or NULL */
	struct bulk_late late; /* fn NULL: nobody */
	bool over;	       /* released, waits for being idle */
	void (*idle_fn)(void *arg);
	void *idle_arg;
};

/* ---- cutting ---- */

/* Cuts memory into segments: counts them first, then, with @b, writes them. */
struct cutter {
	struct ulrpc_bulk *b;
	uint32_t segment_max;
	unsigned int nfragments;
	unsigned int nsegments;
	/* of the last segment */
	uint32_t length;
	unsigned int niov;
};

static bool cut_full(const struct cutter *c)
{
	return c->nsegments == 0 || c->length == c->segment_max ||
	       c->niov == LNET_MAX_IOV;
}

static void cut_fragment(struct cutter *c, uint8_t *base, uint32_t length)
{
	struct ulrpc_bulk *b = c->b;

	if (cut_full(c)) {
		c->nsegments++;
		c->length = 0;
		c->niov = 0;
	}
	if (b) {
		struct segment *s = &b->segments[c->nsegments - 1];

		if (c->niov == 0)
			s->iov = &b->iov[c->nfragments];
		s->iov[c->niov] = (struct iovec){ base, length };
		s->niov = c->niov + 1;
		b->lengths[c->nsegments - 1] += length;
	}
	c->length += length;
	c->niov++;
	c->nfragments++;
}

static int cut(struct cutter *c, const struct iovec *iov, unsigned int niov)
{
	for (unsigned int i = 0; i < niov; i++) {
		uint8_t *base = iov[i].iov_base;
		size_t left = iov[i].iov_len;

		while (left) {
			uint32_t room = cut_full(c)
						? c->segment_max
						: c->segment_max - c->length;
			uint32_t take = (uint32_t)MIN(left, room);

			cut_fragment(c, base, take);
			if (c->nsegments > ULRPC_SEGMENTS_MAX)
				return -EMSGSIZE;
			base += take;
			left -= take;
		}
	}
	return 0;
}

/* ---- making ---- */

static int conf_check(const struct ulrpc_bulk_conf *conf, uint64_t *length_p)
{
	uint64_t length = 0;

	if (conf->access != ULRPC_BULK_SOURCE &&
	    conf->access != ULRPC_BULK_SINK)
		return -EINVAL;
	if (conf->flags & ~ULRPC_BULK_CHECKSUM || conf->segment > LNET_MTU ||
	    (conf->niov && !conf->iov))
		return -EINVAL;
	for (unsigned int i = 0; i < conf->niov; i++) {
		const struct iovec *v = &conf->iov[i];

		if (v->iov_len && !v->iov_base)
			return -EINVAL;
		if (v->iov_len > ULRPC_BULK_MAX - length)
			return -EMSGSIZE;
		length += v->iov_len;
	}
	*length_p = length;
	return 0;
}

static void bulk_free(struct ulrpc_bulk *b)
{
	free(b->segments);
	free(b->lengths);
	free(b->iov);
	free(b->crc);
	free(b);
}

static int bulk_alloc(struct ulrpc_bulk *b, const struct cutter *counted)
{
	unsigned int n = counted->nsegments;

	b->n = n;
	if (n == 0)
		return 0;
	b->segments = calloc(n, sizeof(*b->segments));
	b->lengths = calloc(n, sizeof(*b->lengths));
	b->iov = calloc(counted->nfragments, sizeof(*b->iov));
	if (b->checked && b->access == ULRPC_BULK_SOURCE)
		b->crc = calloc(n, sizeof(*b->crc));
	else
		b->crc = NULL;
	if (!b->segments || !b->lengths || !b->iov ||
	    (b->checked && b->access == ULRPC_BULK_SOURCE && !b->crc))
		return -ENOMEM;
	return 0;
}

int ulrpc_bulk_new(struct ulrpc *rpc, const struct ulrpc_bulk_conf *conf,
		   struct ulrpc_bulk **bulk_p)
{
	struct cutter c = { .segment_max =
				    conf->segment ? conf->segment : LNET_MTU };
	struct ulrpc_bulk *b;
	uint64_t length;
	int rc = conf_check(conf, &length);

	if (!rc)
		rc = cut(&c, conf->iov, conf->niov);
	if (rc)
		return rc;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->rpc = rpc;
	b->access = conf->access;
	b->checked = conf->flags & ULRPC_BULK_CHECKSUM;
	b->length = length;
	list_init(&b->link);
	atomic_init(&b->refs, 1);
	rc = bulk_alloc(b, &c);
	if (rc) {
		bulk_free(b);
		return rc;
	}
	c = (struct cutter){ .b = b, .segment_max = c.segment_max };
	BUG_ON(cut(&c, conf->iov, conf->niov));
	bulk_field_init(&b->field, b, length, b->access);
	*bulk_p = b;
	return 0;
}

uint64_t ulrpc_bulk_length(const struct ulrpc_bulk *bulk)
{
	return bulk->length;
}

Ulrpc__Bulk *ulrpc_bulk_field(struct ulrpc_bulk *bulk)
{
	return &bulk->field;
}

/* ---- whose it is ---- */

/* Whoever drops the last reference knows that there is no claim and no user. */
static void bulk_put(struct ulrpc_bulk *b)
{
	void (*released)(void *arg);
	void *arg;

	if (atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	released = b->released;
	arg = b->released_arg;
	bulk_free(b);
	if (released)
		released(arg);
}

void ulrpc_bulk_close(struct ulrpc_bulk *bulk, void (*released)(void *arg),
		      void *arg)
{
	if (!bulk) {
		if (released)
			released(arg);
		return;
	}
	bulk->released = released;
	bulk->released_arg = arg;
	bulk_put(bulk);
}

static uint32_t crc_of(const struct segment *s, uint32_t length)
{
	uint32_t crc = 0;

	for (unsigned int i = 0; length; i++) {
		uint32_t n = (uint32_t)MIN(s->iov[i].iov_len, length);

		crc = crc32c(crc, s->iov[i].iov_base, n);
		length -= n;
	}
	return crc;
}

int bulk_prepare(struct ulrpc_bulk *b, struct ulrpc *rpc)
{
	unsigned int users = 1;

	if (b->rpc != rpc)
		return -EINVAL;
	if (!atomic_compare_exchange_strong(&b->refs, &users, 2))
		return -EBUSY;
	b->over = false;
	b->moved = 0;
	b->late.fn = NULL;
	if (b->crc)
		for (unsigned int i = 0; i < b->n; i++)
			b->crc[i] = crc_of(&b->segments[i], b->lengths[i]);
	return 0;
}

static void tell_late(const struct ulrpc_bulk *b)
{
	uint64_t in = 0, out = 0;

	if (likely(!b->late.fn) || !b->moved || b->shard->crashed)
		return;
	bulk_bytes(b, &in, &out);
	b->late.fn(b->shard, &b->late, in, out);
}

/* Nothing is linked any more. May free @b. */
static void bulk_on_last(struct ulrpc_bulk *b)
{
	void (*fn)(void *arg) = b->idle_fn;
	void *arg = b->idle_arg;

	b->attached = false;
	b->idle_fn = NULL;
	tell_late(b);
	if (b->over)
		bulk_put(b);
	if (fn)
		fn(arg);
}

static void bulk_unlinked(struct ulrpc_bulk *b)
{
	struct shard *s = b->shard;

	BUG_ON(b->linked == 0);
	if (--b->linked)
		return;
	list_del(&b->link);
	bulk_on_last(b);
	shard_release(s);
}

bool bulk_release(struct ulrpc_bulk *b)
{
	b->idle_fn = NULL;
	bulk_detach(b);
	b->over = true;
	if (!bulk_idle(b))
		return false;
	bulk_put(b);
	return true;
}

void bulk_gone(struct ulrpc_bulk *b)
{
	b->linked = 0;
	list_del(&b->link);
	b->idle_fn = NULL;
	bulk_on_last(b);
}

void bulks_gone(struct shard *s)
{
	while (!list_empty(&s->lent))
		bulk_gone(list_first(&s->lent, struct ulrpc_bulk, link));
}

/* ---- attempts ---- */

static void segment_on_event(const struct ulnet_event *ev)
{
	struct ulrpc_bulk *b = ev->user_ptr;

	if (ev->type == LNET_EVENT_PUT && ev->mlength)
		b->touched = true;
	/* What a segment got before it was unlinked counts all the same. */
	if ((!ev->status || ev->cause == LNET_CAUSE_CANCELED) &&
	    (ev->type == LNET_EVENT_PUT || ev->type == LNET_EVENT_GET)) {
		b->moved += ev->mlength;
		if (b->heard)
			*b->heard = shard_now(b->shard);
	}
	if (ev->unlinked)
		bulk_unlinked(b);
}

/* Messages for segment @i may come from @b->peer. */
static int segment_attach(struct ulrpc_bulk *b, unsigned int i,
			  struct ulnet_md_handle *md_p)
{
	struct segment *s = &b->segments[i];
	struct ulnet_md md = {
		.start = s->iov,
		.length = s->niov,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_MANAGE_REMOTE | LNET_MD_IOVEC,
		.user_ptr = b,
		.handler = segment_on_event,
	};
	struct ulnet_me_handle me;
	int rc;

	md.options |= b->access == ULRPC_BULK_SOURCE ? LNET_MD_OP_GET
						     : LNET_MD_OP_PUT;
	if (s->niov == 1) {
		md.start = s->iov->iov_base;
		md.length = b->lengths[i];
		md.options &= ~LNET_MD_IOVEC;
	}
	rc = LNetMEAttach(b->shard->node, ULRPC_PORTAL_BULK, b->peer,
			  b->match + i, 0, LNET_UNLINK, LNET_INS_LOCAL, &me);
	/* Without its MD the entry would be gone, too. */
	if (!rc)
		rc = LNetMDAttach(me, &md, LNET_RETAIN, md_p);
	if (!rc && b->linked++ == 0) {
		shard_hold(b->shard);
		list_add_tail(&b->shard->lent, &b->link);
	}
	return rc;
}

/* The first @n segments. */
static void segments_detach(struct ulrpc_bulk *b, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		LNetMDUnlink(b->segments[i].md);
	b->attached = false;
	b->heard = NULL;
}

void bulk_describe(const struct ulrpc_bulk *b, struct wire_segments *out)
{
	*out = (struct wire_segments){
		.access = b->access,
		.checked = b->checked,
		.n = b->n,
		.length = b->lengths,
		.checksum = b->crc,
	};
}

int bulk_attach(struct ulrpc_bulk *b, struct shard *s, struct ulnet_id peer,
		uint64_t *heard, struct wire_segments *out)
{
	BUG_ON(!bulk_idle(b) || b->over);
	b->shard = s;
	b->peer = peer;
	b->match = shard_match_alloc(s);
	b->touched = false;
	for (unsigned int i = 0; i < b->n; i++) {
		int rc = segment_attach(b, i, &b->segments[i].md);

		if (rc) {
			segments_detach(b, i);
			return rc;
		}
	}
	b->attached = true;
	b->heard = heard;
	bulk_describe(b, out);
	out->match = b->match;
	return 0;
}

/* New entries first: no message finds none meanwhile. */
static void segments_move(struct ulrpc_bulk *b, struct ulnet_id peer)
{
	struct ulnet_id before = b->peer;

	b->peer = peer;
	for (unsigned int i = 0; i < b->n; i++) {
		struct ulnet_md_handle old = b->segments[i].md;

		if (segment_attach(b, i, &b->segments[i].md)) {
			b->peer = before;
			return;
		}
		LNetMDUnlink(old);
	}
}

void bulk_follow(struct ulrpc_bulk *b, struct ulnet_id peer)
{
	if (b->attached && !lnet_nid_eq(&b->peer.nid, &peer.nid))
		segments_move(b, peer);
}

void bulk_admit(struct ulrpc_bulk *b, struct ulnet_id peer)
{
	if (b->attached && !shard_same_peer(b->shard, &b->peer.nid, &peer.nid))
		segments_move(b, peer);
}

void bulk_detach(struct ulrpc_bulk *b)
{
	if (b->attached)
		segments_detach(b, b->n);
}

bool bulk_idle(const struct ulrpc_bulk *b)
{
	return b->linked == 0;
}

void bulk_on_idle(struct ulrpc_bulk *b, void (*fn)(void *arg), void *arg)
{
	BUG_ON(bulk_idle(b) || b->idle_fn);
	b->idle_fn = fn;
	b->idle_arg = arg;
}

void bulk_on_idle_cancel(struct ulrpc_bulk *b)
{
	b->idle_fn = NULL;
}

int bulk_check(const struct ulrpc_bulk *b, const struct wire_moved_in *m)
{
	uint32_t crc[ULRPC_SEGMENTS_MAX], length[ULRPC_SEGMENTS_MAX];

	if (b->access != ULRPC_BULK_SINK || !b->checked)
		return 0;
	if (m->n > b->n)
		return -EPROTO;
	wire_moved_checksums(m, crc);
	if (m->has_lengths)
		wire_moved_lengths(m, length);
	for (unsigned int i = 0; i < m->n; i++) {
		uint32_t n = m->has_lengths ? length[i] : b->lengths[i];

		if (n > b->lengths[i])
			return -EPROTO;
		if (crc_of(&b->segments[i], n) != crc[i])
			return -EBADMSG;
	}
	return 0;
}

bool bulk_unproven(const struct ulrpc_bulk *b)
{
	return b->touched && b->checked;
}

void bulk_bytes(const struct ulrpc_bulk *b, uint64_t *in, uint64_t *out)
{
	*(b->access == ULRPC_BULK_SINK ? in : out) += b->moved;
}

void bulk_on_late(struct ulrpc_bulk *b, const struct bulk_late *late)
{
	b->moved = 0;
	b->late = *late;
}
