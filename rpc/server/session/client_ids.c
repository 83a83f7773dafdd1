/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/client_ids.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct client_ids {
	pthread_mutex_t lock; /* guards by_given */
	struct hash by_given;
	uint64_t seed;
};

static uint64_t id_hash(const struct client_ids *ids,
			const uint8_t given[RPC_ID_SIZE])
{
	return hash_bytes(given, RPC_ID_SIZE, ids->seed);
}

/* Finds an id. The caller holds ids->lock. */
static struct client_id *id_find(const struct client_ids *ids,
				 const uint8_t id[RPC_ID_SIZE], bool proved,
				 uint64_t hash)
{
	struct client_id *c;

	hash_for_each_equal (c, &ids->by_given, hash, by_given)
		if (c->proved == proved && !memcmp(c->id, id, RPC_ID_SIZE))
			return c;
	return NULL;
}

int client_ids_add(struct client_ids *ids, struct client_id *c,
		   const uint8_t given[RPC_ID_SIZE])
{
	uint64_t hash = id_hash(ids, given);
	int rc = -EEXIST;

	pthread_mutex_lock(&ids->lock);
	if (!id_find(ids, c->id, c->proved, hash))
		rc = hash_add(&ids->by_given, &c->by_given, hash);
	pthread_mutex_unlock(&ids->lock);
	return rc;
}

void client_ids_del(struct client_ids *ids, struct client_id *c)
{
	pthread_mutex_lock(&ids->lock);
	hash_del(&ids->by_given, &c->by_given);
	pthread_mutex_unlock(&ids->lock);
}

struct client_id *client_ids_find(struct client_ids *ids,
				  const uint8_t given[RPC_ID_SIZE],
				  const uint8_t id[RPC_ID_SIZE],
				  unsigned int *cpt_p)
{
	struct client_id *c;

	pthread_mutex_lock(&ids->lock);
	c = id_find(ids, id, given != id, id_hash(ids, given));
	if (c)
		*cpt_p = c->cpt;
	pthread_mutex_unlock(&ids->lock);
	return c;
}

unsigned int client_ids_guess(struct client_ids *ids,
			      const uint8_t given[RPC_ID_SIZE],
			      unsigned int cpt)
{
	const struct client_id *c;
	unsigned int guess = cpt;

	pthread_mutex_lock(&ids->lock);
	hash_for_each_equal (c, &ids->by_given, id_hash(ids, given), by_given) {
		if (!c->proved)
			continue;
		guess = c->cpt;
		if (guess == cpt)
			break;
	}
	pthread_mutex_unlock(&ids->lock);
	return guess;
}

/* ---- life ---- */

int client_ids_open(struct ulrpc *rpc)
{
	struct client_ids *ids = malloc(sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	pthread_mutex_init(&ids->lock, NULL);
	hash_init(&ids->by_given);
	ids->seed = rpc->seed;
	rpc->client_ids = ids;
	return 0;
}

void client_ids_free(struct ulrpc *rpc)
{
	if (!rpc->client_ids)
		return;
	hash_fini(&rpc->client_ids->by_given);
	pthread_mutex_destroy(&rpc->client_ids->lock);
	free(rpc->client_ids);
	rpc->client_ids = NULL;
}
