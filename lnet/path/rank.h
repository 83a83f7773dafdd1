/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How good a candidate for a path is, and which criterion decides between two
 * of them (requirement C3). A candidate is a gateway, a net, a local NI or
 * a peer NI.
 *
 * A rank has a key for each criterion; a larger key is better. The criteria
 * decide in the order of enum ulnet_path_why, the first one in which two ranks
 * differ alone; those that apply to a kind of candidate are in rank_criteria.
 * Ranks are thus totally ordered, in whatever order they are looked at, and
 * every loser can be told the one criterion that it lost by.
 *
 * Of a gateway, PEER_UP says whether the route by it is up, ROUTE_PRIORITY
 * which priority the route has (best of all if that is where the message that
 * is answered came from), and HOPS its length; UNTRIED, HEALTH and TURN are
 * those of the gateway, and CREDITS says how few messages wait for its credits.
 *
 *	criterion	net			local NI	peer NI
 *	PEER_UP		one of the peer's			the peer says
 *			is up					that it is up
 *	UNTRIED		a path over it was not tried yet by this message
 *	PEER_HEALTH	best NI of the peer's
 *	PEER_PRIORITY	of the peer's net
 *	HEALTH		best NI of ours		its own		its own
 *	PRIORITY	of our net		its own		its own
 *	LESS_TRIED	in how few tries it had a part
 *	PREFERRED				for one of	by the local
 *						the peer NIs	NI
 *	CONNECTED				a peer NI is	it is, while
 *						connected, or	another one
 *						none is being	is being
 *	NEAR					to the memory
 *	CREDITS					of this CPT	its own
 *	PEER_TURN	the peer's net
 *	TURN		ours, used longest ago	the same	the same
 *
 * Priorities, PREFERRED and ROUTE_PREFERRED are what policies of users say
 * (ruling.h); without any, all are equal. PREFERRED decides before ranks are
 * looked at, too, for a peer that is not multi-rail and knows this node by one
 * NI.
 *
 * Interfaces that are out of order are no candidates. Nothing in here changes
 * anything: whoever uses what was chosen moves it to the end of the turn.
 */
#ifndef LNET_PATH_RANK_H
#define LNET_PATH_RANK_H

#include "base/util.h"
#include "ulnet/path.h"

struct path_rank {
	int64_t key[LNET_PATH_CRITERIA];
};

/* Which criteria apply to a kind of candidates: bits. */
#define RANK_BY(why) (1u << LNET_PATH_##why)
/* Without policies candidates are equal in these. */
#define RANK_BY_POLICY                                                     \
	(RANK_BY(PEER_PRIORITY) | RANK_BY(PRIORITY) | RANK_BY(PREFERRED) | \
	 RANK_BY(ROUTE_PREFERRED))
static const uint32_t rank_criteria[] = {
	[LNET_PATH_GATEWAY] =
		RANK_BY(PEER_UP) | RANK_BY(UNTRIED) | RANK_BY(PEER_PRIORITY) |
		RANK_BY(ROUTE_PREFERRED) | RANK_BY(ROUTE_PRIORITY) |
		RANK_BY(HOPS) | RANK_BY(HEALTH) | RANK_BY(CREDITS) |
		RANK_BY(TURN),
	[LNET_PATH_NET] =
		RANK_BY(PEER_UP) | RANK_BY(UNTRIED) | RANK_BY(PEER_HEALTH) |
		RANK_BY(PEER_PRIORITY) | RANK_BY(HEALTH) | RANK_BY(PRIORITY) |
		RANK_BY(LESS_TRIED) | RANK_BY(PEER_TURN) | RANK_BY(TURN),
	[LNET_PATH_LOCAL_NI] = RANK_BY(UNTRIED) | RANK_BY(HEALTH) |
			       RANK_BY(PRIORITY) | RANK_BY(LESS_TRIED) |
			       RANK_BY(PREFERRED) | RANK_BY(CONNECTED) |
			       RANK_BY(NEAR) | RANK_BY(CREDITS) | RANK_BY(TURN),
	[LNET_PATH_PEER_NI] =
		RANK_BY(PEER_UP) | RANK_BY(UNTRIED) | RANK_BY(HEALTH) |
		RANK_BY(PRIORITY) | RANK_BY(LESS_TRIED) | RANK_BY(PREFERRED) |
		RANK_BY(CONNECTED) | RANK_BY(CREDITS) | RANK_BY(TURN),
};

/* Distances up to @range (the setting numa_range) count as one. */
static inline int64_t rank_of_distance(uint32_t distance, uint32_t range)
{
	return -(int64_t)MAX(distance, range);
}

/* @use: the number of the choice that took it last; 0: none did. */
static inline int64_t rank_of_use(uint64_t use)
{
	return -(int64_t)use;
}

/* @priority: 0 is the best. */
static inline int64_t rank_of_priority(uint32_t priority)
{
	return -(int64_t)priority;
}

/* Equal to all others in these, whatever is in the rest. */
static inline void rank_clear(uint32_t criteria, struct path_rank *r)
{
	r->key[LNET_PATH_CHOSEN] = 0; /* of equals, none is better */
#pragma GCC unroll 32
	for (unsigned int i = LNET_PATH_CHOSEN + 1; i < LNET_PATH_CRITERIA; i++)
		if (criteria & 1u << i)
			r->key[i] = 0;
}

/* The criterion, of @criteria, that decides between the two; LNET_PATH_CHOSEN:
 * none does, they are equal. */
static inline enum ulnet_path_why rank_decides(uint32_t criteria,
					       const struct path_rank *a,
					       const struct path_rank *b)
{
	/* Most of what a choice among many costs is here. */
#pragma GCC unroll 32
	for (unsigned int i = LNET_PATH_CHOSEN + 1; i < LNET_PATH_CRITERIA; i++)
		if (criteria & 1u << i && a->key[i] != b->key[i])
			return (enum ulnet_path_why)i;
	return LNET_PATH_CHOSEN;
}

/* Is @a better than @b? Of equals, neither is. */
static inline bool rank_is_better(uint32_t criteria, const struct path_rank *a,
				  const struct path_rank *b)
{
	enum ulnet_path_why why = rank_decides(criteria, a, b);

	return a->key[why] > b->key[why];
}

#endif
