/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services that the tools know by name: rpcserve(1) runs them, rpcping(1) calls
 * them. Each has a folder; the tools see only this file of it.
 */
#ifndef SERVICES_SERVICES_H
#define SERVICES_SERVICES_H

#include <ulnet/service.h>

/* ---- running one ---- */

struct service_conf {
	unsigned int workers; /* of these, 0 and NULL: the library's default */
	uint32_t queue_max;
	uint32_t window;
	uint32_t segments;
	uint32_t buffers;
	const char *policy;
	uint64_t memory;    /* bytes for bulk data; 0 = 256 MiB */
};

#define SERVICE_MEMORY_DEFAULT (UINT64_C(256) << 20)

struct service_type;

/* A service that runs: the first member of the service's own structure. */
struct service {
	const struct service_type *type;
	struct ulrpc_service *running;
};

/* ---- calling one ---- */

struct probe_call {
	uint64_t size;	   /* bytes of payload in the bodies, each way */
	uint64_t delay;	   /* us after which the service replies */
	uint32_t progress; /* reports of progress meanwhile */
	void *bulk;	   /* memory for bulk data, or NULL */
	uint64_t length;   /* bytes of bulk data */
	uint64_t seed;	   /* of the pattern of bulk data, or bodies */
	uint64_t offset;   /* in the pattern */
};

#define PROBE_ROOM 256 /* bytes of a body beyond probe_call.size */

/* A method, and how to call it. Functions: any thread. */
struct probe {
	const char *method;
	const char *text;	     /* for people */
	enum ulrpc_bulk_access bulk; /* what it does with bulk 0; 0: none */
	bool delays;		     /* probe_call.delay can be used */
	bool worker;		     /* it is run by workers */
	bool verifies;		     /* all data can be checked */
	/* Writes the request's body, at most .size + PROBE_ROOM bytes, and
	 * fills a source. Returns the length of the body; -ENOMEM. */
	int (*prepare)(const struct probe_call *call, void *body);
	/* Are the reply, and the contents of a sink, right? If not, @what, of
	 * @size bytes, says what is wrong. */
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
	/* As ulrpc_service_stop(). Frees @service in any case. */
	int (*stop)(struct service *service, uint64_t timeout);
	const struct probe *probes; /* the default first */
	unsigned int nprobes;
};

extern const struct service_type echo_service, brw_service;

/* For start() of a type: starts @service with the fields of @conf that are for
 * the library. @request_max: bytes; 0: the default. Returns as
 * ulrpc_service_start(). */
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
