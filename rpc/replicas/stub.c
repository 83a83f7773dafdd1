/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_replicas_stub_new(3): stubs whose calls go to one of several servers.
 * Uses only the public interface of sets of servers. */
#include "rpc/stub/stub.h"

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
