/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discovery of a CPT's peers: which are asked for their NIDs, which are told of
 * this node's NIDs, and when. Each peer is discovered in a session (session.h),
 * by a table of states (state.h); announcements are merged by plan (merge.h).
 *
 * Turns. A peer has one session at a time, with one message of discovery under
 * way. DISC_TURNS_MAX peers have a turn; the others are queued, those for which
 * messages or users wait before the rest. A turn ends with the answer of the
 * peer, or after at most lnd_timeout for each NID asked. Messages wait no
 * longer than message/out.h says, however long the queue is.
 *
 * A discovery that has failed pauses, longer with each failure, and gives up
 * after several; the next message to the peer begins anew. A peer that is up to
 * date, or to which nothing is sent, costs only memory.
 *
 * A NID that has denied a claim is not asked for some time (peer/provenance.h).
 * If it is claimed meanwhile, it is asked when that time is over.
 *
 * The gateways of this node's routes are discovered anew once a minute, whether
 * anything is sent or not (requirement B4), and when a route through them is
 * added; by a process that only calls, once a second. Their answers decide
 * which routes are up (route/route.h). A gateway that does not answer loses
 * health, so recovery (recovery.h) pings it until it answers, or until any
 * message from it arrives. A gateway also needs to be asked: a kernel node that
 * routes considers a net down if no node of that net pings it.
 *
 * Owner: the CPT.
 */
#ifndef LNET_DISCOVERY_H
#define LNET_DISCOVERY_H

#include "lnet/discovery/state.h"
#include "lnet/message/msgs.h"

#define DISC_TURNS_MAX 128
#define PUSH_TARGET_SIZE 272

struct lnet_me;
struct target_buf;

struct disc_cpt {
	struct lnet_cpt *cpt;
	uint32_t version; /* of this node's ping information; never 0 */
	enum ulnet_discovery mode; /* in effect for messages */
	uint32_t nets;		   /* local ones, in that version */
	uint32_t era; /* increases when the mode changes, a local net is added,
		       * or NIDs stop being configured: peers that were merged
		       * before are asked again */
	struct list all;    /* of discovery.all */
	struct list first;  /* of discovery.queued: messages or users wait */
	struct list others; /* of discovery.queued */
	struct list lost;   /* of discovery.lost, while a peer is merged */
	uint32_t turns;	    /* sessions that have a turn */
	struct work work;   /* disc_work() */
	bool posted;	    /* @work is under way */
	bool sweeping;	    /* looking for peers that need a push of @version */
	struct peers_place swept; /* ... up to there */
	struct list late;	  /* of delayed_claim.link */
	struct timer gateways; /* to ask them; armed while there are routes */
	/* node/watch.c's, called in a turn: a peer has said that its NI @lpni
	 * is down, or not its own any more. */
	void (*gone)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* node/watch.c's, called in a turn: this node's NIDs have changed. */
	void (*changed)(struct lnet_cpt *cpt);
	bool call_changed; /* @changed is to be called */
};

/* ---- ping and push targets (target.c) ---- */

/* The match entries on portal 0 by which a CPT answers pings and takes the
 * pushes of peers. */
struct targets {
	struct lnet_me *ping; /* NULL: not posted */
	uint64_t push;	      /* cookie of the push entry; 0: not posted */
	struct work work;     /* targets_changed() */
	atomic_bool posted;   /* @work is under way */
	bool away; /* the push buffer is with the CPT that owns the pusher */
	struct target_buf *spare; /* could not be posted: no memory */
	struct timer retry;	  /* to post @spare */
};

/* The part of a CPT that this room and those below it know. */
struct discovery_cpt {
	struct msg_cpt msg;
	struct targets targets;
	struct disc_cpt disc;
	struct list ill; /* of recovery.link (recovery.c) */
};

static inline struct discovery_cpt *discovery_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct discovery_cpt,
			    msg.path.peer.portal.cpt);
}

static inline struct disc_cpt *disc_cpt(const struct lnet_cpt *cpt)
{
	return &discovery_cpt(cpt)->disc;
}

void disc_init(struct lnet_cpt *cpt);
/* Ends all sessions: messages are sent, users get -ESHUTDOWN. */
void disc_stop(struct lnet_cpt *cpt);
/* Is there no session, and is no work under way? */
bool disc_is_idle(const struct lnet_cpt *cpt);

/* This node's ping information has changed, to @version. */
void disc_news(struct lnet_cpt *cpt, uint32_t version);

/* Routes have changed: more peers may be within reach, and there are other
 * gateways. */
void disc_routes_changed(struct lnet_cpt *cpt);

/* The mode of discovery may have changed. */
void disc_mode_changed(struct lnet_cpt *cpt);

/* A push that has come in. */
struct disc_push {
	struct ulnet_nid from;
	uint32_t pid;
	const uint8_t *bytes; /* borrowed until return */
	size_t length;	      /* of them */
};

/* Handles and counts @push, on the CPT that owns push->from. */
void disc_pushed(struct lnet_cpt *cpt, const struct disc_push *push);

/* If @nid is a gateway's, asks the gateway again: a message through it was
 * lost, or it is in full health again and may have been restarted, and so does
 * not know to whom to push changes. */
void disc_gateway_suspect(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* ---- ping and push targets (target.c) ---- */

/* Prepares the targets of all CPTs. The node's settings and CPTs exist. */
void targets_init(struct lnet *node);

/* Posts the targets of @cpt. targets_stop() removes them, also after
 * targets_start() has failed. */
int targets_start(struct lnet_cpt *cpt) must_check;
void targets_stop(struct lnet_cpt *cpt);
/* After targets_stop(): has the push buffer returned from other CPTs? */
bool targets_are_idle(const struct lnet_cpt *cpt);

/* What this node tells its peers of itself has changed. Any thread. */
void targets_changed(struct lnet *node);

/* As lnd_upcalls has it. */
void upcall_ni_set_up(struct lnd_ni *lnd, bool up, const char *why);

/* The configuration of @cpt has changed: pings are answered with the new one.
 * -ENOMEM: they are still answered with the old one. */
int targets_refresh(struct lnet_cpt *cpt) must_check;

#endif
