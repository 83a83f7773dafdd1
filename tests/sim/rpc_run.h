/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the RPC scenario share. */
#ifndef TESTS_SIM_RPC_RUN_H
#define TESTS_SIM_RPC_RUN_H

#include <stdbool.h>
#include <ulnet/rpc.h>
#include <ulnet/service.h>

#include "tests/sim/cluster.h"

#define NODES_MAX   8
#define CLIENTS_MAX 4	 /* of each node */
#define SERVICES    2	 /* of each node */
#define METHODS	    5	 /* of each service */
#define CALLS	    1500 /* that a run begins by itself */
#define CALLS_MAX   4096
#define BULKS	    3	  /* of a call, at most */
#define MAX_REPLY   65536 /* longer than any reply */

struct run;
struct job;
struct member;

enum method {
	METHOD_INLINE, /* replies inside */
	METHOD_LATER,  /* inline, replies after a time */
	METHOD_WORK,   /* by a worker, who may keep his place for a time */
	METHOD_HIGH,   /* by a worker, of high priority */
	METHOD_BULK,   /* moves all bulk of the call, then replies */
};

static inline bool method_is_idempotent(enum method m)
{
	return m == METHOD_INLINE || m == METHOD_WORK;
}

struct test_bulk {
	struct test_call *call;
	struct ulrpc_bulk *bulk; /* NULL: closed */
	char *buf;		 /* NULL: retired */
	uint32_t size;
	enum ulrpc_bulk_access access;
};

/* A call, and all that is known of it, on both sides. */
struct test_call {
	struct run *run;
	struct member *from;
	struct ulrpc_call *call; /* a reference to be given back, or NULL */
	uint64_t id;
	uint64_t deadline; /* ns; UINT64_MAX: none */
	unsigned int life; /* of the caller's node */
	unsigned int target, service;
	unsigned int cpt; /* where its callback belongs */
	enum method method;
	bool starting;	  /* ulrpc_call() has not returned */
	bool failed;	  /* it was not taken */
	bool waiting;	  /* ulrpc_call_wait(): no callback */
	bool ended, dead; /* dead: with its node, which crashed */
	bool probe;	  /* has to succeed */
	bool idempotent;
	uint32_t reply_length, reply_max;
	struct ulrpc_outcome outcome;
	/* at the servers */
	unsigned int executed, refused;
	struct test_bulk bulks[BULKS];
	unsigned int nbulks;
};

/* What a request's body begins with. */
struct test_body {
	uint64_t magic, id;
	uint32_t length; /* of all of it */
	uint32_t reply_length;
	uint32_t delay; /* us */
	int32_t status; /* of the reply */
	uint8_t service, method, target;
	bool refuse; /* the handler cannot read it, it will say */
	bool early;  /* it replies before its bulk has been moved */
};
#define TEST_MAGIC UINT64_C(0x756c727063626f64)

struct test_method {
	struct member *member;
	unsigned int service;
	enum method method;
};

struct test_client {
	struct ulrpc_client *client;
	unsigned int target, service;
};

struct member {
	struct run *run;
	unsigned int index;
	unsigned int nnids;
	struct ulnet_nid nids[RAILS_MAX];
	unsigned int life;
	bool busy; /* it waits for something: no process ends then */
	struct ulrpc *rpc;
	struct ulrpc_service *services[SERVICES];
	struct test_method methods[SERVICES][METHODS];
	struct test_client clients[CLIENTS_MAX];
	struct job *jobs;
};

struct run {
	struct lnet_sim *sim;
	struct member members[NODES_MAX];
	unsigned int n;
	unsigned int left; /* calls to begin */
	struct test_call *calls[CALLS_MAX];
	unsigned int ncalls, first; /* first that may not have ended */
	struct splits splits;
	struct ulrpc_conf conf;
	unsigned int steps;
	bool waiting; /* some node waits: no other may begin to */
	bool healed;  /* no faults any more */
	bool over;
	bool slow, harsh, tiny, late;
	unsigned int ok; /* calls that succeeded */
};

static inline uint64_t rnd(struct run *r, uint64_t below)
{
	return lnet_sim_random(r->sim, below);
}

static inline bool chance(struct run *r, unsigned int percent)
{
	return rnd(r, 100) < percent;
}

/* Contents, of a call with its id. */
static inline uint64_t request_pattern(uint64_t id)
{
	return id * 8;
}
static inline uint64_t reply_pattern(uint64_t id)
{
	return id * 8 + 1;
}
static inline uint64_t bulk_pattern(uint64_t id, unsigned int i)
{
	return id * 8 + 2 + i;
}

/* ---- rpc_caller.c ---- */

/* One call more, of whatever kind. */
void caller_call(struct member *m);
/* One that has to succeed, of each client there is. */
void caller_probe(struct member *m);
void caller_cancel_one(struct run *r);
/* All that have no deadline, or would last longer than the run. */
void caller_cancel_long(struct run *r);
/* Calls of a node that crashed. */
void caller_crashed(struct member *m);
/* RPC of this node has been closed: all have ended. */
void caller_closed(struct member *m);
/* No call is past its deadline. Returns how many have not ended. */
unsigned int caller_check(struct run *r);
/* The simulation is no more: returns how many have not ended. */
unsigned int caller_left(struct run *r);
void caller_free(struct run *r);

/* ---- rpc_server.c ---- */

void server_start(struct member *m, unsigned int service);
void server_stop(struct member *m, unsigned int service);
/* What it has not answered by now is of no interest any more. */
void server_stopped(struct member *m, unsigned int service);
void server_crashed(struct member *m);
unsigned int server_jobs(const struct member *m);
/* Answers what is not answered, and frees. */
void server_free(struct member *m);

/* ---- rpc_faults.c ---- */

void fault_one(struct run *r);
void fault_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b);
/* Ends all faults: everybody is there, with all services. */
void fault_heal(struct run *r);
/* RPC of a node, with its services and clients. */
int member_open(struct member *m);
void member_clients(struct member *m);

/* ---- rpc_audit.c ---- */

/* Violations: calls wait for nothing, or counts of calls are wrong. Between
 * turns. */
void audit_waiting(struct member *m);
/* Is there nothing that belongs to a call or to a request? Else, if @say, a
 * violation. */
bool audit_rpc(struct member *m, bool say);

#endif
