/* SPDX-License-Identifier: BSD-3-Clause */
/* The types and functions that the files of the streams scenario share. */
#ifndef TESTS_SIM_STREAMS_RUN_H
#define TESTS_SIM_STREAMS_RUN_H

#include <ulnet/context.h>
#include <ulnet/stream.h>

#include "tests/sim/cluster.h"
#include "tests/sim/rules.h"
#include "tests/sim/scenario.h"

#define SECONDS UINT64_C(1000000) /* us */

#define NODES 3 /* at most */
#define RAILS 3 /* of a node */
#define FLOWS 60
#define LAST  12 /* of them begin when faults have ended */
#define LOST  6	 /* further streams, for the end of a server */

#define PATIENCE (20 * SECONDS)

#define TREES 8
#define TWIGS 6 /* of a tree, at most */

enum kind { KIND_LIST, KIND_SUM, KIND_ECHO, KIND_DROP, KINDS };

/* Messages in one direction. */
struct way {
	uint32_t total; /* that are to be sent */
	uint32_t sent, read;
};

/* A stream, as both programs see it. */
struct flow {
	struct run *r;
	/* to: NULL: a server of the name "flows", but none has got it yet */
	struct member *from, *to;
	unsigned int index;
	bool named; /* it goes to the name */
	enum kind kind;
	uint32_t size;
	bool last;   /* it must end well */
	bool lost;   /* its server goes away before it ends */
	bool cancel; /* by its client, after a while */
	bool fails;  /* its service ends it with a failure */
	struct way up, down;

	struct ulrpc_stream *stream; /* NULL: not opened, or given back */
	unsigned int life;	     /* of the client, when it was opened */
	unsigned int ended;
	struct ulrpc_stream_outcome outcome;

	struct ulrpc_stream *served;
	unsigned int served_life;
	unsigned int gots, served_ended;
	struct ulrpc_stream_outcome served_outcome;
};

/* A stream or a request of a tree, at the node that serves it. */
struct twig {
	struct tree *of;
	struct member *at;
	unsigned int life; /* of the node */
	bool live;	   /* its handler has not been told of an end */
	struct ulrpc_stream *served;
	struct ulrpc_request *request;
	struct ulrpc_context *context; /* under @served, or @request */
	struct ulrpc_stream *made;     /* for it; NULL: none, or a call */
};

struct tree {
	struct run *r;
	struct member *root;
	unsigned int index, life;
	bool last; /* there are no faults while it grows */
	struct ulrpc_stream *stream;
	struct ulrpc_call *call;
	unsigned int ntwigs;
	struct twig twigs[TWIGS];
};

struct member {
	struct run *r;
	unsigned int index;
	unsigned int life; /* how often it was started */
	struct ulrpc *rpc; /* NULL: crashed */
	uint64_t paused;   /* ns: until when its process stands still */
	/* to each node, and, the last ones, to the name */
	struct ulrpc_streams *to[NODES + 1];
	struct ulrpc_client *calls[NODES];
	struct ulnet_nid nids[RAILS];
};

struct run {
	struct lnet_sim *sim;
	unsigned int n, nnids;
	uint32_t window;
	bool faults; /* there may be some */
	bool pauses; /* processes stand still for a while */
	bool named;  /* some streams go to a name, of all nodes or some */
	struct ulrpc_keys *keys; /* of all nodes; NULL: none */
	struct member members[NODES];
	struct flow flows[FLOWS + LOST];
	struct tree trees[TREES];
	struct splits splits;
	struct links links;
	struct rules rules;
	uint64_t causes[ULRPC_CAUSE_COUNT], twigs;
	/* how often what happened */
	uint64_t crashes, npauses, nis_down, rules_changed, renewed, renamed;
	uint64_t served_named;
	/* streams whose server was gone, or silent, in the end */
	uint64_t gone, silent;
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

/* Does the node's process stand still? Then it does nothing, and what others do
 * for it from outside has to wait. */
static inline bool is_paused(const struct member *m)
{
	return lnet_sim_now(m->r->sim) < m->paused;
}

/* Returns whether @m stands still: then @fn is called when it goes on. */
static inline bool after_pause(const struct member *m, void (*fn)(void *arg),
			       void *arg)
{
	if (!is_paused(m))
		return false;
	at(m->r, m->paused - lnet_sim_now(m->r->sim), fn, arg);
	return true;
}

/* ---- streams_scenario.c ---- */

/* Returns the streams of @m to the service of @to; NULL: to the name. */
struct ulrpc_streams *streams_to(struct member *m, const struct member *to);
struct ulrpc_client *calls_to(struct member *m, const struct member *to);
/* The function for lnet_sim_at(), for a struct flow. */
void flow_open(void *arg);

/* ---- streams_trees.c ---- */

/* What a member's service does with a stream, or a request, of a tree. */
void grow(void *arg, struct ulrpc_stream *stream, const void *body,
	  size_t length);
void grow_call(void *arg, struct ulrpc_request *request, const void *body,
	       size_t length);
/* The functions for lnet_sim_at(), for a struct tree. tree_check(): nobody has
 * begun it any more: nothing of it goes on. */
void tree_open(void *arg);
void tree_check(void *arg);
/* Gives back what programs of the node @m had, which has crashed. */
void tree_crash(struct tree *tree, const struct member *m);
void tree_free(struct tree *tree);

/* ---- streams_faults.c ---- */

/* The function for lnet_sim_at(), for the run: something fails, again and
 * again, as long as there are faults. */
void trouble(void *arg);
/* Ends all faults. Nodes that have crashed come again by themselves. */
void trouble_end(struct run *r);
/* Says for which nodes the name stands: for all, if there are no faults. */
void name_set(struct run *r);
/* After all faults: a server goes away. Checks when its streams end. */
void server_leaves(struct run *r);

#endif
