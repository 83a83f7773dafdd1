/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/store/store.h"

#include <errno.h>
#include <time.h>

#include "base/fork.h"

bool store_is_forked(const struct ulrpc_store *store)
{
	return store->forks != fork_generation();
}

uint64_t store_clock(void)
{
	return (uint64_t)time(NULL);
}

int store_copy(const struct entry *e, void *value, size_t *length_p)
{
	size_t room = *length_p;

	if (!e)
		return -ENOENT;
	*length_p = e->length;
	if (e->length > room)
		return -EMSGSIZE;
	if (e->length)
		memcpy(value, entry_value(e), e->length);
	return 0;
}

bool store_wait(struct ulrpc_store *store, uint64_t change)
{
	uint64_t epoch = store->epoch;

	while (change > store->synced && !store->failed &&
	       epoch == store->epoch)
		pthread_cond_wait(&store->progress, &store->lock);
	return change <= store->synced && epoch == store->epoch;
}

/* Sets *@e_p to the entry of the key (NULL: there is none) as soon as what made
 * it so is on disk. Returns 0 or -ENOTRECOVERABLE. The caller holds the lock,
 * which is released while this waits. */
static int find_synced(struct ulrpc_store *store, bool record, const void *key,
		       size_t key_length, const struct entry **e_p)
{
	const struct entry *e;
	uint64_t change;

	for (;;) {
		e = table_find(&store->table, record, key, key_length);
		change = e ? e->change : store->deleted;
		if (change <= store->synced)
			break;
		if (store->failed)
			return -ENOTRECOVERABLE;
		store_wait(store, change);
	}
	*e_p = e;
	return 0;
}

int ulrpc_store_read(struct ulrpc_store *store, const void *key,
		     size_t key_length, void *value, size_t *length_p)
{
	const struct entry *e;
	int rc;

	if (store_is_forked(store))
		return -ESHUTDOWN;
	if (!key || !key_length || key_length > ULRPC_STORE_KEY_MAX)
		return -EINVAL;
	pthread_mutex_lock(&store->lock);
	rc = find_synced(store, false, key, key_length, &e);
	if (!rc)
		rc = store_copy(e, value, length_p);
	pthread_mutex_unlock(&store->lock);
	return rc;
}

/* What ulrpc_durable.lookup calls. */
int store_lookup(void *arg, const void *key, void **value_p, size_t *length_p)
{
	struct ulrpc_store *store = arg;
	const struct entry *e = NULL;
	void *value;
	int rc;

	if (store_is_forked(store))
		return -ESHUTDOWN;
	pthread_mutex_lock(&store->lock);
	rc = find_synced(store, true, key, ULRPC_RECORD_KEY, &e);
	if (!rc && !e)
		rc = -ENOENT;
	if (!rc) {
		value = malloc(e->length + 1);
		rc = value ? 0 : -ENOMEM;
	}
	if (!rc) {
		memcpy(value, entry_value(e), e->length);
		*value_p = value;
		*length_p = e->length;
	}
	pthread_mutex_unlock(&store->lock);
	return rc;
}

const struct ulrpc_durable *ulrpc_store_durable(const struct ulrpc_store *store)
{
	return &store->durable;
}

static int each_locked(const struct ulrpc_store *store,
		       int (*fn)(void *arg, const void *key, size_t key_length,
				 const void *value, size_t length),
		       void *arg)
{
	const struct entry *e;
	int rc = 0;

	list_for_each_entry (e, &store->table.order, link) {
		if (e->kind == ENTRY_USER)
			rc = fn(arg, e->bytes, e->key_length, entry_value(e),
				e->length);
		if (rc)
			break;
	}
	return rc;
}

int ulrpc_store_each(struct ulrpc_store *store,
		     int (*fn)(void *arg, const void *key, size_t key_length,
			       const void *value, size_t length),
		     void *arg)
{
	struct ulrpc_txn *txn;
	int rc = ulrpc_txn_begin(store, &txn);

	if (rc)
		return rc;
	pthread_mutex_lock(&store->lock);
	/* Waits until all commits are on disk. Until this transaction ends, no
	 * other commit changes the table. */
	store_wait(store, store->change);
	if (store->failed)
		rc = -ENOTRECOVERABLE;
	else
		rc = each_locked(store, fn, arg);
	pthread_mutex_unlock(&store->lock);
	ulrpc_txn_abort(txn);
	return rc;
}

int ulrpc_store_info(struct ulrpc_store *store, struct ulrpc_store_info *info)
{
	if (store_is_forked(store))
		return -ESHUTDOWN;
	pthread_mutex_lock(&store->lock);
	*info = (struct ulrpc_store_info){
		.keys = store->table.keys,
		.records = store->table.records,
		.bytes = store->table.bytes,
		.log = store->log_bytes,
		.commits = store->commits,
		.syncs = store->syncs,
		.compactions = store->compactions,
		.cut = store->cut,
		.failed = store->failed,
	};
	pthread_mutex_unlock(&store->lock);
	return 0;
}
