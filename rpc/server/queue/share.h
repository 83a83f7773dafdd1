/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a service each client and its host use. A host is a NID, which
 * nobody can make up, but which can have any number of connections. So each
 * host has its share of the service's limits (base/share.h), and each client
 * its share of its host's. Requests and refusals of clients without a
 * connection are charged to their host, too.
 *
 * The clients of a host may be on several CPTs, and each CPT has limits of its
 * own: a host that holds no more than what is free on each of them holds no
 * more than what is free on all. But all CPTs put requests into one queue for
 * workers, and there a host is one for the whole node (struct host_queue), so
 * that it gets no more turns than a host whose clients are on one CPT.
 *
 * Owner: the CPT of the connection.
 */
#ifndef RPC_SERVER_SHARE_H
#define RPC_SERVER_SHARE_H

#include "base/hash.h"
#include "base/list.h"
#include "base/share.h"
#include "base/util.h"
#include "rpc/server/queue/sched.h"
#include "ulnet/lnet.h"

struct host_queues;

/* A NID in the queue of a service, with its clients of all CPTs. */
struct host_queue {
	struct hash_node by_nid; /* node in host_queues.by_nid */
	struct host_queues *all;
	struct ulnet_nid nid;
	unsigned int number; /* of the service: ulrpc_service.number */
	/* how many hosts refer to it, at most one of each CPT; guarded by the
	 * lock of @all */
	unsigned int refs;
	struct sched_host sched; /* guarded by exec.lock */
};

/* All of a node. NULL: no memory. @seed: as for hosts_init(). */
struct host_queues *host_queues_new(uint64_t seed);
/* Those that are still in use are freed with their last host. NULL: nothing to
 * be done. */
void host_queues_free(struct host_queues *all);

/* The hosts of a CPT, and the shares of connected clients. */
struct hosts {
	struct host_queues *queues; /* of the node */
	struct hash by_nid;    /* of host.by_nid */
	struct hash by_client; /* of share.by_client */
	struct list all;       /* of host.link */
	uint64_t seed;
};

/* What a client, or a host, uses of a service. */
struct usage {
	uint32_t requests; /* requests under way */
	/* bytes charged for these requests, and for replies */
	uint64_t bytes;
	/* bytes of messages that contain nothing but refusals */
	uint64_t refusals;
};

/* All clients of a NID, for one service. Exists as long as one of the clients
 * has a share of the service. */
struct host {
	struct hash_node by_nid; /* node in hosts.by_nid, by NID and number */
	struct list link;	 /* node in hosts.all */
	struct hosts *hosts;	 /* NULL after hosts_fini() */
	struct ulnet_nid nid;
	unsigned int number; /* of the service: ulrpc_service.number */
	unsigned int shares; /* how many shares refer to it */
	struct usage used;
	struct host_queue *queue;
};

/*
 * How many calls a client may have in flight at a service. As in CoDel, that
 * depends on how long the client's own requests wait for workers. If even the
 * request that waited least in 100 ms waited longer than the target, the client
 * has a standing queue, which only adds latency: its window shrinks to 0.8 of
 * what it has under way. Else the window grows by an eighth, at least by one.
 *
 * With a fair policy a client that asks for more than its share is the one that
 * waits, so only its window shrinks. With fifo all wait alike, and clients that
 * have more under way than others lose more.
 *
 * Time in the gate (gate.h) does not count: it delays nobody else. Requests
 * that are run inline do not wait.
 */
struct grant {
	/* calls in flight, at most; 0: as many as the service's whole window */
	uint32_t window;
	/* ns: when the current 100 ms end; 0: none have begun */
	uint64_t end;
	uint64_t least; /* ns: the shortest wait in the current 100 ms */
};

/* What has been found out about which calls a client may make to a service:
 * serve/permit.h. All 0: nothing yet. */
struct permit {
	/* a bit for each method that the client may call, by its place in
	 * ulrpc_service.methods (the first 64) */
	uint64_t methods;
	/* enum ulrpc_flavour of the messages for which this was found out */
	uint8_t flavour;
	bool all; /* the client may call all methods */
};

/* What a client uses of a service. Made when the client opens the service;
 * exists as long as the client's connection, or as anything is charged to it.
 */
