/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive chained hash table that grows by itself. It stores hashes only: the
 * user compares keys. Entries with equal hashes keep their order, which match
 * entries need: hash_add() inserts in front of its equals, hash_add_tail()
 * behind them.
 *
 * Owner: whoever embeds it. Thread: owner.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/util.h"

struct hash_node {
	/* neighbours in the bucket; NULL at the ends */
	struct hash_node *next, *prev;
	uint64_t hash;
};

struct hash_bucket {
	struct hash_node *first, *last;
};

struct hash {
	struct hash_bucket *buckets; /* NULL until the first insertion */
	uint32_t mask;		     /* number of buckets, minus 1 */
	uint32_t count;
	bool size_held; /* kept from growing by hash_hold_size() */
};

void hash_init(struct hash *h);

/* Frees the memory of the table, which must be empty: its entries are the
 * user's. */
void hash_fini(struct hash *h);

/* Adds @n. Returns 0 or -ENOMEM. Only the first entry of a table can get
 * -ENOMEM: later, a table that cannot grow stays usable. Adding and removing
 * take constant time, however many entries have the same hash. */
int hash_add(struct hash *h, struct hash_node *n, uint64_t hash) must_check;
int hash_add_tail(struct hash *h, struct hash_node *n,
		  uint64_t hash) must_check;

/* @n must be in @h. */
void hash_del(struct hash *h, struct hash_node *n);

/* Returns the first entry with @hash from @n on, or NULL. For hash_first(),
 * which starts at the beginning, and hash_next(), which returns the entry after
 * @n with the same hash. */
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

/* Keeps @h from growing (@held), or lets it grow again. While @h does not grow,
 * entries may be added during a walk, which meets all older entries exactly
 * once, and perhaps those that are added. */
static inline void hash_hold_size(struct hash *h, bool held)
{
	h->size_held = held;
}

/* Removes any entry and returns it; NULL: there is none. */
struct hash_node *hash_pop(struct hash *h);

/* Walks all entries: the first call has *@bucket = 0 and @n = NULL, later ones
 * the entry that the last call has returned. Returns NULL at the end. An entry
 * may be removed only once the next one was fetched. */
struct hash_node *hash_walk(const struct hash *h, uint32_t *bucket,
			    const struct hash_node *n);

/* A loop over all entries: in its body @pos is the entry, which may not be
 * removed there. */
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

/* A loop over all entries with @hash_: in its body @pos is the entry, which may
 * not be removed there. */
#define hash_for_each_equal(pos, h, hash_, member)                          \
	for (struct hash_node *pos##_n = hash_first(h, hash_);              \
	     pos##_n &&                                                     \
	     (pos = container_of(pos##_n, __typeof__(*pos), member), true); \
	     pos##_n = hash_next(pos##_n))

/* Return hashes (XXH3) with the key @seed. A peer that does not know @seed
 * cannot produce collisions. */
uint64_t hash_u64(uint64_t key, uint64_t seed);
uint64_t hash_bytes(const void *key, size_t len, uint64_t seed);

#endif
