/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bulk in a message: the field that says so, and which bulk it is of. The
 * pointer to unknown fields is nobody's when there are none: it says which bulk
 * a field is of, also in a copy of the field. In what somebody else made, or
 * protobuf-c unpacked, it is NULL.
 */
#ifndef RPC_BULK_FIELD_H
#define RPC_BULK_FIELD_H

#include "ulnet/rpc.h"
#include "ulnet/rpc.pb-c.h"

static inline void bulk_field_init(Ulrpc__Bulk *field, struct ulrpc_bulk *bulk,
				   uint64_t length,
				   enum ulrpc_bulk_access access)
{
	ulrpc__bulk__init(field);
	field->base.unknown_fields = (ProtobufCMessageUnknownField *)bulk;
	field->length = length;
	field->access = access;
}

/* NULL: it is not of bulk_field_init(). */
static inline struct ulrpc_bulk *bulk_of_field(const Ulrpc__Bulk *field)
{
	return field->base.n_unknown_fields
		       ? NULL
		       : (struct ulrpc_bulk *)field->base.unknown_fields;
}

#endif
