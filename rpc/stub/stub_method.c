/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stub/stub_method.h"

#include <errno.h>
#include <stdlib.h>

static int check_options(const struct ulrpc_method_options *o)
{
	return (unsigned int)o->semantics > ULRPC_EXACTLY_ONCE ||
			       (unsigned int)o->priority >
				       ULRPC_PRIORITY_BACKGROUND ||
			       (unsigned int)o->run > ULRPC_RUN_INLINE ||
			       o->reply_max > ULRPC_BODY_MAX
		       ? -EINVAL
		       : 0;
}

static int set_options(struct stub_method *methods,
		       const ProtobufCServiceDescriptor *descriptor,
		       const struct ulrpc_method_options *options)
{
	const ProtobufCMethodDescriptor *m;
	int rc = 0;

	for (; !rc && options->method; options++) {
		m = protobuf_c_service_descriptor_get_method_by_name(
			descriptor, options->method);
		rc = m ? check_options(options) : -ENOENT;
		if (!rc)
			methods[m - descriptor->methods].options = *options;
	}
	return rc;
}

static int set_method(struct stub_method *method,
		      const ProtobufCMethodDescriptor *descriptor)
{
	int rc = message_type_init(&method->input, descriptor->input);

	if (!rc)
		rc = message_type_init(&method->output, descriptor->output);
	method->name = descriptor->name;
	method->number = ulrpc_method(descriptor->name);
	return rc;
}

int stub_methods_new(const ProtobufCServiceDescriptor *descriptor,
		     const struct ulrpc_method_options *options,
		     struct stub_method **methods_p)
{
	struct stub_method *methods;
	int rc = 0;

	if (descriptor->magic != PROTOBUF_C__SERVICE_DESCRIPTOR_MAGIC)
		return -EINVAL;
	/* A service may have no methods yet. */
	methods = calloc(descriptor->n_methods + 1, sizeof(*methods));
	if (!methods)
		return -ENOMEM;
	for (unsigned int i = 0; !rc && i < descriptor->n_methods; i++)
		rc = set_method(&methods[i], &descriptor->methods[i]);
	if (!rc && options)
		rc = set_options(methods, descriptor, options);
	if (rc)
		free(methods);
	else
		*methods_p = methods;
	return rc;
}
