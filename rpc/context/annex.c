/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/context/annex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/wire/wire_field.h"

/* The fields of Annex, and of Pair. */
enum {
	ANNEX_PAIR = 1,
	ANNEX_ERROR = 2,
	ANNEX_TEXT = 3,
	ANNEX_TYPE = 4,
	ANNEX_DETAILS = 5,
	ANNEX_DEFINES = 6,
	ANNEX_REFERS = 7,
	PAIR_NAME = 1,
	PAIR_VALUE = 2,
};

/* ---- what is allowed ---- */

static bool is_binary(const char *name, size_t length)
{
	return length > 4 && !memcmp(name + length - 4, "-bin", 4);
}

bool annex_name_is_good(const char *name, size_t length)
{
	if (!length || length >= ULRPC_METADATA_NAME)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", name[i]))
			return false;
	return true;
}

/* A text has no control characters, and so does nothing to a terminal. */
static bool text_is_good(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return true;
}

static bool pair_is_good(const char *name, size_t name_length,
			 const void *value, size_t length)
{
	return annex_name_is_good(name, name_length) &&
	       (is_binary(name, name_length) || text_is_good(value, length));
}

/* The full name of a type, as protobuf has it. */
static bool type_is_good(const char *type, size_t length)
{
	if (!length || length >= ULRPC_METADATA_NAME * 2)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)type[i] <= ' ' || (type[i] & 0x80) ||
		    type[i] == 0x7f)
			return false;
	return true;
}

/* ---- making ---- */

void annex_init(struct annex *a)
{
	*a = (struct annex){ 0 };
}

void annex_fini(struct annex *a)
{
	free(a->bytes);
}

int annex_copy(struct annex *to, const struct annex *from)
{
	if (!from->length)
		return 0;
	to->bytes = malloc(from->size);
	if (!to->bytes)
		return -ENOMEM;
	memcpy(to->bytes, from->bytes, from->length);
	to->length = from->length;
	to->size = from->size;
	to->pairs = from->pairs;
	to->details = from->details;
	return 0;
}

/* Makes room for @more bytes. Returns 0; -EMSGSIZE, -ENOMEM. */
static int annex_grow(struct annex *a, size_t more)
{
	uint32_t size = MAX(a->size, 128u);
	uint8_t *bytes;

	if (more > ULRPC_METADATA_MAX - a->length)
		return -EMSGSIZE;
	while (size < a->length + more)
		size *= 2;
	if (size == a->size)
		return 0;
	bytes = realloc(a->bytes, size);
	if (!bytes)
		return -ENOMEM;
	a->bytes = bytes;
	a->size = size;
	return 0;
}

