/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: a peer has peer nets, which have peer NIs. An unknown NID becomes a
 * peer with one NI, whose NID is its primary NID.
 *
 * A peer belongs with all its NIs to one CPT, as the directory says
 * (core/directory.h). After a peer has moved to another CPT, messages still
 * come in on the CPT that it has left, as long as connections lead there. For
 * these messages that CPT keeps aliases: peer NIs to which nothing is sent.
 *
 * Strangers can make a node remember peer NIs, up to peers_max; beyond that the
 * peer that has been idle longest is forgotten with all of its NIs. An
 * administrator's peers (lnet_peer_add(3)) are never forgotten. An idle peer
 * costs only memory.
 *
 * Owner: the CPT.
 */
#ifndef LNET_PEER_H
#define LNET_PEER_H

#include "base/fsm.h"
#include "base/hash.h"
#include "base/list.h"
#include "lnet/core/stat.h"
#include "lnet/nid/nid.h"
#include "lnet/portal/portal.h"
#include "ulnet/path.h"

struct lnd_terms;
struct discovery;
struct lnet_ni;

/* The state of a peer's discovery (discovery/state.h). */
enum peer_state {
	PEER_UNKNOWN,	  /* not discovered */
	PEER_QUEUED,	  /* waits for the next step of discovery */
	PEER_DISCOVERING, /* was asked for its NIDs (ping) */
	PEER_MERGING,	  /* its announcement is being carried out */
	PEER_PUSHING,	  /* was told of this node's NIDs */
	PEER_DISCOVERED,
	PEER_FAILED, /* discovery has failed, and pauses */
	PEER_STATES
};
extern const struct fsm_state peer_states[PEER_STATES];

/* A change of nets, primary or multi_rail is followed by
 * cpt_topology_changed(). */
struct lnet_peer {
	uint32_t refs; /* NIs in use, +1 if configured, +1 by peer_hold() */
	struct fsm fsm;
	bool configured; /* by an administrator */
	bool multi_rail; /* both sides know each other as one peer, whichever
			  * NIs a message takes */
	/* Discovery's: */
	bool settled; /* discovery has ended once, well or not: messages do not
		       * wait for it any more */
	bool merged;  /* its announcement was carried out: */
	uint32_t merged_in;	/* ... in that era (disc_cpt.era) */
	bool no_discovery;	/* ... it takes no part in discovery */
	uint32_t sequence;	/* ... its sequence number */
	uint32_t pid;		/* ... the process that made it */
	uint32_t acked_version; /* of our ping information (disc_cpt.version)
				 * that it has acknowledged; 0: none */
	struct discovery *discovery; /* its session, or NULL */

	uint64_t asked_until; /* ns: until then it may owe us an answer, which
			       * may come from any of its NIs */
	uint32_t nnis;
	uint32_t claims; /* of other CPTs' NIDs, under way (claim.h) */
	struct ulnet_nid primary;
	struct list nets; /* of lnet_peer_net.link, in order of creation */
	struct list idle; /* peer_cpt.idle, while refs is 0 */
};

struct lnet_peer_net {
	struct list link;
	struct lnet_peer *peer;
	uint32_t segment; /* lnet/nid/nid.h */
	struct list nis;  /* of lnet_peer_ni.link, in order of creation; not
			  * empty once complete */
};

/*
 * How much a peer NI uses of each resource that the peer NIs of a CPT share.
 * Shares are per peer NI, not per peer: a peer may announce other NIDs with
 * each message, while a NID that has connections cannot be made up
 * (base/share.h). Messages beyond a share block only the connections of their
 * peer NI, not those of the peer's other NIs.
 */
struct lnet_quota {
	uint32_t msgs;		    /* received from it, and not over */
	uint32_t throttled;	    /* of these (throttle.h) */
	uint32_t throttled_unread;  /* of these: without bounce buffer */
	uint32_t unexpected;	    /* bounce buffers (unexpected.h) */
	uint64_t unexpected_bytes;  /* in these */
	uint32_t unexpected_unread; /* queued without bounce buffer */
	uint64_t stuck_since; /* ns: when a throttled message last proceeded, or
			       * the first was throttled */
	uint64_t passed_over; /* throttle.c's: number of a round */
	uint64_t copied_bytes; /* of payloads sent to it (tamper.h) */
	/* forward.h: buffers with messages from it, messages from it that wait
	 * for one, and the maximum of both together; buffers with messages to
	 * it. */
	uint32_t forwards, forward_waits, forwards_max, forwards_to;
	bool forwards_fail; /* the last message to it was not sent on */
	/* ns: until then nothing is logged about its share */
	uint64_t msgs_quiet_until, drops_quiet_until, unexpected_quiet_until;
};

/* What policies say of a peer NI (path/verdict.h). */
struct peer_verdict {
	uint64_t as_of; /* valid while cpt.rules has this value */
	uint32_t priority, net_priority;
	struct peer_preferred *preferred; /* NULL: nothing is preferred */
};

