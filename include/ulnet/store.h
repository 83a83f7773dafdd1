/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store for durable services (ulrpc_store_open(3)): keys with values, in
 * memory and in the files of one directory, and the records of calls, by which
 * a service executes each call once, across its restarts
 * (ulrpc_request_record(3)). A transaction changes all that it is to change,
 * or nothing: what a call does and the record of the call are one transaction.
 *
 * Errors: functions return 0 or a negative errno. Out-parameters are left alone
 * on failure. Threads: any; functions that wait for the disk are not for the
 * threads of CPTs. Child of fork(): all fail with -ESHUTDOWN.
 */
#ifndef ULNET_STORE_H
#define ULNET_STORE_H

#include "ulnet/service.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ulrpc_store;
struct ulrpc_txn;

/* Limits in bytes: of a key, which has at least 1; of a value; of all that a
 * transaction puts and deletes, plus 16 for each key; of a text that says why a
 * store cannot be opened. */
#define ULRPC_STORE_KEY_MAX   1024
#define ULRPC_STORE_VALUE_MAX (UINT32_C(4) << 20)
#define ULRPC_STORE_TXN_MAX   (UINT32_C(64) << 20)
#define ULRPC_STORE_TEXT      256

/* ---- opening: ulrpc_store_open(3) ---- */

struct ulrpc_store_conf {
	/* bytes of the log at which the library compacts it in the background,
	 * but at least as many as all keys and values have; 0 = 16 MiB */
	uint64_t log_max;
	/* Do not wait for the disk: what was committed outlives the process,
	 * but the last of it may be lost if the machine fails. */
	bool no_sync;
};

/*
 * Opens the store in the directory @dir; makes both if they do not exist.
 * @conf NULL: defaults. On failure @why, unless it is NULL, says what is wrong;
 * if it is NULL, the log does. -EBUSY: the store is open, in this process or
 * in another; -EMEDIUMTYPE: a file is not one of a store, or is of another
 * store; -ENOTEMPTY: there is no store in @dir, but there are other files;
 * -EPROTONOSUPPORT: a later version of the library made it; -EBADMSG: the files
 * are damaged, or one is missing; -ENAMETOOLONG; -ENOMEM; -errno of the files.
 */
ULNET_EXPORT int ulrpc_store_open(const char *dir,
				  const struct ulrpc_store_conf *conf,
				  struct ulrpc_store **store_p,
				  char why[ULRPC_STORE_TEXT]);
/* Closes the store, which nobody may be using: services that have it must have
 * been stopped. Waits for the disk, and for a compaction to stop. @store may be
 * NULL. */
ULNET_EXPORT void ulrpc_store_close(struct ulrpc_store *store);
/* For ulrpc_service_conf.durable. Valid until the store is closed. */
ULNET_EXPORT const struct ulrpc_durable *ulrpc_store_durable(
	const struct ulrpc_store *store);

/* ---- transactions: ulrpc_txn_begin(3) ---- */

/*
 * Begins a transaction, which ulrpc_txn_commit() or ulrpc_txn_abort() ends. A
 * store has one transaction at a time: waits until that of another thread ends.
 * A thread that has a transaction must wait for nothing else, such as a call or
 * bulk. -EDEADLK: this thread has one; -ENOTRECOVERABLE: an earlier commit has
 * failed with this error; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_txn_begin(struct ulrpc_store *store,
				 struct ulrpc_txn **txn_p);
/*
 * Copies the value of @key to @value, which has room for *@length_p bytes, and
 * sets *@length_p to its length. Sees what the transaction has changed.
 * -ENOENT: there is no such key; -EMSGSIZE: the value is longer, and *@length_p
 * is set to its length; -EINVAL.
 */
ULNET_EXPORT int ulrpc_txn_get(struct ulrpc_txn *txn, const void *key,
			       size_t key_length, void *value,
			       size_t *length_p);
/* Puts @value under @key, in the place of an older one. Both are copied.
 * -EINVAL: @key is empty, or longer than ULRPC_STORE_KEY_MAX; -EMSGSIZE: the
 * value or the transaction is too long; -ENOMEM. */
ULNET_EXPORT int ulrpc_txn_put(struct ulrpc_txn *txn, const void *key,
			       size_t key_length, const void *value,
			       size_t length);
/* Deletes @key and its value. -ENOENT: there is no such key; otherwise as
 * ulrpc_txn_put(). */
ULNET_EXPORT int ulrpc_txn_delete(struct ulrpc_txn *txn, const void *key,
				  size_t key_length);
/* Stores the record of a call, of ulrpc_request_record() or
 * ulrpc_closure_record(), from which the call is answered if it is sent again.
 * Errors as ulrpc_txn_put(). */
ULNET_EXPORT int ulrpc_txn_record(struct ulrpc_txn *txn,
				  const struct ulrpc_record *record);
/*
 * Ends the transaction. On success all its changes are on disk, and nobody else
 * has seen any of them before. Waits for the disk, together with the commits of
 * other threads. On failure nothing is changed. -ENOSPC, -EDQUOT, -EFBIG, -EIO
 * and others: the disk has not taken the changes, and the store can still be
 * used. -ENOTRECOVERABLE: the disk has failed in such a way that nobody knows
 * whether the transaction will be found when the store is opened again; this
 * store takes no more transactions.
 */
ULNET_EXPORT int ulrpc_txn_commit(struct ulrpc_txn *txn);
/* Ends the transaction, of which nothing remains. Any thread. */
ULNET_EXPORT void ulrpc_txn_abort(struct ulrpc_txn *txn);

/* ---- beside transactions: ulrpc_store_read(3) ---- */

/* As ulrpc_txn_get(), of what has been committed. If a commit is under way,
 * waits until its changes are on disk. -ENOTRECOVERABLE: it is not known
 * whether they are on disk. */
ULNET_EXPORT int ulrpc_store_read(struct ulrpc_store *store, const void *key,
				  size_t key_length, void *value,
				  size_t *length_p);
/* Calls @fn for each key, in no particular order, until a call returns another
 * value than 0, which is then returned. @key and @value are valid only during
 * the call. @fn must not call functions of the store; commits wait meanwhile.
 * Errors as of ulrpc_txn_begin(). */
ULNET_EXPORT int ulrpc_store_each(struct ulrpc_store *store,
				  int (*fn)(void *arg, const void *key,
					    size_t key_length,
					    const void *value, size_t length),
				  void *arg);
/* Compacts the log now, on this thread: afterwards the files have only the last
 * value of each key and record. Commits go on meanwhile. -ECANCELED: a commit
 * failed meanwhile; -ENOTRECOVERABLE; -ENOMEM; -errno of the files. After a
 * failure the store is as it was. */
ULNET_EXPORT int ulrpc_store_compact(struct ulrpc_store *store);

struct ulrpc_store_info {
	uint64_t keys;	  /* number of keys, without those of records */
	uint64_t records; /* number of records of calls */
	/* bytes of keys and values, including those of records */
	uint64_t bytes;
	uint64_t log; /* bytes of the log since it was compacted */
	/* Since the store was opened: */
	uint64_t commits; /* commits that have changed something */
	/* waits for the disk; commits that wait at the same time share one */
	uint64_t syncs;
	uint64_t compactions; /* compactions that were completed */
	/* bytes that were cut off the log when it was opened, because they were
	 * not completely on disk when the machine or the process failed */
	uint64_t cut;
	bool failed; /* a commit has failed by -ENOTRECOVERABLE */
};

ULNET_EXPORT int ulrpc_store_info(struct ulrpc_store *store,
				  struct ulrpc_store_info *info);

#ifdef __cplusplus
}
#endif

#endif
