/* SPDX-License-Identifier: BSD-3-Clause */
/* Disks that are full, fail or are slow, and several threads that wait for
 * them. */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/rpc/store/store_rig.h"

TestSuite(store_disk, .init = rig_setup, .fini = rig_teardown);

#define THREADS 5

/* ---- one thread ---- */

static void refused_once(enum disk_call call, int error)
{
	struct ulrpc_store *store = rig_open(NULL);

	cr_assert_eq(put(store, "a", 1), 0);
	disk->error[call] = error;
	cr_assert_eq(put(store, "a", 2), -error);
	cr_assert_eq(put(store, "b", 2), call == DISK_SYNC ? -error : 0);
	cr_assert_eq(got(store, "a"), 1);
	cr_assert_not(info_of(store).failed);
	rig_kill(store);
	store = rig_open(NULL);
	cr_assert_eq(got(store, "a"), 1);
	cr_assert_eq(got(store, "b"), 2);
	cr_assert_eq(info_of(store).cut, 0);
	ulrpc_store_close(store);
}

/* A commit that finds no room changes nothing, and the next one may find it. */
Test(store_disk, full)
{
	refused_once(DISK_WRITE, ENOSPC);
}

Test(store_disk, quota)
{
	refused_once(DISK_WRITE, EDQUOT);
}

static void fails_for_good(struct ulrpc_store *store)
{
	struct ulrpc_txn *txn;
	uint64_t value;
	size_t length = sizeof(value);

	cr_assert_eq(put(store, "b", 2), -ENOTRECOVERABLE);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), -ENOTRECOVERABLE);
	cr_assert(info_of(store).failed);
	cr_assert_eq(ulrpc_store_compact(store), -ENOTRECOVERABLE);
	/* What was on disk before can still be read; the rest cannot. */
	cr_assert_eq(got(store, "a"), 1);
	cr_assert_eq(ulrpc_store_read(store, "b", 1, &value, &length),
		     -ENOTRECOVERABLE);
	cr_assert_eq(recorded(store, 1), UINT64_MAX);
	ulrpc_store_close(store);
	store = rig_open(NULL);
	cr_assert_eq(got(store, "a"), 1);
	value = got(store, "b");
	cr_assert(value == 2 || value == UINT64_MAX);
	cr_assert_eq(put(store, "b", 3), 0);
	ulrpc_store_close(store);
}

/* What a disk has kept that fails at the sync nobody knows. */
Test(store_disk, sync_fails)
{
	struct ulrpc_store *store = rig_open(NULL);

	cr_assert_eq(put(store, "a", 1), 0);
	disk->error[DISK_SYNC] = EIO;
	fails_for_good(store);
}

/* Nor if half of a commit cannot be taken back. */
Test(store_disk, full_and_cannot_be_cut)
{
	struct ulrpc_store *store = rig_open(NULL);

	cr_assert_eq(put(store, "a", 1), 0);
	disk->error[DISK_WRITE] = ENOSPC;
	disk->error[DISK_CUT] = EIO;
	fails_for_good(store);
}

/* A deletion that may be on disk or not: nobody can tell whether there is the
 * key. */
Test(store_disk, sync_of_a_deletion_fails)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct ulrpc_txn *txn;
	uint64_t value;
	size_t length = sizeof(value);

	cr_assert_eq(put(store, "a", 1), 0);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(ulrpc_txn_delete(txn, "a", 1), 0);
	disk->error[DISK_SYNC] = EIO;
	cr_assert_eq(ulrpc_txn_commit(txn), -ENOTRECOVERABLE);
	cr_assert_eq(ulrpc_store_read(store, "a", 1, &value, &length),
		     -ENOTRECOVERABLE);
	ulrpc_store_close(store);
}

/* A signal is no failure of the disk. */
Test(store_disk, sync_is_interrupted)
{
	struct ulrpc_store *store = rig_open(NULL);

	disk->error[DISK_SYNC] = EINTR;
	cr_assert_eq(put(store, "a", 1), 0);
	cr_assert_eq(disk->error[DISK_SYNC], 0);
	ulrpc_store_close(store);
}