/* As put_bytes_field(), with a 0 byte at the end. */
static uint8_t *put_ended(uint8_t *p, unsigned int number, const void *bytes,
			  size_t length)
{
	*p++ = (uint8_t)TAG(number, WT_LEN);
	p = put_varint(p, length + 1);
	if (length)
		p = mempcpy(p, bytes, length);
	*p++ = 0;
	return p;
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

static size_t field_size(size_t content)
{
	return 1 + varint_size(content) + content;
}

int annex_add(struct annex *a, const char *name, const void *value,
	      size_t length)
{
	size_t name_length, size;
	uint8_t *p;
	int rc;

	if (!name || (length && !value))
		return -EINVAL;
	name_length = strlen(name);
	if (!pair_is_good(name, name_length, value, length))
		return -EINVAL;
	if (a->pairs == ULRPC_METADATA_PAIRS)
		return -E2BIG;
	if (length > ULRPC_METADATA_MAX)
		return -EMSGSIZE;
	size = field_size(name_length + 1) + field_size(length + 1);
	rc = annex_grow(a, field_size(size));
	if (rc)
		return rc;
	p = a->bytes + a->length;
	*p++ = (uint8_t)TAG(ANNEX_PAIR, WT_LEN);
	p = put_varint(p, size);
	p = put_ended(p, PAIR_NAME, name, name_length);
	p = put_ended(p, PAIR_VALUE, value, length);
	a->length = (uint32_t)(p - a->bytes);
	a->pairs++;
	return 0;
}

void annex_cut(struct annex *a, uint32_t at, uint32_t length, uint32_t pairs)
{
	a->length -= length;
	a->pairs -= pairs;
	if (length)
		memmove(a->bytes + at, a->bytes + at + length, a->length - at);
}

int annex_add_details(struct annex *a, const struct ulrpc_details *d)
{
	size_t type_length;
	uint8_t *p;
	int rc;

	if (!d->type || (d->length && !d->bytes))
		return -EINVAL;
	type_length = strlen(d->type);
	if (!type_is_good(d->type, type_length))
		return -EINVAL;
	if (a->details)
		return -EALREADY;
	if (d->length > ULRPC_METADATA_MAX)
		return -EMSGSIZE;
	rc = annex_grow(a, field_size(type_length + 1) + field_size(d->length));
	if (rc)
		return rc;
	p = put_ended(a->bytes + a->length, ANNEX_TYPE, d->type, type_length);
	p = put_bytes_field(
		p, ANNEX_DETAILS,
		(struct wire_view){ d->bytes,
				    (const uint8_t *)d->bytes + d->length });
	a->length = (uint32_t)(p - a->bytes);
	a->details = true;
	return 0;
}

size_t annex_size(const struct annex *a)
{
	return a->length ? varint_size(a->length) + a->length : 0;
}

uint8_t *annex_put(uint8_t *p, const struct annex *a)
{
	if (!a->length)
		return p;
	return mempcpy(put_varint(p, a->length), a->bytes, a->length);
}

void *annex_body_new(const struct annex *a, const struct annex_failure *failure,
		     const void *body, size_t length, size_t *length_p)
{
	size_t said = 0;
	uint8_t *to, *p;

	if (failure->error)
		said = 1 + varint_size(failure->error) +
		       (view_length(failure->text)
				? field_size(view_length(failure->text))
				: 0);
	to = malloc(ANNEX_HEAD + a->length + said + length);
	if (!to)
		return NULL;
	p = put_varint(to, a->length + said);
	if (a->length)
		p = mempcpy(p, a->bytes, a->length);
	p = put_varint_field(p, ANNEX_ERROR, failure->error);
	if (failure->error)
		p = put_bytes_field(p, ANNEX_TEXT, failure->text);
	if (length)
		p = mempcpy(p, body, length);
	*length_p = (size_t)(p - to);
	return to;
}

struct wire_view annex_pairs(const uint8_t *body, size_t length)
{
	struct wire_view pairs;

	BUG_ON(!get_bytes(body, body + length, &pairs));
	return pairs;
}

void annex_name_make(struct annex_name *to, uint32_t number, bool refers,
		     const uint8_t *body, struct wire_view pairs)
{
	size_t field = 1 + varint_size(number);
	uint8_t *p = put_varint(to->bytes,
				field + (refers ? 0 : view_length(pairs)));

	p = put_varint_field(p, refers ? ANNEX_REFERS : ANNEX_DEFINES, number);
	to->number = number;
	to->refers = refers;
	to->length = (uint8_t)(p - to->bytes);
	to->skip = (uint32_t)((refers ? pairs.end : pairs.p) - body);
}

/* ---- reading ---- */

struct parsed {
	unsigned int pairs;
	struct annex_failure failure;
	struct wire_view type, details;
	/* of the pair that is looked for */
	struct ulrpc_metadata *pair;
	unsigned int index;
	const char *name; /* NULL: the index counts */
	bool found;
};

static bool is_ended(struct wire_view v)
{
	return v.p != v.end && !v.end[-1] &&
	       !memchr(v.p, 0, view_length(v) - 1);
}

static bool read_pair(struct wire_view in, struct wire_view *name,
		      struct wire_view *value)
{
	const uint8_t *p = in.p;
	uint32_t tag;

	*name = *value = (struct wire_view){ NULL, NULL };
	while (next_field(&p, in.end, &tag)) {
		if (tag == TAG(PAIR_NAME, WT_LEN))
			p = get_bytes(p, in.end, name);
		else if (tag == TAG(PAIR_VALUE, WT_LEN))
			p = get_bytes(p, in.end, value);
		else
			p = get_unknown(p, in.end, tag);
	}
	/* A binary value may have bytes of 0 before its end. */
	return p == in.end && is_ended(*name) && value->p != value->end &&
	       !value->end[-1];
}

/* Reads a pair, and checks it: it may be from anybody. */
static const uint8_t *get_pair(const uint8_t *p, const uint8_t *end,
			       struct parsed *to)
{
	struct wire_view in, name, value;
	size_t length;

	p = get_bytes(p, end, &in);
	if (!p || to->pairs == ULRPC_METADATA_PAIRS ||
	    !read_pair(in, &name, &value))
		return NULL;
	length = view_length(value) - 1;
	if (!pair_is_good((const char *)name.p, view_length(name) - 1, value.p,
			  length))
		return NULL;
	if (to->pair && !to->found &&
	    (to->name ? !strcmp(to->name, (const char *)name.p)
		      : to->index == to->pairs)) {
		*to->pair = (struct ulrpc_metadata){ (const char *)name.p,
						     value.p, length };
		to->found = true;
	}
	to->pairs++;
	return p;
}

static bool annex_parse(struct wire_view annex, struct parsed *to)
{
	const uint8_t *p = annex.p;
	uint32_t tag;

	while (next_field(&p, annex.end, &tag)) {
		switch (tag) {
		case TAG(ANNEX_PAIR, WT_LEN):
			p = get_pair(p, annex.end, to);
			break;
		case TAG(ANNEX_ERROR, WT_VARINT):
			p = get_varint32(p, annex.end, &to->failure.error);
			break;
		case TAG(ANNEX_TEXT, WT_LEN):
			p = get_bytes(p, annex.end, &to->failure.text);
			break;
		case TAG(ANNEX_TYPE, WT_LEN):
			p = get_bytes(p, annex.end, &to->type);
			break;
		case TAG(ANNEX_DETAILS, WT_LEN):
			p = get_bytes(p, annex.end, &to->details);
			break;
		case TAG(ANNEX_REFERS, WT_VARINT):
			/* There is nothing that it could refer to. */
			return false;
		default:
			p = get_unknown(p, annex.end, tag);
		}
	}
	if (to->type.p &&
	    (!is_ended(to->type) || !type_is_good((const char *)to->type.p,
						  view_length(to->type) - 1)))
		return false;
	return p == annex.end;
}

bool annex_split(struct wire_view *body, struct wire_view *annex)
{
	struct parsed parsed = { 0 };
	struct wire_view in;
	const uint8_t *p = get_bytes(body->p, body->end, &in);

	if (!p || view_length(in) > ANNEX_MAX || !annex_parse(in, &parsed))
		return false;
	body->p = p;
	*annex = in;
	return true;
}

struct annex_failure annex_failure(struct wire_view annex)
{
	struct parsed parsed = { 0 };

	BUG_ON(!annex_parse(annex, &parsed));
	return parsed.failure;
}

int annex_pair(struct wire_view annex, unsigned int index,
	       struct ulrpc_metadata *pair)
{
	struct parsed parsed = { .pair = pair, .index = index };

	BUG_ON(!annex_parse(annex, &parsed));
	return parsed.found ? 0 : -ENOENT;
}

int annex_find(struct wire_view annex, const char *name,
	       struct ulrpc_metadata *pair)
{
	struct parsed parsed = { .pair = pair, .name = name };

	BUG_ON(!annex_parse(annex, &parsed));
	return parsed.found ? 0 : -ENOENT;
}

int annex_details(struct wire_view annex, struct ulrpc_details *details)
{
	struct parsed parsed = { 0 };

	BUG_ON(!annex_parse(annex, &parsed));
	if (!parsed.type.p)
		return -ENOENT;
	*details = (struct ulrpc_details){ (const char *)parsed.type.p,
					   parsed.details.p,
					   view_length(parsed.details) };
	return 0;
}

bool annex_named_read(struct wire_view body, struct annex_named *to)
{
	struct wire_view in;
	uint32_t tag;

	*to = (struct annex_named){ 0 };
	if (!get_bytes(body.p, body.end, &in) || view_length(in) > ANNEX_MAX)
		return false;
	to->pairs = in;
	if (!next_field(&in.p, in.end, &tag))
		return in.p;
	to->refers = tag == TAG(ANNEX_REFERS, WT_VARINT);
	if (!to->refers && tag != TAG(ANNEX_DEFINES, WT_VARINT))
		return true;
	to->pairs.p = get_varint32(in.p, in.end, &to->number);
	/* A reference has nothing to add to its set. */
	return to->pairs.p && to->number &&
	       (!to->refers || to->pairs.p == to->pairs.end);
}
