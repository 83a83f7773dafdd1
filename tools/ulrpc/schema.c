/* SPDX-License-Identifier: BSD-3-Clause */
#include "schema.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_MAX     (64u << 20)
#define DEPTH_MAX    32 /* of messages in messages, as declared */
#define INCLUDES_MAX 16
#define NAME_LIMIT   512

extern char **environ;

/* ---- a server may say anything: all names are checked first ---- */

/* Is @name an identifier, as protoc has them? @dots: or several of them, with
 * dots between. A full name has no more than NAME_LIMIT bytes, too, because
 * each type has a copy of it. */
static bool is_name(const char *name, bool dots)
{
	bool first = true;
	size_t n;

	for (n = 0; name && name[n]; n++) {
		unsigned char c = (unsigned char)name[n];
		bool letter = c < 0x80 && (isalpha(c) || c == '_');
		bool dot = dots && c == '.';

		if (n == NAME_LIMIT ||
		    (!letter && (first || (!dot && !isdigit(c)))))
			return false;
		first = dot;
	}
	return !first;
}

static bool is_type_name(const char *name)
{
	return name && is_name(name + (*name == '.'), true);
}

static int bad_name(FILE *err, const char *in, const char *what)
{
	fprintf(err, "the schema makes no sense: in %s, the name of %s\n",
		in && *in ? in : "a file", what);
	return -EPROTO;
}

static int check_enum(const char *in, const Ulrpc__Schema__EnumType *type,
		      FILE *err)
{
	if (!is_name(type->name, false))
		return bad_name(err, in, "an enum");
	for (size_t i = 0; i < type->n_value; i++)
		if (!is_name(type->value[i]->name, false))
			return bad_name(err, type->name, "a value");
	return 0;
}

static int check_fields(const Ulrpc__Schema__Type *type, FILE *err)
{
	for (size_t i = 0; i < type->n_field; i++) {
		const Ulrpc__Schema__Field *f = type->field[i];

		if (!is_name(f->name, false) ||
		    (f->json_name && strlen(f->json_name) > NAME_LIMIT))
			return bad_name(err, type->name, "a field");
		if (f->type_name && !is_type_name(f->type_name))
			return bad_name(err, type->name, "a field's type");
	}
	for (size_t i = 0; i < type->n_oneof_decl; i++)
		if (!is_name(type->oneof_decl[i]->name, false))
			return bad_name(err, type->name, "a oneof");
	return 0;
}

/* @room: bytes that the name may have, behind those of what it is in. */
static int check_type(const char *in, const Ulrpc__Schema__Type *type,
		      size_t room, unsigned int depth, FILE *err)
{
	int rc;

	if (!is_name(type->name, false) || strlen(type->name) >= room)
		return bad_name(err, in, "a message");
	if (depth > DEPTH_MAX)
		return 0; /* add_type() refuses that */
	room -= strlen(type->name) + 1;
	rc = check_fields(type, err);
	for (size_t i = 0; !rc && i < type->n_nested_type; i++)
		rc = check_type(type->name, type->nested_type[i], room,
				depth + 1, err);
	for (size_t i = 0; !rc && i < type->n_enum_type; i++)
		rc = check_enum(type->name, type->enum_type[i], err);
	return rc;
}

static int check_service(const char *in, const Ulrpc__Schema__Service *service,
			 FILE *err)
{
	if (!is_name(service->name, false))
		return bad_name(err, in, "a service");
	for (size_t i = 0; i < service->n_method; i++) {
		const Ulrpc__Schema__Method *m = service->method[i];

		if (!is_name(m->name, false))
			return bad_name(err, service->name, "a method");
		if (!is_type_name(m->input_type) ||
		    !is_type_name(m->output_type))
			return bad_name(err, service->name, "a method's type");
	}
	return 0;
}

