/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between JSON and the wire, whose other side is protobuf-c.
 * Requirement J5. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rpc/stub/schema.h"
#include "tests/unit/rpc/stub/shapes.pb-c.h"
#include "tools/ulrpc/json.h"
#include "tools/ulrpc/message.h"

static struct schema schema;
static const struct schema_type *shape;
static char *said; /* what was complained of last */
static size_t said_length;
static FILE *err;

/* As a server would tell it. */
static Ulrpc__Schema__FileSet *told(const ProtobufCServiceDescriptor *d)
{
	Ulrpc__Schema__FileSet set = ULRPC__SCHEMA__FILE_SET__INIT, *copy;
	struct arena arena;
	uint8_t *bytes;
	size_t n;

	arena_init(&arena, NULL, 0, 1 << 20);
	cr_assert(schema_add(&set, &arena, d, NULL) == 0);
	n = ulrpc__schema__file_set__get_packed_size(&set);
	bytes = malloc(n);
	cr_assert(ulrpc__schema__file_set__pack(&set, bytes) == n);
	copy = ulrpc__schema__file_set__unpack(NULL, n, bytes);
	free(bytes);
	arena_fini(&arena);
	return copy;
}

static void set_up(void)
{
	err = open_memstream(&said, &said_length);
	cr_assert(schema_open(&schema, told(&test__shapes__shapes__descriptor),
			      err) == 0);
	shape = schema_type(&schema, ".test.shapes.Shape");
	cr_assert(shape);
}

static void tear_down(void)
{
	schema_free(&schema);
	fclose(err);
	free(said);
}

TestSuite(ulrpc, .init = set_up, .fini = tear_down);

static void forget_said(void)
{
	fflush(err);
	rewind(err);
}

static const char *what_was_said(void)
{
	fputc('\0', err);
	fflush(err);
	return said;
}

/* ---- what comes out of JSON, and into it ---- */

static Test__Shapes__Shape *read_shape(const char *json)
{
	struct message_bytes bytes;
	Test__Shapes__Shape *s;

	forget_said();
	cr_assert(message_read(shape, json, strlen(json), &bytes, err),
		  "%s: %s", json, what_was_said());
	s = test__shapes__shape__unpack(NULL, bytes.n, bytes.data);
	cr_assert(s, "%s", json);
	free(bytes.data);
	return s;
}

static char *print_bytes(const void *bytes, size_t n, bool defaults)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	cr_assert(message_print(shape, bytes, n, defaults, out, err));
	fclose(out);
	return text;
}

static char *print_shape(const Test__Shapes__Shape *s)
{
	size_t n = test__shapes__shape__get_packed_size(s);
	uint8_t *bytes = malloc(n + 1);
	char *text;

	test__shapes__shape__pack(s, bytes);
	text = print_bytes(bytes, n, false);
	free(bytes);
	return text;
}

/* JSON that becomes a message, which protobuf-c reads and writes again, is the
 * same. */