/* Which CPT owns a peer NI. */
enum peer_place {
	PEER_HERE,  /* this CPT */
	PEER_ALIAS, /* another CPT; messages from it are received here */
	PEER_PLACES
};
extern const struct fsm_state peer_places[PEER_PLACES];

/* The causes of failed sends that are counted by peer NI as well, and the index
 * of the counter of a cause. */
#define PEER_FAILURES (PEER_FAILED(LNET_CAUSE_NETWORK_TIMEOUT) + 1)
#define PEER_FAILED(cause) ((unsigned int)(cause) - LNET_CAUSE_REMOTE_ERROR)

/* Recovery pings (recovery.c). */
struct peer_recovery {
	uint32_t silent; /* pings in a row without an answer */
	uint64_t next;	 /* ns: time of the next; 0: one is under way */
};

struct lnet_peer_ni {
	struct list link;
	struct hash_node hash; /* peer_cpt.peers, by NID */
	struct lnet_peer *peer;
	struct lnet_peer_net *net;
	struct fsm place;      /* enum peer_place */
	struct fsm provenance; /* enum peer_provenance (provenance.h) */
	struct ulnet_nid nid;
	struct ulnet_nid claimed_by; /* the last NI of another NID that has
				      * named it as its peer's; ANY: none */
	uint32_t claims_denied;	     /* reconcile.c's: in a row */
	uint64_t claims_after;	/* reconcile.c's: ns: it is not asked before */
	bool claim_delayed;	/* discovery.c's: it will be asked then */
	struct list unverified; /* peer_cpt.unverified */
	uint32_t pending_claims; /* of an alias: claims under way (claim.h) by
				  * which it may become this CPT's */
	struct ulnet_nid preferred; /* path.c's: the local NI that a peer which
				     * is not multi-rail knows this node by;
				     * ANY: none */
	struct lnet_ni *only;	    /* path.c's: all that is sent to it goes
				     * from this NI, ... */
	uint64_t only_in;	    /* ... as long as this is the CPT's
				     * topology; 0: there is none */
	uint64_t use;		    /* path.c's: when last chosen */
	struct peer_verdict verdict; /* path/verdict.c's */
	struct ulnet_nid heard_via; /* of a process that only calls: the gateway
				     * of its last message; ANY: none. Also set
				     * in aliases */
	int32_t health;		    /* 0 .. LNET_HEALTH_MAX */
	bool down; /* announced as down, and nothing has come from it since */
	bool used; /* it was the target of messages of this node: stays in its
		    * peer until another peer gets it */
	uint64_t lost_in; /* health.c's: turn of the last loss; 0: none */
	stat_t failed[PEER_FAILURES];
	struct peer_recovery *recovery; /* recovery.c's; NULL: none */
	uint32_t refs; /* messages sent to it or received from it */
	struct lnet_quota has;
	int32_t counted;     /* node_check()'s */
	int32_t credits_max; /* 0: no local net to it (yet) */
	int32_t credits, credits_min;
	uint8_t queue_told; /* route.c's: magnitude of its queue, for routes */
	/* Of msg_out.link, waiting for a credit. @first is served before
	 * @queue: answers, since the peer may not read before it has them; and
	 * messages of MDs with LNET_MD_URGENT. */
	struct list first, queue;
	uint64_t queued_bytes;
	struct list connecting; /* of msg_out.link: wait for a connection */
	uint64_t nconnecting;	/* length of @connecting */
	/* Bits (lnet_ni.bit) of local NIs that are connecting to it, or are
	 * connected, for messages; neither: unknown. */
	uint64_t connecting_from, connected_from;
	struct traffic_stats traffic;
};

struct peer_cpt {
	struct portal_cpt portal;
	struct hash peers;		/* lnet_peer_ni.hash */
	struct lnet_peer_ni *peer_last; /* looked up last, or NULL */
	struct list idle;		/* lnet_peer.idle, longest first */
	struct pool peer_pool, net_pool, ni_pool;
	struct list unverified; /* lnet_peer_ni.unverified, longest first */
	uint32_t nunverified;	/* length of @unverified */
	/* Discovery's: asks @lpni whose it is, if it can be asked. */
	void (*question)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* Discovery's: @lpni, which is referenced, has become an alias, so its
	 * messages are to go to its new CPT. */
	void (*moved)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* Recovery's: NIs of @peer have come from another CPT, perhaps in bad
	 * health. */
	void (*came)(struct lnet_cpt *cpt, struct lnet_peer *peer);
	/* Discovery's: NIDs are not configured any more, so peers that have
	 * named them may have them. */
	void (*freed)(struct lnet_cpt *cpt);
	unsigned int claims; /* under way (claim.h) */
	bool discovery; /* peers are discovered before the first message */
};

static inline struct peer_cpt *peer_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct peer_cpt, portal.cpt);
}

/* The NI of @peer after @p, or the first one if @p is NULL; net by net. NULL:
 * there is none. */
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

