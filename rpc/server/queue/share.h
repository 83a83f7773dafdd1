/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients and their hosts hold of a service. A host is a NID, which nobody
 * can make up, but which can have any number of connections. So each host has
 * its share of all there is (base/share.h), and each client its share of its
 * host's. What comes without a connection of RPC is charged to the host, too.
 *
 * This file knows how much is held, not what it is.
 *
 * Owner: the CPT of the connection.
 */
#ifndef RPC_SERVER_SHARE_H
#define RPC_SERVER_SHARE_H

#include "base/hash.h"
#include "base/list.h"
#include "base/share.h"
#include "base/util.h"
#include "rpc/server/queue/grant.h"
#include "rpc/server/queue/sched.h"
#include "ulnet/lnet.h"

/* All hosts that hold something on a CPT. */
struct hosts {
	struct hash by_nid; /* host.by_nid */
	struct list all;    /* host.link */
	uint64_t seed;
};

/* What a client, or a host, holds of a service. */
struct held {
	uint32_t requests; /* under way */
	uint64_t bytes;	   /* that they hold, and replies */
	uint64_t refusals; /* bytes of messages with nothing else */
};

/* All clients of a NID, for one service: there as long as one of them has a
 * share. */
struct host {
	struct hash_node by_nid; /* hosts.by_nid, by NID and portal */
	struct list link;	 /* hosts.all */
	struct hosts *hosts;	 /* NULL: they are gone */
	struct ulnet_nid nid;
	unsigned int portal;
	unsigned int shares;
	struct held held;
	struct sched_host queue; /* exec.lock's */
};

/* What a client holds of a service: there as long as its connection is, or it
 * holds anything. */
struct share {
	struct list link; /* export.shares */
	struct host *host;
	unsigned int portal;
	struct held held;
	struct list active; /* ulrpc_request.share_link: under way */
	bool gone;	    /* the connection is */
	struct grant grant;
	struct sched_client queue; /* exec.lock's, as long as requests wait */
};

/* @seed: random, or strangers could choose NIDs of one bucket. */
void hosts_init(struct hosts *hs, uint64_t seed);
/* Shares that still hold something give it back later. */
void hosts_fini(struct hosts *hs);

/* Makes the share of a new client at @nid, for the service on @portal. @once:
 * the client is not connected, so the share is charged at once, and goes as
 * soon as it holds nothing again. NULL: no memory. */
struct share *share_new(struct hosts *hs, const struct ulnet_nid *nid,
			unsigned int portal, bool once);
/* The connection of these (share.link) is gone: each is freed as soon as it
 * holds nothing. */
void shares_drop(struct list *shares);
/* Frees @share, which is gone, if it holds nothing. */
void share_put(struct share *share);

static inline void held_add(struct held *h, int requests, int64_t bytes,
			    int64_t refusals)
{
	h->requests += (uint32_t)requests;
	h->bytes += (uint64_t)bytes;
	h->refusals += (uint64_t)refusals;
}

static inline void share_held(struct share *share, int requests, int64_t bytes,
			      int64_t refusals)
{
	held_add(&share->held, requests, bytes, refusals);
	held_add(&share->host->held, requests, bytes, refusals);
	if (unlikely(share->gone))
		share_put(share);
}

/* Applies base/share.h twice: the host has its share of all, and the client its
 * share of what the host may have now. */
static inline bool shares_allow(uint64_t client, uint64_t host, uint64_t used,
				uint64_t max, uint64_t n)
{
	uint64_t left = used < max ? max - used : 0;
	uint64_t most = host + (left > host ? (left - host) / 2 : 0);

	return share_allows(host, used, max, n) &&
	       share_allows(client, host, most, n);
}

#endif
