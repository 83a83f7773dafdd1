/* SPDX-License-Identifier: BSD-3-Clause */
/* Services whose functions and handlers get messages: what ulrpc_serve()
 * (serve.c) and ulrpc_serve_streams() (serve_streams.c) share. */
#ifndef RPC_STUB_SERVE_H
#define RPC_STUB_SERVE_H

#include "base/util.h"
#include "rpc/stub/message.h"

/* One such service, until it has ended. */
struct serving {
	ProtobufCService *implementation;
	struct stub_method *methods;
	/* array of the methods that do not stream; used only until the service
	 * has started */
	struct ulrpc_method_conf *confs;
	/* how many methods do not stream, and how many do */
	unsigned int nconfs, nstreams;
	uint8_t *streaming; /* enum ulrpc_streaming of each method */
	void *arg;	    /* argument of handlers */
	/* what the user has set as conf.ended; NULL: nothing */
	void (*ended)(void *arg);
	void *ended_arg;
	struct serving_entry {
		struct serving *serving;
		unsigned int index;
		ulrpc_stream_message_fn handler; /* of a method that streams */
	} entries[]; /* one for each method, by its index */
};

/* Returns to whom errors of @conf are told. */
struct conf_owner serving_owner(const struct ulrpc_service_conf *conf);
/* Checks what the user gives to ulrpc_serve(), and makes a serving of it. Sets
 * conf->name to the name of @implementation if it is NULL. Returns 0 or -errno.
 */
int serving_new(ProtobufCService *implementation,
		const struct ulrpc_method_options *options,
		struct ulrpc_service_conf *conf,
		struct serving **serving_p) must_check;
/* Frees a serving whose service has not started. It frees itself when its
 * service has ended. */
void serving_free(struct serving *serving);
/* Makes @conf ready for the start: sets the methods that do not stream, and
 * makes @serving be freed when the service has ended. */
void serving_complete(struct serving *serving, struct ulrpc_service_conf *conf);

#endif
