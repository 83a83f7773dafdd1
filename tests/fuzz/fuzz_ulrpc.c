/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ulrpc(1) reads. The first byte says what the rest is: JSON of a user,
 * which, if it is a message, is printed and read again to the same; a reply of
 * a hostile server; or what such a server says that its messages look like.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rpc/stub/schema.h"
#include "tests/unit/rpc/stub/shapes.pb-c.h"
#include "tools/ulrpc/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *nowhere;

/* The schema of test.shapes.Shapes, made once. */
static const struct schema_type *shape(void)
{
	static struct schema schema;
	Ulrpc__Schema__FileSet set = ULRPC__SCHEMA__FILE_SET__INIT;
	struct arena arena;
	uint8_t *bytes;
	size_t n;

	if (!schema.set) {
		nowhere = fopen("/dev/null", "w");
		arena_init(&arena, NULL, 0, 1 << 20);
		BUG_ON(schema_add(&set, &arena,
				  &test__shapes__shapes__descriptor, NULL));
		n = ulrpc__schema__file_set__get_packed_size(&set);
		bytes = malloc(n);
		BUG_ON(!nowhere || !bytes);
		ulrpc__schema__file_set__pack(&set, bytes);
		BUG_ON(schema_open(
			&schema,
			ulrpc__schema__file_set__unpack(NULL, n, bytes),
			nowhere));
		free(bytes);
		arena_fini(&arena);
	}
	return schema_type(&schema, "test.shapes.Shape");
}

static char *print(const struct message_bytes *m, size_t *length_p)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length_p);

	BUG_ON(!out);
	BUG_ON(!message_print(shape(), m->data, m->n, false, out, nowhere));
	fclose(out);
	return text;
}

static void read_json(const char *json, size_t length)
{
	struct message_bytes first, second;
	char *text, *again;

	if (!message_read(shape(), json, length, &first, nowhere))
		return;
	text = print(&first, &length);
	BUG_ON(!message_read(shape(), text, length, &second, nowhere));
	again = print(&second, &length);
	BUG_ON(strcmp(text, again) != 0);
	free(first.data);
	free(second.data);
	free(text);
	free(again);
}

static void read_schema(const uint8_t *data, size_t size)
{
	Ulrpc__Schema__FileSet *set =
		ulrpc__schema__file_set__unpack(NULL, size, data);
	struct schema schema;
	int rc;

	if (!set)
		return;
	rc = schema_open(&schema, set, nowhere);
	for (size_t i = 0; !rc && i < schema.nservices; i++)
		schema_print(&schema, &schema.services[i], NULL, nowhere);
	for (size_t i = 0; !rc && i < schema.ntypes; i++) {
		struct message_bytes m;

		if (message_read(&schema.types[i], "{}", 2, &m, nowhere))
			free(m.data);
		message_print(&schema.types[i], data, size, true, nowhere,
			      nowhere);
	}
	schema_free(&schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct schema_type *type = shape();

	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		read_json((const char *)data + 1, size - 1);
		break;
	case 1:
		message_print(type, data + 1, size - 1, true, nowhere, nowhere);
		break;
	default:
		read_schema(data + 1, size - 1);
	}
	return 0;
}
