/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define WORD_BITS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list watches = { &watches, &watches };
/* Bitmap of the descriptors that a child closes: bit i of word j is for
 * descriptor 64 j + i. */
static uint64_t *fds;
static size_t nfds; /* number of words in @fds */
static unsigned int generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* result of registering the functions of this file with pthread_atfork(): 0 or
 * -errno */
static int registered;

static void before(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void close_fds(void)
{
	for (size_t i = 0; i < nfds; i++)
		for (; fds[i]; fds[i] &= fds[i] - 1)
			close((int)(i * WORD_BITS) + __builtin_ctzll(fds[i]));
}

static void in_child(void)
{
	struct fork_watch *watch;

	generation++;
	close_fds();
	list_for_each_entry (watch, &watches, link)
		watch->in_child(watch);
	pthread_mutex_unlock(&lock);
}

static void start(void)
{
	registered = -pthread_atfork(before, in_parent, in_child);
}

unsigned int fork_generation(void)
{
	pthread_once(&once, start);
	return generation;
}

int fork_watch_add(struct fork_watch *watch)
{
	pthread_once(&once, start);
	if (registered)
		return registered;
	pthread_mutex_lock(&lock);
	list_add_tail(&watches, &watch->link);
	pthread_mutex_unlock(&lock);
	return 0;
}

void fork_watch_del(struct fork_watch *watch)
{
	pthread_mutex_lock(&lock);
	list_del(&watch->link);
	pthread_mutex_unlock(&lock);
}

/* Makes room for word @word of @fds. Returns whether there is room. With the
 * lock held. */
static bool grow(size_t word)
{
	size_t n = MAX(word + 1, 2 * nfds);
	uint64_t *more;

	if (word < nfds)
		return true;
	more = realloc(fds, n * sizeof(*more));
	if (!more)
		return false;
	memset(more + nfds, 0, (n - nfds) * sizeof(*more));
	fds = more;
	nfds = n;
	return true;
}

/* With the lock held. */
static void fd_add(int fd)
{
	size_t word = (size_t)fd / WORD_BITS;

	if (grow(word))
		fds[word] |= UINT64_C(1) << fd % WORD_BITS;
}

/* With the lock held. */
static void fd_del(int fd)
{
	size_t word = (size_t)fd / WORD_BITS;

	if (word < nfds)
		fds[word] &= ~(UINT64_C(1) << fd % WORD_BITS);
}

void fork_hold(void)
{
	pthread_once(&once, start);
	pthread_mutex_lock(&lock);
}

int fork_fd_made(int fd)
{
	int error = errno;

	if (fd >= 0)
		fd_add(fd);
	pthread_mutex_unlock(&lock);
	errno = error;
	return fd;
}

void fork_done(void)
{
	pthread_mutex_unlock(&lock);
}

void fork_fd_close(int fd)
{
	pthread_mutex_lock(&lock);
	fd_del(fd);
	pthread_mutex_unlock(&lock);
	close(fd);
}

void fork_fd_add(int fd)
{
	fork_hold();
	(void)fork_fd_made(fd);
}

void fork_fd_del(int fd)
{
	pthread_mutex_lock(&lock);
	fd_del(fd);
	pthread_mutex_unlock(&lock);
}
