/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every LND must do, seen through LNet's public functions: one list of
 * behaviours (conformance.c), run for each LND by a small program beside it,
 * which says how a pair of nodes comes up on that LND: a rig. Each behaviour
 * gets the rig fresh.
 *
 * For an LND whose nodes run in real time, real.c is the rig: the program lists
 * NIDs (see lolnd_test.c).
 */
#ifndef TESTS_LND_CONFORMANCE_H
#define TESTS_LND_CONFORMANCE_H

#include "ulnet/lnet.h"

/* What a rig can do, or is. */
enum {
	RIG_ONE_NODE =
		1,    /* it talks to itself: node[1] and nid[1] are node[0]'s */
	RIG_KILL = 2, /* kill_peer(), restart_peer() */
	RIG_LOSE = 4, /* lose() */
	RIG_VIRTUAL_TIME = 8, /* no event may be later than its deadline */
	RIG_THREADS = 16,     /* how much is under way at once is chance */
	/* There are several connections: of the messages to one peer only
	 * those of RIG_SMALL bytes and less keep their order. */
	RIG_OVERTAKE = 32,
};

#define RIG_SMALL 900u

struct lnd_rig;

/* All calls come from one thread, which runs no loop; now() also from handlers.
 */
struct lnd_rig_ops {
	/* Opens the nodes: node, nid, absent. 0; -ENOTSUP: this machine has not
	 * what it takes, rig->why says what (skipped); else a negative errno.
	 */
	int (*up)(struct lnd_rig *rig);
	/* Closes them, node[0] first, whatever is going on. Returns how many
	 * wrong things the rig itself has seen. */
	unsigned int (*down)(struct lnd_rig *rig);
	/* Lets things happen for @us, or less. */
	void (*run)(struct lnd_rig *rig, uint64_t us);
	/* Optional: violations so far, when nothing is under way. */
	unsigned int (*check)(struct lnd_rig *rig);
	/* node[1] dies without a word: NULL, its NID stays. Then it comes
	 * again. */
	int (*kill_peer)(struct lnd_rig *rig);
	int (*restart_peer)(struct lnd_rig *rig);
	/* What node[@from] sends is lost from now on, or no more. */
	int (*lose)(struct lnd_rig *rig, unsigned int from, bool on);
};

struct lnd_rig {
	const char *name;
	unsigned int can; /* RIG_* */
	const struct lnd_rig_ops *ops;
	void *arg;	   /* the rig's: what to bring up */
	uint64_t patience; /* us: what can be done is done by then; 0 = 60 s */
	bool hasty;	   /* the behaviour waits for peers to be given up */
	/* up() sets: */
	struct lnet *node[2];
	struct ulnet_nid nid[2];
	struct ulnet_nid absent; /* on the same net, and nobody has it */
	const char *why;
	uint16_t port; /* real.c's */
	void *priv;    /* the rig's */
};

struct topic; /* behaviour.h */

/* As conformance_main(), with other behaviours. */
int behaviours_main(int argc, char **argv, struct lnd_rig *rigs, unsigned int n,
		    const struct topic *const *topics, unsigned int ntopics);

/*
 * Runs all behaviours on each of the @n rigs, or those that the command line
 * names (parts of names). Prints a line for each and the sum. Returns what
 * main() returns: 0 passed, 1 failed, 77 nothing could be run.
 */
int conformance_main(int argc, char **argv, struct lnd_rig *rigs,
		     unsigned int n);

/* ---- real.c: nodes in real time ---- */

struct real_net {
	const char *nids[2]; /* NULL: 0@lo (RIG_ONE_NODE) */
	const char *absent;
	enum ulnet_run run; /* THREADS, or POLL by the test's own thread */
	unsigned int cpts;
	bool port; /* they listen: on a TCP port that is free now */
	void (*tune)(struct ulnet_conf *conf, bool hasty); /* optional */
	/* Of their NIs, and with other values for those who are hasty, if that
	 * is not NULL: nobody else depends on how fast the machine is. */
	const struct ulnet_tunable *tunables, *hasty;
	unsigned int ntunables;
	bool registered; /* the heap is: heap_keep() was called */
	/* Optional; -ENOTSUP and *@why: cannot be run here. */
	int (*may_run)(const char **why);
};

/* rig.arg is a struct real_net. kill_peer() closes the peer's node, and nobody
 * there hears of it. */
extern const struct lnd_rig_ops real_ops;

#endif
