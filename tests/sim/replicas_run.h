/* SPDX-License-Identifier: BSD-3-Clause */
/* The types and functions that the files of the scenario of calls to several
 * servers share. */
#ifndef TESTS_SIM_REPLICAS_RUN_H
#define TESTS_SIM_REPLICAS_RUN_H

#include <stdbool.h>
#include "tests/sim/cluster.h"
#include "tests/sim/rules.h"
#include "tests/sim/scenario.h"
#include "ulnet/context.h"
#include "ulnet/replicas.h"
#include "ulnet/service.h"

#define SERVERS	   4 /* at most */
#define CALLERS	   2
#define CALLS	   400
#define LAST	   60	/* of them are made when faults have ended */
#define FLOWS	   40	/* streams */
#define FLOWS_LAST 8	/* of them are opened when faults have ended */
#define LENT	   3000 /* bytes that some calls lend */
#define RAILS	   2	/* of a node, at most */
#define DOWNTIMES  16	/* interfaces that are down at a time */

#define SECONDS UINT64_C(1000000) /* us */
/* us: whoever has so long need not be lost. */
#define LONG (30 * SECONDS)

struct server {
	struct run *r;
	unsigned int index; /* of the node */
	unsigned int life;
	struct ulrpc *rpc; /* NULL: crashed */
	struct ulnet_nid nids[RAILS];
	uint64_t delay; /* ns, at most */
	/* the store of the durable service, which survives the node */
	struct record *records;
	unsigned int stores; /* how often the store was made */
};

struct caller {
	struct run *r;
	unsigned int index;
	unsigned int life; /* how often it was started, or its set closed */
	struct ulrpc *rpc; /* NULL: crashed */
	struct ulrpc_replicas *rs, *flows; /* of the two services */
	struct ulrpc_client *plain; /* of the name; NULL: there is none */
	struct ulrpc_client *front; /* of its own service */
	struct ulnet_nid nids[RAILS];
	struct ulrpc_replicas_conf conf;
	uint64_t paused; /* ns: when the last pause has ended, or ends */
};

struct call {
	struct run *r;
	struct caller *from;
	unsigned int index;
	enum ulrpc_semantics semantics;
	uint64_t deadline; /* us */
	bool last, keyed;
	bool cancel; /* by its caller, after a while */
	bool plain;  /* it is made with the client of the name */
	bool tagged; /* it has metadata */
	/* It is made for a request, which has the deadline and is canceled;
	 * the call itself has more time. */
	bool under;

	bool lends, sink;	 /* memory; for the server to write to it */
	uint8_t *memory;	 /* NULL: not lent, or free again */
	struct ulrpc_bulk *bulk; /* NULL: none, or closed */

	/* if it is to be canceled, one of these */
	struct ulrpc_replicas_call *handle;
	struct ulrpc_call *plain_handle; /* or that of the request's call */
	struct ulrpc_context *context;	 /* until the call ends; NULL: none */
	struct ulrpc_request *request;	 /* for which it is made; NULL: none */
	uint64_t canceled;		 /* ns; 0: it was not */
	unsigned int front_life, front_ended; /* of the request's call */
	unsigned int life;		      /* of the caller; 0: not made */
	uint64_t began, took;		      /* ns */
	/* ns from its beginning to the end of the last pause before its end */
	uint64_t stood;
	unsigned int ended, executed;
	unsigned int stored; /* how often its record came to be in a store */
	struct ulrpc_replicas_outcome o;
	uint32_t by; /* the server that has answered */
};

/* A stream of messages that come back. */
struct flow {
	struct run *r;
	struct caller *from;
	unsigned int index;
	uint64_t deadline; /* us */
	bool last, keyed;

	struct ulrpc_stream
		*stream;   /* of the caller; NULL: not open, or over */
	unsigned int life; /* of the caller; 0: not made */
	uint64_t began;	   /* ns */
	uint32_t sent, back;
	unsigned int opened, ended;
	struct ulrpc_replicas_outcome o;
	struct ulrpc_stream_outcome end;

	struct ulrpc_stream *served;
	struct server *at; /* NULL: no server has got it */
	unsigned int gots;
	uint32_t read;
};

