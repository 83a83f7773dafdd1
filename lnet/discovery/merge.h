/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a ping information means for what is known of the peer: a pure function,
 * which changes nothing and knows no peers, only their description.
 *
 * What was configured wins over what is discovered: a configured peer keeps its
 * NIDs, and other peers do not get them; a difference is worth a warning. And
 * no node becomes part of a peer without its own consent: two peers become one
 * when each has named the other.
 */
#ifndef LNET_DISCOVERY_MERGE_H
#define LNET_DISCOVERY_MERGE_H

#include "lnet/discovery/state.h"
#include "ulnet/lnet.h"

enum merge_source {
	MERGE_REPLY, /* to a ping: sent after we had asked */
	MERGE_PUSH,  /* may have been overtaken by a later one */
};

/* A NID that the peer has, as far as we know. */
struct merge_ni {
	struct ulnet_nid nid;
	bool down; /* so it said last */
	bool used; /* somebody here sends to the peer by this name */
};

/* What is known. All pointers are borrowed until return. */
struct merge_known {
	enum ulnet_discovery mode;
	struct ulnet_nid primary;
	const struct merge_ni *ni;
	unsigned int nnis;
	bool configured;
	bool multi_rail;   /* as configured, or as it said */
	bool discovered;   /* what it told was merged before ... */
	uint32_t sequence; /* ... and this was its number */
};

/* What came. */
struct merge_came {
	enum merge_source source;
	struct ulnet_nid from;		    /* it came from there */
	const struct ulnet_ping_info *info; /* decoded; its ->ni whole,
					     * unless @cut */
	size_t cut; /* bytes that the whole information has; 0: this is it */
	/* enum merge_theirs for each NID of info->ni, as far as that depends on
	 * who has the NID now: MERGE_ADD if nobody has, or the peer itself */
	const uint8_t *fate;
};

enum merge_verdict {
	MERGE_NONE,   /* as known, but for flags and states */
	MERGE_APPLY,  /* NIDs come or go, or the primary NID is another */
	MERGE_REFUSE, /* it differs from what was configured, or the mode is to
		       * verify only: as MERGE_NONE, with a warning */
	MERGE_ASK,    /* ping it: this is cut, or older than what we have */
	MERGE_DROP,   /* worth nothing, and an error of the peer */
};

enum merge_why {
	MERGE_WHY_NOT, /* nothing to say */
	MERGE_WHY_CUT,
	MERGE_WHY_OLD,
	MERGE_WHY_EMPTY,      /* without any NID of its own */
	MERGE_WHY_PLAIN_PUSH, /* a push of a peer that is not multi-rail */
	MERGE_WHY_CONFIGURED,
	MERGE_WHY_PRIMARY_TAKEN, /* somebody else keeps its primary NID */
	MERGE_WHY_VERIFY,
	MERGE_WHYS
};

/* What becomes of a NID of the information ... */
enum merge_theirs {
	MERGE_HAS,   /* the peer's already */
	MERGE_ADD,   /* comes from nobody */
	MERGE_TAKE,  /* comes from another peer, which loses it: that peer has
		      * named this one, by an NI that this one names */
	MERGE_CLAIM, /* stays another peer's, and is asked whose it is */
	MERGE_LEAVE, /* stays this node's, or another peer's by configuration,
		      * or nobody's */
};

/* ... and of one that the peer has. Bits. */
enum {
	MERGE_GOES = 1,	   /* the peer has it no more */
	MERGE_DOWN = 2,	   /* was up, is down now */
	MERGE_UP = 4,	   /* was down, is up now */
	MERGE_UNNAMED = 8, /* not in the information */
};

struct merge_plan {
	enum merge_verdict verdict;
	enum merge_why why;
	size_t ask; /* MERGE_ASK: bytes that the answer needs at least, or 0 */
	/* With MERGE_NONE, APPLY and REFUSE: */
	struct ulnet_nid primary; /* from now on */
	bool multi_rail;
	bool no_discovery;
	uint32_t sequence;
	unsigned int come, go; /* NIDs */
	unsigned int left;     /* ... that others keep */
	uint8_t *theirs;       /* enum merge_theirs of each of info->ni */
	uint8_t *ours;	       /* MERGE_* bits of each of known->ni */
};

/* 0 and @plan, which the caller gives to merge_plan_fini(); -ENOMEM. */
int merge_plan(const struct merge_known *known, const struct merge_came *came,
	       struct merge_plan *plan) must_check;
void merge_plan_fini(struct merge_plan *plan);

/* For messages; NULL for MERGE_WHY_NOT. */
const char *merge_why_text(enum merge_why why);

#endif
