/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to preload, which delays the threads of a program against each
 * other: in the calls by which threads wait and hand over, it now and then
 * sleeps, as a thread does that a busy machine does not run. Tests that look
 * before the other thread came fail under it: stage noise of ./check.
 *
 *	NOISE_SEED	a number; without it nothing is delayed
 *	NOISE_ONLY	only programs whose path begins so are delayed
 *	NOISE_SHORT	a thread's first calls sleep 0.2 to 20 ms one time in
 *			so many
 *	NOISE_LONG	the same, 0.3 to 2 s
 *	NOISE_LATE	ms, the most that a thread comes late each time that
 *			epoll_wait() or poll() has something for it
 *	NOISE_WHO	whom NOISE_LATE is for: all threads, the main one, or
 *			the others
 *	NOISE_MOST	s, of all sleep in a process: the less is left of it,
 *			the fewer calls sleep
 *
 * To the program, all of this is time in which its threads were ready and
 * others ran: what it reads of the system's count, schedstat, says so.
 *
 * Random numbers come from the seed, and from where the thread stands among all
 * that the program makes; how threads meet is not repeated by a seed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

/* A thread is disturbed most at its beginning: few tests are long, and one that
 * makes a million calls would not end. */
#define CALLS_AT_FULL_RATE 64
#define LEAST_SHORT	   4096 /* one in so many, however long it runs */
#define LEAST_LONG	   262144
#define STEP_US		   10000

enum who { WHO_ALL, WHO_MAIN, WHO_OTHERS };

static struct {
	bool on; /* the rest is set */
	uint64_t seed;
	uint64_t one_short, one_long; /* 0: never */
	uint64_t late_us;
	enum who who;
	int64_t most_us;
	_Atomic int64_t left_us; /* of most_us */
	_Atomic uint64_t slept_us;
	atomic_uint threads; /* that have drawn a number, in all processes */
} noise;

static __thread struct {
	uint64_t random; /* 0: has drawn no number yet */
	uint64_t calls, wakes;
	uint64_t slept_us;
} self;

/* ---- numbers ---- */

static uint64_t mix(uint64_t x) /* splitmix64 */
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t draw(void)
{
	if (!self.random)
		self.random = mix(noise.seed ^
				  (uint64_t)atomic_fetch_add(&noise.threads, 1)
					  << 32) |
			      1;
	self.random += UINT64_C(0x9e3779b97f4a7c16);
	return mix(self.random);
}

static bool one_in(uint64_t n)
{
	return n && draw() % n == 0;
}

/* Returns a time between two, each magnitude of which is as likely. */
static uint64_t between(uint64_t least, uint64_t most)
{
	unsigned int doublings = 0;
	uint64_t low;

	while (least << (doublings + 1) <= most)
		doublings++;
	low = least << draw() % (doublings + 1);
	low += draw() % low;
	return low < most ? low : most;
}

/* ---- sleep ---- */

static void sleep_step(uint64_t us)
{
	struct timespec ts = { .tv_nsec = (long)us * 1000 };

	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, &ts))
		if (errno != EINTR)
			break;
}

/* Sleeps, the more rarely the more the process has slept. */
static void sleep_us(uint64_t us)
{
	int64_t left = atomic_load(&noise.left_us);
	int err = errno;

	if (left <= 0 || (int64_t)(draw() % noise.most_us) >= left)
		return;
	atomic_fetch_sub(&noise.left_us, us);
	/* In steps, so that not much more is counted than was slept. */
	for (uint64_t step; us; us -= step) {
		step = us < STEP_US ? us : STEP_US;
		self.slept_us += step;
		atomic_fetch_add(&noise.slept_us, step);
		sleep_step(step);
	}
	errno = err;
}

static uint64_t rarer(uint64_t n, uint64_t least)
{
	uint64_t now = n * (1 + self.calls / CALLS_AT_FULL_RATE);

	return now < least || least < n ? now : least;
}

/* A place at which the thread may be delayed. @weight: that of calls which are
 * made @weight times as often as others. */
static void disturb(unsigned int weight)
{
	if (!noise.on)
		return;
	self.calls++;
	if (one_in(rarer(noise.one_long * weight, LEAST_LONG)))
		sleep_us(between(300000, 2000000));
	else if (one_in(rarer(noise.one_short * weight, LEAST_SHORT)))
		sleep_us(between(200, 20000));
}

