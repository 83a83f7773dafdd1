/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The discovery of one peer, while it is under way. Who has a turn when, is in
 * discovery.h; the course is a table (state.h).
 *
 * Owner of all of it: the CPT.
 */
#ifndef LNET_SESSION_H
#define LNET_SESSION_H

#include "lnet/discovery/ask.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/reconcile.h"
#include "lnet/peer/claim.h"

/* Somebody who asked for a discovery, of a peer that had @nid then. */
struct asker {
	struct list link;
	struct lnet_cpt *cpt; /* that owned @nid */
	struct ulnet_nid nid;
	unsigned int flags; /* LNET_DISCOVER_* */
	bool passed_on;	    /* to a peer that has got it since: once */
	ulnet_discover_fn done;
	void *arg;
};

/* A peer has one while it is neither PEER_UNKNOWN nor PEER_DISCOVERED. */
struct discovery {
	struct lnet_cpt *cpt;
	struct lnet_peer *peer; /* held; NULL: over, but for the question that
				 * is under way */
	struct list all;	/* disc_cpt.all */
	struct list queued;	/* disc_cpt.first or .others */
	bool turn;		/* ... or it has one */
	struct list waiting;	/* of msg_out.link */
	struct list askers;	/* of asker.link */
	struct announcement *told;    /* to be merged, or NULL */
	struct announcement *merging; /* PEER_MERGING: being merged; or NULL */
	struct peer_claim claim;      /* for that, ... */
	bool claiming;		      /* ... while it is under way */
	struct ulnet_nid told_by;     /* which NI has told what is merged */
	struct ulnet_nid asked;	      /* PEER_DISCOVERING: that NI, which ... */
	bool again; /* ... is asked once more: it was claimed meanwhile */
	bool force_ping, force_push;
	uint32_t pid;	   /* of the process to be asked */
	uint32_t silent;   /* NIs of the peer that gave no answer this time */
	uint32_t failures; /* in a row, ... */
	bool held_up;	   /* ... since NIDs are in use; else by silence */
	struct list lost;  /* disc_cpt.lost */
	uint32_t pushing;  /* PEER_PUSHING: that version */
	int status;	   /* of the last failure */
	struct ulnet_nid ni, lpni; /* by which the peer has answered; ANY */
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

/* What this node has no net or route to, it has no way to ask; and it need not
 * ask itself, nor other processes that have its own NIDs. */
bool disc_may_ask(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* The discovery of @peer; NULL: no memory, or the CPT closes. */
struct discovery *disc_get(struct lnet_cpt *cpt, struct lnet_peer *peer);
/* @d is over, and neither the LND nor another CPT has any part of it. */
void disc_free(struct discovery *d);

/* Something has happened; @d may be over when this returns. */
void disc_event(struct discovery *d, enum disc_event ev);
/* The peer has a turn: takes the next step. */
void disc_look(struct discovery *d);
/* There may be turns to begin: at the end of this turn of the loop, or in the
 * next one. */
void disc_kick(struct disc_cpt *dc);

/* Takes @told, which is merged next, unless what already waits to be merged is
 * later. One may have overtaken the other, as the reply to a ping may overtake
 * a push: if the order is not known, the peer is asked. If the session pauses
 * because NIDs are in use on other CPTs, it goes on pausing: to answer a peer
 * that only repeats itself would have two nodes tell each other without end. */
void disc_hear(struct discovery *d, struct announcement *told);
/* @told has come to a peer, but is about @of; NULL: about none of @cpt's. */
void disc_pass_on(struct lnet_cpt *cpt, struct announcement *told,
		  struct lnet_peer *of);
/* What a peer with @nid told was not merged, and that peer exists no more: asks
 * the peer that has @nid now, if it is this CPT's. */
void disc_ask_heir(struct lnet_cpt *cpt, const struct ulnet_nid *nid);
/* The peer has lost all its NIDs: what waits goes to those who have them. */
void disc_hand_over(struct discovery *d);

/* What was told becomes what is known; DISC_ON_MERGED or
 * DISC_ON_MERGE_FAILED, now or later (reconcile.c). */
void disc_merge(struct discovery *d);

#endif
