/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes and decodes single fields of any protobuf message.
 *
 * The get_* functions read at @p, never at @end or beyond, and return a pointer
 * to what follows the field, or NULL if the bytes are malformed. The put_*
 * functions write at @p, where the caller has made sure that there is room, and
 * return the end of what they wrote.
 */
#ifndef RPC_WIRE_FIELD_H
#define RPC_WIRE_FIELD_H

#include <string.h>
#include "base/buf.h"
#include "rpc/wire/wire.h"

/* The wire types of protobuf. */
enum {
	WT_VARINT = 0,
	WT_FIXED64 = 1,
	WT_LEN = 2,
	WT_FIXED32 = 5,
};

#define TAG(number, type) ((uint32_t)(number) << 3 | (type))

/* The wire type of each type that wire_messages.h uses. get_TYPE() decodes a
 * value of the type, put_TYPE_field() encodes a field. */
enum {
	WT_varint = WT_VARINT,
	WT_varint32 = WT_VARINT,
	WT_flag = WT_VARINT,
	WT_fixed64 = WT_FIXED64,
	WT_checksum = WT_FIXED64, /* what wire_checksum() returns; 0: none */
	WT_fixed32 = WT_FIXED32,
	WT_bytes = WT_LEN,
	WT_id = WT_LEN,	  /* WIRE_ID_SIZE bytes; no byte if all are 0 */
	WT_name = WT_LEN, /* a string with less than ULRPC_SERVICE_NAME bytes */
};

#define VARINT_MAX 10 /* bytes of a varint, at most */

const uint8_t *get_long_varint(const uint8_t *p, const uint8_t *end,
			       uint64_t *v);
/* Skips the value of a field that is not known, by its wire type in @tag. */
const uint8_t *get_unknown(const uint8_t *p, const uint8_t *end, uint32_t tag);
/* Sets *@out to the content of the next field in @v that has @tag, whose wire
 * type is WT_LEN, and advances @v past the field. Returns false if there is no
 * such field; then @v is empty. */
bool get_next(struct wire_view *v, uint32_t tag, struct wire_view *out);
/* Reads a repeated field of numbers whose wire type is @type: all numbers if
 * @tag says that the field is packed, otherwise one number. */
const uint8_t *get_numbers(const uint8_t *p, const uint8_t *end, uint32_t tag,
			   unsigned int type, struct wire_numbers *to);
const uint8_t *get_checksum(const uint8_t *p, const uint8_t *end, uint64_t *v);
/* Set all bytes of *@id or *@name, unless the value is malformed. */
const uint8_t *get_id(const uint8_t *p, const uint8_t *end,
		      uint8_t (*id)[WIRE_ID_SIZE]);
const uint8_t *get_name(const uint8_t *p, const uint8_t *end,
			char (*name)[ULRPC_SERVICE_NAME]);

static inline const uint8_t *get_varint(const uint8_t *p, const uint8_t *end,
					uint64_t *v)
{
	if (likely(p < end && p[0] < 0x80)) {
		*v = p[0];
		return p + 1;
	}
	if (likely(end - p >= 2) && p[1] < 0x80) {
		*v = (p[0] & 0x7fu) | (uint32_t)p[1] << 7;
		return p + 2;
	}
	return get_long_varint(p, end, v);
}

static inline const uint8_t *skip_varint(const uint8_t *p, const uint8_t *end)
{
	if (end - p > VARINT_MAX)
		end = p + VARINT_MAX;
	while (likely(p < end))
		if (likely(*p++ < 0x80))
			return p;
	return NULL;
}

/* Reads a tag of more than one byte. */
static inline const uint8_t *get_long_tag(const uint8_t *p, const uint8_t *end,
					  uint32_t *tag)
{
	uint64_t v;

	p = get_long_varint(p, end, &v);
	if (!p || v > UINT32_MAX)
		return NULL;
	*tag = (uint32_t)v;
	return p;
}

/*
 * Walks the fields of a message: reads the tag of the next field. Then the
 * caller moves *@p past the field's value, or sets *@p to NULL if the value is
 * malformed. Returns false if the message has ended, and *@p is @end; or after
 * an error, and *@p is NULL.
 */