static int check_file(const Ulrpc__Schema__File *file, FILE *err)
{
	const char *in = file->package;
	size_t room = NAME_LIMIT;
	int rc = 0;

	if (in && *in) {
		if (!is_name(in, true))
			return bad_name(err, NULL, "its package");
		room -= strlen(in);
	}
	for (size_t i = 0; !rc && i < file->n_message_type; i++)
		rc = check_type(in, file->message_type[i], room, 0, err);
	for (size_t i = 0; !rc && i < file->n_enum_type; i++)
		rc = check_enum(in, file->enum_type[i], err);
	for (size_t i = 0; !rc && i < file->n_service; i++)
		rc = check_service(in, file->service[i], err);
	return rc;
}

/* ---- names ---- */

static char *full_name(const char *in, const char *name)
{
	char *full = NULL;

	if (asprintf(&full, "%s%s%s", in ? in : "", in && *in ? "." : "",
		     name ? name : "") < 0)
		return NULL;
	return full;
}

/* As protoc does it: without '_', and the letter behind it in upper case. */
static char *json_name(const Ulrpc__Schema__Field *f)
{
	const char *from = f->json_name ? f->json_name : f->name;
	char *name = strdup(from), *to = name;
	bool upper = false;

	if (!name || f->json_name)
		return name;
	for (; *from; from++) {
		if (*from != '_')
			*to++ = upper ? (char)toupper((unsigned char)*from)
				      : *from;
		upper = *from == '_';
	}
	*to = '\0';
	return name;
}

unsigned int schema_wire(enum schema_kind kind)
{
	switch (kind) {
	case SCHEMA_DOUBLE:
	case SCHEMA_FIXED64:
	case SCHEMA_SFIXED64:
		return 1;
	case SCHEMA_STRING:
	case SCHEMA_BYTES:
	case SCHEMA_MESSAGE:
		return 2;
	case SCHEMA_FLOAT:
	case SCHEMA_FIXED32:
	case SCHEMA_SFIXED32:
		return 5;
	default:
		return 0;
	}
}

/* ---- all types, by name ---- */

static void *one_more(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	return realloc(array, (n ? 2 * n : 1) * size);
}

static int add_enum(struct schema *s, const char *in,
		    const Ulrpc__Schema__EnumType *type)
{
	struct schema_enum *more =
		one_more(s->enums, s->nenums, sizeof(*s->enums));

	if (!more)
		return -ENOMEM;
	s->enums = more;
	s->enums[s->nenums] =
		(struct schema_enum){ full_name(in, type->name), type };
	return s->enums[s->nenums++].name ? 0 : -ENOMEM;
}

static int add_type(struct schema *s, const char *in, bool proto3,
		    const Ulrpc__Schema__Type *type, unsigned int depth)
{
	struct schema_type *more =
		one_more(s->types, s->ntypes, sizeof(*s->types));
	char *name = full_name(in, type->name);
	int rc = more && name ? 0 : -ENOMEM;

	if (more)
		s->types = more;
	if (!rc && depth > DEPTH_MAX)
		rc = -ELOOP;
	if (rc) {
		free(name);
		return rc;
	}
	s->types[s->ntypes++] =
		(struct schema_type){ name, type, proto3, NULL, NULL };
	for (size_t i = 0; !rc && i < type->n_nested_type; i++)
		rc = add_type(s, name, proto3, type->nested_type[i], depth + 1);
	for (size_t i = 0; !rc && i < type->n_enum_type; i++)
		rc = add_enum(s, name, type->enum_type[i]);
	return rc;
}

static int add_service(struct schema *s, const char *in,
		       const Ulrpc__Schema__Service *service)
{
	struct schema_service *more =
		one_more(s->services, s->nservices, sizeof(*s->services));

	if (!more)
		return -ENOMEM;
	s->services = more;
	s->services[s->nservices] =
		(struct schema_service){ full_name(in, service->name),
					 service };
	return s->services[s->nservices++].name ? 0 : -ENOMEM;
}

