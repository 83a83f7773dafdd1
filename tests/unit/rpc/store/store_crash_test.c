/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a store has after its process or its machine has failed: all that was
 * committed, each transaction as a whole, and no damage without a word.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/slice.h"
#include "tests/unit/rpc/store/store_rig.h"

TestSuite(store_crash, .init = rig_setup, .fini = rig_teardown);

#define COMMITS 14
#define KEYS	5
#define SLOTS	3

/* ---- what is committed, and how it is recognized ---- */

static void key_of(unsigned int i, char key[8])
{
	snprintf(key, 8, "key%u", i % KEYS);
}

/* The transaction number @i: it puts its number under three keys and in a
 * record, and deletes a key that an older one has put. */
static int commit_one(struct ulrpc_store *store, uint64_t i)
{
	struct ulrpc_txn *txn;
	char key[8];
	int rc = ulrpc_txn_begin(store, &txn);

	if (rc)
		return rc;
	rc = ulrpc_txn_put(txn, "first", 5, &i, sizeof(i));
	key_of(i, key);
	if (!rc)
		rc = ulrpc_txn_put(txn, key, 4, &i, sizeof(i));
	if (!rc)
		rc = txn_record(txn, i % SLOTS, i, UINT64_C(60000000));
	key_of(i + 1, key);
	if (!rc && i >= KEYS)
		rc = ulrpc_txn_delete(txn, key, 4);
	if (!rc)
		rc = ulrpc_txn_put(txn, "last", 4, &i, sizeof(i));
	if (rc) {
		ulrpc_txn_abort(txn);
		return rc;
	}
	return ulrpc_txn_commit(txn);
}

/* What the key number @k has after the transactions 1 to @n. */
static uint64_t expected(unsigned int k, uint64_t n)
{
	uint64_t value = UINT64_MAX;

	for (uint64_t i = 1; i <= n; i++) {
		if (i % KEYS == k)
			value = i;
		if (i >= KEYS && (i + 1) % KEYS == k)
			value = UINT64_MAX;
	}
	return value;
}

/* Checks that the store has the transactions 1 to some n, which is returned,
 * and nothing of any other. */
static uint64_t commits_of(struct ulrpc_store *store)
{
	uint64_t n = got(store, "first"), last = got(store, "last"), newest;
	char key[8];

	cr_assert_eq(n, last, "half of a transaction");
	n = n == UINT64_MAX ? 0 : n;
	for (unsigned int k = 0; k < KEYS; k++) {
		key_of(k, key);
		cr_assert_eq(got(store, key), expected(k, n), "%s after %lu",
			     key, (unsigned long)n);
	}
	for (unsigned int s = 0; s < SLOTS; s++) {
		newest = UINT64_MAX;
		for (uint64_t i = 1; i <= n; i++)
			if (i % SLOTS == s)
				newest = i;
		cr_assert_eq(recorded(store, s), newest);
	}
	return n;
}

/* ---- a process that ends at each of its calls ---- */

/* In a child: commits, and compacts now and then; tells how many of its
 * commits have succeeded. */
static void play(void)
{
	struct ulrpc_store *store;

	if (ulrpc_store_open(dir, NULL, &store, why))
		_exit(1);
	for (unsigned int i = 1; i <= COMMITS; i++) {
		if (commit_one(store, i))
			_exit(2);
		disk->said = i;
		if (i % 5 == 0 && ulrpc_store_compact(store))
			_exit(3);
	}
	ulrpc_store_close(store);
	_exit(0);
}

/* Plays until the call number @last. Returns whether it came to that. */
static bool play_until(unsigned int last)
{
	pid_t pid;
	int status;

	rig_teardown();
	memset(disk, 0, sizeof(*disk));
	disk->last = last;
	pid = fork();
	if (!pid)
		play();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	cr_assert(WEXITSTATUS(status) == 42 || !WEXITSTATUS(status), "%d",
		  WEXITSTATUS(status));
	disk->last = 0;
	return WEXITSTATUS(status) == 42;
}

