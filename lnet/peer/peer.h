/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: a peer has peer nets, which have peer NIs. An unknown NID becomes a
 * peer with one NI, and is its primary NID.
 *
 * A peer belongs, with all its NIs, to one CPT: the directory says to which
 * (core/directory.h). After a peer has moved to another CPT, messages still
 * come in on the CPT that it has left, as long as connections lead there. For
 * these messages that CPT keeps aliases: peer NIs to which it sends nothing.
 *
 * Strangers can make a node remember up to peers_max peer NIs. Beyond that the
 * peer that has been idle longest is forgotten, with all its NIs. Peers that an
 * administrator has configured (lnet_peer_add(3)) are never forgotten. An idle
 * peer costs only memory. NIDs that only another peer has named count against
 * that peer. A NID that its peer does not name any more is forgotten as soon as
 * nothing uses it, unless messages of this node have named it as their target.
 *
 * Owner: the CPT.
 */
#ifndef LNET_PEER_H
#define LNET_PEER_H

#include "base/fsm.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/loop.h"
#include "lnet/core/stat.h"
#include "lnet/nid/nid.h"
#include "lnet/portal/portal.h"
#include "ulnet/path.h"

struct lnd_terms;
struct discovery;
struct lnet_ni;

/* The state of a peer's discovery (discovery/state.h). */
enum peer_state {
	PEER_UNKNOWN,	  /* it was not discovered */
	PEER_QUEUED,	  /* it waits for the next step of discovery */
	PEER_DISCOVERING, /* it was asked for its NIDs, by a ping */
	PEER_MERGING,	  /* its announcement is being carried out */
	PEER_PUSHING,	  /* it was told of this node's NIDs, by a push */
	PEER_DISCOVERED,
	PEER_FAILED, /* discovery has failed, and pauses */
	PEER_STATES
};
extern const struct fsm_state peer_states[PEER_STATES];

/* When nets, primary or multi_rail have changed, cpt_topology_changed() must be
 * called. */
struct lnet_peer {
	/* number of NIs in use, 1 if configured, and 1 for each peer_hold() */
	uint32_t refs;
	struct fsm fsm;
	bool configured; /* an administrator has configured the peer */
	/* each side knows the other as one peer, whichever NIs a message takes
	 */
	bool multi_rail;
	/* For discovery: */
	/* discovery has ended once, with or without success: messages do not
	 * wait for it any more */
	bool settled;
	/* an announcement of the peer was carried out; the next four fields are
	 * about the last one */
	bool merged;
	/* the era in which it was carried out (disc_cpt.era) */
	uint32_t merged_in;
	bool no_discovery; /* the peer does not take part in discovery */
	uint32_t sequence; /* its sequence number */
	uint32_t pid;	   /* pid of the process that has made it */
	/* version of this node's ping information (disc_cpt.version) that the
	 * peer has acknowledged; 0: none */
	uint32_t acked_version;
	/* the session of the peer; NULL: it has none */
	struct discovery *discovery;

	/* ns: until this time the peer may owe this node an answer, which may
	 * come from any of its NIs */
	uint64_t asked_until;
	/* it has one NI, and the peer that had this NI before does not name it
	 * any more: it is not kept (provenance_abandon()) */
	bool abandoned;
	/* if @abandoned: number of messages that had come from the NI when it
	 * was abandoned */
	uint64_t heard;
	uint32_t nnis;
	/* number of claims of other CPTs' NIDs that are under way (claim.h) */
	uint32_t claims;
	struct ulnet_nid primary;
	struct list nets; /* of lnet_peer_net.link, in order of creation */
	/* where the peer stands while it is idle: peer_cpt.idle or .abandoned
	 */
	struct list *rest;
	struct list idle; /* in *rest while refs is 0 */
};

struct lnet_peer_net {
	struct list link;
	struct lnet_peer *peer;
	uint32_t segment; /* number of the segment: lnet/nid/nid.h */
	/* of lnet_peer_ni.link, in order of creation; never empty once the net
	 * is complete */
	struct list nis;
};

