/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers of an NI on a CPT: who is known, what is remembered of each, the
 * connections with it, and the attempts to have some. Between connections
 * (conn.h), whose user this is, and the LND's operations, to which messages and
 * transmits are passed on untouched.
 *
 * A peer is a NID: from the first message to it, or its first request, until
 * there is no connection, nobody waits, and no failure is to be remembered. A
 * peer opens nothing by itself. When it connects, and how often, connect.h
 * says; an attempt is a round of as many as there are to be connections. If the
 * peer says how it wants to be asked, the next round follows at once for the
 * first ten times in a row, then one each second.
 *
 * A round has failed when none of its attempts is left. There is a round only
 * while somebody waits; rounds that follow each other for one who waits come to
 * an end (ib_peers_patience()). A peer that takes connections and ends them
 * before anything has come over them gets pauses, too. As long as there is one
 * connection, those that have ended are not replaced.
 *
 * What is remembered, from a peer's words, is what the next request is to ask
 * for: incarnation, depth, fragments. With the last connection of that
 * incarnation it is forgotten. A connection established with another
 * incarnation closes those with the one before, and so does a request of
 * another one, which is rejected, and has to come again.
 *
 * Shares. Strangers make us hold connections that they open, from the request
 * until nothing is left, and one peer for each NID that they say to be. All of
 * them together have conf->accept_max connections on a CPT; of these a NID may
 * have accept_peer_max, and no more than its share (base/share.h). Beyond that
 * requests are rejected: no resources. A NID is what a request says; who makes
 * up many of them can use up all that strangers may have, but nothing of what
 * this side opens. Failures are remembered (connect.h), all of them of our own
 * messages.
 *
 * The user is told in turns, and never inside of a call that it makes. In what
 * it is told it may call whatever there is here.
 *
 * Owner: the LND. Thread: the CPT's.
 */
#ifndef LND_O2IBLND_PEER_H
#define LND_O2IBLND_PEER_H

#include "base/hash.h"
#include "lnd/connect.h"
#include "lnd/o2iblnd/conn.h"

/* A connection, as its peer has it. */
enum ib_link_state {
	IB_LINK_NEW,
	IB_LINK_ASKING,	   /* this side has asked */
	IB_LINK_ACCEPTING, /* the peer has asked, and was accepted */
	IB_LINK_OPEN,
	IB_LINK_REFUSED, /* has not come about, and is not gone */
	IB_LINK_LOST,	 /* was open, and is not gone */
	IB_LINK_GONE,
	IB_LINK_STATES
};
extern const struct fsm_state ib_link_states[IB_LINK_STATES];

struct ib_peers;

struct ib_peers_user {
	/* Is @nid a peer of this CPT's? A request may have come to the one
	 * whose it was before: then it is rejected, and comes again. */
	bool (*owns)(const struct ib_peers *ps, const struct ulnet_nid *nid);
	/* There is a connection to @nid: those who wait may send, now
	 * (ib_peers_get()). Once for each that is established, and after
	 * ib_peers_want(). */
	void (*connected)(struct ib_peers *ps, const struct ulnet_nid *nid);
	/* There is none: what waits ends, with a status and cause as lnd.h
	 * says of lnet_peer_connected(). */
	void (*failed)(struct ib_peers *ps, const struct ulnet_nid *nid,
		       int status, enum ulnet_cause cause);
	/* Connections with @nid have ended, messages may be lost with them, and
	 * all that was under way on them is done. Once for all that end
	 * together. There may be another one already. */
	void (*disconnected)(struct ib_peers *ps, const struct ulnet_nid *nid);
	/* A round of attempts, for which somebody waits, has heard nothing for
	 * @ns. Once for each who waits and does not know. */
	void (*silent)(struct ib_peers *ps, const struct ulnet_nid *nid,
		       uint64_t ns);
	/* @conn, which was established, has ended; transmits follow. */
	void (*closed)(struct ib_conn *conn);
	/* As struct ib_conn_user. */
	void (*stalled)(struct ib_conn *conn, uint64_t ns);
	void (*arrived)(struct ib_conn *conn, struct ib_rx *rx);
	void (*done)(struct ib_tx *tx);
	/* After ib_peers_down(): no connection is left of those that there
	 * were. */
	void (*emptied)(struct ib_peers *ps);
	/* After ib_peers_stop(): no peer and no connection is left. */
	void (*stopped)(struct ib_peers *ps);
};

struct ib_peers_conf {
	struct ib_terms terms;	       /* what this side agrees to */
	uint16_t frags;		       /* what it asks for, at most */
	unsigned int conns_per_peer;   /* at least 1 */
	uint64_t min_pause, max_pause; /* ns, after failures; not 0 */
	enum ib_race_rule race;
	unsigned int accept_max;      /* connections opened by others ... */
	unsigned int accept_peer_max; /* ... and by one of them */
};

