/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote procedure calls over LNet with protobuf-c's messages: how to call, and
 * how to run, the services that protoc-c generates from a "service" of a
 * .proto. Conventions as in ulnet/rpc.h. Manual: ulrpc_tutorial(7),
 * ulrpc_stub_new(3), ulrpc_call_message(3), ulrpc_set_message(3),
 * ulrpc_bulk_field(3), ulrpc_serve(3), protoc-gen-ulrpc(1).
 */
#ifndef ULNET_STUB_H
#define ULNET_STUB_H

#include "ulnet/rpc.pb-c.h"
#include "ulnet/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- methods: ulrpc_stub_new(3) ---- */

/* A line of a table of options, which protoc-gen-ulrpc or the programmer
 * writes. Methods without a line have the defaults. A line with method NULL
 * ends the table. */
struct ulrpc_method_options {
	const char *method; /* name in the .proto */
	enum ulrpc_semantics semantics;
	enum ulrpc_priority priority;
	enum ulrpc_run run;
	uint32_t reply_max; /* bytes of the reply, packed; 0 = 4096 */
};

/* ---- clients: ulrpc_stub_new(3) ---- */

/*
 * Makes what the generated functions take as service: calls that go to @client.
 * @client is borrowed until ulrpc_stub_free(); @options (may be NULL) until the
 * return. @deadline: us, of each call; not 0; ULRPC_NEVER. -EINVAL; -ENOENT: a
 * line of @options is for no method of this service; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_stub_new(struct ulrpc_client *client,
				const ProtobufCServiceDescriptor *descriptor,
				const struct ulrpc_method_options *options,
				uint64_t deadline, ProtobufCService **stub_p);
/* Calls under way go on. NULL is fine. */
ULNET_EXPORT void ulrpc_stub_free(ProtobufCService *stub);
/* Changes the deadline of calls that are made from now on. Any thread. */
ULNET_EXPORT void ulrpc_stub_deadline(ProtobufCService *stub,
				      uint64_t deadline);
/*
 * In a closure: what became of the call, until the closure returns. NULL
 * elsewhere. The closure's message is NULL unless the cause is ULRPC_CAUSE_OK.
 */
ULNET_EXPORT const struct ulrpc_outcome *ulrpc_stub_outcome(void);

/* ---- calls that say more: ulrpc_call_message(3) ---- */

/* Fills @conf with what the stub calls @method with. -ENOENT: no such
 * method. */
ULNET_EXPORT int ulrpc_stub_conf(const ProtobufCService *stub,
				 const char *method,
				 struct ulrpc_call_conf *conf);

/* @reply ends with the call; NULL unless outcome->cause is ULRPC_CAUSE_OK. */
typedef void (*ulrpc_message_fn)(void *arg, const struct ulrpc_outcome *outcome,
				 const ProtobufCMessage *reply);

/*
 * As ulrpc_call(), with messages. @conf: NULL: what the stub has. Bulks of
 * fields come after those of @conf. Moreover -ENOENT: no such method; -EINVAL:
 * @request is not what the method takes, or has a Bulk that is not of
 * ulrpc_bulk_field(); -E2BIG: more than ULRPC_BULKS_MAX bulks.
 */
ULNET_EXPORT int ulrpc_call_message(ProtobufCService *stub, const char *method,
				    const ProtobufCMessage *request,
				    const struct ulrpc_call_conf *conf,
				    ulrpc_message_fn done, void *arg,
				    struct ulrpc_call **call_p);
/* As ulrpc_call_wait(). *@reply_p: NULL unless the cause is ULRPC_CAUSE_OK; to
 * be given back with protobuf_c_message_free_unpacked(reply, NULL). */
ULNET_EXPORT int ulrpc_call_message_wait(ProtobufCService *stub,
					 const char *method,
					 const ProtobufCMessage *request,
					 const struct ulrpc_call_conf *conf,
					 ProtobufCMessage **reply_p,
					 struct ulrpc_outcome *outcome);

/* ---- sets of calls: ulrpc_set_message(3) ---- */

/* As ulrpc_set_call(), with a message, as ulrpc_call_message(). */
ULNET_EXPORT int ulrpc_set_message(struct ulrpc_set *set,
				   ProtobufCService *stub, const char *method,
				   const ProtobufCMessage *request,
				   const struct ulrpc_call_conf *conf,
				   void *arg, struct ulrpc_call **call_p);
/*
 * Makes a message of the bytes in @result, which it frees. *@reply_p: as
 * ulrpc_call_message_wait() does. If it is NULL, result->outcome says why, even
 * if the reason was found only now. -ENOENT: @service has no such method;
 * -EINVAL: @result is of another one. Any thread; never waits.
 */
ULNET_EXPORT int ulrpc_result_message(struct ulrpc_result *result,
				      const ProtobufCServiceDescriptor *service,
				      const char *method,
				      ProtobufCMessage **reply_p);

/* ---- bulk as a field: ulrpc_bulk_field(3) ---- */

/* The value for a field of type ulrpc.Bulk, in a message that goes to a stub.
 * It belongs to the bulk, and lives as long as the bulk. */
ULNET_EXPORT Ulrpc__Bulk *ulrpc_bulk_field(struct ulrpc_bulk *bulk);

/* ---- services: ulrpc_serve(3) ---- */

/*
 * Starts the service that @implementation is (X__INIT(prefix) of the generated
 * header), borrowed until ulrpc_service_stop(). Its functions get the request
 * until they call the closure, once, from any thread, with the reply, or with
 * NULL: -EIO. @conf: NULL, or the rest of the configuration: no methods; name
 * NULL: the full one, "package.Service".
 * As ulrpc_service_start(); moreover -EINVAL: a function is missing; -ENOENT: a
 * line of @options is for no method of this service.
 */
ULNET_EXPORT int ulrpc_serve(struct ulrpc *rpc,
			     ProtobufCService *implementation,
			     const struct ulrpc_method_options *options,
			     const struct ulrpc_service_conf *conf,
			     struct ulrpc_service **service_p);
/* The request that belongs to @closure_data, which a function of the service
 * was given: for its information and its bulk, until it is answered, which only
 * the closure and ulrpc_closure_fail*() may do. Any thread. */
ULNET_EXPORT struct ulrpc_request *ulrpc_request_of(void *closure_data);
/* As ulrpc_request_record(), when the closure is going to be called with
 * @reply. */
ULNET_EXPORT int ulrpc_closure_record(void *closure_data,
				      const ProtobufCMessage *reply,
				      struct ulrpc_record *record);
/* Fails the request instead of calling the closure: as ulrpc_fail(). Any
 * thread. */
ULNET_EXPORT void ulrpc_closure_fail(void *closure_data, int status);
/* The same, as ulrpc_fail_text(). */
ULNET_EXPORT void ulrpc_closure_fail_text(void *closure_data, int status,
					  const char *text);

#ifdef __cplusplus
}
#endif

#endif
