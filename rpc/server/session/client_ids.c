/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/client_ids.h"

#include <errno.h>
#include <string.h>

void client_ids_init(struct client_ids *ids, uint64_t seed)
{
	pthread_mutex_init(&ids->lock, NULL);
	hash_init(&ids->by_id);
	ids->seed = seed;
}

void client_ids_fini(struct client_ids *ids)
{
	hash_fini(&ids->by_id);
	pthread_mutex_destroy(&ids->lock);
}

static uint64_t id_hash(const struct client_ids *ids,
			const uint8_t id[RPC_ID_SIZE])
{
	return hash_bytes(id, RPC_ID_SIZE, ids->seed);
}

/* The lock is held. */
static struct client_id *id_find(const struct client_ids *ids,
				 const uint8_t id[RPC_ID_SIZE])
{
	struct hash_node *n = hash_first(&ids->by_id, id_hash(ids, id));

	for (; n; n = hash_next(n)) {
		struct client_id *c = container_of(n, struct client_id, by_id);

		if (!memcmp(c->id, id, RPC_ID_SIZE))
			return c;
	}
	return NULL;
}

int client_ids_add(struct client_ids *ids, struct client_id *c)
{
	int rc = -EEXIST;

	pthread_mutex_lock(&ids->lock);
	if (!id_find(ids, c->id))
		rc = hash_add(&ids->by_id, &c->by_id, id_hash(ids, c->id));
	pthread_mutex_unlock(&ids->lock);
	return rc;
}

void client_ids_del(struct client_ids *ids, struct client_id *c)
{
	pthread_mutex_lock(&ids->lock);
	hash_del(&ids->by_id, &c->by_id);
	pthread_mutex_unlock(&ids->lock);
}

struct client_id *client_ids_find(struct client_ids *ids,
				  const uint8_t id[RPC_ID_SIZE],
				  unsigned int *cpt_p)
{
	struct client_id *c;

	pthread_mutex_lock(&ids->lock);
	c = id_find(ids, id);
	if (c)
		*cpt_p = c->cpt;
	pthread_mutex_unlock(&ids->lock);
	return c;
}
