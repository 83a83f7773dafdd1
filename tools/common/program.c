/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* ---- messages ---- */

static const int priorities[] = {
	[LNET_LOG_ERR] = LOG_ERR,
	[LNET_LOG_WARN] = LOG_WARNING,
	[LNET_LOG_INFO] = LOG_INFO,
	[LNET_LOG_DEBUG] = LOG_DEBUG,
};

static void log_to_syslog(int level, const char *line, void *arg)
{
	(void)arg;
	syslog(priorities[level], "%s", line);
}

void say(const struct say *s, enum ulnet_log_level level, const char *fmt, ...)
{
	char stamp[LNET_LOG_STAMP];
	va_list ap;

	if (!lnet_log_on(level))
		return;
	va_start(ap, fmt);
	if (s->syslog) {
		vsyslog(priorities[level], fmt, ap);
	} else {
		fprintf(stderr, "%s%s: ", lnet_log_stamp(stamp, sizeof(stamp)),
			s->who);
		vfprintf(stderr, fmt, ap);
		fputc('\n', stderr);
	}
	va_end(ap);
}

void say_to_syslog(struct say *s)
{
	char levels[LNET_LOG_LEVELS];

	openlog(s->who, LOG_PID, LOG_DAEMON);
	s->syslog = true;
	lnet_log_levels(levels, sizeof(levels));
	lnet_log_set(lnet_log_level(), log_to_syslog, NULL);
	(void)lnet_log_levels_set(levels, NULL);
}

int secure_stdio(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* ---- signals ---- */

static sigset_t signals_ours(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	return signals;
}

int signals_open(const char *who, int also)
{
	sigset_t signals = signals_ours();
	int fd;

	if (also)
		sigaddset(&signals, also);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		fprintf(stderr, "%s: signals: %s\n", who, strerror(errno));
	return fd;
}

int signals_take(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info)
		       ? (int)info.ssi_signo
		       : 0;
}

int signals_wait(int fd, uint64_t at)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec t;
	uint64_t left;
	int number;

	while (!(number = signals_take(fd))) {
		left = clock_ns();
		left = at > left ? at - left : 0;
		if (at && !left)
			break;
		t.tv_sec = (time_t)(left / 1000000000);
		t.tv_nsec = (long)(left % 1000000000);
		ppoll(&p, 1, at ? &t : NULL, NULL);
	}
	return number;
}

void signals_release(void)
{
	sigset_t signals = signals_ours();

	/* A shell that starts programs in the background may have set SIGINT
	 * to be ignored. */
	signal(SIGINT, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- files: reading ---- */

static int program_complain(const char *who, const char *path, int rc)
{
	fprintf(stderr, "%s: %s: %s\n", who, path, strerror(-rc));
	return rc;
}

static int program_read_all(int fd, size_t max, char **text_p, size_t *length_p)
{
	size_t length = 0, size = 65536;
	char *text = malloc(size), *bigger;
	ssize_t n;
	int rc;

	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + length, size - 1 - length)) != 0) {
		rc = n < 0 ? -errno : 0;
		if (rc == -EINTR)
			continue;
		if (rc)
			goto err_free;
		length += (size_t)n;
		rc = -EFBIG;
		if (length > max)
			goto err_free;
		if (size - 1 - length >= 4096)
			continue;
		bigger = realloc(text, size * 2);
		rc = -ENOMEM;
		if (!bigger)
			goto err_free;
		text = bigger;
		size *= 2;
	}
	text[length] = 0;
	*text_p = text;
	*length_p = length;
	return 0;
err_free:
	free(text);
	return rc;
}

static int read_up_to(const char *who, const char *path, size_t max,
		      char **text_p)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "stdin" : path;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	size_t length;
	char *text;
	int rc;

	if (fd < 0)
		return program_complain(who, name, -errno);
	rc = program_read_all(fd, max, &text, &length);
	if (!is_stdin)
		close(fd);
	if (rc == -EFBIG)
		fprintf(stderr,
			"%s: %s: longer than %u bytes, the longest that can be "
			"a configuration\n",
			who, name, FILE_TEXT_MAX);
	if (rc)
		return rc == -EFBIG ? rc : program_complain(who, name, rc);
	if (strlen(text) != length) {
		fprintf(stderr, "%s: %s: not text: a byte of 0 at offset %zu\n",
			who, name, strlen(text));
		free(text);
		return -EILSEQ;
	}
	*text_p = text;
	return 0;
}

int file_read(const char *who, const char *path, char **text_p)
{
	return read_up_to(who, path, FILE_TEXT_MAX, text_p);
}

int file_read_long(const char *who, const char *path, char **text_p)
{
	return read_up_to(who, path, SIZE_MAX, text_p);
}

/* ---- files: writing ---- */

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			left -= (size_t)n;
		}
	}
	return 0;
}

/* Writes a new file beside @path, and gives it the name @path. */
static int replace(const char *path, mode_t mode, const char *text)
{
	char *temp;
	int fd, rc;

	if (asprintf(&temp, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
		free(temp);
		return rc;
	}
	rc = write_all(fd, text);
	if (!rc && (fchmod(fd, mode) || fsync(fd)))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(temp, path))
		rc = -errno;
	if (rc)
		unlink(temp);
	free(temp);
	return rc;
}

static int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, text);
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

/* Writes to @path, which exists and is no symbolic link. */
static int write_real(const char *path, const char *text)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? replace(path, st.st_mode & 07777, text)
				   : write_to(path, text);
}

int file_write(const char *who, const char *path, const char *text)
{
	char *real = realpath(path, NULL);
	mode_t mask = umask(0);
	int rc;

	umask(mask);
	if (real)
		rc = write_real(real, text);
	else
		rc = errno == ENOENT ? replace(path, 0666 & ~mask, text)
				     : -errno;
	free(real);
	return rc ? program_complain(who, path, rc) : 0;
}
