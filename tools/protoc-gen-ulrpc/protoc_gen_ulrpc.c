/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plug-in of protoc that makes X.ulrpc.h from X.proto, for use with
 * ulnet/stub.h: tables of the options of methods, and functions to call the
 * methods, and to serve those that stream, with their own message types.
 * protoc's request comes on stdin, the response goes to stdout.
 */
#include <ctype.h>
#include <err.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/protoc-gen-ulrpc/plugin.pb-c.h"
#include "ulnet/rpc.pb-c.h"
#include "ulnet/stub.h"

/* ---- names in C, as protoc-c makes them from names in a .proto ---- */

/* Returns @memory. Ends the program if it is NULL. */
static void *need(void *memory)
{
	if (!memory)
		errx(1, "no memory");
	return memory;
}

/* As asprintf(), but ends the program if there is no memory. The caller frees
 * the result, as that of all functions here that return a name. */
static __attribute__((format(printf, 1, 2))) char *name_format(const char *fmt,
							       ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return need(text);
}

/* Makes "dir/kv.pb-c.h" from "dir/kv.proto" and the suffix ".pb-c.h". */
static char *name_file(const char *proto, const char *suffix)
{
	size_t len = strlen(proto);

	if (len > 6 && strcmp(proto + len - 6, ".proto") == 0)
		len -= 6;
	return name_format("%.*s%s", (int)len, proto, suffix);
}

/* ---- spelling ---- */

/* Returns memory for @name as spelled in C, which has at most two characters
 * for each one of @name. */
static char *name_room(const char *name)
{
	return need(malloc(2 * strlen(name) + 1));
}

/* Makes "kv__key_store" from "kv.KeyStore". */
static char *to_lower(const char *name)
{
	char *lower = name_room(name), *to = lower;
	bool was_upper = true;

	for (; *name; name++) {
		bool is_upper = isupper((unsigned char)*name);

		if (*name == '.') {
			*to++ = '_';
			*to++ = '_';
			was_upper = true;
			continue;
		}
		if (is_upper && !was_upper)
			*to++ = '_';
		*to++ = (char)tolower((unsigned char)*name);
		was_upper = is_upper;
	}
	*to = '\0';
	return lower;
}

/* Makes "Kv__KeyPart" from "kv.key_part". */
static char *to_camel(const char *name)
{
	char *camel = name_room(name), *to = camel;
	bool next_is_upper = true;

	for (; *name; name++) {
		if (*name == '.') {
			*to++ = '_';
			*to++ = '_';
			next_is_upper = true;
		} else if (*name == '_') {
			next_is_upper = true;
		} else {
			*to++ = next_is_upper
					? (char)toupper((unsigned char)*name)
					: *name;
			next_is_upper = false;
		}
	}
	*to = '\0';
	return camel;
}

/* ---- packages ---- */

/* Returns the package for names in C: from the option c_package, or that of the
 * file. */
static const char *c_package(const Plugin__File *file)
{
	const Plugin__ProtobufCFileOptions *options =
		file->options ? file->options->pb_c_file : NULL;

	return options && *options->c_package ? options->c_package
					      : file->package;
}

/* Returns "PACKAGE.NAME"; if @package is empty, "NAME". */
static char *in_package(const char *package, const char *name)
{
	return name_format("%s%s%s", package, *package ? "." : "", name);
}

/* Makes "kv__key_store" for the service KeyStore of the package kv. */
static char *name_service(const Plugin__File *file,
			  const Plugin__Service *service)
{
	char *full = in_package(c_package(file), service->name);
	char *lower = to_lower(full);

	free(full);
	return lower;
}

/* Makes "get_all" for the method GetAll. */
static char *name_method(const Plugin__Method *method)
{
	return to_lower(method->name);
}

/* ---- messages ---- */

