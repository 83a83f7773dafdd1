/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of one NI, which is a process: its connections, the attempt to open
 * more, what waits for one. The CPT that owns its NID has it, from the first
 * message or connection until there is neither, nor a failure to be remembered.
 *
 * There is a peer for a process that only calls (a "user" process: its pid has
 * LNET_PID_USERFLAG) while it has connections, all of which it has opened
 * itself. Messages wait for another connection only while these are set aside.
 *
 * Closing one connection closes all of the peer (spec section 3.12).
 *
 * When the network is cut without a word, TCP repeats what was not acknowledged
 * less and less often, so an open connection may be of no use for long after
 * the network is back. Therefore, when one of them is silent (silence.h), all
 * connections of the peer are set aside, and LNet is told, which may know
 * another path. A message that a connection has begun to send stays with it,
 * and TCP delivers it, late but once. Those that were not begun go back to
 * LNet, and wait there with all that come after them, until one of two things
 * happens:
 *	- A new connection is open (attempt.h). An ulnet node that accepts it
 *	  sets its own old connections aside, too. Both ends let the old ones
 *	  finish: a connection is closed when both have written all that they
 *	  had begun on it. Nothing is lost, and nothing is sent twice; new
 *	  messages overtake those that are stuck.
 *	- TCP gets through first: the old connections are used again.
 * A kernel node takes a second CONTROL connection of a peer for a duplicate,
 * and refuses it. After STALL_REFUSALS such answers, which prove that the
 * network is back, the old connections are reset. What TCP still had is lost
 * with them: LNet was told that those messages were sent, and learns from its
 * deadlines that there is no answer. (A kernel node that allows several
 * connections of a type accepts the new one, and uses both. So the side that
 * opens the new connection never ends an old one by itself: a kernel node would
 * close all connections then.) The same is done when our own link comes back
 * after a while, with connections that we have opened: nothing of ours may be
 * on its way, but the peer may have something for us that its TCP repeats late.
 * If the peer refuses a new connection then, the old ones are used again.
 *
 * A process that only calls cannot be connected to. Its connections are set
 * aside, too. Messages then wait for the process to open a new one, or for TCP
 * to get through; they end when the old connections do.
 */
#ifndef LND_SOCKLND_PEER_H
#define LND_SOCKLND_PEER_H

#include "lnd/connect.h"
#include "lnd/socklnd/conn.h"

struct sock_peer {
	struct hash_node hash;
	struct sock_cpt *cpt;
	struct ulnet_id id;
	struct list conns;		       /* sock_conn.link: CONN_OPEN */
	unsigned int count[SOCK_BULK_OUT + 1]; /* of them, by type */
	struct list aside; /* sock_conn.link: CONN_ASIDE and what follows */
	struct sock_conn *small; /* the one that suits small messages best;
				  * NULL: there are several, or none */
	bool opens;		 /* messages made us open connections */
	bool bulk;		 /* ... those for bulk, too: there was some */
	unsigned int want;	 /* bulk connections each way */
	uint8_t version; /* while it has connections of any kind; else 0 */
	uint8_t offer;	 /* what the peer wants instead; 0: the default */
	bool heard;	 /* something came in since the first of them is open */
	uint64_t met;	 /* ns: when that was */
	uint64_t incarnation; /* as version */

	bool watched;	/* for progress, not only for silence, ... */
	uint64_t since; /* ns: ... since then */
	uint64_t cut;	/* ns: when connections were set aside last */
	uint64_t gone;	/* ns: when the NI's link went; 0: it is there */
	bool renewing;	/* those set aside are not used again, as it looks */
	struct timer check;
	uint64_t kept_alive; /* ns: last NOOP for that, or 0 */
	uint64_t uses;	     /* of its connections */
	/* attempt.c's: */
	struct connect connect;
	struct sock_conn *attempt; /* CONNECT_CONNECTING */
	struct sock_conn *second;  /* ... once more, or NULL */
	unsigned int looks;	   /* at an attempt that goes on */
	struct sock_host *host; /* while CONNECT_QUEUED or CONNECT_CONNECTING */
	struct list turn;	/* sock_host.waiting: CONNECT_QUEUED */