/*
 * What a peer NI uses of each resource that the peer NIs of a CPT share. Shares
 * are for each peer NI, not for each peer: a peer may announce other NIDs with
 * each message, but a NID that has connections cannot be made up
 * (base/share.h). Messages beyond a share block only the connections of their
 * peer NI, not those of the peer's other NIs.
 */
struct lnet_quota {
	/* number of its messages that were received and are not over */
	uint32_t msgs;
	/* how many of @msgs are throttled (throttle.h) */
	uint32_t throttled;
	/* the layer above takes no more of its requests for now: all of them
	 * are throttled */
	bool full;
	/* how many of @throttled have no bounce buffer */
	uint32_t throttled_unread;
	/* number of its bounce buffers in use (unexpected.h) */
	uint32_t unexpected;
	uint64_t unexpected_bytes; /* bytes in those bounce buffers */
	/* number of its messages that are queued without a bounce buffer */
	uint32_t unexpected_unread;
	/* ns: when a throttled message last proceeded; or, if none has, when
	 * the first one was throttled */
	uint64_t stuck_since;
	/* for throttle.c: number of the last round in which a message of it was
	 * passed over */
	uint64_t passed_over;
	/* bytes of copies of payloads sent to it (tamper.h) */
	uint64_t copied_bytes;
	/* forward.h: buffers with messages from it; messages from it that wait
	 * for a buffer; the maximum of both together; buffers with messages to
	 * it. */
	uint32_t forwards, forward_waits, forwards_max, forwards_to;
	/* the last message that was to be forwarded to it has failed */
	bool forwards_fail;
	/* ns: until this time nothing more is logged about its shares */
	uint64_t msgs_quiet_until, drops_quiet_until, unexpected_quiet_until;
};

/* What policies say about a peer NI (path/verdict.h). */
struct peer_verdict {
	/* the verdict is valid while cpt.rules has this value */
	uint64_t as_of;
	uint32_t priority, net_priority;
	/* NULL: no local NI and no route is preferred */
	struct peer_preferred *preferred;
};

/* Which CPT owns a peer NI. */
enum peer_place {
	PEER_HERE, /* this CPT */
	/* another CPT owns it, but this CPT receives messages from it */
	PEER_ALIAS,
	PEER_PLACES
};
extern const struct fsm_state peer_places[PEER_PLACES];

/* Some causes of failed sends are also counted for each peer NI. PEER_FAILED()
 * is the index of the counter of a cause; causes with an index from
 * PEER_FAILURES on are not counted. */
#define PEER_FAILURES	   (PEER_FAILED(LNET_CAUSE_NETWORK_TIMEOUT) + 1)
#define PEER_FAILED(cause) ((unsigned int)(cause)-LNET_CAUSE_REMOTE_ERROR)

/* Recovery pings (recovery.c). */
struct peer_recovery {
	uint32_t silent; /* pings in a row that were not answered */
	/* ns: when the next ping is due; 0: a ping is under way */
	uint64_t next;
};

