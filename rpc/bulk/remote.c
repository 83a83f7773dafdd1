/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a caller lends, as its request describes it, and the
 * checksums of what is moved: those of a source are compared with what has
 * come, those of a sink are computed from what is put. */
#include "rpc/bulk/transfer_priv.h"

#include <errno.h>

#include "base/crc32c.h"
#include "rpc/bulk/bulk.h"

/* arrays of a remote with a number for each segment */
#define REMOTE_ARRAYS 3
/* additional bytes for each sealed segment */
#define SEALED_EACH (PIECE_SEAL + sizeof(struct piece *))

static void remote_fini(struct remote *r)
{
	free(r->lengths);
	free(r->crc);
	free(r->put);
	remote_seal_fini(r);
}

static int remote_init(struct remote *r, const struct wire_segments_in *s,
		       unsigned int index)
{
	*r = (struct remote){ .match = s->match, .n = s->n };
	if (s->access < WIRE_ACCESS_SOURCE || s->access > WIRE_ACCESS_BODY)
		return -EPROTO;
	r->body = s->access == WIRE_ACCESS_BODY;
	r->access = s->access == WIRE_ACCESS_SINK ? ULRPC_BULK_SINK
						  : ULRPC_BULK_SOURCE;
	r->checked =
		r->access == ULRPC_BULK_SOURCE ? s->has_checksums : s->checked;
	if (r->n == 0)
		return 0;
	r->lengths = calloc(r->n, sizeof(*r->lengths));
	r->crc = calloc(r->n, sizeof(*r->crc));
	r->put = calloc(r->n, sizeof(*r->put));
	if (!r->lengths || !r->crc || !r->put)
		return -ENOMEM;
	wire_segments_lengths(s, r->lengths);
	if (r->access == ULRPC_BULK_SOURCE && r->checked)
		wire_segments_checksums(s, r->crc);
	for (unsigned int i = 0; i < r->n; i++) {
		if (r->lengths[i] == 0 || r->lengths[i] > LNET_MTU)
			return -EPROTO;
		r->length += r->lengths[i];
	}
	return remote_seal_init(r, s, index);
}

static void transfers_destroy(struct transfers *t)
{
	for (unsigned int i = 0; i < t->n; i++)
		remote_fini(&t->remotes[i]);
	piece_key_put(t->conf.seals);
	piece_key_put(t->conf.opens);
	free(t);
}

uint64_t transfers_body_length(const struct wire_call *call)
{
	struct wire_view bulks = call->bulks.view;
	uint32_t lengths[ULRPC_SEGMENTS_MAX];
	struct wire_segments_in s;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < call->bulks.n; i++) {
		if (!wire_segments_next(&bulks, &s) ||
		    s.access != WIRE_ACCESS_BODY)
			continue;
		wire_segments_lengths(&s, lengths);
		for (unsigned int j = 0; j < s.n; j++)
			sum += lengths[j];
	}
	return sum;
}

uint64_t transfers_size(const struct wire_call *call)
{
	struct wire_view bulks = call->bulks.view;
	struct wire_segments_in s;
	uint64_t size = 0;

	if (likely(call->bulks.n == 0))
		return 0;
	for (unsigned int i = 0; i < call->bulks.n; i++)
		if (wire_segments_next(&bulks, &s))
			size += s.n * (sizeof(uint32_t) * REMOTE_ARRAYS +
				       (s.protection ? SEALED_EACH : 0));
	return sizeof(struct transfers) +
	       call->bulks.n * sizeof(struct remote) + size;
}

int transfers_new(const struct transfers_conf *conf,
		  const struct wire_call *call, struct transfers **t_p)
{
	struct wire_view bulks = call->bulks.view;
	unsigned int sealed = 0;
	struct wire_segments_in s;
	struct transfers *t;

	if (call->bulks.n == 0) {
		*t_p = NULL;
		return 0;
	}
	t = calloc(1, sizeof(*t) + call->bulks.n * sizeof(t->remotes[0]));
	if (!t)
		return -ENOMEM;
	t->conf = *conf;
	t->conf.window = MAX(conf->window, 1u);
	piece_key_ref(t->conf.seals);
	piece_key_ref(t->conf.opens);
	atomic_init(&t->pending, 0);
	atomic_init(&t->refs, 1);
	list_init(&t->active);
	list_init(&t->link);
	while (t->n < call->bulks.n && wire_segments_next(&bulks, &s)) {
		unsigned int i = t->n++;
		int rc = remote_init(&t->remotes[i], &s, i);

		sealed += s.protection ? s.n : 0;
		if (s.protection != conf->protection ||
		    sealed > TRANSFERS_SEALED_MAX ||
		    (t->nbody && !t->remotes[i].body))
			rc = -EPROTO;
		t->nbody += t->remotes[i].body;
		if (rc) {
			transfers_destroy(t);
			return rc;
		}
	}
	*t_p = t;
	return 0;
}