enum harm { KILLED, LOST, LOST_PART, ZEROED, GARBLED, HARMS };

static unsigned int chance(unsigned int below)
{
	return (unsigned int)rand() % below;
}

/* The machine fails: of what @name has behind @synced bytes anything may be on
 * disk. */
static void file_fail(const char *name, off_t synced, enum harm harm)
{
	size_t size = file_size(name), kept = (size_t)synced;

	cr_assert_leq(kept, size);
	if (harm == LOST)
		file_cut(name, kept);
	if (harm == LOST_PART)
		file_cut(name, kept + chance(size - kept + 1));
	if (harm == ZEROED) {
		file_cut(name, kept + chance(size - kept + 1));
		file_cut(name, size);
	}
	for (size_t at = kept; harm == GARBLED && at < size; at++)
		if (chance(3) == 0)
			file_flip(name, at, (uint8_t)chance(256));
}

static void machine_fail(enum harm harm)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);
	struct stat st;

	while (harm != KILLED && (entry = readdir(d))) {
		if (fstatat(dirfd(d), entry->d_name, &st, 0) ||
		    !S_ISREG(st.st_mode) || !strcmp(entry->d_name, "lock"))
			continue;
		for (unsigned int i = 0; i <= disk->nfiles; i++)
			if (i == disk->nfiles ||
			    disk->file[i].inode == st.st_ino) {
				file_fail(entry->d_name,
					  i == disk->nfiles
						  ? 0
						  : disk->file[i].synced,
					  harm);
				break;
			}
	}
	if (d)
		closedir(d);
}

/* Everything that was committed is there, at most one transaction more, and the
 * store goes on. */
static void check_after(unsigned int last, enum harm harm)
{
	struct ulrpc_store *store = rig_open(NULL);
	uint64_t n = commits_of(store), said = disk->said;

	cr_assert(n == said || n == said + 1, "%lu of %lu, call %u, harm %d",
		  (unsigned long)n, (unsigned long)said, last, harm);
	if (chance(2))
		cr_assert_eq(ulrpc_store_compact(store), 0);
	cr_assert_eq(commit_one(store, n + 1), 0);
	cr_assert_eq(commits_of(store), n + 1);
	ulrpc_store_close(store);
	store = rig_open(NULL);
	cr_assert_eq(commits_of(store), n + 1);
	cr_assert_eq(info_of(store).cut, 0);
	ulrpc_store_close(store);
}

static void crash_at_each_call(enum harm harm)
{
	unsigned int last = 1;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL); /* torn tails are no surprise */
	for (; play_until(last); last++) {
		machine_fail(harm);
		check_after(last, harm);
	}
	/* That many calls, at least: the test has seen something. */
	cr_assert_gt(last, 2 * COMMITS + 15);
	check_after(last, harm);
}

Test(store_crash, process_is_killed_at_each_call)
{
	crash_at_each_call(KILLED);
}

Test(store_crash, machine_loses_what_was_not_synced)
{
	crash_at_each_call(LOST);
}

Test(store_crash, machine_loses_part_of_it)
{
	crash_at_each_call(LOST_PART);
}

Test(store_crash, machine_leaves_zeros)
{
	crash_at_each_call(ZEROED);
}

Test(store_crash, machine_leaves_garbage)
{
	crash_at_each_call(GARBLED);
}

/* ---- a file that is cut, or damaged, at each byte ---- */

#define FEW 6

/* Commits FEW transactions; end[i]: the bytes of log.1 after i of them. */
static struct ulrpc_store *few(size_t end[FEW + 1])
{
	struct ulrpc_store *store = rig_open(NULL);

	end[0] = file_size("log.1");
	for (unsigned int i = 1; i <= FEW; i++) {
		cr_assert_eq(commit_one(store, i), 0);
		end[i] = file_size("log.1");
	}
	return store;
}

