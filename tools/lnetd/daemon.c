/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the process that the user started: waits for the report, and exits. */
static void wait_for_report(pid_t child, int fd)
{
	unsigned char status;
	ssize_t n;

	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	do
		n = read(fd, &status, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1) {
		fprintf(stderr, "lnetd: ended before it was ready\n");
		status = 1;
	}
	_exit(status);
}

/* Closes inherited files: whoever reads a pipe until all its writers are gone
 * must not wait for the end of the daemon. */
static void close_inherited(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name); /* 0 for "." and ".." */

		if (fd > 2 && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

int daemon_begin(void)
{
	int fds[2];
	pid_t pid;

	close_inherited();
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid > 0) {
		close(fds[1]);
		wait_for_report(pid, fds[0]);
	}
	if (pid < 0) {
		int rc = -errno;

		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	close(fds[0]);
	/* The leader of a session could acquire a terminal, so the daemon is
	 * its child. */
	if (setsid() < 0 || (pid = fork()) < 0) {
		perror("lnetd: cannot go to the background");
		daemon_report(fds[1], 1);
		_exit(1);
	}
	if (pid > 0)
		_exit(0);
	if (chdir("/"))
		return -errno;
	return fds[1];
}

void daemon_report(int fd, int status)
{
	unsigned char byte = (unsigned char)status;
	ssize_t n;

	if (fd < 0)
		return;
	do
		n = write(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	close(fd);
}

void daemon_detach(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	for (int i = 0; i <= 2; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

/* ---- the service manager ---- */

bool notify_has_manager(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	return path && *path;
}

/* ---- the pid file ---- */

/* Is @fd still the file with the name @path? The process that had the lock
 * before may have removed the file. */
static bool daemon_is_there(const char *path, int fd)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 &&
	       mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* Does the file contain a process id, or nothing? A file with something else
 * must not be overwritten, nor removed in the end. */
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
		if (daemon_is_there(path, fd))
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
	if (daemon_is_there(path, fd))
		unlink(path);
	close(fd);
}