void transfers_get(struct transfers *t)
{
	atomic_fetch_add(&t->refs, 1);
}

void transfers_use(struct transfers *t)
{
	transfers_get(t);
	atomic_fetch_add(&t->users, 1);
}

void transfers_unuse(struct transfers *t)
{
	atomic_fetch_sub(&t->users, 1);
	transfers_free(t);
}

bool transfers_used(const struct transfers *t)
{
	return atomic_load(&t->users) != 0;
}

void transfers_free(struct transfers *t)
{
	if (t && atomic_fetch_sub(&t->refs, 1) == 1)
		transfers_destroy(t);
}

unsigned int transfers_count(const struct transfers *t)
{
	return t ? t->n - t->nbody : 0;
}

int transfers_info(const struct transfers *t, unsigned int index,
		   struct ulrpc_bulk_info *info)
{
	const struct remote *r;

	if (index >= transfers_count(t))
		return -ENOENT;
	r = &t->remotes[index];
	*info = (struct ulrpc_bulk_info){ .access = r->access,
					  .length = r->length,
					  .segments = r->n,
					  .checksum = remote_is_proved(r) };
	return 0;
}

bool transfer_busy(const struct transfers *t)
{
	return t && atomic_load(&t->pending) != 0;
}

void transfer_on_done(struct transfers *t, void (*fn)(void *arg), void *arg)
{
	BUG_ON(!transfer_busy(t) || t->on_done);
	t->on_done = fn;
	t->on_done_arg = arg;
}

/* Returns the number of segments up to the last one to which anything was put.
 * Sets *@whole to whether all of them are full. */
static unsigned int sink_segments(const struct remote *r, bool *whole)
{
	unsigned int n = r->n;

	*whole = true;
	while (n && r->put[n - 1] == 0)
		n--;
	for (unsigned int i = 0; i < n; i++)
		if (r->put[i] != r->lengths[i])
			*whole = false;
	return n;
}

/* Makes @m tell the seals of the sink @r instead of checksums. If they cannot
 * be made, the caller gets wrong seals, and so rejects the bytes. */
static void moved_seals(struct remote *r, struct wire_moved *m)
{
	if (!remote_seal_end(r, m->n))
		memset(r->seals, 0, m->n * (size_t)PIECE_SEAL);
	m->checksum = NULL;
	m->seals = (struct wire_view){ r->seals,
				       r->seals + m->n * (size_t)PIECE_SEAL };
}

unsigned int transfer_moved(struct transfers *t, struct wire_moved *out,
			    unsigned int max)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < transfers_count(t) && n < max; i++) {
		struct remote *r = &t->remotes[i];
		unsigned int segments;
		bool whole;

		if (!remote_is_proved(r) || r->access != ULRPC_BULK_SINK)
			continue;
		segments = sink_segments(r, &whole);
		if (!segments && !r->tried)
			continue;
		out[n] = (struct wire_moved){
			.index = i,
			.n = segments,
			.checksum = r->crc,
			.length = whole ? NULL : r->put,
		};
		if (r->protection)
			moved_seals(r, &out[n]);
		n++;
	}
	return n;
}

void transfer_bytes(const struct transfers *t, uint64_t *in, uint64_t *out)
{
	*in = t ? t->in : 0;
	*out = t ? t->out : 0;
}

uint64_t transfer_segments(const struct transfers *t)
{
	return t->segments;
}

uint64_t transfer_time(const struct transfers *t)
{
	return t ? t->time : 0;
}

uint64_t transfer_time_of_handler(const struct transfers *t)
{
	return t->time - t->body_time;
}

void transfers_have_body(struct transfers *t)
{
	t->body_time = t->time;
}

int transfer_status(const struct transfers *t)
{
	return t ? t->failed : 0;
}

/* ---- positions in memory ---- */

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

/* ---- checksums ---- */

/* Goes over a span segment by segment. */
#define cursor_for_each_segment(at, s)                        \
	for (at = cursor_begin(s); (at).offset < (s)->length; \
	     cursor_move(s, &(at), cursor_room(s, &(at))))

