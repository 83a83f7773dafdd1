/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks: how candidates for a path are compared (requirement C3). A candidate
 * is a gateway, a net, a local NI or a peer NI.
 *
 * A rank has a key for each criterion; a larger key is better. The first
 * criterion, in the order of enum ulnet_path_why, in which two ranks differ
 * decides alone; rank_criteria says which criteria apply to a kind of
 * candidate. So ranks are totally ordered, and each loser lost by one
 * criterion.
 *
 * For a gateway, PEER_UP says whether its route is up, ROUTE_PRIORITY is the
 * priority of the route (for an answer the best priority, if the request came
 * through that gateway), HOPS the length of the route, and CREDITS how few
 * messages wait for credits of the gateway. UNTRIED, HEALTH and TURN are about
 * the gateway itself.
 *
 *	criterion	net			local NI	peer NI
 *	PEER_UP		an NI of the peer			the peer says
 *			is up					that it is up
 *	UNTRIED		over it there is a path on which the message has not
 *			failed yet
 *	PEER_HEALTH	best NI of the peer
 *	PEER_PRIORITY	of the peer's net
 *	HEALTH		best local NI		its own		its own
 *	NAMED						the sender has
 *							named it, and
 *							the local NI
 *	PRIORITY	of the local net	its own		its own
 *	LESS_TRIED	on how few failed paths it was
 *	PREFERRED				for one of	by the local
 *						the peer NIs	NI
 *	CONNECTED				a peer NI is	it is, while
 *						connected, or	another one
 *						none is being	is being
 *	NEAR		of this host		to the memory
 *	CREDITS					of this CPT	its own
 *	PEER_TURN	the peer's net
 *	TURN		local net, used		used longest	used longest
 *			longest ago		ago		ago
 *
 * Priorities, PREFERRED and ROUTE_PREFERRED come from the user's policies
 * (verdict.h); without policies all candidates are equal in them, except that
 * NIs prefer those in their own IP network. For a peer that is not multi-rail
 * and knows this node by one NI, that NI is chosen without ranking.
 *
 * Interfaces that are down are no candidates.
 */
#ifndef LNET_PATH_RANK_H
#define LNET_PATH_RANK_H

#include "base/util.h"
#include "ulnet/path.h"

struct path_rank {
	int64_t key[LNET_PATH_CRITERIA];
};

/* A bit for each criterion. */
#define RANK_BY(why) (1u << LNET_PATH_##why)
/* Without a table of policies all candidates are equal in these criteria. */
#define RANK_BY_POLICY                                                     \
	(RANK_BY(PEER_PRIORITY) | RANK_BY(PRIORITY) | RANK_BY(PREFERRED) | \
	 RANK_BY(ROUTE_PREFERRED))
/* In these all candidates are equal, except in one of the cases of select.h,
 * which sets their keys. */
#define RANK_SELDOM RANK_BY(NAMED)
static const uint32_t rank_criteria[] = {
	[LNET_PATH_GATEWAY] =
		RANK_BY(PEER_UP) | RANK_BY(UNTRIED) | RANK_BY(PEER_PRIORITY) |
		RANK_BY(ROUTE_PREFERRED) | RANK_BY(ROUTE_PRIORITY) |
		RANK_BY(HOPS) | RANK_BY(HEALTH) | RANK_BY(CREDITS) |
		RANK_BY(TURN),
	[LNET_PATH_NET] = RANK_BY(PEER_UP) | RANK_BY(UNTRIED) |
			  RANK_BY(PEER_HEALTH) | RANK_BY(PEER_PRIORITY) |
			  RANK_BY(HEALTH) | RANK_BY(PRIORITY) |
			  RANK_BY(LESS_TRIED) | RANK_BY(NEAR) |
			  RANK_BY(PEER_TURN) | RANK_BY(TURN),
	[LNET_PATH_LOCAL_NI] = RANK_BY(UNTRIED) | RANK_BY(HEALTH) |
			       RANK_BY(PRIORITY) | RANK_BY(LESS_TRIED) |
			       RANK_BY(PREFERRED) | RANK_BY(CONNECTED) |
			       RANK_BY(NEAR) | RANK_BY(CREDITS) | RANK_BY(TURN),
	[LNET_PATH_PEER_NI] = RANK_BY(PEER_UP) | RANK_BY(UNTRIED) |
			      RANK_BY(HEALTH) | RANK_BY(NAMED) |
			      RANK_BY(PRIORITY) | RANK_BY(LESS_TRIED) |
			      RANK_BY(PREFERRED) | RANK_BY(CONNECTED) |
			      RANK_BY(CREDITS) | RANK_BY(TURN),
};

/* Distances up to @range (the setting numa_range) count as equally near. */
static inline int64_t rank_of_distance(uint32_t distance, uint32_t range)
{
	return -(int64_t)MAX(distance, range);
}

/* @use: the number of the choice that took the candidate last; 0: no choice
 * did. */
static inline int64_t rank_of_use(uint64_t use)
{
	return -(int64_t)use;
}

/* @priority: 0 is the best. */
static inline int64_t rank_of_priority(uint32_t priority)
{
	return -(int64_t)priority;
}

/* Sets the keys of @criteria to 0; the other keys are undefined. */
static inline void rank_clear(uint32_t criteria, struct path_rank *r)
{
	r->key[LNET_PATH_CHOSEN] = 0; /* read by rank_is_better() */
#pragma GCC unroll 32
	for (unsigned int i = LNET_PATH_CHOSEN + 1; i < LNET_PATH_CRITERIA; i++)
		if (criteria & 1u << i)
			r->key[i] = 0;
}

/* Returns the criterion of @criteria that decides between the two, or
 * LNET_PATH_CHOSEN if they are equal in all. */
static inline enum ulnet_path_why rank_decides(uint32_t criteria,
					       const struct path_rank *a,
					       const struct path_rank *b)
{
	/* Unrolled, because a choice among many candidates spends most of its
	 * time here. */
#pragma GCC unroll 32
	for (unsigned int i = LNET_PATH_CHOSEN + 1; i < LNET_PATH_CRITERIA; i++)
		if (criteria & 1u << i && a->key[i] != b->key[i])
			return (enum ulnet_path_why)i;
	return LNET_PATH_CHOSEN;
}

/* Is @a better than @b? Not if they are equal. */
static inline bool rank_is_better(uint32_t criteria, const struct path_rank *a,
				  const struct path_rank *b)
{
	enum ulnet_path_why why = rank_decides(criteria, a, b);

	return a->key[why] > b->key[why];
}

#endif
