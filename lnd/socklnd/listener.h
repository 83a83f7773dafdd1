/* SPDX-License-Identifier: BSD-3-Clause */
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
#ifndef LND_SOCKLND_LISTENER_H
#define LND_SOCKLND_LISTENER_H

#include "base/lobby.h"
#include "base/log.h"
#include "lnd/socklnd/sock.h"
#include "lnd/socklnd/socklnd.h"

struct sock_conn;
struct sock_listener;

/* Who has the handshakes (handshake.c). */
struct sock_listener_users {
	/* @fd has come. Takes it in any case. */
	void (*accept)(struct sock_listener *l, int fd,
		       const union sock_addr *from);
	/* There is no descriptor to keep @fd, which is to be closed after the
	 * other end was told to come again later. */
	void (*refuse)(struct sock_listener *l, int fd);
	/* The handshake of @conn ends: sock_listener_del() before return. */
	void (*drop)(struct sock_conn *conn);
};

struct sock_listener {
	const struct sock_listener_users *users;
	struct env_io io;
	struct lobby lobby; /* where handshakes wait */
	struct list link;   /* of those of the node */
	struct list nis;    /* sock_ni.in_listener */
	const struct ulnet_conf *conf;
	struct loop *loop;
	union sock_addr addr;	/* where it listens */
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
int sock_listener_join(struct sock_ni *sni,
		       const struct sock_listener_users *users);
/* The handshakes for @sni end. The last NI of a listener closes the listener.
 * Fine for one that is not in. */
void sock_listener_leave(struct sock_ni *sni);

/* @conn's handshake begins: guest.fn is called when there is something to read.
 * It ends: nobody is watching, and the timer is off. 0 or -errno. */
int sock_listener_add(struct sock_listener *l, struct sock_conn *conn);
void sock_listener_del(struct sock_conn *conn);

/* A handshake goes on: it may take accept_timeout from now. */
void sock_listener_step(struct sock_listener *l, struct sock_conn *conn);
/* The NI that the request on @conn names, or NULL. */
struct sock_ni *sock_listener_find(struct sock_listener *l,
				   const struct ulnet_nid *nid);

#endif