/* Is @name, such as "Key.Part", one of @messages, or nested in one of them? */
static bool has_message(Plugin__Message *const *messages, size_t n,
			const char *name)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(messages[i]->name);

		if (strncmp(messages[i]->name, name, len) != 0)
			continue;
		if (!name[len])
			return true;
		if (name[len] == '.' &&
		    has_message(messages[i]->nested_type,
				messages[i]->n_nested_type, name + len + 1))
			return true;
	}
	return false;
}

/* Returns "Key" for @full, ".kv.Key", if the package of @file is kv. NULL:
 * @full is in another package. */
static const char *after_package(const Plugin__File *file, const char *full)
{
	size_t len = strlen(file->package);

	if (*full++ != '.')
		return NULL;
	if (!len)
		return full;
	return strncmp(full, file->package, len) == 0 && full[len] == '.'
		       ? full + len + 1
		       : NULL;
}

/* Makes "mine.Key.Part" of the message @full, ".kv.Key.Part", if the package
 * for C is "mine". NULL: no file of @request has such a message. */
static char *find_message(const Plugin__Request *request, const char *full)
{
	for (size_t i = 0; i < request->n_proto_file; i++) {
		const Plugin__File *file = request->proto_file[i];
		const char *name = after_package(file, full);

		if (name &&
		    has_message(file->message_type, file->n_message_type, name))
			return in_package(c_package(file), name);
	}
	return NULL;
}

/* ---- guards ---- */

/* Prints the macro that guards the header that is made from @path. */
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
static const char *const streaming_names[] = {
	"ULRPC_STREAMING_NONE",
	"ULRPC_STREAMING_REQUESTS",
	"ULRPC_STREAMING_REPLIES",
	"ULRPC_STREAMING_BOTH",
};
static const char *const run_names[] = {
	[ULRPC__RUN__WORKER] = "ULRPC_RUN_WORKER",
	[ULRPC__RUN__INLINE] = "ULRPC_RUN_INLINE",
};

/* Returns the name of @value in C; NULL: it has none. */
static const char *constant_name(const char *const *names, size_t n,
				 unsigned int value)
{
	return value < n ? names[value] : NULL;
}

#define ARRAY_SIZE(array) (sizeof(array) / sizeof(*(array)))
#define NAME_OF(names, value) \
	constant_name(names, ARRAY_SIZE(names), (unsigned int)(value))

/* protoc gives each option as a message of its own. These messages are
 * concatenated before they are unpacked, because protobuf-c does not merge
 * them. */