static const char *const same[] = {
	"{}\n",
	"{\n  \"yes\": true\n}\n",
	"{\n  \"i32\": -2147483648\n}\n",
	"{\n  \"i32\": 2147483647\n}\n",
	"{\n  \"i64\": \"-9223372036854775808\"\n}\n",
	"{\n  \"u32\": 4294967295\n}\n",
	"{\n  \"u64\": \"18446744073709551615\"\n}\n",
	"{\n  \"s32\": -2147483648\n}\n",
	"{\n  \"s64\": \"-9223372036854775808\"\n}\n",
	"{\n  \"f32\": 4294967295\n}\n",
	"{\n  \"f64\": \"18446744073709551615\"\n}\n",
	"{\n  \"sf32\": -5\n}\n",
	"{\n  \"sf64\": \"-5\"\n}\n",
	"{\n  \"small\": 0.1\n}\n",
	"{\n  \"small\": \"-Infinity\"\n}\n",
	"{\n  \"large\": 0.1\n}\n",
	"{\n  \"large\": \"NaN\"\n}\n",
	"{\n  \"large\": 1.7976931348623157e+308\n}\n",
	"{\n  \"text\": \"a \\\"b\\\" \\\\ \\n \\u0001 \xc3\xb6 "
	"\xf0\x9f\x98\x80\"\n"
	"}\n",
	"{\n  \"blob\": \"AA==\"\n}\n",
	"{\n  \"blob\": \"/+8B\"\n}\n",
	"{\n  \"kind\": \"SQUARE\"\n}\n",
	"{\n  \"kind\": 77\n}\n",
	"{\n  \"part\": {}\n}\n",
	"{\n  \"part\": {\n    \"kind\": \"ROUND\",\n    \"name\": \"x\"\n  "
	"}\n}\n",
	"{\n  \"inner\": {\n    \"depth\": -1\n  }\n}\n",
	"{\n  \"shape\": {\n    \"shape\": {\n      \"yes\": true\n    }\n  "
	"}\n}\n",
	"{\n  \"numbers\": [\"1\", \"300\", \"18446744073709551615\"]\n}\n",
	"{\n  \"unpacked\": [-1, 0, 1]\n}\n",
	"{\n  \"doubles\": [0.5, -1e+100]\n}\n",
	"{\n  \"words\": [\"\", \"a\"]\n}\n",
	"{\n  \"parts\": [{}, {\n    \"name\": \"a\"\n  }]\n}\n",
	"{\n  \"kinds\": [\"ROUND\", \"NONE\", 9]\n}\n",
	"{\n  \"byName\": {\n    \"a\": 1,\n    \"b\": 0\n  }\n}\n",
	"{\n  \"byNumber\": {\n    \"-7\": {\n      \"name\": \"x\"\n    }\n  "
	"}\n}\n",
	"{\n  \"byAnswer\": {\n    \"true\": \"ROUND\",\n    \"false\": "
	"\"NONE\"\n"
	"  }\n}\n",
	"{\n  \"pickedNumber\": 0\n}\n",
	"{\n  \"pickedText\": \"\"\n}\n",
	"{\n  \"pickedPart\": {},\n  \"b\": false\n}\n",
	"{\n  \"pairs\": [{\n    \"key\": \"a\",\n    \"value\": \"b\"\n  "
	"}]\n}\n",
	"{\n  \"old\": {\n    \"number\": 3\n  },\n  \"top\": \"UP\"\n}\n",
};

Test(ulrpc, there_and_back)
{
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		Test__Shapes__Shape *s = read_shape(same[i]);
		char *text = print_shape(s);

		cr_expect_str_eq(text, same[i]);
		free(text);
		test__shapes__shape__free_unpacked(s, NULL);
	}
}

Test(ulrpc, values_as_the_user_writes_them)
{
	Test__Shapes__Shape *s = read_shape(
		" {\"i64\": -3, \"u64\": 18446744073709551615, \"i32\": \"12\","
		"\"u32\": 1e3, \"s32\": 2.0, \"small\": \"1.5\", \"large\": 2,"
		"\"text\": \"\\u00f6\\ud83d\\ude00\\/\", \"blob\": \"_-8\","
		"\"kind\": -2, \"by_name\": {\"x\": 1}, \"yes\": null,"
		"\"odd_name\": \"o\", \"numbers\": [], \"part\": null }\n");

	cr_assert(s->i64 == -3 && s->u64 == UINT64_MAX && s->i32 == 12);
	cr_assert(s->u32 == 1000 && s->s32 == 2);
	cr_assert(s->small == 1.5f && s->large == 2);
	cr_assert_str_eq(s->text, "\xc3\xb6\xf0\x9f\x98\x80/");
	cr_assert(s->blob.len == 2 && s->blob.data[0] == 0xff &&
		  s->blob.data[1] == 0xef);
	cr_assert(s->kind == TEST__SHAPES__SHAPE__PART__KIND__SQUARE);
	cr_assert(s->n_by_name == 1 && s->by_name[0]->value == 1);
	cr_assert(!s->yes && !s->part && s->n_numbers == 0);
	cr_assert_str_eq(s->odd_name, "o");
	test__shapes__shape__free_unpacked(s, NULL);
}

/* Lists of numbers are packed unless the .proto says otherwise: readers must
 * take both, but the bytes are those of others. */
