/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which waiting requests are served. A policy orders requests of
 * one lane; the lanes are high, normal, background. At most `ratio` requests in
 * a row are served from a lane while a lower lane has requests that could be
 * served. In front of the lanes there may be a gate (gate.h), which holds back
 * requests that come faster than its rules allow. A scheduler knows nothing of
 * threads: whoever embeds it locks it, and asks again when the gate lets the
 * next request through (exec.c).
 *
 * A policy is a table of functions, and a line in sched.c. It may keep
 * state for each client, host or method, look at time, deadline and size, and
 * hold requests back, too: dequeue then returns NULL and says when to ask
 * again.
 */
#ifndef RPC_SCHED_H
#define RPC_SCHED_H

#include "base/heap.h"
#include "base/list.h"
#include "rpc/mean.h"
#include "ulnet/nid.h"

struct gate;
struct gate_flow;
struct gate_rules;

enum sched_lane { LANE_HIGH, LANE_NORMAL, LANE_BACKGROUND, LANES };

/* The clients that take turns because they have requests waiting
 * (sched_policy.c). */
struct turns {
	struct list now;  /* of turn.link: to be served in this round */
	struct list next; /* and in the next one */
	uint64_t round;
	struct turn *current; /* the one that goes on, if left is not 0 */
	unsigned int left;    /* items of it that are to be served */
	unsigned int n;	      /* in both lists */
};

/* A client that takes turns. */
struct turn {
	struct list link;
	uint64_t served;     /* the round in which it was, last */
	unsigned int queued; /* items */
};

/* Clients and their hosts, as policies see them. The members that do not say
 * who they are, or how much they have queued, belong to the policy, and are
 * zero at first. Their owner keeps them as long as a request of the client is
 * queued. */
struct sched_host {
	const struct ulnet_nid *nid;
	struct sched_host_flow {
		struct turn turn;     /* among the hosts of the lane */
		struct turns clients; /* valid while turn.queued is not 0 */
	} flow[LANES];
};

struct sched_client {
	struct sched_host *host;
	uint64_t id;	 /* no other client has it, or will have it soon */
	uint32_t pid;	 /* of the process */
	uint32_t queued; /* items, as in lanes.queued */
	struct sched_client_flow {
		struct turn turn;  /* among the clients of the host */
		struct list items; /* of sched_item.link; valid as above */
	} flow[LANES];
};

/* A request, as policies see it. Embedded in it. */
struct sched_item {
	union { /* the policy's, or the gate's */
		struct list link;
		struct heap_node node;
	};
	uint64_t arrival, deadline;  /* ns; TIME_NEVER: none */
	uint64_t released;	     /* ns: from the gate; 0: not held there */
	struct gate_flow *flow;	     /* where the gate holds it; NULL: not */
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
	bool goes_on;	/* it was run before: the gate lets it through */
};

/* What the text of a policy says. */
struct sched_plan {
	const struct sched_ops *ops;
	unsigned int quantum;	  /* items in a row; 0: the policy's own */
	struct gate_rules *rules; /* NULL: no gate */
};

/*
 * "[ORDER [quantum=N]] [tbf RULES]"; NULL: the default order. 0, and @plan is
 * to be freed; -EOPNOTSUPP: there is no such order; -EINVAL; both with what is
 * wrong in *@err; -ENOMEM.
 */
int sched_plan_parse(const char *text, struct sched_plan *plan,
		     struct ulnet_text_error *err) must_check;
void sched_plan_free(struct sched_plan *plan);

struct sched; /* a policy's state begins with it */

struct sched_ops {
	const char *name;
	unsigned int quantum; /* by default; 0: the plan's is not for it */
	size_t size;	      /* of its state, which is zero at first */
	/* NULL: as that is, it is good. */
	void (*init)(struct sched *s, const struct sched_plan *plan);
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
extern const struct sched_ops sched_rr;
extern const struct sched_ops sched_fifo;
extern const struct sched_ops sched_edf;

/* ---- lanes ---- */

struct lane {
	struct sched *sched;
	unsigned int queued;
	unsigned int row; /* served while lower ones waited */
};

struct lanes {
	struct lane lane[LANES];
	unsigned int queued; /* in all; not those that the gate holds */
	unsigned int ratio;  /* at least 1 */
	struct gate *gate;   /* NULL: none */
};

/* @plan is borrowed as long as @l. */
int lanes_init(struct lanes *l, const struct sched_plan *plan,
	       unsigned int ratio) must_check;
void lanes_fini(struct lanes *l);
/* Into item->lane, or the gate. */
void lanes_put(struct lanes *l, struct sched_item *item, uint64_t now);
/* Puts into the lanes what the gate has let through by now. There has to be a
 * gate. *@again: as below. */
void lanes_release(struct lanes *l, uint64_t now, uint64_t *again);
/* Takes the next request. @mask: a bit for each lane that may be served now.
 * NULL: there is none; then *@again, if something is held back, is lowered to
 * the time (ns) when to ask. */
struct sched_item *lanes_take(struct lanes *l, unsigned int mask, uint64_t now,
			      uint64_t *again);
/* @item is queued. */
void lanes_remove(struct lanes *l, struct sched_item *item);
/* How many would be served before @item, were it put there now: about. */
unsigned int lanes_ahead(const struct lanes *l, const struct sched_item *item);
/* ns for which the gate would hold @item back, were it put there now. */
uint64_t lanes_held(const struct lanes *l, const struct sched_item *item,
		    uint64_t now);
/* Is there any request, in the lanes or held back? */
bool lanes_any(const struct lanes *l);

#endif
