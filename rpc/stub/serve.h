/* SPDX-License-Identifier: BSD-3-Clause */
/* A service whose functions and handlers take messages. */
#ifndef RPC_STUB_SERVE_H
#define RPC_STUB_SERVE_H

#include "base/util.h"
#include "rpc/stub/message.h"

/* A service, from start to end. */
struct serving {
	ProtobufCService *implementation;
	struct stub_method *methods;
	/* of the methods that are called; used while it is started only */
	struct ulrpc_method_conf *confs;
	unsigned int nconfs, nstreams; /* methods: called, and that stream */
	void *arg;		       /* of handlers */
	/* what the user has set as conf.ended; NULL: nothing */
	void (*ended)(void *arg);
	void *ended_arg;
	struct serving_entry {
		struct serving *serving;
		unsigned int index;
		ulrpc_stream_message_fn handler; /* of streams */
	} entries[];				 /* one for each method */
};

/* Whom errors of @conf are told to. */
struct conf_owner serving_owner(const struct ulrpc_service_conf *conf);
/* Checks what ulrpc_serve() got, and makes a serving of it, with those methods
 * that are called. If @conf has no name, the one of @implementation is set. 0
 * or -errno. */
int serving_new(ProtobufCService *implementation,
		const struct ulrpc_method_options *options,
		struct ulrpc_service_conf *conf,
		struct serving **serving_p) must_check;
/* The service was not started. */
void serving_free(struct serving *serving);
/* Puts into @conf the methods that are called, and what frees @serving when the
 * service has ended. */
void serving_complete(struct serving *serving, struct ulrpc_service_conf *conf);

#endif
