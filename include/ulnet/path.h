/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths messages take, and why. Manual: lnet_path_explain(3). */
#ifndef ULNET_PATH_H
#define ULNET_PATH_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The health of an NI is from 0 to LNET_HEALTH_MAX: failures lower it, and
 * received messages raise it. */
#define LNET_HEALTH_MAX 1000

/* Kinds of candidates for a path: one of each kind is chosen, in this order. If
 * the target is on none of this node's nets, a gateway is chosen first, and
 * then the others for the path to the gateway. */
enum ulnet_path_kind {
	LNET_PATH_NET,
	LNET_PATH_LOCAL_NI,
	LNET_PATH_PEER_NI,
	LNET_PATH_GATEWAY,
};

/*
 * The criterion that decided between a candidate and the chosen one: the first
 * one, in this order, in which they differ. Each kind of candidate is compared
 * by some of the criteria.
 */
enum ulnet_path_why {
	LNET_PATH_CHOSEN, /* none: it is the chosen one */
	LNET_PATH_PEER_UP,
	LNET_PATH_UNTRIED,
	LNET_PATH_PEER_HEALTH,
	LNET_PATH_PEER_PRIORITY,
	LNET_PATH_ROUTE_PREFERRED,
	LNET_PATH_ROUTE_PRIORITY,
	LNET_PATH_HOPS,
	LNET_PATH_HEALTH,
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
	LNET_PATH_DOWN = LNET_PATH_CRITERIA, /* it is down */
	LNET_PATH_NOT_ASKED,		     /* the sender named another one */
	LNET_PATH_UNREACHED, /* a net that this node is not on */
	LNET_PATH_WHY_COUNT
};

/* A gateway, net, local NI or peer NI that was considered. */
struct ulnet_path_candidate {
	enum ulnet_path_kind kind;
	struct ulnet_nid nid;	 /* of a net: with address 0 */
	enum ulnet_path_why why; /* LNET_PATH_CHOSEN, or why it was not */
	int64_t own;  /* its health, credits or priority, if that decided */
	int64_t best; /* the same of the chosen one */
};

/* The path that a message would take now. */
struct ulnet_path {
	int status;		/* 0, or why there is no path */
	const char *situation;	/* the case, as constant text */
	/* With status 0: the local NI, the NID that the message would go to,
	 * and the gateway (ANY: none). */
	struct ulnet_nid local;
	struct ulnet_nid peer;
	struct ulnet_nid gateway;
	unsigned int ncandidates; /* how many were considered */
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