static int add_file(struct schema *s, const Ulrpc__Schema__File *file)
{
	bool proto3 = file->syntax && !strcmp(file->syntax, "proto3");
	int rc = 0;

	for (size_t i = 0; !rc && i < file->n_message_type; i++)
		rc = add_type(s, file->package, proto3, file->message_type[i],
			      0);
	for (size_t i = 0; !rc && i < file->n_enum_type; i++)
		rc = add_enum(s, file->package, file->enum_type[i]);
	for (size_t i = 0; !rc && i < file->n_service; i++)
		rc = add_service(s, file->package, file->service[i]);
	return rc;
}

/* All of these structures begin with their name. */
static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void *find(const void *array, size_t n, size_t size, const char *name)
{
	if (!name)
		return NULL;
	name += *name == '.';
	return n ? bsearch(&name, array, n, size, by_name) : NULL;
}

const struct schema_type *schema_type(const struct schema *s, const char *name)
{
	return find(s->types, s->ntypes, sizeof(*s->types), name);
}

/* ---- fields ---- */

static bool can_pack(enum schema_kind kind)
{
	return kind != SCHEMA_STRING && kind != SCHEMA_BYTES &&
	       kind != SCHEMA_MESSAGE && kind != SCHEMA_GROUP;
}

/* A map has entries of two fields. */
static bool is_entry(const struct schema_type *type)
{
	return type->type->options && type->type->options->map_entry &&
	       type->type->n_field == 2 && type->type->field[0]->number == 1 &&
	       type->type->field[1]->number == 2;
}

static int resolve_field(const struct schema *s, const struct schema_type *in,
			 const Ulrpc__Schema__Field *f,
			 struct schema_field *field, FILE *err)
{
	bool explicitly = f->options && f->options->has_packed;

	if (f->number < 1 || f->type < 1 || f->type >= SCHEMA_KINDS) {
		fprintf(err, "%s: field %s: no number or type\n", in->name,
			f->name);
		return -EINVAL;
	}
	*field = (struct schema_field){
		.field = f,
		.kind = (enum schema_kind)f->type,
		.json = json_name(f),
		.repeated = f->label == SCHEMA_REPEATED,
	};
	if (!field->json)
		return -ENOMEM;
	field->packed = field->repeated && can_pack(field->kind) &&
			(explicitly ? f->options->packed : in->proto3);
	if (field->kind == SCHEMA_MESSAGE || field->kind == SCHEMA_GROUP)
		field->type = schema_type(s, f->type_name);
	if (field->kind == SCHEMA_ENUM)
		field->names = find(s->enums, s->nenums, sizeof(*s->enums),
				    f->type_name);
	field->is_map = field->repeated && field->type && is_entry(field->type);
	if (field->type || field->names || can_pack(field->kind) ||
	    field->kind == SCHEMA_STRING || field->kind == SCHEMA_BYTES)
		if (field->kind != SCHEMA_ENUM || field->names)
			return 0;
	fprintf(err,
		"%s: field %s: there is no type %s; protoc needs "
		"--include_imports\n",
		in->name, f->name,
		f->type_name ? f->type_name + (*f->type_name == '.') : "");
	return -ENOENT;
}

static int by_number(const void *a, const void *b)
{
	const struct schema_field *x = *(const struct schema_field *const *)a;
	const struct schema_field *y = *(const struct schema_field *const *)b;

	if (x->field->number != y->field->number)
		return x->field->number < y->field->number ? -1 : 1;
	return (x > y) - (x < y);
}

static int resolve_type(const struct schema *s, struct schema_type *type,
			FILE *err)
{
	size_t n = type->type->n_field;
	int rc = 0;

	type->fields = calloc(n + 1, sizeof(*type->fields));
	type->by_number = calloc(n + 1, sizeof(type->by_number[0]));
	if (!type->fields || !type->by_number)
		return -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++) {
		rc = resolve_field(s, type, type->type->field[i],
				   &type->fields[i], err);
		type->by_number[i] = &type->fields[i];
	}
	if (!rc && n)
		qsort(type->by_number, n, sizeof(type->by_number[0]),
		      by_number);
	return rc;
}

