/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/bulk/bulk_priv.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/util.h"
#include "rpc/stats/stat.h"
#include "ulnet/stub.h"

/* A source has so many twins at a time, at most; without twins, LNet may be
 * busy with so many of its attempts. */
#define TWINS_MAX 8u

/* ---- cutting ---- */

static uint32_t segment_max(const struct ulrpc_bulk_conf *conf)
{
	return conf->segment ? conf->segment : LNET_MTU;
}

static int bulk_cut(struct ulrpc_bulk *b, const struct ulrpc_bulk_conf *conf)
{
	struct iovec *to = b->iov;
	struct segment *s = NULL;
	uint32_t *length = NULL;

	for (unsigned int i = 0; i < conf->niov; i++) {
		uint8_t *base = conf->iov[i].iov_base;
		size_t left = conf->iov[i].iov_len;

		while (left) {
			uint32_t take;

			if (!s || *length == segment_max(conf) ||
			    s->niov == LNET_MAX_IOV) {
				if (b->n == ULRPC_SEGMENTS_MAX)
					return -EMSGSIZE;
				length = &b->lengths[b->n];
				s = &b->segments[b->n++];
				s->iov = to;
			}
			take = (uint32_t)MIN(left, segment_max(conf) - *length);
			*to++ = (struct iovec){ base, take };
			s->niov++;
			*length += take;
			base += take;
			left -= take;
		}
	}
	return 0;
}

/* ---- making ---- */

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

static int bulk_conf_check(const struct ulrpc_bulk_conf *conf,
			   uint64_t *length_p)
{
	if ((conf->access != ULRPC_BULK_SOURCE &&
	     conf->access != ULRPC_BULK_SINK) ||
	    conf->flags & ~ULRPC_BULK_CHECKSUM || conf->segment > LNET_MTU)
		return -EINVAL;
	return iov_total(conf->iov, conf->niov, -EMSGSIZE, length_p);
}

/* Allocates a bulk with its arrays, for as many segments as the fragments can
 * need at most: a segment ends when it is full, or has as many fragments as an
 * MD may have. */
static struct ulrpc_bulk *bulk_alloc(const struct ulrpc_bulk_conf *conf,
				     uint64_t length)
{
	uint64_t full = MIN(length / segment_max(conf), ULRPC_SEGMENTS_MAX);
	size_t n = MIN(full + (conf->niov + full) / LNET_MAX_IOV + 1,
		       ULRPC_SEGMENTS_MAX);
	size_t fragments = conf->niov + n;
	struct ulrpc_bulk *b;

	b = calloc(1, sizeof(*b) + n * sizeof(*b->segments) +
			      fragments * sizeof(*b->iov) +
			      n * sizeof(*b->lengths) + n * sizeof(*b->crc) +
			      n * sizeof(*b->summed));
	if (!b)
		return NULL;
	b->segments = (struct segment *)(b + 1);
	b->iov = (struct iovec *)(b->segments + n);
	b->lengths = (uint32_t *)(b->iov + fragments);
	if (conf->flags & ULRPC_BULK_CHECKSUM) {
		b->crc = b->lengths + n;
		b->summed = b->crc + n;
	}
	return b;
}

int ulrpc_bulk_new(struct ulrpc *rpc, const struct ulrpc_bulk_conf *conf,
		   struct ulrpc_bulk **bulk_p)
{
	struct ulrpc_bulk *b;
	uint64_t length;
	int rc = bulk_conf_check(conf, &length);

