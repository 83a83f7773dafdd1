/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ledger's store, in LMDB: the accounts, and records of the calls that
 * changed them. Both are written in one transaction, so a call was executed if,
 * and only if, the store has a record of it.
 *
 * Threads: any; a transaction belongs to the thread that began it. Functions
 * return 0 or a negative errno.
 */
#ifndef EXAMPLES_LEDGER_STORE_H
#define EXAMPLES_LEDGER_STORE_H

#include <lmdb.h>
#include <ulnet/service.h>

struct store {
	MDB_env *env;
	MDB_dbi accounts, records;
	struct ulrpc_durable durable; /* for ulrpc_service_conf */
};

struct balance {
	int64_t total;
	uint64_t entries; /* ever added */
};

/* Opens the store in @dir, which must exist and be writable. Removes expired
 * records. */
int store_open(struct store *store, const char *dir);
void store_close(struct store *store);

/* Begins a transaction, which store_end() ends. */
int store_begin(struct store *store, MDB_txn **txn_p);
/* Adds @amount to the account, which is made if there is none. Sets *@balance
 * to its new balance. */
int store_add(struct store *store, MDB_txn *txn, const char *account,
	      int64_t amount, struct balance *balance);
/* Writes @record, by which the call is known, and its reply, from now on. */
int store_record(struct store *store, MDB_txn *txn,
		 const struct ulrpc_record *record);
/* Commits the transaction if @rc is 0; otherwise drops it, so that nothing is
 * changed. Returns @rc, or the error of the commit. */
int store_end(MDB_txn *txn, int rc);

/* Sets *@balance to that of the account; all 0 if there is no such account. */
int store_read(struct store *store, const char *account,
	       struct balance *balance);

#endif
