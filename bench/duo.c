/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/duo.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT_MIN 10000
#define PORTS	 20000

void give_up(long rc, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror((int)-rc));
	exit(1);
}

long must_sys(long rc, const char *what)
{
	must(rc < 0 ? -errno : 0, what);
	return rc;
}

uint64_t duo_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Binds this process to the first, or the last, of the cores that it could use
 * before it, or the process that has forked it, was bound. */
static void pin(bool last)
{
	static cpu_set_t all;
	cpu_set_t one;
	int core = -1;

	if (!CPU_COUNT(&all))
		must_sys(sched_getaffinity(0, sizeof(all), &all),
			 "sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE && (last || core < 0); i++)
		if (CPU_ISSET((size_t)i, &all))
			core = i;
	CPU_ZERO(&one);
	CPU_SET((size_t)core, &one);
	must_sys(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

pid_t duo_fork(void (*server)(void *arg, int ready), void *arg)
{
	int ready[2];
	pid_t child;
	char byte;

	must_sys(pipe(ready), "pipe");
	child = (pid_t)must_sys(fork(), "fork");
	if (!child) {
		close(ready[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(false);
		server(arg, ready[1]);
		exit(0);
	}
	close(ready[1]);
	pin(true);
	if (read(ready[0], &byte, 1) != 1)
		must(-ECHILD, "the server");
	close(ready[0]);
	return child;
}

void duo_wait(pid_t child)
{
	int status = 0;

	must_sys(waitpid(child, &status, 0), "waitpid");
	if (status)
		must(-ECHILD, "the server");
}

void duo_ready(int ready)
{
	must_sys(write(ready, "", 1), "write");
	close(ready);
}

struct sockaddr_in duo_address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port) };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static bool port_is_free(uint16_t port)
{
	struct sockaddr_in a = duo_address("0.0.0.0", port);
	int fd = (int)must_sys(socket(AF_INET, SOCK_STREAM, 0), "socket");
	bool is = !bind(fd, (struct sockaddr *)&a, sizeof(a));

	close(fd);
	return is;
}

uint16_t duo_free_port(void)
{
	/* ports below those that the system gives to connections */
	unsigned int at = (unsigned int)getpid() * 7;

	for (unsigned int i = 0; i < PORTS; i++, at++)
		if (port_is_free((uint16_t)(PORT_MIN + at % PORTS)))
			return (uint16_t)(PORT_MIN + at % PORTS);
	must(-EADDRINUSE, "ports");
	return 0;
}

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) * 13 + (i >> 16) + 1);
}

void duo_fill(unsigned char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = byte_at(i);
}

void duo_verify(const unsigned char *p, size_t from, size_t size)
{
	for (size_t i = from; i < size; i++)
		if (p[i] != byte_at(i)) {
			fprintf(stderr, "%s: byte %zu of a message is wrong\n",
				program_invocation_short_name, i);
			exit(1);
		}
}

void *duo_buffer(size_t size)
{
	void *p = NULL;

	must(-posix_memalign(&p, 4096, size), "posix_memalign");
	memset(p, 0, size);
	return p;
}

void *duo_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must_sys(p == MAP_FAILED ? -1 : 0, "mmap");
	return p;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

double duo_times_percent(struct duo_times *t, unsigned int percent)
{
	uint64_t at = t->n * percent / 100;

	if (!t->n)
		must(-ENODATA, "round trips");
	qsort(t->ns, t->n, sizeof(t->ns[0]), by_value);
	return t->ns[at] / 1e3;
}

double duo_times_median(struct duo_times *t)
{
	return duo_times_percent(t, 50);
}

struct duo_memory duo_memory(void)
{
	struct mallinfo2 m = mallinfo2();
	struct duo_memory now = { .allocated = m.uordblks + m.hblkhd };
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!f || fscanf(f, "%*u %lu", &pages) != 1)
		give_up(-ENOENT, "/proc/self/statm");
	fclose(f);
	now.resident = pages * (size_t)sysconf(_SC_PAGESIZE);
	return now;
}

struct duo_memory duo_memory_since(const struct duo_memory *before)
{
	struct duo_memory now = duo_memory();

	now.allocated -= before->allocated;
	now.resident -= before->resident;
	return now;
}

size_t duo_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	if (!d)
		give_up(-ENOENT, "/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void duo_more_files(void)
{
	struct rlimit limit;

	must_sys(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
	limit.rlim_cur = limit.rlim_max;
	must_sys(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}