/* No NI may leave @peer meanwhile. */
#define peer_for_each_ni(p, peer)                 \
	for ((p) = peer_next_ni(peer, NULL); (p); \
	     (p) = peer_next_ni(peer, p))

/* Takes a reference: until peer_drop() @peer is neither forgotten nor freed. */
static inline void peer_hold(struct lnet_peer *peer)
{
	if (peer->refs++ == 0)
		list_del(&peer->idle);
}
void peer_drop(struct lnet_cpt *cpt, struct lnet_peer *peer);

/* @peer may owe us an answer until then, ns. */
static inline void peer_asked(struct lnet_peer *peer, uint64_t until)
{
	peer->asked_until = MAX(peer->asked_until, until);
}

/* The peer NI that was looked up last, if it has @nid, else NULL. Mostly it
 * has, since messages of a peer come in batches. */
static inline struct lnet_peer_ni *peer_last(const struct lnet_cpt *cpt,
					     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *last = peer_cpt(cpt)->peer_last;

	return likely(last && lnet_nid_eq(&last->nid, nid)) ? last : NULL;
}

/* The slow parts of peer_find() and peer_get(), without a reference. */
struct lnet_peer_ni *peer_search(struct lnet_cpt *cpt,
				 const struct ulnet_nid *nid);
struct lnet_peer_ni *peer_find_or_meet(struct lnet_cpt *cpt,
				       const struct ulnet_nid *nid);

/* The peer NI of @nid, without a reference. NULL: unknown. */
static inline struct lnet_peer_ni *peer_find(struct lnet_cpt *cpt,
					     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_last(cpt, nid);

	return likely(lpni) ? lpni : peer_search(cpt, nid);
}

/* The NI of @peer with @nid, or NULL. */
static inline struct lnet_peer_ni *peer_member(struct lnet_cpt *cpt,
					       const struct lnet_peer *peer,
					       const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	return lpni && lpni->peer == peer ? lpni : NULL;
}

void peer_unref(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
static inline void peer_ref(struct lnet_peer_ni *lpni)
{
	if (lpni->refs++ == 0)
		peer_hold(lpni->peer);
}

/* The peer NI of @nid, made if need be; returns a reference: peer_unref().
 * NULL: no memory, or peers_max are in use. */
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

/* One more message waits for a connection from the local NI with @ni_bit to
 * @lpni; peer_connected() follows. */
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

/* Makes room for the peer NI of @nid, by forgetting the peer that has been idle
 * longest. False, which is logged: peers_max are in use. */
bool peers_make_room(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* The hash of @nid in peer_cpt.peers. */
uint64_t peer_hash(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Has an LND connections with @nid on @cpt, or is it connecting? */
bool peer_is_connected(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* The terms negotiated for connections with @nid on @cpt, from the first local
 * NI that knows some. False: none does. */
bool peer_terms(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		struct lnd_terms *terms);

/* Can the connections with @nid on @cpt move to another CPT (lnd.can_move())?
 * True if there are none. */
bool peer_can_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);
/* Moves them to the CPT that the directory names. */
void peer_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Sets lpni->place as the directory says. An alias with pending claims stays
 * one: it comes with all NIs of its peer, by peer_arrive(). */
void peer_place(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* @lpni, an alias, is this CPT's from now on. */
void peer_arrive(struct lnet_peer_ni *lpni);

/* Does this CPT own the NIs of @peer? False if it has none. */
bool peer_is_here(const struct lnet_peer *peer);

/* The directory's entry of @nid has changed: updates the primary NID and the
 * place of an alias for @nid. */
void peer_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Sets the credits, unless they are set already. */
void peer_set_credits(struct lnet_peer_ni *lpni, uint32_t credits);

/*
 * Calls @fn for each peer NI of each CPT, on its thread, a few hundred in a
 * turn; it may miss those that come or go meanwhile. @p is NULL before the
 * first peer NI of a CPT, and when a CPT is begun anew because its table has
 * grown. -EXDEV, without any call: this thread cannot wait for all CPTs.
 */
typedef void (*peers_fn)(struct lnet_cpt *cpt, struct lnet_peer_ni *p,
			 void *arg);
int peers_each(struct lnet *node, peers_fn fn, void *arg);

/* The same for some of the peer NIs of @cpt, on its thread, from *@at on, which
 * it advances. True: there are more. */
struct peers_place {
	uint32_t bucket; /* in a table of ... */
	uint32_t mask;	 /* ... that size; UINT32_MAX: not begun */
};
#define PEERS_FIRST ((struct peers_place){ .mask = UINT32_MAX })
bool peers_some(struct lnet_cpt *cpt, struct peers_place *at, peers_fn fn,
		void *arg);

/* Resets the statistics of all peers. Returns as peers_each(). */
int peers_stats_reset(struct lnet *node);

void peers_init(struct lnet_cpt *cpt);
/* Frees all peers; none may be in use. */
void peers_fini(struct lnet_cpt *cpt);

#endif
