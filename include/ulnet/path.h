/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths messages take, and why. Manual: lnet_path_explain(3). */
#ifndef ULNET_PATH_H
#define ULNET_PATH_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Health of an NI: from 0 to LNET_HEALTH_MAX. Failures lower it, and received
 * messages raise it. */
#define LNET_HEALTH_MAX 1000

/* Kinds of candidates for a path. One candidate of each kind is chosen, in this
 * order: a net, a local NI, a peer NI. If the target is on no net of this node,
 * a gateway is chosen before them, and they then make the path to the gateway.
 */
enum ulnet_path_kind {
	LNET_PATH_NET,
	LNET_PATH_LOCAL_NI,
	LNET_PATH_PEER_NI,
	LNET_PATH_GATEWAY,
};

/*
 * The criterion that decided between a candidate and the chosen one: the first
 * in this order in which the two differ. For each kind of candidate only some
 * of the criteria count: lnet_path_explain(3).
 */
enum ulnet_path_why {
	LNET_PATH_CHOSEN, /* none: this candidate was chosen */
	LNET_PATH_PEER_UP,
	LNET_PATH_UNTRIED,
	LNET_PATH_PEER_HEALTH,
	LNET_PATH_PEER_PRIORITY,
	LNET_PATH_ROUTE_PREFERRED,
	LNET_PATH_ROUTE_PRIORITY,
	LNET_PATH_HOPS,
	LNET_PATH_HEALTH,
	LNET_PATH_NAMED,
	LNET_PATH_PRIORITY,
	LNET_PATH_LESS_TRIED,
	LNET_PATH_PREFERRED,
	LNET_PATH_CONNECTED,
	LNET_PATH_NEAR,
	LNET_PATH_CREDITS,
	LNET_PATH_PEER_TURN,
	LNET_PATH_TURN,
	LNET_PATH_CRITERIA, /* number of criteria */
	/* The candidate could not be used: */
	LNET_PATH_DOWN = LNET_PATH_CRITERIA, /* the candidate is down */
	/* the sender named another candidate */
	LNET_PATH_NOT_ASKED,
	/* the candidate is a net that this node is not on */
	LNET_PATH_UNREACHED,
	LNET_PATH_WHY_COUNT
};

/* A gateway, net, local NI or peer NI that was considered. */
struct ulnet_path_candidate {
	enum ulnet_path_kind kind;
	struct ulnet_nid nid; /* a net is shown as a NID with address 0 */
	/* LNET_PATH_CHOSEN, or why the candidate was not chosen */
	enum ulnet_path_why why;
	/* the candidate's health, credits or priority, if that number decided
	 */
	int64_t own;
	int64_t best; /* that number of the chosen candidate */
};

/* The path that a message would take now. */
struct ulnet_path {
	/* 0, or a negative errno: why there is no path */
	int status;
	/* a description of the case, as constant text */
	const char *situation;
	/* If status is 0: the local NI, the NID that the message would go to,
	 * and the gateway (LNET_NID_ANY: none). */
	struct ulnet_nid local;
	struct ulnet_nid peer;
	struct ulnet_nid gateway;
	unsigned int ncandidates; /* number of candidates considered */
};

ULNET_EXPORT int lnet_path_explain(struct lnet *node,
				   const struct ulnet_nid *src,
				   const struct ulnet_nid *dst,
				   struct ulnet_path *path,
				   struct ulnet_path_candidate *candidates,
				   unsigned int n);
ULNET_EXPORT char *lnet_path_candidate_format(
	const struct ulnet_path_candidate *candidate, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