struct share {
	struct list link; /* node in export.shares */
	struct host *host;
	unsigned int number; /* of the service: ulrpc_service.number */
	/* The client may make all calls of the service, whatever their methods
	 * are (serve/permit.h). If this is not set, each call is looked at. */
	bool cleared;
	/* the client has opened the service, which has not ended */
	bool opened;
	/* the client names the service in its requests: those that name another
	 * one, or none, are for a service that has ended. Never @cleared. */
	bool marked;
	bool gone;   /* the client's connection has ended */
	bool hashed; /* @by_client is in a table */
	/* node in hosts.by_client, by the client's connection and number */
	struct hash_node by_client;
	struct usage used;
	/* of ulrpc_request.share_link: requests under way */
	struct list active;
	struct grant grant;
	struct permit permit;
	/* guarded by exec.lock while requests of the client are queued */
	struct sched_client queue;
};

/* @queues: of the node; borrowed until hosts_fini(). @seed: random, so that
 * nobody can choose NIDs that hash to one bucket. */
void hosts_init(struct hosts *hs, struct host_queues *queues, uint64_t seed);
/* Hosts that still have shares are freed with their last share. */
void hosts_fini(struct hosts *hs);

/* Makes the share of a new client at @nid, for the service with @number. @once:
 * the client is not connected; the caller charges the share at once, and the
 * share is freed as soon as nothing is charged to it any more. NULL: no memory.
 */
struct share *share_new(struct hosts *hs, const struct ulnet_nid *nid,
			unsigned int number, bool once);
/* Makes the share of a connected client, and adds it to @shares, a list of
 * share.link. @client: the handle of its connection. NULL: no memory. */
struct share *share_join(struct hosts *hs, struct list *shares, uint64_t client,
			 const struct ulnet_nid *nid, unsigned int number);
/* Returns the share that the client with the connection @client and the list
 * @shares has of the service with @number, and puts it in front of the list;
 * NULL: there is none. */
struct share *share_find(struct hosts *hs, struct list *shares, uint64_t client,
			 unsigned int number);
/* Called when the connection of @shares (share.link) has ended: each of them is
 * freed as soon as nothing is charged to it. */
void shares_drop(struct list *shares);
/* Frees @share, whose connection has ended, if nothing is charged to it. */
void share_put(struct share *share);

/* Forgets what was found out about which calls the client of @share may make.
 */
static inline void share_judge_anew(struct share *share)
{
	share->cleared = false;
	share->permit = (struct permit){ 0 };
}

static inline void usage_add(struct usage *h, int requests, int64_t bytes,
			     int64_t refusals)
{
	h->requests += (uint32_t)requests;
	h->bytes += (uint64_t)bytes;
	h->refusals += (uint64_t)refusals;
}

static inline void share_charge(struct share *share, int requests,
				int64_t bytes, int64_t refusals)
{
	usage_add(&share->used, requests, bytes, refusals);
	usage_add(&share->host->used, requests, bytes, refusals);
	if (unlikely(share->gone))
		share_put(share);
}

/* May a client that uses @client, of a host that uses @host, have @n more of
 * something of which all together use @used, and may use @max? The host has its
 * share of @max, and the client its share of what its host may have now. */
static inline bool shares_allow(uint64_t client, uint64_t host, uint64_t used,
				uint64_t max, uint64_t n)
{
	uint64_t left = used < max ? max - used : 0;
	uint64_t most = host + (left > host ? (left - host) / 2 : 0);

	return share_allows(host, used, max, n) &&
	       share_allows(client, host, most, n);
}

/* Called when a worker has taken a request of the client, which has waited for
 * @delay ns. @target: ns, the longest wait that is wanted; @whole: the
 * service's window; @flight: how many requests of the client are under way;
 * @now: ns. Returns whether the client's window has shrunk. */
bool grant_sample(struct grant *g, uint64_t delay, uint64_t target,
		  uint32_t whole, uint32_t flight, uint64_t now);
/* Returns the client's window: 1 to @whole. */
static inline uint32_t grant_of(const struct grant *g, uint32_t whole)
{
	return likely(!g->window) ? whole : MIN(g->window, whole);
}

#endif
