/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* ---- what it says ---- */

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
	va_list ap;

	if (level > s->level)
		return;
	va_start(ap, fmt);
	if (s->syslog) {
		vsyslog(priorities[level], fmt, ap);
	} else {
		fprintf(stderr, "%s: ", s->who);
		vfprintf(stderr, fmt, ap);
		fputc('\n', stderr);
	}
	va_end(ap);
}

void say_to_syslog(struct say *s)
{
	openlog(s->who, LOG_PID, LOG_DAEMON);
	s->syslog = true;
	lnet_log_set(s->level, log_to_syslog, NULL);
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

int signals_open(void)
{
	sigset_t signals = signals_ours();
	int fd;

	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int signals_take(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info)
		       ? (int)info.ssi_signo
		       : 0;
}

void signals_release(void)
{
	sigset_t signals = signals_ours();

	/* A shell that starts programs in the background may ignore it. */
	signal(SIGINT, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
