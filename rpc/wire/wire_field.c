/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/wire/wire_field.h"

/* Joins eight groups of seven bits, one in each byte, the lowest first, to a
 * number of 56 bits: first pairs of groups, then fours, then all eight. */
static uint64_t join_sevens(uint64_t x)
{
	x = (x & UINT64_C(0x007f007f007f007f)) |
	    (x & UINT64_C(0x7f007f007f007f00)) >> 1;
	x = (x & UINT64_C(0x00003fff00003fff)) |
	    (x & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (x & UINT64_C(0x000000000fffffff)) |
	       (x & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* Decodes a varint from a single load of eight bytes, or of five if fewer than
 * eight are left, as for a time at the end of a call. Returns NULL if the
 * varint is longer, or fewer than five bytes are left. */
static const uint8_t *get_short_varint(const uint8_t *p, const uint8_t *end,
				       uint64_t *v)
{
	uint64_t high = UINT64_C(0x8080808080808080), x, ends;

	if (end - p >= 8) {
		x = load_le64(p);
	} else if (end - p >= 5) {
		x = load_le32(p) | (uint64_t)p[4] << 32;
		high = UINT64_C(0x8080808080);
	} else {
		return NULL;
	}
	ends = ~x & high;
	if (unlikely(!ends))
		return NULL;
	*v = join_sevens(x & (ends ^ (ends - 1)));
	return p + __builtin_ctzll(ends) / 8 + 1;
}

const uint8_t *get_long_varint(const uint8_t *p, const uint8_t *end,
			       uint64_t *v)
{
	const uint8_t *next = get_short_varint(p, end, v);
	uint64_t sum = 0;

	if (likely(next))
		return next;
	if (end - p > VARINT_MAX)
		end = p + VARINT_MAX;
	for (unsigned int shift = 0; p < end; shift += 7) {
		uint8_t byte = *p++;

		sum |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*v = sum;
			return p;
		}
	}
	return NULL;
}

const uint8_t *get_unknown(const uint8_t *p, const uint8_t *end, uint32_t tag)
{
	struct wire_view skipped;
	uint64_t v;
	uint32_t u;

	if (tag >> 3 == 0)
		return NULL;
	switch (tag & 7) {
	case WT_VARINT:
		return skip_varint(p, end);
	case WT_FIXED64:
		return get_fixed64(p, end, &v);
	case WT_LEN:
		return get_bytes(p, end, &skipped);
	case WT_FIXED32:
		return get_fixed32(p, end, &u);
	/* a group, which proto3 does not have, or an unknown wire type */
	default:
		return NULL;
	}
}

uint8_t *put_end_long(uint8_t *begin, uint8_t *end)
{
	size_t length = (size_t)(end - begin);
	uint8_t prefix[VARINT_MAX];
	size_t n = (size_t)(put_varint(prefix, length) - prefix);

	memmove(begin - 1 + n, begin, length);
	memcpy(begin - 1, prefix, n);
	return end - 1 + n;
}

bool get_next(struct wire_view *v, uint32_t tag, struct wire_view *out)
{
	const uint8_t *p = v->p;
	uint32_t is;

	while (next_field(&p, v->end, &is)) {
		if (likely(is == tag)) {
			p = get_bytes(p, v->end, out);
			v->p = p ? p : v->end;
			return p;
		}
		p = get_unknown(p, v->end, is);
	}
	v->p = v->end;
	return false;
}

static const uint8_t *get_number(const uint8_t *p, const uint8_t *end,
				 unsigned int type, struct wire_numbers *to)
{
	uint32_t v;

	p = type == WT_VARINT ? get_varint32(p, end, &v)
			      : get_fixed32(p, end, &v);
	if (!p || to->n == to->max)
		return NULL;
	if (to->out)
		to->out[to->n] = v;
	to->n++;
	return p;
}

const uint8_t *get_numbers(const uint8_t *p, const uint8_t *end, uint32_t tag,
			   unsigned int type, struct wire_numbers *to)
{
	struct wire_view in;

	if ((tag & 7) == type)
		return get_number(p, end, type, to);
	p = get_bytes(p, end, &in);
	while (p && in.p != in.end) {
		in.p = get_number(in.p, in.end, type, to);
		if (!in.p)
			return NULL;
	}
	return p;
}

uint8_t *put_numbers(uint8_t *p, unsigned int number, unsigned int type,
		     const uint32_t *v, size_t n)
{
	uint8_t *begin = put_begin(p, number);

	if (!n)
		return p;
	p = begin;
	for (size_t i = 0; i < n; i++)
		p = type == WT_VARINT ? put_varint(p, v[i])
				      : put_fixed32(p, v[i]);
	return put_end(begin, p);
}

const uint8_t *get_checksum(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	uint64_t checksum;

	p = get_fixed64(p, end, &checksum);
	if (!p || (checksum && checksum != wire_checksum((uint32_t)checksum)))
		return NULL;
	*v = checksum;
	return p;
}

const uint8_t *get_id(const uint8_t *p, const uint8_t *end,
		      uint8_t (*id)[WIRE_ID_SIZE])
{
	struct wire_view in = { NULL, NULL };
	size_t length;

	p = get_bytes(p, end, &in);
	length = view_length(in);
	if (!p || (length && length != WIRE_ID_SIZE))
		return NULL;
	memset(*id, 0, WIRE_ID_SIZE);
	memcpy(*id, in.p, length);
	return p;
}

uint8_t *put_id_field(uint8_t *p, unsigned int number, const uint8_t *id)
{
	static const uint8_t none[WIRE_ID_SIZE];

	if (memcmp(id, none, sizeof(none)) == 0)
		return p;
	return put_bytes_field(p, number,
			       (struct wire_view){ id, id + WIRE_ID_SIZE });
}

const uint8_t *get_name(const uint8_t *p, const uint8_t *end,
			char (*name)[ULRPC_SERVICE_NAME])
{
	struct wire_view in = { NULL, NULL };
	size_t length;

	p = get_bytes(p, end, &in);
	length = view_length(in);
	if (!p || length >= ULRPC_SERVICE_NAME || memchr(in.p, 0, length))
		return NULL;
	memset(*name, 0, ULRPC_SERVICE_NAME);
	memcpy(*name, in.p, length);
	return p;
}

uint8_t *put_name_field(uint8_t *p, unsigned int number, const char *name)
{
	const uint8_t *bytes = (const uint8_t *)name;

	BUG_ON(!memchr(name, 0, ULRPC_SERVICE_NAME));
	return put_bytes_field(
		p, number, (struct wire_view){ bytes, bytes + strlen(name) });
}
