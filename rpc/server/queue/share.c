/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/queue/share.h"

#include <stdlib.h>

/* ---- hosts ---- */

void hosts_init(struct hosts *hs, uint64_t seed)
{
	hash_init(&hs->by_nid);
	list_init(&hs->all);
	hs->seed = seed;
}

static struct host *host_get(struct hosts *hs, const struct ulnet_nid *nid,
			     unsigned int portal)
{
	uint64_t h = hash_bytes(nid, sizeof(*nid), hs->seed + portal);
	struct hash_node *n = hash_first(&hs->by_nid, h);
	struct host *host;

	for (; n; n = hash_next(n)) {
		host = container_of(n, struct host, by_nid);
		if (host->portal == portal && lnet_nid_eq(&host->nid, nid))
			return host;
	}
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	host->hosts = hs;
	host->nid = *nid;
	host->queue.nid = &host->nid;
	host->portal = portal;
	if (hash_add(&hs->by_nid, &host->by_nid, h)) {
		free(host);
		return NULL;
	}
	list_add_tail(&hs->all, &host->link);
	return host;
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
	free(host);
}

void hosts_fini(struct hosts *hs)
{
	while (!list_empty(&hs->all))
		host_forget(list_first(&hs->all, struct host, link));
	hash_fini(&hs->by_nid);
}

/* ---- shares ---- */

struct share *share_new(struct hosts *hs, const struct ulnet_nid *nid,
			unsigned int portal, bool once)
{
	struct share *share = calloc(1, sizeof(*share));

	if (!share)
		return NULL;
	share->host = host_get(hs, nid, portal);
	if (!share->host) {
		free(share);
		return NULL;
	}
	share->host->shares++;
	share->queue.host = &share->host->queue;
	share->portal = portal;
	share->gone = once;
	list_init(&share->link);
	list_init(&share->active);
	return share;
}

void share_put(struct share *share)
{
	const struct held *h = &share->held;

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
		share->gone = true;
		share_put(share);
	}
}