	if (rc)
		return rc;
	b = bulk_alloc(conf, length);
	if (!b)
		return -ENOMEM;
	rc = bulk_cut(b, conf);
	if (rc) {
		free(b);
		return rc;
	}
	b->rpc = rpc;
	b->access = conf->access;
	b->checked = conf->flags & ULRPC_BULK_CHECKSUM;
	b->segment = segment_max(conf);
	b->length = length;
	atomic_init(&b->refs, 1);
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

void bulk_is_body(struct ulrpc_bulk *b)
{
	b->body = true;
}

unsigned int bulk_segments(const struct ulrpc_bulk *b)
{
	return b->n;
}

/* ---- references ---- */

static void bulk_put(struct ulrpc_bulk *b)
{
	void (*released)(void *arg);
	struct ulrpc_bulk *of;
	void *arg;

	if (atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	released = b->released;
	arg = b->released_arg;
	of = b->twin_of;
	free(b);
	if (released)
		released(arg);
	if (!of)
		return;
	atomic_fetch_sub(&of->twins, 1);
	bulk_put(of);
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

int bulk_twin(struct ulrpc_bulk *b, struct ulrpc_bulk **twin_p)
{
	struct ulrpc_bulk_conf conf = {
		.iov = b->iov,
		.access = b->access,
		.segment = b->segment,
		.flags = b->checked ? ULRPC_BULK_CHECKSUM : 0,
	};
	unsigned int most = b->access == ULRPC_BULK_SINK ? 1 : TWINS_MAX;
	int rc;

	if (atomic_load(&b->twins) >= most)
		return -EBUSY;
	for (unsigned int i = 0; i < b->n; i++)
		conf.niov += b->segments[i].niov;
	rc = ulrpc_bulk_new(b->rpc, &conf, twin_p);
	if (rc)
		return rc;
	(*twin_p)->twin_of = b;
	atomic_fetch_add(&b->twins, 1);
	atomic_fetch_add(&b->refs, 1);
	return 0;
}

bool bulk_is_sink(const struct ulrpc_bulk *b)
{
	return b->access == ULRPC_BULK_SINK;
}

bool bulk_has_twins(const struct ulrpc_bulk *b)
{
	return atomic_load(&b->twins) != 0;
}

/* Returns the CRC32C of the first @length bytes of @s. */
static uint32_t crc_of(const struct segment *s, uint32_t length)
{
	uint32_t crc = 0;

	for (const struct iovec *v = s->iov; length; v++) {
		uint32_t n = (uint32_t)MIN(v->iov_len, length);

		crc = crc32c(crc, v->iov_base, n);
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
	b->nsummed = 0;
	return 0;
}

bool bulk_sum(struct ulrpc_bulk *b, uint64_t *left)
{
	if (!b->checked || b->access != ULRPC_BULK_SOURCE)
		return true;
	while (b->nsummed < b->n && *left) {
		unsigned int i = b->nsummed++;

		b->crc[i] = crc_of(&b->segments[i], b->lengths[i]);
		*left -= MIN(*left, b->lengths[i]);
	}
	return b->nsummed == b->n;
}

static void report_late(const struct ulrpc_bulk *b)
{
	uint64_t in = 0, out = 0;

	if (likely(!b->late.fn) || !b->moved)
		return;
	bulk_bytes(b, &in, &out);
	b->late.fn(b->shard, &b->late, in, out);
}

void bulk_use(struct ulrpc_bulk *b)
{
	if (b->linked++ == 0)
		shard_hold(b->shard);
}

void bulk_unuse(struct ulrpc_bulk *b)
{
	void (*fn)(void *arg) = b->idle_fn;
	void *arg = b->idle_arg;
	struct shard *s = b->shard;

	BUG_ON(b->linked == 0);
	if (--b->linked)
		return;
	b->attached = false;
	b->idle_fn = NULL;
	report_late(b);
	if (b->over) {
		bulk_uncover(b);
		bulk_put(b);
	}
	if (fn)
		fn(arg);
	shard_release(s);
}

bool bulk_release(struct ulrpc_bulk *b)
{
	b->idle_fn = NULL;
	bulk_detach(b);
	b->over = true;
	if (!bulk_idle(b))
		return false;
	bulk_uncover(b);
	bulk_put(b);
	return true;
}

/* ---- attempts ---- */

uint32_t bulk_crc_of_put(const struct ulnet_event *ev, uint32_t crc)
{
	/* segment_attach() gives LNet one fragment as plain memory, not as a
	 * vector. */
	const struct iovec one = { ev->md_start, SIZE_MAX };
	const struct iovec *iov =
		ev->md_options & LNET_MD_IOVEC ? ev->md_start : &one;
	uint32_t left = ev->mlength;
	size_t skip = ev->offset;

	for (; left; iov++) {
		size_t n = iov->iov_len > skip ? iov->iov_len - skip : 0;

		n = MIN(n, left);
		crc = crc32c(crc, (uint8_t *)iov->iov_base + skip, n);
		left -= (uint32_t)n;
		skip -= MIN(skip, iov->iov_len);
	}
	return crc;
}

/* Called when a PUT to a sink with checksums has come. Returns true if it
 * brought a checksum of its payload which is wrong. If the checksum is right,
 * bulk_check() need not look at the payload again. */
static out_of_line bool is_damaged(struct ulrpc_bulk *b,
				   const struct ulnet_event *ev)
{
	uint64_t i = ev->match_bits - b->match;
	uint32_t crc = 0, before;
	bool proved;

	if (b->cover)
		return cover_is_damaged(ev);
	before = b->summed[i];
	if (ev->hdr_data & BULK_PROOF && !ev->status)
		crc = bulk_crc_of_put(ev, 0);
	proved = !ev->status && ev->hdr_data == bulk_proof(crc);
	b->summed[i] = 0;
	if (proved && (!ev->offset || ev->offset == before)) {
		b->crc[i] = ev->offset
				    ? crc32c_join(b->crc[i], crc, ev->mlength)
				    : crc;
		b->summed[i] = (uint32_t)ev->offset + ev->mlength;
	}
	return !proved && !ev->status && ev->hdr_data & BULK_PROOF;
}

static void segment_on_event(const struct ulnet_event *ev)
{
	struct ulrpc_bulk *b = ev->user_ptr;

	if (ev->type == LNET_EVENT_PUT && unlikely(b->checked || b->cover) &&
	    unlikely(is_damaged(b, ev))) {
		stat_count(b->shard, RPC_STAT_puts_damaged);
		lnet_withhold_ack(b->shard->node, b->shard->cpt);
	}
	if (ev->type == LNET_EVENT_PUT && ev->mlength)
		b->touched = true;
	/* Bytes that were moved before the unlinking count, too. */
	if ((!ev->status || ev->cause == LNET_CAUSE_CANCELED) &&
	    (ev->type == LNET_EVENT_PUT || ev->type == LNET_EVENT_GET)) {
		b->moved += ev->mlength;
		/* A message of an attempt before is no sign of life. */
		if (b->heard && ev->match_bits - b->match < b->n)
			*b->heard = shard_now(b->shard);
	}
	if (ev->unlinked)
		bulk_unuse(b);
}

/* Links segment @i for messages from b->peer. */
static int segment_attach(struct ulrpc_bulk *b, unsigned int i,
			  struct ulnet_md_handle *md_p)
{
	struct segment *s = &b->segments[i];
	struct ulnet_md md = {
		.start = s->iov,
		.length = s->niov,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_MANAGE_REMOTE | LNET_MD_IOVEC |
			   LNET_MD_OF_LAYER,
		.user_ptr = b,
		.handler = segment_on_event,
	};
	struct ulnet_me_handle me;
	int rc;

	md.options |= b->access == ULRPC_BULK_SOURCE ? LNET_MD_OP_GET
						     : LNET_MD_OP_PUT;
	if (unlikely(b->cover) && cover_of(b, i)) {
		md.start = cover_of(b, i);
		md.length = b->lengths[i];
		md.options &= ~LNET_MD_IOVEC;
	} else if (s->niov == 1) {
		md.start = s->iov->iov_base;
		md.length = b->lengths[i];
		md.options &= ~LNET_MD_IOVEC;
	}
	rc = LNetMEAttach(b->shard->node, ULRPC_PORTAL_BULK, b->peer,
			  b->match + i, 0, LNET_UNLINK, LNET_INS_LOCAL, &me);
	/* If LNetMDAttach() fails, it has unlinked the match entry. */
	if (!rc)
		rc = LNetMDAttach(me, &md, LNET_RETAIN, md_p);
	if (!rc)
		bulk_use(b);
	return rc;
}

/* Unlinks the first @n segments. */
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
		.access = b->body ? WIRE_ACCESS_BODY : b->access,
		.checked = b->checked,
		.n = b->n,
		.length = b->lengths,
		.checksum = b->access == ULRPC_BULK_SOURCE ? b->crc : NULL,
	};
	if (unlikely(b->cover))
		cover_describe(b, out);
}

int bulk_attach(struct ulrpc_bulk *b, struct shard *s, struct ulnet_id peer,
		uint64_t *heard, struct wire_segments *out)
{
	BUG_ON(bulk_is_fenced(b) || b->over);
	b->shard = s;
	b->peer = peer;
	b->match = shard_match_alloc(s);
	b->touched = false;
	if (b->access == ULRPC_BULK_SINK && b->checked && !b->cover)
		memset(b->summed, 0, b->n * sizeof(*b->summed));
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

/* Links the segments for @peer. Each is linked before its old entry is
 * unlinked, so that messages always find one. */
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

bool bulk_is_fenced(const struct ulrpc_bulk *b)
{
	if (b->access == ULRPC_BULK_SINK || b->cover)
		return !bulk_idle(b);
	return b->linked > (TWINS_MAX - 1) * b->n;
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

int bulk_check(struct ulrpc_bulk *b, const struct wire_moved_in *m,
	       const struct bulk_keys *keys)
{
	uint32_t crc[ULRPC_SEGMENTS_MAX], length[ULRPC_SEGMENTS_MAX];

	if (b->cover)
		return cover_take(b, m, keys);
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
		if (b->summed[i] == n && n && b->crc[i] == crc[i])
			continue;
		if (crc_of(&b->segments[i], n) != crc[i])
			return -EBADMSG;
	}
	return 0;
}

bool bulk_unproven(const struct ulrpc_bulk *b)
{
	return b->touched && (b->checked || b->cover);
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