	struct work work; /* sock_peer_settle() */
	bool settling;
	bool severed; /* LNet is to be told then (lnet_peer_disconnected()) */
	bool cut_off; /* what is under way is to end then: the link has gone */
};

static inline bool sock_pid_is_user(uint32_t pid)
{
	return pid & LNET_PID_USERFLAG;
}

/* Open ones, set aside or not? */
static inline bool sock_peer_has_conns(const struct sock_peer *peer)
{
	return !list_empty(&peer->conns) || !list_empty(&peer->aside);
}

/* Is no open connection for control, which all wait for, while some are set
 * aside? There may be one for bulk that was just being opened. */
static inline bool sock_peer_is_cut(const struct sock_peer *peer)
{
	return !list_empty(&peer->aside) && !peer->count[SOCK_CONTROL];
}

/* NULL: unknown; no memory. */
struct sock_peer *sock_peer_lookup(struct sock_cpt *cpt,
				   const struct ulnet_id *id);
struct sock_peer *sock_peer_lookup_or_make(struct sock_cpt *cpt,
					   const struct ulnet_id *id);
/* Are there connections with any process of @nid, or attempts at them? Looks at
 * all peers of the CPT. */
bool sock_peers_use(const struct sock_cpt *cpt, const struct ulnet_nid *nid);
/* The peer that has said @hello. A user process whose pid another one has
 * already gets one that is made of its incarnation, the same each time. */
struct sock_peer *sock_peer_greeted(struct sock_cpt *cpt,
				    const struct sock_hello *hello);

/* "10.0.0.1@tcp", "U7-10.0.0.1@tcp"; for the log. */
char *sock_peer_str(const struct sock_peer *peer, char *buf, size_t size);

/* What a passive handshake is to be answered: 0, or a refusal: -EALREADY. */
int sock_peer_admit(struct sock_peer *peer, const struct sock_hello *hello,
		    enum sock_type type);

/* @conn is open, or was closed. */
void sock_peer_add(struct sock_peer *peer, struct sock_conn *conn);
/* @conn was open before, on another CPT. */
void sock_peer_rejoin(struct sock_peer *peer, struct sock_conn *conn);
void sock_peer_del(struct sock_peer *peer, struct sock_conn *conn);

/* The connection for a message of @size bytes, or NULL. A NOOP is one of 0. */
struct sock_conn *sock_peer_choose(struct sock_peer *peer, size_t size);

/* Something large has passed over a connection that is not for that: those that
 * are get opened, if this side opens any. */
void sock_peer_met_bulk(struct sock_peer *peer);

/* @conn, which is open, has failed with @status, or the peer has closed @conn
 * (0): so all connections of the peer are closed. If @conn is set aside only
 * @conn is, when the peer has closed it, or there are others in its place. */
void sock_peer_lost(struct sock_conn *conn, int status);

/* The peer refuses new connections as long as it has those that have stalled:
 * these are reset. Without effect if there are none. */
void sock_peer_reset_stalled(struct sock_peer *peer);

/* An attempt to connect was refused, or has failed: if the connections were set
 * aside just because the link had gone, they are used again. */
void sock_peer_refused(struct sock_peer *peer);

/* Closes all its connections, because of @status (0: the peer closed one). */
void sock_peer_close(struct sock_peer *peer, int status);

/* Something came in over one of its connections. */
static inline void sock_peer_heard(struct sock_peer *peer)
{
	peer->heard = true;
	peer->connect.failures = 0;
}

/* @peer has something to do that must come to an end: look after it. */
void sock_peer_watch(struct sock_peer *peer);

/* At the end of the turn (since nothing may end within send()): ends what has
 * been cut off, tells LNet of connections that have ended with messages perhaps
 * lost, opens connections if messages wait for one, or forgets the peer if
 * nothing is left of it. */
void sock_peer_settle(struct sock_peer *peer);

/* The link or the address of the NI has gone: at the end of the turn all that
 * is under way ends, and LNet is told that messages may be lost. Connections
 * stay (link.h). */
void sock_peers_link_down(struct sock_cpt *cpt);
/* A link or an address has come, perhaps this NI's: pauses end. */
void sock_peers_link_up(struct sock_cpt *cpt);
/* The CPT goes down. */
void sock_peers_stop(struct sock_cpt *cpt);

#endif
