/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores of durable services: transactions, reading, and what is refused. */
#include "tests/misuse.h"
#include "tests/unit/rpc/store/store_rig.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(store, .init = rig_setup, .fini = rig_teardown);

#define MINUTE UINT64_C(60000000) /* us */

/* ---- transactions ---- */

Test(store, remembers)
{
	struct ulrpc_store *store = rig_open(NULL);
	uint8_t id[16];

	cr_assert_eq(got(store, "one"), UINT64_MAX);
	cr_assert_eq(put(store, "one", 1), 0);
	cr_assert_eq(put(store, "two", 2), 0);
	cr_assert_eq(put(store, "one", 11), 0);
	cr_assert_eq(got(store, "one"), 11);
	memcpy(id, ulrpc_store_durable(store)->incarnation, sizeof(id));
	ulrpc_store_close(store);

	store = rig_open(NULL);
	cr_assert_arr_eq(ulrpc_store_durable(store)->incarnation, id,
			 sizeof(id));
	cr_assert_eq(got(store, "one"), 11);
	cr_assert_eq(got(store, "two"), 2);
	cr_assert_eq(info_of(store).keys, 2);
	cr_assert_eq(info_of(store).cut, 0);
	ulrpc_store_close(store);
	ulrpc_store_close(NULL);
}

Test(store, each_store_has_its_own_id)
{
	struct ulrpc_store *store = rig_open(NULL);
	uint8_t id[16];

	memcpy(id, ulrpc_store_durable(store)->incarnation, sizeof(id));
	ulrpc_store_close(store);
	rig_teardown();
	store = rig_open(NULL); /* it makes the directory */
	cr_assert_arr_neq(ulrpc_store_durable(store)->incarnation, id,
			  sizeof(id));
	ulrpc_store_close(store);
}

/* The value that the transaction sees; UINT64_MAX: none. */
static uint64_t seen(struct ulrpc_txn *txn, const char *key)
{
	uint64_t value;
	size_t length = sizeof(value);
	int rc = ulrpc_txn_get(txn, key, strlen(key), &value, &length);

	cr_assert(!rc || rc == -ENOENT, "%s", strerror(-rc));
	return rc ? UINT64_MAX : value;
}

static void txn_put(struct ulrpc_txn *txn, const char *key, uint64_t value)
{
	cr_assert_eq(
		ulrpc_txn_put(txn, key, strlen(key), &value, sizeof(value)), 0);
}

/* Nobody else sees a change before the commit; the transaction does. */
Test(store, transaction_is_private)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct ulrpc_txn *txn;

	cr_assert_eq(put(store, "a", 1), 0);
	cr_assert_eq(put(store, "b", 2), 0);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	txn_put(txn, "a", 10);
	txn_put(txn, "a", 11);
	txn_put(txn, "c", 3);
	cr_assert_eq(ulrpc_txn_delete(txn, "b", 1), 0);
	cr_assert_eq(ulrpc_txn_delete(txn, "b", 1), -ENOENT);
	cr_assert_eq(seen(txn, "a"), 11);
	cr_assert_eq(seen(txn, "b"), UINT64_MAX);
	cr_assert_eq(seen(txn, "c"), 3);
	cr_assert_eq(got(store, "a"), 1);
	cr_assert_eq(got(store, "b"), 2);
	cr_assert_eq(got(store, "c"), UINT64_MAX);
	ulrpc_txn_abort(txn);
	cr_assert_eq(got(store, "a"), 1);
	cr_assert_eq(got(store, "b"), 2);

	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	txn_put(txn, "a", 12);
	cr_assert_eq(ulrpc_txn_delete(txn, "b", 1), 0);
	txn_put(txn, "b", 22);
	cr_assert_eq(ulrpc_txn_delete(txn, "a", 1), 0);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(got(store, "a"), UINT64_MAX);
		cr_assert_eq(got(store, "b"), 22);
		cr_assert_eq(info_of(store).keys, 1);
		ulrpc_store_close(store);
		store = rig_open(NULL);
	}
	ulrpc_store_close(store);
}

