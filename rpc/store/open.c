/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/misuse.h"
#include "rpc/store/store.h"

#define LOCK	"lock"
#define LOG_MAX ((uint64_t)16 << 20)

/* ---- the directory ---- */

static int open_at(int dir, const char *name, int flags)
{
	int fd;

	fork_hold();
	fd = openat(dir, name, flags | O_CLOEXEC, 0600);
	fd = fork_fd_made(fd);
	return fd < 0 ? -errno : fd;
}

/* Waits until the entry of a new directory is on disk: else the directory may
 * be gone after the machine fails. */
static int sync_parent(int dir)
{
	int rc, fd = open_at(dir, "..", O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	rc = fsync(fd) ? -errno : 0;
	fork_fd_close(fd);
	return rc;
}

static int open_dir(struct ulrpc_store *store, char *why)
{
	bool made = !mkdir(store->name, 0700);
	int rc;

	if (!made && errno != EEXIST)
		return journal_why(why, -errno, "cannot be made:");
	store->dir = open_at(AT_FDCWD, store->name, O_RDONLY | O_DIRECTORY);
	if (store->dir < 0)
		return journal_why(why, store->dir, "cannot be opened:");
	rc = made ? sync_parent(store->dir) : 0;
	return rc ? journal_why(why, rc, "cannot be kept:") : 0;
}

/* Writes to @why that the store is open already, and in which process, if the
 * lock file says so. Returns -EBUSY. */
static int store_busy(const struct ulrpc_store *store, char *why)
{
	char pid[24] = "";
	ssize_t n = pread(store->lock_fd, pid, sizeof(pid) - 1, 0);

	if (n <= 0 || strtol(pid, NULL, 10) <= 0)
		return journal_why(why, -EBUSY, "the store is open already");
	return journal_why(why, -EBUSY,
			   "the store is open already, in process %ld",
			   strtol(pid, NULL, 10));
}

/* Writes the pid to the lock file, for store_busy(). If that fails, its text is
 * shorter. */
static void write_pid(int fd)
{
	char pid[24];
	int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	ssize_t written = -1;

	if (!ftruncate(fd, 0))
		written = pwrite(fd, pid, (size_t)n, 0);
	(void)written;
}

static int take_lock(struct ulrpc_store *store, char *why)
{
	store->lock_fd = open_at(store->dir, LOCK, O_RDWR | O_CREAT);
	if (store->lock_fd < 0)
		return journal_why(why, store->lock_fd,
				   "the file lock cannot be opened:");
	if (flock(store->lock_fd, LOCK_EX | LOCK_NB)) {
		if (errno == EWOULDBLOCK)
			return store_busy(store, why);
		return journal_why(why, -errno, "cannot be locked:");
	}
	write_pid(store->lock_fd);
	return 0;
}

/* ---- which files there are ---- */

struct files {
	/* generation of the newest snapshot; 0: there is none */
	uint64_t snapshot;
	/* generation of the newest log; 0: there is none */
	uint64_t log;
	/* the oldest generation that a file has; 0: there is no file of a store
	 */
	uint64_t first;
	/* name of a file that is not of a store; "": there is none */
	char other[NAME_MAX + 1];
};

/* Is @name the name of a file of @kind? If so, sets *@generation_p. */
static bool name_is(const char *name, const char *kind, uint64_t *generation_p)
{
	struct journal_id id = { .kind = kind };
	char again[JOURNAL_NAME];
	size_t n = strlen(kind);

	if (strncmp(name, kind, n) || name[n] != '.')
		return false;
	id.generation = strtoull(name + n + 1, NULL, 10);
	if (!id.generation || strcmp(journal_name(&id, again), name))
		return false;
	*generation_p = id.generation;
	return true;
}

static void file_found(struct files *f, const char *name)
{
	uint64_t generation;

	if (name_is(name, JOURNAL_LOG, &generation)) {
		f->log = MAX(f->log, generation);
	} else if (name_is(name, JOURNAL_SNAPSHOT, &generation)) {
		f->snapshot = MAX(f->snapshot, generation);
	} else {
		if (strcmp(name, ".") && strcmp(name, "..") &&
		    strcmp(name, LOCK) && strcmp(name, JOURNAL_LOG ".tmp") &&
		    strcmp(name, JOURNAL_SNAPSHOT ".tmp"))
			text_copy(f->other, sizeof(f->other), name);
		return;
	}
	if (!f->first || generation < f->first)
		f->first = generation;
}

/* Looks which files there are. Refuses a directory that has files, but none of
 * a store. */
static int find_files(const struct ulrpc_store *store, struct files *f,
		      char *why)
{
	const struct dirent *entry;
	DIR *dir = opendir(store->name);
	int rc;

	*f = (struct files){ 0 };
	if (!dir)
		return journal_why(why, -errno, "cannot be read:");
	for (errno = 0; (entry = readdir(dir)); errno = 0)
		file_found(f, entry->d_name);
	rc = -errno;
	closedir(dir);
	if (rc)
		return journal_why(why, rc, "cannot be read:");
	if (!f->first && *f->other)
		return journal_why(why, -ENOTEMPTY,
				   "there is no store, but a file %.160s",
				   f->other);
	return 0;
}

/* ---- reading them ---- */

static void entry_load(struct ulrpc_store *store, struct entry *e)
{
	struct entry *old = table_find(&store->table, e->kind == ENTRY_RECORD,
				       e->bytes, e->key_length);

	if (old) {
		table_remove(&store->table, old);
		free(old);
	}
	if (e->kind == ENTRY_DELETED || e->expires < store_clock())
		free(e);
	else
		table_add(&store->table, e);
}

static int frame_load(void *arg, const uint8_t *payload, size_t length)
{
	struct ulrpc_store *store = arg;
	struct entry *e;
	size_t at = 0, size;
	int rc;

	while (at < length) {
		rc = entry_read(payload + at, length - at, &e);
		if (rc)
			return rc;
		size = entry_size(e);
		entry_load(store, e);
		at += size;
	}
	return 0;
}

static int read_file(struct ulrpc_store *store, const char *kind,
		     uint64_t generation, struct journal_found *found,
		     char *why)
{
	struct journal_id id = store_file(store, kind, generation);
	char name[JOURNAL_NAME];
	bool any = !id.incarnation[0];
	int rc;

	for (int i = 1; any && i < JOURNAL_ID_SIZE; i++)
		any = !id.incarnation[i];
	rc = journal_read(store->dir, &id, any, frame_load, store, found, why);
	if (rc == -ENOENT)
		rc = journal_why(why, -EBADMSG, "%s is missing",
				 journal_name(&id, name));
	if (!rc)
		memcpy(store->durable.incarnation, found->incarnation,
		       JOURNAL_ID_SIZE);
	return rc;
}

static int read_snapshot(struct ulrpc_store *store, uint64_t generation,
			 char *why)
{
	struct journal_found found;
	int rc = read_file(store, JOURNAL_SNAPSHOT, generation, &found, why);

	if (!rc && (found.torn || !found.closed))
		rc = journal_why(why, -EBADMSG,
				 "snapshot.%" PRIu64 " is damaged at byte "
				 "%" PRIu64,
				 generation, found.size);
	return rc;
}

/* Opens the log of @generation, and cuts off what is torn. */
static int resume_log(struct ulrpc_store *store, uint64_t generation,
		      const struct journal_found *found, char *why)
{
	struct journal_id id = store_file(store, JOURNAL_LOG, generation);
	int rc;

	journal_close(&store->log);
	rc = journal_resume(store->dir, &id, found, &store->log);
	if (rc)
		return journal_why(why, rc, "log.%" PRIu64 " cannot be opened:",
				   generation);
	if (found->torn)
		lnet_log(LNET_LOG_WARN, "store",
			 "%s: the last %" PRIu64 " bytes of log.%" PRIu64
			 " were not completely written, and are cut off",
			 store->name, found->torn, generation);
	store->cut += found->torn;
	return 0;
}

/* A log that is torn at its end, while no later log has a frame. */
struct torn {
	struct journal_found found;
	uint64_t generation; /* 0: no log is torn */
};

/* Reads the logs from @from to @to. Sets *@torn to the log that is torn, if
 * there is one, and *@last to what @to was found to be. Refuses a torn log if a
 * later one has frames: the later one was not written to before all of the
 * earlier one was on disk. */
static int read_logs(struct ulrpc_store *store, uint64_t from, uint64_t to,
		     struct torn *torn, struct journal_found *last, char *why)
{
	uint64_t g;
	int rc = 0;

	for (g = from; g <= to && !rc; g++) {
		rc = read_file(store, JOURNAL_LOG, g, last, why);
		if (!rc && torn->generation && (last->frames || last->torn))
			rc = journal_why(why, -EBADMSG,
					 "log.%" PRIu64 " is damaged at its "
					 "end, but log.%" PRIu64 " goes on",
					 torn->generation, g);
		if (!rc && last->torn)
			*torn = (struct torn){ *last, g };
	}
	return rc;
}

/* Reads the logs from @from to @to, and opens the last one. Cuts off what is
 * torn only after all were read, so that a store that is refused stays as it
 * is. */
static int open_logs(struct ulrpc_store *store, uint64_t from, uint64_t to,
		     char *why)
{
	struct torn torn = { .generation = 0 };
	struct journal_found last;
	int rc = read_logs(store, from, to, &torn, &last, why);

	if (!rc && torn.generation && torn.generation != to)
		rc = resume_log(store, torn.generation, &torn.found, why);
	if (!rc)
		rc = resume_log(store, to, &last, why);
	if (rc)
		return rc;
	store->generation = to;
	store->log_bytes = store->log.size - JOURNAL_HEAD;
	return 0;
}

static int new_log(struct ulrpc_store *store, char *why)
{
	struct journal_id id;
	int rc;

	if (getrandom(store->durable.incarnation, JOURNAL_ID_SIZE, 0) !=
	    JOURNAL_ID_SIZE)
		return journal_why(why, -errno, "no random numbers:");
	id = store_file(store, JOURNAL_LOG, 1);
	rc = journal_new(store->dir, &id, &store->log);
	if (!rc)
		rc = journal_publish(store->dir, &id, &store->log);
	store->generation = store->first = 1;
	return rc ? journal_why(why, rc, "log.1 cannot be made:") : 0;
}

static int read_all(struct ulrpc_store *store, char *why)
{
	struct files f;
	uint64_t from;
	int rc = find_files(store, &f, why);

	if (rc)
		return rc;
	if (!f.first)
		return new_log(store, why);
	store->first = f.first;
	from = f.snapshot ? f.snapshot : 1;
	if (f.snapshot)
		rc = read_snapshot(store, f.snapshot, why);
	if (!rc)
		rc = open_logs(store, from, MAX(from, f.log), why);
	if (!rc)
		store_delete_older(store, from);
	return rc;
}

/* ---- open and close ---- */

static int store_new(const char *dir, const struct ulrpc_store_conf *conf,
		     struct ulrpc_store **store_p)
{
	struct ulrpc_store *store = calloc(1, sizeof(*store));
	uint64_t seed;

	if (!store)
		return -ENOMEM;
	store->name = strdup(dir);
	if (!store->name || getrandom(&seed, sizeof(seed), 0) < 0 ||
	    table_init(&store->table, seed)) {
		free(store->name);
		free(store);
		return -ENOMEM;
	}
	if (conf)
		store->conf = *conf;
	if (!store->conf.log_max)
		store->conf.log_max = LOG_MAX;
	store->durable.lookup = store_lookup;
	store->durable.arg = store;
	store->forks = fork_generation();
	store->dir = store->lock_fd = store->log.fd = -1;
	pthread_mutex_init(&store->lock, NULL);
	pthread_cond_init(&store->begin, NULL);
	pthread_cond_init(&store->progress, NULL);
	list_init(&store->queue);
	*store_p = store;
	return 0;
}

static void store_free(struct ulrpc_store *store)
{
	journal_close(&store->log);
	if (store->lock_fd >= 0)
		fork_fd_close(store->lock_fd);
	if (store->dir >= 0)
		fork_fd_close(store->dir);
	table_fini(&store->table);
	pthread_cond_destroy(&store->progress);
	pthread_cond_destroy(&store->begin);
	pthread_mutex_destroy(&store->lock);
	free(store->name);
	free(store);
}

int ulrpc_store_open(const char *dir, const struct ulrpc_store_conf *conf,
		     struct ulrpc_store **store_p, char why[ULRPC_STORE_TEXT])
{
	char text[ULRPC_STORE_TEXT] = "no memory";
	struct ulrpc_store *store;
	struct files before;
	int rc = store_new(dir, conf, &store);

	if (!rc) {
		rc = open_dir(store, text);
		/* before the lock, so that a directory of something else gets
		 * no lock file */
		if (!rc)
			rc = find_files(store, &before, text);
		if (!rc)
			rc = take_lock(store, text);
		if (!rc)
			rc = read_all(store, text);
		if (rc)
			store_free(store);
	}
	if (!rc)
		*store_p = store;
	else if (why)
		text_copy(why, ULRPC_STORE_TEXT, text);
	else
		lnet_log(LNET_LOG_ERR, "store", "%s: %s", dir, text);
	return rc;
}

/* Appends an empty frame, which says that the log ends here: damage to any part
 * of it is then noticed. */
static void mark_end(struct ulrpc_store *store)
{
	const struct iovec end = { .iov_len = 0 };
	int rc = store->failed ? 0 : journal_sync(&store->log);

	if (!rc && !store->failed)
		rc = journal_append(&store->log, &end, 1, true);
	if (rc)
		lnet_log(LNET_LOG_WARN, "store",
			 "%s: the end of the log cannot be marked: %s",
			 store->name, strerror(-rc));
}

void ulrpc_store_close(struct ulrpc_store *store)
{
	bool busy;

	/* In a child of fork() the store is the parent's, and its locks may be
	 * held. */
	if (!store || store_is_forked(store))
		return;
	store_compact_stop(store);
	pthread_mutex_lock(&store->lock);
	busy = store->txn || store->writing || !list_empty(&store->queue);
	pthread_mutex_unlock(&store->lock);
	MISUSE_IF(busy,
		  "ulrpc_store_close(): a transaction of the store in %s has "
		  "not ended",
		  store->name);
	mark_end(store);
	store_free(store);
}