Test(ulrpc, lists_of_numbers_are_packed)
{
	static const char json[] = "{\"numbers\":[1,2]}";
	struct message_bytes bytes;

	cr_assert(message_read(shape, json, strlen(json), &bytes, err));
	cr_assert(bytes.n == 5 &&
		  !memcmp(bytes.data, "\xa2\x01\x02\x01\x02", 5));
	free(bytes.data);
}

/* ---- what is on the wire in other ways ---- */

static void prints(const char *bytes, size_t n, const char *json)
{
	char *text = print_bytes(bytes, n, false);

	cr_expect_str_eq(text, json);
	free(text);
}

#define PRINTS(bytes, json) prints(bytes, sizeof(bytes) - 1, json)

Test(ulrpc, what_came_last_counts)
{
	/* i32 twice */
	PRINTS("\x10\x01\x10\x02", "{\n  \"i32\": 2\n}\n");
	/* two parts of one message are merged */
	PRINTS("\x8a\x01\x02\x08\x01\x8a\x01\x03\x12\x01x",
	       "{\n  \"part\": {\n    \"kind\": \"ROUND\",\n    \"name\": "
	       "\"x\"\n"
	       "  }\n}\n");
	/* of a oneof, the last one: picked_number, picked_text */
	PRINTS("\xe8\x01\x05\xf2\x01\x01t", "{\n  \"pickedText\": \"t\"\n}\n");
}

Test(ulrpc, packed_and_not)
{
	/* numbers, one by one and packed; unpacked, packed */
	PRINTS("\xa0\x01\x05\xa2\x01\x02\x06\x07\xaa\x01\x02\x01\x02",
	       "{\n  \"numbers\": [\"5\", \"6\", \"7\"],\n"
	       "  \"unpacked\": [-1, 1]\n}\n");
}

Test(ulrpc, maps_without_key_or_value)
{
	PRINTS("\xd2\x01\x00", "{\n  \"byName\": {\n    \"\": 0\n  }\n}\n");
	PRINTS("\xda\x01\x00", "{\n  \"byNumber\": {\n    \"0\": {}\n  }\n}\n");
	PRINTS("\xe2\x01\x00",
	       "{\n  \"byAnswer\": {\n    \"false\": \"NONE\"\n  }\n}\n");
}

Test(ulrpc, fields_that_are_not_known)
{
	forget_said();
	PRINTS("\xc0\x3e\x01\x10\x02", "{\n  \"i32\": 2\n}\n");
	cr_assert(strstr(what_was_said(), "field 1000 is not known"));
	/* known, but with another type */
	forget_said();
	PRINTS("\x15\x01\x02\x03\x04", "{}\n");
	cr_assert(strstr(what_was_said(), "field 2 is not known"));
}

Test(ulrpc, defaults)
{
	char *text = print_bytes(NULL, 0, true);

	cr_assert(strstr(text, "\"yes\": false,\n"));
	cr_assert(strstr(text, "\"i64\": \"0\",\n"));
	cr_assert(strstr(text, "\"kind\": \"NONE\",\n"));
	cr_assert(strstr(text, "\"words\": [],\n"));
	cr_assert(strstr(text, "\"byName\": {},\n"));
	cr_assert(strstr(text, "\"small\": 0,\n"));
	cr_assert(!strstr(text, "\"part\""));
	cr_assert(!strstr(text, "\"pickedNumber\""));
	free(text);
}

/* Whatever the bytes are, printing ends, and says whether they were a message.
 */
Test(ulrpc, malformed_bytes)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "\x08", 1 },
		{ "\x00", 1 },
		{ "\x0b", 1 },
		{ "\x72\x05xx", 4 },
		{ "\x8a\x01\x01\x08", 4 },
		{ "\x41\x01\x02", 3 },
		{ "\xa2\x01\x01\x80", 4 },
		{ "\xff\xff\xff\xff\xff\xff", 6 },
		{ "\xd2\x01\x01\x0a", 4 },
	};
	FILE *out = fopen("/dev/null", "w");

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect(!message_print(shape, bad[i].bytes, bad[i].n, false,
					 out, err),
			  "%zu", i);
	fclose(out);
}

