/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node's map from NIDs to the peer (its primary NID) and to the owning CPT.
 *
 * A NID without an entry is the only one of its peer, and belongs to the CPT
 * that its hash selects. There are entries only for NIDs of peers with several
 * NIDs, and for NIDs that were moved to another CPT.
 *
 * Threads: CPTs read without locks, in turns of the node's loops. Entries are
 * in shards, which are never written once they are published; a change replaces
 * the shards of its entries. All other threads read under the mutex, which a
 * change also takes, on whatever thread it is made. Each CPT is told of a
 * change in a turn, one after the other. Then the old shards are freed: a CPT
 * uses a shard only within a call.
 *
 * Memory: 8 KiB with the first entry, then 56 bytes an entry. A change copies
 * 1/1,024 of the entries for each of its NIDs.
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
	bool several; /* the peer has more NIDs than this one */
};

/* Whom the directory tells of changes. */
struct directory_users {
	/* In a turn of @cpt's loop, after a change to the entries @to. Called
	 * in the order of the changes. May be NULL. */
	void (*changed)(struct directory *d, unsigned int cpt,
			const struct directory_entry *to, unsigned int n);
	/* In a turn: directory_is_idle() has become true. May be NULL. */
	void (*idled)(struct directory *d);
};

struct directory {
	/* immutable after directory_init(): */
	unsigned int cpts;
	uint64_t seed;
	struct loop *const *loops;
	const struct directory_users *users;

	atomic_uint count;   /* entries */
	atomic_uint version; /* odd while a change has replaced some of its
			      * shards, but not all */
	/* An array of DIRECTORY_SHARDS; NULL until the first entry. */
	_Atomic(struct directory_shard *) *_Atomic shards;
	atomic_uint telling; /* changes of which not all CPTs were told yet */
	pthread_mutex_t lock;
};

/* @loops: one for each CPT, borrowed until directory_fini(); @seed: for
 * hashes. */
void directory_init(struct directory *d, unsigned int cpts,
		    struct loop *const *loops, uint64_t seed,
		    const struct directory_users *users);
/* To be called when directory_is_idle(), and nobody uses the directory. */
void directory_fini(struct directory *d);

/* Were all CPTs told of all changes? Their loops must make turns until then.
 * Any thread. */
static inline bool directory_is_idle(struct directory *d)
{
	return atomic_load(&d->telling) == 0;
}

/* The CPT that owns @nid if there is no entry for it. Any thread. */
static inline unsigned int directory_default_cpt(const struct directory *d,
						 const struct ulnet_nid *nid)
{
	if (d->cpts == 1)
		return 0;
	return (unsigned int)(hash_bytes(nid, sizeof(*nid), d->seed) >> 32) %
	       d->cpts;
}

/* directory_find() if there is any entry at all. */
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

/* The CPT that owns @nid. Any thread. */
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

/* The primary NID of the peer that has @nid. Any thread. */
static inline struct ulnet_nid directory_primary(struct directory *d,
						 const struct ulnet_nid *nid)
{
	struct directory_entry e;

	return unlikely(directory_find(d, nid, &e)) ? e.primary : *nid;
}

/* directory_same() of different NIDs if there is any entry at all. */
bool directory_compare(struct directory *d, const struct ulnet_nid *a,
		       const struct ulnet_nid *b);

/* Are both NIDs of one peer? Consistent also while a change gives the peer
 * another primary NID. Any thread. */
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
 * Sets the @n entries @to, which are of different NIDs; removes those that say
 * what holds without an entry. Both may need memory. Returns 0, or -ENOMEM:
 * nothing has changed. Readers may see some of the entries before others, but
 * each as a whole. Any thread.
 */
int directory_change(struct directory *d, const struct directory_entry *to,
		     unsigned int n) must_check;

#endif
