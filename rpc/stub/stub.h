/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stubs: each is a ProtobufCService whose functions make calls. Most make them
 * with a client; others as a table of functions says, which whoever makes
 * calls in another way fills in.
 */
#ifndef RPC_STUB_H
#define RPC_STUB_H

#include "ulnet/stub.h"

/* How a stub makes calls without a client. @to is what they are made with, @own
 * what one of the stub_way_*() functions was given; else it is NULL. */
struct stub_way {
	const char *name; /* of @to, for messages */
	/* As ulrpc_call(). At the end calls stub_on_done(@arg, ...). */
	int (*call)(void *to, void *own, uint32_t method, const void *body,
		    size_t length, const struct ulrpc_call_conf *conf,
		    void *arg);
	/* As ulrpc_call_wait_alloc(). */
	int (*call_wait)(void *to, void *own, uint32_t method, const void *body,
			 size_t length, const struct ulrpc_call_conf *conf,
			 void **reply_p, size_t *length_p,
			 struct ulrpc_outcome *outcome);
	/* the CPT on which stub_on_done() is called */
	unsigned int (*cpt)(const void *to);
};

/* As ulrpc_stub_new(), for calls of @way. @to may be NULL, which is refused. */
int stub_new_way(struct ulrpc *rpc, const struct stub_way *way, void *to,
		 const ProtobufCServiceDescriptor *descriptor,
		 const struct ulrpc_method_options *options, uint64_t deadline,
		 ProtobufCService **stub_p);
/* As ulrpc_call_message() and ulrpc_call_message_wait(), for a stub of @way,
 * whose functions get @own. -EOPNOTSUPP: @service is no such stub. */
int stub_way_call(ProtobufCService *service, const struct stub_way *way,
		  void *own, const char *method,
		  const ProtobufCMessage *request,
		  const struct ulrpc_call_conf *conf, ulrpc_message_fn done,
		  void *arg);
int stub_way_call_wait(ProtobufCService *service, const struct stub_way *way,
		       void *own, const char *method,
		       const ProtobufCMessage *request,
		       const struct ulrpc_call_conf *conf,
		       ProtobufCMessage **reply_p,
		       struct ulrpc_outcome *outcome);
/* An ulrpc_done_fn. */
void stub_on_done(void *arg, const struct ulrpc_outcome *outcome,
		  const void *body, size_t length);

#endif