struct lnet_peer_ni {
	struct list link;
	struct hash_node hash; /* in peer_cpt.peers, by NID */
	struct lnet_peer *peer;
	struct lnet_peer_net *net;
	struct fsm place;      /* enum peer_place */
	struct fsm provenance; /* enum peer_provenance (provenance.h) */
	struct ulnet_nid nid;
	/* the NI that has last named it as one of its peer's NIs; LNET_NID_ANY:
	 * none has */
	struct ulnet_nid claimed_by;
	/* for reconcile.c: number of claims in a row that it has denied */
	uint32_t claims_denied;
	/* for reconcile.c, ns: until this time it is not asked about claims */
	uint64_t claims_after;
	/* for discovery.c: it will be asked when the time @claims_after has
	 * come */
	bool claim_delayed;
	struct list unverified; /* in peer_cpt.unverified */
	/* of an alias: claims under way (claim.h) through which this CPT may
	 * get it */
	uint32_t pending_claims;
	/* for path.c: the local NI by which a peer that is not multi-rail knows
	 * this node; LNET_NID_ANY: none */
	struct ulnet_nid preferred;
	/* for path.c: the local NI from which everything is sent to it */
	struct lnet_ni *only;
	/* @only is valid while this is the CPT's topology; 0: there is none */
	uint64_t only_in;
	/* for path.c: number of the last choice that took it */
	uint64_t use;
	struct peer_verdict verdict; /* for path/verdict.c */
	/* of a process that only calls: the gateway of its last message;
	 * LNET_NID_ANY: none. Also set in aliases */
	struct ulnet_nid heard_via;
	int32_t health; /* 0 to LNET_HEALTH_MAX */
	/* it was announced as down, and nothing has come from it since */
	bool down;
	/* messages of this node have named it as their target, so it stays in
	 * its peer until another peer gets it */
	bool used;
	/* for health.c: turn in which it lost health last; 0: never */
	uint64_t lost_in;
	/* for health.c: when its last illness ended, ns (0: it had none), and
	 * whether all pings of that time were answered soon */
	uint64_t well_since;
	bool pings_passed;
	/* for health.c: number of relapses, up to HEALTH_RELAPSES */
	uint8_t relapses;
	stat_t failed[PEER_FAILURES];
	/* for recovery.c; NULL: it is not being pinged */
	struct peer_recovery *recovery;
	/* number of messages that are being sent to it or received from it */
	uint32_t refs;
	struct lnet_quota has;
	/* Scratch space of node_check(): a count; and, ns, when it first found
	 * that the peer may owe an answer (TIME_NEVER: it owes none; 0: at the
	 * first look). */
	int32_t counted;
	uint64_t owes_since;
	/* number of credits; 0: not set yet, since there is no local net to it
	 */
	int32_t credits_max;
	int32_t credits, credits_min;
	/* for route.c: the magnitude of its queue, as it was last written to
	 * routes */
	uint8_t queue_told;
	/* Of msg_out.link: messages that wait for a credit. Those in @first get
	 * theirs before those in @queue: answers, because the peer may not read
	 * before it has them; and messages of MDs with LNET_MD_URGENT. */
	struct list first, queue;
	uint64_t queued_bytes;
	/* of msg_out.link: messages that wait for a connection */
	struct list connecting;
	uint64_t nconnecting; /* length of @connecting */
	/* Bits (lnet_ni.bit) of the local NIs that are connecting to it for
	 * messages, and of those that are connected. An NI in neither: unknown.
	 */
	uint64_t connecting_from, connected_from;
	struct traffic_stats traffic;
};

struct peer_cpt {
	struct portal_cpt portal;
	struct hash peers; /* of lnet_peer_ni.hash */
	/* the peer NI that was looked up last; NULL: none */
	struct lnet_peer_ni *peer_last;
	/* of lnet_peer.idle; the peer that has been idle longest is first */
	struct list idle;
	/* of lnet_peer.idle, for peers that are .abandoned */
	struct list abandoned;
	/* number of all peers that are .abandoned, idle or not */
	uint32_t nabandoned;
	/* for provenance.c: looks at abandoned peers again after @forget_pause,
	 * ns */
	struct timer forget;
	uint64_t forget_pause;
	struct pool peer_pool, net_pool, ni_pool;
	/* of lnet_peer_ni.unverified; the one that has been unverified longest
	 * is first */
	struct list unverified;
	uint32_t nunverified; /* length of @unverified */
	/* A function of discovery: asks @lpni whose it is, if it can be asked.
	 */
	void (*question)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* A function of discovery: @lpni, to which the caller has a reference,
	 * has become an alias, so messages for it must go to the CPT that owns
	 * it now. */
	void (*moved)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* A function of recovery: NIs of @peer have come from another CPT,
	 * perhaps in bad health. */
	void (*came)(struct lnet_cpt *cpt, struct lnet_peer *peer);
	/* A function of discovery: NIDs are not configured any more, so peers
	 * that have named them may get them. */
	void (*freed)(struct lnet_cpt *cpt);
	unsigned int claims; /* number of claims under way (claim.h) */
	/* peers are discovered before the first message is sent to them */
	bool discovery;
};

