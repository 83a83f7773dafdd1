/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/queue/share.h"

#include <pthread.h>
#include <stdlib.h>

#define GRANT_NS (100 * NSEC_PER_MSEC)

/* ---- hosts in queues ---- */

struct host_queues {
	pthread_mutex_t lock;
	struct hash by_nid; /* of host_queue.by_nid, by NID and number */
	/* one reference of the node, and one for each host_queue */
	unsigned int refs;
	uint64_t seed;
};

struct host_queues *host_queues_new(uint64_t seed)
{
	struct host_queues *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	pthread_mutex_init(&all->lock, NULL);
	hash_init(&all->by_nid);
	all->refs = 1;
	all->seed = seed;
	return all;
}

/* Drops a reference. The caller holds the lock, which this function unlocks. */
static void host_queues_unlock_put(struct host_queues *all)
{
	bool last = --all->refs == 0;

	pthread_mutex_unlock(&all->lock);
	if (!last)
		return;
	hash_fini(&all->by_nid);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

void host_queues_free(struct host_queues *all)
{
	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	host_queues_unlock_put(all);
}

/* The caller holds the lock. */
static struct host_queue *host_queue_make(struct host_queues *all,
					  const struct ulnet_nid *nid,
					  unsigned int number, uint64_t hash)
{
	struct host_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->all = all;
	q->nid = *nid;
	q->number = number;
	q->sched.nid = &q->nid;
	if (hash_add(&all->by_nid, &q->by_nid, hash)) {
		free(q);
		return NULL;
	}
	all->refs++;
	return q;
}

static struct host_queue *host_queue_get(struct host_queues *all,
					 const struct ulnet_nid *nid,
					 unsigned int number)
{
	uint64_t h = hash_bytes(nid, sizeof(*nid), all->seed + number);
	struct host_queue *q, *found = NULL;

	pthread_mutex_lock(&all->lock);
	hash_for_each_equal (q, &all->by_nid, h, by_nid)
		if (q->number == number && lnet_nid_eq(&q->nid, nid))
			found = q;
	if (!found)
		found = host_queue_make(all, nid, number, h);
	if (found)
		found->refs++;
	pthread_mutex_unlock(&all->lock);
	return found;
}

static void host_queue_put(struct host_queue *q)
{
	struct host_queues *all = q->all;

	pthread_mutex_lock(&all->lock);
	if (--q->refs) {
		pthread_mutex_unlock(&all->lock);
		return;
	}
	hash_del(&all->by_nid, &q->by_nid);
	free(q);
	host_queues_unlock_put(all);
}

/* ---- hosts ---- */

void hosts_init(struct hosts *hs, struct host_queues *queues, uint64_t seed)
{
	hs->queues = queues;
	hash_init(&hs->by_nid);
	hash_init(&hs->by_client);
	list_init(&hs->all);
	hs->seed = seed;
}

static struct host *host_get(struct hosts *hs, const struct ulnet_nid *nid,
			     unsigned int number)
{
	uint64_t h = hash_bytes(nid, sizeof(*nid), hs->seed + number);
	struct host *host;

	hash_for_each_equal (host, &hs->by_nid, h, by_nid)
		if (host->number == number && lnet_nid_eq(&host->nid, nid))
			return host;
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	host->hosts = hs;
	host->nid = *nid;
	host->number = number;
	host->queue = host_queue_get(hs->queues, nid, number);
	if (!host->queue)
		goto err_free;
	if (hash_add(&hs->by_nid, &host->by_nid, h))
		goto err_queue;
	list_add_tail(&hs->all, &host->link);
	return host;

err_queue:
	host_queue_put(host->queue);
err_free:
	free(host);
	return NULL;
}

static void host_forget(struct host *host)
{
	if (!host->hosts)
		return;
	hash_del(&host->hosts->by_nid, &host->by_nid);
	list_del(&host->link);
	host->hosts = NULL;
}

static void host_put(struct host *host)
{
	if (--host->shares)
		return;
	host_forget(host);
	host_queue_put(host->queue);
	free(host);
}

void hosts_fini(struct hosts *hs)
{
	struct hash_node *n;

	while (!list_empty(&hs->all))
		host_forget(list_first(&hs->all, struct host, link));
	hash_fini(&hs->by_nid);
	while ((n = hash_pop(&hs->by_client)))
		container_of(n, struct share, by_client)->hashed = false;
	hash_fini(&hs->by_client);
}

/* ---- shares ---- */

struct share *share_new(struct hosts *hs, const struct ulnet_nid *nid,
			unsigned int number, bool once)
{
	struct share *share = calloc(1, sizeof(*share));

	if (!share)
		return NULL;
	share->host = host_get(hs, nid, number);
	if (!share->host) {
		free(share);
		return NULL;
	}
	share->host->shares++;
	share->queue.host = &share->host->queue->sched;
	share->number = number;
	share->gone = once;
	list_init(&share->link);
	list_init(&share->active);
	return share;
}

static uint64_t client_hash(const struct hosts *hs, uint64_t client,
			    unsigned int number)
{
	return hash_u64(client, hs->seed + number);
}

struct share *share_join(struct hosts *hs, struct list *shares, uint64_t client,
			 const struct ulnet_nid *nid, unsigned int number)
{
	struct share *share = share_new(hs, nid, number, false);

	if (!share)
		return NULL;
	share->queue.id = client;
	if (hash_add(&hs->by_client, &share->by_client,
		     client_hash(hs, client, number))) {
		share_put(share);
		return NULL;
	}
	share->hashed = true;
	list_add_tail(shares, &share->link);
	return share;
}

/* Puts the share that it finds in front, since calls of one client to one
 * service come in crowds. */
struct share *share_find(struct hosts *hs, struct list *shares, uint64_t client,
			 unsigned int number)
{
	struct share *share;

	hash_for_each_equal (share, &hs->by_client,
			     client_hash(hs, client, number), by_client) {
		if (share->queue.id != client || share->number != number)
			continue;
		list_del(&share->link);
		list_add(shares, &share->link);
		return share;
	}
	return NULL;
}

void share_put(struct share *share)
{
	const struct usage *h = &share->used;

	if (h->requests || h->bytes || h->refusals)
		return;
	host_put(share->host);
	free(share);
}

void shares_drop(struct list *shares)
{
	while (!list_empty(shares)) {
		struct share *share = list_first(shares, struct share, link);

		list_del(&share->link);
		if (share->hashed)
			hash_del(&share->host->hosts->by_client,
				 &share->by_client);
		share->hashed = false;
		share->gone = true;
		share_put(share);
	}
}

/* ---- grants ---- */

static void grant_grow(struct grant *g, uint32_t whole)
{
	uint32_t by = MAX(g->window / 8, 1u);

	g->window = by < whole - g->window ? g->window + by : 0;
}

/* If the window is larger than what is under way, shrinks what is under way:
 * the rest of the window is not used. */
static void grant_shrink(struct grant *g, uint32_t whole, uint32_t flight)
{
	uint64_t n = MIN(grant_of(g, whole), flight);

	g->window = (uint32_t)MAX(n * 4 / 5, 1);
}

static bool grant_measured(struct grant *g, uint64_t target, uint32_t whole,
			   uint32_t flight, uint64_t now)
{
	bool shrinks = g->least > target;
	uint64_t empty = (now - g->end) / GRANT_NS;

	if (shrinks)
		grant_shrink(g, whole, flight);
	else if (g->window)
		grant_grow(g, whole);
	/* Grows once for each 100 ms in which no request came. */
	for (; g->window && empty; empty--)
		grant_grow(g, whole);
	return shrinks;
}

bool grant_sample(struct grant *g, uint64_t delay, uint64_t target,
		  uint32_t whole, uint32_t flight, uint64_t now)
{
	bool shrinks;

	if (likely(now < g->end)) {
		g->least = MIN(g->least, delay);
		return false;
	}
	shrinks = g->end && grant_measured(g, target, whole, flight, now);
	g->end = now + GRANT_NS;
	g->least = delay;
	return shrinks;
}