/* An interface that is down for a while. */
struct downtime {
	struct run *r;
	struct ulnet_nid nid;
	bool lasts;
};

struct run {
	struct lnet_sim *sim;
	unsigned int n;		/* servers */
	unsigned int rails;	/* of each node */
	struct ulrpc_conf conf; /* of all nodes; its keys may be NULL */
	bool named;
	bool faults;  /* there may be some */
	bool pauses;  /* callers stand still */
	bool forgets; /* servers that crash may lose their stores */
	struct server servers[SERVERS];
	struct ulnet_nid nids[SERVERS]; /* the first one of each */
	struct caller callers[CALLERS];
	struct later *laters; /* all of them */
	uint64_t bulk_moves;  /* calls that went on, and lend memory */
	struct call calls[CALLS];
	struct flow flows[FLOWS];
	struct splits splits;
	struct links links;
	struct rules rules;
	struct downtime downtimes[DOWNTIMES];
	uint64_t ndowns, sealed, hedged_sources;
	uint64_t causes[ULRPC_CAUSE_COUNT], crashes, moves, hedges, npauses;
	uint64_t name_failures;
	uint64_t plain_ended, tagged_ended, under_ended, replays, flows_ended;
};

static inline uint64_t rnd(struct run *r, uint64_t below)
{
	return lnet_sim_random(r->sim, below);
}

static inline bool chance(struct run *r, unsigned int percent)
{
	return rnd(r, 100) < percent;
}

static inline void at(struct run *r, uint64_t ns, void (*fn)(void *arg),
		      void *arg)
{
	if (lnet_sim_at(r->sim, ns, fn, arg))
		lnet_sim_fail(r->sim, "no memory for a step");
}

static inline bool is_paused(const struct caller *m)
{
	return m->paused > lnet_sim_now(m->r->sim);
}

/* Makes the program of @m do @fn when it goes on. Returns false if it has not
 * stopped. */
static inline bool after_pause(const struct caller *m, void (*fn)(void *arg),
			       void *arg)
{
	if (!is_paused(m))
		return false;
	at(m->r, m->paused - lnet_sim_now(m->r->sim), fn, arg);
	return true;
}

/* Has the caller @m not been started again since @life, nor its sets closed? */
static inline bool is_same_life(const struct caller *m, unsigned int life)
{
	return life && life == m->life;
}

/* ---- calls that are executed exactly once: replicas_store.c ---- */

/* Sets the store of @s. */
void store_conf(struct server *s, struct ulrpc_durable *durable);
/* The request has been executed: puts @record into the store. */
void store_put(struct server *s, const struct ulrpc_record *record);
/* The store is lost; the next one is empty. */
void store_free(struct server *s);

/* ---- contexts: replicas_context.c ---- */

/* Starts a service on @m, whose requests make calls. */
int front_start(struct caller *m);
/* Makes the call for a request. */
void front_call(struct call *c);
/* Gives the call, which begins, the context that it is to have. */
void tag_begin(struct call *c);
/* The server checks what came with the request, and adds to its reply. */
void tag_serve(const struct call *c, const struct server *s,
	       struct ulrpc_request *request);
/* Checks what has come back with the call, which has ended. */
void tag_end(struct call *c);
/* After the run. */
void front_check(const struct call *c);

/* ---- streams: replicas_flows.c ---- */

int flows_serve(struct server *s);
void flow_draw(struct run *r, unsigned int i);
void flow_open(void *arg);
/* A node has crashed. */
void flows_crash(struct run *r, const struct server *s, const struct caller *m);
void flow_check(const struct flow *f);

/* ---- what goes wrong: replicas_faults.c ---- */

/* The name stands for the first server, and some of the others. */
void name_set(struct run *r);
/* Makes something go wrong, now and again until trouble_end(). @arg: the run */
void trouble(void *arg);
/* From now on all is well, or will be when nodes have come again. */
void trouble_end(struct run *r);

/* ---- calls: replicas_scenario.c ---- */

/* Drops the handles by which the call could be canceled. */
void call_put(struct call *c);
/* Closes the sets of @m, and opens them again. */
void sets_renew(struct caller *m);

/* Makes the call now. Returns what ulrpc_replicas_call() has returned. */
int call_begin(struct call *c);

#endif