/* A transaction that changes nothing costs no wait for the disk. */
Test(store, nothing_is_written_of_nothing)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct ulrpc_txn *txn;
	unsigned int calls;

	cr_assert_eq(put(store, "a", 1), 0);
	calls = disk->calls;
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(seen(txn, "a"), 1);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
	cr_assert_eq(disk->calls, calls);
	ulrpc_store_close(store);
}

Test(store, limits)
{
	static uint8_t big[ULRPC_STORE_VALUE_MAX + 1], key[1025], back[16];
	struct ulrpc_store *store = rig_open(NULL);
	size_t length = sizeof(back);
	struct ulrpc_txn *txn, *other;
	int rc = 0;

	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(ulrpc_txn_begin(store, &other), -EDEADLK);
	cr_assert_eq(ulrpc_txn_put(txn, key, 0, "", 0), -EINVAL);
	cr_assert_eq(ulrpc_txn_put(txn, key, 1025, "", 0), -EINVAL);
	cr_assert_eq(ulrpc_txn_put(txn, key, 1024, "", 0), 0);
	cr_assert_eq(ulrpc_txn_put(txn, "big", 3, big, sizeof(big)), -EMSGSIZE);
	cr_assert_eq(ulrpc_txn_put(txn, "big", 3, big, sizeof(big) - 1), 0);
	cr_assert_eq(ulrpc_txn_get(txn, "big", 3, back, &length), -EMSGSIZE);
	cr_assert_eq(length, sizeof(big) - 1);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
	for (int i = 0; i < 2; i++) {
		length = sizeof(back);
		cr_assert_eq(ulrpc_store_read(store, key, 1024, back, &length),
			     0);
		cr_assert_eq(length, 0);
		cr_assert_eq(ulrpc_store_read(store, "big", 3, back, &length),
			     -EMSGSIZE);
		cr_assert_eq(length, sizeof(big) - 1);
		cr_assert_eq(ulrpc_store_compact(store), 0);
		ulrpc_store_close(store);
		store = rig_open(NULL);
	}
	cr_assert_eq(ulrpc_store_read(store, key, 0, back, &length), -EINVAL);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	for (key[0] = 0; !rc; key[0]++)
		rc = ulrpc_txn_put(txn, key, 1024, big, 1 << 20);
	cr_assert_eq(rc, -EMSGSIZE);
	cr_assert_eq(key[0], 64);
	ulrpc_txn_abort(txn);
	ulrpc_store_close(store);
}

/* ---- records ---- */

Test(store, records)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct ulrpc_txn *txn;

	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(txn_record(txn, 1, 100, MINUTE), 0);
	cr_assert_eq(txn_record(txn, 2, 200, ULRPC_NEVER), 0);
	cr_assert_eq(recorded(store, 1), UINT64_MAX);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(txn_record(txn, 1, 101, MINUTE), 0);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(recorded(store, 1), 101);
		cr_assert_eq(recorded(store, 2), 200);
		cr_assert_eq(recorded(store, 3), UINT64_MAX);
		cr_assert_eq(info_of(store).records, 2);
		cr_assert_eq(info_of(store).keys, 0);
		if (i)
			cr_assert_eq(ulrpc_store_compact(store), 0);
		ulrpc_store_close(store);
		store = rig_open(NULL);
	}
	ulrpc_store_close(store);
}

/* A record's key is no user's key, even if it has the same bytes. */
Test(store, keys_of_records_are_apart)
{
	static const uint8_t key[ULRPC_RECORD_KEY] = { 1 };
	struct ulrpc_store *store = rig_open(NULL);
	uint64_t value = 5;
	size_t length = sizeof(value);
	struct ulrpc_txn *txn;

	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(txn_record(txn, 1, 100, MINUTE), 0);
	cr_assert_eq(ulrpc_txn_get(txn, key, sizeof(key), &value, &length),
		     -ENOENT);
	cr_assert_eq(ulrpc_txn_put(txn, key, sizeof(key), &value, length), 0);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
	cr_assert_eq(recorded(store, 1), 100);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(ulrpc_txn_delete(txn, key, sizeof(key)), 0);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
	cr_assert_eq(recorded(store, 1), 100);
	ulrpc_store_close(store);
}

