/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way messages go, and why. Manual: lnet_path_explain(3).
 */
#ifndef ULNET_PATH_H
#define ULNET_PATH_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The health of an NI, of this node or of a peer, is from 0 to this: failures
 * decrease it, and received messages increase it. */
#define LNET_HEALTH_MAX 1000

/* Kinds of candidates for a path: one of each kind is chosen, in this order. If
 * the target is on none of this node's nets, a gateway is chosen first, and
 * then the others for the way to the gateway. */
enum ulnet_path_kind {
	LNET_PATH_NET,
	LNET_PATH_LOCAL_NI,
	LNET_PATH_PEER_NI,
	LNET_PATH_GATEWAY,
};

/*
 * The criterion that decided between a candidate and the chosen one: the first
 * in which both differ, in this order. Each kind of candidate is compared by
 * some of them.
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
	LNET_PATH_CRITERIA, /* how many; no criterion, but not usable: */
	LNET_PATH_DOWN = LNET_PATH_CRITERIA, /* it is down */
	LNET_PATH_NOT_ASKED,		     /* the sender named another one */
	LNET_PATH_UNREACHED, /* a net that this node is not on */
	LNET_PATH_WHY_COUNT
};

/* A gateway, net, local NI or peer NI that was considered. */
struct ulnet_path_candidate {
	enum ulnet_path_kind kind;
	struct ulnet_nid nid;	 /* of a net: its address is 0 */
	enum ulnet_path_why why; /* LNET_PATH_CHOSEN, or what it lost by */
	int64_t own;  /* health, credits or priority, if that decided */
	int64_t best; /* ... of the chosen one */
};

/* The path that a message would take now. */
struct ulnet_path {
	int status;		/* 0, or why there is no path */
	const char *situation;	/* which case it is: a constant text */
	/* Only with status 0: the NI it would leave by, the NID it would go to,
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
