/* SPDX-License-Identifier: BSD-3-Clause */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define STORE_BYTES ((size_t)256 << 20)
#define INCARNATION "incarnation" /* a key in records; others are longer */

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

/* The value of a record begins with the time when the record expires, in
 * seconds of time(); UINT64_MAX: never. Returns that time if it is @us from
 * now. */
static uint64_t expiry_in(uint64_t us)
{
	return us == ULRPC_NEVER ? UINT64_MAX
				 : (uint64_t)time(NULL) + us / 1000000 + 1;
}

/* Sets *@at to when the record with the value @v expires. False: @v is not the
 * value of a record. */
static bool expiry_of(const MDB_val *v, uint64_t *at)
{
	if (v->mv_size < sizeof(*at))
		return false;
	memcpy(at, v->mv_data, sizeof(*at));
	return true;
}

static int record_copy(const MDB_val *v, void **value_p, size_t *length_p)
{
	uint64_t at;

	if (!expiry_of(v, &at))
		return -EIO;
	*length_p = v->mv_size - sizeof(at);
	*value_p = malloc(*length_p);
	if (!*value_p)
		return -ENOMEM;
	memcpy(*value_p, (const uint8_t *)v->mv_data + sizeof(at), *length_p);
	return 0;
}

/* ulrpc_durable.lookup */
static int lookup(void *arg, const void *key, void **value_p, size_t *length_p)
{
	struct store *store = arg;
	MDB_val k = val(key, ULRPC_RECORD_KEY), v;
	MDB_txn *txn;
	int rc = error_of(mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn));

	if (rc)
		return rc;
	rc = error_of(mdb_get(txn, store->records, &k, &v));
	if (!rc)
		rc = record_copy(&v, value_p, length_p);
	mdb_txn_abort(txn);
	return rc;
}

int store_record(struct store *store, MDB_txn *txn,
		 const struct ulrpc_record *record)
{
	MDB_val k = val(record->key, ULRPC_RECORD_KEY);
	uint64_t at = expiry_in(record->keep);
	MDB_val v = { .mv_size = sizeof(at) + record->length };
	int rc = mdb_put(txn, store->records, &k, &v, MDB_RESERVE);

	if (rc)
		return error_of(rc);
	memcpy(v.mv_data, &at, sizeof(at));
	memcpy((uint8_t *)v.mv_data + sizeof(at), record->value,
	       record->length);
	return 0;
}

/* Removes expired records. */
static int records_expire(struct store *store, MDB_txn *txn)
{
	uint64_t at, now = expiry_in(0);
	MDB_cursor *cursor;
	MDB_val k, v;
	int rc = mdb_cursor_open(txn, store->records, &cursor);

	if (rc)
		return error_of(rc);
	while (!(rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)))
		if (k.mv_size == ULRPC_RECORD_KEY && expiry_of(&v, &at) &&
		    at < now && (rc = mdb_cursor_del(cursor, 0)))
			break;
	mdb_cursor_close(cursor);
	return rc == MDB_NOTFOUND ? 0 : error_of(rc);
}

/* Reads the incarnation of the store; makes one if the store is new. */
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
	if (!rc)
		rc = records_expire(store, txn);
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
