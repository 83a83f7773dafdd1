/* SPDX-License-Identifier: BSD-3-Clause */
/* message_read(): JSON becomes a message. */
#include "message.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

struct reading {
	struct json json;
	FILE *err;
	unsigned int depth;
	bool said; /* what is wrong */
	size_t path_length;
	char path[256]; /* of the field that is being read */
};

static bool read_message(struct reading *r, const struct schema_type *type,
			 struct message_bytes *out);

/* ---- what is wrong ---- */

static bool complain(struct reading *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool complain(struct reading *r, const char *fmt, ...)
{
	va_list args;

	if (r->said)
		return false;
	r->said = true;
	if (r->path_length)
		fprintf(r->err, "%.*s: ", (int)r->path_length, r->path);
	va_start(args, fmt);
	vfprintf(r->err, fmt, args);
	va_end(args);
	fputc('\n', r->err);
	return false;
}

static bool json_failed(struct reading *r)
{
	return complain(r, "%s", r->json.why);
}

/* Adds to the path; returns its length before, to which it goes back. */
static size_t path_add(struct reading *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static size_t path_add(struct reading *r, const char *fmt, ...)
{
	size_t before = r->path_length, room = sizeof(r->path) - before;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(r->path + before, room, fmt, args);
	va_end(args);
	if (n > 0)
		r->path_length += (size_t)n < room ? (size_t)n : room - 1;
	return before;
}

/* ---- bytes ---- */

static bool put(struct reading *r, struct message_bytes *out, const void *bytes,
		size_t n)
{
	if (out->n + n > out->size) {
		size_t size = 2 * (out->n + n) + 64;
		uint8_t *more = realloc(out->data, size);

		if (!more)
			return complain(r, "%s", strerror(ENOMEM));
		out->data = more;
		out->size = size;
	}
	if (n)
		memcpy(out->data + out->n, bytes, n);
	out->n += n;
	return true;
}

static bool put_varint(struct reading *r, struct message_bytes *out, uint64_t v)
{
	uint8_t b[10];
	size_t n = 0;

	do {
		b[n] = (uint8_t)(v & 0x7f);
		v >>= 7;
		b[n++] |= v ? 0x80 : 0;
	} while (v);
	return put(r, out, b, n);
}

static bool put_fixed(struct reading *r, struct message_bytes *out, uint64_t v,
		      size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	return put(r, out, b, n);
}

static bool put_counted(struct reading *r, struct message_bytes *out,
			const void *bytes, size_t n)
{
	return put_varint(r, out, n) && put(r, out, bytes, n);
}

static bool put_tag(struct reading *r, struct message_bytes *out,
		    const struct schema_field *f, unsigned int type)
{
	return put_varint(r, out, (uint64_t)f->field->number << 3 | type);
}

/* ---- numbers ---- */

/* The value is in json.text. */
static bool read_number_text(struct reading *r)
{
	char next = json_next(&r->json);

	if (next != '0' && next != '"')
		return complain(r, "a number is expected");
	if (next == '"' ? !json_string(&r->json) : !json_word(&r->json))
		return json_failed(r);
	return true;
}

static bool number_failed(struct reading *r, const char *what)
{
	return complain(r, "'%.40s' is no %s", r->json.text, what);
}

/* An integer may be written as 1e3 or 2.0. */
static bool whole(const char *text, long double *value_p)
{
	char *end;

	if (!strpbrk(text, ".eE") || strpbrk(text, "xXnN"))
		return false;
	*value_p = strtold(text, &end);
	return !*end && end > text && *value_p == truncl(*value_p);
}

static bool is_decimal(const char *text)
{
	text += *text == '-';
	return *text && strspn(text, "0123456789") == strlen(text);
}

static bool read_signed(struct reading *r, int64_t min, int64_t max,
			int64_t *value_p)
{
	const char *what = max == INT32_MAX ? "integer of 32 bits with sign"
					    : "integer of 64 bits with sign";
	long double real;

	if (!read_number_text(r))
		return false;
	errno = 0;
	if (is_decimal(r->json.text)) {
		*value_p = strtoll(r->json.text, NULL, 10);
	} else if (whole(r->json.text, &real) && real >= (long double)min &&
		   real <= (long double)max) {
		*value_p = (int64_t)real;
	} else {
		return number_failed(r, what);
	}
	return !errno && *value_p >= min && *value_p <= max
		       ? true
		       : number_failed(r, what);
}

static bool read_unsigned(struct reading *r, uint64_t max, uint64_t *value_p)
{
	const char *what = max == UINT32_MAX
				   ? "integer of 32 bits without sign"
				   : "integer of 64 bits without sign";
	long double real;

	if (!read_number_text(r))
		return false;
	errno = 0;
	if (is_decimal(r->json.text) && r->json.text[0] != '-') {
		*value_p = strtoull(r->json.text, NULL, 10);
	} else if (whole(r->json.text, &real) && real >= 0 &&
		   real <= (long double)max) {
		*value_p = (uint64_t)real;
	} else {
		return number_failed(r, what);
	}
	return !errno && *value_p <= max ? true : number_failed(r, what);
}

static bool read_real(struct reading *r, bool single, double *value_p)
{
	char *end;

	if (!read_number_text(r))
		return false;
	if (!strcmp(r->json.text, "NaN")) {
		*value_p = NAN;
	} else if (!strcmp(r->json.text, "Infinity")) {
		*value_p = INFINITY;
	} else if (!strcmp(r->json.text, "-Infinity")) {
		*value_p = -INFINITY;
	} else {
		*value_p = single ? (double)strtof(r->json.text, &end)
				  : strtod(r->json.text, &end);
		if (*end || !r->json.text[0] || isinf(*value_p) ||
		    strspn(r->json.text, "0123456789+-.eE") !=
			    strlen(r->json.text))
			return number_failed(r, single ? "number of 32 bits"
						       : "number of 64 bits");
	}
	return true;
}

static bool read_float(struct reading *r, struct message_bytes *out)
{
	uint32_t bits;
	double value;
	float single;

	if (!read_real(r, true, &value))
		return false;
	single = (float)value;
	memcpy(&bits, &single, sizeof(bits));
	return put_fixed(r, out, bits, 4);
}

static bool read_double(struct reading *r, struct message_bytes *out)
{
	uint64_t bits;
	double value;

	if (!read_real(r, false, &value))
		return false;
	memcpy(&bits, &value, sizeof(bits));
	return put_fixed(r, out, bits, 8);
}

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static bool read_integer(struct reading *r, enum schema_kind kind,
			 struct message_bytes *out)
{
	uint64_t u = 0;
	int64_t v = 0;

	switch (kind) {
	case SCHEMA_INT32:
		return read_signed(r, INT32_MIN, INT32_MAX, &v) &&
		       put_varint(r, out, (uint64_t)v);
	case SCHEMA_INT64:
		return read_signed(r, INT64_MIN, INT64_MAX, &v) &&
		       put_varint(r, out, (uint64_t)v);
	case SCHEMA_SINT32:
		return read_signed(r, INT32_MIN, INT32_MAX, &v) &&
		       put_varint(r, out, zigzag(v));
	case SCHEMA_SINT64:
		return read_signed(r, INT64_MIN, INT64_MAX, &v) &&
		       put_varint(r, out, zigzag(v));
	case SCHEMA_SFIXED32:
		return read_signed(r, INT32_MIN, INT32_MAX, &v) &&
		       put_fixed(r, out, (uint64_t)v, 4);
	case SCHEMA_SFIXED64:
		return read_signed(r, INT64_MIN, INT64_MAX, &v) &&
		       put_fixed(r, out, (uint64_t)v, 8);
	case SCHEMA_UINT32:
		return read_unsigned(r, UINT32_MAX, &u) &&
		       put_varint(r, out, u);
	case SCHEMA_FIXED32:
		return read_unsigned(r, UINT32_MAX, &u) &&
		       put_fixed(r, out, u, 4);
	case SCHEMA_UINT64:
		return read_unsigned(r, UINT64_MAX, &u) &&
		       put_varint(r, out, u);
	case SCHEMA_FIXED64:
		return read_unsigned(r, UINT64_MAX, &u) &&
		       put_fixed(r, out, u, 8);
	default:
		return complain(r, "a field of a kind that is not known");
	}
}

/* ---- other values ---- */

static bool read_bool(struct reading *r, bool key, struct message_bytes *out)
{
	bool good = key ? json_string(&r->json) : json_word(&r->json);

	if (!good)
		return json_failed(r);
	if (strcmp(r->json.text, "true") != 0 &&
	    strcmp(r->json.text, "false") != 0)
		return complain(r, "'%.40s' is neither true nor false",
				r->json.text);
	return put_varint(r, out, r->json.text[0] == 't');
}

static bool read_enum(struct reading *r, const struct schema_enum *names,
		      struct message_bytes *out)
{
	const Ulrpc__Schema__EnumType *type = names->type;
	struct nearest near;
	int64_t v = 0;

	if (json_next(&r->json) != '"')
		return read_signed(r, INT32_MIN, INT32_MAX, &v) &&
		       put_varint(r, out, (uint64_t)v);
	if (!json_string(&r->json))
		return json_failed(r);
	nearest_init(&near, r->json.text);
	for (size_t i = 0; i < type->n_value; i++) {
		if (!strcmp(type->value[i]->name, r->json.text))
			return put_varint(
				r, out,
				(uint64_t)(int64_t)type->value[i]->number);
		nearest_try(&near, type->value[i]->name);
	}
	if (near.name)
		return complain(r, "enum %s has no '%.60s'. Did you mean '%s'?",
				names->name, r->json.text, near.name);
	return complain(r, "enum %s has no '%.60s'", names->name, r->json.text);
}

static int base64_value(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *digit = c ? strchr(digits, c) : NULL;

	return digit	  ? (int)(digit - digits)
	       : c == '-' ? 62
	       : c == '_' ? 63
			  : -1;
}

/* In place: json.text becomes what it says. */
static bool decode_base64(struct json *j)
{
	size_t n = 0, length = j->length;
	uint32_t bits = 0;

	while (length && j->text[length - 1] == '=' && j->length - length < 2)
		length--;
	if (length % 4 == 1 || (length != j->length && j->length % 4))
		return false;
	for (size_t i = 0; i < length; i++) {
		int value = base64_value(j->text[i]);

		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		if (i % 4)
			j->text[n++] = (char)(bits >> (6 - 2 * (i % 4)));
	}
	j->length = n;
	return true;
}

static bool read_text(struct reading *r, enum schema_kind kind,
		      struct message_bytes *out)
{
	if (!json_string(&r->json))
		return json_failed(r);
	if (kind == SCHEMA_BYTES && !decode_base64(&r->json))
		return complain(r, "not base64");
	return put_counted(r, out, r->json.text, r->json.length);
}

static bool read_part(struct reading *r, const struct schema_type *type,
		      struct message_bytes *out)
{
	struct message_bytes part = { .n = 0 };
	bool good;

	if (!strcmp(type->name, "ulrpc.Bulk"))
		return complain(r, "memory that the service reads or writes "
				   "cannot be given here");
	good = read_message(r, type, &part) &&
	       put_counted(r, out, part.data, part.n);
	free(part.data);
	return good;
}

/* A value without its tag. @key: of a map, where all are strings. */
static bool read_value(struct reading *r, const struct schema_field *f,
		       bool key, struct message_bytes *out)
{
	switch (f->kind) {
	case SCHEMA_MESSAGE:
		return read_part(r, f->type, out);
	case SCHEMA_STRING:
	case SCHEMA_BYTES:
		return read_text(r, f->kind, out);
	case SCHEMA_BOOL:
		return read_bool(r, key, out);
	case SCHEMA_ENUM:
		return read_enum(r, f->names, out);
	case SCHEMA_FLOAT:
		return read_float(r, out);
	case SCHEMA_DOUBLE:
		return read_double(r, out);
	case SCHEMA_GROUP:
		return complain(r, "groups are not supported");
	default:
		return read_integer(r, f->kind, out);
	}
}

/* ---- fields ---- */

static bool read_one(struct reading *r, const struct schema_field *f, bool key,
		     struct message_bytes *out)
{
	return put_tag(r, out, f, schema_wire(f->kind)) &&
	       read_value(r, f, key, out);
}

static bool read_list(struct reading *r, const struct schema_field *f,
		      struct message_bytes *out)
{
	struct message_bytes all = { .n = 0 };
	struct message_bytes *to = f->packed ? &all : out;
	bool good = json_enter(&r->json, '[');

	for (size_t i = 0; good && json_member(&r->json, ']'); i++) {
		size_t before = path_add(r, "[%zu]", i);

		good = f->packed ? read_value(r, f, false, to)
				 : read_one(r, f, false, to);
		r->path_length = good ? before : r->path_length;
	}
	if (good && !r->json.why[0] && all.n)
		good = put_tag(r, out, f, 2) &&
		       put_counted(r, out, all.data, all.n);
	free(all.data);
	return good && !r->json.why[0] ? true : json_failed(r);
}

static bool read_entry(struct reading *r, const struct schema_field *f,
		       struct message_bytes *entry)
{
	size_t before;
	bool good = read_one(r, &f->type->fields[0], true, entry);

	before = path_add(r, "[\"%.60s\"]", good ? r->json.text : "");
	good = good && json_colon(&r->json) &&
	       read_one(r, &f->type->fields[1], false, entry);
	r->path_length = good ? before : r->path_length;
	return good;
}

static bool read_map(struct reading *r, const struct schema_field *f,
		     struct message_bytes *out)
{
	bool good = json_enter(&r->json, '{');

	while (good && json_member(&r->json, '}')) {
		struct message_bytes entry = { .n = 0 };

		good = json_next(&r->json) == '"'
			       ? read_entry(r, f, &entry)
			       : json_wrong(&r->json, "a string is expected");
		good = good && put_tag(r, out, f, 2) &&
		       put_counted(r, out, entry.data, entry.n);
		free(entry.data);
	}
	return good && !r->json.why[0] ? true : json_failed(r);
}

static const struct schema_field *field_named(struct reading *r,
					      const struct schema_type *type)
{
	const char *name = r->json.text;
	struct nearest near;

	for (size_t i = 0; i < type->type->n_field; i++) {
		const struct schema_field *f = &type->fields[i];

		if (!strcmp(f->json, name) || !strcmp(f->field->name, name))
			return f;
	}
	/* How far names are apart takes much longer than whether they are the
	 * same. */
	nearest_init(&near, name);
	for (size_t i = 0; i < type->type->n_field; i++)
		nearest_try(&near, type->fields[i].field->name);
	if (near.name)
		complain(r,
			 "message %s has no field '%.60s'. Did you mean "
			 "'%s'?",
			 type->name, name, near.name);
	else
		complain(r, "message %s has no field '%.60s'", type->name,
			 name);
	return NULL;
}

/* Which fields of a message were given: a byte for each, and behind them one
 * more than the number of the field for each oneof. */
struct given {
	bool *fields;
	size_t *oneofs;
};

static bool is_first(struct reading *r, const struct schema_type *type,
		     const struct schema_field *f, struct given *given)
{
	size_t i = (size_t)(f - type->fields);
	int32_t oneof = f->field->has_oneof_index ? f->field->oneof_index : -1;

	if (given->fields[i])
		return complain(r, "given twice");
	given->fields[i] = true;
	if (oneof < 0 || (size_t)oneof >= type->type->n_oneof_decl)
		return true;
	if (given->oneofs[oneof])
		return complain(
			r, "only one of a oneof can be given, and there is %s",
			type->fields[given->oneofs[oneof] - 1].field->name);
	given->oneofs[oneof] = i + 1;
	return true;
}

static bool read_field(struct reading *r, const struct schema_type *type,
		       struct given *given, struct message_bytes *out)
{
	const struct schema_field *f;
	size_t before;
	bool good;

	if (!json_string(&r->json))
		return json_failed(r);
	f = field_named(r, type);
	if (!f)
		return false;
	before = path_add(r, "%s%s", r->path_length ? "." : "", f->field->name);
	if (!json_colon(&r->json))
		return json_failed(r);
	/* null is no value, which is as if the field were not there */
	if (json_next(&r->json) == 'n')
		good = json_word(&r->json) ? true : json_failed(r);
	else
		good = is_first(r, type, f, given) &&
		       (f->is_map     ? read_map(r, f, out)
			: f->repeated ? read_list(r, f, out)
				      : read_one(r, f, false, out));
	r->path_length = good ? before : r->path_length;
	return good;
}

static bool all_required(struct reading *r, const struct schema_type *type,
			 const struct given *given)
{
	for (size_t i = 0; i < type->type->n_field; i++)
		if (type->fields[i].field->label == SCHEMA_REQUIRED &&
		    !given->fields[i])
			return complain(r, "message %s needs field '%s'",
					type->name,
					type->fields[i].field->name);
	return true;
}

static bool read_message(struct reading *r, const struct schema_type *type,
			 struct message_bytes *out)
{
	struct given given = {
		.fields = calloc(type->type->n_field + 1, sizeof(bool)),
		.oneofs = calloc(type->type->n_oneof_decl + 1, sizeof(size_t)),
	};
	bool good = given.fields && given.oneofs
			    ? true
			    : complain(r, "%s", strerror(ENOMEM));

	if (++r->depth > MESSAGE_DEPTH)
		good = complain(r, "more than %d messages in messages",
				MESSAGE_DEPTH);
	if (good && !json_enter(&r->json, '{'))
		good = json_failed(r);
	while (good && json_member(&r->json, '}'))
		good = read_field(r, type, &given, out);
	if (good && r->json.why[0])
		good = json_failed(r);
	if (good)
		good = all_required(r, type, &given);
	r->depth--;
	free(given.fields);
	free(given.oneofs);
	return good;
}

bool message_read(const struct schema_type *type, const char *json,
		  size_t length, struct message_bytes *out, FILE *err)
{
	struct reading r = { .err = err };
	bool good;

	*out = (struct message_bytes){ .n = 0 };
	json_init(&r.json, json, length);
	good = read_message(&r, type, out);
	if (good && !json_end(&r.json))
		good = json_failed(&r);
	json_fini(&r.json);
	if (!good) {
		free(out->data);
		*out = (struct message_bytes){ .n = 0 };
	}
	return good;
}
