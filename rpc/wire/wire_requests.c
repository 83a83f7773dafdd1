/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, to and from bytes. */
#include "rpc/wire/wire_field.h"

#include <errno.h>
#include "rpc/wire/wire_call.h"
#include "rpc/wire/wire_head.h"

/* ---- to bytes ---- */

#define SEGMENTS_BOUND(n)                                         \
	(PUT_NESTED_BOUND + 9u + 6u + 2u + 2 * PUT_NESTED_BOUND + \
	 (n) * (5u + 4u))

uint8_t *wire_requests_put(uint8_t *p, const struct wire_requests *m)
{
	p = put_fixed64_field(p, 1, m->connection);
	p = put_fixed64_field(p, 2, m->client);
	p = put_varint_field(p, 3, m->epoch);
	return put_varint_field(p, 4, m->acked);
}

uint8_t *wire_segments_put(uint8_t *p, const struct wire_segments *s)
{
	uint8_t *begin = put_begin(p, 12);

	BUG_ON(s->n > ULRPC_SEGMENTS_MAX);
	p = put_fixed64_field(begin, 1, s->match);
	p = put_varint_field(p, 2, s->access);
	p = put_packed_varint(p, 3, s->length, s->n);
	if (s->checksum)
		p = put_packed_fixed32(p, 4, s->checksum, s->n);
	p = put_varint_field(p, 5, s->checked);
	return put_end(begin, p);
}

size_t wire_call_bound(const struct wire_call *call)
{
	size_t bound = WIRE_CALL_BOUND + call->trace_length;

	for (uint32_t i = 0; i < call->nbulks; i++)
		bound += SEGMENTS_BOUND(call->bulk[i].n);
	return bound;
}

/* ---- from bytes: segments ---- */

static bool get_segments(struct wire_view in, struct wire_segments_in *s,
			 struct numbers *lengths, struct numbers *checksums)
{
	const uint8_t *p = in.p;
	uint64_t v;
	uint32_t tag;

	*s = (struct wire_segments_in){ .view = in };
	while (next_field(&p, in.end, &tag)) {
		switch (tag) {
		case TAG(1, WT_FIXED64):
			p = get_fixed64(p, in.end, &s->match);
			break;
		case TAG(2, WT_VARINT):
			p = get_varint32(p, in.end, &s->access);
			break;
		case TAG(3, WT_LEN):
			p = get_packed_varint(p, in.end, lengths);
			break;
		case TAG(3, WT_VARINT):
			p = get_varint_into(p, in.end, lengths);
			break;
		case TAG(4, WT_LEN):
			p = get_packed_fixed32(p, in.end, checksums);
			break;
		case TAG(4, WT_FIXED32):
			p = get_fixed32_into(p, in.end, checksums);
			break;
		case TAG(5, WT_VARINT):
			p = get_varint(p, in.end, &v);
			s->checked = p && v;
			break;
		default:
			p = get_unknown(p, in.end, tag);
		}
	}
	s->n = lengths->n;
	s->has_checksums = checksums->n;
	return p == in.end && (checksums->n == 0 || checksums->n == lengths->n);
}

static bool count_segments(struct wire_view in, struct wire_segments_in *s)
{
	struct numbers lengths = { .max = ULRPC_SEGMENTS_MAX };
	struct numbers checksums = { .max = ULRPC_SEGMENTS_MAX };

	return get_segments(in, s, &lengths, &checksums);
}

bool wire_segments_next(struct wire_view *bulks, struct wire_segments_in *s)
{
	struct wire_view in;

	return get_next(bulks, TAG(12, WT_LEN), &in) && count_segments(in, s);
}

void wire_segments_lengths(const struct wire_segments_in *s, uint32_t *out)
{
	struct numbers lengths = { .out = out, .max = s->n };
	struct numbers checksums = { .max = ULRPC_SEGMENTS_MAX };
	struct wire_segments_in again;

	get_segments(s->view, &again, &lengths, &checksums);
}

void wire_segments_checksums(const struct wire_segments_in *s, uint32_t *out)
{
	struct numbers lengths = { .max = ULRPC_SEGMENTS_MAX };
	struct numbers checksums = { .out = out, .max = s->n };
	struct wire_segments_in again;

	if (s->has_checksums)
		get_segments(s->view, &again, &lengths, &checksums);
	else
		memset(out, 0, s->n * sizeof(*out));
}

/* ---- from bytes: calls ---- */