int schema_open(struct schema *s, Ulrpc__Schema__FileSet *set, FILE *err)
{
	int rc = 0;

	*s = (struct schema){ .set = set };
	for (size_t i = 0; i < set->n_file; i++)
		if (check_file(set->file[i], err))
			return -EPROTO;
	for (size_t i = 0; !rc && i < set->n_file; i++)
		rc = add_file(s, set->file[i]);
	if (s->ntypes)
		qsort(s->types, s->ntypes, sizeof(*s->types), by_name);
	if (s->nenums)
		qsort(s->enums, s->nenums, sizeof(*s->enums), by_name);
	for (size_t i = 0; !rc && i < s->ntypes; i++) {
		rc = resolve_type(s, &s->types[i], err);
		if (rc == -EINVAL || rc == -ENOENT)
			return rc;
	}
	if (rc)
		fprintf(err, "%s\n", strerror(-rc));
	return rc;
}

void schema_free(struct schema *s)
{
	for (size_t i = 0; i < s->ntypes; i++) {
		for (size_t k = 0;
		     s->types[i].fields && k < s->types[i].type->n_field; k++)
			free(s->types[i].fields[k].json);
		free(s->types[i].fields);
		free(s->types[i].by_number);
		free(s->types[i].name);
	}
	for (size_t i = 0; i < s->nenums; i++)
		free(s->enums[i].name);
	for (size_t i = 0; i < s->nservices; i++)
		free(s->services[i].name);
	free(s->types);
	free(s->enums);
	free(s->services);
	if (s->set)
		ulrpc__schema__file_set__free_unpacked(s->set, NULL);
	*s = (struct schema){ .set = NULL };
}

/* ---- files ---- */

static uint8_t *read_stream(FILE *from, size_t *length_p)
{
	size_t size = 65536, n = 0, got;
	uint8_t *bytes = malloc(size), *more;

	while (bytes && (got = fread(bytes + n, 1, size - n, from))) {
		n += got;
		if (n < size)
			continue;
		more = size < FILE_MAX ? realloc(bytes, size *= 2) : NULL;
		if (!more)
			free(bytes);
		bytes = more;
	}
	*length_p = n;
	return bytes;
}

/* The arguments of protoc, each to be freed, up to NULL. */
static bool protoc_args(char **args, const char *path,
			const char *const *includes)
{
	const char *slash = strrchr(path, '/');
	unsigned int n = 0;
	bool good = true;

	args[n++] = strdup("protoc");
	args[n++] = strdup("--include_imports");
	args[n++] = strdup("--descriptor_set_out=/dev/stdout");
	for (unsigned int i = 0; includes && includes[i] && i < INCLUDES_MAX;
	     i++)
		if (asprintf(&args[n++], "-I%s", includes[i]) < 0)
			args[n - 1] = NULL;
	if (n == 3 &&
	    asprintf(&args[n++], "-I%.*s", slash ? (int)(slash - path + 1) : 1,
		     slash ? path : ".") < 0)
		args[n - 1] = NULL;
	args[n++] = strdup(path);
	for (unsigned int i = 0; i < n; i++)
		good &= args[i] != NULL;
	args[n] = NULL;
	return good;
}

