/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discovery of a CPT's peers: who is asked, told, and merged, and when. Each is
 * discovered in a session (session.h), whose course is a table (state.h); what
 * an answer means is a plan (merge.h).
 *
 * Shares. A peer has one session at a time, and in it one question. Of the
 * peers, DISC_TURNS_MAX have a turn; the others wait, those with messages that
 * wait for them before the rest. A turn ends with the peer's answer, or without
 * it after lnd_timeout for each NID that was asked: until then a message waits
 * for its own share of time (message/out.h), not for the queue.
 *
 * A discovery that has failed pauses, longer with each failure, and is given up
 * after some: the next message begins anew. A peer that is up to date, or that
 * nobody wants, costs nothing but its record.
 *
 * After a NID has denied a claim, it is not asked for a time
 * (peer/provenance.h). If it is claimed meanwhile, it is asked when that time
 * is over, since perhaps nobody ever names or uses it again.
 *
 * The gateways of this node's routes are asked how they are, whether anything
 * is sent or not (requirement B4): each is discovered anew once a minute, by a
 * process that only calls once a second, and at once when a route by it comes.
 * What it tells decides which of its routes are up (route/route.h). One that
 * does not answer loses health like any peer that fails a message, so recovery
 * (recovery.h) pings it until it does; and whatever comes from it meanwhile
 * shows that it is alive. Asking does something for the gateway, too: a kernel
 * node that routes takes a net from which nobody asks for one that it cannot
 * reach.
 *
 * Owner of all of it: the CPT.
 */
#ifndef LNET_DISCOVERY_H
#define LNET_DISCOVERY_H

#include "lnet/discovery/state.h"
#include "lnet/discovery/target.h"
#include "lnet/message/msgs.h"

#define DISC_TURNS_MAX 128

struct disc_cpt {
	struct lnet_cpt *cpt;
	uint32_t version; /* of what is told of this node's NIDs; never 0 */
	enum ulnet_discovery mode; /* that messages go by */
	uint32_t nets;		   /* local ones, in that version */
	uint32_t era; /* increases with each change of the mode, with each local
		       * net that comes, and when NIDs stop being configured:
		       * peers that were merged before are asked again */
	struct list all;    /* of discovery.all */
	struct list first;  /* of discovery.queued: messages wait, or users */
	struct list others; /* of discovery.queued */
	struct list lost;   /* of discovery.lost, while a peer is merged */
	uint32_t turns;	    /* that are being taken */
	struct work work;   /* begins turns, and tells news to peers */
	bool posted;
	/* The peers are being walked through, for those that were not told this
	 * version yet. */
	bool sweeping;
	struct peers_place swept; /* up to there */
	struct list late;      /* of late_claim.link */
	struct timer gateways; /* to ask them; armed while there are routes */
	/* Called when a peer has said that its NI @lpni is down, or not its own
	 * any more: tells who watches the peer's connections (node/watch.c), in
	 * a turn. */
	void (*gone)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* Called after disc_news(): the same for this node's own NIDs, in a
	 * turn. */
	void (*changed)(struct lnet_cpt *cpt);
	bool unsaid; /* disc_cpt.changed is to be called */
};

/* What a CPT has for telling peers of this node, and for asking them. */
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
/* Ends all discoveries: messages go on, users hear -ESHUTDOWN. */
void disc_stop(struct lnet_cpt *cpt);
/* Is nothing left to be done? */
bool disc_is_idle(const struct lnet_cpt *cpt);

/* What this node tells of itself has changed, to @version, which is later. */
void disc_news(struct lnet_cpt *cpt, uint32_t version);

/* Routes have changed: there may be a way now to ask peers to which there was
 * none, and there are other gateways. */
void disc_routes_changed(struct lnet_cpt *cpt);

/* The mode may be another. */
void disc_mode_changed(struct lnet_cpt *cpt);

/* A push that has come in. */
struct disc_push {
	struct ulnet_nid from;
	uint32_t pid;
	const uint8_t *bytes; /* borrowed until return */
	size_t length;	      /* of them */
};

/* On the CPT that owns push->from. Counts it, too. */
void disc_pushed(struct lnet_cpt *cpt, const struct disc_push *push);

/* If @nid is a gateway's, its state may have changed since it was asked last: a
 * message that may have gone by it is lost, and so may be the state of its
 * interfaces; or it is in full health again, and may have been restarted, so
 * that it knows no peer that it would tell of changes. */
void disc_gateway_suspect(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

#endif
