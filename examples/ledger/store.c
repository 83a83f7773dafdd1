/* SPDX-License-Identifier: BSD-3-Clause */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define STORE_BYTES ((size_t)256 << 20)
#define INCARNATION "incarnation" /* in records: no key is so short */

static int error_of(int mdb)
{
	if (mdb == MDB_NOTFOUND)
		return -ENOENT;
	return mdb > 0 ? -mdb : mdb ? -EIO : 0;
}

static MDB_val val(const void *bytes, size_t length)
{
	return (MDB_val){ .mv_size = length, .mv_data = (void *)bytes };
}

/* ---- records ---- */

/* struct ulrpc_durable. */
static int lookup(void *arg, const void *key, void **value_p, size_t *length_p)
{
	struct store *store = arg;
	MDB_val k = val(key, ULRPC_RECORD_KEY), v;
	MDB_txn *txn;
	int rc = error_of(mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn));

	if (rc)
		return rc;
	rc = error_of(mdb_get(txn, store->records, &k, &v));
	if (!rc) {
		*value_p = malloc(v.mv_size);
		*length_p = v.mv_size;
		if (*value_p)
			memcpy(*value_p, v.mv_data, v.mv_size);
		else
			rc = -ENOMEM;
	}
	mdb_txn_abort(txn);
	return rc;
}

int store_record(struct store *store, MDB_txn *txn,
		 const struct ulrpc_record *record)
{
	MDB_val k = val(record->key, ULRPC_RECORD_KEY);
	MDB_val v = val(record->value, record->length);

	return error_of(mdb_put(txn, store->records, &k, &v, 0));
}

/* That of the store, or, if it is new, a new one. */
static int incarnation_get(struct store *store, MDB_txn *txn)
{
	uint8_t *id = store->durable.incarnation;
	size_t size = sizeof(store->durable.incarnation);
	MDB_val k = val(INCARNATION, strlen(INCARNATION)), v;
	int rc = error_of(mdb_get(txn, store->records, &k, &v));

	if (!rc && v.mv_size == size) {
		memcpy(id, v.mv_data, size);
		return 0;
	}
	if (rc != -ENOENT)
		return rc ? rc : -EIO;
	if (getrandom(id, size, 0) != (ssize_t)size)
		return -EIO;
	v = val(id, size);
	return error_of(mdb_put(txn, store->records, &k, &v, 0));
}

/* ---- accounts ---- */

static int balance_get(struct store *store, MDB_txn *txn, const char *account,
		       struct balance *balance)
{
	MDB_val k = val(account, strlen(account)), v;
	int rc;

	*balance = (struct balance){ 0 };
	if (!*account)
		return -EINVAL;
	rc = error_of(mdb_get(txn, store->accounts, &k, &v));
	if (rc == -ENOENT)
		return 0;
	if (!rc && v.mv_size != sizeof(*balance))
		rc = -EIO;
	if (!rc)
		memcpy(balance, v.mv_data, sizeof(*balance));
	return rc;
}

int store_add(struct store *store, MDB_txn *txn, const char *account,
	      int64_t amount, struct balance *balance)
{
	int rc = balance_get(store, txn, account, balance);
	MDB_val k = val(account, strlen(account));
	MDB_val v = val(balance, sizeof(*balance));

	if (rc)
		return rc;
	if (__builtin_add_overflow(balance->total, amount, &balance->total))
		return -ERANGE;
	balance->entries++;
	return error_of(mdb_put(txn, store->accounts, &k, &v, 0));
}

int store_read(struct store *store, const char *account,
	       struct balance *balance)
{
	MDB_txn *txn;
	int rc = error_of(mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn));

	if (rc)
		return rc;
	rc = balance_get(store, txn, account, balance);
	mdb_txn_abort(txn);
	return rc;
}

/* ---- transactions ---- */

int store_begin(struct store *store, MDB_txn **txn_p)
{
	return error_of(mdb_txn_begin(store->env, NULL, 0, txn_p));
}

int store_end(MDB_txn *txn, int rc)
{
	if (!rc)
		return error_of(mdb_txn_commit(txn));
	mdb_txn_abort(txn);
	return rc;
}

/* ---- the store ---- */

static int open_tables(struct store *store)
{
	MDB_txn *txn;
	int rc = store_begin(store, &txn);

	if (rc)
		return rc;
	rc = error_of(
		mdb_dbi_open(txn, "accounts", MDB_CREATE, &store->accounts));
	if (!rc)
		rc = error_of(mdb_dbi_open(txn, "records", MDB_CREATE,
					   &store->records));
	if (!rc)
		rc = incarnation_get(store, txn);
	return store_end(txn, rc);
}

int store_open(struct store *store, const char *dir)
{
	int rc = error_of(mdb_env_create(&store->env));

	if (rc)
		return rc;
	store->durable.lookup = lookup;
	store->durable.arg = store;
	mdb_env_set_maxdbs(store->env, 2);
	rc = error_of(mdb_env_set_mapsize(store->env, STORE_BYTES));
	if (!rc)
		rc = error_of(mdb_env_open(store->env, dir, 0, 0600));
	if (!rc)
		rc = open_tables(store);
	if (rc)
		mdb_env_close(store->env);
	return rc;
}

void store_close(struct store *store)
{
	mdb_env_close(store->env);
}
