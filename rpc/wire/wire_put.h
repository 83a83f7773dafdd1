/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding: turns the lists of wire_messages.h into code. Calls and replies are
 * encoded inline, so that fields that the caller leaves 0 cost nothing.
 */
#ifndef RPC_WIRE_PUT_H
#define RPC_WIRE_PUT_H

#include "rpc/wire/wire_field.h"

/* Writes a field of @m at @p, and advances @p. A field that is 0 is left out.
 */
#define PUT(number, type, member) p = put_##type##_field(p, number, m->member);

/* A function that is not inlined writes the entries, since few messages have
 * any. */
#define PUT_ENTRIES(number, message, member) \
	if (unlikely(m->member.n))           \
		p = wire_##message##_put_all(p, number, &m->member);

#define PUT_NUMBERS(number, type, member)  \
	BUG_ON(m->n > ULRPC_SEGMENTS_MAX); \
	p = put_numbers(p, number, WT_##type, m->member, m->member ? m->n : 0);

#define PUT_FIELDS(fields) fields(PUT, PUT_ENTRIES, PUT_NUMBERS)

/* Writes a field with the number @number for each of the entries @all. */
uint8_t *wire_segments_put_all(uint8_t *p, unsigned int number,
			       const struct wire_entries *all);
uint8_t *wire_reply_put_rare(uint8_t *p, const struct wire_reply *m);

static inline uint8_t *wire_call_put(uint8_t *p, const struct wire_call *m)
{
	uint8_t *begin = put_begin(p, 5);

	p = begin;
	PUT_FIELDS(WIRE_CALL_FIELDS)
	return put_end(begin, p);
}

/* The encoded fields of a call without bulks, trace and reply_limit, for calls
 * that differ from it only in their xid, attempt and slot. Both arrays are
 * copied as a whole, which is quicker than copying their lengths;
 * WIRE_CALL_BOUND has room for that. */
struct wire_call_rest {
	uint8_t bytes[64]; /* the fields between attempt and slot */
	uint8_t end[8];	   /* the fields after slot */
	uint8_t length, end_length;
};

static inline void wire_call_rest_make(struct wire_call_rest *rest,
				       const struct wire_call *m)
{
	uint8_t *p = rest->bytes;

	PUT_FIELDS(WIRE_CALL_SAME)
	rest->length = (uint8_t)(p - rest->bytes);
	p = rest->end;
	PUT_FIELDS(WIRE_CALL_END)
	rest->end_length = (uint8_t)(p - rest->end);
}

static inline uint8_t *wire_call_put_with(uint8_t *p, uint64_t xid,
					  uint32_t attempt, uint32_t slot,
					  const struct wire_call_rest *rest)
{
	uint8_t *begin = put_begin(p, 5);

	p = put_varint_field(begin, 1, xid);
	p = put_varint_field(p, 2, attempt);
	memcpy(p, rest->bytes, sizeof(rest->bytes));
	p = put_varint_field(p + rest->length, 10, slot);
	memcpy(p, rest->end, sizeof(rest->end));
	return put_end(begin, p + rest->end_length);
}

static inline uint8_t *wire_reply_put(uint8_t *p, const struct wire_reply *m)
{
	uint8_t *begin = put_begin(p, 4);

#define OR(number, type, member)	 | m->member
#define OR_ENTRIES(number, type, member) | m->member.n
	p = begin;
	PUT_FIELDS(WIRE_REPLY_USUAL)
	if (unlikely(0 WIRE_REPLY_RARE(OR, OR_ENTRIES, )))
		p = wire_reply_put_rare(p, m);
#undef OR
#undef OR_ENTRIES
	return put_end(begin, p);
}

#endif