static Ulrpc__MethodOptions *merge_options(const Plugin__Method *method)
{
	const Plugin__Options *parts = method->options;
	Ulrpc__MethodOptions *options;
	size_t length = 0, n = parts ? parts->n_method : 0;
	uint8_t *bytes;

	for (size_t i = 0; i < n; i++)
		length += parts->method[i].len;
	bytes = need(malloc(length + 1));
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

/* What of the method streams: enum ulrpc_streaming. */
static unsigned int streaming_of(const Plugin__Method *method)
{
	return (method->client_streaming ? 1u : 0) |
	       (method->server_streaming ? 2u : 0);
}

/* Prints the options of a method. Returns what is wrong with them, or NULL. */
static const char *print_options(FILE *out, const Plugin__Method *method,
				 const Ulrpc__MethodOptions *o)
{
	unsigned int streaming = streaming_of(method);
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
	if (streaming && (o->semantics || o->priority || o->reply_max))
		return "a stream has no semantics, priority and reply_max";
	fprintf(out, "\t{ \"%s\", %s, %s, %s, %u, %s },\n", method->name,
		semantics, priority, run, o->reply_max,
		streaming_names[streaming]);
	return NULL;
}

/* As the member of the structure of handlers that is given to each of them? */
static bool is_named_arg(const Plugin__Method *method)
{
	char *name = name_method(method);
	bool is = strcmp(name, "arg") == 0;

	free(name);
	return is;
}

/* Prints the line of a method in the table of options. Returns what is wrong,
 * or NULL. */
static const char *print_line(FILE *out, const Plugin__Method *method)
{
	Ulrpc__MethodOptions *options;
	const char *wrong;

	if (streaming_of(method) && is_named_arg(method))
		return "the handler of a stream cannot be called arg";
	options = merge_options(method);
	if (!options)
		return "its options cannot be read";
	wrong = print_options(out, method, options);
	ulrpc__method_options__free_unpacked(options, NULL);
	return wrong;
}

/* ---- tables ---- */

static char *wrong_with(const Plugin__File *file,
			const Plugin__Service *service,
			const Plugin__Method *method, const char *wrong)
{
	return name_format("%s: %s.%s: %s", file->name, service->name,
			   method->name, wrong);
}

static char *print_table(FILE *out, const Plugin__File *file,
			 const Plugin__Service *service)
{
	char *name = name_service(file, service);

	fprintf(out,
		"\n__attribute__((unused)) "
		"static const struct ulrpc_method_options\n"
		"%s__options[] = {\n",
		name);
	free(name);
	for (size_t i = 0; i < service->n_method; i++) {
		const char *wrong = print_line(out, service->method[i]);

		if (wrong)
			return wrong_with(file, service, service->method[i],
					  wrong);
	}
	fputs("\t{ NULL, ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, "
	      "ULRPC_RUN_WORKER, 0,\n\t\tULRPC_STREAMING_NONE },\n};\n",
	      out);
	return NULL;
}

/* ---- typed functions ---- */

/* The names that the functions for a method contain. */
struct typed {
	/* in C: of the structures, and in names of functions */
	char *service, *method, *request, *reply, *request_type, *reply_type;
	char *service_struct;
	/* name of the method in the .proto */
	const char *name;
	unsigned int kind;
};

/* Which methods have a function: those that are called, and those of which
 * requests, replies or both stream. */
enum {
	CALLED = 1 << ULRPC_STREAMING_NONE,
	REQUESTS = 1 << ULRPC_STREAMING_REQUESTS,
	REPLIES = 1 << ULRPC_STREAMING_REPLIES,
	BOTH = 1 << ULRPC_STREAMING_BOTH,
};

/* Functions that send, or read, messages of a type. */
#define SENDS(wait, type)                                      \
	"static inline int $F(struct ulrpc_stream *stream,\n"  \
	"\t\tconst " type " *message)\n"                       \
	"{\n"                                                  \
	"\treturn ulrpc_stream_send_message" wait "(stream,\n" \
	"\t\t\t(const ProtobufCMessage *)message);\n"          \
	"}\n"
#define READS(wait, type, descriptor)                            \
	"static inline int $F(struct ulrpc_stream *stream,\n"    \
	"\t\t" type " **message_p)\n"                            \
	"{\n"                                                    \
	"\tProtobufCMessage *message = NULL;\n"                  \
	"\tint rc = ulrpc_stream_next_message" wait "(stream,\n" \
	"\t\t\t&" descriptor "__descriptor, &message);\n"        \
	"\n"                                                     \
	"\t*message_p = (" type " *)message;\n"                  \
	"\treturn rc;\n"                                         \
	"}\n"

/* The functions for a method: for which kinds of methods, the end of the name
 * of each, and its text, in which $F is the function, $N the method, $Q the
 * request, $R the reply, $S the service, and $q and $r what names of functions
 * have of request and reply. */
static const struct {
	unsigned int kinds;
	const char *suffix, *text;
} functions[] = {
	{ CALLED, "wait",
	  "static inline int $F(ProtobufCService *stub,\n"
	  "\t\tconst $Q *request, $R **reply_p,\n"
	  "\t\tstruct ulrpc_outcome *outcome)\n"
	  "{\n"
	  "\tProtobufCMessage *reply = NULL;\n"
	  "\tint rc = ulrpc_call_message_wait(stub, \"$N\",\n"
	  "\t\t\t(const ProtobufCMessage *)request, NULL,\n"
	  "\t\t\t&reply, outcome);\n"
	  "\n"
	  "\t*reply_p = ($R *)reply;\n"
	  "\treturn rc;\n"
	  "}\n" },
	{ CALLED, "set",
	  "static inline int $F(struct ulrpc_set *set,\n"
	  "\t\tProtobufCService *stub, const $Q *request,\n"
	  "\t\tvoid *arg, struct ulrpc_call **call_p)\n"
	  "{\n"
	  "\treturn ulrpc_set_message(set, stub, \"$N\",\n"
	  "\t\t\t(const ProtobufCMessage *)request, NULL, arg,\n"
	  "\t\t\tcall_p);\n"
	  "}\n" },
	{ CALLED, "result",
	  "static inline int $F(struct ulrpc_result *result,\n"
	  "\t\t$R **reply_p)\n"
	  "{\n"
	  "\tProtobufCMessage *reply = NULL;\n"
	  "\tint rc = ulrpc_result_message(result, &$S__descriptor,\n"
	  "\t\t\t\"$N\", &reply);\n"
	  "\n"
	  "\t*reply_p = ($R *)reply;\n"
	  "\treturn rc;\n"
	  "}\n" },
	/* at one of several servers */
	{ CALLED, "replicas_call",
	  "static inline int $F(ProtobufCService *stub,\n"
	  "\t\tconst $Q *request,\n"
	  "\t\tconst struct ulrpc_replicas_call_conf *conf,\n"
	  "\t\tulrpc_replicas_message_fn done, void *arg,\n"
	  "\t\tstruct ulrpc_replicas_call **call_p)\n"
	  "{\n"
	  "\treturn ulrpc_replicas_call_message(stub, \"$N\",\n"
	  "\t\t\t(const ProtobufCMessage *)request, conf, done, arg,\n"
	  "\t\t\tcall_p);\n"
	  "}\n" },
	{ CALLED, "replicas_wait",
	  "static inline int $F(ProtobufCService *stub,\n"
	  "\t\tconst $Q *request,\n"
	  "\t\tconst struct ulrpc_replicas_call_conf *conf,\n"
	  "\t\t$R **reply_p, struct ulrpc_replicas_outcome *outcome)\n"
	  "{\n"
	  "\tProtobufCMessage *reply = NULL;\n"
	  "\tint rc = ulrpc_replicas_call_message_wait(stub, \"$N\",\n"
	  "\t\t\t(const ProtobufCMessage *)request, conf,\n"
	  "\t\t\t&reply, outcome);\n"
	  "\n"
	  "\t*reply_p = ($R *)reply;\n"
	  "\treturn rc;\n"
	  "}\n" },
	/* the client's side of a stream */
	{ REPLIES, "open",
	  "static inline int $F(struct ulrpc_streams *streams,\n"
	  "\t\tconst $Q *request, const struct ulrpc_stream_conf *conf,\n"
	  "\t\tstruct ulrpc_stream **stream_p)\n"
	  "{\n"
	  "\treturn ulrpc_stream_open_message(streams, \"$N\",\n"
	  "\t\t\t(const ProtobufCMessage *)request, conf, stream_p);\n"
	  "}\n" },
	{ REQUESTS | BOTH, "open",
	  "static inline int $F(struct ulrpc_streams *streams,\n"
	  "\t\tconst struct ulrpc_stream_conf *conf,\n"
	  "\t\tstruct ulrpc_stream **stream_p)\n"
	  "{\n"
	  "\treturn ulrpc_stream_open_message(streams, \"$N\", NULL, conf,\n"
	  "\t\t\tstream_p);\n"
	  "}\n" },
	/* the same at one of several servers */
	{ REPLIES, "replicas_open",
	  "static inline int $F(struct ulrpc_replicas *replicas,\n"
	  "\t\tconst $Q *request,\n"
	  "\t\tconst struct ulrpc_replicas_stream_conf *conf,\n"
	  "\t\tulrpc_replicas_stream_fn fn, void *arg,\n"
	  "\t\tstruct ulrpc_replicas_call **call_p)\n"
	  "{\n"
	  "\treturn ulrpc_replicas_stream_open_message(replicas, \"$N\",\n"
	  "\t\t\t(const ProtobufCMessage *)request, conf, fn, arg,\n"
	  "\t\t\tcall_p);\n"
	  "}\n" },
	{ REPLIES, "replicas_open_wait",
	  "static inline int $F(struct ulrpc_replicas *replicas,\n"
	  "\t\tconst $Q *request,\n"
	  "\t\tconst struct ulrpc_replicas_stream_conf *conf,\n"
	  "\t\tstruct ulrpc_stream **stream_p,\n"
	  "\t\tstruct ulrpc_replicas_outcome *outcome)\n"
	  "{\n"
	  "\treturn ulrpc_replicas_stream_open_message_wait(replicas,\n"
	  "\t\t\t\"$N\", (const ProtobufCMessage *)request, conf,\n"
	  "\t\t\tstream_p, outcome);\n"
	  "}\n" },
	{ REQUESTS | BOTH, "replicas_open",
	  "static inline int $F(struct ulrpc_replicas *replicas,\n"
	  "\t\tconst struct ulrpc_replicas_stream_conf *conf,\n"
	  "\t\tulrpc_replicas_stream_fn fn, void *arg,\n"
	  "\t\tstruct ulrpc_replicas_call **call_p)\n"
	  "{\n"
	  "\treturn ulrpc_replicas_stream_open_message(replicas, \"$N\",\n"
	  "\t\t\tNULL, conf, fn, arg, call_p);\n"
	  "}\n" },
	{ REQUESTS | BOTH, "replicas_open_wait",
	  "static inline int $F(struct ulrpc_replicas *replicas,\n"
	  "\t\tconst struct ulrpc_replicas_stream_conf *conf,\n"
	  "\t\tstruct ulrpc_stream **stream_p,\n"
	  "\t\tstruct ulrpc_replicas_outcome *outcome)\n"
	  "{\n"
	  "\treturn ulrpc_replicas_stream_open_message_wait(replicas,\n"
	  "\t\t\t\"$N\", NULL, conf, stream_p, outcome);\n"
	  "}\n" },
	{ REQUESTS | BOTH, "send", SENDS("", "$Q") },
	{ REQUESTS | BOTH, "send_wait", SENDS("_wait", "$Q") },
	{ REQUESTS | REPLIES | BOTH, "next", READS("", "$R", "$r") },
	{ REPLIES | BOTH, "next_wait", READS("_wait", "$R", "$r") },
	{ REQUESTS, "finish_wait",
	  "static inline int $F(struct ulrpc_stream *stream,\n"
	  "\t\t$R **reply_p, struct ulrpc_stream_outcome *outcome)\n"
	  "{\n"
	  "\tProtobufCMessage *reply = NULL;\n"
	  "\tint rc = ulrpc_stream_finish_wait(stream,\n"
	  "\t\t\t&$r__descriptor, &reply, outcome);\n"
	  "\n"
	  "\t*reply_p = ($R *)reply;\n"
	  "\treturn rc;\n"
	  "}\n" },
	/* the service's */
	{ REQUESTS | BOTH, "request", READS("", "$Q", "$q") },
	{ REQUESTS | BOTH, "request_wait", READS("_wait", "$Q", "$q") },
	{ REQUESTS, "reply",
	  "static inline int $F(struct ulrpc_stream *stream,\n"
	  "\t\tconst $R *reply)\n"
	  "{\n"
	  "\treturn ulrpc_stream_reply(stream,\n"
	  "\t\t\t(const ProtobufCMessage *)reply);\n"
	  "}\n" },
	{ REPLIES | BOTH, "reply", SENDS("", "$R") },
	{ REPLIES | BOTH, "reply_wait", SENDS("_wait", "$R") },
};

/* The handler of a method, in the structure of the service's handlers; what
 * calls it; and its line in the table of handlers. */
static const struct {
	unsigned int kinds;
	const char *member, *function, *line;
} handler_texts[] = {
	{ REPLIES,
	  "\tvoid (*$M)(void *arg, struct ulrpc_stream *stream,\n"
	  "\t\t\tconst $Q *request);\n",
	  "\n__attribute__((unused)) static void $S__streams_$M(\n"
	  "\t\tvoid *streams, struct ulrpc_stream *stream,\n"
	  "\t\tconst ProtobufCMessage *request)\n"
	  "{\n"
	  "\tconst struct $S__streams *s =\n"
	  "\t\t(const struct $S__streams *)streams;\n"
	  "\n"
	  "\ts->$M(s->arg, stream, (const $Q *)request);\n"
	  "}\n",
	  "\t\t{ \"$N\", streams->$M ? $S__streams_$M : NULL },\n" },
	{ REQUESTS | BOTH,
	  "\tvoid (*$M)(void *arg, struct ulrpc_stream *stream);\n",
	  "\n__attribute__((unused)) static void $S__streams_$M(\n"
	  "\t\tvoid *streams, struct ulrpc_stream *stream,\n"
	  "\t\tconst ProtobufCMessage *request)\n"
	  "{\n"
	  "\tconst struct $S__streams *s =\n"
	  "\t\t(const struct $S__streams *)streams;\n"
	  "\n"
	  "\t(void)request;\n"
	  "\ts->$M(s->arg, stream);\n"
	  "}\n",
	  "\t\t{ \"$N\", streams->$M ? $S__streams_$M : NULL },\n" },
};

static const char *typed_name(const struct typed *t, char which,
			      const char *function)
{
	switch (which) {
	case 'F':
		return function;
	case 'M':
		return t->method;
	case 'N':
		return t->name;
	case 'Q':
		return t->request;
	case 'R':
		return t->reply;
	case 'q':
		return t->request_type;
	case 'r':
		return t->reply_type;
	case 'T':
		return t->service_struct;
	default:
		return t->service;
	}
}

static void print_template(FILE *out, const char *text, const struct typed *t,
			   const char *function)
{
	for (; *text; text++) {
		if (*text != '$')
			fputc(*text, out);
		else
			fputs(typed_name(t, *++text, function), out);
	}
}

/* Returns the method of @service whose function by protoc-c is SERVICE__NAME;
 * NULL: there is none. */
static const Plugin__Method *find_method(const Plugin__Service *service,
					 const char *name)
{
	for (size_t i = 0; i < service->n_method; i++) {
		char *other = name_method(service->method[i]);
		bool same = strcmp(other, name) == 0;

		free(other);
		if (same)
			return service->method[i];
	}
	return NULL;
}

/* Prints a function, unless another method has its name. The rest of the header
 * can be used without that function. */
static void print_function(FILE *out, const Plugin__Service *service,
			   const struct typed *t, size_t which)
{
	char *own = name_format("%s_%s", t->method, functions[which].suffix);
	char *full = name_format("%s__%s", t->service, own);
	const Plugin__Method *other = find_method(service, own);

	if (other)
		fprintf(out,
			"\n/* No %s() for %s: the name is that of %s. */\n",
			full, t->name, other->name);
	else {
		fputc('\n', out);
		print_template(out, functions[which].text, t, full);
	}
	free(own);
	free(full);
}

/* ---- what is said of a method ---- */

/* Makes the names of a message: "Kv__Key", its structure, and "kv__key". NULL:
 * there is no such message. */
static char *name_message(const Plugin__Request *request, const char *full,
			  char **type_p)
{
	char *name = find_message(request, full);
	char *camel = NULL;

	if (name) {
		camel = to_camel(name);
		*type_p = to_lower(name);
	}
	free(name);
	return camel;
}

static void typed_free(struct typed *t)
{
	free(t->service);
	free(t->service_struct);
	free(t->method);
	free(t->request);
	free(t->request_type);
	free(t->reply);
	free(t->reply_type);
}

/* Makes the names for @method, which typed_free() frees. Returns what is wrong,
 * or NULL. */
static char *typed_make(struct typed *t, const Plugin__Request *request,
			const Plugin__File *file,
			const Plugin__Service *service,
			const Plugin__Method *method)
{
	char *full = in_package(c_package(file), service->name);

	*t = (struct typed){
		.name = method->name,
		.service = to_lower(full),
		.service_struct = to_camel(full),
		.method = name_method(method),
		.kind = 1u << streaming_of(method),
	};
	free(full);
	t->request =
		name_message(request, method->input_type, &t->request_type);
	t->reply = name_message(request, method->output_type, &t->reply_type);
	return t->request && t->reply
		       ? NULL
		       : wrong_with(file, service, method,
				    "protoc does not describe its messages");
}

static char *print_functions(FILE *out, const Plugin__Request *request,
			     const Plugin__File *file,
			     const Plugin__Service *service,
			     const Plugin__Method *method)
{
	struct typed t;
	char *wrong = typed_make(&t, request, file, service, method);

	for (size_t i = 0; !wrong && i < ARRAY_SIZE(functions); i++)
		if (functions[i].kinds & t.kind)
			print_function(out, service, &t, i);
	typed_free(&t);
	return wrong;
}

/* ---- services with streams ---- */

enum handler_part { MEMBER, FUNCTION, LINE };

/* Prints a part of each handler of @service, whose messages are known. */
static void print_handlers(FILE *out, const Plugin__Request *request,
			   const Plugin__File *file,
			   const Plugin__Service *service,
			   enum handler_part part)
{
	for (size_t i = 0; i < service->n_method; i++) {
		struct typed t;

		free(typed_make(&t, request, file, service,
				service->method[i]));
		for (size_t k = 0; k < ARRAY_SIZE(handler_texts); k++)
			if (handler_texts[k].kinds & t.kind)
				print_template(
					out,
					part == MEMBER ? handler_texts[k].member
					: part == FUNCTION
						? handler_texts[k].function
						: handler_texts[k].line,
					&t, "");
		typed_free(&t);
	}
}

/* The function that starts the service; $T is its structure. */
#define SERVE_BEGIN                                                  \
	"\nstatic inline int $S__serve_streams(struct ulrpc *rpc,\n" \
	"\t\t$T_Service *implementation,\n"                          \
	"\t\tconst struct $S__streams *streams,\n"                   \
	"\t\tconst struct ulrpc_stream_service_conf *conf,\n"        \
	"\t\tstruct ulrpc_stream_service **service_p)\n"             \
	"{\n"                                                        \
	"\tconst struct ulrpc_stream_handler handlers[] = {\n"
#define SERVE_END                                                    \
	"\t\t{ NULL, NULL },\n"                                      \
	"\t};\n"                                                     \
	"\n"                                                         \
	"\treturn ulrpc_serve_streams(rpc, &implementation->base,\n" \
	"\t\t\t$S__options, handlers, (void *)streams, conf,\n"      \
	"\t\t\tservice_p);\n"                                        \
	"}\n"

/* Prints what the service's side of streams needs, if there are any. */
static void print_streams(FILE *out, const Plugin__Request *request,
			  const Plugin__File *file,
			  const Plugin__Service *service)
{
	const Plugin__Method *other = find_method(service, "serve_streams");
	char *full = in_package(c_package(file), service->name);
	struct typed t = { .service = to_lower(full),
			   .service_struct = to_camel(full) };

	free(full);
	fprintf(out,
		"\n/* The handlers of %s's methods that stream. */\n"
		"struct %s__streams {\n\tvoid *arg;\n",
		service->name, t.service);
	print_handlers(out, request, file, service, MEMBER);
	fputs("};\n", out);
	print_handlers(out, request, file, service, FUNCTION);
	if (other) {
		fprintf(out,
			"\n/* No %s__serve_streams(): %s has the name. */\n",
			t.service, other->name);
	} else {
		print_template(out, SERVE_BEGIN, &t, "");
		print_handlers(out, request, file, service, LINE);
		print_template(out, SERVE_END, &t, "");
	}
	typed_free(&t);
}

/* ---- files ---- */

static bool has_streams(const Plugin__Service *service)
{
	for (size_t i = 0; i < service->n_method; i++)
		if (streaming_of(service->method[i]))
			return true;
	return false;
}

static char *print_service(FILE *out, const Plugin__Request *request,
			   const Plugin__File *file,
			   const Plugin__Service *service)
{
	char *wrong = print_table(out, file, service);

	for (size_t i = 0; !wrong && i < service->n_method; i++)
		wrong = print_functions(out, request, file, service,
					service->method[i]);
	if (!wrong && has_streams(service))
		print_streams(out, request, file, service);
	return wrong;
}

static void print_includes(FILE *out, const Plugin__File *file)
{
	char *messages = name_file(file->name, ".pb-c.h");

	fputs("\n\n#include <ulnet/stub.h>\n", out);
	if (file->n_service)
		fprintf(out, "#include \"%s\"\n", messages);
	free(messages);
}

static char *print_file(FILE *out, const Plugin__Request *request,
			const Plugin__File *file)
{
	char *wrong = NULL;

	fprintf(out,
		"/* Made of %s by protoc-gen-ulrpc: options of methods, for "
		"ulrpc_stub_new()\n * and ulrpc_serve(), and typed calls. "
		"Do not edit. */\n"
		"#ifndef ",
		file->name);
	print_guard(out, file->name);
	fputs("\n#define ", out);
	print_guard(out, file->name);
	print_includes(out, file);
	for (size_t i = 0; !wrong && i < file->n_service; i++)
		wrong = print_service(out, request, file, file->service[i]);
	fputs("\n#endif\n", out);
	return wrong;
}

static const Plugin__File *find_file(const Plugin__Request *request,
				     const char *name)
{
	for (size_t i = 0; i < request->n_proto_file; i++)
		if (strcmp(request->proto_file[i]->name, name) == 0)
			return request->proto_file[i];
	return NULL;
}

/* Makes the header for the file @name. Returns what is wrong, which the caller
 * frees, or NULL. */
static char *generate(const Plugin__Request *request, const char *name,
		      Plugin__Output *output)
{
	const Plugin__File *file = find_file(request, name);
	size_t size;
	char *wrong;
	FILE *out;

	if (!file)
		return name_format("%s: protoc does not describe it", name);
	out = need(open_memstream(&output->content, &size));
	wrong = print_file(out, request, file);
	if (ferror(out) | fclose(out))
		errx(1, "no memory");
	output->name = name_file(name, ".ulrpc.h");
	return wrong;
}

/* ---- protoc ---- */

static uint8_t *read_stdin(FILE *in, size_t *length_p)
{
	size_t length = 0, size = 1 << 16, n;
	uint8_t *bytes = need(malloc(size));

	while ((n = fread(bytes + length, 1, size - length, in))) {
		length += n;
		if (length == size)
			bytes = need(realloc(bytes, size *= 2));
	}
	if (ferror(in))
		err(1, "stdin");
	*length_p = length;
	return bytes;
}

static void write_response(const Plugin__Response *response)
{
	size_t length = plugin__response__get_packed_size(response);
	uint8_t *bytes = need(malloc(length + 1));

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

static void respond(const Plugin__Request *request)
{
	Plugin__Response response = PLUGIN__RESPONSE__INIT;
	char *wrong = NULL;

	response.supported_features = 1;
	response.file = need(calloc(request->n_file_to_generate + 1,
				    sizeof(*response.file)));
	if (*request->parameter)
		wrong = name_format("there are no parameters: %s",
				    request->parameter);
	for (size_t i = 0; !wrong && i < request->n_file_to_generate; i++) {
		Plugin__Output *output = need(malloc(sizeof(*output)));

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
	bytes = read_stdin(stdin, &length);
	request = plugin__request__unpack(NULL, length, bytes);
	free(bytes);
	if (!request)
		errx(1, "stdin is not a request of protoc: run\n\t"
			"protoc --ulrpc_out=DIR FILE.proto");
	respond(request);
	plugin__request__free_unpacked(request, NULL);
	return 0;
}
