/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What messages, enums and services look like: from a server, or from a file of
 * protoc's. What is wrong is said on a stream, with the name that was probably
 * meant.
 */
#ifndef TOOLS_ULRPC_SCHEMA_H
#define TOOLS_ULRPC_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <ulnet/schema.pb-c.h>

#include "tools/common/option.h"

/* FieldDescriptorProto.Type */
enum schema_kind {
	SCHEMA_DOUBLE = 1,
	SCHEMA_FLOAT,
	SCHEMA_INT64,
	SCHEMA_UINT64,
	SCHEMA_INT32,
	SCHEMA_FIXED64,
	SCHEMA_FIXED32,
	SCHEMA_BOOL,
	SCHEMA_STRING,
	SCHEMA_GROUP,
	SCHEMA_MESSAGE,
	SCHEMA_BYTES,
	SCHEMA_UINT32,
	SCHEMA_ENUM,
	SCHEMA_SFIXED32,
	SCHEMA_SFIXED64,
	SCHEMA_SINT32,
	SCHEMA_SINT64,
	SCHEMA_KINDS
};

enum { SCHEMA_OPTIONAL = 1, SCHEMA_REQUIRED, SCHEMA_REPEATED };

struct schema_enum {
	char *name; /* full, without a dot in front; so are all names here */
	const Ulrpc__Schema__EnumType *type;
};

struct schema_field {
	const Ulrpc__Schema__Field *field;
	enum schema_kind kind;
	char *json;			 /* its name in JSON */
	const struct schema_type *type;	 /* of a message; NULL: it is none */
	const struct schema_enum *names; /* of an enum; NULL: it is none */
	bool repeated, packed, is_map;
};

struct schema_type {
	char *name;
	const Ulrpc__Schema__Type *type;
	bool proto3;
	struct schema_field *fields; /* as many as type->n_field */
	/* as many, in the order of their numbers; those of one number as in
	 * @fields */
	const struct schema_field **by_number;
};

struct schema_service {
	char *name;
	const Ulrpc__Schema__Service *service;
};

/* Zeroed memory is an empty schema. */
struct schema {
	Ulrpc__Schema__FileSet *set;
	struct schema_type *types;
	struct schema_enum *enums;
	struct schema_service *services;
	size_t ntypes, nenums, nservices;
};

/* Takes @set, which schema_free() frees in any case. Returns 0, or -errno after
 * a message: the set is not complete, or it makes no sense. */
int schema_open(struct schema *s, Ulrpc__Schema__FileSet *set, FILE *err);
/* Reads protoc's descriptor set, or, if the name ends in .proto, has protoc
 * read it, with the paths @includes, up to NULL. 0, or -errno after a message.
 */
int schema_read(struct schema *s, const char *path, const char *const *includes,
		FILE *err);
void schema_free(struct schema *s);

/* Return NULL, after a message, if there is none. */
const struct schema_service *schema_service(const struct schema *s,
					    const char *name, FILE *err);
const Ulrpc__Schema__Method *schema_method(const struct schema_service *service,
					   const char *name, FILE *err);
/* Ends a sentence, and asks whether the name that is near was meant. */
void schema_say_nearest(const struct nearest *near, FILE *err);
/* @name may have a dot in front. */
const struct schema_type *schema_type(const struct schema *s, const char *name);

/* The type that values of @kind have on the wire: 0: a varint; 1: 8 bytes; 2: a
 * length and that many bytes; 5: 4 bytes. */
unsigned int schema_wire(enum schema_kind kind);

/* Prints the service, or only @method of it (NULL: all), and all messages and
 * enums that it needs, in the language of .proto files. */
void schema_print(const struct schema *s, const struct schema_service *service,
		  const Ulrpc__Schema__Method *method, FILE *out);

#endif
