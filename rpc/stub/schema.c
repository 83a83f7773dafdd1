/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stub/schema.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

typedef Ulrpc__Schema__File file_message;
typedef Ulrpc__Schema__Type type_message;
typedef Ulrpc__Schema__Field field_message;
typedef Ulrpc__Schema__EnumType enum_message;

/* Descriptors of messages, or of enums, each once, in the order in which they
 * were found. */
struct met {
	const void **items;
	size_t n_items;
};

struct making {
	Ulrpc__Schema__FileSet *set;
	struct arena *arena;
	struct met types, enums;
	/* there was no memory for something, so the result is not complete */
	bool no_memory;
};

/* ---- memory ---- */

static void *take(struct making *m, size_t size)
{
	void *p = arena_alloc(m->arena, size);

	m->no_memory |= !p;
	return p;
}

/* Returns an array with the @n pointers of @items, and with room for one more:
 * @items itself, unless it is full, which it is when @n is a power of two.
 * NULL: no memory. */
static void *grown(struct making *m, void *items, size_t n)
{
	void **more;

	if (n & (n - 1))
		return items;
	more = take(m, MAX(2 * n, 1) * sizeof(*more));
	if (more && n)
		memcpy(more, items, n * sizeof(*more));
	return more;
}

/* Adds the pointer @item, if it is not NULL, to the field @list of @message.
 * Its length is in the field whose name is "n_" and that of @list. */
