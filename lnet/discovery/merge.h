/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans how the ping information of a peer changes what is known of the peer: a
 * pure function.
 *
 * Configuration wins over discovery: a configured peer keeps its NIDs, and
 * other peers do not get them; a difference is logged. And no node becomes part
 * of a peer without its own consent: two peers become one when each has named
 * the other.
 */
#ifndef LNET_DISCOVERY_MERGE_H
#define LNET_DISCOVERY_MERGE_H

#include "lnet/discovery/state.h"
#include "ulnet/lnet.h"

enum merge_source {
	MERGE_REPLY, /* to a ping: made after we had asked */
	MERGE_PUSH,  /* a later one may have overtaken it */
};

/* A NID that the peer has, as far as is known. */
struct merge_ni {
	struct ulnet_nid nid;
	bool down; /* by the last information */
	bool used; /* messages of this node name it as their target */
};

/* What is known of the peer. Pointers are borrowed until return. */
struct merge_known {
	enum ulnet_discovery mode;
	struct ulnet_nid primary;
	const struct merge_ni *ni;
	unsigned int nnis;
	bool configured;
	bool multi_rail;   /* as configured, or as it said */
	bool discovered;   /* information was merged before ... */
	uint32_t sequence; /* ... with this sequence number */
};

/* The information that came. */
struct merge_came {
	enum merge_source source;
	struct ulnet_nid from;
	const struct ulnet_ping_info *info; /* decoded, unless @cut */
	size_t cut; /* bytes of the whole information; 0: it is whole */
	/* enum merge_fate for each NID of info->ni, by who has the NID now:
	 * MERGE_ADD if no peer or this one has it. */
	const uint8_t *fate;
};

enum merge_verdict {
	MERGE_NONE,   /* no NID changes; flags and states may */
	MERGE_APPLY,  /* NIDs come or go, or the primary NID changes */
	MERGE_REFUSE, /* it contradicts the configuration, or the mode is to
		       * verify only: as MERGE_NONE, with a warning */
	MERGE_ASK,    /* ping the peer: this is cut off, or old */
	MERGE_DROP,   /* useless: an error of the peer */
};

enum merge_why {
	MERGE_WHY_NOT, /* no reason to give */
	MERGE_WHY_CUT,
	MERGE_WHY_OLD,
	MERGE_WHY_EMPTY,      /* no NIDs */
	MERGE_WHY_PLAIN_PUSH, /* a push of a peer that is not multi-rail */
	MERGE_WHY_CONFIGURED,
	MERGE_WHY_PRIMARY_TAKEN, /* another peer keeps its primary NID */
	MERGE_WHY_VERIFY,
	MERGE_WHYS
};

/* What happens to a NID of the information. */
enum merge_fate {
	MERGE_HAS,   /* the peer has it already */
	MERGE_ADD,   /* the peer gets it; no other peer has it */
	MERGE_TAKE,  /* the peer gets it from another peer, which has named
		      * this one by an NI that this one names */
	MERGE_CLAIM, /* stays another peer's, and is asked whose it is */
	MERGE_LEAVE, /* stays this node's, a configured peer's, or nobody's */
};

/* What happens to a NID that the peer has. Bits. */
enum {
	MERGE_GOES = 1,	   /* the peer loses it */
	MERGE_DOWN = 2,	   /* was up, is down now */
	MERGE_UP = 4,	   /* was down, is up now */
	MERGE_UNNAMED = 8, /* not in the information */
};

struct merge_plan {
	enum merge_verdict verdict;
	enum merge_why why;
	size_t ask; /* MERGE_ASK: buffer that the answer needs, bytes, or 0 */
	/* With MERGE_NONE, APPLY and REFUSE, from now on: */
	struct ulnet_nid primary;
	bool multi_rail;
	bool no_discovery;
	uint32_t sequence;
	unsigned int come, go; /* numbers of NIDs */
	unsigned int left;     /* number of NIDs that others keep */
	uint8_t *named;	       /* enum merge_fate of each of info->ni */
	uint8_t *known;	       /* MERGE_* bits of each of known->ni */
};

/* 0: makes @plan, until merge_plan_fini(); -ENOMEM. */
int merge_plan(const struct merge_known *known, const struct merge_came *came,
	       struct merge_plan *plan) must_check;
void merge_plan_fini(struct merge_plan *plan);

/* @why for the log; NULL for MERGE_WHY_NOT. */
const char *merge_why_text(enum merge_why why);

#endif
