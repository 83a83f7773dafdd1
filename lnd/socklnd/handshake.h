/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a socket to an open connection: connection request and HELLO, both ways
 * (spec sections 2.2, 2.3, 3.1-3.4, 3.6-3.8). The machine is sock_conn_states.
 */
#ifndef LND_SOCKLND_HANDSHAKE_H
#define LND_SOCKLND_HANDSHAKE_H

#include "lnd/socklnd/conn.h"
#include "lnd/socklnd/listener.h"

/* Passive: what comes from a listener. */
extern const struct sock_listener_users sock_handshakes;

/*
 * Active: a socket that connects to @peer, for a connection of @type, as
 * *@conn_p: 0 or -errno. It ends, not before this has returned, in
 * sock_attempt_done(); until then it is the attempt's, which may drop it.
 */
int sock_handshake_connect(struct sock_peer *peer, enum sock_type type,
			   struct sock_conn **conn_p);

#endif
