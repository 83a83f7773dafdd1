/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the process that the user called: waits for the report. */
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

/* Whoever waits for the end of a pipe shall not wait for a daemon's end. */
static void close_inherited(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name); /* 0 for . and .. */

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
	/* A leader of a session could get a terminal: it is not the daemon. */
	if (setsid() < 0 || (pid = fork()) < 0) {
		perror("lnetd: cannot go to the background");
		daemon_report(fds[1], 1);
		_exit(1);
	}
	if (pid > 0)
		_exit(0);
	if (chdir("/"))
		return -errno; /* whoever waits learns of it by our end */
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
