/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: peer > peer net > peer NI, each allocated on its own. A NID that was
 * never heard of becomes a peer with one NI and that NID as its primary.
 *
 * All of a peer belongs to one CPT, which the directory names
 * (core/directory.h); the directory and the records of that CPT agree. The
 * peer's connections may be elsewhere: when a peer has moved, messages still
 * come in on the CPT that it has left, as long as connections lead there. For
 * these messages that CPT keeps a record, an alias, through which nothing is
 * sent.
 *
 * Strangers can make a node remember peer NIs, up to a limit; beyond it the
 * peer that has been idle longest is forgotten, with all of its NIs. An
 * administrator's peers (lnet_peer_add(3)) are never forgotten. An idle peer
 * costs memory only: it has no timer.
 *
 * Owner of all of it: the CPT.
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

/* What this node knows of the peer's NIDs. Moves: discovery/state.h. */
enum peer_state {
	PEER_UNKNOWN,	  /* what its messages, or an administrator, said */
	PEER_QUEUED,	  /* discovery is about to take the next step */
	PEER_DISCOVERING, /* it was asked (ping) */
	PEER_MERGING,	  /* what it told becomes what is known of it */
	PEER_PUSHING,	  /* it is told of our NIDs */
	PEER_DISCOVERED,
	PEER_FAILED, /* it has not answered; there is a pause */
	PEER_STATES
};
extern const struct fsm_state peer_states[PEER_STATES];

/* Whoever changes nets, primary or multi_rail tells cpt_topology_changed(). */
struct lnet_peer {
	uint32_t refs; /* its NIs that are in use, +1 if it is configured, and
			* whoever else holds it */
	struct fsm fsm;
	bool configured; /* by an administrator */
	bool multi_rail; /* both sides know each other as one peer, whichever
			  * NIs a message takes */
	/* Discovery's: */
	bool settled;	   /* discovery has ended once, well or not: messages
			    * do not wait for it any more */
	bool merged;	   /* what it told of itself is what is known, ... */
	uint32_t merged_in; /* ... in that era (disc_cpt.era), ... */
	bool no_discovery; /* ... and that it takes no part in discovery, or */
	uint32_t sequence; /* ... the number of what it told, ... */
	uint32_t pid;	   /* ... and which process of its node did */
	uint32_t told;	   /* it has acknowledged that version of our NIDs
			    * (disc_cpt.version); 0: none */
	struct discovery *discovery; /* under way; NULL: none is */

	uint64_t asked_until; /* ns: till then it may owe us an answer, which
			       * may come from any of its NIs */
	uint32_t nnis;
	uint32_t claims; /* of other CPTs' NIDs, under way (claim.h) */
	struct ulnet_nid primary;
	struct list nets;  /* of lnet_peer_net.link, as they came */
	struct list idle;  /* peer_cpt.idle, while refs is 0 */
};

struct lnet_peer_net {
	struct list link;
	struct lnet_peer *peer;
	uint32_t segment; /* lnet/nid/nid.h */
	struct list nis; /* of lnet_peer_ni.link, as they came; empty only while
			  * one is to come */
};

/*
 * What a peer NI holds of each resource that is bounded for all peer NIs of its
 * CPT. NIs have shares, peers do not: which NIDs make up a peer is what the
 * peer says, and it may say something else with each message, while an address
 * that connections confirm cannot be made up (base/share.h). And what waits for
 * its share keeps the connections of its NI waiting only: those of the peer's
 * other NIs go on.
 */
struct lnet_holdings {
	uint32_t msgs;	      /* of its CPT's, received from it and not over */
	uint32_t parked;      /* of these (park.h) */
	uint32_t stopped;     /* of these: they keep a connection still */
	uint32_t held;	      /* messages that wait with their payload put
			       * aside (hold.c) */
	uint64_t held_bytes;  /* of these */
	uint32_t standing;    /* messages that are held (hold.h), but not put
			       * aside */
	uint64_t still_since; /* ns: while some are parked: when one of them
			       * could go on, or began to be */
	uint64_t passed_over; /* park.c's: in that round */
	uint64_t copied_bytes; /* of payloads sent to it (tamper.h) */
	/* forward.h: buffers with what it has sent to others, and messages that
	 * wait for one; the most of both so far; buffers with what others have
	 * sent to it. */
	uint32_t forwards, forward_waits, forwards_max, forwards_to;
	bool forwards_fail; /* what was last passed on to it was not sent */
	/* ns: the log was told that its share is used up; not again before */
	uint64_t msgs_quiet_until, drops_quiet_until, held_quiet_until;
};

