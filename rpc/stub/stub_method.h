/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of a protobuf-c service, as both sides of stubs need them. */
#ifndef RPC_STUB_METHOD_H
#define RPC_STUB_METHOD_H

#include "rpc/stub/message.h"
#include "ulnet/stub.h"

struct stub_method {
	const char *name;
	uint32_t number; /* on the wire */
	struct ulrpc_method_options options;
	struct message_type input, output;
};

/* An array by index in @descriptor, to be given back with free(); borrows names
 * of @descriptor, and @options until the return. -EINVAL: not a descriptor, or
 * a line makes no sense; -ENOENT: a line is for none of the methods;
 * -ENOMEM. */
int stub_methods_new(const ProtobufCServiceDescriptor *descriptor,
		     const struct ulrpc_method_options *options,
		     struct stub_method **methods_p);

#endif