static void two_records(struct ulrpc_store *store)
{
	struct ulrpc_txn *txn;

	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(txn_record(txn, 1, 100, MINUTE), 0);
	cr_assert_eq(txn_record(txn, 2, 200, ULRPC_NEVER), 0);
	cr_assert_eq(ulrpc_txn_commit(txn), 0);
}

/* They go when they have expired, and an hour later at that: a clock may be
 * wrong. */
Test(store, records_expire_at_opening)
{
	struct ulrpc_store *store = rig_open(NULL);

	two_records(store);
	ulrpc_store_close(store);
	disk->later = 3600;
	store = rig_open(NULL);
	cr_assert_eq(recorded(store, 1), 100);
	ulrpc_store_close(store);
	disk->later = 3600 + 120;
	store = rig_open(NULL);
	cr_assert_eq(recorded(store, 1), UINT64_MAX);
	cr_assert_eq(recorded(store, 2), 200);
	ulrpc_store_close(store);
}

Test(store, records_expire_in_compactions)
{
	struct ulrpc_store *store = rig_open(NULL);

	two_records(store);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	cr_assert_eq(info_of(store).records, 2);
	disk->later = 3600 + 120;
	cr_assert_eq(recorded(store, 1), 100);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	cr_assert_eq(info_of(store).records, 1);
	cr_assert_eq(recorded(store, 2), 200);
	disk->later = 0;
	ulrpc_store_close(store);
	store = rig_open(NULL);
	cr_assert_eq(info_of(store).records, 1);
	ulrpc_store_close(store);
}

/* ---- all keys ---- */

struct sum {
	uint64_t keys, values, stop;
};

static int add(void *arg, const void *key, size_t key_length, const void *value,
	       size_t length)
{
	struct sum *sum = arg;
	uint64_t v;

	cr_assert_eq(key_length, 1);
	cr_assert_eq(length, sizeof(v));
	memcpy(&v, value, length);
	sum->keys += *(const char *)key;
	sum->values += v;
	return v == sum->stop ? 7 : 0;
}

Test(store, each)
{
	struct ulrpc_store *store = rig_open(NULL);
	struct sum sum = { 0, 0, UINT64_MAX }, some = { 0, 0, 1 };
	struct ulrpc_txn *txn;

	two_records(store);
	cr_assert_eq(put(store, "a", 1), 0);
	cr_assert_eq(put(store, "b", 2), 0);
	cr_assert_eq(ulrpc_store_each(store, add, &sum), 0);
	cr_assert_eq(sum.keys, 'a' + 'b');
	cr_assert_eq(sum.values, 3);
	cr_assert_eq(ulrpc_store_each(store, add, &some), 7);
	cr_assert_eq(ulrpc_txn_begin(store, &txn), 0);
	cr_assert_eq(ulrpc_store_each(store, add, &sum), -EDEADLK);
	ulrpc_txn_abort(txn);
	ulrpc_store_close(store);
}

/* ---- who may open it ---- */

Test(store, one_at_a_time)
{
	struct ulrpc_store *store = rig_open(NULL);
	char pid[32];

	cr_assert_eq(rig_refused(), -EBUSY);
	snprintf(pid, sizeof(pid), "in process %ld", (long)getpid());
	cr_assert(strstr(why, pid), "%s", why);
	cr_assert_eq(put(store, "a", 1), 0);
	ulrpc_store_close(store);
	ulrpc_store_close(rig_open(NULL));
}

/* Runs @fn in a child, whose status it returns. */
static int in_child(int (*fn)(struct ulrpc_store *store),
		    struct ulrpc_store *store)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(fn(store));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int try_to_open(struct ulrpc_store *store)
{
	return -ulrpc_store_open(dir, NULL, &store, why);
}

