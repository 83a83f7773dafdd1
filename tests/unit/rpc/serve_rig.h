/* SPDX-License-Identifier: BSD-3-Clause */
/* A service by the real library, and clients by it, or played by hand: raw LNet
 * messages. Node 0 calls, node 1 serves. */
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

/* What handlers have not answered yet, and what they have seen. */
#define PARKED_MAX 256

struct served {
	unsigned int runs;
	unsigned int parked;
	struct ulrpc_request *park[PARKED_MAX];
	struct ulrpc_request_info info;
	char body[64];
	uint32_t order[PARKED_MAX]; /* first word of the bodies */
	pthread_mutex_t lock;	    /* as one needs it to wait */
	struct ulnet_cond unparked; /* workers wait for it */
	bool dismissed;		    /* or do not */
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

/* What a handler sees goes to @s. */
void note_request(struct served *s, struct ulrpc_request *r, const void *body,
		  size_t length);

/* Replies at once, with what came. */
void echo(void *arg, struct ulrpc_request *r, const void *body, size_t length);

/* Answered by serve_release(), later. */
void hold(void *arg, struct ulrpc_request *r, const void *body, size_t length);

/* Takes the oldest of the requests that are not answered yet. */
struct ulrpc_request *unpark(struct served *s);

/* From then on workers return from their handlers; what is parked stays so. */
void serve_dismiss_at(struct serve_rig *g, uint64_t delay);
void serve_release(struct served *s);

/* ---- the rig ---- */

/* The third, and so on, are for those who play by hand while a real client
 * calls. */
unsigned int serve_node_add(struct serve_rig *g, unsigned int index);
void serve_init(struct serve_rig *g, uint64_t seed, unsigned int cpts);
void serve_open(struct serve_rig *g, const struct ulrpc_conf *conf);

/* A service "test", whose methods are: echo and fail, answered inline; work, by
 * a worker; hold (inline) and park and low (a worker waits), answered by
 * serve_release(); full, which says that it is; again and hold_again, which are
 * idempotent. */
struct ulrpc_service_conf serve_conf(struct serve_rig *g);
void serve_start(struct serve_rig *g, const struct ulrpc_service_conf *conf);

/* The service of serve_conf(), with all that @more says (NULL: nothing) but its
 * name and methods. */
void serve_start_with(struct serve_rig *g,
		      const struct ulrpc_service_conf *more);
void serve_fini(struct serve_rig *g);

/* ---- real clients ---- */

/* One of the server's @service, on whatever node @rpc is. */
struct ulrpc_client *serve_client_of(struct ulrpc *rpc, const char *service);
/* g->client, of "test". */
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

/* ---- what was counted ---- */

/* Requests of a service that ended in this way, on a CPT. */
uint64_t serve_ended(const struct service_cpt *sc, unsigned int end);
uint64_t serve_ended_all(const struct service_cpt *sc);
uint64_t serve_counted(const struct service_cpt *sc, enum rpc_stat stat);

/* Bytes that are held, but for replies that are kept. */
uint64_t serve_holds(struct service_cpt *sc);
uint64_t serve_unreadable(const struct service_cpt *sc);

#endif
