/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hash.h"

#include <errno.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define HASH_MIN_BUCKETS 16
#define HASH_MAX_BUCKETS (UINT32_C(1) << 30)

void hash_init(struct hash *h)
{
	*h = (struct hash){ .buckets = NULL };
}

void hash_fini(struct hash *h)
{
	BUG_ON(h->count);
	free(h->buckets);
	hash_init(h);
}

/* Deals the entries of @old to itself and to the new bucket above it, keeping
 * their order. */
static void split_bucket(struct hash_node **old, struct hash_node **upper,
			 uint64_t bit)
{
	struct hash_node *n = *old;
	struct hash_node **tail[2] = { old, upper };

	for (; n; n = n->next) {
		unsigned int to = (n->hash & bit) != 0;

		*tail[to] = n;
		tail[to] = &n->next;
	}
	*tail[0] = NULL;
	*tail[1] = NULL;
}

static void grow(struct hash *h)
{
	uint32_t size = h->mask + 1;
	struct hash_node **b;

	if (size >= HASH_MAX_BUCKETS)
		return;
	b = realloc(h->buckets, 2 * (size_t)size * sizeof(struct hash_node *));
	if (!b)
		return;
	for (uint32_t i = 0; i < size; i++)
		split_bucket(&b[i], &b[size + i], size);
	h->buckets = b;
	h->mask = 2 * size - 1;
}

static int make_room(struct hash *h)
{
	if (unlikely(!h->buckets)) {
		h->buckets =
			calloc(HASH_MIN_BUCKETS, sizeof(struct hash_node *));
		if (!h->buckets)
			return -ENOMEM;
		h->mask = HASH_MIN_BUCKETS - 1;
	} else if (unlikely(h->count > h->mask)) {
		grow(h);
	}
	return 0;
}

static void insert(struct hash *h, struct hash_node **at, struct hash_node *n)
{
	n->next = *at;
	*at = n;
	h->count++;
}

int hash_add(struct hash *h, struct hash_node *n, uint64_t hash)
{
	int rc = make_room(h);

	if (rc)
		return rc;
	n->hash = hash;
	insert(h, &h->buckets[hash & h->mask], n);
	return 0;
}

int hash_add_tail(struct hash *h, struct hash_node *n, uint64_t hash)
{
	struct hash_node **at;
	int rc = make_room(h);

	if (rc)
		return rc;
	n->hash = hash;
	at = &h->buckets[hash & h->mask];
	while (*at)
		at = &(*at)->next;
	insert(h, at, n);
	return 0;
}

void hash_del(struct hash *h, struct hash_node *n)
{
	struct hash_node **at;

	BUG_ON(!h->buckets);
	at = &h->buckets[n->hash & h->mask];
	while (*at != n) {
		BUG_ON(!*at);
		at = &(*at)->next;
	}
	*at = n->next;
	h->count--;
}

struct hash_node *hash_walk(const struct hash *h, uint32_t *bucket,
			    const struct hash_node *n)
{
	if (n && n->next)
		return n->next;
	if (!h->buckets)
		return NULL;
	while (*bucket <= h->mask) {
		struct hash_node *first = h->buckets[(*bucket)++];

		if (first)
			return first;
	}
	return NULL;
}

uint64_t hash_u64(uint64_t key, uint64_t seed)
{
	return XXH3_64bits_withSeed(&key, sizeof(key), seed);
}

uint64_t hash_bytes(const void *key, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(key, len, seed);
}
