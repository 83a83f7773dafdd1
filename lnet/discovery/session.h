/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session: the discovery of one peer while it is under way. discovery.h says
 * when a session has its turn; state.h has its states. Owner: the CPT.
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
	/* the CPT that owned @nid when the call was made */
	struct lnet_cpt *cpt;
	struct ulnet_nid nid;
	unsigned int flags; /* LNET_DISCOVER_* */
	/* the asker was passed on, once, to the session of another peer that
	 * has got @nid */
	bool passed_on;
	ulnet_discover_fn done;
	void *arg;
};

/* A session. A peer has one, except in the states PEER_UNKNOWN and
 * PEER_DISCOVERED. */
struct discovery {
	struct lnet_cpt *cpt;
	/* A reference. NULL: the session is over, but @ask or @claim is still
	 * under way. */
	struct lnet_peer *peer;
	struct list all;    /* in disc_cpt.all */
	struct list queued; /* in disc_cpt.first or .others */
	/* the session has a turn, and is not queued */
	bool turn;
	/* of msg_out.link: messages that wait for discovery */
	struct list waiting;
	/* of asker.link: calls that wait for the end */
	struct list askers;
	/* the announcement that is to be merged next; NULL: none */
	struct announcement *announced;
	/* with PEER_MERGING: the announcement that is being merged; NULL: none
	 */
	struct announcement *merging;
	struct peer_claim claim; /* the claim that is made to merge @merging */
	bool claiming;		 /* @claim is under way */
	/* the NI that has made the announcement @merging */
	struct ulnet_nid announced_by;
	/* with PEER_DISCOVERING: the NI that was asked */
	struct ulnet_nid asked;
	/* another peer has claimed @asked meanwhile: ask it once more */
	bool ask_again;
	bool force_ping, force_push;
	uint32_t pid; /* pid of the process to be asked */
	/* number of NIs of the peer that have not answered this time */
	uint32_t silent;
	/* number of failures in a row, all of the same kind */
	uint32_t failures;
	/* the kind: NIDs were in use on other CPTs; false: the peer was silent
	 */
	bool nids_in_use;
	struct list lost; /* in disc_cpt.lost */
	/* with PEER_PUSHING: the version that is being pushed */
	uint32_t pushing;
	int status; /* error of the last failure */
	/* path of the last answer; LNET_NID_ANY: none has come */
	struct ulnet_nid ni, lpni;
	struct timer timer; /* with PEER_FAILED: ends the pause */
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

/* Does this node have a net or route to @nid, and is @nid not this node
 * itself? */
bool disc_may_ask(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Does @nid name this node? A process that only calls shares its NIDs with
 * others, so a NID of its own names the process that listens there. */
bool disc_is_self(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Returns the session of @peer, and begins one if there is none. NULL: there is
 * no memory, or the CPT closes. */
struct discovery *disc_get(struct lnet_cpt *cpt, struct lnet_peer *peer);
/* Frees @d, which is over. Neither @ask nor @claim may be under way. */
void disc_free(struct discovery *d);

/* Makes the move for @ev. When this returns, @d may be over. */
void disc_event(struct discovery *d, enum disc_event ev);
/* To be called when @d has a turn: takes the next step. */
void disc_look(struct discovery *d);
/* Schedules turns of sessions: they begin soon. */
void disc_kick(struct disc_cpt *dc);

/* Keeps @ann to be merged next, unless the announcement that is kept already is
 * later. If their order is unknown (the reply to a ping may overtake a push),
 * the peer is asked. If the session pauses because NIDs are in use on other
 * CPTs, it continues to pause; otherwise two nodes that only repeat themselves
 * would push to each other without end. Takes over @ann. */
void disc_hear(struct discovery *d, struct announcement *ann);
/* @ann is not about the peer to whose session it came, but about @of (NULL:
 * about no peer of @cpt): gives it to the session of @of. Takes over @ann. */
void disc_pass_on(struct lnet_cpt *cpt, struct announcement *ann,
		  struct lnet_peer *of);
/* The peer that had @nid is gone, and its announcement was not merged: asks the
 * peer that has @nid now, if that belongs to this CPT. */
void disc_ask_heir(struct lnet_cpt *cpt, const struct ulnet_nid *nid);
/* @p, which two peers claim, has not answered: asks it again later. The pauses
 * are those of claims that were denied; after some of them @p is left alone
 * until it is used, or claimed again. */
void disc_ask_later(struct lnet_cpt *cpt, struct lnet_peer_ni *p);
/* A claim of @p was denied, or not answered: sets the time until which @p is
 * not asked. */
void disc_claim_denied(struct lnet_cpt *cpt, struct lnet_peer_ni *p);
/* The peer has lost all its NIDs: messages that wait go to the peers that have
 * the NIDs now. */
void disc_hand_over(struct discovery *d);

/* Merges d->announced. The event DISC_ON_MERGED or DISC_ON_MERGE_FAILED
 * follows, now or later (reconcile.c). */
void disc_merge(struct discovery *d);

#endif
