/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "rpc/store/store.h"

/* s: a record is kept for so much longer than it must, so that a clock that is
 * set forward by less does no harm. */
#define KEEP_MORE 3600

struct change {
	struct list link;
	/* what is put; or, if its kind is ENTRY_DELETED, the key that is
	 * deleted. NULL: the table has it, and the change cannot be undone any
	 * more */
	struct entry *entry;
	/* the entry that the commit has taken out of the table; NULL: there was
	 * none */
	struct entry *old;
};

struct ulrpc_txn {
	struct ulrpc_store *store;
	/* node in store->queue, and then in the group that is written */
	struct list link;
	struct list changes; /* of change.link */
	struct iovec payload;
	size_t room;
	/* number of the newest change that the transaction has seen */
	uint64_t seen;
	uint64_t epoch; /* store->epoch when the transaction began */
	uint64_t change;
	int rc; /* result of the commit; valid once @done */
	bool done;
};

/* ---- begin and end ---- */

int ulrpc_txn_begin(struct ulrpc_store *store, struct ulrpc_txn **txn_p)
{
	struct ulrpc_txn *txn;
	int rc = 0;

	if (store_is_forked(store))
		return -ESHUTDOWN;
	txn = calloc(1, sizeof(*txn));
	if (!txn)
		return -ENOMEM;
	txn->store = store;
	list_init(&txn->link);
	list_init(&txn->changes);
	pthread_mutex_lock(&store->lock);
	while (store->txn && !rc)
		if (pthread_equal(store->txn_thread, pthread_self()))
			rc = -EDEADLK;
		else
			pthread_cond_wait(&store->begin, &store->lock);
	if (!rc && store->failed) {
		/* the next thread that waits fails, too */
		pthread_cond_signal(&store->begin);
		rc = -ENOTRECOVERABLE;
	}
	if (!rc) {
		store->txn = txn;
		store->txn_thread = pthread_self();
		txn->epoch = store->epoch;
	}
	pthread_mutex_unlock(&store->lock);
	if (rc)
		free(txn);
	else
		*txn_p = txn;
	return rc;
}

/* Lets the next transaction begin. The caller holds the lock. */
static void let_begin(struct ulrpc_store *store)
{
	store->txn = NULL;
	pthread_cond_signal(&store->begin);
}

static void txn_free(struct ulrpc_txn *txn)
{
	struct change *c;

	while (!list_empty(&txn->changes)) {
		c = list_pop(&txn->changes, struct change, link);
		free(c->entry);
		free(c->old);
		free(c);
	}
	free(txn->payload.iov_base);
	free(txn);
}

void ulrpc_txn_abort(struct ulrpc_txn *txn)
{
	struct ulrpc_store *store = txn->store;

	if (!store_is_forked(store)) {
		pthread_mutex_lock(&store->lock);
		let_begin(store);
		pthread_mutex_unlock(&store->lock);
	}
	txn_free(txn);
}

/* ---- reading ---- */

/* Returns the last change that the transaction itself has made to the key;
 * NULL: none. */
static const struct entry *own_change(const struct ulrpc_txn *txn,
				      const void *key, size_t key_length)
{
	const struct entry *e, *found = NULL;
	const struct change *c;

	list_for_each_entry (c, &txn->changes, link) {
		e = c->entry;
		if (e->kind != ENTRY_RECORD && e->key_length == key_length &&
		    !memcmp(e->bytes, key, key_length))
			found = e;
	}
	return found;
}

/* Returns the entry of the key as the transaction sees it; NULL: there is none.
 * The caller holds the lock. */
static const struct entry *txn_find(struct ulrpc_txn *txn, const void *key,
				    size_t key_length)
{
	const struct entry *e = own_change(txn, key, key_length);
	uint64_t change;

	if (e)
		return e->kind == ENTRY_DELETED ? NULL : e;
	e = table_find(&txn->store->table, false, key, key_length);
	change = e ? e->change : txn->store->deleted;
	txn->seen = MAX(txn->seen, change);
	return e;
}

static bool key_is_bad(const void *key, size_t key_length)
{
	return !key || !key_length || key_length > ULRPC_STORE_KEY_MAX;
}

