/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/rpc/store/store_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"

struct disk *disk;
char dir[64];
char why[256];

/* ---- the disk ---- */

ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t at);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_ftruncate(int fd, off_t size);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int at, const char *name, int flags);
time_t __real_time(time_t *t);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t at);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_unlinkat(int at, const char *name, int flags);
time_t __wrap_time(time_t *t);

/* A call begins. Returns whether the process ends by it. */
static bool disk_begin(enum disk_call call)
{
	bool last = ++disk->calls == disk->last;

	if (disk->held[call] && disk->pass[call]) {
		disk->pass[call]--;
	} else if (disk->held[call]) {
		disk->waiting[call]++;
		while (disk->held[call])
			sched_yield();
		disk->waiting[call]--;
	}
	if (last && call != DISK_WRITE && call != DISK_SNAPSHOT)
		_exit(42);
	return last;
}

static int disk_error(enum disk_call call)
{
	int error = disk->error[call];

	disk->error[call] = 0;
	errno = error;
	return error;
}

static enum disk_call write_to(int fd)
{
	char link[40], name[128];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	name[MAX(n, 0)] = '\0';
	return strstr(name, "/snapshot.") ? DISK_SNAPSHOT : DISK_WRITE;
}

ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	struct iovec half = iov[n > 1 ? 1 : 0];
	enum disk_call call = write_to(fd);
	bool last = disk_begin(call);

	half.iov_len /= 2;
	if (!last && !disk->error[call])
		return __real_pwritev(fd, iov, n, at);
	if (n > 1) /* the head of a frame, and a half of its payload */
		__real_pwritev(fd, (struct iovec[]){ iov[0], half }, 2, at);
	else
		__real_pwritev(fd, &half, 1, at);
	if (last)
		_exit(42);
	disk_error(call);
	return -1;
}

static struct disk_file *disk_file_of(ino_t inode)
{
	struct disk_file *f;

	for (unsigned int i = 0; i < disk->nfiles; i++)
		if (disk->file[i].inode == inode)
			return &disk->file[i];
	cr_assert_lt(disk->nfiles, ARRAY_SIZE(disk->file));
	f = &disk->file[disk->nfiles++];
	*f = (struct disk_file){ inode, 0 };
	return f;
}

/* The real disk need not be waited for. */
int __wrap_fdatasync(int fd)
{
	struct stat st;

	disk_begin(DISK_SYNC);
	if (disk_error(DISK_SYNC))
		return -1;
	cr_assert_not(fstat(fd, &st));
	disk_file_of(st.st_ino)->synced = st.st_size;
	return 0;
}

int __wrap_fsync(int fd)
{
	(void)fd;
	disk_begin(DISK_SYNC_DIR);
	return disk_error(DISK_SYNC_DIR) ? -1 : 0;
}

