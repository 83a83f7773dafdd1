/* SPDX-License-Identifier: BSD-3-Clause */
/* The codec: header data, and the functions that encode and decode each message
 * of wire_messages.h. */
#include "rpc/wire/wire.h"

#include <errno.h>
#include "base/crc32c.h"
#include "rpc/wire/wire_put.h"

/* ---- encoding ---- */

uint64_t wire_hdr_data(enum wire_kind kind, const void *head, size_t length)
{
	BUG_ON(length > WIRE_HEAD_MAX);
	return (uint64_t)WIRE_VERSION << 56 | (uint64_t)kind << 48 |
	       (uint64_t)length << 32 | crc32c(0, head, length);
}

uint64_t wire_hdr_opened(uint64_t hdr_data, const void *payload, size_t length)
{
	size_t head = hdr_data >> 32 & 0xffff;

	if (head > length)
		return 0;
	return wire_hdr_data(hdr_data >> 48 & 0xff, payload, head);
}

#define DEFINE_PUT(scope, message, fields)                                  \
	scope uint8_t *wire_##message##_put(uint8_t *p,                     \
					    const struct wire_##message *m) \
	{                                                                   \
		PUT_FIELDS(fields)                                          \
		return p;                                                   \
	}

#define DEFINE_PUT_ALL(scope, message, fields)                               \
	DEFINE_PUT(static, message, fields)                                  \
	scope uint8_t *wire_##message##_put_all(                             \
		uint8_t *p, unsigned int number,                             \
		const struct wire_entries *all)                              \
	{                                                                    \
		const struct wire_##message *list = all->list;               \
                                                                             \
		BUG_ON(all->n > WIRE_MAX_##message);                         \
		for (size_t i = 0; i < all->n; i++) {                        \
			uint8_t *at = put_begin(p, number);                  \
                                                                             \
			p = put_end(at, wire_##message##_put(at, &list[i])); \
		}                                                            \
		return p;                                                    \
	}

DEFINE_PUT_ALL(static, extension, WIRE_EXTENSION_FIELDS)
DEFINE_PUT_ALL(static, gone, WIRE_GONE_FIELDS)
DEFINE_PUT_ALL(static, moved, WIRE_MOVED_FIELDS)
DEFINE_PUT_ALL(, segments, WIRE_SEGMENTS_FIELDS)
DEFINE_PUT(, requests, WIRE_REQUESTS_FIELDS)
DEFINE_PUT(, replies, WIRE_REPLIES_FIELDS)

uint8_t *wire_reply_put_rare(uint8_t *p, const struct wire_reply *m)
{
	PUT_FIELDS(WIRE_REPLY_RARE)
	return p;
}

uint8_t *wire_estimate_put(uint8_t *p, uint64_t estimate)
{
	return put_varint_field(p, 5, estimate);
}

uint8_t *wire_checksum_put(uint8_t *p, uint32_t crc)
{
	return put_checksum_field(p, 6, wire_checksum(crc));
}

uint8_t *wire_flavour_put(uint8_t *p, enum wire_flavour flavour)
{
	return put_varint_field(p, 7, flavour);
}

uint8_t *wire_service_put(uint8_t *p, uint32_t number)
{
	return put_varint_field(p, 8, number);
}

uint8_t *wire_bodies_put(uint8_t *p, uint32_t length)
{
	if (!length)
		return p;
	*p++ = (uint8_t)TAG(15, WT_LEN);
	return put_varint(p, length);
}

/* Returns how many bytes, at most, a nested message takes that has two packed
 * fields of @n numbers each, and @fields bytes of other fields. */
static size_t tables_bound(size_t fields, uint32_t n)
{
	return 3 * PUT_NESTED_BOUND + fields + n * (size_t)(4 + 5);
}

/* Returns how many bytes, at most, the fields "seals" and "protection" take
 * together. */
static size_t seals_bound(struct wire_view seals)
{
	size_t length = view_length(seals);

	return length ? 2 + PUT_NESTED_BOUND + length : 2;
}

size_t wire_call_bound(const struct wire_call *call)
{
	const struct wire_segments *segments = call->bulks.list;
	size_t bound = WIRE_CALL_BOUND + view_length(call->trace);

	for (size_t i = 0; i < call->bulks.n; i++)
		bound += tables_bound(9 + 6 + 2, segments[i].n) +
			 seals_bound(segments[i].seals);
	return bound;
}

size_t wire_reply_bound(const struct wire_reply *reply)
{
	const struct wire_moved *moved = reply->bulks.list;
	size_t bound = WIRE_REPLY_BOUND;

	for (size_t i = 0; i < reply->bulks.n; i++)
		bound += tables_bound(6, moved[i].n) +
			 seals_bound(moved[i].seals);
	return bound;
}

size_t wire_control_bound(const struct wire_control *m)
{
	switch (m->kind) {
	case WIRE_EXTEND:
		return WIRE_CONTROL_BOUND +
		       m->extend.extensions.n * WIRE_ENTRY_BOUND;
	case WIRE_CANCEL:
		return WIRE_CONTROL_BOUND + m->cancel.gone.n * WIRE_ENTRY_BOUND;
	case WIRE_SHAKE:
		return WIRE_CONTROL_BOUND + view_length(m->shake.piece);
	case WIRE_SHAKEN:
		return WIRE_CONTROL_BOUND + view_length(m->shaken.piece);
	default:
		return WIRE_CONTROL_BOUND;
	}
}

#define DEFINE_PUT_CONTROL(number, kind, member) \
	DEFINE_PUT(static, member, WIRE_##kind##_FIELDS)
WIRE_CONTROLS(DEFINE_PUT_CONTROL)

#define PUT_CONTROL(number, kind, member)               \
	case number:                                    \
		p = wire_##member##_put(p, &m->member); \
		break;

size_t wire_control_encode(const struct wire_control *m, uint8_t *buf,
			   uint64_t *hdr_data)
{
	uint8_t *begin = put_begin(buf, m->kind), *p = begin;
	size_t length;

	switch (m->kind) {
		WIRE_CONTROLS(PUT_CONTROL)
	default:
		BUG_ON(true);
	}
	length = (size_t)(put_end(begin, p) - buf);
	*hdr_data = wire_hdr_data(WIRE_CONTROL, buf, length);
	return length;
}

/* ---- decoding ---- */

/* Cases of a switch by the tag of a field: each decodes the value at @p, which
 * is within @in, into @m. */
#define GET(number, type, member)                      \
	case TAG(number, WT_##type):                   \
		p = get_##type(p, in.end, &m->member); \
		break;

#define GET_NUMBERS(number, type, member)                               \
	case TAG(number, WT_LEN):                                       \
	case TAG(number, WT_##type):                                    \
		p = get_numbers(p, in.end, tag, WT_##type, &m->member); \
		break;

#define GET_ENTRIES(number, message, member)                         \
	case TAG(number, WT_LEN):                                    \
		p = get_entry(p, in, &m->member, WIRE_MAX_##message, \
			      is_##message);                         \
		break;

#define GET_FIELDS(fields) fields(GET, GET_ENTRIES, GET_NUMBERS)

/*
 * Our encoder writes the fields of a message in the order of their numbers.
 * What comes so is read by straight code: for each field in that order,
 * GET_NEXT() looks whether @next, the tag at @p, is that of the field. A walk
 * by next_field() and switch goes on from the first field that comes in another
 * way, and so decides what is valid.
 */
#define GET_NEXT(number, type, member)                  \
	if (next == TAG(number, WT_##type)) {           \
		p = get_##type(p + 1, end, &m->member); \
		next = tag_at(p, end);                  \
	}

/* Returns the tag at @p if it is a single byte. Another byte is the tag of no
 * field that our encoder writes in order, and so is 0: nothing is left, or @p
 * is NULL. */
static inline uint32_t tag_at(const uint8_t *p, const uint8_t *end)
{
	return likely(p && p != end) ? p[0] : 0;
}

/* Checks the nested message at @p with @is_one(), and counts it in @to. When
 * the first one is found, to->view is set to @in, and can refer to one range
 * only: a nested message that comes later but is not within the same @in is an
 * error. Returns the byte behind the message, or NULL: it is invalid. */
static const uint8_t *get_entry(const uint8_t *p, struct wire_view in,
				struct wire_entries *to, size_t max,
				bool (*is_one)(struct wire_view))
{
	struct wire_view entry;

	p = get_bytes(p, in.end, &entry);
	if (!p || to->n == max || !is_one(entry))
		return NULL;
	if (to->n++ == 0)
		to->view = in;
	return to->view.end == in.end ? p : NULL;
}

/* get_MESSAGE() decodes the fields in @in into @m, on top of what @m has
 * already: a message that occurs several times is merged, as in protobuf. */
#define DEFINE_GET(message, fields)                              \
	static bool get_##message(struct wire_view in,           \
				  struct wire_##message *m)      \
	{                                                        \
		const uint8_t *p = in.p;                         \
		uint32_t tag;                                    \
                                                                 \
		while (next_field(&p, in.end, &tag)) {           \
			switch (tag) {                           \
				GET_FIELDS(fields)               \
			default:                                 \
				p = get_unknown(p, in.end, tag); \
			}                                        \
		}                                                \
		return p == in.end;                              \
	}

DEFINE_GET(extension, WIRE_EXTENSION_FIELDS)
DEFINE_GET(gone, WIRE_GONE_FIELDS)
DEFINE_GET(segments_in, WIRE_SEGMENTS_FIELDS)
DEFINE_GET(moved_in, WIRE_MOVED_FIELDS)

/* read_MESSAGE() decodes one nested message. */

static bool read_extension(struct wire_view in, struct wire_extension *e)
{
	memset(e, 0, sizeof(*e));
	return get_extension(in, e);
}

static bool read_gone(struct wire_view in, struct wire_gone *g)
{
	memset(g, 0, sizeof(*g));
	return get_gone(in, g);
}

#define COUNTED                           \
	{                                 \
		.max = ULRPC_SEGMENTS_MAX \
	}

static bool are_seals(struct wire_view seals, uint32_t n)
{
	return view_length(seals) == n * (size_t)WIRE_SEAL;
}

/* Returns how many segments @m describes. */
static uint32_t segments_count(const struct wire_segments_in *m)
{
	return m->length.n;
}

static uint32_t moved_count(const struct wire_moved_in *m)
{
	size_t seals = view_length(m->seals) / WIRE_SEAL;

	return m->checksum.n ? m->checksum.n
			     : (uint32_t)MIN(seals, ULRPC_SEGMENTS_MAX);
}

/* Decodes a message with two packed fields, of which the one named @optional
 * may be missing, and with seals, which may be missing, too. */
#define DEFINE_READ_TABLES(message, optional)                            \
	static bool read_##message(struct wire_view in,                  \
				   struct wire_##message##_in *m)        \
	{                                                                \
		*m = (struct wire_##message##_in){ .length = COUNTED,    \
						   .checksum = COUNTED,  \
						   .view = in };         \
		if (!get_##message##_in(in, m))                          \
			return false;                                    \
		m->n = message##_count(m);                               \
		if (view_length(m->seals) && !are_seals(m->seals, m->n)) \
			return false;                                    \
		m->has_##optional##s = m->optional.n;                    \
		return !m->has_##optional##s || m->optional.n == m->n;   \
	}

DEFINE_READ_TABLES(segments, checksum)
DEFINE_READ_TABLES(moved, length)

#define DEFINE_ENTRY(number, message, type)                                 \
	static bool is_##message(struct wire_view in)                       \
	{                                                                   \
		struct type entry;                                          \
                                                                            \
		return read_##message(in, &entry);                          \
	}                                                                   \
                                                                            \
	bool wire_##message##_next(struct wire_view *view, struct type *to) \
	{                                                                   \
		struct wire_view in = { NULL, NULL };                       \
		bool found = get_next(view, TAG(number, WT_LEN), &in);      \
                                                                            \
		return read_##message(in, to) && found;                     \
	}

DEFINE_ENTRY(3, extension, wire_extension)
DEFINE_ENTRY(4, gone, wire_gone)
DEFINE_ENTRY(12, segments, wire_segments_in)
DEFINE_ENTRY(9, moved, wire_moved_in)

#define DEFINE_NUMBERS(message, member)                                        \
	void wire_##message##_##member##s(const struct wire_##message##_in *m, \
					  uint32_t *out)                       \
	{                                                                      \
		struct wire_##message##_in again = { .length = COUNTED,        \
						     .checksum = COUNTED };    \
                                                                               \
		again.member.out = memset(out, 0, m->n * sizeof(*out));        \
		again.member.max = m->n;                                       \
		get_##message##_in(m->view, &again);                           \
	}

DEFINE_NUMBERS(segments, length)
DEFINE_NUMBERS(segments, checksum)
DEFINE_NUMBERS(moved, length)
DEFINE_NUMBERS(moved, checksum)

/* ---- decoding a call ---- */

/* Common fields that are shorter are not compared, because decoding them is as
 * fast. */
#define COMMON_MIN sizeof(uint64_t)

/* Decodes common fields at @p, up to the first field that is not one of them.
 */
static out_of_line const uint8_t *get_common_anyhow(const uint8_t *p,
						    struct wire_view in,
						    struct wire_call *m)
{
	const uint8_t *field = p;
	uint32_t tag;

	for (; next_field(&p, in.end, &tag); field = p) {
		switch (tag) {
			GET_FIELDS(WIRE_CALL_COMMON)
		default:
			return field;
		}
	}
	return p;
}

/* Does what get_common_anyhow() does. */
static inline const uint8_t *get_common(const uint8_t *p, const uint8_t *end,
					struct wire_call *m)
{
	uint32_t next = tag_at(p, end);

	WIRE_CALL_COMMON(GET_NEXT, , )
	if (likely(p && (p == end || next == TAG(10, WT_varint32))))
		return p;
	return get_common_anyhow(p, (struct wire_view){ p, end }, m);
}

/* Does what get_common() does, and keeps the result for the next call. */
static out_of_line const uint8_t *get_common_first(const uint8_t *p,
						   struct wire_view in,
						   struct wire_call *m,
						   struct wire_common *common)
{
	const uint8_t *next = get_common(p, in.end, m);
	size_t length = next ? (size_t)(next - p) : 0;

	common->nbytes = 0;
	if (length < COMMON_MIN || length > WIRE_COMMON_MAX)
		return next;
	memcpy(common->bytes, p, length);
	common->nbytes = (uint8_t)length;
#define KEEP(number, type, member) common->member = m->member;
	WIRE_CALL_COMMON(KEEP, , )
#undef KEEP
	return next;
}

/* Are the @n bytes at @a and @b equal? Like memcmp(), but inline; @n >=
 * COMMON_MIN. */
static inline bool is_same(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t last = n - COMMON_MIN;

	for (size_t i = 0; i < last; i += COMMON_MIN)
		if (load_le64(a + i) != load_le64(b + i))
			return false;
	return load_le64(a + last) == load_le64(b + last);
}

/* Do the bytes at @p begin with those of @common? */
static inline bool is_common(const struct wire_common *common, const uint8_t *p,
			     const uint8_t *end)
{
	size_t length = common->nbytes;

	return likely(length) && (size_t)(end - p) >= length &&
	       is_same(p, common->bytes, length);
}

static inline void take_common(struct wire_call *m,
			       const struct wire_common *common)
{
#define TAKE(number, type, member) m->member = common->member;
	WIRE_CALL_COMMON(TAKE, , )
#undef TAKE
}

/* Decodes a field that most calls do not have, or that senders mostly write
 * elsewhere. If it is a common field, common->bytes lack it, and the next call
 * is not compared with them. */
static const uint8_t *get_call_late(const uint8_t *field, const uint8_t *p,
				    struct wire_view in, uint32_t tag,
				    struct wire_call *m,
				    struct wire_common *common)
{
	const uint8_t *next;

	switch (tag) {
		GET(1, varint, xid)
		GET_FIELDS(WIRE_CALL_END)
	default:
		next = get_common_anyhow(field, in, m);
		if (next == field)
			return get_unknown(p, in.end, tag);
		common->nbytes = 0;
		return next;
	}
	return p;
}

/* Decodes the fields at @p that follow the common ones, and common ones among
 * them. Returns whether all of them are valid. */
static out_of_line bool get_call_rest(const uint8_t *p, struct wire_view in,
				      struct wire_call *m,
				      struct wire_common *common)
{
	const uint8_t *field;
	uint32_t tag;

	for (field = p; next_field(&p, in.end, &tag); field = p) {
		switch (tag) {
			GET(10, varint32, slot)
		default:
			p = get_call_late(field, p, in, tag, m, common);
		}
	}
	return p == in.end;
}

static in_line bool get_call(struct wire_view in, struct wire_call *m,
			     struct wire_common *common)
{
	const uint8_t *p = in.p, *end = in.end;
	uint32_t next = tag_at(p, end);

	wire_clear(m, offsetof(struct wire_call, body));
	GET_NEXT(1, varint, xid)
	if (likely(p && is_common(common, p, end))) {
		take_common(m, common);
		p += common->nbytes;
	} else if (p) {
		p = get_common_first(p, in, m, common);
	}
	next = tag_at(p, end);
	GET_NEXT(10, varint32, slot)
	return likely(p == end) || get_call_rest(p, in, m, common);
}

/* ---- decoding requests and replies ---- */

struct parts {
	struct wire_view head;
	struct wire_view bodies;
};

/* Cuts a message into head and bodies, and checks the head. Returns 0, or an
 * error as wire.h says. */
static in_line int wire_cut(struct parts *parts, enum wire_kind kind,
			    uint64_t hdr_data, const void *payload,
			    size_t length)
{
	static const uint8_t nothing[1];
	const uint8_t *p = payload ? payload : nothing;
	size_t head = hdr_data >> 32 & 0xffff;

	if (unlikely(hdr_data >> 56 != WIRE_VERSION))
		return -EPROTONOSUPPORT;
	if (unlikely((hdr_data >> 48 & 0xff) != kind || head > length))
		return -EPROTO;
	if (unlikely(crc32c(0, p, head) != (uint32_t)hdr_data))
		return -EBADMSG;
	parts->head = (struct wire_view){ p, p + head };
	parts->bodies = (struct wire_view){ p + head, p + length };
	return 0;
}

/* What a head says of the bodies. */
struct bodies {
	uint64_t length;
	uint64_t checksum; /* checksum of the bodies; 0: there is none */
};

/* Decodes the length of the bodies, which is the last thing in a head. */
static inline const uint8_t *get_bodies(const uint8_t *p, const uint8_t *end,
					uint64_t *length)
{
	p = get_varint(p, end, length);
	return p == end ? p : NULL;
}

/* Decodes the checksum of the bodies, or skips a field that is not known. */
static out_of_line const uint8_t *get_checksum_of_bodies(const uint8_t *p,
							 const uint8_t *end,
							 uint32_t tag,
							 struct bodies *bodies)
{
	return tag == TAG(6, WT_fixed64)
		       ? get_fixed64(p, end, &bodies->checksum)
		       : get_unknown(p, end, tag);
}

/* Decodes a field that only few messages of requests have: the flavour, the
 * number of the service, or the checksum. Skips a field that is not known. */
static out_of_line const uint8_t *get_requests_rare(const uint8_t *p,
						    const uint8_t *end,
						    uint32_t tag,
						    struct wire_requests *m,
						    struct bodies *bodies)
{
	uint32_t flavour;

	if (tag == TAG(8, WT_varint32))
		return get_varint32(p, end, &m->service);
	if (tag != TAG(7, WT_varint32))
		return get_checksum_of_bodies(p, end, tag, bodies);
	p = get_varint32(p, end, &flavour);
	if (p)
		m->flavour = (uint8_t)MIN(flavour, UINT8_MAX);
	return p;
}

static in_line const uint8_t *get_call_part(const uint8_t *p,
					    const uint8_t *end,
					    struct wire_requests *m,
					    struct wire_call *calls,
					    struct wire_common *common)
{
	struct wire_view in;

	p = get_bytes(p, end, &in);
	if (unlikely(!p || m->ncalls == WIRE_CALLS_MAX ||
		     !get_call(in, &calls[m->ncalls], common)))
		return NULL;
	m->ncalls++;
	return p;
}

/* Does what get_requests() does, for the fields at @p. */
static out_of_line bool get_requests_anyhow(const uint8_t *p,
					    struct wire_view in,
					    struct wire_requests *m,
					    struct wire_call *calls,
					    struct bodies *bodies,
					    struct wire_common *common)
{
	uint32_t tag;

	while (next_field(&p, in.end, &tag)) {
		switch (tag) {
			GET_FIELDS(WIRE_REQUESTS_FIELDS)
		case TAG(5, WT_LEN):
			p = get_call_part(p, in.end, m, calls, common);
			break;
		case TAG(15, WT_LEN):
			p = get_bodies(p, in.end, &bodies->length);
			break;
		default:
			p = get_requests_rare(p, in.end, tag, m, bodies);
		}
	}
	return p == in.end;
}

static bool get_requests(struct wire_view in, struct wire_requests *m,
			 struct wire_call *calls, struct bodies *bodies,
			 struct wire_common *common)
{
	const uint8_t *p = in.p, *end = in.end;
	uint32_t next = tag_at(p, end);

	WIRE_REQUESTS_FIELDS(GET_NEXT, , )
	while (next == TAG(5, WT_LEN)) {
		p = get_call_part(p + 1, end, m, calls, common);
		next = tag_at(p, end);
	}
	if (likely(next == TAG(15, WT_LEN)))
		p = get_bodies(p + 1, end, &bodies->length);
	return likely(p == end) ||
	       get_requests_anyhow(p, in, m, calls, bodies, common);
}

/* Decodes the fields at @p, of whatever kind. */
static out_of_line bool get_reply_rest(const uint8_t *p, struct wire_view in,
				       struct wire_reply *m)
{
	uint32_t tag;

	while (next_field(&p, in.end, &tag)) {
		switch (tag) {
			GET_FIELDS(WIRE_REPLY_FIELDS)
		default:
			p = get_unknown(p, in.end, tag);
		}
	}
	return p == in.end;
}

static in_line bool get_reply(struct wire_view in, struct wire_reply *m)
{
	const uint8_t *p = in.p, *end = in.end;
	uint32_t next = tag_at(p, end);

	wire_clear(m, offsetof(struct wire_reply, body));
	WIRE_REPLY_USUAL(GET_NEXT, , )
	return likely(p == end) || get_reply_rest(p, in, m);
}

static in_line const uint8_t *get_reply_part(const uint8_t *p,
					     const uint8_t *end,
					     struct wire_replies *m,
					     struct wire_reply *replies)
{
	struct wire_view in;

	p = get_bytes(p, end, &in);
	if (unlikely(!p || m->nreplies == WIRE_CALLS_MAX ||
		     !get_reply(in, &replies[m->nreplies])))
		return NULL;
	m->nreplies++;
	return p;
}

/* Does what get_replies() does, for the fields at @p. */
static out_of_line bool get_replies_anyhow(const uint8_t *p,
					   struct wire_view in,
					   struct wire_replies *m,
					   struct wire_reply *replies,
					   struct bodies *bodies)
{
	uint32_t tag;

	while (next_field(&p, in.end, &tag)) {
		switch (tag) {
			GET_FIELDS(WIRE_REPLIES_FIELDS)
			GET(5, varint, estimate)
		case TAG(4, WT_LEN):
			p = get_reply_part(p, in.end, m, replies);
			break;
		case TAG(15, WT_LEN):
			p = get_bodies(p, in.end, &bodies->length);
			break;
		default:
			p = get_checksum_of_bodies(p, in.end, tag, bodies);
		}
	}
	return p == in.end;
}

static bool get_replies(struct wire_view in, struct wire_replies *m,
			struct wire_reply *replies, struct bodies *bodies)
{
	const uint8_t *p = in.p, *end = in.end;
	uint32_t next = tag_at(p, end);

	WIRE_REPLIES_FIELDS(GET_NEXT, , )
	GET_NEXT(5, varint, estimate)
	while (next == TAG(4, WT_LEN)) {
		p = get_reply_part(p + 1, end, m, replies);
		next = tag_at(p, end);
	}
	if (likely(next == TAG(15, WT_LEN)))
		p = get_bodies(p + 1, end, &bodies->length);
	return likely(p == end) ||
	       get_replies_anyhow(p, in, m, replies, bodies);
}

/* Sets the body of each of @n calls or replies. Returns false if their lengths
 * do not add up to the length of @bodies. */
#define DEFINE_TAKE_BODIES(of)                                              \
	static bool take_bodies_of_##of(struct wire_view bodies,            \
					struct wire_##of *list, uint32_t n) \
	{                                                                   \
		for (uint32_t i = 0; i < n; i++) {                          \
			if (unlikely(list[i].length > view_length(bodies))) \
				return false;                               \
			list[i].body = bodies.p;                            \
			bodies.p += list[i].length;                         \
		}                                                           \
		return bodies.p == bodies.end;                              \
	}

DEFINE_TAKE_BODIES(call)
DEFINE_TAKE_BODIES(reply)

static out_of_line bool are_damaged(struct wire_view bodies, uint64_t checksum)
{
	return wire_checksum(crc32c(0, bodies.p, view_length(bodies))) !=
	       checksum;
}

static uint64_t sum_of_bodies(const struct wire_requests *m,
			      const struct wire_call *calls)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->ncalls; i++)
		sum += calls[i].length;
	return sum;
}

static int decode_requests(struct wire_requests *m, struct wire_call *calls,
			   struct wire_common *common, uint64_t hdr_data,
			   const void *payload, size_t length, bool whole)
{
	struct bodies bodies = { 0 };
	struct parts parts;
	int rc;

	rc = wire_cut(&parts, WIRE_REQUESTS, hdr_data, payload, length);
	if (rc)
		return rc;
	*m = (struct wire_requests){ 0 };
	if (!get_requests(parts.head, m, calls, &bodies, common) ||
	    bodies.length < view_length(parts.bodies))
		return -EPROTO;
	if (whole ? bodies.length != view_length(parts.bodies) ||
			    !take_bodies_of_call(parts.bodies, calls, m->ncalls)
		  : bodies.length != sum_of_bodies(m, calls))
		return -EPROTO;
	if (unlikely(bodies.checksum)) {
		if (whole && are_damaged(parts.bodies, bodies.checksum))
			return -EBADMSG;
		m->checked = true;
	}
	return 0;
}

int wire_requests_decode(struct wire_requests *m,
			 struct wire_call calls[WIRE_CALLS_MAX],
			 struct wire_common *common, uint64_t hdr_data,
			 const void *payload, size_t length)
{
	return decode_requests(m, calls, common, hdr_data, payload, length,
			       true);
}

int wire_requests_decode_heads(struct wire_requests *m,
			       struct wire_call calls[WIRE_CALLS_MAX],
			       uint64_t hdr_data, const void *payload,
			       size_t length)
{
	struct wire_common common;

	common.nbytes = 0;
	return decode_requests(m, calls, &common, hdr_data, payload, length,
			       false);
}

int wire_replies_decode(struct wire_replies *m, struct wire_reply *reply,
			uint64_t hdr_data, const void *payload, size_t length)
{
	struct bodies bodies = { 0 };
	struct parts parts;
	int rc;

	rc = wire_cut(&parts, WIRE_REPLIES, hdr_data, payload, length);
	if (rc)
		return rc;
	*m = (struct wire_replies){ 0 };
	if (!get_replies(parts.head, m, reply, &bodies) ||
	    bodies.length != view_length(parts.bodies) ||
	    !take_bodies_of_reply(parts.bodies, reply, m->nreplies))
		return -EPROTO;
	if (unlikely(bodies.checksum)) {
		if (are_damaged(parts.bodies, bodies.checksum))
			return -EBADMSG;
		m->checked = true;
	}
	return 0;
}

/* ---- control ---- */

#define CONTROL_CLIENT(number, kind, member) \
	case number:                         \
		return m->member.client;
#define CONTROL_EPOCH(number, kind, member) \
	case number:                        \
		return m->member.epoch;

uint64_t wire_control_client(const struct wire_control *m)
{
	switch (m->kind) {
		WIRE_CONTROLS(CONTROL_CLIENT)
	default:
		return 0;
	}
}

uint32_t wire_control_epoch(const struct wire_control *m)
{
	switch (m->kind) {
		WIRE_CONTROLS(CONTROL_EPOCH)
	default:
		return 0;
	}
}

#define DEFINE_GET_CONTROL(number, kind, member) \
	DEFINE_GET(member, WIRE_##kind##_FIELDS)
WIRE_CONTROLS(DEFINE_GET_CONTROL)

#define GET_CONTROL(number, kind, member) \
	case number:                      \
		return get_##member(in, &m->member);

static bool get_kind(struct wire_view in, enum wire_control_kind kind,
		     struct wire_control *m)
{
	if (m->kind != WIRE_CONTROL_UNKNOWN && m->kind != kind)
		return false;
	m->kind = kind;
	switch (kind) {
		WIRE_CONTROLS(GET_CONTROL)
	default:
		return false;
	}
}

static bool get_control(struct wire_view head, struct wire_control *m)
{
	const uint8_t *p = head.p;
	struct wire_view in;
	uint32_t tag;

	while (next_field(&p, head.end, &tag)) {
		if ((tag & 7) != WT_LEN || tag >> 3 < WIRE_CONNECT ||
		    tag >> 3 > WIRE_LOST) {
			p = get_unknown(p, head.end, tag);
			continue;
		}
		p = get_bytes(p, head.end, &in);
		if (!p || !get_kind(in, tag >> 3, m))
			return false;
	}
	return p == head.end;
}

int wire_control_decode(struct wire_control *m, uint64_t hdr_data,
			const void *payload, size_t length)
{
	struct wire_control got;
	struct parts parts;
	int rc;

	rc = wire_cut(&parts, WIRE_CONTROL, hdr_data, payload, length);
	if (rc)
		return rc;
	memset(&got, 0, sizeof(got));
	if (view_length(parts.bodies) || !get_control(parts.head, &got))
		return -EPROTO;
	*m = got;
	return 0;
}