int ulrpc_txn_get(struct ulrpc_txn *txn, const void *key, size_t key_length,
		  void *value, size_t *length_p)
{
	struct ulrpc_store *store = txn->store;
	int rc;

	if (store_is_forked(store))
		return -ESHUTDOWN;
	if (key_is_bad(key, key_length))
		return -EINVAL;
	pthread_mutex_lock(&store->lock);
	rc = store_copy(txn_find(txn, key, key_length), value, length_p);
	pthread_mutex_unlock(&store->lock);
	return rc;
}

/* ---- changing ---- */

static int payload_add(struct ulrpc_txn *txn, const struct entry *e)
{
	size_t length = txn->payload.iov_len + entry_size(e);
	size_t room = MAX(txn->room, 256);
	void *bytes;

	if (length > ULRPC_STORE_TXN_MAX)
		return -EMSGSIZE;
	while (room < length)
		room *= 2;
	if (room > txn->room) {
		bytes = realloc(txn->payload.iov_base, room);
		if (!bytes)
			return -ENOMEM;
		txn->payload.iov_base = bytes;
		txn->room = room;
	}
	entry_write(e, (uint8_t *)txn->payload.iov_base + txn->payload.iov_len);
	txn->payload.iov_len = length;
	return 0;
}

/* Adds a change to the transaction. @expires: when a record may be deleted, in
 * seconds of time(). */
static int change_add(struct ulrpc_txn *txn, enum entry_kind kind,
		      const void *key, size_t key_length, const void *value,
		      size_t length, uint64_t expires)
{
	struct change *c;
	int rc = -ENOMEM;

	if (store_is_forked(txn->store))
		return -ESHUTDOWN;
	if (key_is_bad(key, key_length))
		return -EINVAL;
	if (length > ULRPC_STORE_VALUE_MAX)
		return -EMSGSIZE;
	c = calloc(1, sizeof(*c));
	if (c)
		c->entry = entry_new(kind, key, key_length, value, length);
	if (c && c->entry) {
		c->entry->expires = expires;
		rc = payload_add(txn, c->entry);
	}
	if (!rc) {
		list_add_tail(&txn->changes, &c->link);
	} else if (c) {
		free(c->entry);
		free(c);
	}
	return rc;
}

int ulrpc_txn_put(struct ulrpc_txn *txn, const void *key, size_t key_length,
		  const void *value, size_t length)
{
	return change_add(txn, ENTRY_USER, key, key_length, value, length,
			  UINT64_MAX);
}

int ulrpc_txn_delete(struct ulrpc_txn *txn, const void *key, size_t key_length)
{
	const struct entry *e;

	if (store_is_forked(txn->store))
		return -ESHUTDOWN;
	if (key_is_bad(key, key_length))
		return -EINVAL;
	pthread_mutex_lock(&txn->store->lock);
	e = txn_find(txn, key, key_length);
	pthread_mutex_unlock(&txn->store->lock);
	if (!e)
		return -ENOENT;
	return change_add(txn, ENTRY_DELETED, key, key_length, NULL, 0,
			  UINT64_MAX);
}

int ulrpc_txn_record(struct ulrpc_txn *txn, const struct ulrpc_record *record)
{
	uint64_t expires = UINT64_MAX;

	if (record->keep != ULRPC_NEVER)
		expires = store_clock() + record->keep / 1000000 + KEEP_MORE;
	return change_add(txn, ENTRY_RECORD, record->key, ULRPC_RECORD_KEY,
			  record->value, record->length, expires);
}

/* ---- commit ---- */

/* Makes the change @c in the table. Sets c->old to the entry that was there. */
static void change_apply(struct ulrpc_store *store, struct change *c)
{
	struct entry *e = c->entry;

	c->old = table_find(&store->table, e->kind == ENTRY_RECORD, e->bytes,
			    e->key_length);
	if (c->old)
		table_remove(&store->table, c->old);
	if (e->kind == ENTRY_DELETED) {
		store->deleted = store->change;
		return;
	}
	e->change = store->change;
	table_add(&store->table, e);
}

static void txn_apply(struct ulrpc_txn *txn)
{
	struct ulrpc_store *store = txn->store;
	struct change *c;

	txn->change = ++store->change;
	list_for_each_entry (c, &txn->changes, link)
		change_apply(store, c);
	list_add_tail(&store->queue, &txn->link);
}

static void txn_undo(struct ulrpc_txn *txn)
{
	struct table *t = &txn->store->table;
	struct list *at;
	struct change *c;

	for (at = txn->changes.prev; at != &txn->changes; at = at->prev) {
		c = list_entry(at, struct change, link);
		if (c->entry->kind != ENTRY_DELETED)
			table_remove(t, c->entry);
		if (c->old)
			table_add(t, c->old);
		c->old = NULL;
	}
}

