/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of one NI, which is a process: its connections, and attempts to open
 * more (attempt.c). It belongs to the CPT that owns its NID, and exists from
 * the first message or connection until it has no connections, nobody waits for
 * one, and no failures are remembered.
 *
 * A process that only calls (a "user" process: its pid has LNET_PID_USERFLAG)
 * cannot be connected to: it has opened all of its connections itself. Messages
 * to it wait for a connection only while its present ones are suspended.
 *
 * Closing one connection closes all of the peer (spec section 3.12).
 *
 * Suspended connections. When the network is cut silently, TCP retransmits less
 * and less often, so that an open connection may stay useless long after the
 * network is back. So when a connection is silent (silence.h), all connections
 * of the peer are suspended, and LNet, which may know another path, is told. A
 * message that a connection has begun to send stays on it: TCP delivers it,
 * late, but only once. Messages that were not begun go back to LNet, and wait
 * there with all later ones until
 * - a new connection is open. An ulnet node that accepts it suspends its own
 *   old connections, too. Both ends close an old connection once both have
 *   written everything that they had begun on it. Nothing is lost or sent
 *   twice; new messages overtake those that are stuck; or
 * - TCP gets through first: then the old connections are resumed.
 *
 * A kernel node takes a second CONTROL connection for a duplicate and refuses
 * it, as long as it knows the old one. That proves that the network is back,
 * but the old connections are left alone until TCP gets through, or
 * sock_timeout is over. The kernel's LNet counts as sent what is in its socket,
 * and never sends it again: a reset would cost calls where two kernel nodes
 * only wait. (A kernel node that allows several connections of a type accepts
 * the new one, and uses both. So the side that opens the new connection never
 * closes an old one by itself: a kernel node would then close all.)
 *
 * Connections are also suspended when this node's own link comes back after a
 * while, but only those that this node has opened: the peer's TCP may be about
 * to retransmit late. If the peer refuses a new connection then, the old ones
 * are resumed.
 *
 * Connections of a process that only calls are suspended, too. Messages then
 * wait until it opens a new one or TCP gets through; they end when the old
 * connections do.
 *
 * Attempts to connect: lnd/connect.h has the policy that all LNDs share. With
 * TCP, an attempt that hears nothing is repeated on a second socket while the
 * first one goes on waiting, since the system doubles the time between its own
 * retransmissions of the SYN: so a peer that was away is reached within
 * max_reconnectms of its return, while a distant one can still answer on the
 * first socket. An attempt fails when nothing was heard for sock_timeout. A
 * kernel node logs an error for a connection that ends before its request has
 * come. So once TCP has connected a socket the peer is asked on it, even if it
 * has been asked on the other one: it refuses one of the two. A node that only
 * calls does not ask twice, because its second connection would replace the
 * first. An attempt is looked at once or twice in max_reconnectms; less often
 * once the peer's system has acknowledged all of it, since a peer that is
 * stopped leaves nothing to do until it answers.
 *
 * Each CPT limits its attempts under way (max_connecting), or else peers that
 * do not answer could use up everything. Beyond that NIDs take turns (host.h):
 * an attempt that has heard nothing yields to the NID that has waited longest.
 */
#ifndef LND_SOCKLND_PEER_H
#define LND_SOCKLND_PEER_H

#include "lnd/connect.h"
#include "lnd/socklnd/conn.h"

struct sock_peer {
	struct hash_node hash;
	struct sock_cpt *cpt;
	struct ulnet_id id;
	/* of sock_conn.link: connections that are CONN_OPEN */
	struct list conns;
	/* how many of @conns have each type */
	unsigned int count[SOCK_BULK_OUT + 1];
	/* of sock_conn.link: connections that are CONN_SUSPENDED,
	 * CONN_FINISHING or CONN_FINISHED */
	struct list suspended;
	/* the open connection that suits small messages best; NULL: several
	 * suit, or none */
	struct sock_conn *small;
	/* this node opens connections to the peer for messages */
	bool opens;
	/* this node also opens connections for bulk */
	bool opens_bulk;
	/* how many bulk connections are wanted in each direction */
	unsigned int bulk_target;
	/* version of the protocol that all connections of the peer have; 0:
	 * there are none */
	uint8_t version;
	/* version that the peer has asked for, to be offered next time; 0:
	 * none, so the default is offered */
	uint8_t offer;
	bool heard;	    /* a byte has come in since opened_at */
	uint64_t opened_at; /* ns: when the first of @conns was opened */
	/* the incarnation of the process; valid while version is not 0 */
	uint64_t incarnation;

