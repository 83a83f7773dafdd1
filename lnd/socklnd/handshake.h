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

/* Begins to connect to @peer, for a connection of @type: 0, or -errno. The
 * handshake ends in sock_attempt_done(), though not before this has returned;
 * until then the caller may drop *@conn_p. */
int sock_handshake_connect(struct sock_peer *peer, enum sock_type type,
			   struct sock_conn **conn_p);

/*
 * A listening socket: one for each local address, shared by the NIs that have
 * this address on different nets. It accepts connections and reads their
 * requests, which name the NI that is wanted. CPT 0's thread.
 *
 * Strangers can hold up to accept_max handshakes, each for accept_timeout, and
 * an address its share of them (caller.h, also for the processor time of TLS);
 * when there are more, the one that has been silent longest is dropped.
 *
 * When no file descriptor is left, and no handshake can be dropped, a peer that
 * connects is refused by a HELLO that tells it to try again later. For that the
 * listener keeps one descriptor in reserve. If another thread has taken that
 * descriptor, too, the listener stops accepting for a moment.
 */
struct sock_listener {
	struct env_io io;
	struct lobby lobby; /* where handshakes wait for bytes */
	struct list link;   /* sock_shared.listeners */
	struct list nis;    /* sock_ni.in_listener */
	const struct ulnet_conf *conf;
	struct loop *loop;
	union netif_addr addr; /* where it listens */
	void **shared;	       /* lnd_ni.shared */
	/* sock_conn.link; the one that has been silent longest is first */
	struct list handshakes;
	struct sock_callers callers; /* the same, by address */
	struct timer turns;	     /* while callers wait */
	int reserve;	     /* file descriptor; -1: lost */
	struct timer resume; /* ends a pause in accepting */
	struct log_limit complaints;
	struct log_limit crowds; /* of what callers have too much of */
};

/* ---- listeners (listener.c) ---- */

/* @sni joins the listener of its address, which is created if need be. 0 or
 * -errno, logged. No effect on a node that does not accept connections. */
int sock_listener_join(struct sock_ni *sni);
/* Ends the handshakes for @sni; the last NI that leaves closes the listener. No
 * effect on an NI that has not joined. */
void sock_listener_leave(struct sock_ni *sni);

/* What the NIs of one node share: *lnd_ni.shared. CPT 0's thread. */
struct sock_shared {
	struct list listeners; /* sock_listener.link */
	void *links;	       /* the slot of lnd_link_join() */
};

/* Returns *@slot, which is created if need be. NULL: no memory. */
struct sock_shared *sock_shared_get(void **slot);
/* Frees *@slot if nothing is in it. */
void sock_shared_put(void **slot);

#endif