/* Leaves the entries of a transaction to the table for good: a later
 * transaction may free them as soon as the lock is released. */
static void txn_settle(struct ulrpc_txn *txn)
{
	struct change *c;

	list_for_each_entry (c, &txn->changes, link)
		if (c->entry->kind != ENTRY_DELETED)
			c->entry = NULL;
}

static void txn_done(struct ulrpc_txn *txn, int rc)
{
	list_del(&txn->link);
	txn->rc = rc;
	txn->done = true;
}

/* Undoes everything that is not on disk: the group, and what is queued behind
 * it. */
static void undo_all(struct ulrpc_store *store, struct list *group, int rc)
{
	struct ulrpc_txn *txn;

	list_splice_tail(group, &store->queue);
	while (!list_empty(group)) {
		txn = list_entry(group->prev, struct ulrpc_txn, link);
		txn_undo(txn);
		txn_done(txn, rc);
	}
	store->change = store->synced;
	store->deleted = MIN(store->deleted, store->synced);
	store->epoch++;
	store->undone = rc;
}

static void group_end(struct ulrpc_store *store, struct list *group, int rc)
{
	struct ulrpc_txn *txn;

	if (rc && rc != -ENOTRECOVERABLE) {
		undo_all(store, group, rc);
		return;
	}
	if (rc) {
		/* What was to be written stays in the table, but @synced does
		 * not rise, so reads do not return it. */
		store->failed = true;
		list_splice_tail(group, &store->queue);
	}
	while (!list_empty(group)) {
		txn = list_first(group, struct ulrpc_txn, link);
		if (!rc) {
			store->synced = txn->change;
			store->commits++;
		}
		txn_settle(txn);
		txn_done(txn, rc);
	}
}

void store_write(struct ulrpc_store *store, bool sync)
{
	struct iovec payload[JOURNAL_GROUP];
	struct list group;
	struct ulrpc_txn *txn;
	unsigned int n = 0;
	uint64_t size;
	int rc = 0;

	list_init(&group);
	while (n < JOURNAL_GROUP && !list_empty(&store->queue)) {
		txn = list_pop(&store->queue, struct ulrpc_txn, link);
		list_add_tail(&group, &txn->link);
		payload[n++] = txn->payload;
	}
	store->writing = true;
	pthread_mutex_unlock(&store->lock);
	if (n)
		rc = journal_append(&store->log, payload, n,
				    sync || !store->conf.no_sync);
	else if (sync)
		rc = journal_sync(&store->log);
	size = store->log.size;
	pthread_mutex_lock(&store->lock);
	store->writing = false;
	store->log_bytes = size - JOURNAL_HEAD;
	store->syncs += n && !store->conf.no_sync;
	group_end(store, &group, rc);
	pthread_cond_broadcast(&store->progress);
}

/* Waits until the transaction, which is queued, is on disk or has failed. */
static int txn_wait(struct ulrpc_txn *txn)
{
	struct ulrpc_store *store = txn->store;

	while (!txn->done)
		if (!store->writing)
			store_write(store, false);
		else
			pthread_cond_wait(&store->progress, &store->lock);
	return txn->rc;
}

/* Returns why a transaction that has begun must not change anything, a negative
 * errno; 0: it may. */
static int txn_lost(const struct ulrpc_txn *txn)
{
	const struct ulrpc_store *store = txn->store;

	if (store->failed)
		return -ENOTRECOVERABLE;
	/* The transaction may have seen changes that were undone. */
	return txn->epoch == store->epoch ? 0 : store->undone;
}

int ulrpc_txn_commit(struct ulrpc_txn *txn)
{
	struct ulrpc_store *store = txn->store;
	int rc;

	if (store_is_forked(store)) {
		txn_free(txn);
		return -ESHUTDOWN;
	}
	pthread_mutex_lock(&store->lock);
	rc = txn_lost(txn);
	if (!rc && !list_empty(&txn->changes)) {
		txn_apply(txn);
		let_begin(store);
		rc = txn_wait(txn);
		store_compact_long(store);
	} else {
		let_begin(store);
		if (!rc && !store_wait(store, txn->seen))
			rc = store->failed ? -ENOTRECOVERABLE : store->undone;
	}
	pthread_mutex_unlock(&store->lock);
	txn_free(txn);
	return rc;
}
