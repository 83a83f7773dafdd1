/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of a path: from which local NI to which NI of the peer
 * (requirements C3, C4). path_select() creates, references and counts nothing:
 * path_take() (path.h) does that with the path that was chosen.
 *
 * Three questions make eight cases:
 *
 *	Did the sender name a local NI?			SPEC or ANY
 *	Is the peer on a net of this node?		LOCAL or REMOTE
 *	May any NI of the peer be chosen?		MR (multi-rail) or NMR
 *
 *	case		local NI			NI of the peer
 *	SPEC LOCAL MR	the NI that the sender named	the best one of the
 *							target's net, which is
 *							the NID of the target
 *							while no other one is
 *							healthier
 *	SPEC LOCAL NMR	the NI that the sender named	the NID of the target
 *	ANY LOCAL MR	the best one of the best net	the best one there;
 *			if all are down, as REMOTE
 *	ANY LOCAL NMR	the one by which the peer	the NID of the target
 *			knows this node, if it is up;
 *			else the best one
 *	... REMOTE ...	as above, but to a gateway; the routes
 *			(route/route.h) decide which gateway, and which net of
 *			the peer. A peer that is not MR knows this node by one
 *			NI here as well.
 *
 * If another CPT owns the gateway, that CPT chooses the NIs.
 *
 * In the case SPEC LOCAL MR the pair of NIs that the sender named is preferred
 * as long as no other NI of the peer is healthier. A local NI that is down is
 * never chosen: if the sender named it, the message fails; only answers leave
 * by another one (MSG_PREFER_PATH). rank.h defines "best".
 */
#ifndef LNET_SELECT_H
#define LNET_SELECT_H

#include "lnet/path/failed_paths.h"
#include "lnet/path/rank.h"

struct lnet_cpt;
struct lnet_ni;
struct lnet_peer_ni;
struct lnet_route;

/* The cases, in the order of the three questions. */
enum path_case {
	PATH_SPEC_LOCAL_MR,
	PATH_SPEC_LOCAL_NMR,
	PATH_SPEC_REMOTE_MR,
	PATH_SPEC_REMOTE_NMR,
	PATH_ANY_LOCAL_MR,
	PATH_ANY_LOCAL_NMR,
	PATH_ANY_REMOTE_MR,
	PATH_ANY_REMOTE_NMR,
	PATH_CASES
};

/* Flags of struct path_request. */
/* only to request->dst: for answers and recovery pings */
#define PATH_EXACT 1u
/* a message of LNet itself: the local NI that is chosen does not become the one
 * by which the peer knows this node */
#define PATH_PORTAL0 2u
/* request->numa_node is set */
#define PATH_NEAR 4u
/* a message of another node: as PATH_PORTAL0; and the message must not go back
 * to request->hop */
#define PATH_FORWARD 8u
/* to a process that only calls: it has connections only to those gateways that
 * it has used itself */
#define PATH_CALLER 16u
/* dst is a gateway: any of its NIs on the same net will do */
#define PATH_HOP 32u
/* an answer: with a local NI named, only to request->dst, unless the peer says
 * that this NI is down */
#define PATH_KEEP 64u

/* What a message asks of path selection. */
struct path_request {
	/* the local NI that the sender named; LNET_NID_ANY: none */
	const struct ulnet_nid *src;
	const struct ulnet_nid *dst;	   /* the NID of the target */
	const struct failed_paths *failed; /* NULL: no attempt has failed yet */
	/* The peer NI that sent the message which is now answered or forwarded;
	 * NULL: the message is neither an answer nor forwarded. */
	const struct ulnet_nid *hop;
	unsigned int flags;
	/* with PATH_NEAR: the NUMA node of the message's memory */
	int numa_node;
};

struct path {
	/* The local NI from which the message goes to the next hop. NULL: the
	 * next hop is a gateway that another CPT owns, and that CPT will choose
	 * the NI. */
	struct lnet_ni *ni;
	struct lnet_peer_ni *lpni; /* the next hop; NULL: not known yet */
	/* the route, whose gateway is the next hop; NULL: none is needed */
	struct lnet_route *route;
	/* With a route: the only NI by which the message may leave; NULL: any.
	 */
	struct lnet_ni *from;
	/* the NI of the target; NULL: not known yet */
	struct lnet_peer_ni *dst;
	enum path_case which;
};

/*
 * A candidate that was considered. A trace lists nets, then local NIs, then NIs
 * of the peer. With a route it lists gateways, then NIs of the peer, then the
 * NIs on the way to the gateway. With PATH_HOP, a local NI that is named is not
 * in the trace, since the trace of the path to the peer has it already.
 */
struct path_seen {
	enum ulnet_path_kind kind;
	struct ulnet_nid nid; /* a net is shown as a NID with address 0 */
	enum ulnet_path_why why;
	/* all 0 for a candidate that could not be chosen */
	struct path_rank rank;
};

struct path_trace {
	struct path_seen *seen; /* to be freed with free() */
	unsigned int n, room;
	/* some candidates are missing, since there was no memory */
	bool incomplete;
};

/* Chooses a path. Returns 0; -EINVAL: src is not a local NI, or is on another
 * net than dst although this node is on dst's net; -EHOSTUNREACH: dst is on no
 * net of this node, and all routes to it are down, if there are any; -ENETDOWN:
 * all local NIs that could be used are down; -ESHUTDOWN: the node is being
 * closed. @trace: zeroed by the caller; NULL: no trace is wanted. Thread: the
 * CPT that owns dst. */
int path_select(struct lnet_cpt *cpt, const struct path_request *request,
		struct path *path, struct path_trace *trace);

#endif
