/* SPDX-License-Identifier: BSD-3-Clause */
/* A service that uses the real library, and clients that do so, too, or are
 * played by the test with raw LNet messages. Node 0 calls, node 1 serves. */
#ifndef TESTS_SERVE_RIG_H
#define TESTS_SERVE_RIG_H

#include "rpc/server/session/export.h"
#include "rpc/server/serve/reply.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/serve/service.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/service.h"
#include "ulnet/thread.h"

#define CALLER 0
#define SERVER 1
#define SEC    (1000 * MSEC)

/* What handlers have seen, and the requests that they have not answered yet. */
#define PARKED_MAX 256

struct served {
	unsigned int runs;
	unsigned int parked;
	struct ulrpc_request *park[PARKED_MAX];
	struct ulrpc_request_info info;
	char body[64];
	uint32_t order[PARKED_MAX]; /* the first word of each request's body */
	pthread_mutex_t lock;	    /* of park[] and parked */
	struct ulnet_cond unparked; /* signaled when a request is taken */
	bool dismissed;		    /* workers must not wait any more */
};

struct serve_rig {
	struct lnet_sim *sim;
	struct lnet *node[2];
	struct ulrpc *rpc[2];
	struct ulrpc_service *service;
	struct ulrpc_client *client;
	struct served served;
};

/* ---- handlers ---- */

/* Records the request in @s. */
void note_request(struct served *s, struct ulrpc_request *r, const void *body,
		  size_t length);

/* Replies at once with the request's body. */
void echo(void *arg, struct ulrpc_request *r, const void *body, size_t length);

/* Leaves the request to serve_release(). */
void hold(void *arg, struct ulrpc_request *r, const void *body, size_t length);

/* Takes the oldest request that is not answered yet. */
struct ulrpc_request *unpark(struct served *s);

/* After @delay, workers stop waiting and return from their handlers; their
 * requests stay unanswered. */
void serve_dismiss_at(struct serve_rig *g, uint64_t delay);
void serve_release(struct served *s);

/* ---- the rig ---- */

/* Adds node @index, from 2 on, for raw clients beside the real one. Returns
 * @index. */
unsigned int serve_node_add(struct serve_rig *g, unsigned int index);
void serve_init(struct serve_rig *g, uint64_t seed, unsigned int cpts);
/* As serve_init(); the nodes can be paused. */
void serve_init_apart(struct serve_rig *g, uint64_t seed, unsigned int cpts);
/* As serve_init(), with the NIDs and the configuration of each node. */
void serve_init_on(struct serve_rig *g, unsigned int cpts,
		   const char *const nids[2], const struct ulnet_conf conf[2]);
void serve_open(struct serve_rig *g, const struct ulrpc_conf *conf);

/* Returns the configuration of a service "test" with these methods. Inline:
 * echo; fail; full, which refuses as it is overloaded; again, an idempotent
 * echo; hold, and the idempotent hold_again, which serve_release() answers. On
 * workers: work, an echo; park, and low of background priority, which keep
 * their workers until serve_release(). */
struct ulrpc_service_conf serve_conf(struct serve_rig *g);
void serve_start(struct serve_rig *g, const struct ulrpc_service_conf *conf);

/* Starts a service "test" with these methods alone. */
void serve_methods(struct serve_rig *g, const struct ulrpc_method_conf *methods,
		   uint32_t n);

/* Starts the service of serve_conf(), with all settings of @more (NULL: the
 * defaults) but its name and methods. */
void serve_start_with(struct serve_rig *g,
		      const struct ulrpc_service_conf *more);
void serve_fini(struct serve_rig *g);

/* ---- real clients ---- */

/* Opens a client of @service of the server, on any node's @rpc. */
struct ulrpc_client *serve_client_of(struct ulrpc *rpc, const char *service);
/* Opens g->client, of the service "test". */
void serve_client(struct serve_rig *g);

struct called {
	unsigned int ended;
	struct ulrpc_outcome outcome;
	char reply[64];
	size_t length;
};

void on_called(void *arg, const struct ulrpc_outcome *o, const void *reply,
	       size_t length);
void serve_call(struct serve_rig *g, const char *method, const void *body,
		size_t length, uint64_t deadline, enum ulrpc_priority priority,
		struct called *c);

/* ---- statistics ---- */

/* Returns how many requests have ended as @end says, on the CPT of @sc. */
uint64_t serve_ended(const struct service_cpt *sc, unsigned int end);
uint64_t serve_ended_all(const struct service_cpt *sc);
uint64_t serve_counted(const struct service_cpt *sc, enum rpc_stat stat);

/* Returns the bytes that the service holds on a CPT, without the replies that
 * it keeps. */
uint64_t serve_holds(struct service_cpt *sc);
uint64_t serve_unreadable(const struct service_cpt *sc);

#endif
