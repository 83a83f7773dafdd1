/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which waiting requests are served. A policy orders requests of
 * one lane; the lanes are high, normal, background: from each at most `ratio`
 * in a row are served while a lower one has requests that could be. Knows
 * nothing of threads: whoever embeds a scheduler locks it, and asks again when
 * a policy says so (exec.c does for threads; on virtual time nobody does yet,
 * as no policy holds anything back).
 *
 * A policy is a table of functions, and a line in sched.c. It may keep state
 * for each client, host or method, look at time, deadline and size, and hold
 * requests back: dequeue then returns NULL and says when to ask again.
 */
#ifndef RPC_SCHED_H
#define RPC_SCHED_H

#include "base/list.h"
#include "rpc/mean.h"

enum sched_lane { LANE_HIGH, LANE_NORMAL, LANE_BACKGROUND, LANES };

/* The clients that take turns because they have requests waiting
 * (sched_fair.c). */
struct turns {
	struct list now;  /* of turn.link: to be served in this round */
	struct list next; /* and in the next one */
	uint64_t round;
	unsigned int n; /* in both */
};

/* A client that takes turns. */
struct turn {
	struct list link;
	uint64_t served;     /* the round in which it was, last */
	unsigned int queued; /* items */
};

/* Clients and their hosts, as policies see them: all is theirs but
 * sched_client's host, and is zero at first. Their owner keeps them as long as
 * a request of the client is queued. */
struct sched_host {
	struct sched_host_flow {
		struct turn turn;     /* among the hosts of the lane */
		struct turns clients; /* valid while turn.queued is not 0 */
	} flow[LANES];
};

struct sched_client {
	struct sched_host *host;
	struct sched_client_flow {
		struct turn turn;  /* among the clients of the host */
		struct list items; /* of sched_item.link; valid as above */
	} flow[LANES];
};

/* A request, as policies see it. Embedded in it. */
struct sched_item {
	struct list link;	     /* the policy's */
	uint64_t arrival, deadline;  /* ns; TIME_NEVER: none */
	struct sched_client *client; /* whose it is */
	struct mean *cost;	     /* of its method; NULL: not known */
	uint64_t started;	     /* ns; exec.c's */
	uint64_t again;		     /* ns; exec.c's */
	uint64_t wait;		     /* ns, when it came; exec.c's */
	uint32_t ahead, taken;	     /* as it was queued; exec.c's */
	uint32_t method;
	uint32_t bytes; /* of the body */
	uint8_t lane;	/* enum sched_lane */
	bool queued;	/* lanes_*() */
	bool late;	/* exec.c's */
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
	/* How many of the @queued items would be served before @item, were it
	 * queued now, and nothing after it: at most. NULL: all of them. */
	unsigned int (*ahead)(const struct sched *s,
			      const struct sched_item *item,
			      unsigned int queued);
};

struct sched {
	const struct sched_ops *ops;
};

extern const struct sched_ops sched_fair;
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
/* How many would be served before @item, were it put there now: about. */
unsigned int lanes_ahead(const struct lanes *l, const struct sched_item *item);

#endif
