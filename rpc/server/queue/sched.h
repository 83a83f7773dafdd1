/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which waiting requests are served. There are three lanes: high,
 * normal, background; a policy orders the requests of each lane. At most
 * `ratio` requests in a row are served from a lane while a lower lane has
 * requests that could be served. In front of the lanes there may be a gate
 * (gate.h), which holds back requests that come faster than its rules allow.
 *
 * A policy is a table of functions, and a line in sched.c. A policy may keep
 * state for each client, host or method, and look at time, deadline and size.
 * It may also hold requests back: dequeue then returns NULL and says when to
 * ask again.
 *
 * All functions here are called with exec.lock held.
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

/* The clients, or hosts, that take turns because requests of theirs wait
 * (sched_policy.c). */
struct turns {
	/* of turn.link: clients or hosts that are still to be served in this
	 * round */
	struct list now;
	/* of turn.link: clients or hosts that are to be served in the next
	 * round */
	struct list next;
	uint64_t round;
	/* the client or host whose turn it is; valid if @left is not 0 */
	struct turn *current;
	unsigned int left; /* how many more items @current has in its turn */
	unsigned int n;	   /* how many clients or hosts are in both lists */
};

/* A client or a host that takes turns. */
struct turn {
	struct list link;
	/* the value of turns.round when it was last served */
	uint64_t served;
	unsigned int queued; /* how many of the client's or host's items wait */
};

/* A host and a client, as policies see them. The field flow belongs to the
 * policy, and is zero at first. Whoever owns a host or client keeps it while a
 * request of the client is queued. */
struct sched_host {
	const struct ulnet_nid *nid;
	struct sched_host_flow {
		struct turn turn; /* its turn among the hosts of the lane */
		/* the host's clients that take turns; valid while turn.queued
		 * is not 0 */
		struct turns clients;
	} flow[LANES];
};

struct sched_client {
	struct sched_host *host;
	uint64_t id;  /* unique, and not reused soon */
	uint32_t pid; /* pid of the process */
	/* how many of the client's items are in lanes, as in lanes.queued */
	uint32_t queued;
	struct sched_client_flow {
		struct turn turn; /* its turn among the clients of the host */
		/* of sched_item.link; valid while turn.queued is not 0 */
		struct list items;
	} flow[LANES];
};

/* A request, as policies see it; embedded in struct ulrpc_request. */
struct sched_item {
	union { /* for the policy, or for the gate */
		struct list link;
		struct heap_node node;
	};
	/* ns: when the request came, and when its caller stops waiting
	 * (TIME_NEVER: no deadline) */
	uint64_t arrival, deadline;
	/* ns: when the item left the gate; 0: it did not wait there */
	uint64_t released;
	/* where in the gate the item is; NULL: it is not there */
	struct gate_flow *flow;
	struct sched_client *client; /* the client that has sent it */
	/* how long its method takes, ns; NULL: not known */
	struct mean *cost;
	uint64_t started; /* ns: when a worker took the item */
	/* ns: how long to wait before a request that is refused now may be in
	 * time */
	uint64_t again;
	/* ns: how long the item will wait until a worker takes it, as estimated
	 * when it came */
	uint64_t wait;
	/* ahead: how many items were in front of it when it was queued. taken:
	 * the value of exec.taken then */
	uint32_t ahead, taken;
	uint32_t method;
	uint32_t bytes; /* bytes of the body */
	uint8_t lane;	/* enum sched_lane */
	bool queued;	/* is the item in a lane or in the gate? */
	bool late;	/* the item's turn came too late */
	/* a continuation of a request: the gate lets it through */
	bool goes_on;
};

/* What the text of a policy says, parsed. */
struct sched_plan {
	const struct sched_ops *ops;
	/* items of one client that are served in a row; 0: the default of the
	 * policy */
	unsigned int quantum;
	struct gate_rules *rules; /* NULL: no gate */
	size_t rules_at;	  /* where the rules begin in the text */
	/* number of the first round, which is higher than that of any round of
	 * a policy before it */
	uint64_t round;
};

