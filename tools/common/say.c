/* SPDX-License-Identifier: BSD-3-Clause */
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

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
