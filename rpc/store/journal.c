/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/fork.h"
#include "ulnet/store.h"

#define MAGIC	   "ulstore\n"
#define MAGIC_SIZE 8
#define FORMAT	   1u

/* Offsets in the head. */
#define AT_VERSION     8
#define AT_KIND	       12
#define AT_INCARNATION 16
#define AT_GENERATION  32
#define AT_SUM	       44

/* offsets in the head of a frame */
#define FRAME_CHECKED 4 /* here begins what the checksum covers */
#define FRAME_NUMBER  8
#define FRAME_SYNCED  16
#define FRAME_HEAD    24

/* ---- names and texts ---- */

const char *journal_name(const struct journal_id *id, char *name)
{
	snprintf(name, JOURNAL_NAME, "%s.%" PRIu64, id->kind, id->generation);
	return name;
}

/* Writes the name that a file has while it is not finished to @name, and
 * returns @name. */
static const char *unfinished_name(const struct journal_id *id, char *name)
{
	snprintf(name, JOURNAL_NAME, "%s.tmp", id->kind);
	return name;
}

int journal_why(char *why, int rc, const char *fmt, ...)
{
	va_list args;
	size_t n;

	va_start(args, fmt);
	vsnprintf(why, ULRPC_STORE_TEXT, fmt, args);
	va_end(args);
	n = strlen(why);
	if (n && why[n - 1] == ':')
		snprintf(why + n, ULRPC_STORE_TEXT - n, " %s", strerror(-rc));
	return rc;
}

/* ---- writing ---- */

static uint32_t kind_number(const struct journal_id *id)
{
	return strcmp(id->kind, JOURNAL_LOG) ? 2 : 1;
}

static void put_head(const struct journal_id *id, uint8_t head[JOURNAL_HEAD])
{
	memset(head, 0, JOURNAL_HEAD);
	memcpy(head, MAGIC, MAGIC_SIZE);
	store_le32(head + AT_VERSION, FORMAT);
	store_le32(head + AT_KIND, kind_number(id));
	memcpy(head + AT_INCARNATION, id->incarnation, JOURNAL_ID_SIZE);
	store_le64(head + AT_GENERATION, id->generation);
	store_le32(head + AT_SUM, crc32c(0, head, AT_SUM));
}

