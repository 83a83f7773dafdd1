/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compactions: a log of many changes is replaced by a snapshot of what they
 * have led to. A new log is begun, to which commits go from then on. The
 * snapshot is written from the table: it has the entries that the table had at
 * that moment and still has, and the new log has all later changes. When the
 * snapshot is on disk, the older files are deleted; until then the older files
 * and the new log together are the store.
 */
#include <errno.h>
#include <signal.h>

#include "rpc/store/store.h"

/* bytes of entries that are copied at a time, with the lock held */
#define PIECE ((size_t)64 << 10)
/* bytes of a snapshot that are written between two syncs */
#define SYNC_EVERY ((uint64_t)8 << 20)

/* Which commits a snapshot contains. */
struct cut {
	uint64_t change; /* number of the last commit in the older logs */
	uint64_t epoch;
};

struct journal_id store_file(const struct ulrpc_store *store, const char *kind,
			     uint64_t generation)
{
	struct journal_id id = { .kind = kind, .generation = generation };

	memcpy(id.incarnation, store->durable.incarnation, JOURNAL_ID_SIZE);
	return id;
}

void store_delete_older(struct ulrpc_store *store, uint64_t generation)
{
	struct journal_id id;

	for (; store->first < generation; store->first++) {
		id = store_file(store, JOURNAL_SNAPSHOT, store->first);
		journal_delete(store->dir, &id);
		id = store_file(store, JOURNAL_LOG, store->first);
		journal_delete(store->dir, &id);
	}
}

/* ---- the new log ---- */

/* Makes *@next the log of commits from now on. *@next is then the old log, all
 * of which is on disk. Sets *@cut. Returns 0; -ENOTRECOVERABLE: the store has
 * failed; -ECANCELED: commits were undone. */
static int switch_log(struct ulrpc_store *store, struct journal *next,
		      struct cut *cut)
{
	uint64_t epoch;
	struct journal old;
	int rc = 0;

	pthread_mutex_lock(&store->lock);
	while (store->writing)
		pthread_cond_wait(&store->progress, &store->lock);
	epoch = store->epoch;
	store_write(store, true);
	if (store->failed)
		rc = -ENOTRECOVERABLE;
	else if (epoch != store->epoch)
		rc = -ECANCELED;
	if (!rc) {
		old = store->log;
		store->log = *next;
		*next = old;
		store->generation++;
		store->log_bytes = 0;
		*cut = (struct cut){ store->synced, epoch };
		table_walk_begin(&store->table);
	}
	pthread_mutex_unlock(&store->lock);
	return rc;
}

static int begin_log(struct ulrpc_store *store, struct cut *cut)
{
	struct journal_id id =
		store_file(store, JOURNAL_LOG, store->generation + 1);
	struct journal next;
	int rc = journal_new(store->dir, &id, &next);

	if (rc)
		return rc;
	rc = journal_publish(store->dir, &id, &next);
	if (!rc)
		rc = switch_log(store, &next, cut);
	if (rc)
		journal_delete(store->dir, &id);
	journal_close(&next);
	return rc;
}

/* ---- the snapshot ---- */

/* Fills *@piece with the next entries. Returns 0: these were the last ones; 1:
 * there are more; -ENOMEM; -ECANCELED: the store is being closed, or commits
 * were undone, and with them entries that are in the snapshot already. */
static int next_piece(struct ulrpc_store *store, const struct cut *cut,
		      struct iovec *piece, size_t *room)
{
	size_t need = 0;
	void *bytes;
	int rc = 0;

	pthread_mutex_lock(&store->lock);
	if (store->closing || cut->epoch != store->epoch)
		rc = -ECANCELED;
	else
		need = table_walk(&store->table, cut->change, store_clock(),
				  piece->iov_base, *room, &piece->iov_len);
	pthread_mutex_unlock(&store->lock);
	if (rc || !need)
		return rc;
	if (need > *room) {
		bytes = realloc(piece->iov_base, need);
		if (!bytes)
			return -ENOMEM;
		piece->iov_base = bytes;
		*room = need;
	}
	return 1;
}

