/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attempts to connect to a peer: what TCP adds to what all LNDs do (connect.h),
 * and how many there may be at once.
 *
 * An attempt that hears nothing is repeated on a second socket while the first
 * one waits on, since the system doubles the time between its own attempts (SYN
 * retransmission): so a peer that was silently away is reached within
 * max_reconnectms of its return, and one that is far away can still answer the
 * first. It fails when nothing was heard for sock_timeout.
 *
 * A peer whose connections have stalled (peer.h) is connected to like a peer
 * that has none. If it refuses STALL_REFUSALS times in a row, the stalled
 * connections are reset.
 *
 * Peers that do not answer could use up everything, so each CPT has a bound of
 * attempts under way (max_connecting). When there are more peers to connect to,
 * they take turns, by NID (host.h): an attempt that has heard nothing yields to
 * the NID that has waited for longest.
 */
#ifndef LND_SOCKLND_ATTEMPT_H
#define LND_SOCKLND_ATTEMPT_H

#include "lnd/socklnd/peer.h"

#define STALL_REFUSALS 5

void sock_attempts_init(struct sock_cpt *cpt);

/* TCP has brought @conn, the attempt's first or second socket, to the peer: one
 * of the two is dropped. False: this one. */
bool sock_attempt_reached(struct sock_conn *conn);

/* The attempt to open a connection has ended: 0: it is open; -EALREADY: the
 * peer wants it tried again later; -EPROTONOSUPPORT: it speaks hello.version;
 * else it has failed. */
void sock_attempt_done(struct sock_peer *peer, int status);

/* @peer has taken the connections that it had, and has closed them at once:
 * that is a failure, too. */
void sock_attempt_in_vain(struct sock_peer *peer, int status);

/* A connection of @type, opened by either side, is open, or can be used
 * again. */
void sock_attempt_opened(struct sock_peer *peer, enum sock_type type);

/* The peer, or the CPT, goes. */
void sock_attempt_stop(struct sock_peer *peer);

/* The link or the address of the NI has gone: those who wait are told, and what
 * has failed before does not count any more. Users' handlers run. */
void sock_attempt_cut_off(struct sock_peer *peer);
/* A link or an address has come back: no pause goes on. */
void sock_attempt_hurry(struct sock_peer *peer);

#endif
