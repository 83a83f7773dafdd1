/* SPDX-License-Identifier: BSD-3-Clause */
/* Shards, and what RPC is asked for; rpc/node/ opens and closes it. */
#include "rpc/rpc.h"

#include <string.h>

#include "base/crc32c.h"

uint64_t shard_handle(struct shard *s, uint64_t id)
{
	uint32_t random = 0;

	while (!random)
		lnet_random(s->node, s->cpt, &random, sizeof(random));
	return (uint64_t)random << 32 | (uint32_t)id;
}

bool shard_same_peer(const struct shard *s, const struct ulnet_nid *a,
		     const struct ulnet_nid *b)
{
	struct ulnet_nid of_a, of_b;

	return lnet_nid_eq(a, b) ||
	       (!lnet_primary(s->node, a, &of_a) &&
		!lnet_primary(s->node, b, &of_b) && lnet_nid_eq(&of_a, &of_b));
}

uint64_t shard_random(struct shard *s, uint64_t below)
{
	uint64_t r;

	lnet_random(s->node, s->cpt, &r, sizeof(r));
	if (below == UINT64_MAX)
		return r;
	return (uint64_t)(((unsigned __int128)r * (below + 1)) >> 64);
}

/* What the closer waits for, and ulrpc_shutdown(), changed. */
void shard_settled(struct shard *s)
{
	struct ulrpc *rpc = s->rpc;

	pthread_mutex_lock(&rpc->wait.lock);
	s->idle = s->work == 0;
	s->unused = s->holds == 0;
	wait_wake(&rpc->wait);
	pthread_mutex_unlock(&rpc->wait.lock);
	if (s->work || s->told || atomic_load(&rpc->state) == RPC_OPEN)
		return;
	s->told = true;
	atomic_fetch_add(&rpc->posted, 1);
	lnet_post(rpc->node, 0, &s->idle_work);
}

void shard_taken_last(struct shard *s)
{
	struct ulrpc *rpc = s->rpc;

	pthread_mutex_lock(&rpc->wait.lock);
	wait_wake(&rpc->wait);
	pthread_mutex_unlock(&rpc->wait.lock);
}

struct lnet *ulrpc_node(struct ulrpc *rpc)
{
	return rpc->node;
}

uint32_t ulrpc_method(const char *name)
{
	return crc32c(0, name, strlen(name));
}
