/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stream/streams.h"

#include <errno.h>
#include <stdlib.h>

/* bytes of early batches of all clients, at most */
#define EARLY_MAX (64u << 20)

void streams_node_put(struct streams_node *n)
{
	if (atomic_fetch_sub(&n->refs, 1) != 1)
		return;
	hash_fini(&n->by_key);
	quotas_fini(&n->early);
	pthread_mutex_destroy(&n->lock);
	pthread_mutex_destroy(&n->starting);
	free(n);
}

void streams_add(struct channel *ch)
{
	struct streams_node *n = ch->shard->rpc->streams;

	atomic_fetch_add(&n->refs, 1);
	ch->streams_node = n;
	ch->seed = n->seed;
	pthread_mutex_lock(&n->lock);
	list_add_tail(&n->channels, &ch->of_node);
	pthread_mutex_unlock(&n->lock);
}

void streams_del(struct channel *ch)
{
	struct streams_node *n = ch->streams_node;

	pthread_mutex_lock(&n->lock);
	list_del(&ch->of_node);
	pthread_mutex_unlock(&n->lock);
	streams_node_put(n);
}

/* Takes a reference to @ch. Returns false if the last one was dropped already.
 */
static bool channel_try(struct channel *ch)
{
	unsigned int refs = atomic_load(&ch->refs);

	while (refs)
		if (atomic_compare_exchange_weak(&ch->refs, &refs, refs + 1))
			return true;
	return false;
}

/* Returns an array of references to all channels, with NULL at its end. Returns
 * NULL if there is no memory. */
static struct channel **channels_get(struct streams_node *n)
{
	struct channel **all, *ch;
	size_t count = 0;

	pthread_mutex_lock(&n->lock);
	list_for_each_entry (ch, &n->channels, of_node)
		count++;
	all = calloc(count + 1, sizeof(struct channel *));
	count = 0;
	if (all)
		list_for_each_entry (ch, &n->channels, of_node)
			if (channel_try(ch))
				all[count++] = ch;
	pthread_mutex_unlock(&n->lock);
	return all;
}

void streams_each(struct streams_node *n,
		  void (*fn)(struct channel *ch, void *arg), void *arg)
{
	struct channel **all = channels_get(n);

	for (size_t i = 0; all && all[i]; i++) {
		channel_lock(all[i]);
		fn(all[i], arg);
		channel_unlock(all[i]);
		channel_put(all[i]);
	}
	free(all);
}

/* ---- the part ---- */

static int part_open(struct ulrpc *rpc)
{
	struct streams_node *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	atomic_init(&n->refs, 1);
	pthread_mutex_init(&n->lock, NULL);
	pthread_mutex_init(&n->starting, NULL);
	list_init(&n->channels);
	list_init(&n->callers);
	list_init(&n->services);
	hash_init(&n->by_key);
	n->seed = rpc->seed;
	quotas_init(&n->early, "bytes of early batches of streams", EARLY_MAX,
		    n->seed);
	atomic_init(&n->makings, load_le64(rpc->server_id + 8));
	rpc->streams = n;
	return 0;
}

static void end_on_close(struct channel *ch, void *arg)
{
	if (ch->shard == arg)
		channel_close(ch);
}

static void shard_close(struct shard *s)
{
	if (s->rpc->streams)
		streams_each(s->rpc->streams, end_on_close, s);
}

/* Called when RPC is gone: frees what calls of a node that has crashed refer
 * to. */
static void leave(struct channel *ch, void *arg)
{
	(void)arg;
	ch->dead = true;
	ch->ops->abandon(ch);
}

static void part_free(struct ulrpc *rpc)
{
	struct streams_node *n = rpc->streams;

	if (!n)
		return;
	streams_each(n, leave, NULL);
	callers_free(n);
	streams_node_put(n);
	rpc->streams = NULL;
}

const struct rpc_part stream_part = {
	.open = part_open,
	.shard_close = shard_close,
	.free = part_free,
};
