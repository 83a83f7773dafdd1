/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers of one service, and a node that calls them: node 0 calls, nodes 1 to
 * 3 serve. */
#ifndef TESTS_UNIT_RPC_REPLICAS_SERVERS_H
#define TESTS_UNIT_RPC_REPLICAS_SERVERS_H

#include "tests/unit/lnet/cluster.h"
#include "ulnet/context.h"
#include "ulnet/replicas.h"
#include "ulnet/service.h"

#define SEC	(1000 * MSEC)
#define SERVERS 3
#define CALLS	64

struct server {
	struct ulrpc *rpc;
	unsigned int life;
	uint64_t delay; /* ns of a call of "work" */
	/* us: if not 0, one call is executed at a time, one waits, and others
	 * are to come again after this time; set before the server starts */
	uint64_t retry_after;
	unsigned int executed;
	unsigned int taken; /* sources of calls that were read, and right */
};

struct one {
	unsigned int n;		   /* how often it has ended */
	uint64_t began, took;	   /* ns */
	unsigned int executed, by; /* how often, and by which server last */
	struct ulrpc_replicas_outcome o;
	uint32_t answer;
};

extern struct lnet_sim *sim;
extern struct ulrpc *rpc;
extern struct ulrpc_replicas *rs;
extern struct ulrpc_replicas_conf conf;
extern struct server servers[SERVERS + 1];
extern struct one calls[CALLS];
/* metadata of the last request that had any */
extern char said[16];
/* the method that is called: "work", or "other", which does the same */
extern const char *called;
/* what has to arrive where a call has a longer body than its number; its
 * beginning is what calls lend */
extern uint8_t long_body[2 * 1048576];

struct ulnet_nid server_nid(unsigned int index);
/* @apart: each node has turns of its own, and so can be late. */
void sim_open_as(unsigned int cpts, bool apart);
void sim_open(unsigned int cpts);
void sim_close(void);
/* The servers of this test are numbers 1 to @n. */
void open_nids(unsigned int n);
void on_end(void *arg, const struct ulrpc_replicas_outcome *o,
	    const void *reply, size_t length);
struct ulrpc_replicas_call *call_with(
	unsigned int index, const struct ulrpc_replicas_call_conf *how);
void call(unsigned int index, uint64_t deadline,
	  enum ulrpc_semantics semantics);
/* It went well, at the server that it says. */
void went_well(unsigned int index);
/* A call, which has to go well, and the server that has answered. */
unsigned int goes_to(void);
/* The name stands for these servers, which end with 0. */
void set_servers(const unsigned int *some);

#define SERVERS_OF(...) ((const unsigned int[]){ __VA_ARGS__, 0 })

#endif
