/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which waiting requests are served. There are three lanes: high,
 * normal, background; a policy orders the requests of each lane. At most
 * `ratio` requests in a row are served from a lane while a lower lane has
 * requests that could be served. In front of the lanes there may be a gate
 * (gate.h), which holds back requests that come faster than its rules allow.
 *
 * A policy is a table of functions, and a line in sched.c. It may keep state
 * for each client, host or method, look at time, deadline and size, and hold
 * requests back, too: dequeue then returns NULL and says when to ask again.
 *
 * The caller (exec.c) has the lock.
 */
#ifndef RPC_SCHED_H
#define RPC_SCHED_H

#include "base/heap.h"
#include "base/list.h"
#include "rpc/estimate.h"
#include "ulnet/nid.h"

struct gate;
struct gate_flow;
struct gate_rules;

enum sched_lane { LANE_HIGH, LANE_NORMAL, LANE_BACKGROUND, LANES };

/* The clients, or hosts, that have requests waiting and take turns
 * (sched_policy.c). */
struct turns {
	struct list now;  /* of turn.link: to be served in this round */
	struct list next; /* and in the next one */
	uint64_t round;
	struct turn *current; /* who is served next, if left is not 0 */
	unsigned int left;    /* items that are left of its turn */
	unsigned int n;	      /* in both lists */
};

/* One that takes turns. */
struct turn {
	struct list link;
	uint64_t served;     /* the last round in which it was served */
	unsigned int queued; /* items */
};

/* Clients and their hosts, as policies see them. flow belongs to the policy,
 * and is zero at first. Their owner keeps them as long as a request of the
 * client is queued. */
struct sched_host {
	const struct ulnet_nid *nid;
	struct sched_host_flow {
		struct turn turn;     /* among the hosts of the lane */
		struct turns clients; /* valid while turn.queued is not 0 */
	} flow[LANES];
};

struct sched_client {
	struct sched_host *host;
	uint64_t id;	 /* unique, and not reused soon */
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
	uint64_t released;	     /* ns: from the gate; 0: did not wait */
	struct gate_flow *flow;	     /* where it is in the gate; NULL: not */
	struct sched_client *client; /* whose it is */
	struct mean *cost;	     /* of its method; NULL: not known */
	uint64_t started;	     /* ns; exec.c's, as the next four */
	uint64_t again;		     /* ns: how much too late it would be */
	uint64_t wait;		     /* ns: the estimate when it came */
	uint32_t ahead, taken;	     /* when it was queued */
	uint32_t method;
	uint32_t bytes; /* of the body */
	uint8_t lane;	/* enum sched_lane */
	bool queued;	/* lanes_*() */
	bool late;	/* exec.c's */
	bool goes_on;	/* a continuation: the gate lets it through */
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
	/* May be NULL. */
	void (*init)(struct sched *s, const struct sched_plan *plan);
	void (*enqueue)(struct sched *s, struct sched_item *item, uint64_t now);
	/* Returns the next item to be served; NULL: none now, and *@again is
	 * lowered to the time (ns) when to ask, if some are held back. */
	struct sched_item *(*dequeue)(struct sched *s, uint64_t now,
				      uint64_t *again);
	/* @item is queued, and will not be served. */
	void (*remove)(struct sched *s, struct sched_item *item);
	/* Returns how many of the @queued items would be served before @item,
	 * at most, were it queued now. NULL: all of them. */
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
	unsigned int row; /* items served while lower lanes waited */
};

struct lanes {
	struct lane lane[LANES];
	unsigned int queued; /* in all lanes, without the gate */
	unsigned int ratio;  /* at least 1 */
	struct gate *gate;   /* NULL: none */
};

/* @plan is borrowed as long as @l. */
int lanes_init(struct lanes *l, const struct sched_plan *plan,
	       unsigned int ratio) must_check;
void lanes_fini(struct lanes *l);
/* Into item->lane, or the gate. */
void lanes_put(struct lanes *l, struct sched_item *item, uint64_t now);
/* Moves the items that may pass the gate, which there is, to the lanes, as if
 * they had come when they might pass. *@again: as below. */
void lanes_release(struct lanes *l, uint64_t now, uint64_t *again);
/* Takes the next request. @mask: a bit for each lane that may be served now.
 * NULL: there is none, and *@again is lowered to the time (ns) when to ask, if
 * some are held back. */
struct sched_item *lanes_take(struct lanes *l, unsigned int mask, uint64_t now,
			      uint64_t *again);
/* @item is queued. */
void lanes_remove(struct lanes *l, struct sched_item *item);
/* About how many items would be served before @item, were it put now. */
unsigned int lanes_ahead(const struct lanes *l, const struct sched_item *item);
/* ns for which @item would wait in the gate, were it put now. */
uint64_t lanes_gate_wait(const struct lanes *l, const struct sched_item *item,
			 uint64_t now);
/* Is there any item, in the lanes or in the gate? */
bool lanes_any(const struct lanes *l);

#endif
