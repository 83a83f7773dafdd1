/* SPDX-License-Identifier: BSD-3-Clause */
/* message_print(): a message becomes JSON. */
#include "message.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

struct bytes {
	const uint8_t *at, *end;
};

/* A field as it stands on the wire. */
struct item {
	uint32_t number;
	unsigned int type;  /* of the wire */
	uint64_t value;	    /* unless it is of type 2 */
	struct bytes bytes; /* of type 2 */
};

/* How many fields that are not known are named: what is said is kept. */
#define UNKNOWN_MAX 16

struct printing {
	FILE *out, *err;
	bool defaults;
	unsigned int depth;
	struct {
		const struct schema_type *type;
		uint32_t number;
	} unknown[UNKNOWN_MAX]; /* those that were named */
	unsigned int nunknown;	/* more than UNKNOWN_MAX: there were more */
};

/* ---- the wire ---- */

static bool take_varint(struct bytes *b, uint64_t *value_p)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
		value |= (uint64_t)(*b->at & 0x7f) << shift;
		if (!(*b->at++ & 0x80)) {
			*value_p = value;
			return true;
		}
	}
	return false;
}

static bool take_fixed(struct bytes *b, size_t n, uint64_t *value_p)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->at) < n)
		return false;
	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)*b->at++ << 8 * i;
	*value_p = value;
	return true;
}

static bool take_value(struct bytes *b, struct item *item)
{
	uint64_t length;

	switch (item->type) {
	case 0:
		return take_varint(b, &item->value);
	case 1:
		return take_fixed(b, 8, &item->value);
	case 5:
		return take_fixed(b, 4, &item->value);
	case 2:
		if (!take_varint(b, &length) ||
		    length > (uint64_t)(b->end - b->at))
			return false;
		item->bytes = (struct bytes){ b->at, b->at + length };
		b->at += length;
		return true;
	}
	return false;
}

/* Takes the next field. Not at the end, which is b->at == b->end. */
static bool take_item(struct bytes *b, struct item *item)
{
	uint64_t tag;

	if (!take_varint(b, &tag) || tag >> 35 || !(tag >> 3))
		return false;
	item->number = (uint32_t)(tag >> 3);
	item->type = (unsigned int)tag & 7;
	return take_value(b, item);
}

/* Is @item a value of @f, or, packed, several of them? */
static bool is_of(const struct item *item, const struct schema_field *f)
{
	return item->number == (uint32_t)f->field->number &&
	       (item->type == schema_wire(f->kind) ||
		(f->repeated && item->type == 2));
}

static const struct schema_field *known(const struct schema_type *type,
					const struct item *item)
{
	size_t low = 0, end = type->type->n_field, n = end;

	while (low < end) {
		size_t middle = low + (end - low) / 2;

		if ((uint32_t)type->by_number[middle]->field->number <
		    item->number)
			low = middle + 1;
		else
			end = middle;
	}
	for (; low < n; low++) {
		const struct schema_field *f = type->by_number[low];

		if ((uint32_t)f->field->number != item->number)
			break;
		if (is_of(item, f))
			return f;
	}
	return NULL;
}

/* ---- the fields of a message ---- */

/* The values of a message, sorted by field, so that the whole message need not
 * be looked through for each of its fields. */
struct sorted {
	uint8_t *all;
	struct bytes *of; /* of each field, in the order in which they came */
	/* the last field that has come of each oneof; NULL: none */
	const struct schema_field **chosen;
};

/* Takes the next value of @body that is known: sets *@value to it, with its
 * tag, and *@f_p to its field. Returns false if there is none any more. */
static bool next_known(const struct schema_type *type, struct bytes *body,
		       struct bytes *value, const struct schema_field **f_p)
{
	struct item item;

	while (body->at < body->end) {
		value->at = body->at;
		if (!take_item(body, &item))
			return false;
		value->end = body->at;
		*f_p = known(type, &item);
		if (*f_p)
			return true;
	}
	return false;
}

static void sorted_fini(struct sorted *s)
{
	free(s->all);
	free(s->of);
	free(s->chosen);
}

static void sort_choice(const struct schema_type *type, struct sorted *s,
			const struct schema_field *f)
{
	int32_t oneof = f->field->has_oneof_index ? f->field->oneof_index : -1;

	if (oneof >= 0 && (size_t)oneof < type->type->n_oneof_decl)
		s->chosen[oneof] = f;
}

/* Sorts @body, which is well-formed. Returns false if there is no memory;
 * sorted_fini() is due in any case. */
