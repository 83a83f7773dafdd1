/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ledger's store: LMDB, in a directory. It has the accounts, and records of
 * the calls that changed them; both are written in one transaction, so a call
 * has had its effects if, and only if, its record is there.
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

/* @dir exists, and is writable. Removes records that nobody will look for. */
int store_open(struct store *store, const char *dir);
void store_close(struct store *store);

int store_begin(struct store *store, MDB_txn **txn_p);
/* Adds @amount to the account, which is made if need be. */
int store_add(struct store *store, MDB_txn *txn, const char *account,
	      int64_t amount, struct balance *balance);
/* What the reply will be. */
int store_record(struct store *store, MDB_txn *txn,
		 const struct ulrpc_record *record);
/* @rc 0: commits; else it has failed, and nothing is changed. Returns @rc, or
 * why it could not be committed. */
int store_end(MDB_txn *txn, int rc);

/* An account that nobody added to is all 0. */
int store_read(struct store *store, const char *account,
	       struct balance *balance);

#endif