	/* is progress checked? watched_since (ns): time before that does not
	 * count */
	bool watched;
	uint64_t watched_since;
	uint64_t suspended_at; /* ns: when connections were last suspended */
	/* ns: when the NI's link was lost; 0: it is there */
	uint64_t link_lost_at;
	/* suspended connections are to be replaced even if TCP gets through */
	bool renewing;
	struct timer check;
	/* ns: when the last keepalive was sent; 0: none was */
	uint64_t kept_alive;
	/* how often a connection was chosen for a message */
	uint64_t uses;
	/* for attempt.c only: */
	struct connect connect;
	/* the socket of the attempt, while CONNECT_CONNECTING */
	struct sock_conn *attempt;
	struct sock_conn *second; /* the attempt's second socket, or NULL */
	/* looks, or as many as fit into a longer time, that ended while others
	 * waited for turns */
	unsigned int looks;
	unsigned int doublings; /* of the time until the next look */
	/* the peer's host, while CONNECT_QUEUED or CONNECT_CONNECTING; else
	 * NULL */
	struct sock_host *host;
	struct list turn; /* node in sock_host.waiting, while CONNECT_QUEUED */

	/* With TLS (tls.h): */
	/* who the peer is, as the connection that was opened last has proved;
	 * NULL: that connection has no TLS */
	struct identity *who;
	/* node in sock_ni.proofs, if @who is not NULL */
	struct hash_node proof;
	/* why TLS has made the last attempt fail, for the log; NULL: it has not
	 */
	char *note;

	/* what sock_peer_settle() does at the end of the turn: */
	struct work work;
	bool settling;
	/* LNet is to be told of a lost connection: lnet_peer_disconnected() */
	bool conn_lost;
	/* the NI's link has gone: messages under way are to end */
	bool abort_due;
	/* the peer's certificate is not believed any more: connections are to
	 * end */
	bool cut_due;
};

static inline bool sock_pid_is_user(uint32_t pid)
{
	return pid & LNET_PID_USERFLAG;
}

/* Has @peer open connections, suspended or not? */
static inline bool sock_peer_has_conns(const struct sock_peer *peer)
{
	return !list_empty(&peer->conns) || !list_empty(&peer->suspended);
}

/* Has @peer connections to a process, or of a version, other than @hello says?
 */
static inline bool sock_peer_has_other_conns(const struct sock_peer *peer,
					     const struct sock_hello *hello)
{
	return sock_peer_has_conns(peer) &&
	       (hello->src_incarnation != peer->incarnation ||
		hello->version != peer->version);
}

/* Are @peer's connections suspended, and not replaced yet? Only a new control
 * connection replaces them: one for bulk may have been about to open when they
 * were suspended. */
static inline bool sock_peer_is_suspended(const struct sock_peer *peer)
{
	return !list_empty(&peer->suspended) && !peer->count[SOCK_CONTROL];
}

static inline bool sock_peer_is(const struct sock_peer *peer,
				const struct ulnet_id *id)
{
	return peer->id.pid == id->pid && lnet_nid_eq(&peer->id.nid, &id->nid);
}

/* The slow parts of sock_peer_lookup() and sock_peer_lookup_or_make(). */
struct sock_peer *sock_peer_search(struct sock_cpt *cpt,
				   const struct ulnet_id *id);
struct sock_peer *sock_peer_search_or_make(struct sock_cpt *cpt,
					   const struct ulnet_id *id);

/* Returns the peer that is the process @id, on this CPT. If it is not known,
 * sock_peer_lookup() returns NULL, and sock_peer_lookup_or_make() makes it
 * (NULL: no memory). Mostly it is the one that was looked up before. */
static inline struct sock_peer *sock_peer_lookup(struct sock_cpt *cpt,
						 const struct ulnet_id *id)
{
	if (likely(cpt->last && sock_peer_is(cpt->last, id)))
		return cpt->last;
	return sock_peer_search(cpt, id);
}
static inline struct sock_peer *sock_peer_lookup_or_make(
	struct sock_cpt *cpt, const struct ulnet_id *id)
{
	if (likely(cpt->last && sock_peer_is(cpt->last, id)))
		return cpt->last;
	return sock_peer_search_or_make(cpt, id);
}
/* lnd.is_connected(). Looks at all peers of the CPT. */
bool sock_is_connected(struct lnd_ni *ni, unsigned int cpt,
		       const struct ulnet_nid *nid);
/* Returns the peer that has sent @hello; NULL: no memory. If a user process has
 * the pid of another one, its peer gets a pid made from its incarnation, the
 * same one each time. */
