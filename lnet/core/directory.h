/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A map of the node, from NIDs to the peer (its primary NID) and to the owning
 * CPT.
 *
 * A NID without an entry is the only NID of its peer, and belongs to the CPT
 * that its hash selects. Entries exist only for NIDs of peers with several
 * NIDs, and for NIDs that were moved to another CPT.
 *
 * Threads: CPTs read without locks, in turns of the node's loops. All other
 * threads read with the mutex locked. A change, on any thread, locks the mutex
 * as well. Entries are in shards, which are never written once they are
 * published: a change replaces the shards that hold its entries. Then each CPT
 * is told of the change in a turn, one CPT after the other; after that the old
 * shards are freed, since a CPT uses a shard only within one call.
 *
 * Memory: 8 KiB with the first entry, and 56 bytes for each entry. A change
 * copies 1/1,024 of the entries for each of its NIDs.
 */
#ifndef LNET_DIRECTORY_H
#define LNET_DIRECTORY_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/hash.h"
#include "base/loop.h"
#include "ulnet/nid.h"

#define DIRECTORY_SHARDS 1024

struct directory;
struct directory_shard;

/* What the directory says, or is to say, of a NID. */
struct directory_entry {
	struct ulnet_nid nid, primary;
	unsigned int cpt;
	bool several; /* the peer has further NIDs */
};

/* Functions that the directory calls to tell its users of changes. */
struct directory_users {
	/* The entries @to have been changed. Called in a turn of @cpt's loop,
	 * in the order of the changes. May be NULL. */
	void (*changed)(struct directory *d, unsigned int cpt,
			const struct directory_entry *to, unsigned int n);
	/* directory_is_idle() has become true. Called in a turn. May be NULL.
	 */
	void (*idled)(struct directory *d);
};

struct directory {
	/* immutable after directory_init(): */
	unsigned int cpts;
	uint64_t seed;
	struct loop *const *loops;
	const struct directory_users *users;

	atomic_uint count; /* number of entries */
	/* odd while a change has replaced only some of its shards */
	atomic_uint version;
	/* An array of DIRECTORY_SHARDS; NULL until the first entry. */
	_Atomic(struct directory_shard *) *_Atomic shards;
	/* number of changes of which not all CPTs were told yet */
	atomic_uint telling;
	pthread_mutex_t lock;
};

/* @loops: an array with the loop of each CPT, borrowed until directory_fini().
 * @seed: for hashes. */
void directory_init(struct directory *d, unsigned int cpts,
		    struct loop *const *loops, uint64_t seed,
		    const struct directory_users *users);
/* To be called when directory_is_idle() is true and nobody uses the directory.
 */
void directory_fini(struct directory *d);

/* Have all CPTs been told of all changes? Until then their loops must make
 * turns. Any thread. */
static inline bool directory_is_idle(struct directory *d)
{
	return atomic_load(&d->telling) == 0;
}

/* Returns the CPT that owns @nid if there is no entry for it. Any thread. */
static inline unsigned int directory_default_cpt(const struct directory *d,
						 const struct ulnet_nid *nid)
{
	if (d->cpts == 1)
		return 0;
	return (unsigned int)(hash_bytes(nid, sizeof(*nid), d->seed) >> 32) %
	       d->cpts;
}

/* As directory_find(), for a directory that has entries. */
bool directory_seek(struct directory *d, const struct ulnet_nid *nid,
		    struct directory_entry *e);

/* Finds the entry of @nid. Returns false, and leaves *@e untouched, if there is
 * none. Any thread. */
static inline bool directory_find(struct directory *d,
				  const struct ulnet_nid *nid,
				  struct directory_entry *e)
{
	/* Relaxed: a thread that must see an entry was told of it by the thread
	 * that added it, and therefore sees the count as well. */
	if (likely(!atomic_load_explicit(&d->count, memory_order_relaxed)))
		return false;
	return directory_seek(d, nid, e);
}

/* Returns the CPT that owns @nid. Any thread. */
static inline unsigned int directory_cpt(struct directory *d,
					 const struct ulnet_nid *nid)
{
	struct directory_entry e;

	if (d->cpts == 1)
		return 0;
	if (unlikely(directory_find(d, nid, &e)))
		return e.cpt;
	return directory_default_cpt(d, nid);
}

/* Returns the primary NID of the peer that has @nid. Any thread. */
static inline struct ulnet_nid directory_primary(struct directory *d,
						 const struct ulnet_nid *nid)
{
	struct directory_entry e;

	return unlikely(directory_find(d, nid, &e)) ? e.primary : *nid;
}

/* As directory_same(), for two different NIDs in a directory that has entries.
 */
bool directory_compare(struct directory *d, const struct ulnet_nid *a,
		       const struct ulnet_nid *b);

/* Do both NIDs belong to the same peer? The answer is right even while a change
 * gives the peer another primary NID. Any thread. */
static inline bool directory_same(struct directory *d,
				  const struct ulnet_nid *a,
				  const struct ulnet_nid *b)
{
	if (likely(lnet_nid_eq(a, b)))
		return true;
	if (likely(!atomic_load_explicit(&d->count, memory_order_relaxed)))
		return false;
	return directory_compare(d, a, b);
}

/*
 * Sets the @n entries @to, which must be for different NIDs. An entry that says
 * only what holds without an entry is removed instead. Adding and removing may
 * need memory. Returns 0, or -ENOMEM: nothing has changed. Readers may see some
 * of the new entries before others, but each entry as a whole. Any thread.
 */
int directory_change(struct directory *d, const struct directory_entry *to,
		     unsigned int n) must_check;

#endif