static unsigned int whole(const size_t end[FEW + 1], size_t size)
{
	unsigned int n = 0;

	while (n < FEW && end[n + 1] <= size)
		n++;
	return n;
}

static unsigned int warnings;

static void count_warning(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	warnings += strstr(line, "are cut off") != NULL;
}

Test(store_crash, log_is_cut_at_each_byte)
{
	size_t end[FEW + 1], size;
	struct ulrpc_store *store = few(end);
	uint8_t *log;
	unsigned int n;

	rig_kill(store);
	log = file_read("log.1", &size);
	cr_assert_eq(size, end[FEW]);
	lnet_log_set(LNET_LOG_WARN, count_warning, NULL);
	for (size_t cut = 0; cut <= size; cut++) {
		file_write("log.1", log, cut);
		if (cut < end[0]) {
			cr_assert_eq(rig_refused(), -EMEDIUMTYPE);
			continue;
		}
		n = whole(end, cut);
		warnings = 0;
		store = rig_open(NULL);
		cr_assert_eq(commits_of(store), n, "cut to %zu", cut);
		cr_assert_eq(info_of(store).cut, cut - end[n]);
		cr_assert_eq(warnings, cut > end[n]);
		rig_kill(store);
		cr_assert_eq(file_size("log.1"), end[n]);
	}
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
	free(log);
}

/* Damages each byte of @name in turn, and opens. Returns in how many cases the
 * store was opened; then it has @n commits, @cut bytes having been cut off. */
static unsigned int flip_each(const char *name, uint64_t n, size_t cut)
{
	struct ulrpc_store *store;
	unsigned int opened = 0;
	size_t size;
	uint8_t *bytes = file_read(name, &size);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	for (size_t at = 0; at < size; at++) {
		file_flip(name, at, (uint8_t)(1 + chance(255)));
		strcpy(why, "");
		if (ulrpc_store_open(dir, NULL, &store, why)) {
			cr_assert(strstr(why, name), "at %zu: %s", at, why);
		} else {
			cr_assert_eq(commits_of(store), n, "at %zu", at);
			cr_assert_eq(info_of(store).cut, cut);
			rig_kill(store);
			opened++;
		}
		file_write(name, bytes, size);
	}
	free(bytes);
	return opened;
}

/* The last commit of a process that was killed may be torn, so damage to it is
 * cut off; whatever is older is known to have been whole. */
Test(store_crash, damaged_log_after_a_crash)
{
	size_t end[FEW + 1], last;
	struct ulrpc_store *store = few(end);

	rig_kill(store);
	last = end[FEW] - end[FEW - 1];
	cr_assert_eq(flip_each("log.1", FEW - 1, last), last);
}

/* After an orderly end no damage takes anything away unnoticed: only what says
 * that the end was orderly may be cut off. */
Test(store_crash, damaged_log_after_an_orderly_end)
{
	size_t end[FEW + 1], mark;

	ulrpc_store_close(few(end));
	mark = file_size("log.1") - end[FEW];
	cr_assert_gt(mark, 0);
	cr_assert_eq(flip_each("log.1", FEW, mark), mark);
}

Test(store_crash, damaged_snapshot)
{
	size_t end[FEW + 1];
	struct ulrpc_store *store = few(end);

	cr_assert_eq(ulrpc_store_compact(store), 0);
	rig_kill(store);
	cr_assert_not(file_exists("log.1"));
	cr_assert_eq(flip_each("snapshot.2", FEW, 0), 0);
}

Test(store_crash, snapshot_is_cut_at_each_byte)
{
	size_t end[FEW + 1], size;
	struct ulrpc_store *store = few(end);

	cr_assert_eq(ulrpc_store_compact(store), 0);
	rig_kill(store);
	size = file_size("snapshot.2");
	while (size--) {
		file_cut("snapshot.2", size);
		cr_assert(rig_refused() ==
			  (size < end[0] ? -EMEDIUMTYPE : -EBADMSG));
		cr_assert(strstr(why, "snapshot.2"), "%s", why);
	}
}

