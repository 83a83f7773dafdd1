/* SPDX-License-Identifier: BSD-3-Clause */
/* Rewrites a message as other versions of the protocol, or other encoders,
 * would write it: in each nested message the bytes differ, but their meaning
 * does not. */
#ifndef TESTS_WIRE_REWRITE_H
#define TESTS_WIRE_REWRITE_H

#include "rpc/wire/wire_field.h"
#include "wire_hex.h"

#define SOURCE_MAX 1024

/* Kinds of messages, by the messages that may be nested in them. */
enum message {
	LEAF,
	REQUESTS,
	CALL,
	SEGMENTS,
	REPLIES,
	REPLY,
	MOVED,
	CONTROL,
	EXTEND,
	CANCEL,
	ENTRY,
	MESSAGES
};

static inline enum message message_in(enum message m, unsigned int number)
{
	switch (m) {
	case REQUESTS:
		return number == 5 ? CALL : LEAF;
	case CALL:
		return number == 12 ? SEGMENTS : LEAF;
	case REPLIES:
		return number == 4 ? REPLY : LEAF;
	case REPLY:
		return number == 9 ? MOVED : LEAF;
	case CONTROL:
		return number == WIRE_EXTEND   ? EXTEND
		       : number == WIRE_CANCEL ? CANCEL
					       : LEAF;
	case EXTEND:
		return number == 3 ? ENTRY : LEAF;
	case CANCEL:
		return number == 4 ? ENTRY : LEAF;
	default:
		return LEAF;
	}
}

static inline bool is_message(enum message m, unsigned int number)
{
	return m == CONTROL || message_in(m, number) != LEAF;
}

/* Returns the wire type of the numbers in a packed field, + 8; 0: the field is
 * not packed. */
static inline unsigned int packed_type(enum message m, unsigned int number)
{
	if ((m == SEGMENTS || m == MOVED) && number == 3)
		return WT_VARINT + 8;
	if ((m == SEGMENTS && number == 4) || (m == MOVED && number == 2))
		return WT_FIXED32 + 8;
	return 0;
}

struct field {
	unsigned int number, type;
	const uint8_t *bytes, *end; /* with the tag */
	struct wire_view content;   /* the content, if the type is WT_LEN */
};

/* Returns the field at @p of a well-formed message. */
static inline struct field field_at(const uint8_t *p, const uint8_t *end)
{
	struct field f = { .bytes = p };
	uint32_t tag;

	BUG_ON(!next_field(&p, end, &tag));
	f.number = tag >> 3;
	f.type = tag & 7;
	f.end = get_unknown(p, end, tag);
	BUG_ON(!f.end);
	if (f.type == WT_LEN)
		get_bytes(p, end, &f.content);
	return f;
}

/* Writes @f, a field of @m, to @p, possibly with other fields. Returns the end.
 */
typedef uint8_t *(*rewrite_fn)(uint8_t *p, enum message m,
			       const struct field *f);

static inline uint8_t *write_same(uint8_t *p, const struct field *f)
{
	memcpy(p, f->bytes, (size_t)(f->end - f->bytes));
	return p + (f->end - f->bytes);
}

static inline uint8_t *rewrite(uint8_t *p, enum message m, struct wire_view in,
			       rewrite_fn fn)
{
	while (in.p < in.end) {
		struct field f = field_at(in.p, in.end);
		static uint8_t within[MESSAGES][16 * SOURCE_MAX];
		uint8_t *end;

		in.p = f.end;
		if (f.type != WT_LEN || !is_message(m, f.number)) {
			p = fn(p, m, &f);
			continue;
		}
		/* Nested messages are rewritten first, also those without
		 * fields. */
		end = rewrite(within[m], message_in(m, f.number), f.content,
			      fn);
		f.content = (struct wire_view){ within[m], end };
		p = fn(p, m, &f);
	}
	return p;
}

/* Writes a nested message whose content rewrite() has rewritten. */
static inline uint8_t *write_nested(uint8_t *p, const struct field *f)
{
	size_t length = view_length(f->content);

	p = put_varint(p, TAG(f->number, WT_LEN));
	p = put_varint(p, length);
	memcpy(p, f->content.p, length);
	return p + length;
}

static inline uint8_t *write_plain(uint8_t *p, enum message m,
				   const struct field *f)
{
	return f->type == WT_LEN && is_message(m, f->number)
		       ? write_nested(p, f)
		       : write_same(p, f);
}

/* Writes unknown fields before each known one, as a later version would. */
static inline uint8_t *write_unknown(uint8_t *p, enum message m,
				     const struct field *f)
{
	static const char unknown[] =
		"f8 07 ff*9 01 "    /* 127: a number */
		"80 01 00 "	    /* 16 */
		"f9 07 09*8 "	    /* 127: 8 bytes */
		"fa 07 05 0b 0c*4 " /* bytes that are no message */
		"fa 07 00 "
		"fd 07 02*4 "
		"fa ff ff ff 0f 02 08 01"; /* the largest number */

	p += unhex(unknown, p, sizeof(unknown));
	return write_plain(p, m, f);
}

/* Writes scalars twice; the second value counts. */
static inline uint8_t *write_twice(uint8_t *p, enum message m,
				   const struct field *f)
{
	p = put_varint(p, TAG(f->number, f->type));
	switch (f->type) {
	case WT_VARINT:
		p = put_varint(p, 1000000);
		break;
	case WT_FIXED64:
		memset(p, 0x55, 8);
		p += 8;
		break;
	case WT_FIXED32:
		memset(p, 0x55, 4);
		p += 4;
		break;
	default:
		p -= 1;
	}
	return write_plain(p, m, f);
}

/* Writes packed numbers as single fields. */
static inline uint8_t *write_unpacked(uint8_t *p, enum message m,
				      const struct field *f)
{
	unsigned int type = packed_type(m, f->number);
	const uint8_t *in = f->content.p;

	if (!type)
		return write_plain(p, m, f);
	while (in < f->content.end) {
		const uint8_t *next = in + 4;
		uint64_t v;

		if (type == WT_VARINT + 8)
			next = get_varint(in, f->content.end, &v);
		*p++ = (uint8_t)TAG(f->number, type - 8);
		memcpy(p, in, (size_t)(next - in));
		p += next - in;
		in = next;
	}
	return p;
}

/* Writes tags and lengths in more bytes than they need. */
static inline uint8_t *write_padded(uint8_t *p, enum message m,
				    const struct field *f)
{
	uint32_t tag = TAG(f->number, f->type);
	size_t length = view_length(f->content);

	if (f->type != WT_LEN)
		return write_plain(p, m, f);
	p[0] = (uint8_t)(tag | 0x80);
	p[1] = 0x80;
	p[2] = 0;
	p += 3;
	for (unsigned int i = 0; i < 9; i++, length >>= 7)
		*p++ = (uint8_t)(length | 0x80);
	*p++ = 0;
	memcpy(p, f->content.p, view_length(f->content));
	return p + view_length(f->content);
}

static inline enum message top(enum wire_kind kind)
{
	return kind == WIRE_REQUESTS  ? REQUESTS
	       : kind == WIRE_REPLIES ? REPLIES
				      : CONTROL;
}

#endif