Test(store_disk, no_room_for_a_new_store)
{
	disk->error[DISK_WRITE] = ENOSPC;
	cr_assert_eq(rig_refused(), -ENOSPC);
	cr_assert(strstr(why, "log.1 cannot be made: No space left"), "%s",
		  why);
	ulrpc_store_close(rig_open(NULL));
}

/* Each call of a compaction fails in turn: the store is as it was. */
Test(store_disk, compaction_fails)
{
	static const enum disk_call calls[] = { DISK_WRITE, DISK_SYNC,
						DISK_SYNC_DIR, DISK_RENAME,
						DISK_SNAPSHOT };
	struct ulrpc_store *store = rig_open(NULL);
	uint64_t n = 0;
	int rc;

	for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++) {
		cr_assert_eq(put(store, "n", ++n), 0);
		disk->error[calls[i]] = ENOSPC;
		rc = ulrpc_store_compact(store);
		cr_assert_eq(rc,
			     calls[i] == DISK_SYNC ? -ENOTRECOVERABLE : -ENOSPC,
			     "%u: %s", i, strerror(-rc));
		cr_assert_not(info_of(store).failed);
		cr_assert_eq(got(store, "n"), n);
		cr_assert_eq(put(store, "m", n), 0);
		rig_kill(store);
		store = rig_open(NULL);
		cr_assert_eq(got(store, "n"), n);
		cr_assert_eq(got(store, "m"), n);
	}
	cr_assert_eq(ulrpc_store_compact(store), 0);
	ulrpc_store_close(store);
	store = rig_open(NULL);
	cr_assert_eq(got(store, "n"), n);
	ulrpc_store_close(store);
}

/* The disk is not waited for, unless the log ends. */
Test(store_disk, no_sync)
{
	static const struct ulrpc_store_conf conf = { .no_sync = true };
	struct ulrpc_store *store = rig_open(&conf);

	disk->error[DISK_SYNC] = EIO;
	cr_assert_eq(put(store, "a", 1), 0);
	cr_assert_eq(info_of(store).syncs, 0);
	cr_assert_eq(disk->error[DISK_SYNC], EIO);
	disk->error[DISK_SYNC] = 0;
	rig_kill(store);
	store = rig_open(&conf);
	cr_assert_eq(got(store, "a"), 1);
	cr_assert_eq(put(store, "a", 2), 0);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	cr_assert_eq(put(store, "a", 3), 0);
	rig_kill(store);
	store = rig_open(&conf);
	cr_assert_eq(got(store, "a"), 3);
	ulrpc_store_close(store);
}

/* ---- several threads ---- */

struct putter {
	pthread_t thread;
	struct ulrpc_store *store;
	char key[8];
	int rc;
};

static void *put_main(void *arg)
{
	struct putter *p = arg;

	p->rc = put(p->store, p->key, 1);
	return NULL;
}

/* Starts a commit of @key, which gets as far as its place in the queue. */
static void put_begin(struct ulrpc_store *store, struct putter *p,
		      const char *key)
{
	uint64_t keys = info_of(store).keys;

	*p = (struct putter){ .store = store };
	snprintf(p->key, sizeof(p->key), "%s", key);
	cr_assert_eq(pthread_create(&p->thread, NULL, put_main, p), 0);
	while (info_of(store).keys == keys)
		sched_yield();
}

static int put_end(struct putter *p)
{
	pthread_join(p->thread, NULL);
	return p->rc;
}

static void hold(enum disk_call call)
{
	disk->held[call] = true;
}

static void wait_held(enum disk_call call)
{
	while (!disk->waiting[call])
		sched_yield();
}

static void let_go(enum disk_call call)
{
	disk->held[call] = false;
}

/* Starts commits of the keys "0" and so on, of which the first one waits for
 * @call, and the others for their turn. */
static void put_all(struct ulrpc_store *store, struct putter p[THREADS],
		    enum disk_call call)
{
	char key[8];

	hold(call);
	for (unsigned int i = 0; i < THREADS; i++) {
		snprintf(key, sizeof(key), "%u", i);
		put_begin(store, &p[i], key);
		if (!i)
			wait_held(call);
	}
}

