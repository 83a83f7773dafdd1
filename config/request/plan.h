/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of a node that are made all or not at all. Steps are gathered while a
 * request is read, and then done in their order; if one fails, those before it
 * are undone. One plan at a time for a node.
 *
 * A step is undone by its opposite (step_apply()), but for three kinds. A peer
 * may have had some of the NIDs before, and a change of it may be half made, so
 * it gets back exactly the NIDs that it had. Fault rules have no names: one
 * deletion takes all rules with a kind, source and destination, and an added
 * rule comes last; so all rules are restored together, in their order. So are
 * policies, because one that is added may move others, or replace one.
 *
 * Files may have tens of thousands of items: each kind of step is found, done
 * and undone in a time that does not grow with the number of others, and routes
 * are changed all at once. A plan whose client has gone ends between two steps,
 * and is undone.
 */
#ifndef CONFIG_REQUEST_PLAN_H
#define CONFIG_REQUEST_PLAN_H

#include "config/node/list.h"
#include "config/request/inquiry.h"
#include "config/yaml/scope.h"
#include "ulnet/fault.h"

/* An NI that is to be added. The names of tunables are constant. */
struct ni_spec {
	/* its pointers are set when the NI is added */
	struct ulnet_ni_conf conf;
	char interface[LNET_INTERFACE_SIZE]; /* "": conf.nid is the NID */
	struct ulnet_tunable tunables[LNET_TUNABLES_MAX];
};

enum peer_change_kind {
	PEER_ADD,	/* add the peer, or NIDs to it */
	PEER_DEL,	/* delete all NIDs but the primary one from the peer */
	PEER_DEL_WHOLE, /* delete the peer */
	PEER_IS_US,	/* was ADD, but the peer is this node: nothing to do */
	PEER_STAYS_US,	/* delete a peer that is this node: nothing to do */
};

/* A change of a peer. */
struct peer_change {
	enum peer_change_kind kind;
	bool multi_rail; /* ADD: the peer is multi-rail */
	/* ADD: the peer has no other NIDs than these */
	bool whole;
	/* ADD: it is no error if the peer is this node, because kernel nodes
	 * list themselves among their peers */
	bool may_be_us;
	unsigned int at; /* index in nids[] of the NID that failed */
	/* The NIs that the peer had before, borrowed from the plan; nbefore is
	 * 0 if the peer was not configured. */
	const struct ulnet_peer_info *before;
	unsigned int nbefore;
	unsigned int n;
	struct ulnet_nid nids[]; /* the primary NID, then the other ones */
};

struct plan {
	struct lnet *node;
	struct cancel *cancel; /* NULL: nobody can cancel it */
	struct step *steps;
	unsigned int n, room;
	/* when a step fails, keep the answer's notes: some are of other plans,
	 * which were carried out */
	bool keep_notes;
	/* What the node had before the plan, read when first needed. */
	bool peers_read, settings_read;
	struct peer_list peers; /* the configured peers */
	struct setting_list settings;
	struct ulnet_fault_info *faults; /* NULL: not read */
	int nfaults;
	/* sorted by gateway and net; NULL: not read */
	struct ulnet_route *routes;
	unsigned int nroutes;
	struct ulnet_policy *policies; /* NULL: not read */
	int npolicies;
	bool policies_restored;
	const char *log; /* levels that the log gets; NULL: they stay */
	char log_old[LNET_LOG_LEVELS];
};

void plan_init(struct plan *plan, struct lnet *node, struct cancel *cancel);
void plan_fini(struct plan *plan);

/* Each function below adds a step, or an error to the scope's answer. */
int plan_ni_add(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ni_spec *spec);
int plan_ni_del(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_ni_info *info);
/* Is there a step that deletes this NI? */
bool plan_deletes(const struct plan *plan, const struct ulnet_nid *nid);
/* Takes @change, which is from malloc(), even on failure. */
int plan_peer(struct plan *plan, const struct scope *s, const struct tree *at,
	      struct peer_change *change);
/* Plans that the rule is added (@add), or that all rules of its kind, source
 * and destination are deleted. */
int plan_fault(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_fault *fault, bool add);
/* Plans that the route is added (@add), or that the route to its net by its
 * gateway is deleted. */
int plan_route(struct plan *plan, const struct scope *s, const struct tree *at,
	       const struct ulnet_route *route, bool add);
/* Plans that the node has @value buffers of @kind (0: the default); with @kind
 * LNET_BUFFER_KINDS, whether the node routes. */
int plan_routing(struct plan *plan, const struct scope *s,
		 const struct tree *at, unsigned int kind, uint32_t value);
/* Plans that the policy is added as @id, or, if the node has one with the same
 * patterns, that this one gets the priority of @policy (@add); or that the
 * policy that is exactly like @policy is deleted. */
int plan_policy(struct plan *plan, const struct scope *s, const struct tree *at,
		const struct ulnet_policy *policy, uint32_t id, bool add);
/* Plans that the certificates with the name @name may speak for @nids, or
 * (NULL) that no rule with this name lets them do so. */
int plan_tls_rule(struct plan *plan, const struct scope *s,
		  const struct tree *at, const char *name, const char *nids);
/* Reads the node's settings into plan->settings. */
int plan_need_settings(struct plan *plan, const struct scope *s);
/* Will the setting @name have a value other than 0 once the plan is done? */
bool plan_setting_is_on(struct plan *plan, const char *name);
/* Plans that the log of the process gets the levels in @text, which was
 * checked, and which is borrowed until the plan was run. */
#define PLAN_LOG "log"
int plan_log(struct plan *plan, const struct scope *s, const struct tree *at,
	     const char *text);

/* Plans that @setting, one of plan->settings, gets @value, instead of a value
 * that was planned before. */
int plan_set(struct plan *plan, const struct scope *s, const struct tree *at,
	     const struct ulnet_setting *setting, int64_t value);

/* Carries the plan out. On failure the answer has the error of the step that
 * failed, and notes of steps that could not be undone. */
int plan_run(struct plan *plan);

#endif