Test(store, not_in_two_processes)
{
	struct ulrpc_store *store = rig_open(NULL);

	cr_assert_eq(in_child(try_to_open, store), EBUSY);
	ulrpc_store_close(store);
	cr_assert_eq(in_child(try_to_open, store), 0);
	/* That one ended without closing it. */
	ulrpc_store_close(rig_open(NULL));
}

static int use_in_child(struct ulrpc_store *store)
{
	struct ulrpc_store_info info;
	struct ulrpc_txn *txn;
	size_t length = 0;
	char key[ULRPC_RECORD_KEY] = "";
	void *value;

	if (ulrpc_txn_begin(store, &txn) != -ESHUTDOWN ||
	    ulrpc_store_read(store, "a", 1, NULL, &length) != -ESHUTDOWN ||
	    ulrpc_store_info(store, &info) != -ESHUTDOWN ||
	    ulrpc_store_compact(store) != -ESHUTDOWN ||
	    ulrpc_store_each(store, add, NULL) != -ESHUTDOWN ||
	    store->durable.lookup(store, key, &value, &length) != -ESHUTDOWN)
		return 1;
	ulrpc_store_close(store);
	return 0;
}

static struct ulrpc_txn *parents_txn;

static int use_txn_in_child(struct ulrpc_store *store)
{
	size_t length = 0;

	(void)store;
	if (ulrpc_txn_get(parents_txn, "a", 1, NULL, &length) != -ESHUTDOWN ||
	    ulrpc_txn_put(parents_txn, "a", 1, NULL, 0) != -ESHUTDOWN ||
	    ulrpc_txn_delete(parents_txn, "a", 1) != -ESHUTDOWN ||
	    ulrpc_txn_commit(parents_txn) != -ESHUTDOWN)
		return 1;
	return 0;
}

/* fork() while others use the store: the child cannot, and disturbs nobody. */
Test(store, child_of_fork)
{
	struct ulrpc_store *store = rig_open(NULL);

	cr_assert_eq(put(store, "a", 1), 0);
	cr_assert_eq(in_child(use_in_child, store), 0);
	cr_assert_eq(ulrpc_txn_begin(store, &parents_txn), 0);
	cr_assert_eq(in_child(use_txn_in_child, store), 0);
	txn_put(parents_txn, "a", 2);
	cr_assert_eq(ulrpc_txn_commit(parents_txn), 0);
	cr_assert_eq(got(store, "a"), 2);
	ulrpc_store_close(store);
}

/* A child that lives on, and has inherited descriptors, keeps nobody from
 * opening the store. */
