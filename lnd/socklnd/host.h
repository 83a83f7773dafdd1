/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: the processes behind one NID, each a peer of its own. What they could
 * use up is shared between hosts:
 *	- File descriptors of the connections that they have opened to this
 *	  node, by the law of shares (base/share.h), or one host could take all
 *	  that the process may have.
 *	- Memory for the rest of frames that LNet has given up half sent (tx.h):
 *	  finish_max bytes of each CPT, by the same law.
 *	- Turns to be connected to (attempt.h): a host has one turn at a time,
 *	  since all its processes have the same address. Otherwise somebody with
 *	  many made-up pids at a silent address would have many turns.
 *
 * A host lives as long as somebody holds it. Owner: the CPT that owns the NID.
 */
#ifndef LND_SOCKLND_HOST_H
#define LND_SOCKLND_HOST_H

#include "lnd/socklnd/socklnd.h"

struct sock_host {
	struct hash_node hash; /* sock_cpt.hosts */
	struct ulnet_nid nid;
	unsigned int holders;
	unsigned int conns; /* that it has opened */
	uint64_t copied;    /* bytes, of frames to it that were given up */
	/* attempt.c's: */
	bool connecting;     /* one of its peers is CONNECT_CONNECTING */
	struct list waiting; /* sock_peer.turn: CONNECT_QUEUED */
	struct list turn;    /* sock_cpt.turns: waiting, and not connecting */
};

/* The host of @nid, to be given back by sock_host_release(). NULL: no
 * memory. */
struct sock_host *sock_host_hold(struct sock_cpt *cpt,
				 const struct ulnet_nid *nid);
/* Fine for NULL. */
void sock_host_release(struct sock_cpt *cpt, struct sock_host *host);

/* One more connection that @nid has opened: *@host_p, to be given back by
 * sock_host_put(). -EALREADY: @nid has its share, which the log tells; it may
 * come again later. -ENOMEM. */
int sock_host_get(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		  struct sock_host **host_p) must_check;
/* The same, of one that another CPT had, whatever the shares. */
int sock_host_keep(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		   struct sock_host **host_p) must_check;
/* That connection has ended, or goes to another CPT. Fine for NULL. */
void sock_host_put(struct sock_cpt *cpt, struct sock_host *host);

/* A copy of @bytes of a frame to @nid will be held, till they are given back by
 * sock_host_copy_put(). -ENOBUFS: @nid has its share, which the log tells;
 * -ENOMEM. */
int sock_host_copy_get(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		       uint32_t bytes, struct sock_host **host_p) must_check;
void sock_host_copy_put(struct sock_cpt *cpt, struct sock_host *host,
			uint32_t bytes);

#endif
