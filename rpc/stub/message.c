/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stub/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "rpc/bulk/bulk.h"

/* ---- memory ---- */

#define ALIGN	  _Alignof(max_align_t)
#define CHUNK_MIN 4096

struct arena_chunk {
	struct arena_chunk *next;
	_Alignas(max_align_t) uint8_t bytes[];
};

static void *arena_take(struct arena *a, size_t size)
{
	a->last = a->p;
	a->p += size;
	return a->last;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *chunk;
	size_t room;

	if (unlikely(size > SIZE_MAX - ALIGN))
		return NULL;
	size = (MAX(size, 1) + ALIGN - 1) / ALIGN * ALIGN;
	if (likely(size <= (size_t)(a->end - a->p)))
		return arena_take(a, size);
	if (size > a->left)
		return NULL;
	room = MIN(MAX(size, CHUNK_MIN), a->left / ALIGN * ALIGN);
	chunk = malloc(sizeof(*chunk) + room);
	if (!chunk) {
		a->no_memory = true;
		return NULL;
	}
	chunk->next = a->chunks;
	a->chunks = chunk;
	a->left -= room;
	a->p = chunk->bytes;
	a->end = a->p + room;
	return arena_take(a, size);
}

static void *alloc_for_protobuf(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

/* Frees @p if it is the newest allocation; otherwise its memory stays until
 * arena_fini(). What protobuf-c frees while it unpacks are mostly its tables of
 * fields, which are often the newest. */
static void free_for_protobuf(void *arena, void *p)
{
	struct arena *a = arena;

	if (p && p == a->last) {
		a->p = a->last;
		a->last = NULL;
	}
}

void arena_init(struct arena *a, void *first, size_t size, size_t limit)
{
	size_t skip = -(uintptr_t)first % ALIGN;

	*a = (struct arena){
		.allocator = { alloc_for_protobuf, free_for_protobuf, a },
		.p = first,
		.end = first,
		.left = limit,
	};
	if (size >= skip + ALIGN) {
		a->p += skip;
		a->end = a->p + (size - skip) / ALIGN * ALIGN;
	}
}

void arena_fini(struct arena *a)
{
	struct arena_chunk *chunk;

	while ((chunk = a->chunks)) {
		a->chunks = chunk->next;
		free(chunk);
	}
}

/* ---- types ---- */

/* A set of types. */
struct seen {
	const ProtobufCMessageDescriptor **types;
	size_t n, size;
};

static int seen_add(struct seen *seen, const ProtobufCMessageDescriptor *type)
{
	void *more;
	size_t i;

	for (i = 0; i < seen->n; i++)
		if (seen->types[i] == type)
			return 0;
	if (seen->n == seen->size) {
		seen->size = MAX(seen->size * 2, 16);
		more = realloc(seen->types, seen->size * sizeof(*seen->types));
		if (!more)
			return -ENOMEM;
		seen->types = more;
	}
	seen->types[seen->n++] = type;
	return 0;
}

static int seen_add_parts(struct seen *seen,
			  const ProtobufCMessageDescriptor *type)
{
	int rc = 0;

	for (unsigned int i = 0; !rc && i < type->n_fields; i++)
		if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			rc = seen_add(seen, type->fields[i].descriptor);
	return rc;
}

int message_type_init(struct message_type *type,
		      const ProtobufCMessageDescriptor *descriptor)
{
	struct message_type found = { .descriptor = descriptor };
	struct seen seen = { .n = 0 };
	int rc = seen_add(&seen, descriptor);

	for (size_t i = 0; !rc && i < seen.n; i++) {
		const ProtobufCMessageDescriptor *part = seen.types[i];

		found.largest = MAX(found.largest, part->sizeof_message);
		found.bulks |= part == &ulrpc__bulk__descriptor;
		rc = seen_add_parts(&seen, part);
	}
	free(seen.types);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < descriptor->n_fields; i++)
		found.nests |=
			descriptor->fields[i].type == PROTOBUF_C_TYPE_MESSAGE;
	*type = found;
	return 0;
}

/*
 * For message_heap_max(). A nested message takes at least two bytes on the
 * wire. In memory it takes a struct, a pointer to that, and protobuf-c's
 * bookkeeping; an arena wastes less than half of what it has. Messages usually
 * take far less than this limit. A message takes more if a field occurs very
 * often in it, because protobuf-c merges each occurrence with the one before.
 */
#define BOOKKEEPING 256
#define HEAP_LEAST  8192

size_t message_heap_max(const struct message_type *type, size_t length)
{
	return (length / 2 + 1) * (2 * type->largest + BOOKKEEPING) +
	       HEAP_LEAST;
}

/* ---- depth ---- */

