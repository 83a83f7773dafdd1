/* SPDX-License-Identifier: BSD-3-Clause */
#include "protoc_name.h"

#include <ctype.h>
#include <err.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

char *name_format(const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		errx(1, "no memory");
	return text;
}

char *name_file(const char *proto, const char *suffix)
{
	size_t len = strlen(proto);

	if (len > 6 && strcmp(proto + len - 6, ".proto") == 0)
		len -= 6;
	return name_format("%.*s%s", (int)len, proto, suffix);
}

/* ---- spelling ---- */

/* Each character of a name in a .proto becomes two of C at most. */
static char *room_for(const char *name)
{
	char *room = malloc(2 * strlen(name) + 1);

	if (!room)
		errx(1, "no memory");
	return room;
}

/* kv.KeyStore: kv__key_store */
static char *to_lower(const char *name)
{
	char *lower = room_for(name), *to = lower;
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

/* kv.key_part: Kv__KeyPart */
static char *to_camel(const char *name)
{
	char *camel = room_for(name), *to = camel;
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

/* The package for C may be another one. */
static const char *c_package(const Plugin__File *file)
{
	const Plugin__ProtobufCFileOptions *options =
		file->options ? file->options->pb_c_file : NULL;

	return options && *options->c_package ? options->c_package
					      : file->package;
}

/* @name within the package @package, or in none. */
static char *in_package(const char *package, const char *name)
{
	return name_format("%s%s%s", package, *package ? "." : "", name);
}

char *name_service(const Plugin__File *file, const Plugin__Service *service)
{
	char *full = in_package(c_package(file), service->name);
	char *lower = to_lower(full);

	free(full);
	return lower;
}

char *name_method(const Plugin__Method *method)
{
	return to_lower(method->name);
}

/* ---- messages ---- */

/* Is @name, such as Key.Part, one of these messages, or in one of them? */
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

/* What follows the package of @file in @full, ".kv.Key"; NULL: it is in
 * another package. */
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

char *name_message(const Plugin__Request *request, const char *full)
{
	for (size_t i = 0; i < request->n_proto_file; i++) {
		const Plugin__File *file = request->proto_file[i];
		const char *name = after_package(file, full);
		char *mine, *camel;

		if (!name || !has_message(file->message_type,
					  file->n_message_type, name))
			continue;
		mine = in_package(c_package(file), name);
		camel = to_camel(mine);
		free(mine);
		return camel;
	}
	return NULL;
}
