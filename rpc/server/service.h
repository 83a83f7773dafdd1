/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services: what they are called, which methods they have, and how they begin
 * and end. What of a service is on a CPT: service_cpt.h. Workers (exec.h) are
 * the service's, for all CPTs.
 *
 * End of life, by ulrpc_service_stop() or with RPC on the node: each CPT closes
 * (refuses new requests), aborts (what is under way stays without an answer),
 * stops (unlinks its buffers); then the service is freed, or, if handlers still
 * have requests of it, when the last one of these is answered.
 *
 * What a service holds is limited, to four times queue_max requests and
 * queue_bytes_max bytes. Each host, which is a NID, has its share of that
 * (base/share.h), and each client its share of its host's: alone, half of a
 * half, which is the limit as it is configured. A host is not to be made up,
 * but it can have any number of connections; and clients of one host are to be
 * fair to each other, too.
 *
 * Bytes are those of memory that is really held for a request: itself, its
 * body, the descriptors of its bulk, and, from the time when it is taken, room
 * for its reply, as long as that may be; then the reply itself, until LNet has
 * let go of it, and the client, too, if it is kept (reply.h). So a request is
 * refused before it is executed, and no reply is ever without room.
 */
#ifndef RPC_SERVICE_H
#define RPC_SERVICE_H

#include <stdatomic.h>
#include "rpc/server/durable.h"
#include "rpc/server/exec.h"
#include "rpc/server/service_cpt.h"
#include "rpc/server/sleep.h"
#include "rpc/rpc.h"
#include "ulnet/service.h"

struct ulrpc_method {
	uint32_t number;
	enum ulrpc_priority priority; /* not the default one */
	ulrpc_handler_fn handler;     /* NULL: a free place of the table */
	void *arg;
	enum ulrpc_run run;
	enum ulrpc_semantics semantics;
	const char *name;
	struct mean cost; /* of a worker's: from its start to its reply,
			       * without the time in which bulk is moved, which
			       * is the caller's */
};

struct ulrpc_service {
	/* immutable after start */
	struct ulrpc *rpc;
	void (*free)(struct ulrpc_service *svc); /* refs is 0 */
	struct ulrpc_service_conf conf; /* without names and methods */
	char name[ULRPC_SERVICE_NAME];
	unsigned int portal;
	uint32_t message_max;
	struct ulrpc_method *methods; /* a table by number */
	uint32_t methods_mask;
	char *names;
	struct durables durables;
	unsigned int ncpts;
	bool has_exec;
	struct service_cpt *cpt; /* rpc->ncpts of them */

	struct exec exec;
	struct sched_plan plan;	  /* conf.policy */
	struct sleepers sleepers; /* workers; any thread */
	/* Whose are continuations of lost requests. */
	struct sched_client lost;
	struct sched_host lost_host;
	_Atomic bool exec_closed; /* exec_close() has been called */
	struct ulnet_work exec_work;
	_Atomic unsigned int refs; /* its own, and requests that are lost */

	/* rpc->wait.lock */
	struct list link; /* services.all */
	uint32_t idle;	  /* a bit for each CPT with nothing under way */
	uint32_t shut;	  /* for each that nothing comes to any more */
	uint32_t gone;	  /* and for each that is */
	bool workers;	  /* there are */

	bool started; /* completely: who asked for that hears of the end */
};

struct services {
	struct durable_keys *durable_keys;
	struct list all;	  /* ulrpc_service.link; rpc->wait.lock */
	unsigned int next_portal; /* the same */
	/* Whose it was last, of what nobody has now; the same. */
	char former[LNET_PORTALS][ULRPC_SERVICE_NAME];
	struct list *shard; /* of service_cpt.link; by CPT, its owner's */
};

extern const struct rpc_part service_part;

static inline struct ulrpc_method *service_method(
	const struct ulrpc_service *svc, uint32_t number)
{
	uint32_t i = number & svc->methods_mask;

	while (svc->methods[i].handler && svc->methods[i].number != number)
		i = (i + 1) & svc->methods_mask;
	return svc->methods[i].handler ? &svc->methods[i] : NULL;
}

/* Of all CPTs, as far as this one has heard. */
static inline uint64_t service_held_bytes(const struct ulrpc_service *svc)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < svc->rpc->ncpts; i++)
		n += atomic_load_explicit(&svc->cpt[i].held_bytes,
					  memory_order_relaxed);
	return n;
}

/* Of these, what is held of calls that are over. */
static inline uint64_t service_kept_bytes(const struct ulrpc_service *svc)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < svc->rpc->ncpts; i++)
		n += atomic_load_explicit(&svc->cpt[i].kept_bytes,
					  memory_order_relaxed);
	return n;
}

static inline uint64_t service_held_requests(const struct ulrpc_service *svc)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < svc->rpc->ncpts; i++)
		n += atomic_load_explicit(&svc->cpt[i].held,
					  memory_order_relaxed);
	return n;
}

/* Of this many times the configured limits: one client alone, on one host
 * alone, has the limit. */
#define SERVICE_LIMITS 4

/* Is there room for so many bytes more of @share's client? */
static inline bool service_has_bytes(const struct service_cpt *sc,
				     const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;

	return shares_allow(share->held.bytes, share->host->held.bytes,
			      service_held_bytes(svc),
			      SERVICE_LIMITS * svc->conf.queue_bytes_max,
			      bytes);
}

/* Is there no room for one more of @share's client, with @bytes? One that is
 * larger than all there may be comes in when nothing is under way, and its
 * client has acknowledged all replies. */
static inline bool service_is_full(const struct service_cpt *sc,
				   const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;
	const struct held *mine = &share->held, *host = &share->host->held;
	uint64_t used = service_held_bytes(svc);

	return !shares_allow(mine->requests + 1, host->requests,
			       service_held_requests(svc),
			       SERVICE_LIMITS * (uint64_t)svc->conf.queue_max,
			       1) ||
	       (!shares_allow(mine->bytes, host->bytes, used,
				SERVICE_LIMITS * svc->conf.queue_bytes_max,
				bytes) &&
		(mine->bytes || used > service_kept_bytes(svc)));
}

/* us until what was refused is to come again. @again: ns until there may be
 * room; 0: when half of what is under way may be done, as nothing else is
 * known. */
static inline uint64_t service_retry_after(const struct ulrpc_service *svc,
					   uint64_t again)
{
	if (!again && svc->has_exec)
		again = mean_value(&svc->exec.hold) *
			service_held_requests(svc) / svc->conf.workers_max / 2;
	return MAX(svc->conf.retry_after, again / NSEC_PER_USEC);
}

/* A lost request was answered. Any thread; may free @svc. */
static inline void service_unref(struct ulrpc_service *svc)
{
	if (atomic_fetch_sub(&svc->refs, 1) == 1)
		svc->free(svc);
}

#endif
