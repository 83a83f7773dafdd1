/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of a node that are made all or not at all: the steps are gathered
 * first, while what asked for them is checked, and then done in their order;
 * when one fails, those before it are undone. One plan at a time for a node.
 */
#ifndef CONFIG_PLAN_H
#define CONFIG_PLAN_H

#include "config/peer_wish.h"
#include "config/scope.h"
#include "ulnet/fault.h"
#include "ulnet/lnet.h"
#include "ulnet/policy.h"
#include "ulnet/route.h"

/* An NI to be. Names of tunables are borrowed as long as it is used. */
struct ni_wish {
	struct ulnet_ni_conf conf;	     /* without its pointers */
	char interface[LNET_INTERFACE_SIZE]; /* "": conf.nid is the NID */
	struct ulnet_tunable tunables[LNET_TUNABLES_MAX];
};

enum step_kind {
	STEP_NI_ADD,
	STEP_NI_DEL,
	STEP_PEER,
	STEP_FAULT_ADD,
	STEP_FAULT_DEL,
	STEP_ROUTE_ADD,
	STEP_ROUTE_DEL,
	STEP_ROUTING,
	STEP_POLICY_ADD,
	STEP_POLICY_DEL,
	STEP_SET,
};

struct step {
	enum step_kind kind;
	struct scope scope; /* for errors; its trees are borrowed */
	const struct tree *at;
	struct ni_wish wish;	/* NI_ADD; NI_DEL: what brings it back */
	struct ulnet_nid nid;	/* NI_DEL; NI_ADD: what came of it */
	const char *missing;	/* NI_ADD, failed: constant text, or NULL */
	struct peer_wish *peer; /* PEER; the plan's */
	struct ulnet_fault fault; /* FAULT_ADD; FAULT_DEL: its kind and ends */
	struct ulnet_route route; /* ROUTE_* */
	struct ulnet_routing routing, routing_old; /* ROUTING */
	struct ulnet_policy *policy;		   /* POLICY_*; the plan's */
	unsigned int index;	     /* POLICY_ADD: its place; LNET_POLICY_LAST.
				      * When it was done: where it was */
	struct ulnet_text_error why; /* POLICY_ADD: what is wrong with it */
	const char *setting;	/* SET: constant text */
	int64_t value, old;
	bool deferred; /* SET: to the end, once */
};

struct plan {
	struct lnet *node;
	struct step *steps;
	unsigned int n, room;
	struct peer_list peers; /* as they were configured when the first wish
				 * for a peer came */
	bool peers_read;
	bool keep_notes; /* of other plans, in the same answer, that were
			  * carried out */
	/* The fault rules before the first step that changes them; NULL: none
	 * has yet. */
	struct ulnet_fault_info *faults;
	int nfaults;
};

void plan_init(struct plan *plan, struct lnet *node);
void plan_fini(struct plan *plan);

/* These add an error to the scope's answer when they fail. */
int plan_ni_add(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ni_wish *wish);
int plan_ni_del(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_ni_info *info);
/* Is the NI to go? */
bool plan_deletes(const struct plan *plan, const struct ulnet_nid *nid);
/* Takes the wish, in any case. */
int plan_peer(struct plan *plan, const struct scope *s, const struct tree *at,
	      struct peer_wish *wish);
/* Adds the rule, or deletes those of its kind, source and destination. */
int plan_fault(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_fault *fault, bool add);
/* Adds the route, or deletes the one to its net by its gateway. */
int plan_route(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_route *route, bool add);
/* Whether the node routes, and how many buffers of a kind it has (0: the
 * default). What it has already makes no step. */
int plan_routing(struct plan *plan, const struct scope *s,
		 const struct tree *at, bool enable);
int plan_buffers(struct plan *plan, const struct scope *s,
		 const struct tree *at, unsigned int kind, uint32_t n);
/* Adds the policy at place @index, or deletes the one that has these patterns,
 * exactly as the node shows them. */
int plan_policy(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_policy *policy, unsigned int index,
		bool add);
/* Will that setting be other than 0 once the plan is done? */
bool plan_setting_is_on(const struct plan *plan, const char *name);
/* One of the node's settings; a value that it has already makes no step. The
 * last value given for a setting counts. */
int plan_set(struct plan *plan, const struct scope *s, const struct tree *at,
	     const struct ulnet_setting *setting, int64_t value);

/* Carries the plan out. On failure the error is in the answer of the step that
 * failed, and a note says what could not be undone. */
int plan_run(struct plan *plan);

#endif