/*
 * Parses @text, "[ORDER [quantum=N]] [tbf RULES]"; NULL: the default order.
 * Returns 0, and the caller is to free @plan; -EOPNOTSUPP: there is no such
 * order; -EINVAL: the text is wrong otherwise; in both cases *@err says what is
 * wrong; -ENOMEM.
 */
int sched_plan_parse(const char *text, struct sched_plan *plan,
		     struct ulnet_text_error *err) must_check;
/* Checks that @plan names only methods that there are: @has and @arg as for
 * gate_rules_check(). @text: what the plan was parsed from. Returns 0, or
 * -EINVAL and fills *@err. */
int sched_plan_check(const struct sched_plan *plan, const char *text,
		     bool (*has)(const void *arg, uint32_t method),
		     const void *arg, struct ulnet_text_error *err) must_check;
void sched_plan_free(struct sched_plan *plan);

struct sched; /* what the state of a policy, in one lane, begins with */

struct sched_ops {
	const char *name;
	/* how many items are served in a row unless the user says otherwise; 0:
	 * the policy has no quantum */
	unsigned int quantum;
	size_t size; /* bytes of the policy's state, which is zero at first */
	/* Initializes the state. NULL: zeros are enough. */
	void (*init)(struct sched *s, const struct sched_plan *plan);
	void (*enqueue)(struct sched *s, struct sched_item *item, uint64_t now);
	/* Takes the next item to be served. NULL: none is to be served now; if
	 * some are held back, *@again is lowered to the time (ns) at which to
	 * ask again. */
	struct sched_item *(*dequeue)(struct sched *s, uint64_t now,
				      uint64_t *again);
	/* Takes @item, which is queued, out of the policy. */
	void (*remove)(struct sched *s, struct sched_item *item);
	/* Returns how many of the @queued items, at most, would be served
	 * before @item if it were queued now. NULL: all of them. */
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
	/* items that were served in a row while lower lanes waited */
	unsigned int row;
};

struct lanes {
	struct lane lane[LANES];
	/* items in all lanes, not counting those in the gate */
	unsigned int queued;
	/* items in a row from one lane, at most, while a lower one waits; not 0
	 */
	unsigned int ratio;
	struct gate *gate; /* NULL: none */
};

/* Initializes @l. @plan is borrowed until lanes_fini(). @ratio: lanes.ratio.
 * Returns 0 or -ENOMEM. */
int lanes_init(struct lanes *l, const struct sched_plan *plan,
	       unsigned int ratio) must_check;
void lanes_fini(struct lanes *l);
/* Moves all items of @from to @to, which is new, in the order in which they
 * came. Items that are in the gate go to the gate of @to. @now: ns. */
void lanes_move(struct lanes *from, struct lanes *to, uint64_t now);
/* Puts @item into item->lane, or into the gate. @now: ns. */
void lanes_put(struct lanes *l, struct sched_item *item, uint64_t now);
/* Moves the items that may pass the gate to the lanes, each as if it had come
 * when it might first have passed. There has to be a gate. *@again: as in
 * lanes_take(). */
void lanes_release(struct lanes *l, uint64_t now, uint64_t *again);
/* Takes the next request. @mask: a bit for each lane that may be served now.
 * NULL: there is none; if some are held back, *@again is lowered to the time
 * (ns) at which to ask again. */
struct sched_item *lanes_take(struct lanes *l, unsigned int mask, uint64_t now,
			      uint64_t *again);
/* Takes @item, which is queued, out of its lane or the gate. */
void lanes_remove(struct lanes *l, struct sched_item *item);
/* Estimates how many items would be served before @item, if it were put now. */
unsigned int lanes_ahead(const struct lanes *l, const struct sched_item *item);
/* Returns ns for which @item would wait in the gate, if it were put now. */
uint64_t lanes_gate_wait(const struct lanes *l, const struct sched_item *item,
			 uint64_t now);
/* Is there any item, in the lanes or in the gate? */
bool lanes_any(const struct lanes *l);

#endif