/* The thread has something to do. Returns whether it comes late to it. */
static bool is_late(void)
{
	bool main;

	if (!noise.on || !noise.late_us ||
	    !one_in(1 + self.wakes++ / CALLS_AT_FULL_RATE))
		return false;
	main = syscall(SYS_gettid) == getpid();
	return noise.who == WHO_ALL || main == (noise.who == WHO_MAIN);
}

static void wake(void)
{
	if (is_late())
		sleep_us(between(1 + noise.late_us / 64, noise.late_us));
	else
		disturb(1);
}

/* ---- settings ---- */

static uint64_t number(const char *name, uint64_t preset)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : preset;
}

static bool is_meant(void)
{
	const char *only = getenv("NOISE_ONLY");
	char path[4096] = "";

	return !only ||
	       (readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 &&
		strncmp(path, only, strlen(only)) == 0);
}

/* A process draws other numbers than its children. */
static void before_fork(void)
{
	atomic_fetch_add(&noise.threads, 1000);
}

static void in_child(void)
{
	memset(&self, 0, sizeof(self));
	noise.left_us = noise.most_us;
	noise.slept_us = 0;
}

static __attribute__((constructor)) void begin(void)
{
	const char *who = getenv("NOISE_WHO");

	if (!getenv("NOISE_SEED") || !is_meant())
		return;
	noise.seed = mix(number("NOISE_SEED", 0));
	noise.one_short = number("NOISE_SHORT", 8);
	noise.one_long = number("NOISE_LONG", 400);
	noise.late_us = number("NOISE_LATE", 0) * 1000;
	noise.most_us = number("NOISE_MOST", 15) * 1000000;
	noise.left_us = noise.most_us;
	if (who && strcmp(who, "main") == 0)
		noise.who = WHO_MAIN;
	else if (who && strcmp(who, "others") == 0)
		noise.who = WHO_OTHERS;
	pthread_atfork(before_fork, NULL, in_child);
	noise.on = true;
}

/* ---- calls ---- */

/* Declares @real, the function of that name that the program would call. */
#define REAL(name)                     \
	static __typeof__(&name) real; \
	if (!real)                     \
	real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Defines a function that is disturbed before and after. */
#define DISTURBED(type, name, weight, params, args) \
	PUBLIC type name params                     \
	{                                           \
		type result;                        \
		REAL(name);                         \
		disturb(weight);                    \
		result = real args;                 \
		disturb(weight);                    \
		return result;                      \
	}

DISTURBED(ssize_t, read, 1, (int fd, void *buf, size_t n), (fd, buf, n))
DISTURBED(ssize_t, write, 1, (int fd, const void *buf, size_t n), (fd, buf, n))
DISTURBED(ssize_t, readv, 1, (int fd, const struct iovec *iov, int n),
	  (fd, iov, n))
DISTURBED(ssize_t, writev, 1, (int fd, const struct iovec *iov, int n),
	  (fd, iov, n))
DISTURBED(ssize_t, recv, 1, (int fd, void *buf, size_t n, int flags),
	  (fd, buf, n, flags))
DISTURBED(ssize_t, send, 1, (int fd, const void *buf, size_t n, int flags),
	  (fd, buf, n, flags))
DISTURBED(ssize_t, sendto, 1,
	  (int fd, const void *buf, size_t n, int flags,
	   const struct sockaddr *to, socklen_t size),
	  (fd, buf, n, flags, to, size))
DISTURBED(ssize_t, recvmsg, 1, (int fd, struct msghdr *msg, int flags),
	  (fd, msg, flags))
DISTURBED(ssize_t, sendmsg, 1, (int fd, const struct msghdr *msg, int flags),
	  (fd, msg, flags))
DISTURBED(int, accept4, 1,
	  (int fd, struct sockaddr *addr, socklen_t *size, int flags),
	  (fd, addr, size, flags))
DISTURBED(int, connect, 1,
	  (int fd, const struct sockaddr *addr, socklen_t size),
	  (fd, addr, size))
