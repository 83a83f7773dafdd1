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

static void insert_first(struct hash_bucket *b, struct hash_node *n)
{
	n->prev = NULL;
	n->next = b->first;
	if (n->next)
		n->next->prev = n;
	else
		b->last = n;
	b->first = n;
}

static void insert_last(struct hash_bucket *b, struct hash_node *n)
{
	n->next = NULL;
	n->prev = b->last;
	if (n->prev)
		n->prev->next = n;
	else
		b->first = n;
	b->last = n;
}

/* Moves the entries of @old that now belong to the new bucket @upper there.
 * Both keep the order of their entries. */
static void split_bucket(struct hash_bucket *old, struct hash_bucket *upper,
			 uint64_t bit)
{
	struct hash_node *n = old->first, *next;

	*old = *upper = (struct hash_bucket){ NULL, NULL };
	for (; n; n = next) {
		next = n->next;
		insert_last(n->hash & bit ? upper : old, n);
	}
}

static void hash_grow(struct hash *h)
{
	uint32_t size = h->mask + 1;
	struct hash_bucket *b;

	if (size >= HASH_MAX_BUCKETS)
		return;
	b = realloc(h->buckets, 2 * (size_t)size * sizeof(*b));
	if (!b)
		return;
	for (uint32_t i = 0; i < size; i++)
		split_bucket(&b[i], &b[size + i], size);
	h->buckets = b;
	h->mask = 2 * size - 1;
}

static int hash_make_room(struct hash *h)
{
	if (unlikely(!h->buckets)) {
		h->buckets =
			calloc(HASH_MIN_BUCKETS, sizeof(struct hash_bucket));
		if (!h->buckets)
			return -ENOMEM;
		h->mask = HASH_MIN_BUCKETS - 1;
	} else if (unlikely(h->count > h->mask) && !h->size_held) {
		hash_grow(h);
	}
	return 0;
}

static in_line int hash_insert(struct hash *h, struct hash_node *n,
			       uint64_t hash,
			       void (*insert)(struct hash_bucket *b,
					      struct hash_node *n))
{
	int rc = hash_make_room(h);

	if (rc)
		return rc;
	n->hash = hash;
	insert(&h->buckets[hash & h->mask], n);
	h->count++;
	return 0;
}

int hash_add(struct hash *h, struct hash_node *n, uint64_t hash)
{
	return hash_insert(h, n, hash, insert_first);
}

int hash_add_tail(struct hash *h, struct hash_node *n, uint64_t hash)
{
	return hash_insert(h, n, hash, insert_last);
}

void hash_del(struct hash *h, struct hash_node *n)
{
	struct hash_bucket *b;

	BUG_ON(!h->buckets);
	b = &h->buckets[n->hash & h->mask];
	BUG_ON((n->prev ? n->prev->next : b->first) != n);
	BUG_ON((n->next ? n->next->prev : b->last) != n);
	if (n->prev)
		n->prev->next = n->next;
	else
		b->first = n->next;
	if (n->next)
		n->next->prev = n->prev;
	else
		b->last = n->prev;
	h->count--;
}

struct hash_node *hash_pop(struct hash *h)
{
	uint32_t bucket = 0;
	struct hash_node *n = hash_walk(h, &bucket, NULL);

	if (n)
		hash_del(h, n);
	return n;
}

struct hash_node *hash_walk(const struct hash *h, uint32_t *bucket,
			    const struct hash_node *n)
{
	if (n && n->next)
		return n->next;
	if (!h->buckets)
		return NULL;
	while (*bucket <= h->mask) {
		struct hash_node *first = h->buckets[(*bucket)++].first;

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