/* Those that come while the disk works share the next wait. */
Test(store_disk, commits_share_waits)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct putter p[THREADS];

	put_all(store, p, DISK_SYNC);
	let_go(DISK_SYNC);
	for (unsigned int i = 0; i < THREADS; i++)
		cr_assert_eq(put_end(&p[i]), 0);
	cr_assert_eq(info_of(store).commits, THREADS);
	cr_assert_eq(info_of(store).syncs, 2);
	rig_kill(store);
	store = rig_open(NULL);
	cr_assert_eq(info_of(store).keys, THREADS);
	ulrpc_store_close(store);
}

struct reader {
	pthread_t thread;
	struct ulrpc_store *store;
	_Atomic int begun;
	int rc;
	bool in_txn;
};

static void *read_main(void *arg)
{
	struct reader *r = arg;
	uint64_t value;
	size_t length = sizeof(value);
	struct ulrpc_txn *txn;

	if (r->in_txn) {
		cr_assert_eq(ulrpc_txn_begin(r->store, &txn), 0);
		cr_assert_eq(ulrpc_txn_get(txn, "0", 1, &value, &length), 0);
		r->begun = 1;
		r->rc = ulrpc_txn_commit(txn);
		return NULL;
	}
	r->begun = 1;
	r->rc = ulrpc_store_read(r->store, "0", 1, &value, &length);
	return NULL;
}

/* Nobody is told of a commit that is not on disk yet, and then fails: not by a
 * read, not by a transaction that only reads, not by one that changes
 * something. */
static void nobody_sees_what_fails(int error, enum disk_call call)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct reader r[2] = { { .store = store },
			       { .store = store, .in_txn = true } };
	bool lost = call == DISK_SYNC;
	struct putter p[THREADS];
	struct ulrpc_txn *txn;
	int rc = lost ? -ENOTRECOVERABLE : -error;
	uint64_t n = 1;

	cr_assert_eq(put(store, "before", 1), 0);
	put_all(store, p, call);
	for (unsigned int i = 0; i < 2; i++) {
		pthread_create(&r[i].thread, NULL, read_main, &r[i]);
		while (!r[i].begun)
			sched_yield();
	}
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(ulrpc_txn_put(txn, "late", 4, &n, sizeof(n)), 0);
	disk->error[call] = error;
	let_go(call);
	for (unsigned int i = 0; i < THREADS; i++)
		cr_assert_eq(put_end(&p[i]), rc, "%u", i);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(r[i].thread, NULL);
	cr_assert_eq(r[0].rc, lost ? -ENOTRECOVERABLE : -ENOENT);
	cr_assert_eq(r[1].rc, rc);
	cr_assert_eq(ulrpc_txn_commit(txn), rc);
	cr_assert_eq(got(store, "before"), 1);
	if (!lost) {
		cr_assert_eq(info_of(store).keys, 1);
		cr_assert_eq(put(store, "after", 1), 0);
	}
	rig_kill(store);
	store = rig_open(NULL);
	cr_assert_eq(got(store, "before"), 1);
	if (!lost)
		cr_assert_eq(info_of(store).keys, 2);
	ulrpc_store_close(store);
}

Test(store_disk, all_that_wait_fail_together)
{
	nobody_sees_what_fails(ENOSPC, DISK_WRITE);
}

Test(store_disk, all_that_wait_are_unknown_together)
{
	nobody_sees_what_fails(EIO, DISK_SYNC);
}

/* What is undone comes back as it was: what was replaced, and what was
 * deleted. */
