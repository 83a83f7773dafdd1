/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: what the processes behind one NID have opened to this node. One
 * address may have any number of processes that call, each a peer of its own;
 * file descriptors are shared between hosts, by the law of shares
 * (base/share.h), or one host could take all that the process may have.
 *
 * A host lives as long as it has a connection. Owner: the CPT that owns the
 * NID.
 */
#ifndef LND_SOCKLND_HOST_H
#define LND_SOCKLND_HOST_H

#include "lnd/socklnd/socklnd.h"

struct sock_host;

/* One more connection that @nid has opened: *@host_p, to be given back by
 * sock_host_put(). -EALREADY: @nid has its share, which the log tells; it may
 * come again later. -ENOMEM. */
int sock_host_get(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		  struct sock_host **host_p) must_check;
/* That connection has ended. Fine for NULL. */
void sock_host_put(struct sock_cpt *cpt, struct sock_host *host);

#endif
