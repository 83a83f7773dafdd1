/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a socket to an open connection: connection request and HELLO, both ways
 * (spec sections 2.2, 2.3, 3.1-3.4, 3.6-3.8). The machine is sock_conn_states.
 */
#ifndef LND_SOCKLND_HANDSHAKE_H
#define LND_SOCKLND_HANDSHAKE_H

#include "base/lobby.h"
#include "base/log.h"
#include "lnd/socklnd/conn.h"
#include "lnd/socklnd/sock.h"
#include "lnd/socklnd/socklnd.h"

/*
 * Active: a socket that connects to @peer, for a connection of @type, as
 * *@conn_p: 0 or -errno. It ends, not before this has returned, in
 * sock_attempt_done(); until then it is the attempt's, which may drop it.
 */
int sock_handshake_connect(struct sock_peer *peer, enum sock_type type,
			   struct sock_conn **conn_p);

/*
 * A listening socket: one for each local address, shared by the NIs that have
 * it on different nets. It takes connections and reads their requests, which
 * name the NI that is wanted. CPT 0's thread.
 *
 * What a stranger can hold: accept_max handshakes, each for accept_timeout;
 * when there are more, the one that has been silent longest makes room.
 *
 * When no file descriptor is left, and no handshake can make room, a peer that
 * connects is not left waiting, but refused by a HELLO that tells it to try
 * again later. For that the listener keeps one descriptor in reserve. If
 * another thread has taken that, the listener rests for a moment.
 */

struct sock_listener {
	struct env_io io;
	struct lobby lobby; /* where handshakes wait */
	struct list link;   /* of those of the node */
	struct list nis;    /* sock_ni.in_listener */
	const struct ulnet_conf *conf;
	struct loop *loop;
	union netif_addr addr;	/* where it listens */
	void **shared;		/* where what lists them is */
	struct list handshakes; /* sock_conn.link; those that have done nothing
				 * for longest come first */
	uint32_t nhandshakes;
	int reserve; /* file descriptor; -1: lost */
	struct timer rest;
	struct log_limit complaints;
};

/* @sni wants to be reached: it joins the listener of its address, which is made
 * if need be. 0 or -errno, told to the log. Without effect for a node that does
 * not accept. */
int sock_listener_join(struct sock_ni *sni);
/* The handshakes for @sni end. The last NI of a listener closes the listener.
 * Fine for one that is not in. */
void sock_listener_leave(struct sock_ni *sni);

/* @conn's handshake ends: nobody is watching, and the timer is off. Fine for
 * one that has none. */
void sock_listener_del(struct sock_conn *conn);

struct sock_links;

/* What the NIs of one node have together: lnd_ni.shared points to it. CPT 0's
 * thread. */
struct sock_shared {
	struct list listeners; /* sock_listener.link */
	struct sock_links *links;
};

/* The node's one, which is made if need be. NULL: no memory. */
struct sock_shared *sock_shared_get(void **slot);
/* Frees the node's one if nothing is in it. */
void sock_shared_put(void **slot);

#endif
