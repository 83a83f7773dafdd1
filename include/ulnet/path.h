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

/* The health of an NI of this node or of a peer: so much, less what failures
 * have taken. */
#define LNET_HEALTH_MAX 1000

/* What candidates for a path are: one of each kind is chosen, in this order. If
 * the target is on none of this node's nets, a gateway is chosen first, and
 * then the others for the gateway. */
enum ulnet_path_kind {
	LNET_PATH_NET,
	LNET_PATH_LOCAL_NI,
	LNET_PATH_PEER_NI,
	LNET_PATH_GATEWAY,
};

/*
 * What decides between two candidates: the first criterion in which they
 * differ, in this order. Gateways, nets, local NIs and peer NIs are compared by
 * some of the criteria each.
 */
enum ulnet_path_why {
	LNET_PATH_CHOSEN, /* nothing: it is the one */
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
	LNET_PATH_CRITERIA, /* those above, and no criterion: */
	LNET_PATH_DOWN = LNET_PATH_CRITERIA, /* it is out of order */
	LNET_PATH_NOT_ASKED,		     /* the caller named another one */
	LNET_PATH_UNREACHED, /* a net that this node is not on */
	LNET_PATH_WHY_COUNT
};

/* A gateway, a net, a local NI or a peer NI that was looked at. */
struct ulnet_path_candidate {
	enum ulnet_path_kind kind;
	struct ulnet_nid nid;	 /* of a net: its address is 0 */
	enum ulnet_path_why why; /* LNET_PATH_CHOSEN, or what it lost by */
	int64_t own;  /* if health, credits or priority decided: this one's */
	int64_t best; /* ... and that of the chosen one */
};

/* What would become of a message that was sent now. */
struct ulnet_path {
	int status;		/* 0, or why there is no path */
	const char *situation;	/* what was to be chosen: a constant text */
	struct ulnet_nid local; /* of status 0: the NI that it would leave by */
	struct ulnet_nid peer;	/* of status 0: the NID that it would go to */
	struct ulnet_nid gateway; /* of status 0: by way of; ANY: directly */
	unsigned int ncandidates; /* how many were looked at */
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
