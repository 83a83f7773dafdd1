/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of one NI, which is a process: its connection, and attempts to open
 * one. It belongs to the CPT that owns its NID, and exists from the first
 * message or connection until it has none, nobody waits for one, and no
 * failures are remembered.
 *
 * A pair of nodes has one connection, whoever has opened it. If both connect at
 * the same time, that of the lower NID counts, and the other one is refused.
 * When a process connects that has a connection already, its old one has ended
 * for it: what it had sent is read, which may have to wait for LNet, and then
 * the old one is closed. A third one closes the first.
 *
 * A process has its share of the connections that peers have opened, and its
 * share of those that this node has opened. In both count those that this node
 * has left and the process has not closed (conn.h): so a process that keeps
 * what has ended gets no more. Processes of another user have one share
 * together, since a user can make any number of them; so have processes whose
 * pids are not seen. Whoever has none is connected to. Shares of what is mapped
 * are those of the same holders.
 *
 * A process that only calls (its pid has LNET_PID_USERFLAG) is not connected
 * to, as with other LNDs.
 *
 * Attempts to connect: lnd/connect.h has the policy that all LNDs share.
 * Whether somebody has the NID the system says at once; a process that is
 * stopped does not answer.
 */
#ifndef LND_SHMLND_PEER_H
#define LND_SHMLND_PEER_H

#include "lnd/shmlnd/conn.h"

struct shm_peer {
	struct hash_node hash;
	struct shm_cpt *cpt;
	struct ulnet_id id;
	struct shm_conn *conn; /* the open connection, or NULL */
	/* the one before, while it is being read, or NULL */
	struct shm_conn *old;
	struct connect connect;
	struct shm_conn *attempt; /* while CONNECT_CONNECTING */
	uint32_t offer; /* bytes: the largest rings that are offered to it */
	const char *note; /* why the last attempt has failed, for the log */
	char version[SHM_VERSION_TEXT]; /* note, if it is about versions */
	/* what the end of the turn does: */
	struct work work;
	bool settling;
	/* LNet is to be told of a lost connection: lnet_peer_disconnected() */
	bool conn_lost;
};

/* Returns the peer that is the process @id, on this CPT. If it is not known,
 * shm_peer_lookup() returns NULL, and shm_peer_lookup_or_make() makes it (NULL:
 * no memory). */
struct shm_peer *shm_peer_lookup(struct shm_cpt *cpt,
				 const struct ulnet_id *id);
struct shm_peer *shm_peer_lookup_or_make(struct shm_cpt *cpt,
					 const struct ulnet_id *id);
/* lnd.is_connected(), lnd.paused_until() */
bool shm_is_connected(struct lnd_ni *ni, unsigned int cpt,
		      const struct ulnet_nid *nid);
uint64_t shm_paused_until(struct lnd_ni *ni, unsigned int cpt,
			  const struct ulnet_id *id);

/* A text for the log. */
char *shm_peer_str(const struct shm_peer *peer, char *buf, size_t size);

/* Has the process at the other end of @conn, which is to be opened by either
 * side, used up its share of connections? Returns 0; or -EALREADY, with a line
 * in the log. */
int shm_peer_check_share(const struct shm_peer *peer,
			 const struct shm_conn *conn);

/* May @conn, which the peer opens, be accepted? Returns 0; -EALREADY: the peer
 * is to try again later, since this node's own attempt counts, or since its
 * process has used up its share. */
int shm_peer_admit(const struct shm_peer *peer, const struct shm_conn *conn);

/* May @conn, which is open, map @size bytes more, within the share of the
 * process, or other user, at its other end? */
bool shm_peer_may_map(const struct shm_conn *conn, uint64_t size);
/* Writes to the log, within limits: the peer of @conn, @what: @why. */
void shm_peer_complain(const struct shm_conn *conn, const char *what,
		       const char *why);

/* This node's own attempt ends, if there is one, since that of the peer counts.
 * The peer, when it has the answer to its own, must find this one ended: it
 * would take it for a new connection in the place of the old one. */
void shm_peer_yield(struct shm_peer *peer);

/* @conn, whose handshake is over, is the connection of @peer from now on.
 * Users' handlers run. */
void shm_peer_opened(struct shm_peer *peer, struct shm_conn *conn);

/* The attempt to connect has ended. @status: 0: the connection is open;
 * -EALREADY: the peer asks to try again later; another errno: it has failed.
 * Users' handlers run. */
void shm_attempt_done(struct shm_peer *peer, int status, const char *why);

/* The open connection @conn has failed with @status, or the peer has closed it
 * (0). Closes it. Users' handlers run. */
void shm_peer_lost(struct shm_conn *conn, int status, const char *why);

/* Called at the end of a turn: tells LNet of a lost connection, connects if
 * messages wait, or frees the peer if nothing is left of it. */
void shm_peer_settle(struct shm_peer *peer);

void shm_peers_init(struct shm_cpt *cpt);
/* Closes all connections and attempts of @cpt, which goes down. */
void shm_peers_stop(struct shm_cpt *cpt);

#endif
