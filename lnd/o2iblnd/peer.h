/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers of an NI on a CPT: the connections of each, what is remembered of
 * it, and connection attempts. This layer is the user of connections (conn.h),
 * and passes messages and transmits on to xfer.c unchanged.
 *
 * A peer is a NID. It exists while it has a connection, somebody waits for one,
 * or its failures are remembered. connect.h decides when, and how often, to
 * connect. What is one attempt in connect.h is a round here: as many connection
 * attempts as there are to be connections. If the peer rejects a request but
 * says how to ask again, the next round follows at once; after ten such rounds
 * in a row there is one per second.
 *
 * A round has failed when all of its attempts have. Rounds are made only while
 * somebody waits, and for a limited time (ib_peers_wait_max()). A peer that
 * accepts connections and ends them before any message has passed is paused,
 * too. A lost connection is not replaced while there is another one to the same
 * peer.
 *
 * Incarnation, depth and fragments for the next request are remembered as the
 * peer has told them, until the last connection with that incarnation is lost.
 * When a peer turns out to have a new incarnation, its connections of the old
 * one are closed, and its request is rejected once, as stale.
 *
 * Shares. Connections that peers open are limited to conf->accept_max on a CPT,
 * and for a NID to accept_peer_max and its share (base/share.h); a request
 * beyond that is rejected for lack of resources. A peer with many NIDs could
 * take all of that, but nothing of what this side opens. Only failures of this
 * side's own attempts are remembered (connect.h).
 *
 * The user is called back from turns, never from inside a function that it
 * calls. Its callbacks may call any function of this file.
 *
 * Owner: the LND. Thread: the CPT's.
 */
#ifndef LND_O2IBLND_PEER_H
#define LND_O2IBLND_PEER_H

#include "base/hash.h"
#include "lnd/connect.h"
#include "lnd/o2iblnd/conn.h"

/* A connection, from the view of its peer. */
enum ib_link_state {
	IB_LINK_NEW,
	IB_LINK_CONNECTING, /* opened by this side */
	IB_LINK_ACCEPTING,  /* opened by the peer, and accepted */
	IB_LINK_OPEN,
	IB_LINK_REFUSED, /* was not established; not gone yet */
	IB_LINK_LOST,	 /* was open; not gone yet */
	IB_LINK_GONE,
	IB_LINK_STATES
};
extern const struct fsm_state ib_link_states[IB_LINK_STATES];

struct ib_peers;

struct ib_peers_user {
	/* Does this CPT own the peer @nid? If not, a request is rejected, and
	 * the peer sends it again. */
	bool (*owns)(const struct ib_peers *ps, const struct ulnet_nid *nid);
	/* @status 0: there is a connection to @nid, and those who wait may send
	 * at once (ib_peers_get()). Else there is none, and whatever waits ends
	 * with @status and @cause, as for lnet_peer_connected(). Called for
	 * each connection that is established, and after ib_peers_connect(). */
	void (*connected)(struct ib_peers *ps, const struct ulnet_nid *nid,
			  int status, enum ulnet_cause cause);
	/* Connections with @nid were lost, perhaps with messages. All their
	 * transmits are done. Called once for connections that end together; a
	 * new one may already be open. */
	void (*disconnected)(struct ib_peers *ps, const struct ulnet_nid *nid);
	/* A round of attempts has had no answer for @ns. Called once for those
	 * who wait, and again for those who come later. */
	void (*silent)(struct ib_peers *ps, const struct ulnet_nid *nid,
		       uint64_t ns);
	/* An established connection has ended; done() for its transmits
	 * follows. */
	void (*closed)(struct ib_conn *conn);
	/* as in struct ib_conn_user; stalled() is silent() there */
	void (*stalled)(struct ib_conn *conn, uint64_t ns);
	void (*arrived)(struct ib_conn *conn, struct ib_rx *rx);
	void (*done)(struct ib_tx *tx);
	/* After ib_peers_down(): no connection is left. */
	void (*emptied)(struct ib_peers *ps);
	/* After ib_peers_stop(): no peer and no connection is left. */
	void (*stopped)(struct ib_peers *ps);
};

struct ib_peers_conf {
	struct ib_terms terms; /* what this side offers */
	uint16_t frags;	       /* most fragments to ask for */
	/* connections to open with each peer, at least 1 */
	unsigned int conns_per_peer;
	/* ns of the shortest and of the longest pause after failures; not 0 */
	uint64_t min_pause, max_pause;
	enum ib_race_rule race;
	/* most connections on a CPT that peers have opened */
	unsigned int accept_max;
	/* most connections that one peer has opened */
	unsigned int accept_peer_max;
};

struct ib_peers {
	/* Immutable after init, but set.port may change after emptied(). */
	struct ib_conn_set set;
	const struct ib_peers_conf *conf; /* may change: read anew each time */
	const struct ib_peers_user *user;
	void *priv; /* for the user of the peers */