/* Begins to run protoc, whose output is *@from_p. 0 or -errno. */
static int protoc_begin(const char *path, const char *const *includes,
			pid_t *pid_p, FILE **from_p)
{
	char *args[INCLUDES_MAX + 6] = { NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], rc = -ENOMEM;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	if (protoc_args(args, path, includes) &&
	    !posix_spawn_file_actions_init(&actions)) {
		rc = -posix_spawn_file_actions_adddup2(&actions, ends[1],
						       STDOUT_FILENO);
		if (!rc)
			rc = -posix_spawnp(pid_p, args[0], &actions, NULL, args,
					   environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	for (unsigned int i = 0; i < INCLUDES_MAX + 6; i++)
		free(args[i]);
	close(ends[1]);
	*from_p = rc ? NULL : fdopen(ends[0], "r");
	if (!*from_p)
		close(ends[0]);
	return rc;
}

/* The bytes of a descriptor set, to be freed; NULL, after a message. */
static uint8_t *read_set(const char *path, const char *const *includes,
			 size_t *length_p, FILE *err)
{
	size_t length = strlen(path);
	bool is_source = length > 6 && !strcmp(path + length - 6, ".proto");
	uint8_t *bytes = NULL;
	FILE *from = NULL;
	int status = 0, rc = 0;
	pid_t pid = 0;

	if (is_source)
		rc = protoc_begin(path, includes, &pid, &from);
	else if (!(from = fopen(path, "re")))
		rc = -errno;
	if (rc) {
		fprintf(err, "%s%s: %s\n", is_source ? "protoc, for " : "",
			path, strerror(-rc));
		return NULL;
	}
	if (from) {
		bytes = read_stream(from, length_p);
		if (!bytes)
			fprintf(err, "%s: too long\n", path);
		fclose(from);
	}
	if (is_source && waitpid(pid, &status, 0) == pid && status) {
		/* protoc has said why */
		fprintf(err, "%s: protoc cannot read it\n", path);
		free(bytes);
		return NULL;
	}
	return bytes;
}

int schema_read(struct schema *s, const char *path, const char *const *includes,
		FILE *err)
{
	Ulrpc__Schema__FileSet *set;
	size_t length = 0;
	uint8_t *bytes = read_set(path, includes, &length, err);

	*s = (struct schema){ .set = NULL };
	if (!bytes)
		return -EIO;
	set = ulrpc__schema__file_set__unpack(NULL, length, bytes);
	free(bytes);
	if (set && set->n_file)
		return schema_open(s, set, err);
	if (set)
		ulrpc__schema__file_set__free_unpacked(set, NULL);
	fprintf(err,
		"%s: neither a .proto nor what 'protoc "
		"--descriptor_set_out' writes\n",
		path);
	return -EINVAL;
}

/* ---- services and methods ---- */

const struct schema_service *schema_service(const struct schema *s,
					    const char *name, FILE *err)
{
	struct nearest near;

	nearest_init(&near, name);
	for (size_t i = 0; i < s->nservices; i++) {
		if (!strcmp(s->services[i].name, name))
			return &s->services[i];
		nearest_try(&near, s->services[i].name);
	}
	fprintf(err, "there is no service '%s'", name);
	schema_say_nearest(&near, err);
	return NULL;
}

const Ulrpc__Schema__Method *schema_method(const struct schema_service *service,
					   const char *name, FILE *err)
{
	const Ulrpc__Schema__Service *sv = service->service;
	struct nearest near;

	nearest_init(&near, name);
	for (size_t i = 0; i < sv->n_method; i++) {
		if (!strcmp(sv->method[i]->name, name))
			return sv->method[i];
		nearest_try(&near, sv->method[i]->name);
	}
	fprintf(err, "service %s has no method '%s'", service->name, name);
	schema_say_nearest(&near, err);
	return NULL;
}

void schema_say_nearest(const struct nearest *near, FILE *err)
{
	if (near->name)
		fputs(". ", err);
	nearest_say(near, "", err);
	if (!near->name)
		fputc('\n', err);
}

/* ---- as the text of a .proto ---- */

static const char *const kinds[SCHEMA_KINDS] = {
	[SCHEMA_DOUBLE] = "double",	[SCHEMA_FLOAT] = "float",
	[SCHEMA_INT64] = "int64",	[SCHEMA_UINT64] = "uint64",
	[SCHEMA_INT32] = "int32",	[SCHEMA_FIXED64] = "fixed64",
	[SCHEMA_FIXED32] = "fixed32",	[SCHEMA_BOOL] = "bool",
	[SCHEMA_STRING] = "string",	[SCHEMA_GROUP] = "group",
	[SCHEMA_BYTES] = "bytes",	[SCHEMA_UINT32] = "uint32",
	[SCHEMA_SFIXED32] = "sfixed32", [SCHEMA_SFIXED64] = "sfixed64",
	[SCHEMA_SINT32] = "sint32",	[SCHEMA_SINT64] = "sint64",
};

static const char *kind_of(const struct schema_field *f)
{
	return f->type	  ? f->type->name
	       : f->names ? f->names->name
			  : kinds[f->kind];
}

static bool in_oneof(const struct schema_field *f)
{
	return f->field->has_oneof_index && !f->field->proto3_optional;
}

static const char *label_of(const struct schema_type *type,
			    const struct schema_field *f)
{
	if (f->repeated)
		return "repeated ";
	if (in_oneof(f))
		return "";
	if (f->field->label == SCHEMA_REQUIRED)
		return "required ";
	return !type->proto3 || f->field->proto3_optional ? "optional " : "";
}

static void print_field(const struct schema_type *type,
			const struct schema_field *f, FILE *out)
{
	fputs(in_oneof(f) ? "    " : "  ", out);
	if (f->is_map)
		fprintf(out, "map<%s, %s>", kind_of(&f->type->fields[0]),
			kind_of(&f->type->fields[1]));
	else
		fprintf(out, "%s%s", label_of(type, f), kind_of(f));
	fprintf(out, " %s = %d;\n", f->field->name, f->field->number);
}

static void print_type(const struct schema_type *type, FILE *out)
{
	int32_t open = -1;

	fprintf(out, "\nmessage %s {\n", type->name);
	for (size_t i = 0; i < type->type->n_field; i++) {
		const struct schema_field *f = &type->fields[i];
		int32_t here = in_oneof(f) ? f->field->oneof_index : -1;

		if (open >= 0 && here != open)
			fputs("  }\n", out);
		if (here >= 0 && here != open)
			fprintf(out, "  oneof %s {\n",
				(size_t)here < type->type->n_oneof_decl
					? type->type->oneof_decl[here]->name
					: "?");
		open = here;
		print_field(type, f, out);
	}
	fputs(open >= 0 ? "  }\n}\n" : "}\n", out);
}

static void print_enum(const struct schema_enum *e, FILE *out)
{
	fprintf(out, "\nenum %s {\n", e->name);
	for (size_t i = 0; i < e->type->n_value; i++)
		fprintf(out, "  %s = %d;\n", e->type->value[i]->name,
			e->type->value[i]->number);
	fputs("}\n", out);
}

static void print_method(const Ulrpc__Schema__Method *m, FILE *out)
{
	const char *input = m->input_type + (*m->input_type == '.');
	const char *output = m->output_type + (*m->output_type == '.');

	fprintf(out, "  rpc %s(%s%s) returns (%s%s);\n", m->name,
		m->client_streaming ? "stream " : "", input,
		m->server_streaming ? "stream " : "", output);
}

/* Marks what is needed of @s, with a byte for each type and for each enum. */
static void need(const struct schema *s, const struct schema_type *type,
		 char *types, char *enums)
{
	if (!type || types[type - s->types])
		return;
	types[type - s->types] = 1;
	for (size_t i = 0; i < type->type->n_field; i++) {
		need(s, type->fields[i].type, types, enums);
		if (type->fields[i].names)
			enums[type->fields[i].names - s->enums] = 1;
	}
}

void schema_print(const struct schema *s, const struct schema_service *service,
		  const Ulrpc__Schema__Method *method, FILE *out)
{
	const Ulrpc__Schema__Service *sv = service->service;
	char *types = calloc(s->ntypes + 1, 1);
	char *enums = calloc(s->nenums + 1, 1);

	fprintf(out, "service %s {\n", service->name);
	for (size_t i = 0; types && enums && i < sv->n_method; i++) {
		if (method && sv->method[i] != method)
			continue;
		print_method(sv->method[i], out);
		need(s, schema_type(s, sv->method[i]->input_type), types,
		     enums);
		need(s, schema_type(s, sv->method[i]->output_type), types,
		     enums);
	}
	fputs("}\n", out);
	for (size_t i = 0; types && i < s->ntypes; i++)
		if (types[i] && !is_entry(&s->types[i]))
			print_type(&s->types[i], out);
	for (size_t i = 0; enums && i < s->nenums; i++)
		if (enums[i])
			print_enum(&s->enums[i], out);
	free(types);
	free(enums);
}
