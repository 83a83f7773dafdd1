/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services that the tools know by name: rpcserve(1) runs them, rpcping(1) calls
 * their methods. Each service has a folder; the tools include only this header.
 */
#ifndef SERVICES_SERVICES_H
#define SERVICES_SERVICES_H

#include <ulnet/service.h>

/* ---- running one ---- */

struct service_conf {
	/* In this field, and in those up to policy, 0 or NULL stands for the
	 * library's default. */
	unsigned int workers;
	uint32_t queue_max;
	uint32_t window;
	uint32_t segments;
	uint32_t buffers;
	const char *policy;
	/* bytes of the longest request and reply of echo; 0:
	 * SERVICE_BODY_DEFAULT */
	uint64_t body_limit;
	uint64_t memory; /* bytes for bulk data; 0: SERVICE_MEMORY_DEFAULT */
	enum ulrpc_flavour flavour;
};

#define SERVICE_MEMORY_DEFAULT (UINT64_C(256) << 20)
#define SERVICE_BODY_DEFAULT   (UINT32_C(16) << 20)

struct service_type;

/* A service that runs; it is the first member of the service's own structure.
 */
struct service {
	const struct service_type *type;
	struct ulrpc_service *running;
};

/* ---- calling one ---- */

struct probe_call {
	uint64_t size;	   /* bytes of payload in the bodies, each way */
	uint64_t delay;	   /* us after which the service replies */
	uint32_t progress; /* how many reports of progress it makes meanwhile */
	void *bulk;	   /* memory for bulk data; NULL: none */
	uint64_t length;   /* bytes of bulk data */
	/* seed of the pattern that fills bulk data, or the body */
	uint64_t seed;
	uint64_t offset; /* bytes: where in the pattern the data begin */
};

#define PROBE_ROOM 256 /* bytes of a body beyond probe_call.size */

/* A method, and how to call it. Its functions may be called on any thread. */
struct probe {
	const char *method;
	const char *text; /* a description, for users */
	/* how it accesses its only bulk; 0: it has none */
	enum ulrpc_bulk_access bulk;
	bool delays;   /* it can wait for probe_call.delay */
	bool worker;   /* it is run by workers */
	bool verifies; /* check() checks all data */
	/* Writes the body of the request, at most call->size + PROBE_ROOM
	 * bytes. If the bulk is a source and verifies is set, fills call->bulk.
	 * Returns the length of the body; -ENOMEM. */
	int (*prepare)(const struct probe_call *call, void *body);
	/* Checks the reply, and the contents of a sink if verifies is set.
	 * Returns false if they are wrong, with the reason in @what, which has
	 * room for @size bytes. */
	bool (*check)(const struct probe_call *call, const void *reply,
		      size_t length, char *what, size_t size);
};

/* ---- the list ---- */

struct service_type {
	const char *name;
	const char *text; /* a description, for users */
	/* Starts the service, and returns what ulrpc_service_start() returns.
	 * Borrows @conf until return. */
	int (*start)(struct ulrpc *rpc, const struct service_conf *conf,
		     struct service **service_p);
	/* Stops the service, and returns what ulrpc_service_stop() returns.
	 * Takes @service in any case. */
	int (*stop)(struct service *service, uint64_t timeout);
	/* what its messages look like */
	const struct ProtobufCServiceDescriptor *descriptor;
	const struct probe *probes; /* the first one is the default */
	unsigned int nprobes;
};

extern const struct service_type echo_service, brw_service;

/* Called by the start functions of types: starts @service with the methods and
 * with the fields of @conf that are for the library. @request_max: bytes of
 * requests in messages, and longer ones and replies as @conf says; 0: the
 * library's defaults. Returns what ulrpc_service_start() returns. */
static inline int service_run(struct service *service,
			      const struct service_type *type,
			      struct ulrpc *rpc,
			      const struct service_conf *conf,
			      const struct ulrpc_method_conf *methods,
			      unsigned int nmethods, uint32_t request_max)
{
	struct ulrpc_service_conf c;

	service->type = type;
	ulrpc_service_conf_init(&c);
	c.name = type->name;
	c.descriptor = type->descriptor;
	c.workers_min = conf->workers;
	c.queue_max = conf->queue_max;
	c.window = conf->window;
	c.segments = conf->segments;
	c.policy = conf->policy;
	c.buffers = conf->buffers;
	c.flavour = conf->flavour;
	c.methods = methods;
	c.nmethods = nmethods;
	if (request_max) {
		c.request_max = request_max;
		c.request_limit = conf->body_limit ? (uint32_t)conf->body_limit
						   : SERVICE_BODY_DEFAULT;
		c.reply_limit = c.request_limit;
	}
	return ulrpc_service_start(rpc, &c, &service->running);
}

/* Return a type by its index or by its name; NULL: there is none. */
const struct service_type *service_at(unsigned int index);
const struct service_type *service_find(const char *name);

#endif
