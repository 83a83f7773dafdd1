/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every LND must do, seen through LNet's public functions: one list of
 * behaviours (conformance.c), which a small program for each LND runs. The
 * program describes a rig: how to bring up a pair of nodes on that LND. Each
 * behaviour gets a fresh rig.
 *
 * The rig of LNDs that run in real time is real.c: their programs list NIDs
 * only (see lolnd_test.c).
 */
#ifndef TESTS_LND_CONFORMANCE_H
#define TESTS_LND_CONFORMANCE_H

#include "ulnet/lnet.h"

/* What a rig can do, and how it is. */
enum {
	RIG_ONE_NODE =
		/* one node sends to itself: node[1] and nid[1] are node[0]'s */
	1,
	RIG_KILL = 2,	      /* kill_peer(), restart_peer() */
	RIG_LOSE = 4,	      /* lose() */
	RIG_VIRTUAL_TIME = 8, /* no event may be later than its deadline */
	/* how much is under way at once depends on chance */
	RIG_THREADS = 16,
	/* There are several connections: only messages of RIG_SMALL bytes or
	 * less to one peer keep their order. */
	RIG_OVERTAKE = 32,
};

#define RIG_SMALL 900u

struct lnd_rig;

/* All functions are called by one thread, which runs no loop; now() also by
 * handlers. */
struct lnd_rig_ops {
	/* Opens the nodes and sets node, nid, absent. Returns 0; -ENOTSUP if
	 * this machine lacks what rig->why says (then the rig is skipped); or
	 * another negative errno. */
	int (*up)(struct lnd_rig *rig);
	/* Closes the nodes, node[0] first, whatever is under way. Returns the
	 * number of violations that the rig itself has seen. */
	unsigned int (*down)(struct lnd_rig *rig);
	/* Lets time pass, @us or less. */
	void (*run)(struct lnd_rig *rig, uint64_t us);
	/* Optional. Returns the number of violations so far, when nothing is
	 * under way. */
	unsigned int (*check)(struct lnd_rig *rig);
	/* kill_peer() ends node[1] without a goodbye, and sets it to NULL; its
	 * NID stays. restart_peer() opens it again. */
	int (*kill_peer)(struct lnd_rig *rig);
	int (*restart_peer)(struct lnd_rig *rig);
	/* Loses all that node[@from] sends from now on, or stops doing so. */
	int (*lose)(struct lnd_rig *rig, unsigned int from, bool on);
};

struct lnd_rig {
	const char *name;
	unsigned int can; /* RIG_* */
	const struct lnd_rig_ops *ops;
	void *arg; /* for up(): what to open */
	/* us within which everything must have happened; 0: 60 s */
	uint64_t patience;
	bool hasty; /* the behaviour waits until peers are given up */
	/* up() sets: */
	struct lnet *node[2];
	struct ulnet_nid nid[2];
	struct ulnet_nid absent; /* a NID of the same net that no node has */
	/* The NIs' tunables, with which an NI can be added again. */
	const struct ulnet_tunable *tunables;
	unsigned int ntunables;
	const char *why;
	uint16_t port; /* real.c's */
	void *priv;    /* for the rig */
};

struct topic; /* behaviour.h */

/* As conformance_main(), for other behaviours. */
int behaviours_main(int argc, char **argv, struct lnd_rig *rigs, unsigned int n,
		    const struct topic *const *topics, unsigned int ntopics);

/*
 * Runs all behaviours on each of the @n rigs, or those whose names contain an
 * argument of the command line. Prints a line for each, and the sum. Returns
 * the status for main(): 0 passed, 1 failed, 77 nothing could be run.
 */
int conformance_main(int argc, char **argv, struct lnd_rig *rigs,
		     unsigned int n);

/* ---- real.c: nodes in real time ---- */

struct real_net {
	const char *nids[2]; /* NULL: 0@lo (RIG_ONE_NODE) */
	const char *absent;
	enum ulnet_run run; /* in threads, or polled by the test's own thread */
	unsigned int cpts;
	bool port; /* the nodes listen on a TCP port that is free now */
	void (*tune)(struct ulnet_conf *conf, bool hasty); /* optional */
	/* Optional, of nets with TLS: keys of raw peers (raw_peer.h). */
	struct ulrpc_keys *(*raw_keys)(void);
	/* Tunables of the NIs; and, if not NULL, those for behaviours that wait
	 * for time-outs: no other behaviour depends on how fast the machine is.
	 */
	const struct ulnet_tunable *tunables, *hasty;
	unsigned int ntunables;
	/* the heap is registered memory: heap_keep() was called */
	bool registered;
	/* Optional. Returns -ENOTSUP, and why in *@why, if the rig cannot be
	 * run here. */
	int (*may_run)(const char **why);
};

/* rig.arg is a struct real_net. kill_peer() closes the peer's node in such a
 * way that nobody hears of it. */
extern const struct lnd_rig_ops real_ops;

#endif