struct sock_peer *sock_peer_greeted(struct sock_cpt *cpt,
				    const struct sock_hello *hello);

/* Remembers why an attempt to connect to @peer fails, for the log. */
void sock_peer_note(struct sock_peer *peer, const char *why);

/* A text for the log, such as "10.0.0.1@tcp" or, of a user process,
 * "U7-10.0.0.1@tcp". */
char *sock_peer_str(const struct sock_peer *peer, char *buf, size_t size);

/* Checks whether a connection that the peer opens may be accepted. Returns 0,
 * or -EALREADY: the peer is to try again later. */
int sock_peer_admit(struct sock_peer *peer, const struct sock_hello *hello,
		    enum sock_type type);

/* Makes @conn, whose handshake is over, an open connection of @peer. */
void sock_peer_add(struct sock_peer *peer, struct sock_conn *conn);
/* Adds @conn to @peer, as sock_peer_add() does, after it was open on another
 * CPT. */
void sock_peer_rejoin(struct sock_peer *peer, struct sock_conn *conn);
/* Takes @conn from @peer, because it is closed or leaves this CPT. */
void sock_peer_del(struct sock_peer *peer, struct sock_conn *conn);

/* Returns the connection to use for a message of @size bytes (0: a NOOP); NULL:
 * there is none. */
struct sock_conn *sock_peer_choose(struct sock_peer *peer, size_t size);

/* Called when a large message has used a connection that is not for bulk: opens
 * bulk connections, if this side opens any. */
void sock_peer_saw_bulk(struct sock_peer *peer);

/* Called when @conn, which is open, has failed with @status, or when the peer
 * has closed it (@status is 0). Closes all connections of the peer. Closes only
 * @conn, if it is suspended and either the peer has closed it or new
 * connections have replaced it. */
void sock_peer_lost(struct sock_conn *conn, int status);

/* Called when an attempt to connect was refused or has failed: if the
 * connections are suspended only because this node's link had gone, they may be
 * resumed. */
void sock_peer_refused(struct sock_peer *peer);

/* Closes all connections of @peer because of @status, a negative errno (0: the
 * peer has closed one). */
void sock_peer_close(struct sock_peer *peer, int status);

/* Called when something has come in over one of the connections of @peer. */
static inline void sock_peer_heard(struct sock_peer *peer)
{
	peer->heard = true;
}

/* Checks @peer for progress from now on, as long as something is under way. */
void sock_peer_watch(struct sock_peer *peer);

/* Called at the end of a turn, since nothing may end within lnd.send(): ends
 * messages if the link has gone, tells LNet of lost connections, opens
 * connections if messages wait for one, or frees the peer if nothing is left of
 * it. */
void sock_peer_settle(struct sock_peer *peer);

/* Called when the link or the address of the NI has gone. At the end of the
 * turn everything under way ends, and LNet is told that messages may be lost.
 * Connections stay (socklnd.h). */
void sock_peers_link_down(struct sock_cpt *cpt);
/* Called when a link or an address has come up, perhaps this NI's: ends pauses.
 */
void sock_peers_link_up(struct sock_cpt *cpt);
/* Closes all connections and attempts of the peers of @cpt, because the CPT
 * goes down. */
void sock_peers_stop(struct sock_cpt *cpt);

/* ---- attempts to connect (attempt.c) ---- */

void sock_attempts_init(struct sock_cpt *cpt);

/* Called when TCP has connected @conn, the first or the second socket of an
 * attempt. Drops the other socket, unless that one has reached the peer, too.
 * Returns false if one is enough, and @conn was dropped. */
bool sock_attempt_reached(struct sock_conn *conn);

/* Called when the peer has answered on @conn, which leaves its attempt. Returns
 * true if the attempt goes on with its other socket, on which the peer was
 * asked as well. */
bool sock_attempt_answered(struct sock_conn *conn);

/* Called when the attempt to open a connection has ended. @status: 0: the
 * connection is open; -EALREADY: the peer asks to try again later;
 * -EPROTONOSUPPORT: the peer wants the version hello.version; another errno:
 * the attempt has failed. */
void sock_attempt_done(struct sock_peer *peer, int status);

/* Called when @peer has accepted connections and closed them at once, with
 * @status: that counts as a failure, too. */
void sock_attempt_in_vain(struct sock_peer *peer, int status);

/* Called when a connection of @type, opened by either side, is open or resumed.
 */
void sock_attempt_opened(struct sock_peer *peer, enum sock_type type);

/* Ends the pause between attempts, because a link or an address has come up. */
void sock_attempt_retry_now(struct sock_peer *peer);

#endif
