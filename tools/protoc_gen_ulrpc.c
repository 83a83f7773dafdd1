/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plug-in of protoc: writes the options of methods, which protoc-c leaves
 * out, as tables for ulnet/stub.h. X.proto gives X.ulrpc.h. What it is asked
 * comes on stdin, what it answers goes to stdout.
 */
#include <ctype.h>
#include <err.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/plugin.pb-c.h"
#include "ulnet/rpc.pb-c.h"
#include "ulnet/service.h"

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		errx(1, "no memory");
	va_end(ap);
	return text;
}

/* ---- names, as protoc-c makes them ---- */

/* Prints "kv.KeyStore" as kv__key_store. */
static void print_lower(FILE *out, const char *name)
{
	bool was_upper = true;

	for (; *name; name++) {
		bool is_upper = isupper((unsigned char)*name);

		if (*name == '.') {
			fputs("__", out);
			was_upper = true;
			continue;
		}
		if (is_upper && !was_upper)
			fputc('_', out);
		fputc(tolower((unsigned char)*name), out);
		was_upper = is_upper;
	}
}

static void print_table_name(FILE *out, const Plugin__File *file,
			     const Plugin__Service *service)
{
	const Plugin__ProtobufCFileOptions *options =
		file->options ? file->options->pb_c_file : NULL;
	const char *package = options && *options->c_package
				      ? options->c_package
				      : file->package;
	char *name =
		format("%s%s%s", package, *package ? "." : "", service->name);

	print_lower(out, name);
	fputs("__options", out);
	free(name);
}

/* A macro for each path. */
static void print_guard(FILE *out, const char *path)
{
	fputs("ULRPC_", out);
	for (; *path; path++)
		if (isalnum((unsigned char)*path))
			fputc(*path, out);
		else
			fprintf(out, "_%02x", (unsigned char)*path);
}

/* ---- options ---- */

static const char *const semantics_names[] = {
	[ULRPC__SEMANTICS__AT_MOST_ONCE] = "ULRPC_AT_MOST_ONCE",
	[ULRPC__SEMANTICS__IDEMPOTENT] = "ULRPC_IDEMPOTENT",
	[ULRPC__SEMANTICS__EXACTLY_ONCE] = "ULRPC_EXACTLY_ONCE",
};
static const char *const priority_names[] = {
	[ULRPC__PRIORITY__DEFAULT] = "ULRPC_PRIORITY_DEFAULT",
	[ULRPC__PRIORITY__NORMAL] = "ULRPC_PRIORITY_NORMAL",
	[ULRPC__PRIORITY__HIGH] = "ULRPC_PRIORITY_HIGH",
	[ULRPC__PRIORITY__BACKGROUND] = "ULRPC_PRIORITY_BACKGROUND",
};
static const char *const run_names[] = {
	[ULRPC__RUN__WORKER] = "ULRPC_RUN_WORKER",
	[ULRPC__RUN__INLINE] = "ULRPC_RUN_INLINE",
};

/* NULL: @value has no name. */
static const char *name_of(const char *const *names, size_t n,
			   unsigned int value)
{
	return value < n ? names[value] : NULL;
}

#define NAME_OF(names, value) \
	name_of(names, sizeof(names) / sizeof(*(names)), (unsigned int)(value))

/* In one piece: protobuf-c does not merge what comes in several. */
static Ulrpc__MethodOptions *read_options(const Plugin__Method *method)
{
	const Plugin__Options *parts = method->options;
	Ulrpc__MethodOptions *options;
	size_t length = 0, n = parts ? parts->n_method : 0;
	uint8_t *bytes;

	for (size_t i = 0; i < n; i++)
		length += parts->method[i].len;
	bytes = malloc(length + 1);
	if (!bytes)
		errx(1, "no memory");
	length = 0;
	for (size_t i = 0; i < n; i++) {
		memcpy(bytes + length, parts->method[i].data,
		       parts->method[i].len);
		length += parts->method[i].len;
	}
	options = ulrpc__method_options__unpack(NULL, length, bytes);
	free(bytes);
	return options;
}

/* Returns what is wrong with it, or NULL. */
static const char *print_options(FILE *out, const char *method,
				 const Ulrpc__MethodOptions *o)
{
	const char *semantics = NAME_OF(semantics_names, o->semantics);
	const char *priority = NAME_OF(priority_names, o->priority);
	const char *run = NAME_OF(run_names, o->run);

	if (!semantics)
		return "unknown semantics";
	if (!priority)
		return "unknown priority";
	if (!run)
		return "unknown value of run";
	if (o->reply_max > ULRPC_BODY_MAX)
		return "reply_max is above 983040, which is the most";
	fprintf(out, "\t{ \"%s\", %s, %s, %s, %u },\n", method, semantics,
		priority, run, o->reply_max);
	return NULL;
}

static const char *print_method(FILE *out, const Plugin__Method *method)
{
	Ulrpc__MethodOptions *options;
	const char *wrong;

	if (method->client_streaming || method->server_streaming)
		return "streams are not supported";
	options = read_options(method);
	if (!options)
		return "its options cannot be read";
	wrong = print_options(out, method->name, options);
	ulrpc__method_options__free_unpacked(options, NULL);
	return wrong;
}

/* ---- files ---- */

