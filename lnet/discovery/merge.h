/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans how the ping information of a peer changes what is known of the peer;
 * without side effects.
 *
 * Configuration wins over discovery: a configured peer keeps its NIDs, and
 * other peers do not get them; differences are logged. And no node becomes a
 * part of a peer without its own consent: two peers become one only when each
 * has named the other.
 */
#ifndef LNET_DISCOVERY_MERGE_H
#define LNET_DISCOVERY_MERGE_H

#include "lnet/discovery/state.h"
#include "ulnet/lnet.h"

enum merge_source {
	/* the reply to a ping: it was made after this node had asked */
	MERGE_REPLY,
	MERGE_PUSH, /* a push: a later push may have overtaken it */
};

/* A NID that the peer has, as far as this node knows. */
struct merge_ni {
	struct ulnet_nid nid;
	bool down; /* the last information said that it is down */
	bool used; /* messages of this node have named it as their target */
};

/* What this node knows of the peer. Pointers are borrowed until return. */
struct merge_known {
	enum ulnet_discovery mode;
	struct ulnet_nid primary;
	const struct merge_ni *ni;
	unsigned int nnis;
	bool configured;
	/* as the user has configured it, or as the peer has said */
	bool multi_rail;
	bool discovered;   /* information of the peer was merged before */
	uint32_t sequence; /* sequence number of that information */
};

/* The information that has come. */
struct merge_came {
	enum merge_source source;
	struct ulnet_nid from;
	/* decoded; undefined if @cut is not 0 */
	const struct ulnet_ping_info *info;
	/* bytes of the whole information if it was cut off; 0: it is whole */
	size_t cut;
	/* array: for each NID of info->ni an enum merge_fate that says who has
	 * the NID now. MERGE_ADD stands for both: no peer has it, or this peer
	 * has */
	const uint8_t *fate;
};

enum merge_verdict {
	MERGE_NONE,  /* no NID comes or goes; flags and states may change */
	MERGE_APPLY, /* NIDs come or go, or the primary NID changes */
	/* the information contradicts the configuration, or the mode is only to
	 * verify: as MERGE_NONE, but with a warning */
	MERGE_REFUSE,
	/* the peer must be pinged, since the information is cut off or old */
	MERGE_ASK,
	/* the information is of no use: the peer has made an error */
	MERGE_DROP,
};

enum merge_why {
	MERGE_WHY_NOT, /* there is no reason to tell */
	MERGE_WHY_CUT,
	MERGE_WHY_OLD,
	MERGE_WHY_EMPTY, /* it names no NIDs */
	/* it is a push from a peer that is not multi-rail */
	MERGE_WHY_PLAIN_PUSH,
	MERGE_WHY_CONFIGURED,
	MERGE_WHY_PRIMARY_TAKEN, /* another peer keeps its primary NID */
	MERGE_WHY_VERIFY,
	MERGE_WHYS
};

/* What happens to a NID that the information names. */
enum merge_fate {
	MERGE_HAS, /* the peer has it already, and keeps it */
	MERGE_ADD, /* the peer gets it; no other peer has it */
	/* the peer gets it from another peer. That peer has named this one, by
	 * an NI that this peer names, too */
	MERGE_TAKE,
	MERGE_CLAIM, /* it stays with another peer, and is asked whose it is */
	/* it stays with this node, with a configured peer, or with nobody */
	MERGE_LEAVE,
};

/* What happens to a NID that the peer has; bits. */
enum {
	MERGE_GOES = 1,	   /* the peer loses it */
	MERGE_DOWN = 2,	   /* it was up, and is down now */
	MERGE_UP = 4,	   /* it was down, and is up now */
	MERGE_UNNAMED = 8, /* the information does not name it */
};

struct merge_plan {
	enum merge_verdict verdict;
	enum merge_why why;
	/* with MERGE_ASK: bytes of the buffer that the answer needs; 0: any */
	size_t ask;
	/* With MERGE_NONE, MERGE_APPLY and MERGE_REFUSE: what holds from now
	 * on. */
	struct ulnet_nid primary;
	bool multi_rail;
	bool no_discovery;
	uint32_t sequence;
	unsigned int come, go; /* number of NIDs that come, and that go */
	unsigned int left;     /* number of NIDs that other peers keep */
	/* array: an enum merge_fate for each NID of info->ni */
	uint8_t *named;
	/* array: MERGE_* bits for each NID of known->ni */
	uint8_t *known;
};

/* Makes @plan, to be freed with merge_plan_fini(). Returns 0 or -ENOMEM. */
int merge_plan(const struct merge_known *known, const struct merge_came *came,
	       struct merge_plan *plan) must_check;
void merge_plan_fini(struct merge_plan *plan);

/* Returns the text of @why for the log, or NULL for MERGE_WHY_NOT. */
const char *merge_why_text(enum merge_why why);

#endif
