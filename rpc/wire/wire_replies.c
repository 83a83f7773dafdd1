/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies, to and from bytes.
 */
#include "rpc/wire/wire_field.h"

#include <errno.h>
#include "rpc/wire/wire_head.h"
#include "rpc/wire/wire_reply.h"

/* ---- to bytes ---- */

#define MOVED_BOUND(n) \
	(PUT_NESTED_BOUND + 6u + 2 * PUT_NESTED_BOUND + (n) * (4u + 5u))

uint8_t *wire_replies_put(uint8_t *p, const struct wire_replies *m)
{
	p = put_fixed64_field(p, 1, m->client);
	p = put_varint_field(p, 2, m->epoch);
	return put_varint_field(p, 3, m->window);
}

uint8_t *wire_estimate_put(uint8_t *p, uint64_t estimate)
{
	return put_varint_field(p, 5, estimate);
}

static uint8_t *put_moved(uint8_t *p, const struct wire_moved *m)
{
	uint8_t *begin = put_begin(p, 9);

	BUG_ON(m->n > ULRPC_SEGMENTS_MAX);
	p = put_varint_field(begin, 1, m->index);
	p = put_packed_fixed32(p, 2, m->checksum, m->n);
	if (m->length)
		p = put_packed_varint(p, 3, m->length, m->n);
	return put_end(begin, p);
}

size_t wire_reply_bound(const struct wire_reply *reply)
{
	size_t bound = WIRE_REPLY_BOUND;

	for (uint32_t i = 0; i < reply->nbulks; i++)
		bound += MOVED_BOUND(reply->bulk[i].n);
	return bound;
}

uint8_t *wire_reply_put_rest(uint8_t *p, const struct wire_reply *reply)
{
	BUG_ON(reply->nbulks > ULRPC_BULKS_MAX);
	p = put_varint_field(p, 8, reply->retry_after);
	for (uint32_t i = 0; i < reply->nbulks; i++)
		p = put_moved(p, &reply->bulk[i]);
	p = put_varint_field(p, 10, reply->throttled);
	p = put_varint_field(p, 11, reply->needed);
	p = put_varint_field(p, 12, reply->absent);
	p = put_fixed64_field(p, 13, reply->held);
	return put_varint_field(p, 14, reply->unexecuted);
}

/* ---- from bytes ---- */

static bool get_moved(struct wire_view in, struct wire_moved_in *m,
		      struct numbers *checksums, struct numbers *lengths)
{
	const uint8_t *p = in.p;
	uint32_t tag;

	*m = (struct wire_moved_in){ .view = in };
	while (next_field(&p, in.end, &tag)) {
		switch (tag) {
		case TAG(1, WT_VARINT):
			p = get_varint32(p, in.end, &m->index);
			break;
		case TAG(2, WT_LEN):
			p = get_packed_fixed32(p, in.end, checksums);
			break;
		case TAG(2, WT_FIXED32):
			p = get_fixed32_into(p, in.end, checksums);
			break;
		case TAG(3, WT_LEN):
			p = get_packed_varint(p, in.end, lengths);
			break;
		case TAG(3, WT_VARINT):
			p = get_varint_into(p, in.end, lengths);
			break;
		default:
			p = get_unknown(p, in.end, tag);
		}
	}
	m->n = checksums->n;
	m->has_lengths = lengths->n;
	return p == in.end && (lengths->n == 0 || lengths->n == checksums->n);
}

static bool count_moved(struct wire_view in, struct wire_moved_in *m)
{
	struct numbers checksums = { .max = ULRPC_SEGMENTS_MAX };
	struct numbers lengths = { .max = ULRPC_SEGMENTS_MAX };

	return get_moved(in, m, &checksums, &lengths);
}

bool wire_moved_next(struct wire_view *bulks, struct wire_moved_in *m)
{
	struct wire_view in;

	return get_next(bulks, TAG(9, WT_LEN), &in) && count_moved(in, m);
}

void wire_moved_checksums(const struct wire_moved_in *m, uint32_t *out)
{
	struct numbers checksums = { .out = out, .max = m->n };
	struct numbers lengths = { .max = ULRPC_SEGMENTS_MAX };
	struct wire_moved_in again;

	get_moved(m->view, &again, &checksums, &lengths);
}

void wire_moved_lengths(const struct wire_moved_in *m, uint32_t *out)
{
	struct numbers checksums = { .max = ULRPC_SEGMENTS_MAX };
	struct numbers lengths = { .out = out, .max = m->n };
	struct wire_moved_in again;

	get_moved(m->view, &again, &checksums, &lengths);
}

