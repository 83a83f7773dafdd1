/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests, to and from bytes. What is read when a message is opened is read
 * again when its calls are asked for, and that finds nothing new; it is bounded
 * all the same.
 */
#include "rpc/wire_field.h"

#include <errno.h>
#include "rpc/wire_call.h"
#include "rpc/wire_head.h"

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

static inline void set_call(struct wire_call *c, uint32_t number, uint64_t v)
{
	switch (number) {
	case 1:
		c->xid = v;
		break;
	case 2:
		c->attempt = (uint32_t)v;
		break;
	case 4:
		c->length = (uint32_t)v;
		break;
	case 5:
		c->timeout = v;
		break;
	case 6:
		c->remaining = v;
		break;
	case 7:
		c->flags = (uint32_t)v;
		break;
	case 8:
		c->priority = (uint32_t)v;
		break;
	case 9:
		c->reply_max = (uint32_t)v;
		break;
	case 10:
		c->slot = (uint32_t)v;
		break;
	case 11:
		c->semantics = (uint32_t)v;
		break;
	}
}

/* What is not a number, and not there in most calls. */
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

static inline const uint8_t *get_call_other(const uint8_t *field,
					    const uint8_t *p,
					    const uint8_t *end, uint32_t tag,
					    struct wire_call *c)
{
	if (likely(tag == TAG(3, WT_FIXED32)))
		return get_fixed32(p, end, &c->method);
	return get_call_rest(field, p, end, tag, c);
}

/* What all of it says. */
static bool get_call(struct wire_view in, struct wire_call *c)
{
	const uint8_t *p = in.p, *field = p;
	uint64_t v;
	uint32_t tag;

	*c = (struct wire_call){ 0 };
	for (; next_field(&p, in.end, &tag); field = p) {
		if (unlikely(!is_number(tag))) {
			p = get_call_other(field, p, in.end, tag, c);
			continue;
		}
		p = get_varint(p, in.end, &v);
		if (unlikely(!p))
			return false;
		set_call(c, tag >> 3, v);
	}
	return p == in.end;
}

/* Is all of it well-formed? Sets its length and no other number. */
static bool check_call(struct wire_view in, struct wire_call *c)
{
	const uint8_t *p = in.p, *field = p;
	uint32_t tag;

	c->length = 0;
	c->nbulks = 0;
	for (; next_field(&p, in.end, &tag); field = p) {
		if (unlikely(!is_number(tag)))
			p = get_call_other(field, p, in.end, tag, c);
		else if (tag >> 3 == 4)
			p = get_varint32(p, in.end, &c->length);
		else
			p = skip_varint(p, in.end);
	}
	return p == in.end;
}

static const uint8_t *get_call_part(const uint8_t *p, const uint8_t *end,
				    struct parts *parts)
{
	struct wire_call c;
	struct wire_view in;

	p = get_bytes(p, end, &in);
	if (unlikely(!p || parts->n == WIRE_CALLS_MAX || !check_call(in, &c)))
		return NULL;
	parts->n++;
	parts->bodies += c.length;
	return p;
}

static bool get_requests(struct wire_view head, struct wire_requests *m,
			 struct parts *parts, uint64_t *bodies)
{
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
			p = get_call_part(p, head.end, parts);
			break;
		case TAG(15, WT_LEN):
			p = get_bodies(p, head.end, bodies);
			break;
		default:
			p = get_unknown(p, head.end, tag);
		}
	}
	m->ncalls = parts->n;
	return p == head.end && parts->bodies == *bodies;
}

static int requests_open(struct wire_cursor *cursor, uint64_t hdr_data,
			 const void *payload, size_t length, bool whole,
			 struct wire_requests *m)
{
	struct wire_requests got = { 0 };
	struct parts parts = { 0 };
	struct wire_cursor c;
	uint64_t bodies = 0;
	int rc;

	rc = wire_head_check(&c, WIRE_REQUESTS, hdr_data, payload, length);
	if (rc)
		return rc;
	if (!get_requests(c.head, &got, &parts, &bodies) ||
	    (whole ? bodies != view_length(c.bodies)
		   : bodies < view_length(c.bodies)))
		return -EPROTO;
	*m = got;
	*cursor = c;
	return 0;
}

int wire_requests_open(struct wire_cursor *cursor, uint64_t hdr_data,
		       const void *payload, size_t length,
		       struct wire_requests *m)
{
	return requests_open(cursor, hdr_data, payload, length, true, m);
}

int wire_requests_open_head(struct wire_cursor *cursor, uint64_t hdr_data,
			    const void *payload, size_t length,
			    struct wire_requests *m)
{
	return requests_open(cursor, hdr_data, payload, length, false, m);
}

bool wire_requests_next_head(struct wire_cursor *cursor, struct wire_call *call)
{
	struct wire_view in;

	if (!get_next(&cursor->head, TAG(5, WT_LEN), &in) ||
	    unlikely(!get_call(in, call)))
		return false;
	call->body = NULL;
	return true;
}

bool wire_requests_next(struct wire_cursor *cursor, struct wire_call *call)
{
	if (!wire_requests_next_head(cursor, call))
		return false;
	call->body = take_body(cursor, call->length);
	return call->body;
}
