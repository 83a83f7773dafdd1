/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_replicas_stub_new(3), and ulrpc_stream_message(3) for sets: messages
 * for one of several servers. Uses only the public interface of sets. */
#include "rpc/stub/stub.h"

#include "rpc/stub/streaming.h"
#include "ulnet/replicas.h"

static void on_stub_done(void *arg, const struct ulrpc_replicas_outcome *o,
			 const void *reply, size_t length)
{
	stub_on_done(arg, &o->call, reply, length);
}

static int way_call(void *to, uint32_t method, const void *body, size_t length,
		    const struct ulrpc_call_conf *conf, void *arg)
{
	const struct ulrpc_replicas_call_conf own = { .call = *conf };

	return ulrpc_replicas_call(to, method, body, length, &own, on_stub_done,
				   arg, NULL);
}

static int way_call_wait(void *to, uint32_t method, const void *body,
			 size_t length, const struct ulrpc_call_conf *conf,
			 void **reply_p, size_t *length_p,
			 struct ulrpc_outcome *outcome)
{
	const struct ulrpc_replicas_call_conf own = { .call = *conf };
	struct ulrpc_replicas_outcome o;
	int rc = ulrpc_replicas_call_wait_alloc(to, method, body, length, &own,
						reply_p, length_p, &o);

	if (!rc)
		*outcome = o.call;
	return rc;
}

static unsigned int way_cpt(const void *to)
{
	return ulrpc_replicas_cpt(to);
}

static const struct stub_way way = { "replicas", way_call, way_call_wait,
				     way_cpt };

int ulrpc_replicas_stub_new(struct ulrpc_replicas *replicas,
			    const ProtobufCServiceDescriptor *descriptor,
			    const struct ulrpc_method_options *options,
			    uint64_t deadline, ProtobufCService **stub_p)
{
	return stub_new_way(replicas ? ulrpc_replicas_rpc(replicas) : NULL,
			    &way, replicas, descriptor, options, deadline,
			    stub_p);
}

/* ---- streams ---- */

/* Packs @request, or nothing if it is NULL. */
static int request_pack(struct packed *packed, const ProtobufCMessage *request)
{
	*packed = (struct packed){ .length = 0 };
	return request ? stream_pack(packed, request) : 0;
}

int ulrpc_replicas_stream_open_message(
	struct ulrpc_replicas *replicas, const char *method,
	const ProtobufCMessage *request,
	const struct ulrpc_replicas_stream_conf *conf,
	ulrpc_replicas_stream_fn fn, void *arg,
	struct ulrpc_replicas_call **call_p)
{
	struct packed packed;
	int rc = request_pack(&packed, request);

	if (rc)
		return rc;
	rc = ulrpc_replicas_stream_open(replicas, method, packed.bytes,
					packed.length, conf, fn, arg, call_p);
	if (request)
		packed_fini(&packed);
	return rc;
}

int ulrpc_replicas_stream_open_message_wait(
	struct ulrpc_replicas *replicas, const char *method,
	const ProtobufCMessage *request,
	const struct ulrpc_replicas_stream_conf *conf,
	struct ulrpc_stream **stream_p, struct ulrpc_replicas_outcome *outcome)
{
	struct packed packed;
	int rc = request_pack(&packed, request);

	if (rc)
		return rc;
	rc = ulrpc_replicas_stream_open_wait(replicas, method, packed.bytes,
					     packed.length, conf, stream_p,
					     outcome);
	if (request)
		packed_fini(&packed);
	return rc;
}