/* Writes all of @iov at the end of the file. Changes @iov. */
static int write_all(struct journal *j, struct iovec *iov, unsigned int n)
{
	ssize_t written;

	while (n) {
		written = pwritev(j->fd, iov, (int)n, (off_t)j->size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		j->size += (size_t)written;
		for (; n && (size_t)written >= iov->iov_len; iov++, n--)
			written -= (ssize_t)iov->iov_len;
		if (n) {
			iov->iov_base = (uint8_t *)iov->iov_base + written;
			iov->iov_len -= (size_t)written;
		}
	}
	return 0;
}

/* Opens @name. fork_fd_made(): children of fork() get no copy, which would keep
 * the store locked. */
static int open_file(int dir, const char *name, int flags)
{
	int fd;

	fork_hold();
	fd = openat(dir, name, flags | O_CLOEXEC, 0600);
	fd = fork_fd_made(fd);
	return fd < 0 ? -errno : fd;
}

int journal_new(int dir, const struct journal_id *id, struct journal *j)
{
	uint8_t head[JOURNAL_HEAD];
	struct iovec iov = { .iov_base = head, .iov_len = sizeof(head) };
	char name[JOURNAL_NAME];
	int rc;

	*j = (struct journal){ 0 };
	j->fd = open_file(dir, unfinished_name(id, name),
			  O_WRONLY | O_CREAT | O_TRUNC);
	if (j->fd < 0)
		return j->fd;
	put_head(id, head);
	j->sum = load_le32(head + AT_SUM);
	rc = write_all(j, &iov, 1);
	if (!rc)
		return 0;
	journal_close(j);
	unlinkat(dir, name, 0);
	return rc;
}

int journal_publish(int dir, const struct journal_id *id, struct journal *j)
{
	char from[JOURNAL_NAME], to[JOURNAL_NAME];
	int rc = journal_sync(j);

	if (rc)
		return rc;
	if (renameat(dir, unfinished_name(id, from), dir, journal_name(id, to)))
		return -errno;
	return fsync(dir) ? -errno : 0;
}

/* Calls fdatasync(), again if a signal has interrupted it. */
static int sync_data(int fd)
{
	int rc;

	do
		rc = fdatasync(fd);
	while (rc && errno == EINTR);
	return rc;
}

int journal_sync(struct journal *j)
{
	if (j->broken)
		return -ENOTRECOVERABLE;
	if (sync_data(j->fd)) {
		/* The kernel may have dropped what it could not write, so that
		 * another fdatasync() would succeed without proving anything.
		 */
		j->broken = true;
		return -ENOTRECOVERABLE;
	}
	j->synced = j->size;
	return 0;
}

/* Cuts the file back to @size bytes after the error @rc. The commits in the
 * frames that are cut off have failed, so the frames must not come back if the
 * machine fails: with @sync, waits until the cut is on disk. Returns @rc, or
 * -ENOTRECOVERABLE if the file cannot be cut. */
static int cut_back(struct journal *j, uint64_t size, bool sync, int rc)
{
	if (ftruncate(j->fd, (off_t)size) || (sync && sync_data(j->fd))) {
		j->broken = true;
		return -ENOTRECOVERABLE;
	}
	j->size = size;
	return rc;
}

static void put_frame(const struct journal *j, uint8_t *head, uint64_t number,
		      const struct iovec *payload)
{
	uint32_t sum;

	store_le32(head + FRAME_CHECKED, (uint32_t)payload->iov_len);
	store_le64(head + FRAME_NUMBER, number);
	store_le64(head + FRAME_SYNCED, j->synced);
	sum = crc32c(j->sum, head + FRAME_CHECKED, FRAME_HEAD - FRAME_CHECKED);
	store_le32(head, crc32c(sum, payload->iov_base, payload->iov_len));
}

int journal_append(struct journal *j, const struct iovec *payload,
		   unsigned int n, bool sync)
{
	uint8_t head[JOURNAL_GROUP][FRAME_HEAD];
	struct iovec iov[2 * JOURNAL_GROUP];
	uint64_t before = j->size;
	int rc;

	BUG_ON(n > JOURNAL_GROUP);
	if (j->broken)
		return -ENOTRECOVERABLE;
	for (unsigned int i = 0; i < n; i++) {
		put_frame(j, head[i], j->frames + i + 1, &payload[i]);
		iov[2 * i] = (struct iovec){ head[i], FRAME_HEAD };
		iov[2 * i + 1] = payload[i];
	}
	rc = write_all(j, iov, 2 * n);
	if (rc)
		return cut_back(j, before, sync, rc);
	j->frames += n;
	return sync ? journal_sync(j) : 0;
}

void journal_close(struct journal *j)
{
	if (j->fd >= 0)
		fork_fd_close(j->fd);
	j->fd = -1;
}

void journal_delete(int dir, const struct journal_id *id)
{
	char name[JOURNAL_NAME];

	unlinkat(dir, journal_name(id, name), 0);
	unlinkat(dir, unfinished_name(id, name), 0);
}

/* ---- reading ---- */

struct bytes {
	uint8_t *p;
	size_t size;
};

static int read_all(int fd, struct bytes *b)
{
	size_t done = 0;
	ssize_t n;

	while (done < b->size) {
		n = pread(fd, b->p + done, b->size - done, (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Reads all of the file into *@b, whose memory the caller frees by free(). */
static int load(int dir, const char *name, struct bytes *b)
{
	int rc, fd = open_file(dir, name, O_RDONLY);
	struct stat st;

	if (fd < 0)
		return fd;
	rc = fstat(fd, &st) ? -errno : 0;
	if (!rc) {
		b->size = (size_t)st.st_size;
		b->p = malloc(b->size + 1);
		rc = b->p ? read_all(fd, b) : -ENOMEM;
		if (rc)
			free(b->p);
	}
	fork_fd_close(fd);
	return rc;
}

static int check_head(const struct bytes *b, const struct journal_id *id,
		      bool any, const char *name, char *why)
{
	uint32_t version;

	if (b->size < JOURNAL_HEAD || memcmp(b->p, MAGIC, MAGIC_SIZE))
		return journal_why(why, -EMEDIUMTYPE,
				   "%s is not a file of a store", name);
	version = load_le32(b->p + AT_VERSION);
	if (version != FORMAT)
		return journal_why(why, -EPROTONOSUPPORT,
				   "%s has version %" PRIu32 " of the format, "
				   "this library reads version %u",
				   name, version, FORMAT);
	if (load_le32(b->p + AT_SUM) != crc32c(0, b->p, AT_SUM))
		return journal_why(why, -EBADMSG, "the head of %s is damaged",
				   name);
	if (load_le32(b->p + AT_KIND) != kind_number(id) ||
	    load_le64(b->p + AT_GENERATION) != id->generation)
		return journal_why(why, -EMEDIUMTYPE,
				   "%s was another file, and renamed", name);
	if (!any &&
	    memcmp(b->p + AT_INCARNATION, id->incarnation, JOURNAL_ID_SIZE))
		return journal_why(why, -EMEDIUMTYPE,
				   "%s is a file of another store", name);
	return 0;
}

/* Is there at @at a whole frame with the number @number? */
static bool frame_is_whole(const struct bytes *b, uint32_t sum, size_t at,
			   uint64_t number)
{
	const uint8_t *p = b->p + at;
	size_t length;

	if (b->size - at < FRAME_HEAD)
		return false;
	length = load_le32(p + FRAME_CHECKED);
	return load_le64(p + FRAME_NUMBER) == number &&
	       load_le64(p + FRAME_SYNCED) <= at &&
	       length <= b->size - at - FRAME_HEAD &&
	       load_le32(p) == crc32c(sum, p + FRAME_CHECKED,
				      FRAME_HEAD - FRAME_CHECKED + length);
}

/* At @bad, frame @number is not whole. Was it on disk when a later frame was
 * written? Looks for a whole frame behind @bad that says so. */
static bool was_synced(const struct bytes *b, uint32_t sum, size_t bad,
		       uint64_t number)
{
	for (size_t at = bad + 1; at + FRAME_HEAD <= b->size; at++)
		if (load_le64(b->p + at + FRAME_SYNCED) > bad &&
		    load_le64(b->p + at + FRAME_NUMBER) > number &&
		    frame_is_whole(b, sum, at,
				   load_le64(b->p + at + FRAME_NUMBER)))
			return true;
	return false;
}

static int read_frames(const struct bytes *b, const char *name,
		       journal_frame_fn frame, void *arg,
		       struct journal_found *f, char *why)
{
	size_t at = JOURNAL_HEAD, length;
	int rc;

	while (at < b->size && frame_is_whole(b, f->sum, at, f->frames + 1)) {
		length = load_le32(b->p + at + FRAME_CHECKED);
		rc = frame(arg, b->p + at + FRAME_HEAD, length);
		if (rc)
			return journal_why(why, rc, "%s, at byte %zu:", name,
					   at);
		at += FRAME_HEAD + length;
		f->frames++;
		f->closed = !length;
	}
	f->size = at;
	f->torn = b->size - at;
	if (f->torn && was_synced(b, f->sum, at, f->frames + 1))
		return journal_why(why, -EBADMSG,
				   "%s is damaged at byte %zu of %zu", name, at,
				   b->size);
	return 0;
}

int journal_read(int dir, const struct journal_id *id, bool any,
		 journal_frame_fn frame, void *arg, struct journal_found *found,
		 char *why)
{
	struct journal_found f = { 0 };
	char name[JOURNAL_NAME];
	struct bytes b;
	int rc = load(dir, journal_name(id, name), &b);

	if (rc)
		return journal_why(why, rc, "cannot read %s:", name);
	rc = check_head(&b, id, any, name, why);
	if (!rc) {
		memcpy(f.incarnation, b.p + AT_INCARNATION, JOURNAL_ID_SIZE);
		f.sum = load_le32(b.p + AT_SUM);
		rc = read_frames(&b, name, frame, arg, &f, why);
	}
	if (!rc)
		*found = f;
	free(b.p);
	return rc;
}

int journal_resume(int dir, const struct journal_id *id,
		   const struct journal_found *found, struct journal *j)
{
	char name[JOURNAL_NAME];
	int rc;

	*j = (struct journal){
		.fd = open_file(dir, journal_name(id, name), O_WRONLY),
		.sum = found->sum,
		.size = found->size,
		.frames = found->frames,
	};
	if (j->fd < 0)
		return j->fd;
	if (found->torn && ftruncate(j->fd, (off_t)j->size))
		rc = -errno;
	else
		rc = journal_sync(j);
	if (rc)
		journal_close(j);
	return rc;
}