static inline struct peer_cpt *peer_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct peer_cpt, portal.cpt);
}

/* Returns the NI of @peer that follows @p (NULL: the first one), net by net.
 * NULL: there is none. */
static inline struct lnet_peer_ni *peer_next_ni(const struct lnet_peer *peer,
						const struct lnet_peer_ni *p)
{
	const struct list *net = p ? &p->net->link : peer->nets.next;
	const struct list *l = p ? p->link.next : NULL;

	for (; net != &peer->nets; net = net->next, l = NULL) {
		const struct lnet_peer_net *pnet =
			container_of(net, struct lnet_peer_net, link);

		if (!l)
			l = pnet->nis.next;
		if (l != &pnet->nis)
			return container_of(l, struct lnet_peer_ni, link);
	}
	return NULL;
}

/* Walks through the NIs of @peer. No NI may leave @peer meanwhile. */
#define peer_for_each_ni(p, peer) \
	for ((p) = peer_next_ni(peer, NULL); (p); (p) = peer_next_ni(peer, p))

/* Takes a reference: until peer_drop(), @peer is neither forgotten nor freed.
 */
static inline void peer_hold(struct lnet_peer *peer)
{
	if (peer->refs++ == 0)
		list_del(&peer->idle);
}
void peer_drop(struct lnet_cpt *cpt, struct lnet_peer *peer);

/* Until the time @until (ns), @peer may owe this node an answer. */
static inline void peer_asked(struct lnet_peer *peer, uint64_t until)
{
	peer->asked_until = MAX(peer->asked_until, until);
}

/* Returns the peer NI that was looked up last if it has @nid, otherwise NULL.
 * Mostly it has, since messages of a peer come in batches. */
static inline struct lnet_peer_ni *peer_last(const struct lnet_cpt *cpt,
					     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *last = peer_cpt(cpt)->peer_last;

	return likely(last && lnet_nid_eq(&last->nid, nid)) ? last : NULL;
}

/* The slow parts of peer_find() and peer_get(). They return no reference. */
struct lnet_peer_ni *peer_search(const struct lnet_cpt *cpt,
				 const struct ulnet_nid *nid);
struct lnet_peer_ni *peer_find_or_meet(struct lnet_cpt *cpt,
				       const struct ulnet_nid *nid);

/* Returns the peer NI with @nid, but no reference. NULL: @nid is unknown. */
static inline struct lnet_peer_ni *peer_find(const struct lnet_cpt *cpt,
					     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_last(cpt, nid);

	return likely(lpni) ? lpni : peer_search(cpt, nid);
}

/* Returns the NI of @peer with @nid, or NULL. */
static inline struct lnet_peer_ni *peer_member(struct lnet_cpt *cpt,
					       const struct lnet_peer *peer,
					       const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	return lpni && lpni->peer == peer ? lpni : NULL;
}

/* Called when nobody has a reference to an NI of @peer any more. */
void peer_is_idle(struct lnet_peer *peer);
static inline void peer_unref(struct lnet_peer_ni *lpni)
{
	BUG_ON(lpni->refs == 0);
	if (unlikely(--lpni->refs == 0) && --lpni->peer->refs == 0)
		peer_is_idle(lpni->peer);
}
static inline void peer_ref(struct lnet_peer_ni *lpni)
{
	if (lpni->refs++ == 0)
		peer_hold(lpni->peer);
}

/* Does what peer_ref() and then peer_unref() do: the peer of @lpni has been
 * used, or heard of, and is not the next idle one to be forgotten. */
static inline void peer_touch(struct lnet_peer_ni *lpni)
{
	struct lnet_peer *peer = lpni->peer;

	if (likely(peer->refs || peer->idle.next == peer->rest))
		return;
	list_del(&peer->idle);
	peer_is_idle(peer);
}