static inline bool next_field(const uint8_t **p, const uint8_t *end,
			      uint32_t *tag)
{
	const uint8_t *at = *p;

	if (unlikely(!at) || at == end)
		return false;
	if (unlikely(at[0] >= 0x80)) {
		*p = get_long_tag(at, end, tag);
		return *p;
	}
	*tag = at[0];
	*p = at + 1;
	return true;
}

static inline const uint8_t *get_fixed64(const uint8_t *p, const uint8_t *end,
					 uint64_t *v)
{
	if (unlikely(end - p < 8))
		return NULL;
	*v = load_le64(p);
	return p + 8;
}

static inline const uint8_t *get_fixed32(const uint8_t *p, const uint8_t *end,
					 uint32_t *v)
{
	if (unlikely(end - p < 4))
		return NULL;
	*v = load_le32(p);
	return p + 4;
}

static inline const uint8_t *get_bytes(const uint8_t *p, const uint8_t *end,
				       struct wire_view *view)
{
	uint64_t length;

	p = get_varint(p, end, &length);
	if (unlikely(!p || length > (size_t)(end - p)))
		return NULL;
	view->p = p;
	view->end = p + length;
	return p + length;
}

/* Reads a number of 32 bits. As in protobuf, the upper bits of a longer number
 * are cut off. */
static inline const uint8_t *get_varint32(const uint8_t *p, const uint8_t *end,
					  uint32_t *v)
{
	uint64_t wide;

	p = get_varint(p, end, &wide);
	if (likely(p))
		*v = (uint32_t)wide;
	return p;
}

static inline const uint8_t *get_flag(const uint8_t *p, const uint8_t *end,
				      bool *v)
{
	uint64_t wide;

	p = get_varint(p, end, &wide);
	if (likely(p))
		*v = wide;
	return p;
}

static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* Writes a field. Like all put_*_field(), writes nothing if the value is 0, the
 * default. */
static inline uint8_t *put_varint_field(uint8_t *p, unsigned int number,
					uint64_t v)
{
	if (!v)
		return p;
	/* The compiler knows the number. */
	if (number >= 16)
		p = put_varint(p, TAG(number, WT_VARINT));
	else
		*p++ = (uint8_t)TAG(number, WT_VARINT);
	return put_varint(p, v);
}

#define put_varint32_field put_varint_field
#define put_flag_field	   put_varint_field

static inline uint8_t *put_fixed32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint8_t *put_fixed32_field(uint8_t *p, unsigned int number,
					 uint32_t v)
{
	if (!v)
		return p;
	*p++ = (uint8_t)TAG(number, WT_FIXED32);
	return put_fixed32(p, v);
}

static inline uint8_t *put_fixed64_field(uint8_t *p, unsigned int number,
					 uint64_t v)
{
	if (!v)
		return p;
	*p++ = (uint8_t)TAG(number, WT_FIXED64);
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

#define put_checksum_field put_fixed64_field

static inline uint8_t *put_bytes_field(uint8_t *p, unsigned int number,
				       struct wire_view v)
{
	size_t length = view_length(v);

	if (!length)
		return p;
	*p++ = (uint8_t)TAG(number, WT_LEN);
	p = put_varint(p, length);
	memcpy(p, v.p, length);
	return p + length;
}

uint8_t *put_id_field(uint8_t *p, unsigned int number, const uint8_t *id);
uint8_t *put_name_field(uint8_t *p, unsigned int number, const char *name);
uint8_t *put_end_long(uint8_t *begin, uint8_t *end);

/*
 * Encode a nested message: put_begin() writes the tag, and returns where the
 * caller writes the content. put_end() gets that place as @begin, and the end
 * of the content as @end; it writes the length before the content, and returns
 * the new end. It moves the content if the length takes more than one byte.
 */
static inline uint8_t *put_begin(uint8_t *p, unsigned int number)
{
	p[0] = (uint8_t)TAG(number, WT_LEN);
	return p + 2;
}

static inline uint8_t *put_end(uint8_t *begin, uint8_t *end)
{
	if (unlikely(end - begin >= 0x80))
		return put_end_long(begin, end);
	begin[-1] = (uint8_t)(end - begin);
	return end;
}

/* How many bytes the tag and length of a nested message take, at most. */
#define PUT_NESTED_BOUND 4u

/* Writes a packed field of @n numbers of @type; nothing if @n is 0. */
uint8_t *put_numbers(uint8_t *p, unsigned int number, unsigned int type,
		     const uint32_t *v, size_t n);

#endif