/* What policies say of a peer NI (path/verdict.h). */
struct peer_verdict {
	uint64_t as_of; /* valid while cpt.rules has this value */
	uint32_t priority, net_priority;
	struct peer_preferred *preferred; /* NULL: nothing is preferred */
};

/* Whose a peer NI is. */
enum peer_place {
	PEER_HERE,  /* this CPT's */
	PEER_ALIAS, /* another CPT's: only receives here */
	PEER_PLACES
};
extern const struct fsm_state peer_places[PEER_PLACES];

/* The causes of failed sends that are counted for a peer NI, too; and which of
 * its counts is that of a cause. */
#define PEER_FAILURES (PEER_FAILED(LNET_CAUSE_NETWORK_TIMEOUT) + 1)
#define PEER_FAILED(cause) ((unsigned int)(cause) - LNET_CAUSE_REMOTE_ERROR)

/* Of pings for the sake of health (recovery.c). */
struct peer_recovery {
	uint32_t silent; /* pings in a row without an answer */
	uint64_t next;	 /* ns: then comes the next; 0: one is under way */
};

struct lnet_peer_ni {
	struct list link;
	struct hash_node hash; /* peer_cpt.peers, by NID */
	struct lnet_peer *peer;
	struct lnet_peer_net *net;
	struct fsm place;
	struct fsm
		provenance; /* by whose word it is its peer's (provenance.h) */
	struct ulnet_nid nid;
	struct ulnet_nid claimed_by; /* an NI that has named it as its peer's,
				      * by its own word: the last one; ANY */
	uint32_t claims_denied; /* reconcile.c's: since it has confirmed one */
	uint64_t claims_after;	/* ... ns: it is not asked before */
	bool claim_late;	/* discovery.c's: it is to be asked then */
	struct list unverified; /* peer_cpt.unverified */
	uint32_t awaited; /* an alias: claims (claim.h) by which it may become
			      * this CPT's, with others */
	struct ulnet_nid preferred; /* path.c's: the local NI that a peer which
				     * is not multi-rail knows this node by;
				     * ANY: none */
	struct lnet_ni *only;	    /* path.c's: all that is sent to it goes
				     * from this NI, ... */
	uint64_t only_in;	    /* ... as long as this is the CPT's
				     * topology; 0: there is none */
	uint64_t use;		    /* path.c's: when last chosen */
	struct peer_verdict verdict; /* path/verdict.c's */
	struct ulnet_nid way; /* of a process that only calls: the gateway by
			       * which it was heard last; ANY: directly. Also
			       * of aliases */
	int32_t health;		    /* 0 .. LNET_HEALTH_MAX */
	bool down;		    /* the peer says so (discovery), and nothing
				     * has come from it since */
	bool used;		    /* ... and messages here name it: it is the
				     * peer's as long as nobody else has it */
	uint64_t lost_in; /* health.c's: turn of the last loss; 0: none */
	stat_t failed[PEER_FAILURES];
	struct peer_recovery *recovery; /* recovery.c's; NULL: none */
	uint32_t refs; /* messages sent to it or received from it */
	struct lnet_holdings has;
	int32_t counted;      /* node_check()'s */
	int32_t credits_max;  /* 0: no local net to it (yet) */
	int32_t credits, credits_min;
	uint8_t queue_told; /* route.c's: magnitude of its queue, for routes */
	/* of msg_out.link, waiting for a credit */
	struct list first; /* ... before others: answers, since the peer may
			    * not read until it has them; and messages of
			    * MDs with LNET_MD_URGENT */
	struct list queue;
	uint64_t queued_bytes;
	struct list connecting; /* of msg_out.link: wait for a connection, and
				 * hold no credit meanwhile */
	uint64_t nconnecting;	/* of them */
	/* lnet_ni.bit of those whose LND is connecting to it for messages, and
	 * of those whose LND has done so; neither: not known */
	uint64_t connecting_from, connected_from;
	struct traffic_stats traffic;
};

struct peer_cpt {
	struct portal_cpt portal;
	struct hash peers;		/* lnet_peer_ni.hash */
	struct lnet_peer_ni *peer_last; /* looked for last, or NULL */
	struct list idle;		/* lnet_peer.idle, longest first */
	struct pool peer_pool, net_pool, ni_pool;
	struct list unverified; /* lnet_peer_ni.unverified, longest first ... */
	uint32_t nunverified;	/* of them */
	/* Discovery's: asks a peer NI itself whose it is, if it can. */
	void (*question)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* Discovery's: a peer NI, which is held, has become an alias, so that
	 * what waits for it here is to go to its new CPT. */
	void (*moved)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* Recovery's: NIDs of @peer have come from another CPT, and some may be
	 * ill. */
	void (*came)(struct lnet_cpt *cpt, struct lnet_peer *peer);
	/* Discovery's: NIDs are not configured any more, so that peers that
	 * have named them may have them. */
	void (*freed)(struct lnet_cpt *cpt);
	unsigned int claims; /* under way (claim.h) */
	bool discovery; /* peers are discovered before the first message */
};