/* Fields that are no numbers, which most calls do not have. */
static const uint8_t *get_call_rest(const uint8_t *field, const uint8_t *p,
				    const uint8_t *end, uint32_t tag,
				    struct wire_call *c)
{
	struct wire_segments_in s;
	struct wire_view in;

	switch (tag) {
	case TAG(12, WT_LEN):
		p = get_bytes(p, end, &in);
		if (!p || c->nbulks == ULRPC_BULKS_MAX ||
		    !count_segments(in, &s))
			return NULL;
		if (c->nbulks++ == 0)
			c->bulks = (struct wire_view){ field, end };
		return p;
	case TAG(13, WT_LEN):
		p = get_bytes(p, end, &in);
		if (!p)
			return NULL;
		c->trace = in.p;
		c->trace_length = (uint32_t)view_length(in);
		return p;
	default:
		return get_unknown(p, end, tag);
	}
}

/* Fields in which the calls of a message hardly differ. A sender writes them
 * one behind the other, so a call that has the bytes of the one before it need
 * not have them read again. */
struct common {
	const uint8_t *bytes;
	size_t length; /* COMMON_NONE: there is nothing to compare */
	const struct wire_call *call; /* which has what the bytes say */
};

/* So few are read as fast as compared. */
#define COMMON_MIN sizeof(uint64_t)
/* No call is as long. */
#define COMMON_NONE SIZE_MAX

/* As far as there are such fields. */
static const uint8_t *get_common(const uint8_t *p, const uint8_t *end,
				 struct wire_call *c)
{
	const uint8_t *field = p;
	uint32_t tag;

	for (; next_field(&p, end, &tag); field = p) {
		switch (tag) {
		case TAG(2, WT_VARINT):
			p = get_varint32(p, end, &c->attempt);
			break;
		case TAG(3, WT_FIXED32):
			p = get_fixed32(p, end, &c->method);
			break;
		case TAG(4, WT_VARINT):
			p = get_varint32(p, end, &c->length);
			break;
		case TAG(5, WT_VARINT):
			p = get_varint(p, end, &c->timeout);
			break;
		case TAG(6, WT_VARINT):
			p = get_varint(p, end, &c->remaining);
			break;
		case TAG(7, WT_VARINT):
			p = get_varint32(p, end, &c->flags);
			break;
		case TAG(8, WT_VARINT):
			p = get_varint32(p, end, &c->priority);
			break;
		case TAG(9, WT_VARINT):
			p = get_varint32(p, end, &c->reply_max);
			break;
		default:
			return field;
		}
	}
	return p;
}

/* The call before has others: keeps these for the next one to be compared. */
static out_of_line const uint8_t *get_common_first(const uint8_t *p,
						   const uint8_t *end,
						   struct wire_call *c,
						   struct common *common)
{
	const uint8_t *next = get_common(p, end, c);
	size_t length = next ? (size_t)(next - p) : 0;

	common->bytes = p;
	common->length = length < COMMON_MIN ? COMMON_NONE : length;
	common->call = c;
	return next;
}

/* memcmp(), of @n >= COMMON_MIN bytes: its call would take longer. */
static inline bool is_same(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t last = n - COMMON_MIN;

	for (size_t i = 0; i < last; i += COMMON_MIN)
		if (load_le64(a + i) != load_le64(b + i))
			return false;
	return load_le64(a + last) == load_le64(b + last);
}

static inline bool is_common(const struct common *common, const uint8_t *p,
			     const uint8_t *end)
{
	return (size_t)(end - p) >= common->length &&
	       is_same(p, common->bytes, common->length);
}

static inline void take_common(struct wire_call *c,
			       const struct wire_call *from)
{
	/* What has a length has a call. NOLINTNEXTLINE(clang-analyzer-*) */
	c->timeout = from->timeout;
	c->remaining = from->remaining;
	c->attempt = from->attempt;
	c->method = from->method;
	c->length = from->length;
	c->flags = from->flags;
	c->priority = from->priority;
	c->reply_max = from->reply_max;
}

/* A field where most senders do not write it: what was said before does not
 * hold. */
static const uint8_t *get_call_late(const uint8_t *field, const uint8_t *p,
				    const uint8_t *end, uint32_t tag,
				    struct wire_call *c, struct common *common)
{
	const uint8_t *next;

	if (tag == TAG(1, WT_VARINT))
		return get_varint(p, end, &c->xid);
	next = get_common(field, end, c);
	if (next == field)
		return get_call_rest(field, p, end, tag, c);
	common->length = COMMON_NONE;
	return next;
}

