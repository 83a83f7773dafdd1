/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive chained hash table that grows by itself. Entries with equal hashes
 * keep the order in which they were inserted (hash_add: in front of its equals;
 * hash_add_tail: behind), because match entries need it.
 * Knows hashes only: the user compares keys.
 *
 * Owner: whoever embeds it. Thread: owner.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/util.h"

struct hash_node {
	struct hash_node *next, *prev; /* in the bucket; NULL at its ends */
	uint64_t hash;
};

struct hash_bucket {
	struct hash_node *first, *last;
};

struct hash {
	struct hash_bucket *buckets; /* NULL until the first insertion */
	uint32_t mask;		     /* buckets - 1 */
	uint32_t count;
	bool kept; /* hash_keep() */
};

void hash_init(struct hash *h);

/* Frees the table. The entries are the user's: @h must be empty. */
void hash_fini(struct hash *h);

/* Returns 0, or -ENOMEM when there is no table at all yet; a table that cannot
 * grow stays usable. Adding and removing take the same time however many have
 * the same hash. */
int hash_add(struct hash *h, struct hash_node *n, uint64_t hash) must_check;
int hash_add_tail(struct hash *h, struct hash_node *n,
		  uint64_t hash) must_check;

/* @n must be in @h. */
void hash_del(struct hash *h, struct hash_node *n);

/* First entry with @hash, or NULL; hash_next: the one after @n with the same
 * hash, or NULL. */
static inline struct hash_node *hash_seek(struct hash_node *n, uint64_t hash)
{
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

static inline struct hash_node *hash_first(const struct hash *h, uint64_t hash)
{
	if (!h->buckets)
		return NULL;
	return hash_seek(h->buckets[hash & h->mask].first, hash);
}

static inline struct hash_node *hash_next(const struct hash_node *n)
{
	return hash_seek(n->next, n->hash);
}

/* From now on @h does not grow, or grows again. Who walks through it, and lets
 * entries be added meanwhile, misses none of the others and meets none of them
 * twice; those that are added may be met. */
static inline void hash_keep(struct hash *h, bool keep)
{
	h->kept = keep;
}

/* Walks all entries: start with *@bucket = 0 and @n = NULL; NULL ends. The
 * entry returned may be removed only after the next one was fetched. */
struct hash_node *hash_walk(const struct hash *h, uint32_t *bucket,
			    const struct hash_node *n);

/* Each entry, as @pos; it may not be removed in the body. */
#define hash_for_each(pos, h, member)                                   \
	for (struct hash_cursor pos##_at = { 0 };                       \
	     hash_step(h, &pos##_at) &&                                 \
	     (pos = container_of(pos##_at.n, __typeof__(*pos), member), \
	     true);)

struct hash_cursor {
	struct hash_node *n;
	uint32_t bucket;
};

static inline bool hash_step(const struct hash *h, struct hash_cursor *at)
{
	at->n = hash_walk(h, &at->bucket, at->n);
	return at->n;
}

/* Each entry with @hash, as @pos; it may not be removed in the body. */
#define hash_for_each_equal(pos, h, hash_, member)                          \
	for (struct hash_node *pos##_n = hash_first(h, hash_);              \
	     pos##_n &&                                                     \
	     (pos = container_of(pos##_n, __typeof__(*pos), member), true); \
	     pos##_n = hash_next(pos##_n))

/* Keyed hashes (XXH3): who does not know @seed cannot make collisions. */
uint64_t hash_u64(uint64_t key, uint64_t seed);
uint64_t hash_bytes(const void *key, size_t len, uint64_t seed);

#endif
