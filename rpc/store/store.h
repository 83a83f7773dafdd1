/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store (ulnet/store.h), and how its threads share it.
 *
 * A transaction collects its changes, and changes nothing until its commit. The
 * commit applies the changes to the table, where later transactions see them,
 * and queues the transaction. Then its thread waits until the changes are on
 * disk. If no other thread is writing, it writes itself: all queued
 * transactions as one group, for which it waits for the disk once. Commits that
 * come meanwhile are the next group. So commits are in the same order in the
 * table and in the log.
 *
 * Nobody is told what is not on disk yet: a read outside of transactions waits
 * until the change that it has seen is on disk, and a commit ends after all
 * commits before it. If the disk does not take a group, the group and all that
 * is queued behind it are undone, newest first, and fail, as later transactions
 * may have seen what earlier ones had changed. "epoch" counts how often that
 * has happened.
 *
 * A compaction (compact.c) begins a new log, to which commits go from then on,
 * and writes what is older from the table to a snapshot, in small pieces.
 *
 * "lock" guards everything but the log's journal, which belongs to the thread
 * that has set "writing". Nobody holds the lock while waiting for the disk.
 */
#ifndef RPC_STORE_STORE_H
#define RPC_STORE_STORE_H

#include <pthread.h>

#include "rpc/store/journal.h"
#include "rpc/store/table.h"
#include "ulnet/store.h"

struct ulrpc_store {
	/* immutable after opening: */
	struct ulrpc_store_conf conf;
	struct ulrpc_durable durable;
	unsigned int forks; /* fork_generation() when the store was opened */
	int dir;
	int lock_fd;
	char *name; /* name of the directory, for the log */

	pthread_mutex_t lock;
	/* signaled when the transaction that had begun has ended */
	pthread_cond_t begin;
	pthread_cond_t
		/* signaled when a group was written, or a compaction has ended
		 */
		progress;
	struct table table;
	uint64_t change; /* number of the last commit in the table */
	uint64_t synced; /* number of the last commit that is on disk */
	/* number of the last commit that has deleted a key */
	uint64_t deleted;
	uint64_t epoch; /* how many times commits were undone */
	/* why commits were undone the last time: a negative errno */
	int undone;
	/* the transaction that has begun, and not been committed; NULL: none */
	struct ulrpc_txn *txn;
	pthread_t txn_thread;
	/* of ulrpc_txn.link: transactions that are in the table, but not on
	 * disk */
	struct list queue;
	bool writing; /* a thread is writing to the log */
	bool failed;  /* a write has ended in -ENOTRECOVERABLE */
	struct journal log;
	uint64_t generation; /* generation of the log */
	uint64_t log_bytes;
	uint64_t first; /* the oldest generation that a file of the store has */

	bool compacting;
	bool closing; /* the compaction has to stop */
	/* @thread is a compaction's, perhaps one that has ended */
	bool has_thread;
	pthread_t thread;

	/* what struct ulrpc_store_info tells */
	uint64_t commits, syncs, compactions, cut;
};

/* Is this a child of fork()? Any thread. */
bool store_is_forked(const struct ulrpc_store *store);
/* Writes up to JOURNAL_GROUP queued transactions to the log; with @sync, also
 * waits until all of the log is on disk. The caller holds the lock, which is
 * released meanwhile, and no thread may be writing. */
void store_write(struct ulrpc_store *store, bool sync);
/* Waits until the commit number @change is on disk. Returns false if it was
 * undone, or the store has failed. The caller holds the lock, which is released
 * while this waits. */
bool store_wait(struct ulrpc_store *store, uint64_t change);
/* Copies the value of @e to @value, and returns what ulrpc_txn_get() returns.
 * @e: NULL: there is no entry. */
int store_copy(const struct entry *e, void *value, size_t *length_p);

/* What ulrpc_durable.lookup calls, with the store as @arg. */
int store_lookup(void *arg, const void *key, void **value_p, size_t *length_p);

/* Begins a compaction if the log is long. The caller holds the lock. */
void store_compact_long(struct ulrpc_store *store);
/* Stops the compaction, and waits for its end. The caller does not hold the
 * lock. */
void store_compact_stop(struct ulrpc_store *store);
/* Returns the name of the file of @kind and @generation. */
struct journal_id store_file(const struct ulrpc_store *store, const char *kind,
			     uint64_t generation);
/* Deletes the files that a snapshot of @generation makes superfluous: all that
 * are older. */
void store_delete_older(struct ulrpc_store *store, uint64_t generation);
/* Returns s since 1970, as time(). */
uint64_t store_clock(void);

#endif
