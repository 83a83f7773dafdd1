/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a socket to an open connection: connection request and HELLO, both ways
 * (spec sections 2.2, 2.3, 3.1-3.4, 3.6-3.8). The state machine is
 * sock_conn_states.
 */
#ifndef LND_SOCKLND_HANDSHAKE_H
#define LND_SOCKLND_HANDSHAKE_H

#include "base/lobby.h"
#include "base/log.h"
#include "lnd/socklnd/caller.h"
#include "lnd/socklnd/conn.h"
#include "lnd/socklnd/sock.h"
#include "lnd/socklnd/socklnd.h"

/* Begins to open a connection of @type to @peer. Returns 0, or -errno.
 * sock_attempt_done() is called when the handshake ends, but not before this
 * has returned; until then the caller may drop *@conn_p. */
int sock_handshake_connect(struct sock_peer *peer, enum sock_type type,
			   struct sock_conn **conn_p);

/*
 * A listening socket for one local address, shared by the NIs that have this
 * address on different nets. It accepts connections and reads their requests,
 * which name the NI that is wanted. CPT 0's thread.
 *
 * Strangers can hold up to accept_max handshakes, each for accept_timeout, and
 * an address its share of them. caller.h limits the share, and the processor
 * time that TLS takes. When there are too many, the handshake that has been
 * silent longest is dropped.
 *
 * When no file descriptor is left, and no handshake can be dropped, a peer that
 * connects is refused by a HELLO that tells it to try again later. For that the
 * listener keeps one descriptor in reserve. If another thread has taken that
 * descriptor, too, the listener stops accepting for a moment.
 */
struct sock_listener {
	struct env_io io;
	struct lobby lobby; /* where handshakes wait for bytes */
	struct list link;   /* node in sock_shared.listeners */
	struct list nis;    /* of sock_ni.in_listener */
	const struct ulnet_conf *conf;
	struct loop *loop;
	union netif_addr addr; /* the address at which it listens */
	void **shared;	       /* where lnd_ni.shared of these NIs points to */
	/* of sock_conn.link; the handshake that has been silent longest is
	 * first */
	struct list handshakes;
	struct sock_callers callers; /* the same handshakes, by address */
	struct timer turns;	     /* gives waiting callers their turns */
	int reserve;		     /* file descriptor in reserve; -1: lost */
	struct timer resume;	     /* ends a pause in accepting */
	struct log_limit complaints;
	/* limits the log's lines about addresses with too many handshakes */
	struct log_limit crowds;
};

/* ---- listeners (listener.c) ---- */

/* Makes @sni join the listener of its address, which is created if need be.
 * Returns 0 or -errno, which was logged. No effect on a node that does not
 * accept connections. */
int sock_listener_join(struct sock_ni *sni);
/* Ends the handshakes for @sni; the last NI that leaves closes the listener. No
 * effect on an NI that has not joined. */
void sock_listener_leave(struct sock_ni *sni);

/* What the socklnd NIs of one node share: *lnd_ni.shared. CPT 0's thread. */
struct sock_shared {
	struct list listeners; /* of sock_listener.link */
	void *links;	       /* where lnd_link_join() keeps its state */
};

/* Returns *@slot, which is created if need be. NULL: no memory. */
struct sock_shared *sock_shared_get(void **slot);
/* Frees *@slot if nothing is in it. */
void sock_shared_put(void **slot);

#endif