static char *print_service(FILE *out, const Plugin__File *file,
			   const Plugin__Service *service)
{
	fputs("\n__attribute__((unused)) "
	      "static const struct ulrpc_method_options\n",
	      out);
	print_table_name(out, file, service);
	fputs("[] = {\n", out);
	for (size_t i = 0; i < service->n_method; i++) {
		const Plugin__Method *method = service->method[i];
		const char *wrong = print_method(out, method);

		if (wrong)
			return format("%s: %s.%s: %s", file->name,
				      service->name, method->name, wrong);
	}
	fputs("\t{ NULL, ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, "
	      "ULRPC_RUN_WORKER, 0 },\n};\n",
	      out);
	return NULL;
}

static char *print_file(FILE *out, const Plugin__File *file)
{
	char *wrong = NULL;

	fprintf(out,
		"/* Made of %s by protoc-gen-ulrpc: options of methods, for "
		"ulrpc_stub_new()\n * and ulrpc_serve(). Do not edit. */\n"
		"#ifndef ",
		file->name);
	print_guard(out, file->name);
	fputs("\n#define ", out);
	print_guard(out, file->name);
	fputs("\n\n#include <ulnet/stub.h>\n", out);
	for (size_t i = 0; !wrong && i < file->n_service; i++)
		wrong = print_service(out, file, file->service[i]);
	fputs("\n#endif\n", out);
	return wrong;
}

static char *output_name(const char *proto)
{
	size_t len = strlen(proto);

	if (len > 6 && strcmp(proto + len - 6, ".proto") == 0)
		len -= 6;
	return format("%.*s.ulrpc.h", (int)len, proto);
}

static const Plugin__File *find_file(const Plugin__Request *request,
				     const char *name)
{
	for (size_t i = 0; i < request->n_proto_file; i++)
		if (strcmp(request->proto_file[i]->name, name) == 0)
			return request->proto_file[i];
	return NULL;
}

/* Returns what is wrong, to be freed, or NULL. */
static char *generate(const Plugin__Request *request, const char *name,
		      Plugin__Output *output)
{
	const Plugin__File *file = find_file(request, name);
	size_t size;
	char *wrong;
	FILE *out;

	if (!file)
		return format("%s: protoc does not describe it", name);
	out = open_memstream(&output->content, &size);
	if (!out)
		errx(1, "no memory");
	wrong = print_file(out, file);
	if (ferror(out) | fclose(out))
		errx(1, "no memory");
	output->name = output_name(name);
	return wrong;
}

/* ---- protoc ---- */

static uint8_t *read_all(FILE *in, size_t *length_p)
{
	size_t length = 0, size = 1 << 16, n;
	uint8_t *bytes = malloc(size), *more;

	if (!bytes)
		errx(1, "no memory");
	while ((n = fread(bytes + length, 1, size - length, in))) {
		length += n;
		if (length < size)
			continue;
		more = realloc(bytes, size *= 2);
		if (!more) {
			free(bytes);
			errx(1, "no memory");
		}
		bytes = more;
	}
	if (ferror(in))
		err(1, "stdin");
	*length_p = length;
	return bytes;
}

static void write_response(const Plugin__Response *response)
{
	size_t length = plugin__response__get_packed_size(response);
	uint8_t *bytes = malloc(length + 1);

	if (!bytes)
		errx(1, "no memory");
	plugin__response__pack(response, bytes);
	if (fwrite(bytes, 1, length, stdout) != length || fflush(stdout))
		err(1, "stdout");
	free(bytes);
}

static void response_free(Plugin__Response *response)
{
	for (size_t i = 0; i < response->n_file; i++) {
		if (response->file[i]->name != protobuf_c_empty_string)
			free(response->file[i]->name);
		if (response->file[i]->content != protobuf_c_empty_string)
			free(response->file[i]->content);
		free(response->file[i]);
	}
	free(response->file);
	if (response->error != protobuf_c_empty_string)
		free(response->error);
}

static void answer(const Plugin__Request *request)
{
	Plugin__Response response = PLUGIN__RESPONSE__INIT;
	char *wrong = NULL;

	response.supported_features = 1;
	response.file =
		calloc(request->n_file_to_generate + 1, sizeof(*response.file));
	if (!response.file)
		errx(1, "no memory");
	if (*request->parameter)
		wrong = format("there are no parameters: %s",
			       request->parameter);
	for (size_t i = 0; !wrong && i < request->n_file_to_generate; i++) {
		Plugin__Output *output = malloc(sizeof(*output));

		if (!output)
			errx(1, "no memory");
		plugin__output__init(output);
		response.file[response.n_file++] = output;
		wrong = generate(request, request->file_to_generate[i], output);
	}
	if (wrong)
		response.error = wrong;
	write_response(&response);
	response_free(&response);
}

int main(int argc, char **argv)
{
	Plugin__Request *request;
	uint8_t *bytes;
	size_t length;

	(void)argv;
	if (argc > 1)
		errx(2, "usage: protoc --ulrpc_out=DIR FILE.proto");
	bytes = read_all(stdin, &length);
	request = plugin__request__unpack(NULL, length, bytes);
	free(bytes);
	if (!request)
		errx(1, "stdin is not a request of protoc: run\n\t"
			"protoc --ulrpc_out=DIR FILE.proto");
	answer(request);
	plugin__request__free_unpacked(request, NULL);
	return 0;
}
