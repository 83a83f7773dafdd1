/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ledger's store, in LMDB: the accounts, and records of the calls that
 * changed them. Both are written in one transaction, so a call was executed if,
 * and only if, there is its record.
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
	uint64_t entries;
};

/* @dir exists, and is writable. Removes expired records. */
int store_open(struct store *store, const char *dir);
void store_close(struct store *store);

int store_begin(struct store *store, MDB_txn **txn_p);
/* Adds @amount to the account, and makes it if there is none. */
int store_add(struct store *store, MDB_txn *txn, const char *account,
	      int64_t amount, struct balance *balance);
/* Writes the record of a call, which has its reply. */
int store_record(struct store *store, MDB_txn *txn,
		 const struct ulrpc_record *record);
/* Commits if @rc is 0, else changes nothing. Returns @rc, or the error of the
 * commit. */
int store_end(MDB_txn *txn, int rc);

/* An account that nobody added to is all 0. */
int store_read(struct store *store, const char *account,
	       struct balance *balance);

#endif
