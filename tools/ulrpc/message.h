/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between JSON and the wire, as a schema says it, in the way of proto3
 * (protobuf.dev: "ProtoJSON"): enums by name, bytes in base64, integers of 64
 * bits and the keys of maps as strings. The messages that Google calls well
 * known are as any other.
 */
#ifndef TOOLS_ULRPC_MESSAGE_H
#define TOOLS_ULRPC_MESSAGE_H

#include <stdint.h>

#include "schema.h"

#define MESSAGE_DEPTH 64 /* messages in messages, at most */

struct message_bytes {
	uint8_t *data; /* to be freed */
	size_t n, size;
};

/* Makes the message of @type that @json, of @length bytes, says. Returns false
 * after a message, which names the field as in "parts[2].name". */
bool message_read(const struct schema_type *type, const char *json,
		  size_t length, struct message_bytes *out, FILE *err);

/* Prints a message, and a newline. @defaults: also the fields that have no
 * value, except messages and members of oneofs. Returns false after a message:
 * it is malformed. Fields that are not known are left out, with a message. */
bool message_print(const struct schema_type *type, const void *body,
		   size_t length, bool defaults, FILE *out, FILE *err);

#endif