static inline void set_reply(struct wire_reply *r, uint32_t number, uint64_t v)
{
	switch (number) {
	case 1:
		r->xid = v;
		break;
	case 2:
		r->attempt = (uint32_t)v;
		break;
	case 3:
		r->status = (uint32_t)v;
		break;
	case 4:
		r->error = (uint32_t)v;
		break;
	case 5:
		r->length = (uint32_t)v;
		break;
	case 6:
		r->queue = v;
		break;
	case 7:
		r->service = v;
		break;
	case 8:
		r->retry_after = v;
		break;
	case 10:
		r->throttled = v;
		break;
	case 11:
		r->needed = (uint32_t)v;
		break;
	case 12:
		r->absent = v;
		break;
	case 14:
		r->unexecuted = v;
		break;
	}
}

static const uint8_t *get_reply_rest(const uint8_t *field, const uint8_t *p,
				     const uint8_t *end, uint32_t tag,
				     struct wire_reply *r)
{
	struct wire_moved_in m;
	struct wire_view in;

	if (tag == TAG(13, WT_FIXED64))
		return get_fixed64(p, end, &r->held);
	if (tag != TAG(9, WT_LEN))
		return get_unknown(p, end, tag);
	p = get_bytes(p, end, &in);
	if (!p || r->nbulks == ULRPC_BULKS_MAX || !count_moved(in, &m))
		return NULL;
	if (r->nbulks++ == 0)
		r->bulks = (struct wire_view){ field, end };
	return p;
}

static bool get_reply(struct wire_view in, struct wire_reply *r)
{
	const uint8_t *p = in.p, *field;
	uint64_t v;
	uint32_t tag;

	wire_reply_clear(r);
	/* Most have little more. */
	if (likely(p != in.end && p[0] == TAG(1, WT_VARINT)))
		p = get_varint(p + 1, in.end, &r->xid);
	for (field = p; next_field(&p, in.end, &tag); field = p) {
		if (unlikely(!is_number(tag))) {
			p = get_reply_rest(field, p, in.end, tag, r);
			continue;
		}
		p = get_varint(p, in.end, &v);
		if (unlikely(!p))
			return false;
		set_reply(r, tag >> 3, v);
	}
	return p == in.end;
}

/* Adds the next of @m->nreplies. */
static const uint8_t *get_reply_part(const uint8_t *p, const uint8_t *end,
				     struct wire_replies *m,
				     struct wire_reply *reply)
{
	struct wire_view in;

	p = get_bytes(p, end, &in);
	if (unlikely(!p || m->nreplies == WIRE_CALLS_MAX ||
		     !get_reply(in, &reply[m->nreplies])))
		return NULL;
	m->nreplies++;
	return p;
}

static bool get_replies(struct wire_view head, struct wire_replies *m,
			struct wire_reply *reply, uint64_t *bodies)
{
	const uint8_t *p = head.p;
	uint32_t tag;

	while (next_field(&p, head.end, &tag)) {
		switch (tag) {
		case TAG(1, WT_FIXED64):
			p = get_fixed64(p, head.end, &m->client);
			break;
		case TAG(2, WT_VARINT):
			p = get_varint32(p, head.end, &m->epoch);
			break;
		case TAG(3, WT_VARINT):
			p = get_varint32(p, head.end, &m->window);
			break;
		case TAG(4, WT_LEN):
			p = get_reply_part(p, head.end, m, reply);
			break;
		case TAG(5, WT_VARINT):
			p = get_varint(p, head.end, &m->estimate);
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

/* Gives each reply its body. Together they are to have all there is. */
static bool cut_bodies(struct wire_view bodies, struct wire_reply *reply,
		       uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (unlikely(reply[i].length > view_length(bodies)))
			return false;
		reply[i].body = bodies.p;
		bodies.p += reply[i].length;
	}
	return bodies.p == bodies.end;
}

int wire_replies_decode(struct wire_replies *m, struct wire_reply *reply,
			uint64_t hdr_data, const void *payload, size_t length)
{
	struct wire_replies got = { 0 };
	struct wire_parts c;
	uint64_t bodies = 0;
	int rc;

	rc = wire_head_check(&c, WIRE_REPLIES, hdr_data, payload, length);
	if (rc)
		return rc;
	if (!get_replies(c.head, &got, reply, &bodies) ||
	    bodies != view_length(c.bodies) ||
	    !cut_bodies(c.bodies, reply, got.nreplies))
		return -EPROTO;
	*m = got;
	return 0;
}