int __wrap_ftruncate(int fd, off_t size)
{
	if (!size) /* the lock's */
		return __real_ftruncate(fd, size);
	disk_begin(DISK_CUT);
	return disk_error(DISK_CUT) ? -1 : __real_ftruncate(fd, size);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	disk_begin(DISK_RENAME);
	return disk_error(DISK_RENAME)
		       ? -1
		       : __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_unlinkat(int at, const char *name, int flags)
{
	struct stat st;

	disk_begin(DISK_DELETE);
	/* Its inode may become another file's. */
	if (!fstatat(at, name, &st, 0))
		disk_file_of(st.st_ino)->inode = 0;
	return disk_error(DISK_DELETE) ? -1 : __real_unlinkat(at, name, flags);
}

time_t __wrap_time(time_t *t)
{
	return __real_time(t) + (disk ? disk->later : 0);
}

/* ---- the rig ---- */

void rig_setup(void)
{
	const char *tmp = getenv("TMPDIR");

	/* In memory, if possible: the disk that counts is ours. */
	if (!tmp && !access("/dev/shm", W_OK))
		tmp = "/dev/shm";
	snprintf(dir, sizeof(dir), "%.40s/store.XXXXXX", tmp ? tmp : "/tmp");
	cr_assert(mkdtemp(dir));
	disk = mmap(NULL, sizeof(*disk), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(disk, MAP_FAILED);
}

void rig_teardown(void)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			__real_unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

struct ulrpc_store *rig_open(const struct ulrpc_store_conf *conf)
{
	struct ulrpc_store *store = NULL;
	int rc = ulrpc_store_open(dir, conf, &store, why);

	cr_assert_eq(rc, 0, "%s: %s", strerror(-rc), why);
	return store;
}

int rig_refused(void)
{
	struct ulrpc_store *store;
	int rc;

	strcpy(why, "nothing");
	rc = ulrpc_store_open(dir, NULL, &store, why);
	cr_assert_lt(rc, 0, "it is opened");
	return rc;
}

void rig_kill(struct ulrpc_store *store)
{
	store_compact_stop(store);
	/* Then the end is not marked, and nothing more is written. */
	store->failed = true;
	ulrpc_store_close(store);
}

int put(struct ulrpc_store *store, const char *key, uint64_t value)
{
	struct ulrpc_txn *txn;
	int rc = ulrpc_txn_begin(store, &txn);

	if (rc)
		return rc;
	cr_assert_eq(
		ulrpc_txn_put(txn, key, strlen(key), &value, sizeof(value)), 0);
	return ulrpc_txn_commit(txn);
}

uint64_t got(struct ulrpc_store *store, const char *key)
{
	uint64_t value;
	size_t length = sizeof(value);
	int rc = ulrpc_store_read(store, key, strlen(key), &value, &length);

	if (rc == -ENOENT)
		return UINT64_MAX;
	cr_assert_eq(rc, 0, "%s: %s", key, strerror(-rc));
	cr_assert_eq(length, sizeof(value));
	return value;
}

struct ulrpc_store_info info_of(struct ulrpc_store *store)
{
	struct ulrpc_store_info info;

	cr_assert_eq(ulrpc_store_info(store, &info), 0);
	return info;
}

static void record_key(unsigned int slot, uint8_t key[ULRPC_RECORD_KEY])
{
	memset(key, 0, ULRPC_RECORD_KEY);
	memcpy(key, &slot, sizeof(slot));
}

int txn_record(struct ulrpc_txn *txn, unsigned int slot, uint64_t value,
	       uint64_t keep)
{
	uint8_t key[ULRPC_RECORD_KEY];

	record_key(slot, key);
	return ulrpc_txn_record(txn, &(struct ulrpc_record){
					     .key = key,
					     .value = &value,
					     .length = sizeof(value),
					     .keep = keep,
				     });
}

uint64_t recorded(struct ulrpc_store *store, unsigned int slot)
{
	const struct ulrpc_durable *d = ulrpc_store_durable(store);
	uint8_t key[ULRPC_RECORD_KEY];
	uint64_t value;
	size_t length;
	void *bytes;
	int rc;

	record_key(slot, key);
	rc = d->lookup(d->arg, key, &bytes, &length);
	if (rc == -ENOENT)
		return UINT64_MAX;
	cr_assert_eq(rc, 0, "%s", strerror(-rc));
	cr_assert_eq(length, sizeof(value));
	memcpy(&value, bytes, sizeof(value));
	free(bytes);
	return value;
}

/* ---- files ---- */

const char *path(const char *name)
{
	static char of[128];

	snprintf(of, sizeof(of), "%s/%s", dir, name);
	return of;
}

size_t file_size(const char *name)
{
	struct stat st;

	cr_assert_not(stat(path(name), &st), "%s: %s", name, strerror(errno));
	return (size_t)st.st_size;
}

bool file_exists(const char *name)
{
	return !access(path(name), F_OK);
}

void file_cut(const char *name, size_t size)
{
	cr_assert_not(truncate(path(name), (off_t)size));
}

uint8_t *file_read(const char *name, size_t *size)
{
	FILE *f = fopen(path(name), "r");
	uint8_t *bytes;

	cr_assert(f, "%s: %s", name, strerror(errno));
	*size = file_size(name);
	bytes = malloc(*size + 1);
	cr_assert_eq(fread(bytes, 1, *size, f), *size);
	fclose(f);
	return bytes;
}

void file_write(const char *name, const void *bytes, size_t size)
{
	FILE *f = fopen(path(name), "w");

	cr_assert(f);
	cr_assert_eq(fwrite(bytes, 1, size, f), size);
	cr_assert_not(fclose(f));
}

void file_flip(const char *name, size_t at, uint8_t bits)
{
	FILE *f = fopen(path(name), "r+");
	int byte;

	cr_assert(f);
	fseek(f, (long)at, SEEK_SET);
	byte = fgetc(f);
	fseek(f, (long)at, SEEK_SET);
	fputc(byte ^ bits, f);
	cr_assert_not(fclose(f));
}
