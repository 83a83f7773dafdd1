/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which waiting requests are served. A policy orders requests of
 * one lane; the lanes are high, normal, background: from each at most `ratio`
 * in a row are served while a lower one has requests that could be. Knows
 * nothing of threads: whoever embeds it locks, and asks again when a policy says so (exec.c does for threads;
 * on virtual time nobody does yet, as no policy holds anything back).
 *
 * A policy is a table of functions, and a line in sched.c. It may keep state for
 * each client or method, look at time, deadline and size, and hold requests
 * back: dequeue then returns NULL and says when to ask again.
 */
#ifndef RPC_SCHED_H
#define RPC_SCHED_H

#include "base/list.h"

enum sched_lane { LANE_HIGH, LANE_NORMAL, LANE_BACKGROUND, LANES };

/* A request, as policies see it. Embedded in it. */
struct sched_item {
	struct list link;	    /* the policy's */
	uint64_t policy[2];	    /* the policy's */
	uint64_t arrival, deadline; /* ns; TIME_NEVER: none */
	uint64_t client;	    /* a number for each connection */
	uint32_t method;
	uint32_t bytes; /* of the body */
	uint8_t lane;	/* enum sched_lane */
	bool queued;	/* lanes_*() */
};

struct sched; /* a policy's state begins with it */

struct sched_ops {
	const char *name;
	/* NULL: no memory. */
	struct sched *(*new)(void);
	/* Nothing is queued. */
	void (*free)(struct sched *s);
	void (*enqueue)(struct sched *s, struct sched_item *item, uint64_t now);
	/* The next to be served; NULL: none now. Then *@again, if something is
	 * held back, is lowered to the time (ns) when to ask. */
	struct sched_item *(*dequeue)(struct sched *s, uint64_t now,
				      uint64_t *again);
	/* @item is queued, and will not be served. */
	void (*remove)(struct sched *s, struct sched_item *item);
};

struct sched {
	const struct sched_ops *ops;
};

extern const struct sched_ops sched_fifo;

/* By name; NULL: there is none. @name NULL: the default. */
const struct sched_ops *sched_find(const char *name);

/* ---- lanes ---- */

struct lane {
	struct sched *sched;
	unsigned int queued;
	unsigned int row; /* served while lower ones waited */
};

struct lanes {
	struct lane lane[LANES];
	unsigned int queued; /* in all */
	unsigned int ratio;  /* at least 1 */
};

int lanes_init(struct lanes *l, const struct sched_ops *ops,
	       unsigned int ratio) must_check;
void lanes_fini(struct lanes *l);
/* Into item->lane. */
void lanes_put(struct lanes *l, struct sched_item *item, uint64_t now);
/* @mask: a bit for each lane that may be served now. NULL: nothing. */
struct sched_item *lanes_take(struct lanes *l, unsigned int mask, uint64_t now,
			      uint64_t *again);
/* @item is queued. */
void lanes_remove(struct lanes *l, struct sched_item *item);

#endif
