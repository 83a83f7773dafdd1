/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/forwarded.h"

#include <errno.h>
#include <string.h>

#include "rpc/quota.h"
#include "rpc/rpc.h"
#include "rpc/stats/stat.h"

/* Bytes of messages that a CPT has forwarded, and that have not come back yet,
 * by the sender's NID. The limit is FORWARDED_HEADS_MAX or FORWARDED_WHOLE_MAX.
 */
struct forwards {
	struct quotas heads;
	struct quotas whole;
};

static struct quotas *quotas_of(const struct forwarded *forwarded)
{
	struct forwards *all = forwarded->from->forwards;

	return forwarded->whole ? &all->whole : &all->heads;
}

static uint32_t forwarded_bytes_of(const struct forwarded *forwarded)
{
	return (uint32_t)(sizeof(*forwarded) + forwarded->length);
}

/* ---- back-pressure ---- */

/* Lets the NID of @q wait when its messages take more than half of its share,
 * so that what LNet is receiving already fits, and no longer when they take a
 * quarter. @less: bytes that are about to be given back. */
static void forwards_look(struct shard *s, const struct quotas *qs,
			  struct quota *q, uint32_t less)
{
	uint32_t left = qs->max - qs->used + less;
	bool full = q->used - less > left / (q->throttled ? 4 : 2);

	if (likely(full == q->throttled))
		return;
	q->throttled = full;
	if (full)
		stat_count(s, RPC_STAT_strays_throttled);
	lnet_peer_throttle(s->node, s->cpt, &q->nid, full);
}

static void forwarded_free(struct forwarded *forwarded)
{
	struct quotas *qs = quotas_of(forwarded);
	struct quota *q = forwarded->quota;
	uint32_t n = forwarded_bytes_of(forwarded);

	if (unlikely(q->throttled))
		forwards_look(forwarded->from, qs, q, n);
	quota_put(qs, q, n);
	free(forwarded);
}

struct forwarded *forwarded_new(struct shard *from, unsigned int cpt,
				const struct ulnet_event *ev,
				const void *payload, size_t length, bool whole)
{
	struct forwarded *forwarded;

	if (from->aborted)
		return NULL;
	forwarded = malloc(sizeof(*forwarded) + length);
	if (!forwarded)
		return NULL;
	forwarded->from = from;
	forwarded->to = &from->rpc->shards[cpt];
	forwarded->length = length;
	forwarded->whole = whole;
	forwarded->quota =
		quota_take(quotas_of(forwarded), &ev->source,
			   forwarded_bytes_of(forwarded), shard_now(from));
	if (!forwarded->quota) {
		stat_count(from, RPC_STAT_strays_dropped);
		free(forwarded);
		return NULL;
	}
	if (whole)
		forwards_look(from, &from->forwards->whole, forwarded->quota,
			      0);
	forwarded->ev = *ev;
	if (payload)
		memcpy(forwarded->payload, payload, length);
	return forwarded;
}

static void on_back(struct ulnet_work *w)
{
	struct forwarded *forwarded = container_of(w, struct forwarded, work);
	struct shard *s = forwarded->from;

	if (forwarded->back)
		forwarded->back(forwarded);
	forwarded_free(forwarded);
	shard_taken(s);
}

static void on_there(struct ulnet_work *w)
{
	struct forwarded *forwarded = container_of(w, struct forwarded, work);
	struct shard *s = forwarded->to;

	forwarded->there(forwarded);
	forwarded->work.fn = on_back;
	shard_give(forwarded->from, w);
	shard_taken(s);
}

void forwarded_send(struct forwarded *forwarded, forwarded_fn there,
		    forwarded_fn back, void *arg)
{
	forwarded->there = there;
	forwarded->back = back;
	forwarded->arg = arg;
	forwarded->work.fn = on_there;
	shard_give(forwarded->to, &forwarded->work);
}

/* ---- the part ---- */

static int forwarded_shard_open(struct shard *s)
{
	struct forwards *all = s->forwards;
	uint64_t seed = shard_random(s, UINT64_MAX);

	quotas_init(&all->heads, "bytes of heads for other CPTs",
		    FORWARDED_HEADS_MAX, seed);
	quotas_init(&all->whole, "bytes of messages for other CPTs",
		    FORWARDED_WHOLE_MAX, seed);
	return 0;
}

static void forwarded_shard_free(struct shard *s)
{
	quotas_fini(&s->forwards->heads);
	quotas_fini(&s->forwards->whole);
}

const struct rpc_part forwarded_part = {
	RPC_PART_STATE(struct forwards, forwards),
	.shard_open = forwarded_shard_open,
	.shard_free = forwarded_shard_free,
};
