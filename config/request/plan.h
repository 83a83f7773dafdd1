/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of a node that are made all or not at all: the steps are gathered
 * first, while what asked for them is checked, and then done in their order;
 * when one fails, those before it are undone. One plan at a time for a node.
 */
#ifndef CONFIG_REQUEST_PLAN_H
#define CONFIG_REQUEST_PLAN_H

#include "config/node/list.h"
#include "config/yaml/scope.h"
#include "ulnet/fault.h"

/* The specification of an NI. The names of tunables are borrowed as long as it
 * is used. */
struct ni_spec {
	struct ulnet_ni_conf conf;	     /* without its pointers */
	char interface[LNET_INTERFACE_SIZE]; /* "": conf.nid is the NID */
	struct ulnet_tunable tunables[LNET_TUNABLES_MAX];
};

enum peer_change_kind {
	PEER_ADD,	/* it has these NIDs, and maybe others */
	PEER_DEL,	/* it has none of these NIDs but the first */
	PEER_DEL_WHOLE, /* it is not there */
	PEER_IS_US,	/* of ADD, when it has turned out to be this node:
			* nothing was done */
	PEER_STAYS_US,	/* DEL_WHOLE of what is no peer, but this node: nothing
			* is to be done */
};

/* A peer that is to be added, to have more NIDs, to have fewer, or to be
 * deleted. */
struct peer_change {
	enum peer_change_kind kind;
	bool multi_rail; /* ADD */
	bool may_be_us;	 /* ADD: kernel nodes list themselves among their
			  * peers, and that is to be passed over */
	unsigned int at; /* the number of the NID that it has failed with */
	/* What it was: NIs of a configured peer, the plan's; 0: it was none. */
	const struct ulnet_peer_info *before;
	unsigned int nbefore;
	unsigned int n;
	struct ulnet_nid nids[]; /* the primary one, and others */
};

struct plan {
	struct lnet *node;
	struct step *steps;
	unsigned int n, room;
	struct peer_list peers; /* as they were configured when the first change
				 * of a peer came */
	bool peers_read;
	struct setting_list
		settings; /* as they were when one was first asked for */
	bool settings_read;
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
		const struct ni_spec *spec);
int plan_ni_del(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_ni_info *info);
/* Is the NI to go? */
bool plan_deletes(const struct plan *plan, const struct ulnet_nid *nid);
/* Takes the change, for free(), in any case. */
int plan_peer(struct plan *plan, const struct scope *s, const struct tree *at,
	      struct peer_change *change);
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
/* The node's settings, as they were before the plan, in plan->settings. */
int plan_need_settings(struct plan *plan, const struct scope *s);
/* Will that setting be other than 0 once the plan is done? */
bool plan_setting_is_on(struct plan *plan, const char *name);
/* One of plan->settings; a value that it has already makes no step. The last
 * value given for a setting counts. */
int plan_set(struct plan *plan, const struct scope *s, const struct tree *at,
	     const struct ulnet_setting *setting, int64_t value);

/* Carries the plan out. On failure the error is in the answer of the step that
 * failed, and a note says what could not be undone. */
int plan_run(struct plan *plan);

#endif