bool transfer_checkable(const struct transfer *x)
{
	struct cursor end = cursor_begin(&x->span);

	if (!remote_is_proved(x->r) || x->r->access != ULRPC_BULK_SOURCE)
		return true;
	cursor_move(&x->span, &end, x->span.length);
	return x->span.in_segment == 0 && end.in_segment == 0;
}

void transfer_sum(struct transfer *x, bool owner)
{
	struct cursor at;

	x->summed = x->crc && !owner && !x->r->protection;
	if (!x->left && !x->summed)
		return;
	cursor_for_each_segment (at, &x->span) {
		unsigned int i = at.segment - x->span.segment;
		uint32_t room = cursor_room(&x->span, &at);

		if (x->left)
			x->left[i] = room;
		else if (at.in_segment == 0)
			x->crc[i] = cursor_crc(&x->span, at, room, 0);
	}
}

int transfer_sum_begin(struct transfer *x)
{
	struct remote *r = x->r;
	struct cursor at = cursor_begin(&x->span);

	if (at.in_segment && (r->put[at.segment] != at.in_segment ||
			      (r->protection && !r->open[at.segment]))) {
		/* so that transfer_sum_forget() does not forget what was put
		 * before */
		x->crc = NULL;
		return -EINVAL;
	}
	cursor_for_each_segment (at, &x->span)
		r->put[at.segment] = at.in_segment + cursor_room(&x->span, &at);
	return 0;
}

void transfer_sum_chunk(struct transfer *x, struct chunk *p)
{
	const struct span *s = &x->span;
	unsigned int i = p->at.segment;
	uint32_t *crc = &x->r->crc[i];

	if (likely(!x->crc) || x->r->protection)
		return;
	if (x->summed && !p->at.in_segment &&
	    p->length == cursor_room(s, &p->at))
		p->crc = x->crc[i - s->segment];
	else
		p->crc = cursor_crc(s, p->at, p->length, 0);
	/* transfer_sum_forget() of an earlier transfer may have set this to 0.
	 */
	if (unlikely(!x->r->put[i]))
		return;
	*crc = p->at.in_segment ? crc32c_join(*crc, p->crc, p->length) : p->crc;
}

void transfer_sum_forget(struct transfer *x)
{
	struct cursor at;

	if (!x->crc)
		return;
	cursor_for_each_segment (at, &x->span) {
		x->r->crc[at.segment] = 0;
		x->r->put[at.segment] = 0;
		remote_seal_forget(x->r, at.segment);
	}
}

int transfer_sum_check(struct transfer *x, struct chunk *p)
{
	unsigned int segment = p->at.segment;
	uint32_t length = x->r->lengths[segment];
	uint32_t *left = &x->left[segment - x->span.segment];
	struct cursor at = p->at;

	*left -= p->length;
	if (*left)
		return 0;
	if (p->length != length) {
		at = cursor_begin(&x->span);
		while (at.segment != segment)
			cursor_move(&x->span, &at, cursor_room(&x->span, &at));
	}
	if (x->r->protection)
		return transfer_seal_check(x, p, at);
	return cursor_crc(&x->span, at, length, 0) == x->r->crc[segment]
		       ? 0
		       : -EBADMSG;
}

static void chunk_fit(const struct transfer *x, struct chunk *p)
{
	struct iovec iov[LNET_MAX_IOV];

	cursor_slice(&x->span, &p->at, cursor_room(&x->span, &p->at), iov,
		     LNET_MAX_IOV, &p->length);
}

void transfer_sum_again(struct transfer *x, struct chunk *p)
{
	unsigned int segment = p->at.segment;
	uint32_t length = x->r->lengths[segment];
	struct cursor at = cursor_begin(&x->span);

	while (at.segment != segment)
		cursor_move(&x->span, &at, cursor_room(&x->span, &at));
	/* What other chunks of the segment have moved does not count any more.
	 */
	x->moved -= length - p->length;
	x->low = MIN(x->low, at.offset);
	x->left[segment - x->span.segment] = length;
	p->at = at;
	chunk_fit(x, p);
}

bool transfer_sum_next(struct transfer *x, struct chunk *p)
{
	if (!x->left[p->at.segment - x->span.segment])
		return false;
	cursor_move(&x->span, &p->at, p->length);
	chunk_fit(x, p);
	return true;
}