static bool sort(const struct schema_type *type, struct bytes body,
		 struct sorted *s)
{
	size_t n = type->type->n_field, before = 0;
	const struct schema_field *f;
	struct bytes rest = body, item;
	size_t *length = calloc(n + 1, sizeof(*length));

	s->all = malloc((size_t)(body.end - body.at) + 1);
	s->of = calloc(n + 1, sizeof(*s->of));
	s->chosen = calloc(type->type->n_oneof_decl + 1, sizeof(s->chosen[0]));
	if (!length || !s->all || !s->of || !s->chosen) {
		free(length);
		return false;
	}
	while (next_known(type, &rest, &item, &f)) {
		length[f - type->fields] += (size_t)(item.end - item.at);
		sort_choice(type, s, f);
	}
	for (size_t i = 0; i < n; before += length[i++])
		s->of[i].at = s->of[i].end = s->all + before;
	free(length);
	while (next_known(type, &body, &item, &f)) {
		struct bytes *to = &s->of[f - type->fields];
		size_t size = (size_t)(item.end - item.at);

		memcpy(s->all + (to->end - s->all), item.at, size);
		to->end += size;
	}
	return true;
}

/* Is @f there? Of a oneof, the member that came last is the one that is. */
static bool is_there(const struct schema_type *type, const struct sorted *s,
		     const struct schema_field *f)
{
	int32_t oneof = f->field->has_oneof_index ? f->field->oneof_index : -1;
	const struct bytes *of = &s->of[f - type->fields];

	return of->at < of->end &&
	       (oneof < 0 || (size_t)oneof >= type->type->n_oneof_decl ||
		s->chosen[oneof] == f);
}

/* ---- values ---- */

static void line(const struct printing *p)
{
	fprintf(p->out, "\n%*s", 2 * (int)p->depth, "");
}

/* As few digits as give the same number again. */
static void print_real(FILE *out, double value, bool single)
{
	char text[40];

	if (isnan(value) || isinf(value)) {
		fputs(isnan(value) ? "\"NaN\""
		      : value > 0  ? "\"Infinity\""
				   : "\"-Infinity\"",
		      out);
		return;
	}
	for (int digits = single ? 6 : 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (single ? strtof(text, NULL) == (float)value
			   : strtod(text, NULL) == value)
			break;
	}
	fputs(text, out);
}

static void print_float(FILE *out, uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	print_real(out, (double)value, true);
}

static void print_double(FILE *out, uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	print_real(out, value, false);
}

static void print_enum(FILE *out, const struct schema_enum *names, int32_t v)
{
	const Ulrpc__Schema__EnumType *type = names->type;

	for (size_t i = 0; i < type->n_value; i++)
		if (type->value[i]->number == v) {
			json_print_string(out, type->value[i]->name,
					  strlen(type->value[i]->name));
			return;
		}
	fprintf(out, "%" PRId32, v);
}

static void print_base64(FILE *out, struct bytes b)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";

	fputc('"', out);
	for (; b.at < b.end; b.at += 3) {
		size_t n = (size_t)(b.end - b.at);
		uint32_t v = (uint32_t)b.at[0] << 16;

		v |= n > 1 ? (uint32_t)b.at[1] << 8 : 0;
		v |= n > 2 ? b.at[2] : 0;
		fputc(digits[v >> 18], out);
		fputc(digits[v >> 12 & 63], out);
		fputc(n > 1 ? digits[v >> 6 & 63] : '=', out);
		fputc(n > 2 ? digits[v & 63] : '=', out);
		if (n < 3)
			break;
	}
	fputc('"', out);
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A number, or what stands for one. */
static void print_scalar(FILE *out, const struct schema_field *f, uint64_t v)
{
	switch (f->kind) {
	case SCHEMA_BOOL:
		fputs(v ? "true" : "false", out);
		return;
	case SCHEMA_ENUM:
		print_enum(out, f->names, (int32_t)v);
		return;
	case SCHEMA_FLOAT:
		print_float(out, v);
		return;
	case SCHEMA_DOUBLE:
		print_double(out, v);
		return;
	case SCHEMA_INT32:
	case SCHEMA_SFIXED32:
		fprintf(out, "%" PRId32, (int32_t)v);
		return;
	case SCHEMA_SINT32:
		fprintf(out, "%" PRId32, (int32_t)unzigzag(v));
		return;
	case SCHEMA_UINT32:
	case SCHEMA_FIXED32:
		fprintf(out, "%" PRIu32, (uint32_t)v);
		return;
	case SCHEMA_SINT64:
		fprintf(out, "\"%" PRId64 "\"", unzigzag(v));
		return;
	case SCHEMA_INT64:
	case SCHEMA_SFIXED64:
		fprintf(out, "\"%" PRId64 "\"", (int64_t)v);
		return;
	default:
		fprintf(out, "\"%" PRIu64 "\"", v);
	}
}