/* A log may end in the middle of a commit only if no later log was written
 * to. */
Test(store_crash, log_that_is_not_the_last)
{
	size_t end[FEW + 1], size;
	struct ulrpc_store *store = few(end);
	uint8_t *log, *next;

	log = file_read("log.1", &size);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	rig_kill(store);
	unlink(path("snapshot.2"));
	file_write("log.1", log, size - 1);
	store = rig_open(NULL); /* log.2 has nothing but its head */
	cr_assert_eq(commits_of(store), FEW - 1);
	cr_assert_eq(commit_one(store, FEW), 0);
	rig_kill(store);
	store = rig_open(NULL);
	cr_assert_eq(commits_of(store), FEW);
	rig_kill(store);
	file_write("log.1", log, size - 1);
	cr_assert_eq(rig_refused(), -EBADMSG);
	cr_assert(strstr(why, "log.1 is damaged at its end, but log.2 goes on"),
		  "%s", why);
	free(log);
	next = file_read("log.2", &size);
	file_write("log.2", next, size - 1);
	cr_assert_eq(rig_refused(), -EBADMSG);
	free(next);
}

/* Writes a log, with the right checksums, of one frame with @payload. */
static void log_of(const void *payload, size_t length)
{
	struct journal_id id = { .kind = JOURNAL_LOG,
				 .generation = 1,
				 .incarnation = { 1 } };
	struct iovec iov = { (void *)payload, length };
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	struct journal j;

	journal_delete(fd, &id);
	disk->nfiles = 0;
	cr_assert_eq(journal_new(fd, &id, &j), 0);
	cr_assert_eq(journal_append(&j, &iov, 1, true), 0);
	cr_assert_eq(journal_publish(fd, &id, &j), 0);
	journal_close(&j);
	close(fd);
}

/* Whatever another program writes in our format: it is read, or refused. */
Test(store_crash, any_payload)
{
	unsigned int opened = 0, refused = 0;
	struct entry *e = entry_new(ENTRY_USER, "key", 3, "value", 5);
	struct ulrpc_store *store;
	uint8_t good[64], bad[64];
	size_t size = entry_size(e), length;
	int rc;

	entry_write(e, good);
	entry_write(e, good + size);
	free(e);
	for (unsigned int i = 0; i < slice_of(10000, 600); i++) {
		memcpy(bad, good, 2 * size);
		for (unsigned int n = chance(3) + 1; n; n--)
			bad[chance(2 * (unsigned int)size)] =
				(uint8_t)chance(i % 2 ? 256 : 6);
		length = 1 + chance(2 * (unsigned int)size);
		log_of(bad, i % 3 ? 2 * size : length);
		rc = ulrpc_store_open(dir, NULL, &store, why);
		cr_assert(!rc || rc == -EBADMSG, "%s", why);
		opened += !rc;
		refused += rc < 0;
		if (!rc)
			rig_kill(store);
		else
			cr_assert(strstr(why, "log.1, at byte 48: Bad message"),
				  "%s", why);
	}
	cr_assert(opened > 20 && refused > 20, "%u, %u", opened, refused);
}

/* Files that a crash has left behind are removed. */
Test(store_crash, leftovers)
{
	struct ulrpc_store *store = rig_open(NULL);
	size_t size;
	uint8_t *log;

	cr_assert_eq(commit_one(store, 1), 0);
	log = file_read("log.1", &size);
	cr_assert_eq(ulrpc_store_compact(store), 0);
	cr_assert_eq(commit_one(store, 2), 0);
	ulrpc_store_close(store);
	file_write("log.1", log, size);
	store = rig_open(NULL);
	cr_assert_eq(commits_of(store), 2);
	cr_assert_not(file_exists("log.1"));
	ulrpc_store_close(store);
	free(log);
}
