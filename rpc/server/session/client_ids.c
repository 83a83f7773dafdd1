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

/* ---- places ---- */

static uint32_t place_hash(const struct client_ids *ids,
			   const struct ulnet_id *place)
{
	uint64_t hash = hash_bytes(&place->nid, sizeof(place->nid),
				   ids->seed ^ place->pid);

	return (uint32_t)(hash >> 32) | 1;
}

/* Returns the index of @place in c->places; if it is not there, the last index.
 */
static unsigned int place_find(const struct client_id *c, uint32_t place)
{
	unsigned int i = 0;

	while (i < CLIENT_ID_PLACES - 1 && c->places[i] != place)
		i++;
	return i;
}

/* Puts @place in front. The place that was noted longest ago is dropped. */
static void place_add(struct client_id *c, uint32_t place)
{
	unsigned int i = place_find(c, place);

	memmove(c->places + 1, c->places, i * sizeof(c->places[0]));
	c->places[0] = place;
}

static void place_drop(struct client_id *c, uint32_t place)
{
	unsigned int i = place_find(c, place);

	if (c->places[i] != place)
		return;
	memmove(c->places + i, c->places + i + 1,
		(CLIENT_ID_PLACES - 1 - i) * sizeof(c->places[0]));
	c->places[CLIENT_ID_PLACES - 1] = 0;
}

/* Notes that @c, which is found by @hash, has proved itself from @place. From
 * then on the place is nobody else's of those that give the same id: if two had
 * it, the guess for one of them would be wrong each time. The caller holds
 * ids->lock. */
static void place_note(const struct client_ids *ids, struct client_id *c,
		       uint64_t hash, uint32_t place)
{
	struct client_id *other;

	hash_for_each_equal (other, &ids->by_given, hash, by_given)
		place_drop(other, place);
	place_add(c, place);
}

/* ---- ids ---- */

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
		   const uint8_t given[RPC_ID_SIZE],
		   const struct ulnet_id *place)
{
	uint64_t hash = id_hash(ids, given);
	int rc = -EEXIST;

	memset(c->places, 0, sizeof(c->places));
	pthread_mutex_lock(&ids->lock);
	if (!id_find(ids, c->id, c->proved, hash))
		rc = hash_add(&ids->by_given, &c->by_given, hash);
	if (!rc && place)
		place_note(ids, c, hash, place_hash(ids, place));
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

unsigned int client_ids_cpt(const struct client_ids *ids,
			    const uint8_t given[RPC_ID_SIZE], unsigned int n)
{
	return (unsigned int)(id_hash(ids, given) >> 32) % n;
}

/* How likely the client of @c is the one that comes from @place to @cpt; 0: it
 * is not. */
static unsigned int guess_rank(const struct client_id *c, uint32_t place,
			       unsigned int cpt)
{
	if (!c->proved)
		return 0;
	if (c->places[place_find(c, place)] == place)
		return 3;
	return c->cpt == cpt ? 2 : 1;
}

unsigned int client_ids_guess(struct client_ids *ids,
			      const uint8_t given[RPC_ID_SIZE],
			      const struct ulnet_id *place, unsigned int cpt)
{
	const struct client_id *c, *guess = NULL;
	uint32_t at = place_hash(ids, place);
	unsigned int best = 0;

	pthread_mutex_lock(&ids->lock);
	hash_for_each_equal (c, &ids->by_given, id_hash(ids, given), by_given) {
		unsigned int rank = guess_rank(c, at, cpt);

		if (rank > best)
			guess = c;
		best = MAX(best, rank);
	}
	if (guess)
		cpt = guess->cpt;
	pthread_mutex_unlock(&ids->lock);
	return cpt;
}

unsigned int client_ids_proved(struct client_ids *ids,
			       const uint8_t given[RPC_ID_SIZE],
			       const uint8_t id[RPC_ID_SIZE],
			       const struct ulnet_id *place, unsigned int cpt)
{
	uint64_t hash = id_hash(ids, given);
	struct client_id *c;

	pthread_mutex_lock(&ids->lock);
	c = id_find(ids, id, true, hash);
	if (c) {
		place_note(ids, c, hash, place_hash(ids, place));
		cpt = c->cpt;
	}
	pthread_mutex_unlock(&ids->lock);
	return cpt;
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