/* ---- what is refused, and in which words ---- */

static const struct {
	const char *json, *said;
} refused[] = {
	{ "", "line 1, column 1: '{' is expected" },
	{ "[]", "'{' is expected" },
	{ "{", "a string is expected" },
	{ "{\"yes\"}", "yes: line 1, column 7: ':' is expected" },
	{ "{\"yes\": true,}", "a string is expected" },
	{ "{\"yes\": true} x", "there is more behind the value" },
	{ "{\n\"yes\": tru}", "yes: line 2, column 8: a value is expected" },
	{ "{\"yes\": 1}", "yes: '1' is neither true nor false" },
	{ "{\"yes\": true, \"yes\": true}", "yes: given twice" },
	{ "{\"i32\": 2147483648}",
	  "i32: '2147483648' is no integer of 32 bits with sign" },
	{ "{\"i32\": 1.5}", "i32: '1.5' is no integer of 32 bits with sign" },
	{ "{\"i32\": \"x\"}", "i32: 'x' is no integer" },
	{ "{\"i32\": true}", "i32: a number is expected" },
	{ "{\"i32\": 01}", "not a number of JSON" },
	{ "{\"i32\": 1-}", "',' or '}' is expected" },
	{ "{\"u32\": -1}", "u32: '-1' is no integer of 32 bits without sign" },
	{ "{\"u64\": 18446744073709551616}", "is no integer of 64 bits" },
	{ "{\"u64\": 1e30}", "is no integer of 64 bits" },
	{ "{\"i64\": \"9223372036854775808\"}", "is no integer of 64 bits" },
	{ "{\"small\": 1e39}", "small: '1e39' is no number of 32 bits" },
	{ "{\"large\": \"0x10\"}", "large: '0x10' is no number of 64 bits" },
	{ "{\"text\": 1}", "text: line 1, column 10: a string is expected" },
	{ "{\"text\": \"a}", "the string does not end" },
	{ "{\"text\": \"\xff\"}", "not UTF-8" },
	{ "{\"text\": \"\\ud83d\"}", "half of a pair of surrogates" },
	{ "{\"text\": \"\\x\"}", "there is no such escape sequence" },
	{ "{\"blob\": \"?\"}", "blob: not base64" },
	{ "{\"blob\": \"A\"}", "blob: not base64" },
	{ "{\"kind\": \"SQARE\"}",
	  "kind: enum test.shapes.Shape.Part.Kind has no 'SQARE'. Did you mean "
	  "'SQUARE'?" },
	{ "{\"kindd\": 1}",
	  "message test.shapes.Shape has no field 'kindd'. Did you mean "
	  "'kind'?" },
	{ "{\"zzzzzzzzz\": 1}",
	  "message test.shapes.Shape has no field 'zzzzzzzzz'\n" },
	{ "{\"parts\": [{}, {\"nam\": \"x\"}]}",
	  "parts[1]: message test.shapes.Shape.Part has no field 'nam'. Did "
	  "you mean 'name'?" },
	{ "{\"parts\": {}}", "parts: line 1, column 11: '[' is expected" },
	{ "{\"shape\": {\"numbers\": [1, -1]}}",
	  "shape.numbers[1]: '-1' is no integer of 64 bits without sign" },
	{ "{\"by_name\": []}", "by_name: line 1, column 13: '{' is expected" },
	{ "{\"by_name\": {\"x\": \"y\"}}",
	  "by_name[\"x\"]: 'y' is no integer" },
	{ "{\"by_number\": {\"x\": {}}}", "by_number: 'x' is no integer" },
	{ "{\"by_answer\": {\"maybe\": 1}}", "'maybe' is neither true nor" },
	{ "{\"picked_text\": \"\", \"picked_number\": 1}",
	  "picked_number: only one of a oneof can be given, and there is "
	  "picked_text" },
};

