/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes with two rails, and a steady load of calls from the one to the
 * other, of which it is counted what became of them.
 */
#ifndef TESTS_SIM_FAILOVER_LOAD_H
#define TESTS_SIM_FAILOVER_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <ulnet/service.h>
#include "sim/sim.h"

#define MSEC	UINT64_C(1000000)
#define SEC	(1000 * MSEC)
#define LATENCY (2 * MSEC)
#define DEPTH	8
#define RAILS	2
#define WARM_UP (5 * SEC)
#define FAILED	(30 * SEC) /* for how long the rail is away */
#define BACK	(30 * SEC)
#define NEVER	UINT64_MAX
#define BIN	(10 * MSEC)
#define BINS	((FAILED + BACK) / BIN)
#define SLOW	(100 * MSEC)

enum { CLIENT, SERVER, NODES };

/* The circumstances of a run. */
struct setup {
	unsigned int nets; /* nets that the rails are on; each rail is one NI */
	/* each rail is an IP network of its own, and nothing crosses: as two
	 * cables */
	bool apart;
	/* number of the server's NIDs that the caller names */
	unsigned int named;
	bool discovery; /* the nodes discover each other */
	bool listens;	/* the caller's node accepts connections */
	unsigned int cpts;
	/* replies are on their way when the rail fails, not requests */
	bool replies;
	bool idle;  /* each caller calls every IDLE only */
	bool verbs; /* rail VERBS has RDMA devices */
	unsigned int
		/* verbs: the rail that fails; without verbs, the rail that is
		 * used most fails */
		rail;
};

#define VERBS 1

struct load {
	struct lnet_sim *sim;
	struct simqp_fabric *fabric; /* NULL: no rail has RDMA devices */
	struct setup setup;
	int64_t gain;
	struct ulnet_nid nids[NODES][RAILS];
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	struct caller {
		struct load *load;
		uint64_t began; /* ns: when its last call began */
		bool under_way;
	} callers[DEPTH];
	/* calls in this second, by the rail that carried them */
	unsigned int used[RAILS];
	bool over;
	bool unstable, away; /* the rail: comes and goes; is away now */
	/* What has happened since the failure: */
	uint64_t at;
	unsigned int rail; /* the rail that failed */
	unsigned int lost;
	unsigned int slow; /* calls that took more than SLOW */
	uint64_t longest;  /* ns: the longest call */
	uint64_t back;	   /* ns: when the rail came back; 0: not yet */
	/* ns from @back until the rail was used again; NEVER: not yet */
	uint64_t again;
	unsigned int bins[BINS];
};

/* Ends the program if @rc is an error. @what: what could not be done. */
void must(int rc, const char *what);
/* The address of @node on @rail. */
struct ulnet_nid rail_nid(const struct load *l, unsigned int node,
			  unsigned int rail);
/* Starts both nodes, and the load. @gain: the setting health_gain of both; 0:
 * the default. Ends the program if it cannot. */
struct load *load_new(const struct setup *setup, int64_t gain);
/* Returns the number of violated invariants. */
unsigned int load_free(struct load *l);

#endif
