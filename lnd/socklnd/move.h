/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open connections that go to another CPT, because the NID that they lead to
 * has got another owner: to be called when lnet_ni_cpt_of() names that one. On
 * their way they belong to the passage, like those that have just said whose
 * they are (handshake.h). What comes in meanwhile waits in the socket.
 *
 * The old loop is told to forget the descriptor, but libev does so only when
 * something comes in on it. Until then nobody else may get a descriptor of the
 * same number. So the new loop has another descriptor of the socket, and the
 * old loop's is kept, unwatched, until the connection ends, and closed there.
 * Hence a connection moves only once, and costs two descriptors then.
 */
#ifndef LND_SOCKLND_MOVE_H
#define LND_SOCKLND_MOVE_H

#include "lnd/socklnd/socklnd.h"

struct sock_left;
/* The connection has ended. Any CPT's thread. */
void sock_left_close(struct sock_left *left);

/* As lnd.h says. */
bool sock_can_move(struct lnd_ni *ni, unsigned int cpt,
		   const struct ulnet_nid *nid);
void sock_move(struct lnd_ni *ni, unsigned int cpt,
	       const struct ulnet_nid *nid);

#endif