Test(ulrpc, json_that_is_refused)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct message_bytes bytes;

		forget_said();
		cr_expect(!message_read(shape, refused[i].json,
					strlen(refused[i].json), &bytes, err),
			  "%s", refused[i].json);
		what_was_said();
		if (strchr(refused[i].said, '\n'))
			cr_expect(strstr(said, refused[i].said), "%s: %s",
				  refused[i].json, said);
		said[strcspn(said, "\n")] = '\0';
		cr_expect(strchr(refused[i].said, '\n') ||
				  strstr(said, refused[i].said),
			  "%s: %s", refused[i].json, said);
	}
}

Test(ulrpc, messages_in_messages_end)
{
	char json[2000] = "";
	struct message_bytes bytes;

	for (int i = 0; i < 100; i++)
		strcat(json, "{\"shape\":");
	forget_said();
	cr_assert(!message_read(shape, json, strlen(json), &bytes, err));
	cr_assert(strstr(what_was_said(), "more than 64 messages in messages"));
}

/* ---- names ---- */

Test(ulrpc, services_and_methods)
{
	const struct schema_service *s =
		schema_service(&schema, "test.shapes.Shapes", err);

	cr_assert(s);
	cr_assert(schema_method(s, "Turn", err));
	forget_said();
	cr_assert(!schema_method(s, "Trun", err));
	cr_assert_str_eq(what_was_said(),
			 "service test.shapes.Shapes has no method 'Trun'. Did "
			 "you mean 'Turn'?\n");
	forget_said();
	cr_assert(!schema_service(&schema, "test.shapes.Shape", err));
	cr_assert(
		strstr(what_was_said(), "Did you mean 'test.shapes.Shapes'?"));
}

Test(ulrpc, described)
{
	const struct schema_service *s =
		schema_service(&schema, "test.shapes.Shapes", err);
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	schema_print(&schema, s, schema_method(s, "Fail", err), out);
	fclose(out);
	cr_assert_str_eq(text,
			 "service test.shapes.Shapes {\n"
			 "  rpc Fail(test.shapes.Shape.Part) returns "
			 "(test.Old);\n}\n"
			 "\nmessage test.Old {\n  uint32 number = 1;\n"
			 "  string text = 2;\n}\n"
			 "\nmessage test.shapes.Shape.Part {\n"
			 "  test.shapes.Shape.Part.Kind kind = 1;\n"
			 "  string name = 2;\n}\n"
			 "\nenum test.shapes.Shape.Part.Kind {\n  NONE = 0;\n"
			 "  SQUARE = -2;\n  ROUND = 1;\n}\n");
	free(text);
	out = open_memstream(&text, &length);
	schema_print(&schema, s, NULL, out);
	fclose(out);
	cr_assert(strstr(text, "  map<int64, test.shapes.Shape.Part> by_number "
			       "= 27;\n"));
	cr_assert(strstr(text, "  oneof oneof1 {\n    uint32 picked_number = "
			       "29;\n"));
	cr_assert(strstr(text, "  repeated uint64 numbers = 20;\n"));
	free(text);
}

/* ---- servers that say what makes no sense ---- */

/* Opens the schema of Shapes with one of its names replaced. @rename returns
 * where that name is. */
static void refused_with(char **(*rename)(Ulrpc__Schema__FileSet *set),
			 const char *name)
{
	Ulrpc__Schema__FileSet *set = told(&test__shapes__shapes__descriptor);
	char **at = rename(set);
	struct schema other;

	free(*at);
	*at = name ? strdup(name) : NULL;
	forget_said();
	cr_expect_eq(schema_open(&other, set, err), -EPROTO, "%s",
		     name ? name : "none");
	cr_expect(strstr(what_was_said(), "the schema makes no sense: in "));
	schema_free(&other);
}

static Ulrpc__Schema__File *file_of(Ulrpc__Schema__FileSet *set)
{
	for (size_t i = 0; i < set->n_file; i++)
		if (set->file[i]->n_service)
			return set->file[i];
	cr_assert_fail("no service");
	return NULL;
}

/* The first type of the file that has both fields and nested enums. */
static Ulrpc__Schema__Type *type_of(Ulrpc__Schema__FileSet *set, bool enums)
{
	Ulrpc__Schema__Type *t = file_of(set)->message_type[0];

	for (size_t i = 0; enums && i < t->n_nested_type; i++)
		if (t->nested_type[i]->n_enum_type)
			return t->nested_type[i];
	return t;
}

