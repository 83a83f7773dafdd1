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
 *	SPEC LOCAL MR	the one named			the NID named
 *	SPEC LOCAL NMR	the one named			the NID named
 *	ANY LOCAL MR	the best one of the best net	the best one there;
 *			if all are down, as REMOTE
 *	ANY LOCAL NMR	the one by which the peer	the NID named
 *			knows this node, if it is up;
 *			else the best one
 *	... REMOTE ...	as above, but to a gateway; the routes
 *			(route/route.h) decide which gateway, and which net of
 *			the peer. A peer that is not MR knows this node by one
 *			NI here as well.
 *
 * If another CPT owns the gateway, that CPT chooses the NIs.
 *
 * A local NI that is down is never chosen. rank.h defines "best".
 */
#ifndef LNET_SELECT_H
#define LNET_SELECT_H

#include "lnet/path/rank.h"

struct lnet_cpt;
struct lnet_ni;
struct lnet_peer_ni;
struct lnet_route;

/* In the order of the three questions. */
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

/*
 * The paths over which a message has failed: another attempt prefers paths that
 * are not among them. Paths are kept as NIDs, because interfaces may be deleted
 * meanwhile. Only messages that have failed have this structure.
 */
#define FAILED_PATHS_MAX 16
struct failed_paths {
	uint32_t n; /* failures, including those no longer kept in path[] */
	struct {
		struct ulnet_nid ni;
		struct ulnet_nid peer;
	} path[FAILED_PATHS_MAX]; /* failure number i is at [i % MAX] */
};

/* A message failed over the path from @ni to @peer. */
void failed_paths_add(struct failed_paths *f, const struct ulnet_nid *ni,
		      const struct ulnet_nid *peer);
/* How many of the failures kept were on paths from @ni to @peer; NULL stands
 * for any NID. */
unsigned int failed_paths_count(const struct failed_paths *f,
				const struct ulnet_nid *ni,
				const struct ulnet_nid *peer);
/* How many of the failures kept were on paths to the peer @gateway, by any of
 * its NIDs. */
unsigned int failed_paths_by(const struct lnet_cpt *cpt,
			     const struct failed_paths *f,
			     const struct ulnet_nid *gateway);
/* The path of the last failure; there must have been one. */
void failed_paths_last(const struct failed_paths *f, struct ulnet_nid *ni,
		       struct ulnet_nid *peer);

/* Flags of struct path_request. */
#define PATH_EXACT 1u /* only to the NID named: answers, recovery pings */
#define PATH_NEAR  4u /* numa_node is given */
#define PATH_PORTAL0 \
	2u /* LNet's own message: the local NI chosen does not
			  * become the one by which the peer knows this node */
#define PATH_FORWARD \
	8u /* another node's message: as PATH_PORTAL0, and it
			  * must not go back to .hop */
#define PATH_CALLER \
	16u	     /* to a process that only calls: it is connected
			  * only to gateways that it has used itself */
#define PATH_HOP 32u /* dst is a gateway: any of its NIs on that net will do */

/* What a message asks of path selection. */
struct path_request {
	const struct ulnet_nid *src;	   /* the local NI named, or ANY */
	const struct ulnet_nid *dst;	   /* the NID named */
	const struct failed_paths *failed; /* NULL: no attempt has failed yet */
	/* The peer NI from which a message came that is now answered or
	 * forwarded; NULL: neither. */
	const struct ulnet_nid *hop;
	unsigned int flags;
	int numa_node; /* with PATH_NEAR: where the message's memory is */
};

struct path {
	/* From this NI to the next hop. NULL: the next hop is a gateway that
	 * another CPT owns, which will choose the NI. */
	struct lnet_ni *ni;
	struct lnet_peer_ni *lpni; /* the next hop; NULL: not known yet */
	struct lnet_route *route;  /* to the next hop's gateway; NULL: direct */
	/* With a route: the only NI that the message may leave by; NULL: any.
	 */
	struct lnet_ni *from;
	struct lnet_peer_ni *dst; /* the target's NI; NULL: not known yet */
	enum path_case which;
};

/*
 * A candidate that was looked at. The trace lists nets, then local NIs, then
 * NIs of the peer; with a route, gateways, then NIs of the peer, then the NIs
 * for the way to the gateway. With PATH_HOP and a local NI named, that NI is
 * not in the trace, since it is already in that of the peer's path.
 */
struct path_seen {
	enum ulnet_path_kind kind;
	struct ulnet_nid nid; /* of a net: its address is 0 */
	enum ulnet_path_why why;
	struct path_rank rank; /* all 0 if it could not be chosen at all */
};

struct path_trace {
	struct path_seen *seen; /* for free() */
	unsigned int n, room;
	bool incomplete; /* there was no memory */
};

/* Returns 0 and the path; -EINVAL: src is not a local NI, or is on another net
 * than dst although this node is on dst's net; -EHOSTUNREACH: dst is neither
 * on a net of this node nor reached by a route that is not down; -ENETDOWN: all
 * local NIs that could be used are down. @trace: zeroed by the caller, or NULL:
 * not wanted. Thread: the CPT that owns dst. */
int path_select(struct lnet_cpt *cpt, const struct path_request *request,
		struct path *path, struct path_trace *trace);

#endif