/* Returns the peer NI with @nid, and makes it if @nid is unknown. The result is
 * a reference, to be dropped with peer_unref(). NULL: there is no memory, or
 * peers_max peer NIs are in use. */
static inline struct lnet_peer_ni *peer_get(struct lnet_cpt *cpt,
					    const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_last(cpt, nid);

	if (unlikely(!lpni))
		lpni = peer_find_or_meet(cpt, nid);
	if (likely(lpni))
		peer_ref(lpni);
	return lpni;
}

/* Counts one more message that waits for a connection from the local NI with
 * @ni_bit to @lpni. peer_connected() will be called for it. */
static inline void peer_connecting(struct lnet_peer_ni *lpni, uint64_t ni_bit)
{
	lpni->nconnecting++;
	lpni->connecting_from |= ni_bit;
	lpni->connected_from &= ~ni_bit;
}

static inline void peer_connected(struct lnet_peer_ni *lpni, uint64_t ni_bit,
				  bool connected)
{
	lpni->connecting_from &= ~ni_bit;
	lpni->connected_from &= ~ni_bit;
	if (connected)
		lpni->connected_from |= ni_bit;
}

/* Makes room for a peer NI for @nid, by forgetting the peer that has been idle
 * longest. Returns false, and logs it, if peers_max peer NIs are in use. */
bool peers_make_room(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Returns the hash of @nid in peer_cpt.peers. */
uint64_t peer_hash(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Does an LND have connections with @nid on @cpt, or is one connecting? */
bool peer_is_connected(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Gets the terms that were negotiated for connections with @nid on @cpt, from
 * the first local NI that has any. Returns false if none has. */
bool peer_terms(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		struct lnd_terms *terms);

/* Can the connections with @nid on @cpt be moved to another CPT
 * (lnd.can_move())? True if there are none. */
bool peer_can_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);
/* Moves the connections with @nid on @cpt to the CPT that the directory names.
 */
void peer_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Sets lpni->place by the directory. But an alias with pending claims remains
 * an alias: it comes together with all NIs of its peer, by peer_arrive(). */
void peer_place(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* From now on this CPT owns @lpni, which was an alias. */
void peer_arrive(struct lnet_peer_ni *lpni);

/* Does this CPT own the NIs of @peer? False if the peer has no NIs. */
bool peer_is_here(const struct lnet_peer *peer);

/* The directory entry of @nid has changed: if there is an alias for @nid,
 * updates its primary NID and its place. */
void peer_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Sets the credits, unless they are set already. */
void peer_set_credits(struct lnet_peer_ni *lpni, uint32_t credits);

/*
 * Calls @fn for each peer NI of each CPT, on the thread of the CPT, for a few
 * hundred in a turn. Peer NIs that come or go meanwhile may be missed. @fn is
 * called with @p NULL before the first peer NI of a CPT, and when a CPT is
 * begun again because its table has grown. -EXDEV: this thread cannot wait for
 * all CPTs, and @fn was not called.
 */
typedef void (*peers_fn)(struct lnet_cpt *cpt, struct lnet_peer_ni *p,
			 void *arg);
int peers_each(struct lnet *node, peers_fn fn, void *arg);

/* As peers_each(), for some of the peer NIs of @cpt, on its thread: from *@at
 * on, which is moved forward. Returns true if there are more. */
struct peers_place {
	uint32_t bucket; /* number of the next bucket */
	uint32_t mask;	 /* size of the table, less 1; UINT32_MAX: not begun */
};
#define PEERS_FIRST ((struct peers_place){ .mask = UINT32_MAX })
bool peers_some(struct lnet_cpt *cpt, struct peers_place *at, peers_fn fn,
		void *arg);

/* Resets the statistics of all peers. Returns what peers_each() returns. */
int peers_stats_reset(struct lnet *node);

void peers_init(struct lnet_cpt *cpt);
/* Frees all peers. None may be in use. */
void peers_fini(struct lnet_cpt *cpt);

#endif