DISTURBED(int, shutdown, 1, (int fd, int how), (fd, how))
DISTURBED(int, pthread_mutex_lock, 2, (pthread_mutex_t * mutex), (mutex))
DISTURBED(int, pthread_mutex_trylock, 2, (pthread_mutex_t * mutex), (mutex))
DISTURBED(int, pthread_mutex_unlock, 2, (pthread_mutex_t * mutex), (mutex))
DISTURBED(int, pthread_cond_wait, 1,
	  (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
DISTURBED(int, pthread_cond_timedwait, 1,
	  (pthread_cond_t * cond, pthread_mutex_t *mutex,
	   const struct timespec *until),
	  (cond, mutex, until))
DISTURBED(int, pthread_cond_signal, 1, (pthread_cond_t * cond), (cond))
DISTURBED(int, pthread_cond_broadcast, 1, (pthread_cond_t * cond), (cond))
DISTURBED(int, pthread_join, 1, (pthread_t thread, void **value),
	  (thread, value))
DISTURBED(int, sem_wait, 1, (sem_t * sem), (sem))
DISTURBED(int, sem_post, 1, (sem_t * sem), (sem))
DISTURBED(int, clock_gettime, 4, (clockid_t clock, struct timespec *now),
	  (clock, now))

PUBLIC int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
	int n;

	REAL(epoll_wait);
	disturb(1);
	n = real(fd, events, most, ms);
	if (n > 0)
		wake();
	return n;
}

PUBLIC int epoll_pwait(int fd, struct epoll_event *events, int most, int ms,
		       const sigset_t *mask)
{
	int n;

	REAL(epoll_pwait);
	disturb(1);
	n = real(fd, events, most, ms, mask);
	if (n > 0)
		wake();
	return n;
}

PUBLIC int poll(struct pollfd *fds, nfds_t count, int ms)
{
	int n;

	REAL(poll);
	disturb(1);
	n = real(fds, count, ms);
	if (n > 0)
		wake();
	return n;
}

PUBLIC int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *ts,
		 const sigset_t *mask)
{
	int n;

	REAL(ppoll);
	disturb(1);
	n = real(fds, count, ts, mask);
	if (n > 0)
		wake();
	return n;
}

/* ---- what the system says of the delay ---- */

/* Returns a file like @path, which is one of a thread's schedstat: in it, @us
 * more have passed in which the thread was ready, but did not run. */
static int schedstat_with(const char *path, uint64_t us)
{
	unsigned long long ran, waited, turns;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	char text[100] = "";
	long n;

	if (fd < 0)
		return fd;
	n = syscall(SYS_read, fd, text, sizeof(text) - 1);
	close(fd);
	fd = memfd_create("schedstat", MFD_CLOEXEC);
	if (fd < 0 || n <= 0 ||
	    sscanf(text, "%llu %llu %llu", &ran, &waited, &turns) != 3)
		return fd;
	n = snprintf(text, sizeof(text), "%llu %llu %llu\n", ran,
		     waited + (unsigned long long)us * 1000, turns);
	syscall(SYS_pwrite64, fd, text, n, 0);
	return fd;
}

/* The guard of loops reads its own thread's. */
PUBLIC int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	REAL(open);
	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (noise.on && strcmp(path, "/proc/thread-self/schedstat") == 0)
		return schedstat_with(path, self.slept_us);
	return real(path, flags, mode);
}

/* lnetd reads all threads', for their sum: the main thread's has it all. */
PUBLIC FILE *fopen(const char *path, const char *mode)
{
	int tid;

	REAL(fopen);
	if (noise.on &&
	    sscanf(path, "/proc/self/task/%d/schedstat", &tid) == 1 &&
	    tid == getpid())
		return fdopen(schedstat_with(path, noise.slept_us), "r");
	return real(path, mode);
}

/* ---- new threads ---- */

struct beginning {
	void *(*run)(void *arg);
	void *arg;
};

static void *begin_late(void *arg)
{
	struct beginning b = *(struct beginning *)arg;

	free(arg);
	wake();
	return b.run(b.arg);
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *arg)
{
	struct beginning *b;
	int err;

	REAL(pthread_create);
	if (!noise.on)
		return real(thread, attr, run, arg);
	b = malloc(sizeof(*b));
	if (!b)
		return EAGAIN;
	*b = (struct beginning){ .run = run, .arg = arg };
	disturb(1);
	err = real(thread, attr, begin_late, b);
	if (err)
		free(b);
	disturb(1);
	return err;
}
