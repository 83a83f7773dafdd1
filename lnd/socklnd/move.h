/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open connections that go to another CPT, because the NID that they lead to
 * has got another owner: to be called when lnet_ni_cpt_of() names that one. On
 * their way they belong to the passage, like those that have just said whose
 * they are (handshake.h). What comes in meanwhile waits in the socket.
 *
 * A connection moves only once, and costs two descriptors then (conn.c).
 */
#ifndef LND_SOCKLND_MOVE_H
#define LND_SOCKLND_MOVE_H

#include "lnd/socklnd/socklnd.h"

/* As lnd.h says. */
bool sock_can_move(struct lnd_ni *ni, unsigned int cpt,
		   const struct ulnet_nid *nid);
void sock_move(struct lnd_ni *ni, unsigned int cpt,
	       const struct ulnet_nid *nid);

#endif
