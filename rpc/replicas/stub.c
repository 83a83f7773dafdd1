/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_replicas_stub_new(3), ulrpc_replicas_call_message(3), and
 * ulrpc_stream_message(3) for sets: messages for one of several servers. Uses
 * only the public interface of sets. */
#include "rpc/stub/stub.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/stub/streaming.h"
#include "ulnet/replicas.h"

/* A call of ulrpc_replicas_call_message() under way. */
struct set_call {
	ulrpc_replicas_message_fn done;
	void *arg;
	void *stub_call; /* for stub_on_done() */
	/* valid while stub_on_done() runs */
	const struct ulrpc_replicas_outcome *outcome;
};

/* What a call by a stub may have beside what every stub has. */
struct set_own {
	const struct ulrpc_replicas_call_conf *conf; /* NULL: none */
	struct ulrpc_replicas_outcome
		outcome;       /* of a call that was waited for */
	struct set_call *call; /* NULL: one that is waited for */
	struct ulrpc_replicas_call **call_p;
};

static struct ulrpc_replicas_call_conf conf_of(
	const struct set_own *own, const struct ulrpc_call_conf *conf)
{
	struct ulrpc_replicas_call_conf all = { .call = *conf };

	if (own && own->conf) {
		all.key = own->conf->key;
		all.key_length = own->conf->key_length;
	}
	return all;
}

static void on_stub_done(void *arg, const struct ulrpc_replicas_outcome *o,
			 const void *reply, size_t length)
{
	stub_on_done(arg, &o->call, reply, length);
}

static void on_set_done(void *arg, const struct ulrpc_replicas_outcome *o,
			const void *reply, size_t length)
{
	struct set_call *call = arg;

	call->outcome = o;
	stub_on_done(call->stub_call, &o->call, reply, length);
	free(call);
}

/* What stub_on_done() calls. */
static void on_set_message(void *arg, const struct ulrpc_outcome *outcome,
			   const ProtobufCMessage *reply)
{
	const struct set_call *call = arg;
	struct ulrpc_replicas_outcome o = *call->outcome;

	o.call = *outcome; /* the reply may turn out to be none */
	if (call->done)
		call->done(call->arg, &o, reply);
}

static int way_call(void *to, void *arg, uint32_t method, const void *body,
		    size_t length, const struct ulrpc_call_conf *conf,
		    void *stub_call)
{
	const struct set_own *own = arg;
	const struct ulrpc_replicas_call_conf all = conf_of(own, conf);

	if (!own)
		return ulrpc_replicas_call(to, method, body, length, &all,
					   on_stub_done, stub_call, NULL);
	own->call->stub_call = stub_call;
	return ulrpc_replicas_call(to, method, body, length, &all, on_set_done,
				   own->call, own->call_p);
}

static int way_call_wait(void *to, void *arg, uint32_t method, const void *body,
			 size_t length, const struct ulrpc_call_conf *conf,
			 void **reply_p, size_t *length_p,
			 struct ulrpc_outcome *outcome)
{
	struct set_own *own = arg;
	const struct ulrpc_replicas_call_conf all = conf_of(own, conf);
	struct ulrpc_replicas_outcome o;
	int rc = ulrpc_replicas_call_wait_alloc(to, method, body, length, &all,
						reply_p, length_p, &o);

	if (rc)
		return rc;
	*outcome = o.call;
	if (own)
		own->outcome = o;
	return 0;
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

/* ---- calls with more control ---- */

int ulrpc_replicas_call_message(ProtobufCService *stub, const char *method,
				const ProtobufCMessage *request,
				const struct ulrpc_replicas_call_conf *conf,
				ulrpc_replicas_message_fn done, void *arg,
				struct ulrpc_replicas_call **call_p)
{
	struct set_call *call = malloc(sizeof(*call));
	struct set_own own = { .conf = conf, .call = call, .call_p = call_p };
	int rc;

	if (!call)
		return -ENOMEM;
	*call = (struct set_call){ .done = done, .arg = arg };
	rc = stub_way_call(stub, &way, &own, method, request,
			   conf ? &conf->call : NULL, on_set_message, call);
	if (rc)
		free(call);
	return rc;
}

int ulrpc_replicas_call_message_wait(
	ProtobufCService *stub, const char *method,
	const ProtobufCMessage *request,
	const struct ulrpc_replicas_call_conf *conf, ProtobufCMessage **reply_p,
	struct ulrpc_replicas_outcome *outcome)
{
	struct set_own own = { .conf = conf };
	struct ulrpc_outcome o;
	int rc = stub_way_call_wait(stub, &way, &own, method, request,
				    conf ? &conf->call : NULL, reply_p, &o);

	if (rc)
		return rc;
	*outcome = own.outcome;
	outcome->call = o;
	return 0;
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
