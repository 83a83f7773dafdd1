/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/bulk/seal.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "rpc/bulk/sealers.h"

bool bulk_room_take(struct shard *s, const struct ulnet_nid *nid, uint32_t n,
		    struct bulk_room *room)
{
	struct bulk_pool *pool = s->bulk_pool;
	uint32_t size = (uint32_t)slab_size(n);
	struct quota *q = quota_take(&pool->rooms, nid, size, shard_now(s));
	void *bytes = q ? slab_get(&pool->slab, size) : NULL;

	if (q && !bytes)
		quota_put(&pool->rooms, q, size);
	if (!bytes)
		return false;
	*room = (struct bulk_room){ q, bytes, size };
	return true;
}

void bulk_room_give(struct shard *s, struct bulk_room *room)
{
	if (!room->bytes)
		return;
	slab_put(&s->bulk_pool->slab, room->bytes, room->n);
	quota_put(&s->bulk_pool->rooms, room->quota, room->n);
	room->bytes = NULL;
}

uint32_t bulk_place_crc(uint64_t match, uint32_t offset, uint32_t length)
{
	uint8_t place[16];

	store_le64(place, match);
	store_le32(place + 8, offset);
	store_le32(place + 12, length);
	return crc32c(0, place, sizeof(place));
}

/* ---- the part ---- */

static int pool_open(struct shard *s)
{
	slab_init(&s->bulk_pool->slab, s);
	list_init(&s->bulk_pool->waiting);
	s->bulk_pool->shard = s;
	quotas_init(&s->bulk_pool->rooms, "bytes for sealed bulk",
		    SEAL_ROOM_MAX, s->jitter);
	return 0;
}

static void pool_stop(struct shard *s)
{
	slab_stop(&s->bulk_pool->slab);
}

static void pool_free(struct shard *s)
{
	quotas_fini(&s->bulk_pool->rooms);
	slab_fini(&s->bulk_pool->slab);
}

const struct rpc_part bulk_part = {
	RPC_PART_STATE(struct bulk_pool, bulk_pool),
	.open = sealers_open,
	.shard_open = pool_open,
	.shard_stop = pool_stop,
	.shard_free = pool_free,
	.free = sealers_free,
};