	/* owned by the CPT */
	struct hash hash;
	/* the peer that ib_peers_get() has found last, or NULL */
	struct ib_peer *last;
	uint64_t seed;
	int down; /* -errno: the port cannot be used; 0: it can */
	bool stopping, stopped;
	struct work work;
	/* number of connections that peers have opened, and that are not gone
	 */
	unsigned int accepted;
	struct connect_set connects;
};

struct ib_peer {
	struct hash_node hash;
	struct ib_peers *ps;
	/* the peer's NID, and the limits that the next request asks for */
	struct ib_request terms;

	/* of ib_link.link: all connections that are not gone */
	struct list links;
	/* of ib_link.open: open connections, the oldest first */
	struct list open;
	/* the connection for ordered messages; NULL: none */
	struct ib_link *ordered;
	/* number of messages of any order, by which connections take turns */
	unsigned int turns;
	unsigned int n[IB_LINK_STATES];
	/* number of connections that the peer has opened, and that are not gone
	 */
	unsigned int accepted;
	/* number of its requests that were rejected for a race since the last
	 * one was accepted */
	unsigned int races;
	unsigned int refused; /* number of failed attempts that are not gone */

	struct connect connect;
	bool again; /* the round must be repeated, since the peer has said so */

	bool conn_lost; /* disconnected() must be called */
	bool settling;
	struct work work;
};

struct ib_link {
	struct fsm fsm;
	bool passive;
	/* a message has come over it, or was delivered by it */
	bool heard;
	bool conn_lost;	  /* messages on it may have been lost */
	uint64_t opened;  /* ns: when it was established */
	struct list link; /* in ib_peer.links */
	struct list open; /* in ib_peer.open */
	struct ib_peer *peer;
	struct ib_conn *conn;
};

/* @set is copied, except for its user. @conf and @user are borrowed. */
void ib_peers_init(struct ib_peers *ps, const struct ib_conn_set *set,
		   const struct ib_peers_conf *conf,
		   const struct ib_peers_user *user, void *priv);
/* To be called after stopped(), or without any peer. */
void ib_peers_fini(struct ib_peers *ps);

/* Returns the set of peers to which @conn belongs. */
static inline struct ib_peers *ib_peers_of(const struct ib_conn *conn)
{
	return container_of(conn->set, struct ib_peers, set);
}

/* Finds a connection for a message to @nid. Without @any the result is the same
 * connection while that is open; with @any, each connection in turn. The
 * connection may be lost before it is used; then ib_tx_get() returns NULL.
 * Returns 0; -EINPROGRESS: there is no connection, and connected() follows;
 * -ENETDOWN, -ENODEV: the port cannot be used; -ESHUTDOWN; -ENOMEM;
 * -EAFNOSUPPORT: @nid is no NID of this LND. */
int ib_peers_get(struct ib_peers *ps, const struct ulnet_nid *nid, bool any,
		 struct ib_conn **conn_p) must_check;
/* Asks for a connection to @nid. Returns 0, and connected() follows, even if
 * there is a connection already; or an error of ib_peers_get(). */
int ib_peers_connect(struct ib_peers *ps,
		     const struct ulnet_nid *nid) must_check;
/* Are there connections with @nid, or is one attempted? */
bool ib_peers_use(const struct ib_peers *ps, const struct ulnet_nid *nid);
/* Returns the peer @nid; NULL: it is not known. */
struct ib_peer *ib_peer_find(const struct ib_peers *ps,
			     const struct ulnet_nid *nid);
/* Returns the oldest open connection with @nid, or NULL. */
const struct ib_conn *ib_peers_conn(const struct ib_peers *ps,
				    const struct ulnet_nid *nid);
/* Is connected() still to be called for @nid? */
bool ib_peers_are_connecting(const struct ib_peers *ps,
			     const struct ulnet_nid *nid);
/* Returns when the pause after failed attempts to connect to @nid ends, ns; 0:
 * there is none. */
uint64_t ib_peers_paused_until(const struct ib_peers *ps,
			       const struct ulnet_nid *nid);
/* Returns the longest time from ib_peers_connect() to connected(), ns, not
 * counting pauses. */
uint64_t ib_peers_wait_max(const struct ib_peers *ps);

/* For ib_events.request(), on the CPT that owns the peer: accepts @qp, or
 * rejects and destroys it. */
void ib_peers_on_request(struct ib_peers *ps, struct ib_qp *qp,
			 const struct ib_source *from, const void *private,
			 size_t length);

/* The port cannot be used (-ENETDOWN), or its device is gone (-ENODEV): ends
 * all connections and tells those who wait. No connection is
 * opened or accepted until ib_peers_up(). To be called in a turn. */
void ib_peers_down(struct ib_peers *ps, int status);
void ib_peers_up(struct ib_peers *ps);

/* Ends all connections, without telling those who wait; stopped() follows. */
void ib_peers_stop(struct ib_peers *ps);

#endif
