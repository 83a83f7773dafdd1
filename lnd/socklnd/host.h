/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: all processes behind one NID, each of which is a peer of its own.
 * Limited resources are divided between hosts, not peers:
 *
 * - File descriptors of connections that peers have opened to this node: each
 *   host has its share (base/share.h), so that none can use up those of this
 *   process.
 * - Memory for the ends of frames that LNet has given up half sent (message.h):
 *   each host has its share of finish_max bytes on each CPT.
 * - Attempts to connect (peer.h): a host has one turn at a time, since all its
 *   processes have the same address. Otherwise many made-up pids at a silent
 *   address would get many turns.
 *
 * Reference counted. Owner: the CPT that owns the NID.
 */
#ifndef LND_SOCKLND_HOST_H
#define LND_SOCKLND_HOST_H

#include "lnd/socklnd/socklnd.h"

struct sock_host {
	struct hash_node hash; /* node in sock_cpt.hosts */
	struct ulnet_nid nid;
	unsigned int holders;
	unsigned int conns; /* open connections that the host has opened */
	/* bytes of frames to this host that were given up half sent, and whose
	 * ends were copied */
	uint64_t copied;
	/* for attempt.c: */
	bool connecting; /* one of the host's peers is CONNECT_CONNECTING */
	/* of sock_peer.turn: peers that are CONNECT_QUEUED */
	struct list waiting;
	/* node in sock_cpt.turns, while some peers wait and none is connecting
	 */
	struct list turn;
};

/* Returns a reference to the host of @nid; sock_host_release() drops it. NULL:
 * no memory. */
struct sock_host *sock_host_hold(struct sock_cpt *cpt,
				 const struct ulnet_nid *nid);
/* Drops a reference. @host may be NULL. */
void sock_host_release(struct sock_cpt *cpt, struct sock_host *host);

/* Counts one more connection that @nid has opened, until sock_host_put().
 * Returns 0; -EALREADY: @nid has used up its share, which was logged, and may
 * try again later; -ENOMEM. */
int sock_host_get(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		  struct sock_host **host_p) must_check;
/* Does what sock_host_get() does, for a connection that comes from another CPT:
 * it is counted even if @nid has used up its share. Returns 0 or -ENOMEM. */
int sock_host_keep(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		   struct sock_host **host_p) must_check;
/* Undoes sock_host_get() or sock_host_keep(), because the connection has ended
 * or moves to another CPT. @host may be NULL. */
void sock_host_put(struct sock_cpt *cpt, struct sock_host *host);

/* Reserves memory for a copy of @bytes of a frame to @nid, until
 * sock_host_copy_put(). Returns 0; -ENOBUFS: @nid has used up its share, which
 * was logged; -ENOMEM. */
int sock_host_copy_get(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		       uint32_t bytes, struct sock_host **host_p) must_check;
void sock_host_copy_put(struct sock_cpt *cpt, struct sock_host *host,
			uint32_t bytes);

#endif
