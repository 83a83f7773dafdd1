/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store (ulnet/store.h), and how its threads share it.
 *
 * A transaction collects its changes, and changes nothing until its commit.
 * The commit applies them to the table, where later transactions see them, and
 * queues the transaction. Then its thread waits until it is on disk: if no
 * other thread writes, it writes all that are queued itself, as one group, and
 * waits for the disk once. So the commits that come meanwhile are the next
 * group, and an order of commits is the same in the table and in the log.
 *
 * Nobody is told what is not yet on disk: reads beside transactions wait for
 * the change that they have seen, and a commit ends after those before it.
 * If the disk takes a group no more, all that is queued is undone, newest
 * first, and fails, as it may have seen what is undone. "epoch" counts that.
 *
 * A compaction (compact.c) begins a new log, which commits go to from then on,
 * and writes what is older from the table to a snapshot, in small pieces.
 *
 * All is guarded by "lock", except for the log's journal, which is whoever set
 * "writing". Nobody holds the lock while waiting for the disk.
 */
#ifndef RPC_STORE_STORE_H
#define RPC_STORE_STORE_H

#include <pthread.h>

#include "rpc/store/journal.h"
#include "rpc/store/table.h"
#include "ulnet/store.h"

struct ulrpc_store {
	/* immutable after opening */
	struct ulrpc_store_conf conf;
	struct ulrpc_durable durable;
	unsigned int forks; /* fork_generation() */
	int dir;
	int lock_fd;
	char *name; /* of the directory, for the log */

	pthread_mutex_t lock;
	pthread_cond_t begin; /* the transaction has ended */
	pthread_cond_t
		progress; /* a group was written, or a compaction ended */
	struct table table;
	uint64_t change; /* number of the last commit in the table */
	uint64_t synced; /* of the last one that is on disk */
	/* Of the last commit that has deleted a key. */
	uint64_t deleted;
	uint64_t epoch; /* how many times commits were undone */
	int undone;	/* the error that the last time was for */
	/* The transaction that has begun; NULL: none. */
	struct ulrpc_txn *txn;
	pthread_t txn_thread;
	struct list queue; /* ulrpc_txn.link: in the table, not on disk */
	bool writing;	   /* somebody writes to the log */
	bool failed;	   /* a write ended in -ENOTRECOVERABLE */
	struct journal log;
	uint64_t generation; /* of the log */
	uint64_t log_bytes;
	uint64_t first; /* the oldest generation of which there is a file */

	bool compacting;
	bool closing;	 /* a compaction is to stop */
	bool has_thread; /* of a compaction, perhaps one that has ended */
	pthread_t thread;

	uint64_t commits, syncs, compactions, cut; /* ulrpc_store_info */
};

/* Is this a child of fork()? Any thread. */
bool store_is_forked(const struct ulrpc_store *store);
/* Writes what is queued, at most a group, and all that is in the log to the
 * disk if @sync. Locked, but not meanwhile; nobody is writing. */
void store_write(struct ulrpc_store *store, bool sync);
/* Waits until the commit @change is on disk. Returns whether it is; false: it
 * was undone, or the store has failed. Locked, but not while waiting. */
bool store_wait(struct ulrpc_store *store, uint64_t change);
/* Reads as ulrpc_txn_get(), from @e, which may be NULL. */
int store_copy(const struct entry *e, void *value, size_t *length_p);

/* ulrpc_durable.lookup, with the store as @arg. */
int store_lookup(void *arg, const void *key, void **value_p, size_t *length_p);

/* Begins a compaction if the log is long. Locked. */
void store_compact_long(struct ulrpc_store *store);
/* Stops the compaction, and waits for its end. Not locked. */
void store_compact_stop(struct ulrpc_store *store);
/* Which file of @store is the one of @kind and @generation. */
struct journal_id store_file(const struct ulrpc_store *store, const char *kind,
			     uint64_t generation);
/* Deletes the files that are not needed any more if there is a snapshot of
 * @generation: all that are older. */
void store_delete_older(struct ulrpc_store *store, uint64_t generation);
/* time(), in seconds. */
uint64_t store_clock(void);

#endif
