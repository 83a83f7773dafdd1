/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of wire_messages.h have the numbers, names and types of
 * wire.proto. */
#include <criterion/criterion.h>
#include <string.h>
#include "rpc/wire/wire.pb-c.h"
#include "rpc/wire/wire_messages.h"

struct row {
	unsigned int number;
	const char *member; /* its name; nested messages may have the plural */
	ProtobufCType type;
	bool repeated;
};

#define TYPE_varint   PROTOBUF_C_TYPE_UINT64
#define TYPE_varint32 PROTOBUF_C_TYPE_UINT32
#define TYPE_flag     PROTOBUF_C_TYPE_BOOL
#define TYPE_fixed64  PROTOBUF_C_TYPE_FIXED64
#define TYPE_checksum PROTOBUF_C_TYPE_FIXED64
#define TYPE_fixed32  PROTOBUF_C_TYPE_FIXED32
#define TYPE_bytes    PROTOBUF_C_TYPE_BYTES
#define TYPE_id	      PROTOBUF_C_TYPE_BYTES
#define TYPE_name     PROTOBUF_C_TYPE_STRING

#define F(number, type, member) { number, #member, TYPE_##type, false },
#define A(number, type, member) { number, #member, TYPE_##type, true },
#define L(number, message, member) \
	{ number, #member, PROTOBUF_C_TYPE_MESSAGE, true },

#define ROWS(fields)            \
	(const struct row[])    \
	{                       \
		fields(F, L, A) \
		{               \
			0       \
		}               \
	}

/* Checks that @rows and @d have the same fields, but for @apart fields of @d
 * that are in no list. */
static void check(const ProtobufCMessageDescriptor *d, const struct row *rows,
		  unsigned int apart)
{
	unsigned int n = 0, before = 0;

	for (; rows[n].number; before = rows[n++].number) {
		const struct row *r = &rows[n];
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field(d, r->number);

		cr_assert(f, "%s.%s", d->name, r->member);
		cr_assert_gt(r->number, before, "%s.%s", d->name, r->member);
		cr_assert_eq(strncmp(r->member, f->name, strlen(f->name)), 0,
			     "%s.%s, not %s", d->name, f->name, r->member);
		cr_assert(r->type == PROTOBUF_C_TYPE_MESSAGE ||
				  strlen(r->member) == strlen(f->name),
			  "%s.%s", d->name, r->member);
		cr_assert_eq(r->type, f->type, "%s.%s", d->name, r->member);
		cr_assert_eq(r->repeated, f->label == PROTOBUF_C_LABEL_REPEATED,
			     "%s.%s", d->name, r->member);
	}
	cr_assert_eq(n + apart, d->n_fields, "%s", d->name);
}

Test(wire_messages, lists_are_those_of_wire_proto)
{
	check(&ulrpc__wire__requests__descriptor, ROWS(WIRE_REQUESTS_FIELDS),
	      5);
	check(&ulrpc__wire__call__descriptor, ROWS(WIRE_CALL_FIELDS), 0);
	check(&ulrpc__wire__segments__descriptor, ROWS(WIRE_SEGMENTS_FIELDS),
	      0);
	check(&ulrpc__wire__replies__descriptor, ROWS(WIRE_REPLIES_FIELDS), 4);
	check(&ulrpc__wire__reply__descriptor, ROWS(WIRE_REPLY_FIELDS), 0);
	check(&ulrpc__wire__moved__descriptor, ROWS(WIRE_MOVED_FIELDS), 0);
	check(&ulrpc__wire__extension__descriptor, ROWS(WIRE_EXTENSION_FIELDS),
	      0);
	check(&ulrpc__wire__gone__descriptor, ROWS(WIRE_GONE_FIELDS), 0);
}

Test(wire_messages, control_messages_are_those_of_wire_proto)
{
#define CONTROL(number, kind, member)               \
	check(&ulrpc__wire__##member##__descriptor, \
	      ROWS(WIRE_##kind##_FIELDS), 0);
	WIRE_CONTROLS(CONTROL)
#define KIND(number, kind, member) \
	{ number, #member, PROTOBUF_C_TYPE_MESSAGE, false },
	check(&ulrpc__wire__control__descriptor,
	      (const struct row[]){ WIRE_CONTROLS(KIND){ 0 } }, 0);
}