Test(store_disk, older_values_come_back)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct ulrpc_txn *txn;
	uint64_t value = 5;

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(put(store, "a", 1), 0);
		cr_assert_eq(put(store, "b", 2), 0);
		cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
		cr_assert_eq(ulrpc_txn_put(txn, "a", 1, &value, 8), 0);
		cr_assert_eq(ulrpc_txn_delete(txn, "b", 1), 0);
		cr_assert_eq(ulrpc_txn_delete(txn, "a", 1), 0);
		cr_assert_eq(ulrpc_txn_put(txn, "b", 1, &value, 8), 0);
		cr_assert_eq(ulrpc_txn_put(txn, "c", 1, &value, 8), 0);
		cr_assert_eq(txn_record(txn, 1, 1, 1), 0);
		disk->error[DISK_WRITE] = ENOSPC;
		cr_assert_eq(ulrpc_txn_commit(txn), -ENOSPC);
		cr_assert_eq(got(store, "a"), 1);
		cr_assert_eq(got(store, "b"), 2);
		cr_assert_eq(got(store, "c"), UINT64_MAX);
		cr_assert_eq(recorded(store, 1), UINT64_MAX);
		cr_assert_eq(info_of(store).keys, 2);
		cr_assert_eq(info_of(store).records, 0);
		cr_assert_eq(ulrpc_store_compact(store), 0);
		rig_kill(store);
		store = rig_open(NULL);
	}
	ulrpc_store_close(store);
}

/* ---- compactions beside commits ---- */

static void *compact_main(void *arg)
{
	return (void *)(intptr_t)ulrpc_store_compact(arg);
}

/* Neither commits nor reads wait for a compaction, however slow its disk is,
 * and both states are whole: before it ends, and behind it. */
Test(store_disk, commits_go_on_during_a_compaction)
{
	struct ulrpc_store *store = rig_open(NULL);
	pthread_t thread;
	void *rc;

	cr_assert_eq(put(store, "old", 1), 0);
	cr_assert_eq(put(store, "changed", 1), 0);
	/* It comes to the snapshot's name when all of that is written. */
	hold(DISK_RENAME);
	pthread_create(&thread, NULL, compact_main, store);
	wait_held(DISK_RENAME); /* the new log's */
	cr_assert_eq(put(store, "changed", 2), 0);
	let_go(DISK_RENAME);
	hold(DISK_DELETE);
	wait_held(DISK_DELETE); /* of the old files */
	cr_assert_eq(put(store, "changed", 3), 0);
	cr_assert_eq(put(store, "new", 1), 0);
	cr_assert_eq(got(store, "changed"), 3);
	let_go(DISK_DELETE);
	pthread_join(thread, &rc);
	cr_assert_null(rc);
	rig_kill(store);
	store = rig_open(NULL);
	cr_assert_eq(got(store, "old"), 1);
	cr_assert_eq(got(store, "changed"), 3);
	cr_assert_eq(got(store, "new"), 1);
	ulrpc_store_close(store);
}

#define MANY 5000
#define STEP 8

static struct ulrpc_store *many(void)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct ulrpc_txn *txn;
	char key[16];

	for (uint32_t i = 0; i < MANY; i++) {
		if (i % 100 == 0)
			cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
		snprintf(key, sizeof(key), "key %u", i);
		cr_assert_eq(
			ulrpc_txn_put(txn, key, strlen(key), &i, sizeof(i)), 0);
		if (i % 100 == 99)
			cr_assert_eq(ulrpc_txn_commit(txn), 0);
	}
	return store;
}

/* Deletes or replaces some keys, and puts others. */
static void change_some(struct ulrpc_store *store)
{
	struct ulrpc_txn *txn;
	char key[16];

	for (unsigned int i = 0; i < MANY; i += STEP) {
		cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
		snprintf(key, sizeof(key), "key %u", i);
		if (i / STEP % 2)
			cr_assert_eq(
				ulrpc_txn_put(txn, key, strlen(key), "8", 1),
				0);
		else
			cr_assert_eq(ulrpc_txn_delete(txn, key, strlen(key)),
				     0);
		snprintf(key, sizeof(key), "new %u", i);
		cr_assert_eq(ulrpc_txn_put(txn, key, strlen(key), "8", 1), 0);
		cr_assert_eq(ulrpc_txn_commit(txn), 0);
	}
}

static void check_some(struct ulrpc_store *store)
{
	const uint64_t changed = MANY / STEP;
	uint32_t value;
	size_t length;
	char key[16];
	int rc;

	cr_assert_eq(info_of(store).keys, MANY - (changed + 1) / 2 + changed);
	for (unsigned int i = 0; i < MANY; i++) {
		length = sizeof(value);
		snprintf(key, sizeof(key), "key %u", i);
		rc = ulrpc_store_read(store, key, strlen(key), &value, &length);
		cr_assert_eq(rc, i % (2 * STEP) ? 0 : -ENOENT, "%u", i);
		cr_assert(rc || length == (i % STEP ? sizeof(value) : 1));
	}
}

