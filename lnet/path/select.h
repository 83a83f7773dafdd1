/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of a path: from which local NI to which NI of the peer
 * (requirements C3, C4). It only looks: nothing is made, referenced or counted
 * (path.h does that with what was chosen).
 *
 * There are eight cases, of three questions each:
 *
 *	Did the sender name a local NI?		SPEC or ANY
 *	Is the peer on a net of ours?		LOCAL or REMOTE
 *	May we choose among NIs of the peer's?	MR (multi-rail) or NMR
 *
 *	case		local NI			NI of the peer
 *	SPEC LOCAL MR	the one named			the NID named
 *	SPEC LOCAL NMR	the one named			the NID named
 *	ANY LOCAL MR	the best one of the best net	the best one there;
 *			if all are down, as REMOTE
 *	ANY LOCAL NMR	the one that the peer knows us	the NID named
 *			by, as long as it is up; else
 *			the best one
 *	... REMOTE ...	the same, but of the gateway: to which of the peer's
 *			nets, and by which gateway, say the routes
 *			(route/route.h). A peer that is not MR knows this node
 *			by one NI here as well.
 *
 * The gateway may belong to another CPT, which then chooses the rest.
 *
 * A local NI that is down is never chosen. "Best" is what rank.h says.
 */
#ifndef LNET_SELECT_H
#define LNET_SELECT_H

#include "lnet/path/rank.h"
#include "lnet/path/tried.h"

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

/* Flags of struct path_want. */
#define PATH_EXACT   1u /* to the NID named and no other: answers, recovery */
#define PATH_NEAR    4u /* numa_node is given */
#define PATH_PORTAL0 2u /* of LNet itself: the peer shall not know us by it */
#define PATH_FORWARD 8u /* of others: the same, and not back to .hop */
#define PATH_CALLER \
	16u	     /* to a process that only calls: it has connections
			  * with those gateways only that it has used */
#define PATH_HOP 32u /* dst is a gateway: any of its NIs on that net does */

struct path_want {
	const struct ulnet_nid *src;	 /* local NI named, or ANY */
	const struct ulnet_nid *dst;	 /* NID named */
	const struct paths_tried *tried; /* in vain; NULL: none */
	/* From which peer NI the message came that is answered, or passed on;
	 * NULL: neither. */
	const struct ulnet_nid *hop;
	unsigned int flags;
	int numa_node; /* with PATH_NEAR: where the message's memory is */
};

struct path {
	/* The next hop, from this NI. ni NULL: it is a gateway that another CPT
	 * owns. */
	struct lnet_ni *ni;
	struct lnet_peer_ni *lpni; /* NULL: nobody knows of it yet */
	struct lnet_route *route;  /* the next hop is its gateway; NULL: dst */
	struct lnet_ni *from; /* with a route: it must be this one; or NULL */
	/* Whom the message is for, by which of its NIs. */
	struct lnet_peer_ni *dst; /* NULL: nobody knows of it yet */
	enum path_case which;
};

/* Who was looked at on the way: nets, then local NIs, then NIs of the peer;
 * with a route, gateways, then NIs of the peer, then the same of the gateway:
 * its NIs stand behind local NIs. No stage is there twice. With PATH_HOP and a
 * local NI named, that one is in the trace of the peer's path already, and not
 * in this one. Ranks show by how much the criterion that decided did so. */
struct path_seen {
	enum ulnet_path_kind kind;
	struct ulnet_nid nid; /* of a net: its address is 0 */
	enum ulnet_path_why why;
	struct path_rank rank; /* all 0 of what was no candidate */
};

struct path_trace {
	struct path_seen *seen; /* for free() */
	unsigned int n, room;
	bool incomplete; /* there was no memory */
};

/* 0 and the path; -EINVAL: src is not one of ours, or on another net than dst,
 * which is on one of ours; -EHOSTUNREACH: no net of ours reaches dst, and no
 * route that is not down; -ENETDOWN: all NIs that would are down. Thread: the
 * CPT that owns dst. @trace: begins with seen NULL; or NULL, nobody wants to
 * know. */
int path_select(struct lnet_cpt *cpt, const struct path_want *want,
		struct path *path, struct path_trace *trace);

/* In how many of the tries that are known the gateway had a part, by whichever
 * of its NIDs. */
unsigned int path_tries_by(const struct lnet_cpt *cpt,
			   const struct paths_tried *tried,
			   const struct ulnet_nid *gateway);

#endif