#define APPEND(m, message, list, item)                                      \
	do {                                                                \
		void *all = grown(m, (message)->list, (message)->n_##list); \
                                                                            \
		if (all && (item)) {                                        \
			(message)->list = all;                              \
			(message)->list[(message)->n_##list++] = (item);    \
		}                                                           \
	} while (0)

static void meet(struct making *m, struct met *met, const void *descriptor)
{
	for (size_t i = 0; i < met->n_items; i++)
		if (met->items[i] == descriptor)
			return;
	APPEND(m, met, items, descriptor);
}

/* ---- names ---- */

static char *borrow(const char *text)
{
	return (char *)(uintptr_t)text;
}

static char *joined(struct making *m, const char *before, const char *text,
		    size_t length, const char *after)
{
	size_t size = strlen(before) + length + strlen(after) + 1;
	char *name = take(m, size);

	if (name)
		snprintf(name, size, "%s%.*s%s", before, (int)length, text,
			 after);
	return name;
}

static char *dotted(struct making *m, const char *name)
{
	return joined(m, ".", name, strlen(name), "");
}

/* Returns the full name @name without the package in front. */
static const char *in_package(const char *name, const char *package)
{
	size_t length = strlen(package);

	return length && !strncmp(name, package, length) && name[length] == '.'
		       ? name + length + 1
		       : name;
}

/* ---- places: files, and messages in messages ---- */

static file_message *file_of(struct making *m, const char *package)
{
	file_message *file;

	for (size_t i = 0; i < m->set->n_file; i++)
		if (!strcmp(m->set->file[i]->package, package))
			return m->set->file[i];
	file = take(m, sizeof(*file));
	if (!file)
		return NULL;
	ulrpc__schema__file__init(file);
	file->name = joined(m, package, "", 0, ".proto");
	file->package = borrow(package);
	/* true until a field comes that only proto2 has */
	file->syntax = borrow("proto3");
	APPEND(m, m->set, file, file);
	return file;
}

static type_message *type_named(struct making *m, file_message *file,
				type_message *in, const char *name,
				size_t length)
{
	type_message **list = in ? in->nested_type : file->message_type;
	size_t n = in ? in->n_nested_type : file->n_message_type;
	type_message *type;

	for (size_t i = 0; i < n; i++)
		if (!strncmp(list[i]->name, name, length) &&
		    !list[i]->name[length])
			return list[i];
	type = take(m, sizeof(*type));
	if (!type)
		return NULL;
	ulrpc__schema__type__init(type);
	type->name = joined(m, "", name, length, "");
	if (!type->name)
		return NULL;
	if (in)
		APPEND(m, in, nested_type, type);
	else
		APPEND(m, file, message_type, type);
	return type;
}

/* Finds the place of the message or enum with the full name @full. Sets *@in_p
 * to the message that it belongs to; NULL: it belongs to the file. Sets
 * *@name_p to its own name. Returns the file; NULL: no memory. */
static file_message *place(struct making *m, const char *full,
			   const char *package, type_message **in_p,
			   const char **name_p)
{
	file_message *file = file_of(m, package);
	const char *name = in_package(full, package), *dot;

	*in_p = NULL;
	while (file && (dot = strchr(name, '.'))) {
		*in_p = type_named(m, file, *in_p, name, (size_t)(dot - name));
		if (!*in_p)
			return NULL;
		name = dot + 1;
	}
	*name_p = name;
	return file;
}

static void depend(struct making *m, file_message *file, const char *package)
{
	file_message *other = file_of(m, package);

	if (!other || other == file)
		return;
	for (size_t i = 0; i < file->n_dependency; i++)
		if (file->dependency[i] == other->name)
			return;
	APPEND(m, file, dependency, other->name);
}

/* ---- fields ---- */

enum { OPTIONAL = 1, REQUIRED, REPEATED };

/* the numbers of FieldDescriptorProto.Type, by ProtobufCType */
static const int32_t types[] = {
	[PROTOBUF_C_TYPE_INT32] = 5,	 [PROTOBUF_C_TYPE_SINT32] = 17,
	[PROTOBUF_C_TYPE_SFIXED32] = 15, [PROTOBUF_C_TYPE_INT64] = 3,
	[PROTOBUF_C_TYPE_SINT64] = 18,	 [PROTOBUF_C_TYPE_SFIXED64] = 16,
	[PROTOBUF_C_TYPE_UINT32] = 13,	 [PROTOBUF_C_TYPE_FIXED32] = 7,
	[PROTOBUF_C_TYPE_UINT64] = 4,	 [PROTOBUF_C_TYPE_FIXED64] = 6,
	[PROTOBUF_C_TYPE_FLOAT] = 2,	 [PROTOBUF_C_TYPE_DOUBLE] = 1,
	[PROTOBUF_C_TYPE_BOOL] = 8,	 [PROTOBUF_C_TYPE_ENUM] = 14,
	[PROTOBUF_C_TYPE_STRING] = 9,	 [PROTOBUF_C_TYPE_BYTES] = 12,
	[PROTOBUF_C_TYPE_MESSAGE] = 11,
};

/* Is @name what protoc calls the entries of a map @field, such as "MyMapEntry"
 * for my_map? */
static bool names_entry(const char *name, const char *field)
{
	bool upper = true;

	for (; *field; field++) {
		int c = upper ? toupper((unsigned char)*field) : *field;

		upper = *field == '_';
		if (!upper && *name++ != (char)c)
			return false;
	}
	return !strcmp(name, "Entry");
}

static bool is_entry(const ProtobufCMessageDescriptor *in,
		     const ProtobufCFieldDescriptor *f)
{
	const ProtobufCMessageDescriptor *entry = f->descriptor;
	size_t length = strlen(in->name);

	return f->label == PROTOBUF_C_LABEL_REPEATED && entry->n_fields == 2 &&
	       !strcmp(entry->fields[0].name, "key") &&
	       entry->fields[0].id == 1 &&
	       !strcmp(entry->fields[1].name, "value") &&
	       entry->fields[1].id == 2 &&
	       !strncmp(entry->name, in->name, length) &&
	       entry->name[length] == '.' &&
	       names_entry(entry->name + length + 1, f->name);
}

static void add_map_option(struct making *m,
			   const ProtobufCMessageDescriptor *entry)
{
	const char *name;
	type_message *in, *type = NULL;
	file_message *file =
		place(m, entry->name, entry->package_name, &in, &name);

	if (file)
		type = type_named(m, file, in, name, strlen(name));
	if (!type || type->options)
		return;
	type->options = take(m, sizeof(*type->options));
	if (!type->options)
		return;
	ulrpc__schema__type_options__init(type->options);
	type->options->has_map_entry = type->options->map_entry = true;
}

/* Returns the number of the oneof that field @i of @d is in. Fields of one
 * oneof have the same quantifier_offset. */
static int32_t oneof_of(struct making *m, const ProtobufCMessageDescriptor *d,
			unsigned int i, type_message *type)
{
	const ProtobufCFieldDescriptor *fields = d->fields;
	Ulrpc__Schema__Oneof *oneof;
	char name[16];

	for (unsigned int k = 0; k < i && k < type->n_field; k++)
		if ((fields[k].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
		    fields[k].quantifier_offset == fields[i].quantifier_offset)
			return type->field[k]->oneof_index;
	oneof = take(m, sizeof(*oneof));
	if (!oneof)
		return 0;
	ulrpc__schema__oneof__init(oneof);
	snprintf(name, sizeof(name), "oneof%zu", type->n_oneof_decl + 1);
	oneof->name = joined(m, "", name, strlen(name), "");
	APPEND(m, type, oneof_decl, oneof);
	return (int32_t)type->n_oneof_decl - 1;
}

static void add_reference(struct making *m, file_message *file,
			  const ProtobufCMessageDescriptor *in,
			  const ProtobufCFieldDescriptor *f,
			  field_message *field)
{
	if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
		const ProtobufCMessageDescriptor *part = f->descriptor;

		field->type_name = dotted(m, part->name);
		depend(m, file, part->package_name);
		meet(m, &m->types, part);
		if (is_entry(in, f))
			add_map_option(m, part);
	} else if (f->type == PROTOBUF_C_TYPE_ENUM) {
		const ProtobufCEnumDescriptor *part = f->descriptor;

		field->type_name = dotted(m, part->name);
		depend(m, file, part->package_name);
		meet(m, &m->enums, part);
	}
}

static void add_packed(struct making *m, const ProtobufCFieldDescriptor *f,
		       field_message *field)
{
	if (!(f->flags & PROTOBUF_C_FIELD_FLAG_PACKED))
		return;
	field->options = take(m, sizeof(*field->options));
	if (!field->options)
		return;
	ulrpc__schema__field_options__init(field->options);
	field->options->has_packed = field->options->packed = true;
}

static void add_field(struct making *m, file_message *file,
		      const ProtobufCMessageDescriptor *d, unsigned int i,
		      type_message *type)
{
	const ProtobufCFieldDescriptor *f = &d->fields[i];
	field_message *field = take(m, sizeof(*field));

	if (!field)
		return;
	ulrpc__schema__field__init(field);
	field->name = borrow(f->name);
	field->has_number = field->has_label = field->has_type = true;
	field->number = (int32_t)f->id;
	field->label = f->label == PROTOBUF_C_LABEL_REPEATED   ? REPEATED
		       : f->label == PROTOBUF_C_LABEL_REQUIRED ? REQUIRED
							       : OPTIONAL;
	field->type = types[f->type];
	if (f->label == PROTOBUF_C_LABEL_REQUIRED ||
	    (f->label == PROTOBUF_C_LABEL_OPTIONAL &&
	     !(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)))
		file->syntax = borrow("proto2");
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		field->oneof_index = oneof_of(m, d, i, type);
		field->has_oneof_index = true;
	}
	add_packed(m, f, field);
	add_reference(m, file, d, f, field);
	APPEND(m, type, field, field);
}

/* ---- types and services ---- */

static void add_type(struct making *m, const ProtobufCMessageDescriptor *d)
{
	const char *name;
	type_message *in, *type = NULL;
	file_message *file = place(m, d->name, d->package_name, &in, &name);

	if (file)
		type = type_named(m, file, in, name, strlen(name));
	for (unsigned int i = 0; type && i < d->n_fields; i++)
		add_field(m, file, d, i, type);
}

static void add_value(struct making *m, enum_message *type, const char *name,
		      int number)
{
	Ulrpc__Schema__EnumValue *value = take(m, sizeof(*value));

	if (!value)
		return;
	ulrpc__schema__enum_value__init(value);
	value->name = borrow(name);
	value->has_number = true;
	value->number = number;
	APPEND(m, type, value, value);
}

static void add_enum(struct making *m, const ProtobufCEnumDescriptor *d)
{
	const char *name;
	type_message *in;
	file_message *file = place(m, d->name, d->package_name, &in, &name);
	enum_message *type = take(m, sizeof(*type));

	if (!file || !type)
		return;
	ulrpc__schema__enum_type__init(type);
	type->name = borrow(name);
	/* 0, which proto3 has as the default, has to be the first; protobuf-c
	 * has them by number. */
	for (int zero = 1; zero >= 0; zero--)
		for (unsigned int i = 0; i < d->n_values; i++)
			if ((d->values[i].value == 0) == zero)
				add_value(m, type, d->values[i].name,
					  d->values[i].value);
	if (in)
		APPEND(m, in, enum_type, type);
	else
		APPEND(m, file, enum_type, type);
}

static void add_method(struct making *m, file_message *file,
		       Ulrpc__Schema__Service *service,
		       const ProtobufCMethodDescriptor *d,
		       enum ulrpc_streaming streaming)
{
	Ulrpc__Schema__Method *method = take(m, sizeof(*method));

	if (!method)
		return;
	ulrpc__schema__method__init(method);
	method->name = borrow(d->name);
	method->input_type = dotted(m, d->input->name);
	method->output_type = dotted(m, d->output->name);
	method->has_client_streaming = method->has_server_streaming =
		streaming != ULRPC_STREAMING_NONE;
	method->client_streaming = streaming == ULRPC_STREAMING_REQUESTS ||
				   streaming == ULRPC_STREAMING_BOTH;
	method->server_streaming = streaming == ULRPC_STREAMING_REPLIES ||
				   streaming == ULRPC_STREAMING_BOTH;
	depend(m, file, d->input->package_name);
	depend(m, file, d->output->package_name);
	meet(m, &m->types, d->input);
	meet(m, &m->types, d->output);
	APPEND(m, service, method, method);
}

static void add_service(struct making *m, const ProtobufCServiceDescriptor *d,
			const uint8_t *streaming)
{
	file_message *file = file_of(m, d->package);
	Ulrpc__Schema__Service *service = take(m, sizeof(*service));

	if (!file || !service)
		return;
	ulrpc__schema__service__init(service);
	service->name = borrow(in_package(d->name, d->package));
	for (unsigned int i = 0; i < d->n_methods; i++)
		add_method(m, file, service, &d->methods[i],
			   streaming ? (enum ulrpc_streaming)streaming[i]
				     : ULRPC_STREAMING_NONE);
	APPEND(m, file, service, service);
}

int schema_add(Ulrpc__Schema__FileSet *set, struct arena *arena,
	       const ProtobufCServiceDescriptor *descriptor,
	       const uint8_t *streaming)
{
	struct making m = { .set = set, .arena = arena };

	add_service(&m, descriptor, streaming);
	/* The list grows while it is walked. */
	for (size_t i = 0; i < m.types.n_items; i++)
		add_type(&m, m.types.items[i]);
	for (size_t i = 0; i < m.enums.n_items; i++)
		add_enum(&m, m.enums.items[i]);
	return m.no_memory ? -ENOMEM : 0;
}