/* Holds a compaction in the middle of its snapshot. */
static void compact_half(struct ulrpc_store *store, pthread_t *thread)
{
	disk->pass[DISK_SNAPSHOT] = 2; /* the head, and 1024 entries */
	hold(DISK_SNAPSHOT);
	pthread_create(thread, NULL, compact_main, store);
	wait_held(DISK_SNAPSHOT);
}

/* Entries are replaced, deleted and added in the middle of a walk, the one that
 * is next as well, which is number 2048. */
Test(store_disk, walk_goes_on_among_changes)
{
	struct ulrpc_store *store = many();
	pthread_t thread;
	void *rc;

	compact_half(store, &thread);
	change_some(store);
	let_go(DISK_SNAPSHOT);
	pthread_join(thread, &rc);
	cr_assert_null(rc);
	check_some(store);
	rig_kill(store);
	store = rig_open(NULL);
	check_some(store);
	ulrpc_store_close(store);
}

/* The process is killed in the middle of it, and the next one compacts. */
Test(store_disk, half_a_snapshot_is_nothing)
{
	struct ulrpc_store *store = many();
	pthread_t thread;
	void *rc;

	compact_half(store, &thread);
	change_some(store);
	store->closing = true; /* for the thread, which has to end */
	let_go(DISK_SNAPSHOT);
	pthread_join(thread, &rc);
	cr_assert_eq((intptr_t)rc, -ECANCELED);
	cr_assert_not(file_exists("snapshot.2"));
	rig_kill(store);
	store = rig_open(NULL);
	check_some(store);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	cr_assert(file_exists("snapshot.3") && file_exists("log.3"));
	cr_assert_not(file_exists("log.1") || file_exists("log.2"));
	rig_kill(store);
	store = rig_open(NULL);
	check_some(store);
	ulrpc_store_close(store);
}

/* What is undone comes back behind what is newer, where a walk would not find
 * it: so it ends the compaction, which loses nothing. */
Test(store_disk, commits_that_fail_end_a_compaction)
{
	struct ulrpc_store *store = many();
	struct ulrpc_txn *txn;
	pthread_t thread;
	void *rc;

	compact_half(store, &thread);
	cr_assert_eq(put(store, "new", 1), 0);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(ulrpc_txn_delete(txn, "key 4000", 8), 0);
	disk->error[DISK_WRITE] = ENOSPC;
	cr_assert_eq(ulrpc_txn_commit(txn), -ENOSPC);
	let_go(DISK_SNAPSHOT);
	pthread_join(thread, &rc);
	cr_assert_eq((intptr_t)rc, -ECANCELED);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(info_of(store).keys, MANY + 1);
		rig_kill(store);
		store = rig_open(NULL);
		cr_assert_eq(ulrpc_store_compact(store), 0);
	}
	ulrpc_store_close(store);
}

/* A log that has grown long is compacted without being asked, and files do not
 * grow without bound. */
Test(store_disk, long_log_is_compacted)
{
	static const struct ulrpc_store_conf conf = { .log_max = 10000 };
	struct ulrpc_store *store = rig_open(&conf);
	uint64_t i = 0;

	while (info_of(store).compactions < 5)
		cr_assert_eq(put(store, "counter", ++i), 0);
	cr_assert_gt(i, 5 * 10000 / 64);
	ulrpc_store_close(store);
	store = rig_open(&conf);
	cr_assert_eq(got(store, "counter"), i);
	ulrpc_store_close(store);
}

/* Closing does not wait for a compaction that has just begun; the next one does
 * it all. */
Test(store_disk, close_stops_a_compaction)
{
	static const struct ulrpc_store_conf conf = { .log_max = 1 };
	struct ulrpc_store *store = rig_open(&conf);

	for (uint64_t i = 0; i < 20; i++) {
		cr_assert_eq(put(store, "a", i), 0);
		ulrpc_store_close(store);
		store = rig_open(&conf);
		cr_assert_eq(got(store, "a"), i);
	}
	ulrpc_store_close(store);
}