static inline struct peer_cpt *peer_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct peer_cpt, portal.cpt);
}

/* The NI of @peer that comes after @p, net by net; the first one after NULL.
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

/* No NI may leave the peer meanwhile. */
#define peer_for_each_ni(p, peer)                 \
	for ((p) = peer_next_ni(peer, NULL); (p); \
	     (p) = peer_next_ni(peer, p))

/* A peer that is held is neither forgotten nor freed. */
static inline void peer_hold(struct lnet_peer *peer)
{
	if (peer->refs++ == 0)
		list_del(&peer->idle);
}
void peer_drop(struct lnet_cpt *cpt, struct lnet_peer *peer);

/* It may owe us an answer until then. */
static inline void peer_asked(struct lnet_peer *peer, uint64_t until)
{
	peer->asked_until = MAX(peer->asked_until, until);
}

/* @nid if it was looked for last, else NULL: messages of a peer come in
 * batches, and answers mostly go to the same peer. */
static inline struct lnet_peer_ni *peer_last(const struct lnet_cpt *cpt,
					     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *last = peer_cpt(cpt)->peer_last;

	return likely(last && lnet_nid_eq(&last->nid, nid)) ? last : NULL;
}

/* The slow parts of peer_find(), which looks into the table; and of peer_get(),
 * but for the reference. */
struct lnet_peer_ni *peer_search(struct lnet_cpt *cpt,
				 const struct ulnet_nid *nid);
struct lnet_peer_ni *peer_find_or_meet(struct lnet_cpt *cpt,
				       const struct ulnet_nid *nid);

/* Without a reference. NULL: unknown. */
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

/* With a reference: peer_unref(). It is made if need be; NULL: no memory, or
 * peers_max are in use. */
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

/* One more message waits for a connection to @lpni from the local NI with this
 * bit. peer_connected() says how that has ended. */
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

/* Makes room for one more peer NI, that of @nid: the peer that has been idle
 * longest is forgotten. False, which is logged: peers_max are in use. */
bool peers_make_room(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* The hash of @nid in peer_cpt.peers. */
uint64_t peer_hash(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Has an LND connections with @nid on @cpt, or attempts at them? */
bool peer_is_connected(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* What connections with @nid on @cpt were negotiated to, those of the first NI
 * that has some. false: there are none, or nothing is known of them. */
bool peer_terms(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		struct lnd_terms *terms);

/* Can another CPT have these connections (lnd.can_move())? True if there are
 * none. */
bool peer_can_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);
/* Moves them, when the directory names that CPT. */
void peer_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Makes @lpni the CPT's, or an alias, as the directory says. An alias that is
 * awaited stays one: it comes with all NIs of its peer, by peer_arrive(). */
void peer_place(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
void peer_arrive(struct lnet_peer_ni *lpni);

/* Are the NIs of @peer this CPT's, and has it any? */
bool peer_is_here(const struct lnet_peer *peer);

/* The directory's entry of @nid has changed. An alias for @nid gets the primary
 * NID that is there now, and is no alias any more if this CPT is the owner. */
void peer_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Sets the credits when the peer NI is first sent to. */
void peer_set_credits(struct lnet_peer_ni *lpni, uint32_t credits);

/*
 * Calls @fn for each peer NI of each CPT, on its thread, a few hundred in a
 * turn: one that comes or goes meanwhile may be missing. @p is NULL before the
 * first one of a CPT, and again when that CPT is begun anew, because its table
 * has grown. -EXDEV, without any call: on a thread that cannot wait for all
 * CPTs.
 */
typedef void (*peers_fn)(struct lnet_cpt *cpt, struct lnet_peer_ni *p,
			 void *arg);
int peers_each(struct lnet *node, peers_fn fn, void *arg);

/* The same for some of the peer NIs of @cpt, on its thread: those behind *@at,
 * which goes on. True: there are more. */
struct peers_place {
	uint32_t bucket; /* in a table of ... */
	uint32_t mask;	 /* ... that size; UINT32_MAX: not begun */
};
#define PEERS_FIRST ((struct peers_place){ .mask = UINT32_MAX })
bool peers_some(struct lnet_cpt *cpt, struct peers_place *at, peers_fn fn,
		void *arg);

/* Of all peers: what has been counted becomes 0. As peers_each(). */
int peers_stats_reset(struct lnet *node);

void peers_init(struct lnet_cpt *cpt);
/* Forgets all; none may be in use. */
void peers_fini(struct lnet_cpt *cpt);

#endif
