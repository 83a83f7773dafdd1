/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

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