static char **of_package(Ulrpc__Schema__FileSet *set)
{
	return &file_of(set)->package;
}

static char **of_service(Ulrpc__Schema__FileSet *set)
{
	return &file_of(set)->service[0]->name;
}

static char **of_method(Ulrpc__Schema__FileSet *set)
{
	return &file_of(set)->service[0]->method[0]->name;
}

static char **of_input(Ulrpc__Schema__FileSet *set)
{
	return &file_of(set)->service[0]->method[0]->input_type;
}

static char **of_output(Ulrpc__Schema__FileSet *set)
{
	return &file_of(set)->service[0]->method[0]->output_type;
}

static char **of_message(Ulrpc__Schema__FileSet *set)
{
	return &type_of(set, true)->name;
}

static char **of_field(Ulrpc__Schema__FileSet *set)
{
	return &type_of(set, true)->field[0]->name;
}

static char **of_oneof(Ulrpc__Schema__FileSet *set)
{
	return &type_of(set, false)->oneof_decl[0]->name;
}

static char **of_enum(Ulrpc__Schema__FileSet *set)
{
	return &type_of(set, true)->enum_type[0]->name;
}

static char **of_value(Ulrpc__Schema__FileSet *set)
{
	return &type_of(set, true)->enum_type[0]->value[0]->name;
}

Test(ulrpc, names_that_are_none)
{
	static char **(*const places[])(Ulrpc__Schema__FileSet * set) = {
		of_service, of_method, of_input, of_output, of_message,
		of_field,   of_oneof,  of_enum,	 of_value,
	};
	static const char *const names[] = {
		NULL,	   "",	   "1st", "a b",      "a\n",
		"\x1b[2J", "a..b", "a.",  "\xc3\xa4",
	};
	char too_long[514];

	memset(too_long, 'a', 513);
	too_long[513] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			refused_with(places[i], names[k]);
		refused_with(places[i], too_long);
	}
	refused_with(of_package, "a b");
	/* too long only with the name of what it is in */
	too_long[510] = '\0';
	refused_with(of_package, too_long);
	refused_with(of_message, too_long);
}

Test(ulrpc, only_some_unknown_fields_are_named)
{
	char bytes[3000];
	unsigned int lines = 0;
	const char *text;

	/* fields 1000 to 1039, again and again */
	for (size_t i = 0; i < sizeof(bytes); i += 3) {
		uint32_t tag = (uint32_t)(1000 + i / 3 % 40) << 3;

		bytes[i] = (char)(tag | 0x80);
		bytes[i + 1] = (char)(tag >> 7);
		bytes[i + 2] = 1;
	}
	forget_said();
	prints(bytes, sizeof(bytes), "{}\n");
	text = what_was_said();
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	cr_assert_eq(lines, 17);
	cr_assert(strstr(text, "field 1015 is not known"));
	cr_assert(strstr(text, "more fields are not known"));
}

Test(ulrpc, texts_for_terminals)
{
	char text[] = "a\x1b[2J\n\x7f \xc2\x9b \xc3\xa4 \xff\xc3";
	size_t length;
	char *json;
	FILE *out = open_memstream(&json, &length);

	json_print_string(out, text, strlen(text));
	fclose(out);
	cr_assert_str_eq(json, "\"a\\u001b[2J\\n\\u007f \\u009b \xc3\xa4 "
			       "\\ufffd\\ufffd\"");
	free(json);
}

/* A set without what a field refers to. */
Test(ulrpc, incomplete_set)
{
	Ulrpc__Schema__FileSet *set = told(&test__shapes__shapes__descriptor);
	struct schema other;

	for (size_t i = 0; i < set->n_file; i++)
		if (!strcmp(set->file[i]->package, "test"))
			strcpy(set->file[i]->package, "tesT");
	forget_said();
	cr_assert(schema_open(&other, set, err) == -ENOENT);
	cr_assert(strstr(what_was_said(),
			 "field old: there is no type test.Old; protoc needs "
			 "--include_imports"));
	schema_free(&other);
}
