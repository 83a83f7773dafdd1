/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discovery of a CPT's peers: who is asked, told, and merged, and when. The
 * course of each is a table (state.h); what an answer means is a plan
 * (merge.h).
 *
 * Shares. A peer has one discovery at a time, and in it one question. Of the
 * peers, DISC_TURNS_MAX have a turn; the others wait, those with messages that
 * wait for them before the rest. A turn ends with the peer's answer, or without
 * it after lnd_timeout for each NID that was asked: until then a message waits
 * for its own share of time (message/await.h), not for the queue.
 *
 * A discovery that has failed pauses, longer with each failure, and is given up
 * after some: the next message begins anew. A peer that is up to date, or that
 * nobody wants, costs nothing but its record.
 *
 * Owner of all of it: the CPT.
 */
#ifndef LNET_DISCOVER_H
#define LNET_DISCOVER_H

#include "base/list.h"
#include "base/loop.h"
#include "lnet/discovery/state.h"
#include "ulnet/lnet.h"

struct lnet_cpt;
struct lnet_peer;
struct lnet_peer_ni;

#define DISC_TURNS_MAX 128

struct disc_cpt {
	struct lnet_cpt *cpt;
	uint32_t version;   /* of what is told of this node's NIDs; never 0 */
	enum ulnet_discovery mode; /* that messages go by */
	uint32_t nets;	    /* local ones, in that version */
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
	uint32_t bucket, mask;
	/* Called when a peer has said that its NI @lpni is down, or not its own
	 * any more: tells who watches the peer's connections (node/watch.h), in
	 * a turn. */
	void (*gone)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* Called after disc_news(): the same for this node's own NIDs, in a
	 * turn. */
	void (*changed)(struct lnet_cpt *cpt);
	bool unsaid; /* disc_cpt.changed is to be called */
};

void disc_init(struct lnet_cpt *cpt);
/* Ends all discoveries: messages go on, users hear -ESHUTDOWN. */
void disc_stop(struct lnet_cpt *cpt);
/* Is nothing left to be done? */
bool disc_is_idle(const struct lnet_cpt *cpt);

/* What this node tells of itself has changed, to @version, which is later. */
void disc_news(struct lnet_cpt *cpt, uint32_t version);

/* Routes have changed: there may be a way now to ask peers to which there was
 * none. */
void disc_routes(struct lnet_cpt *cpt);

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

#endif
