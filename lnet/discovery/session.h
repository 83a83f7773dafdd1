/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session: the discovery of one peer, while it is under way. discovery.h:
 * when the session has its turn; state.h: its states. Owner: the CPT.
 */
#ifndef LNET_SESSION_H
#define LNET_SESSION_H

#include "lnet/discovery/ask.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/reconcile.h"
#include "lnet/peer/claim.h"

/* A call of lnet_discover() that waits for the end of a session. */
struct asker {
	struct list link;
	struct lnet_cpt *cpt; /* that owned @nid */
	struct ulnet_nid nid;
	unsigned int flags; /* LNET_DISCOVER_* */
	bool passed_on;	    /* to another peer, which has got @nid: once */
	ulnet_discover_fn done;
	void *arg;
};

/* A peer has one unless it is PEER_UNKNOWN or PEER_DISCOVERED. */
struct discovery {
	struct lnet_cpt *cpt;
	/* Referenced. NULL: the session is over, but @ask or @claim is still
	 * under way. */
	struct lnet_peer *peer;
	struct list all;		/* in disc_cpt.all */
	struct list queued;		/* in disc_cpt.first or .others */
	bool turn;			/* has a turn, and is not queued */
	struct list waiting;		/* of msg_out.link */
	struct list askers;		/* of asker.link */
	struct announcement *announced; /* to be merged, or NULL */
	struct announcement *merging; /* PEER_MERGING: being merged; or NULL */
	struct peer_claim claim;      /* for @merging */
	bool claiming;		      /* @claim is under way */
	struct ulnet_nid announced_by; /* the NI that has announced @merging */
	struct ulnet_nid asked;	      /* PEER_DISCOVERING: the NI asked */
	bool ask_again; /* @asked was claimed meanwhile: ask it once more */
	bool force_ping, force_push;
	uint32_t pid;	   /* of the process to be asked */
	uint32_t silent;   /* NIs of the peer that gave no answer this time */
	uint32_t failures; /* in a row, of one kind: */
	bool nids_in_use;  /* ... NIDs are in use on other CPTs; or silence */
	struct list lost;  /* in disc_cpt.lost */
	uint32_t pushing;  /* PEER_PUSHING: the version being pushed */
	int status;	   /* of the last failure */
	struct ulnet_nid ni, lpni; /* path of the last answer; ANY: none */
	struct timer timer;	   /* PEER_FAILED */
	struct ask ask;
};

static inline enum ulnet_discovery disc_mode(const struct lnet_cpt *cpt)
{
	return settings_discovery(&cpt->node->settings);
}

struct disc_facts disc_facts_of(const struct lnet_cpt *cpt,
				const struct lnet_peer *peer);
bool disc_is_up_to_date(const struct lnet_cpt *cpt,
			const struct lnet_peer *peer);

/* Is there a net or route to @nid, and is @nid not one of this node's? */
bool disc_may_ask(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* The session of @peer, which is begun if there is none. NULL: no memory, or
 * the CPT closes. */
struct discovery *disc_get(struct lnet_cpt *cpt, struct lnet_peer *peer);
/* @d is over, and neither @ask nor @claim is under way. */
void disc_free(struct discovery *d);

/* Makes the move of @ev; @d may be over when this returns. */
void disc_event(struct discovery *d, enum disc_event ev);
/* @d has a turn: takes the next step. */
void disc_look(struct discovery *d);
/* Has turns begun, soon. */
void disc_kick(struct disc_cpt *dc);

/* Keeps @ann to be merged next, unless the announcement that is kept already
 * is later. If their order is unknown, as the reply to a ping may overtake a
 * push, the peer is asked. If the session pauses because NIDs are in use on
 * other CPTs, it goes on pausing; otherwise two nodes that only repeat
 * themselves would push to each other without end. Takes @ann. */
void disc_hear(struct discovery *d, struct announcement *ann);
/* @ann is about @of (NULL: no peer of @cpt), not about the peer to which it
 * came. Takes @ann. */
void disc_pass_on(struct lnet_cpt *cpt, struct announcement *ann,
		  struct lnet_peer *of);
/* The peer that had @nid is gone, and its announcement was not merged: asks the
 * peer that has @nid now, if it is this CPT's. */
void disc_ask_heir(struct lnet_cpt *cpt, const struct ulnet_nid *nid);
/* The peer has lost all NIDs: messages that wait go to the peers that have
 * them. */
void disc_hand_over(struct discovery *d);

/* Merges d->announced; DISC_ON_MERGED or DISC_ON_MERGE_FAILED follows, now or
 * later (reconcile.c). */
void disc_merge(struct discovery *d);

#endif
