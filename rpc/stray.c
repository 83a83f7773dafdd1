/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stray.h"

#include <errno.h>
#include <string.h>

#include "rpc/party.h"
#include "rpc/rpc.h"
#include "rpc/stats/stat.h"

/* Of a CPT, from which they are under way: bytes. */
struct strays {
	struct parties heads;
	struct parties whole;
};

static struct parties *parties_of(const struct stray *stray)
{
	struct strays *all = stray->from->strays;

	return stray->whole ? &all->whole : &all->heads;
}

static uint32_t bytes_of(const struct stray *stray)
{
	return (uint32_t)(sizeof(*stray) + stray->length);
}

static void stray_free(struct stray *stray)
{
	party_put(parties_of(stray), stray->party, bytes_of(stray));
	free(stray);
}

struct stray *stray_new(struct shard *from, unsigned int cpt,
			const struct ulnet_event *ev, const void *payload,
			size_t length, bool whole)
{
	struct stray *stray = malloc(sizeof(*stray) + length);

	if (!stray)
		return NULL;
	stray->from = from;
	stray->to = rpc_shard_of(from->rpc, cpt);
	stray->length = length;
	stray->whole = whole;
	stray->party = party_take(parties_of(stray), &ev->source,
				  bytes_of(stray), shard_now(from));
	if (!stray->party) {
		stat_count(from, RPC_STAT_strays_dropped);
		free(stray);
		return NULL;
	}
	stray->ev = *ev;
	if (payload)
		memcpy(stray->payload, payload, length);
	return stray;
}

static void on_back(struct ulnet_work *w)
{
	struct stray *stray = container_of(w, struct stray, work);
	struct shard *s = stray->from;

	if (stray->back)
		stray->back(stray);
	stray_free(stray);
	shard_taken(s);
}

static void on_there(struct ulnet_work *w)
{
	struct stray *stray = container_of(w, struct stray, work);
	struct shard *s = stray->to;

	stray->there(stray);
	stray->work.fn = on_back;
	shard_give(stray->from, w);
	shard_taken(s);
}

void stray_send(struct stray *stray, stray_fn there, stray_fn back, void *arg)
{
	stray->there = there;
	stray->back = back;
	stray->arg = arg;
	stray->work.fn = on_there;
	shard_give(stray->to, &stray->work);
}

/* ---- the part ---- */

static int stray_shard_open(struct shard *s)
{
	struct strays *all = calloc(1, sizeof(*all));
	uint64_t seed = shard_random(s, UINT64_MAX);

	if (!all)
		return -ENOMEM;
	parties_init(&all->heads, "bytes of heads for other CPTs",
		     STRAY_HEADS_MAX, seed);
	parties_init(&all->whole, "bytes of messages for other CPTs",
		     STRAY_WHOLE_MAX, seed);
	s->strays = all;
	return 0;
}

static void stray_shard_free(struct shard *s)
{
	struct strays *all = s->strays;

	if (!all)
		return;
	parties_fini(&all->heads);
	parties_fini(&all->whole);
	free(all);
	s->strays = NULL;
}

const struct rpc_part stray_part = {
	.name = "strays",
	.shard_open = stray_shard_open,
	.shard_free = stray_shard_free,
};