static bool get_call(struct wire_view in, struct wire_call *c,
		     struct common *common)
{
	const uint8_t *p = in.p, *field;
	uint32_t tag;

	wire_call_clear(c);
	if (likely(p != in.end && p[0] == TAG(1, WT_VARINT)))
		p = get_varint(p + 1, in.end, &c->xid);
	if (likely(p && is_common(common, p, in.end))) {
		take_common(c, common->call);
		p += common->length;
	} else if (p) {
		p = get_common_first(p, in.end, c, common);
	}
	for (field = p; next_field(&p, in.end, &tag); field = p) {
		switch (tag) {
		case TAG(10, WT_VARINT):
			p = get_varint32(p, in.end, &c->slot);
			break;
		case TAG(11, WT_VARINT):
			p = get_varint32(p, in.end, &c->semantics);
			break;
		default:
			p = get_call_late(field, p, in.end, tag, c, common);
		}
	}
	return p == in.end;
}

static const uint8_t *get_call_part(const uint8_t *p, const uint8_t *end,
				    struct wire_requests *m,
				    struct wire_call *calls,
				    struct common *common)
{
	struct wire_view in;

	p = get_bytes(p, end, &in);
	if (unlikely(!p || m->ncalls == WIRE_CALLS_MAX ||
		     !get_call(in, &calls[m->ncalls], common)))
		return NULL;
	m->ncalls++;
	return p;
}

static bool get_requests(struct wire_view head, struct wire_requests *m,
			 struct wire_call *calls, uint64_t *bodies)
{
	struct common common = { .length = COMMON_NONE };
	const uint8_t *p = head.p;
	uint32_t tag;

	while (next_field(&p, head.end, &tag)) {
		switch (tag) {
		case TAG(1, WT_FIXED64):
			p = get_fixed64(p, head.end, &m->connection);
			break;
		case TAG(2, WT_FIXED64):
			p = get_fixed64(p, head.end, &m->client);
			break;
		case TAG(3, WT_VARINT):
			p = get_varint32(p, head.end, &m->epoch);
			break;
		case TAG(4, WT_VARINT):
			p = get_varint(p, head.end, &m->acked);
			break;
		case TAG(5, WT_LEN):
			p = get_call_part(p, head.end, m, calls, &common);
			break;
		case TAG(15, WT_LEN):
			p = get_bodies(p, head.end, bodies);
			break;
		default:
			p = get_unknown(p, head.end, tag);
		}
	}
	return p == head.end;
}

/* Gives the calls their bodies, of which there are exactly so many bytes. */
static bool take_bodies(const struct wire_requests *m, struct wire_call *calls,
			struct wire_view bodies)
{
	for (uint32_t i = 0; i < m->ncalls; i++) {
		if (unlikely(calls[i].length > view_length(bodies)))
			return false;
		calls[i].body = bodies.p;
		bodies.p += calls[i].length;
	}
	return bodies.p == bodies.end;
}

static uint64_t sum_of_bodies(const struct wire_requests *m,
			      const struct wire_call *calls)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->ncalls; i++)
		sum += calls[i].length;
	return sum;
}

int wire_requests_decode(struct wire_requests *m,
			 struct wire_call calls[WIRE_CALLS_MAX],
			 uint64_t hdr_data, const void *payload, size_t length)
{
	struct wire_requests got = { 0 };
	struct wire_parts c;
	uint64_t bodies = 0;
	int rc;

	rc = wire_head_check(&c, WIRE_REQUESTS, hdr_data, payload, length);
	if (rc)
		return rc;
	if (!get_requests(c.head, &got, calls, &bodies) ||
	    bodies != view_length(c.bodies) ||
	    !take_bodies(&got, calls, c.bodies))
		return -EPROTO;
	*m = got;
	return 0;
}

int wire_requests_decode_heads(struct wire_requests *m,
			       struct wire_call calls[WIRE_CALLS_MAX],
			       uint64_t hdr_data, const void *payload,
			       size_t length)
{
	struct wire_requests got = { 0 };
	struct wire_parts c;
	uint64_t bodies = 0;
	int rc;

	rc = wire_head_check(&c, WIRE_REQUESTS, hdr_data, payload, length);
	if (rc)
		return rc;
	if (!get_requests(c.head, &got, calls, &bodies) ||
	    bodies < view_length(c.bodies) ||
	    bodies != sum_of_bodies(&got, calls))
		return -EPROTO;
	*m = got;
	return 0;
}