static int write_piece(struct journal *j, const struct iovec *piece)
{
	int rc = 0;

	if (piece->iov_len)
		rc = journal_append(j, piece, 1, false);
	/* Synced little by little, so that commits do not wait long for the
	 * same disk. */
	if (!rc && j->size - j->synced > SYNC_EVERY)
		rc = journal_sync(j);
	return rc;
}

static int write_pieces(struct ulrpc_store *store, const struct cut *cut,
			struct journal *j)
{
	size_t room = PIECE;
	struct iovec piece = { .iov_base = malloc(room) };
	int rc, more = 1;

	rc = piece.iov_base ? 0 : -ENOMEM;
	while (!rc && more) {
		more = next_piece(store, cut, &piece, &room);
		rc = more < 0 ? more : write_piece(j, &piece);
	}
	free(piece.iov_base);
	return rc;
}

static int write_snapshot(struct ulrpc_store *store, const struct cut *cut)
{
	struct journal_id id =
		store_file(store, JOURNAL_SNAPSHOT, store->generation);
	const struct iovec end = { .iov_len = 0 };
	struct journal j;
	int rc = journal_new(store->dir, &id, &j);

	if (rc)
		return rc;
	rc = write_pieces(store, cut, &j);
	if (!rc)
		rc = journal_append(&j, &end, 1, false);
	if (!rc)
		rc = journal_publish(store->dir, &id, &j);
	/* If publishing failed, the snapshot may have its name, and must not be
	 * read. */
	if (rc)
		journal_delete(store->dir, &id);
	else
		store_delete_older(store, id.generation);
	journal_close(&j);
	return rc;
}

/* ---- a compaction ---- */

static int compact(struct ulrpc_store *store)
{
	struct cut cut;
	int rc = begin_log(store, &cut);

	if (!rc) {
		rc = write_snapshot(store, &cut);
		pthread_mutex_lock(&store->lock);
		table_walk_end(&store->table);
		store->compactions += !rc;
		pthread_mutex_unlock(&store->lock);
	}
	return rc;
}

static void compact_end(struct ulrpc_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->compacting = false;
	pthread_cond_broadcast(&store->progress);
	pthread_mutex_unlock(&store->lock);
}

static void *compact_main(void *arg)
{
	struct ulrpc_store *store = arg;
	int rc = compact(store);

	if (rc && rc != -ECANCELED)
		lnet_log(LNET_LOG_WARN, "store",
			 "%s: the log cannot be compacted: %s", store->name,
			 strerror(-rc));
	compact_end(store);
	return NULL;
}

/* Starts the thread of a compaction. It gets no signals: those are for the
 * program's own threads. The caller holds the lock. */
static int start_thread(struct ulrpc_store *store)
{
	sigset_t all, before;
	int rc;

	/* the last compaction's thread, which has nothing more to do than
	 * return */
	if (store->has_thread)
		pthread_join(store->thread, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&store->thread, NULL, compact_main, store);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	store->has_thread = !rc;
	return rc;
}

void store_compact_long(struct ulrpc_store *store)
{
	if (store->compacting || store->closing || store->failed ||
	    store->log_bytes <= store->conf.log_max ||
	    store->log_bytes <= store->table.bytes)
		return;
	/* If no thread can be started, the log grows, and the next commit tries
	 * again. */
	store->compacting = !start_thread(store);
}

void store_compact_stop(struct ulrpc_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->closing = true;
	while (store->compacting)
		pthread_cond_wait(&store->progress, &store->lock);
	pthread_mutex_unlock(&store->lock);
	if (store->has_thread)
		pthread_join(store->thread, NULL);
	store->has_thread = false;
}

int ulrpc_store_compact(struct ulrpc_store *store)
{
	int rc;

	if (store_is_forked(store))
		return -ESHUTDOWN;
	pthread_mutex_lock(&store->lock);
	while (store->compacting)
		pthread_cond_wait(&store->progress, &store->lock);
	store->compacting = true;
	pthread_mutex_unlock(&store->lock);
	rc = compact(store);
	compact_end(store);
	return rc;
}