static bool print_message(struct printing *p, const struct schema_type *type,
			  struct bytes body);

static bool print_value(struct printing *p, const struct schema_field *f,
			const struct item *item)
{
	if (f->kind == SCHEMA_MESSAGE)
		return print_message(p, f->type, item->bytes);
	if (f->kind == SCHEMA_STRING)
		json_print_string(p->out, (const char *)item->bytes.at,
				  (size_t)(item->bytes.end - item->bytes.at));
	else if (f->kind == SCHEMA_BYTES)
		print_base64(p->out, item->bytes);
	else
		print_scalar(p->out, f, item->value);
	return true;
}

/* What the message has for @f if it does not have it. */
static bool print_default(struct printing *p, const struct schema_field *f)
{
	static const struct item none = { .value = 0 };

	if (f->kind == SCHEMA_ENUM && f->names->type->n_value)
		print_enum(p->out, f->names, f->names->type->value[0]->number);
	else if (f->kind == SCHEMA_STRING || f->kind == SCHEMA_BYTES)
		fputs("\"\"", p->out);
	else
		return print_value(p, f, &none);
	return true;
}

/* ---- fields ---- */

/* Several values in one item. */
static bool print_packed(struct printing *p, const struct schema_field *f,
			 struct bytes b, unsigned int *n)
{
	struct item item = { .type = schema_wire(f->kind) };

	while (b.at < b.end) {
		if (!take_value(&b, &item))
			return false;
		fputs((*n)++ ? ", " : "", p->out);
		print_scalar(p->out, f, item.value);
	}
	return true;
}

static bool print_list(struct printing *p, const struct schema_field *f,
		       struct bytes body)
{
	struct item item;
	unsigned int n = 0;

	fputc('[', p->out);
	while (body.at < body.end && take_item(&body, &item)) {
		if (!is_of(&item, f))
			continue;
		if (item.type == 2 && schema_wire(f->kind) != 2) {
			if (!print_packed(p, f, item.bytes, &n))
				return false;
			continue;
		}
		fputs(n++ ? ", " : "", p->out);
		if (!print_value(p, f, &item))
			return false;
	}
	fputc(']', p->out);
	return true;
}

/* The last value of @f in @body. */
static bool last_of(const struct schema_field *f, struct bytes body,
		    struct item *last)
{
	struct item item;
	bool found = false;

	while (body.at < body.end && take_item(&body, &item))
		if (item.number == (uint32_t)f->field->number &&
		    item.type == schema_wire(f->kind)) {
			*last = item;
			found = true;
		}
	return found;
}

/* Names each field only once, as its server says how many come. */
static void say_unknown(struct printing *p, const struct schema_type *type,
			uint32_t number)
{
	if (p->nunknown > UNKNOWN_MAX)
		return;
	for (unsigned int i = 0; i < p->nunknown; i++)
		if (p->unknown[i].type == type &&
		    p->unknown[i].number == number)
			return;
	if (p->nunknown++ == UNKNOWN_MAX) {
		fputs("more fields are not known, and left out\n", p->err);
		return;
	}
	p->unknown[p->nunknown - 1].type = type;
	p->unknown[p->nunknown - 1].number = number;
	fprintf(p->err,
		"message %s: field %" PRIu32 " is not known, and left out\n",
		type->name, number);
}

/* Looks through the whole message: is it one, and which fields are unknown? */
static bool check(struct printing *p, const struct schema_type *type,
		  struct bytes body)
{
	struct item item;

	while (body.at < body.end) {
		if (!take_item(&body, &item)) {
			fprintf(p->err, "what came is no message %s\n",
				type->name);
			return false;
		}
		if (!known(type, &item))
			say_unknown(p, type, item.number);
	}
	return true;
}

/* In JSON a key is a string. */
static bool print_key(struct printing *p, const struct schema_field *f,
		      const struct item *item)
{
	bool quoted = f->kind == SCHEMA_STRING || f->kind == SCHEMA_INT64 ||
		      f->kind == SCHEMA_UINT64 || f->kind == SCHEMA_SINT64 ||
		      f->kind == SCHEMA_FIXED64 || f->kind == SCHEMA_SFIXED64;
	bool good;

	fputs(quoted ? "" : "\"", p->out);
	good = item ? print_value(p, f, item) : print_default(p, f);
	fputs(quoted ? ": " : "\": ", p->out);
	return good;
}

