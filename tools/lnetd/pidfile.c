/* SPDX-License-Identifier: BSD-3-Clause */
#include "pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is what we have locked still the file of that name? Its owner may have
 * removed it in between. */
static bool is_there(const char *path, int fd)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 &&
	       mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* The file contains what we would write, or nothing: no other file is to be
 * overwritten, and removed in the end. */
static bool is_pidfile(int fd)
{
	char text[32];
	struct stat st;
	ssize_t n = pread(fd, text, sizeof(text), 0);
	size_t digits;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || n < 0 ||
	    n == (ssize_t)sizeof(text))
		return false;
	text[n] = '\0';
	digits = strspn(text, "0123456789");
	return n == 0 || (digits && !strcmp(text + digits, "\n"));
}

static int open_locked(const char *path)
{
	for (;;) {
		int fd = open(path,
			      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
				      O_NONBLOCK,
			      0644);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			int rc = errno == EWOULDBLOCK ? -EEXIST : -errno;

			close(fd);
			return rc;
		}
		if (!is_pidfile(fd)) {
			close(fd);
			return -EMEDIUMTYPE;
		}
		if (is_there(path, fd))
			return fd;
		close(fd);
	}
}

int pidfile_take(const char *path, int *fd_p)
{
	int fd = open_locked(path), n, rc = 0;
	char text[32];

	if (fd < 0)
		return fd;
	n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) || write(fd, text, (size_t)n) != n)
		rc = errno ? -errno : -EIO;
	if (rc) {
		pidfile_drop(path, fd);
		return rc;
	}
	*fd_p = fd;
	return 0;
}

void pidfile_drop(const char *path, int fd)
{
	if (fd < 0)
		return;
	if (is_there(path, fd))
		unlink(path);
	close(fd);
}