Test(store, child_has_no_lock)
{
	struct ulrpc_store *store = rig_open(NULL);
	int up[2], down[2];
	char byte = 0;
	pid_t pid;

	cr_assert(!pipe(up) && !pipe(down));
	pid = fork();
	if (!pid) { /* says that it runs, and waits for its parent's end */
		close(down[1]);
		_exit(write(up[1], &byte, 1) != 1 || read(down[0], &byte, 1));
	}
	cr_assert_eq(read(up[0], &byte, 1), 1);
	ulrpc_store_close(store);
	ulrpc_store_close(rig_open(NULL));
	close(down[1]);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* ---- mistakes ---- */

static void close_in_txn(void *arg)
{
	struct ulrpc_store *store;
	struct ulrpc_txn *txn;

	(void)arg;
	misuse_must(!ulrpc_store_open(dir, NULL, &store, why));
	misuse_must(!ulrpc_txn_begin(store, &txn));
	ulrpc_store_close(store);
}

Test(store, closed_in_a_transaction)
{
	char text[MISUSE_TEXT];

	misuse_is(close_in_txn, NULL,
		  "ulnet: ulrpc_store_close(): a transaction of the store in "
		  "*/store.* has not ended",
		  text);
}

/* ---- what is refused ---- */

static void has_text(const char *part)
{
	cr_assert(strstr(why, part), "not '%s': %s", part, why);
}

Test(store, directory_of_something_else)
{
	file_write("data.mdb", "x", 1);
	cr_assert_eq(rig_refused(), -ENOTEMPTY);
	has_text("data.mdb");
	cr_assert_not(file_exists("lock"));
	unlink(path("data.mdb"));
	ulrpc_store_close(rig_open(NULL));
	/* In a store, it is passed over. */
	file_write("README", "x", 1);
	ulrpc_store_close(rig_open(NULL));
}

Test(store, no_directory)
{
	char *before = strdup(dir);

	file_write("file", "x", 1);
	snprintf(dir, sizeof(dir), "%s/file", before);
	cr_assert_eq(rig_refused(), -ENOTDIR);
	has_text("cannot be opened: Not a directory");
	snprintf(dir, sizeof(dir), "%s/no/such", before);
	cr_assert_eq(rig_refused(), -ENOENT);
	has_text("cannot be made: No such file");
	strcpy(dir, before);
	free(before);
}

Test(store, directory_that_may_not_be_written_to)
{
	cr_assert_not(chmod(dir, 0555));
	if (!geteuid())
		cr_assert_not(seteuid(65534));
	cr_assert_eq(rig_refused(), -EACCES);
	has_text("the file lock cannot be opened: Permission denied");
	if (!getuid())
		cr_assert_not(seteuid(0));
	cr_assert_not(chmod(dir, 0755));
}

Test(store, file_of_something_else)
{
	file_write("log.1", "Jan  1 00:00:00 host: a line of another program\n",
		   48);
	cr_assert_eq(rig_refused(), -EMEDIUMTYPE);
	has_text("log.1 is not a file of a store");
	file_write("log.1", "", 0);
	cr_assert_eq(rig_refused(), -EMEDIUMTYPE);
}

Test(store, later_version)
{
	ulrpc_store_close(rig_open(NULL));
	file_flip("log.1", 8, 3);
	cr_assert_eq(rig_refused(), -EPROTONOSUPPORT);
	has_text("log.1 has version 2 of the format, this library reads "
		 "version 1");
}

Test(store, renamed_file)
{
	char *to;

	ulrpc_store_close(rig_open(NULL));
	to = strdup(path("log.2"));
	cr_assert_not(link(path("log.1"), to));
	cr_assert_eq(rig_refused(), -EMEDIUMTYPE);
	has_text("log.2 was another file");
	free(to);
}

Test(store, file_of_another_store)
{
	struct ulrpc_store *store = rig_open(NULL);
	uint8_t *log;
	size_t size;

	cr_assert_eq(ulrpc_store_compact(store), 0);
	ulrpc_store_close(store);
	log = file_read("log.2", &size);
	rig_teardown();
	store = rig_open(NULL);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	ulrpc_store_close(store);
	file_write("log.2", log, size);
	cr_assert_eq(rig_refused(), -EMEDIUMTYPE);
	has_text("log.2 is a file of another store");
	free(log);
}

Test(store, missing_files)
{
	struct ulrpc_store *store = rig_open(NULL);
	size_t size;
	uint8_t *log;

	cr_assert_eq(put(store, "a", 1), 0);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	ulrpc_store_close(store);
	log = file_read("log.2", &size);
	unlink(path("log.2"));
	cr_assert_eq(rig_refused(), -EBADMSG);
	has_text("log.2 is missing");
	file_write("log.2", log, size);
	unlink(path("snapshot.2"));
	cr_assert_eq(rig_refused(), -EBADMSG);
	has_text("log.1 is missing");
	free(log);
}

/* A reason that nobody asks for is in the log. */
static void keep_line(int level, const char *line, void *arg)
{
	(void)level;
	snprintf(arg, 256, "%s", line);
}

Test(store, reason_in_the_log)
{
	struct ulrpc_store *store = rig_open(NULL), *other;
	char line[256] = "";

	lnet_log_set(LNET_LOG_WARN, keep_line, line);
	cr_assert_eq(ulrpc_store_open(dir, NULL, &other, NULL), -EBUSY);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
	cr_assert(strstr(line, dir) && strstr(line, "open already"), "%s",
		  line);
	ulrpc_store_close(store);
}