struct ib_peers {
	/* immutable after init; the port of home changes when there is no
	 * connection and ib_peers_down() was called */
	struct ib_home home;
	const struct ib_peers_conf *conf; /* what is in it may change */
	const struct ib_peers_user *user;
	void *priv; /* the user's */

	/* owner CPT */
	struct hash hash;
	struct ib_peer *last; /* who was sent to; or NULL */
	uint64_t seed;
	int down; /* -errno: the port cannot be used; 0: it can */
	bool stopping, stopped;
	struct work work;
	unsigned int accepted; /* opened by others, not gone */
	struct connect_set connects;
};

struct ib_peer {
	struct hash_node hash;
	struct ib_peers *ps;
	struct ib_request known; /* what is asked for next */

	struct list links;   /* ib_link.link, of all that are not gone */
	struct list open;    /* ib_link.open: the oldest first */
	struct ib_link *way; /* for those that keep their order; or NULL */
	unsigned int turns;  /* of the others */
	unsigned int n[IB_LINK_STATES];
	unsigned int accepted; /* opened by the peer, not gone */
	unsigned int races;    /* rejects since its last accepted request */
	unsigned int refused;  /* attempts that have failed, not gone */

	struct connect connect;
	bool again; /* one of the round's was told how to ask */

	bool severed; /* disconnected() is due */
	bool settling;
	struct work work;
};

struct ib_link {
	struct fsm fsm;
	bool passive;
	bool heard;	  /* something came over it, or got there */
	bool severed;	  /* messages may be lost with it */
	uint64_t opened;  /* ns: when it was established */
	struct list link; /* ib_peer.links */
	struct list open; /* ib_peer.open */
	struct ib_peer *peer;
	struct ib_conn *conn;
};

/* @home is copied, but for its user. @conf and @user stay the caller's. */
void ib_peers_init(struct ib_peers *ps, const struct ib_home *home,
		   const struct ib_peers_conf *conf,
		   const struct ib_peers_user *user, void *priv);
/* stopped() was called, or there never was a peer. */
void ib_peers_fini(struct ib_peers *ps);

/* The peers that @conn is a connection of. */
static inline struct ib_peers *ib_peers_of(const struct ib_conn *conn)
{
	return container_of(conn->home, struct ib_peers, home);
}

/* A connection for one message to @nid, and all that belongs to it: always the
 * same one, while it is open; for @any, they take turns. It may fail before it
 * is used: then transmits are not to be had. -EINPROGRESS: one of connected()
 * and failed() follows. -ENETDOWN, -ENODEV: the port; -ESHUTDOWN; -ENOMEM;
 * -EAFNOSUPPORT: no NID of this LND. */
int ib_peers_get(struct ib_peers *ps, const struct ulnet_nid *nid, bool any,
		 struct ib_conn **conn_p) must_check;
/* Somebody waits for a connection to @nid, even if there is one: 0, and one of
 * connected() and failed() follows; or as ib_peers_get(). */
int ib_peers_want(struct ib_peers *ps, const struct ulnet_nid *nid) must_check;
/* Are there connections with @nid, or attempts at them? */
bool ib_peers_use(const struct ib_peers *ps, const struct ulnet_nid *nid);
/* NULL: there is none. */
struct ib_peer *ib_peer_find(const struct ib_peers *ps,
			     const struct ulnet_nid *nid);
/* The oldest connection with @nid; or NULL. */
const struct ib_conn *ib_peers_conn(const struct ib_peers *ps,
				    const struct ulnet_nid *nid);
/* Is connected() or failed() still to come for who waits? */
bool ib_peers_are_awaited(const struct ib_peers *ps,
			  const struct ulnet_nid *nid);
/* How long, ns, one who waits does so at most, pauses aside. */
uint64_t ib_peers_patience(const struct ib_peers *ps);

/* As ib_events.request(), on the CPT that the request is for: accepts @qp, or
 * rejects and destroys it. */
void ib_peers_on_request(struct ib_peers *ps, struct ib_qp *qp,
			 const struct ib_source *from, const void *private,
			 size_t length);

/* The port cannot be used (-ENETDOWN), or its device goes (-ENODEV): all
 * connections end, those who wait are told, and nothing is opened or accepted
 * until ib_peers_up(). In a turn. */
void ib_peers_down(struct ib_peers *ps, int status);
void ib_peers_up(struct ib_peers *ps);

/* All connections end, those who wait are not told, and stopped() follows. */
void ib_peers_stop(struct ib_peers *ps);

#endif
