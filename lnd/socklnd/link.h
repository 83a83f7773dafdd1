/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices that the address of an NI, or the link below it, goes and comes back
 * (requirement E3), and says so by lnet_ni_set_up(). One for all NIs of a node.
 * CPT 0's thread.
 *
 * The system's messages (rtnetlink) only say when to look: what is so is then
 * asked anew, for all NIs. So a message that was lost, or one that was sent by
 * somebody else, does no harm.
 *
 * While an NI is down all messages for its peers are refused. Those that were
 * under way end at once, as do attempts to connect: so LNet can send over
 * another NI what was not sent, and users can ask over another one what has
 * become of the rest.
 *
 * Connections stay. TCP outlives an outage, and then nothing that a peer says
 * on them is lost: the peer cannot be told, as long as there is no link, that
 * they have ended, and what it sent on them would be in vain afterwards. What
 * has stalled is set aside (peer.h), and so is, after some time without the
 * link, what we have opened; what hangs for too long is ended by its timeout.
 */
#ifndef LND_SOCKLND_LINK_H
#define LND_SOCKLND_LINK_H

#include "lnd/socklnd/socklnd.h"

struct sock_links {
	struct env_io io; /* fd -1: the system does not tell */
	struct list nis;  /* sock_ni.in_links */
	struct loop *loop;
	void **shared;	    /* where it is */
	struct timer again; /* what is so could not be found out */
};

/* Called when the NI starts. */
void sock_link_init(struct sock_cpt *cpt);

/* @sni is up or down from now on, as its link is. Where the system does not
 * tell of changes, as in some sandboxes, the log has a warning, and it stays as
 * it is now. 0 or -errno, told to the log. */
int sock_link_join(struct sock_ni *sni);
/* The state of @sni is not touched any more. Fine for one that is not in. */
void sock_link_leave(struct sock_ni *sni);

#endif