static bool print_entry(struct printing *p, const struct schema_type *entry,
			struct bytes body)
{
	const struct schema_field *key = &entry->fields[0];
	const struct schema_field *value = &entry->fields[1];
	struct item item = { .value = 0 };

	if (!check(p, entry, body))
		return false;
	if (!print_key(p, key, last_of(key, body, &item) ? &item : NULL))
		return false;
	item = (struct item){ .value = 0 };
	return last_of(value, body, &item) ? print_value(p, value, &item)
					   : print_default(p, value);
}

static bool print_map(struct printing *p, const struct schema_field *f,
		      struct bytes body)
{
	struct item item;
	unsigned int n = 0;

	fputc('{', p->out);
	p->depth++;
	while (body.at < body.end && take_item(&body, &item)) {
		if (!is_of(&item, f))
			continue;
		fputs(n++ ? "," : "", p->out);
		line(p);
		if (!print_entry(p, f->type, item.bytes))
			return false;
	}
	p->depth--;
	if (n)
		line(p);
	fputc('}', p->out);
	return true;
}

/* The parts of a message that came in pieces are merged, which is what their
 * bytes behind each other mean. */
static bool print_merged(struct printing *p, const struct schema_field *f,
			 struct bytes body)
{
	uint8_t *all = malloc((size_t)(body.end - body.at) + 1);
	struct bytes whole = { all, all };
	struct item item;
	bool good;

	if (!all)
		return false;
	while (body.at < body.end && take_item(&body, &item)) {
		size_t n = (size_t)(item.bytes.end - item.bytes.at);

		if (!is_of(&item, f))
			continue;
		if (n)
			memcpy(all + (whole.end - all), item.bytes.at, n);
		whole.end += n;
	}
	good = print_message(p, f->type, whole);
	free(all);
	return good;
}

/* @body: the values of @f. */
static bool print_field(struct printing *p, const struct schema_field *f,
			struct bytes body, bool there)
{
	struct item item = { .value = 0 };

	json_print_string(p->out, f->json, strlen(f->json));
	fputs(": ", p->out);
	if (f->is_map)
		return print_map(p, f, body);
	if (f->repeated)
		return print_list(p, f, body);
	if (!there)
		return print_default(p, f);
	if (f->kind == SCHEMA_MESSAGE)
		return print_merged(p, f, body);
	last_of(f, body, &item);
	return print_value(p, f, &item);
}

static bool has_default(const struct schema_field *f)
{
	return f->repeated ||
	       (f->kind != SCHEMA_MESSAGE && !f->field->has_oneof_index);
}

static bool print_fields(struct printing *p, const struct schema_type *type,
			 const struct sorted *sorted)
{
	unsigned int n = 0;

	fputc('{', p->out);
	p->depth++;
	for (size_t i = 0; i < type->type->n_field; i++) {
		const struct schema_field *f = &type->fields[i];
		bool there = is_there(type, sorted, f);

		if (!there && !(p->defaults && has_default(f)))
			continue;
		fputs(n++ ? "," : "", p->out);
		line(p);
		if (!print_field(p, f, sorted->of[i], there))
			return false;
	}
	p->depth--;
	if (n)
		line(p);
	fputc('}', p->out);
	return true;
}

static bool print_message(struct printing *p, const struct schema_type *type,
			  struct bytes body)
{
	struct sorted sorted = { NULL, NULL, NULL };
	bool good;

	if (!check(p, type, body))
		return false;
	if (p->depth >= MESSAGE_DEPTH) {
		fprintf(p->err, "more than %d messages in messages\n",
			MESSAGE_DEPTH);
		return false;
	}
	good = sort(type, body, &sorted);
	if (!good)
		fprintf(p->err, "%s\n", strerror(ENOMEM));
	good = good && print_fields(p, type, &sorted);
	sorted_fini(&sorted);
	return good;
}

bool message_print(const struct schema_type *type, const void *body,
		   size_t length, bool defaults, FILE *out, FILE *err)
{
	struct printing p = { .out = out, .err = err, .defaults = defaults };
	const uint8_t *bytes = length ? body : (const uint8_t *)"";

	if (!print_message(&p, type, (struct bytes){ bytes, bytes + length }))
		return false;
	fputc('\n', out);
	return true;
}
