/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discovery of a CPT's peers: which are asked for their NIDs, which are told of
 * this node's NIDs, and when. Each peer is discovered in a session (session.h),
 * by a table of states (state.h); announcements are merged by plan (merge.h).
 *
 * Turns. A peer has one session at a time, and a session has one message of
 * discovery under way at a time. Up to DISC_TURNS_MAX sessions have a turn. The
 * others are queued: first those for which messages or users wait, then the
 * rest. A turn ends when the peer has answered, or after at most lnd_timeout
 * for each NID that is asked. Messages wait no longer than message/out.h says,
 * even if the queue is long.
 *
 * When discovery fails, the session pauses, longer with each failure, and gives
 * up after several failures. The next message to the peer begins a new session.
 * A peer that is up to date, or to which nothing is sent, costs only memory.
 *
 * A NID that has denied a claim is not asked for some time (peer/provenance.h).
 * If it is claimed meanwhile, it is asked when that time is over.
 *
 * The gateways of this node's routes are discovered anew once a minute (the
 * setting alive_router_check_interval), even if nothing is sent (requirement
 * B4), and when a route through them is added. A
 * process that only calls discovers them once a second. The answers of gateways
 * decide which routes are up (route/route.h). A gateway that does not answer
 * loses health, so recovery (recovery.h) pings it until it answers, or until
 * any other message comes from it. Gateways themselves need these pings, too: a
 * kernel node that routes considers a net down if no node of that net pings it.
 *
 * Owner: the CPT.
 */
#ifndef LNET_DISCOVERY_H
#define LNET_DISCOVERY_H

#include "lnet/discovery/state.h"
#include "lnet/message/msgs.h"

#define DISC_TURNS_MAX	 128
#define PUSH_TARGET_SIZE 272

struct lnet_me;
struct lnet_ni;
struct target_buf;

struct disc_cpt {
	struct lnet_cpt *cpt;
	/* version number of this node's ping information; never 0 */
	uint32_t version;
	/* the mode of discovery that is in effect for messages */
	enum ulnet_discovery mode;
	uint32_t nets; /* number of local nets in @version */
	/* Increases when the mode changes, when a local net is added, or when
	 * NIDs stop being configured: peers that were merged in an earlier era
	 * are asked again. */
	uint32_t era;
	struct list all; /* of discovery.all */
	/* of discovery.queued: sessions for which messages or users wait */
	struct list first;
	/* of discovery.queued: all other sessions that are queued */
	struct list others;
	/* of discovery.lost: peers that have lost NIDs while another peer is
	 * merged */
	struct list lost;
	uint32_t turns;	  /* number of sessions that have a turn */
	struct work work; /* runs disc_work() */
	bool posted;	  /* @work has been scheduled */
	/* a sweep looks for peers that need a push of @version */
	bool sweeping;
	struct peers_place swept; /* how far the sweep has come */
	struct list late;	  /* of delayed_claim.link */
	/* asks the gateways; armed as long as there are routes */
	struct timer gateways;
	/* @gateways goes on behind this gateway; LNET_NID_ANY: begins anew */
	struct ulnet_nid gateway;
	/* A function of node/watch.c, called in a turn: a peer has said that
	 * its NI @lpni is down, or does not belong to it any more. */
	void (*gone)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* A function of node/watch.c, called in a turn: this node's NIDs have
	 * changed. */
	void (*changed)(struct lnet_cpt *cpt);
	bool call_changed; /* @changed is still to be called */
};

/* ---- ping and push targets (target.c) ---- */

/* The match entries on portal 0 by which a CPT answers pings and receives the
 * pushes of peers. */
struct targets {
	/* the entry that answers pings; NULL: there is none */
	struct lnet_me *ping;
	uint64_t push; /* cookie of the push entry; 0: there is none */
	/* refreshes the targets after targets_changed() */
	struct work work;
	atomic_bool posted; /* @work has been scheduled */
	/* the push buffer is with the CPT that owns the NID that pushed */
	bool away;
	/* a buffer that could not be posted, since there was no memory; NULL:
	 * none */
	struct target_buf *spare;
	struct timer retry; /* tries again to post @spare */
};

/* ---- recovery (recovery.c) ---- */

/* A look at all NIs: recovery_of_all(). */
struct recovery_all {
	struct lnet_cpt *cpt;
	struct work work;
	atomic_bool posted;    /* @work has been scheduled */
	atomic_bool anew;      /* the look must begin from the start */
	struct peers_place at; /* how far the look has come */
};

/* The part of a CPT that this room (folder) and those below it know. */
struct discovery_cpt {
	struct msg_cpt msg;
	struct targets targets;
	struct disc_cpt disc;
	struct list ill; /* of recovery.link (recovery.c) */
	struct recovery_all all;
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
/* Ends all sessions: messages that wait are sent, users get -ESHUTDOWN. */
void disc_stop(struct lnet_cpt *cpt);
/* Is no session left, and no work scheduled? */
bool disc_is_idle(const struct lnet_cpt *cpt);

/* The ping information of this node has changed, and has @version now. */
void disc_news(struct lnet_cpt *cpt, uint32_t version);

/* The routes of this node have changed: the node may reach more peers, and it
 * has other gateways. */
void disc_routes_changed(struct lnet_cpt *cpt);

/* The mode of discovery may have changed. */
void disc_mode_changed(struct lnet_cpt *cpt);

/* A push that has come in. */
struct disc_push {
	struct ulnet_nid from;
	uint32_t pid;
	const uint8_t *bytes; /* borrowed until disc_pushed() returns */
	size_t length;	      /* number of the bytes */
};

/* Handles @push and counts it. Called on the CPT that owns push->from. */
void disc_pushed(struct lnet_cpt *cpt, const struct disc_push *push);

/* The connections of the net of @ni with @nid have ended. If the net is on one
 * host, another process may have @nid now: messages go to the other NIs of the
 * peer until @nid has said again whose it is. */
void disc_disconnected(struct lnet_cpt *cpt, const struct lnet_ni *ni,
		       const struct ulnet_nid *nid);

/* If @nid belongs to a gateway, asks the gateway again. That is needed if a
 * message through the gateway was lost; or if the gateway is in full health
 * again: it may have been restarted, and then does not know to whom to push
 * changes. */
void disc_gateway_suspect(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* ---- ping and push targets (target.c) ---- */

/* Prepares the targets of all CPTs. The settings and CPTs of the node must
 * exist. */
void targets_init(struct lnet *node);

/* Posts the targets of @cpt. targets_stop() must be called to remove them, also
 * if targets_start() has failed. */
int targets_start(struct lnet_cpt *cpt) must_check;
void targets_stop(struct lnet_cpt *cpt);
/* To be called after targets_stop(): is the push buffer back from other CPTs?
 */
bool targets_are_idle(const struct lnet_cpt *cpt);

/* To be called when what this node tells peers of itself has changed. @lost:
 * peers lose messages until they know it, since an NI is down or gone. Any
 * thread. */
void targets_changed(struct lnet *node, bool lost);

/* A function of lnd_upcalls. */
void upcall_ni_set_up(struct lnd_ni *lnd, bool up, const char *why);

/* The configuration of @cpt has changed: from now on pings are answered with
 * the new one. Returns 0; -ENOMEM: they are still answered with the old one. */
int targets_refresh(struct lnet_cpt *cpt) must_check;

#endif