static uint64_t read_varint(struct reader *r)
{
	uint64_t value = 0;
	unsigned int shift;
	uint8_t byte;

	for (shift = 0; shift < 64; shift += 7) {
		read_bytes(r, &byte, 1);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	r->bad = true;
	return 0;
}

/* Returns the type of the nested message in field @id; NULL: the field is no
 * message, or not known. */
static const ProtobufCMessageDescriptor *part_type(
	const ProtobufCMessageDescriptor *type, uint64_t id)
{
	unsigned int low = 0, high = type->n_fields;

	while (low < high) {
		unsigned int middle = (low + high) / 2;
		const ProtobufCFieldDescriptor *f = &type->fields[middle];

		if (f->id == id)
			return f->type == PROTOBUF_C_TYPE_MESSAGE
				       ? f->descriptor
				       : NULL;
		if (f->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Does the message in @r nest deeper than MESSAGE_DEPTH_MAX? Does not look for
 * malformed bytes, which protobuf-c refuses. */
static bool too_deep(const ProtobufCMessageDescriptor *type, struct reader r,
		     unsigned int depth)
{
	const ProtobufCMessageDescriptor *part;
	const uint8_t *bytes;
	uint64_t tag, length;

	if (depth > MESSAGE_DEPTH_MAX)
		return true;
	while (!r.bad && reader_left(&r)) {
		tag = read_varint(&r);
		switch (tag & 7) {
		case PROTOBUF_C_WIRE_TYPE_VARINT:
			read_varint(&r);
			break;
		case PROTOBUF_C_WIRE_TYPE_64BIT:
			read_skip(&r, 8);
			break;
		case PROTOBUF_C_WIRE_TYPE_32BIT:
			read_skip(&r, 4);
			break;
		case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
			length = read_varint(&r);
			bytes = read_skip(&r, length);
			part = bytes ? part_type(type, tag >> 3) : NULL;
			if (part &&
			    too_deep(part, reader_of(bytes, length), depth + 1))
				return true;
			break;
		default:
			return false;
		}
	}
	return false;
}

ProtobufCMessage *message_unpack(const struct message_type *type,
				 const void *body, size_t length,
				 ProtobufCAllocator *allocator)
{
	if (type->nests &&
	    too_deep(type->descriptor, reader_of(body, length), 1))
		return NULL;
	return protobuf_c_message_unpack(type->descriptor, allocator, length,
					 body);
}

/* Raises the limit of @heap, which is for the outermost struct alone, to that
 * for all structs that the message may have. Few messages need this, which
 * looks through the types. Is there room for @size bytes then? */
static bool heap_raise(struct heap *heap, size_t size)
{
	struct message_type type = { .descriptor = NULL };
	size_t before = heap->left;

	if (heap->raised)
		return false;
	heap->raised = true;
	if (message_type_init(&type, heap->type.descriptor)) {
		heap->no_memory = true;
		return false;
	}
	heap->left += message_heap_max(&type, heap->length) -
		      message_heap_max(&heap->type, heap->length);
	return heap->left >= before && size <= heap->left;
}

static void *heap_alloc(void *data, size_t size)
{
	struct heap *heap = data;
	void *p;

	if (unlikely(size > heap->left) && !heap_raise(heap, size))
		return NULL;
	heap->left -= size;
	p = malloc(MAX(size, 1));
	heap->no_memory |= !p;
	return p;
}

/* What is freed is not given back to the limit, so that this bounds the work,
 * too: protobuf-c copies all of a part each time it is merged. */
static void heap_free(void *data, void *p)
{
	(void)data;
	free(p);
}

void heap_init(struct heap *heap, const ProtobufCMessageDescriptor *descriptor,
	       size_t length)
{
	*heap = (struct heap){
		.allocator = { heap_alloc, heap_free, heap },
		.type = { .descriptor = descriptor,
			  .largest = descriptor->sizeof_message,
			  .nests = true },
		.length = length,
	};
	heap->left = message_heap_max(&heap->type, length);
}

ProtobufCMessage *heap_unpack(struct heap *heap, const void *body)
{
	return message_unpack(&heap->type, body, heap->length,
			      &heap->allocator);
}

/* ---- packing ---- */

int packed_init(struct packed *packed, const ProtobufCMessage *message)
{
	packed->length = protobuf_c_message_get_packed_size(message);
	packed->bytes = packed->small;
	if (unlikely(packed->length > sizeof(packed->small))) {
		packed->bytes = malloc(packed->length);
		if (!packed->bytes)
			return -ENOMEM;
	}
	protobuf_c_message_pack(message, packed->bytes);
	return 0;
}

void packed_fini(struct packed *packed)
{
	if (unlikely(packed->bytes != packed->small))
		free(packed->bytes);
}

/* ---- bulks ---- */

static int add_bulk(Ulrpc__Bulk *field, struct bulk_list *list)
{
	struct ulrpc_bulk *bulk = bulk_of_field(field);
	unsigned int i;

	if (!bulk)
		return -EINVAL;
	for (i = 0; i < list->n; i++)
		if (list->bulks[i] == bulk)
			break;
	if (i == ULRPC_BULKS_MAX)
		return -E2BIG;
	list->bulks[i] = bulk;
	list->n = MAX(list->n, i + 1);
	field->index = i;
	return 0;
}

static int add_part(ProtobufCMessage *part, struct bulk_list *list)
{
	if (part->descriptor == &ulrpc__bulk__descriptor)
		return add_bulk((Ulrpc__Bulk *)part, list);
	return message_bulks(part, list);
}

static const void *member(const ProtobufCMessage *message, unsigned int offset)
{
	return (const uint8_t *)message + offset;
}

/* Returns how many messages field @f of @message has. *@parts_p points to an
 * array of pointers to them. */
static size_t parts_of(const ProtobufCMessage *message,
		       const ProtobufCFieldDescriptor *f,
		       ProtobufCMessage *const **parts_p)
{
	ProtobufCMessage *const *at = member(message, f->offset);

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		*parts_p = *(ProtobufCMessage *const *const *)at;
		return *(const size_t *)member(message, f->quantifier_offset);
	}
	if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
	    *(const uint32_t *)member(message, f->quantifier_offset) != f->id)
		return 0;
	*parts_p = at;
	return *at && *at != f->default_value;
}

int message_bulks(const ProtobufCMessage *message, struct bulk_list *list)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	ProtobufCMessage *const *parts = NULL;
	size_t n;
	int rc;

	for (unsigned int i = 0; i < type->n_fields; i++) {
		if (type->fields[i].type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		n = parts_of(message, &type->fields[i], &parts);
		for (size_t k = 0; k < n; k++) {
			rc = add_part(parts[k], list);
			if (rc)
				return rc;
		}
	}
	return 0;
}

/* ---- methods ---- */

static int options_check(const struct ulrpc_method_options *o,
			 struct conf_owner owner)
{
	const char *field = NULL;
	unsigned int v;

	if ((v = (unsigned int)o->semantics) > ULRPC_EXACTLY_ONCE)
		field = "semantics";
	else if ((v = (unsigned int)o->priority) > ULRPC_PRIORITY_BACKGROUND)
		field = "priority";
	else if ((v = (unsigned int)o->run) > ULRPC_RUN_INLINE)
		field = "run";
	else if ((v = o->reply_max) > ULRPC_BODY_MAX)
		field = "reply_max";
	else if ((v = (unsigned int)o->streaming) > ULRPC_STREAMING_BOTH)
		field = "streaming";
	if (field)
		return conf_refuse(owner, -EINVAL,
				   "options: '%.64s': %u is out of the range "
				   "of %s",
				   o->method, v, field);
	if (o->streaming && (o->semantics || o->priority || o->reply_max))
		return conf_refuse(owner, -EINVAL,
				   "options: '%.64s': a stream has no "
				   "semantics, priority and reply_max",
				   o->method);
	return 0;
}

static int set_options(struct stub_method *methods,
		       const ProtobufCServiceDescriptor *descriptor,
		       const struct ulrpc_method_options *options,
		       struct conf_owner owner)
{
	const ProtobufCMethodDescriptor *m;

	for (; options->method; options++) {
		int rc = options_check(options, owner);

		if (rc)
			return rc;
		m = protobuf_c_service_descriptor_get_method_by_name(
			descriptor, options->method);
		if (!m)
			return conf_refuse(owner, -ENOENT,
					   "options: %.64s has no method "
					   "'%.64s'",
					   descriptor->name, options->method);
		methods[m - descriptor->methods].options = *options;
	}
	return 0;
}

static int set_method(struct stub_method *method,
		      const ProtobufCMethodDescriptor *descriptor)
{
	int rc = message_type_init(&method->input, descriptor->input);

	if (!rc)
		rc = message_type_init(&method->output, descriptor->output);
	method->name = descriptor->name;
	method->number = ulrpc_method(descriptor->name);
	return rc;
}

int stub_methods_new(const ProtobufCServiceDescriptor *descriptor,
		     const struct ulrpc_method_options *options,
		     struct conf_owner owner, struct stub_method **methods_p)
{
	struct stub_method *methods;
	int rc = 0;

	if (descriptor->magic != PROTOBUF_C__SERVICE_DESCRIPTOR_MAGIC)
		return conf_refuse(owner, -EINVAL,
				   "descriptor: it is not that of a service");
	/* A service may have no methods yet. */
	methods = calloc(descriptor->n_methods + 1, sizeof(*methods));
	if (!methods)
		return -ENOMEM;
	for (unsigned int i = 0; !rc && i < descriptor->n_methods; i++)
		rc = set_method(&methods[i], &descriptor->methods[i]);
	if (!rc && options)
		rc = set_options(methods, descriptor, options, owner);
	if (rc)
		free(methods);
	else
		*methods_p = methods;
	return rc;
}
