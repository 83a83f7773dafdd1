/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which CPT owns a NID, and which peer has the NID: a map of the whole node
 * from NIDs to primary NIDs and CPTs. Knows nothing of peers.
 *
 * A NID that the directory has no entry for is the only one of its peer, and
 * belongs to the CPT that its hash names. There are entries only for the
 * others: NIDs of peers with several, and NIDs that were moved to another CPT.
 *
 * Threads. CPTs read without locks, in turns of the node's loops: entries stand
 * in shards that are never written once they can be seen; a change replaces the
 * shards that have its entries. All other threads read under the mutex, which a
 * change takes as well, on whatever thread it is made. Each CPT is told of a
 * change in a turn, one after the other. After that the shards that were
 * replaced are freed, since a CPT looks at a shard within a call and keeps
 * nothing of it.
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

/* What the directory says of a NID, or shall say. */
struct directory_entry {
	struct ulnet_nid nid, primary;
	unsigned int cpt;
	bool several; /* the peer has more NIDs than this one */
};

/* Whom the directory tells of changes. */
struct directory_users {
	/* In a turn of @cpt's loop, after a change: @to are its entries. Called
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
	atomic_uint version; /* odd: some shards of a change can be seen, and
			      * others cannot be yet */
	/* DIRECTORY_SHARDS of them, NULL until the first entry came. */
	_Atomic(struct directory_shard *) *_Atomic shards;
	atomic_uint telling; /* changes of which not all CPTs were told */
	pthread_mutex_t lock;
};

/* Of a node with these CPTs, whose loops are borrowed until directory_fini();
 * @seed: for hashes. */
void directory_init(struct directory *d, unsigned int cpts,
		    struct loop *const *loops, uint64_t seed,
		    const struct directory_users *users);
/* directory_is_idle(), and nobody reads or changes the directory any more. */
void directory_fini(struct directory *d);

/* Were all CPTs told of all changes? Their loops must make turns until then.
 * Any thread. */
static inline bool directory_is_idle(struct directory *d)
{
	return atomic_load(&d->telling) == 0;
}

/* Where @nid belongs if there is no entry for it. Any thread. */
static inline unsigned int directory_default_cpt(const struct directory *d,
						 const struct ulnet_nid *nid)
{
	if (d->cpts == 1)
		return 0;
	return (unsigned int)(hash_bytes(nid, sizeof(*nid), d->seed) >> 32) %
	       d->cpts;
}

/* directory_find(), if there is any entry at all. */
bool directory_seek(struct directory *d, const struct ulnet_nid *nid,
		    struct directory_entry *e);

/* What is said of @nid; false, and @e untouched: there is no entry. Any
 * thread. */
static inline bool directory_find(struct directory *d,
				  const struct ulnet_nid *nid,
				  struct directory_entry *e)
{
	/* Whoever must see an entry has been told of it by another thread, and
	 * so sees its count as well. */
	if (likely(!atomic_load_explicit(&d->count, memory_order_relaxed)))
		return false;
	return directory_seek(d, nid, e);
}

/* The CPT that @nid belongs to. Any thread. */
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

/* directory_same(), of different NIDs, if there is any entry at all. */
bool directory_compare(struct directory *d, const struct ulnet_nid *a,
		       const struct ulnet_nid *b);

/* Are these NIDs of one peer? True also while a change gives the peer's NIDs
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
 * Sets all of @to, @n entries of different NIDs. -ENOMEM: nothing has changed.
 * An entry that says no more than no entry would is removed, which may take
 * memory, too. Whoever reads meanwhile may see some of the entries before
 * others; each entry is seen as a whole. Any thread.
 */
int directory_change(struct directory *d, const struct directory_entry *to,
		     unsigned int n) must_check;

#endif
