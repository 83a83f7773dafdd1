/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services that the tools know by name: rpcserve(1) runs them, rpcping(1) calls
 * them. One folder for each; this is all that the tools see of it.
 */
#ifndef SERVICES_SERVICES_H
#define SERVICES_SERVICES_H

#include <ulnet/service.h>

/* ---- running one ---- */

struct service_conf {
	unsigned int workers; /* 0: some */
	uint32_t queue_max;   /* of these four, 0: the library's default */
	uint32_t window;
	uint32_t segments;
	uint32_t buffers;
	const char *policy; /* NULL: the same */
	uint64_t memory;    /* bytes for bulk data; 0 = 256 MiB */
};

#define SERVICE_MEMORY_DEFAULT (UINT64_C(256) << 20)

struct service_type;

/* A service that runs: the head of the service's own structure. */
struct service {
	const struct service_type *type;
	struct ulrpc_service *running;
};

/* ---- calling one ---- */

/* What a call is to be like. */
struct probe_call {
	uint64_t size;	   /* bytes of payload in the bodies, each way */
	uint64_t delay;	   /* us that the service takes its time; 0: none */
	uint32_t progress; /* reports of progress meanwhile */
	void *bulk;	   /* memory; NULL without */
	uint64_t length;   /* of @bulk */
	uint64_t seed;	   /* of the pattern that is its contents */
	uint64_t offset;   /* where its contents begin in the pattern */
};

#define PROBE_ROOM 256 /* bytes of a body beyond probe_call.size */

/* A method, and how to call it. Functions: any thread. */
struct probe {
	const char *method;
	const char *text;	     /* for people */
	enum ulrpc_bulk_access bulk; /* what it does with bulk 0; 0: none */
	bool delays;		     /* it can take its time */
	bool worker;		     /* it is run by workers */
	bool verifies; /* bulk data is made by prepare(), or can be checked */
	/* Writes the request's body, at most .size + PROBE_ROOM bytes, and what
	 * a source must have in it. Returns its length; -ENOMEM. */
	int (*prepare)(const struct probe_call *call, void *body);
	/* Are the reply, and what is in a sink, what the service must have
	 * sent? Else @what, @size bytes, is filled. */
	bool (*check)(const struct probe_call *call, const void *reply,
		      size_t length, char *what, size_t size);
};

/* ---- the list ---- */

struct service_type {
	const char *name;
	const char *text; /* for people */
	/* As ulrpc_service_start(). @conf is borrowed until the return. */
	int (*start)(struct ulrpc *rpc, const struct service_conf *conf,
		     struct service **service_p);
	/* As ulrpc_service_stop(): frees in any case. */
	int (*stop)(struct service *service, uint64_t timeout);
	const struct probe *probes; /* the most usual first */
	unsigned int nprobes;
};

extern const struct service_type echo_service, brw_service;

/* What a type's start() ends with: starts @service, of that @type, with the
 * fields of @conf that are for the library. @request_max: bytes; 0: as usual.
 * As ulrpc_service_start(). */
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
	c.workers_min = conf->workers;
	c.queue_max = conf->queue_max;
	c.window = conf->window;
	c.segments = conf->segments;
	c.policy = conf->policy;
	c.buffers = conf->buffers;
	c.methods = methods;
	c.nmethods = nmethods;
	if (request_max)
		c.request_max = request_max;
	return ulrpc_service_start(rpc, &c, &service->running);
}

/* NULL: there is none. */
const struct service_type *service_at(unsigned int index);
const struct service_type *service_find(const char *name);

#endif
