/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two processes can get out of shared memory with nothing between them and
 * the processor: what bench/shm is compared with. bench/tcp.sh calls it.
 *
 *	raw_shm MODE SIZE MS
 *
 * prints the median of the time, us, in which a message of SIZE goes and comes
 * back. MODE:
 *	poll	both processes spin
 *	eventfd	each waits in read() of an eventfd
 *	futex	each waits in futex()
 *	socket	each waits in recv() of a UNIX socket, for one byte
 *	epoll	each waits in epoll_wait() for its eventfd, and reads that, as
 *		an event loop does
 *	copy	prints something else: how often in a second SIZE bytes are
 *		copied out of the other process's memory (process_vm_readv),
 *		from DUO_BUFFERS places in turn
 */
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/duo.h"

#define SIZE_MAX_ 4096

/* One direction. */
struct way {
	_Alignas(128) _Atomic uint64_t sent; /* number of messages */
	_Alignas(128) unsigned char bytes[SIZE_MAX_];
};

struct raw {
	enum { POLL, EVENTFD, FUTEX, SOCKET, EPOLL, COPY } mode;
	size_t size;
	unsigned char *memory; /* of the process that is copied from */
	uint64_t ns;
	struct way *way; /* [0] to the server, [1] back */
	int bell[2];	 /* by direction: what its receiver waits for */
	int ring[2];	 /* by direction: what its sender writes to */
	int epfd;
};

/* Returns that half of the number of messages which changes. */
static uint32_t *futex_of(struct raw *r, int way)
{
	uint32_t *halves = (uint32_t *)&r->way[way].sent;

	return halves + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static bool has_come(struct raw *r, int way, uint64_t n)
{
	return atomic_load_explicit(&r->way[way].sent, memory_order_acquire) ==
	       n;
}

static void ring_bell(struct raw *r, int way)
{
	const uint64_t one = 1;

	if (r->mode == POLL)
		return;
	if (r->mode == FUTEX)
		must_sys(syscall(SYS_futex, futex_of(r, way), FUTEX_WAKE, 1),
			 "futex");
	else if (r->mode == SOCKET)
		must_sys(send(r->ring[way], &one, 1, MSG_DONTWAIT), "send");
	else
		must_sys(write(r->ring[way], &one, sizeof(one)), "write");
}

static void await_bell(struct raw *r, int way, uint64_t n)
{
	struct epoll_event e;
	uint64_t rung;

	while (r->mode == POLL && !has_come(r, way, n))
		;
	while (r->mode == FUTEX && !has_come(r, way, n))
		(void)syscall(SYS_futex, futex_of(r, way), FUTEX_WAIT,
			      (uint32_t)(n - 1), NULL);
	if (r->mode == EPOLL)
		must_sys(epoll_wait(r->epfd, &e, 1, -1), "epoll_wait");
	if (r->mode != POLL && r->mode != FUTEX)
		must_sys(read(r->bell[way], &rung, sizeof(rung)), "read");
}

static void raw_send(struct raw *r, int way, const unsigned char *p, uint64_t n)
{
	memcpy(r->way[way].bytes, p, r->size);
	atomic_store_explicit(&r->way[way].sent, n, memory_order_release);
	ring_bell(r, way);
}

static void raw_recv(struct raw *r, int way, unsigned char *p, uint64_t n)
{
	await_bell(r, way, n);
	memcpy(p, r->way[way].bytes, r->size);
}

static void watch(struct raw *r, int way)
{
	struct epoll_event e = { .events = EPOLLIN };

	r->epfd = (int)must_sys(epoll_create1(EPOLL_CLOEXEC), "epoll");
	must_sys(epoll_ctl(r->epfd, EPOLL_CTL_ADD, r->bell[way], &e), "epoll");
}

/* A message that begins with 0 is the last one. */
static void server(void *arg, int ready)
{
	unsigned char buf[SIZE_MAX_];
	struct raw *r = arg;

	watch(r, 0);
	duo_ready(ready);
	for (uint64_t n = 1;; n++) {
		raw_recv(r, 0, buf, n);
		raw_send(r, 1, buf, n);
		if (!buf[0])
			return;
	}
}

static double client(struct raw *r)
{
	unsigned char out[SIZE_MAX_], in[SIZE_MAX_];
	struct duo_times *times = duo_buffer(sizeof(*times));
	uint64_t begin = duo_now(), now = begin, n = 0;
	double v;

	watch(r, 1);
	duo_fill(out, sizeof(out));
	while (now - begin < DUO_WARM_NS + r->ns) {
		uint64_t before = now;

		out[0] = (unsigned char)(n % 255 + 1);
		raw_send(r, 0, out, ++n);
		raw_recv(r, 1, in, n);
		must(in[0] == out[0] ? 0 : -1, "echo");
		now = duo_now();
		if (now - begin > DUO_WARM_NS)
			duo_times_add(times, now - before);
	}
	out[0] = 0;
	raw_send(r, 0, out, ++n);
	raw_recv(r, 1, in, n);
	v = duo_times_median(times);
	free(times);
	return v;
}

/* ---- copies ---- */

/* Has the memory, until it is told that it is not needed any more. */
static void owner(void *arg, int ready)
{
	struct raw *r = arg;
	uint64_t rung;

	for (unsigned int i = 0; i < DUO_BUFFERS; i++)
		duo_fill(r->memory + i * r->size, r->size);
	duo_ready(ready);
	must_sys(read(r->bell[0], &rung, sizeof(rung)), "read");
}

static double copies(const struct raw *r, pid_t child)
{
	unsigned char *to = duo_buffer(DUO_BUFFERS * r->size);
	uint64_t begin = duo_now(), now = begin, first = 0, n = 0;
	const uint64_t one = 1;

	while (now - begin < DUO_WARM_NS + r->ns) {
		size_t at = n++ % DUO_BUFFERS * r->size;
		struct iovec theirs = { r->memory + at, r->size };
		struct iovec mine = { to + at, r->size };

		must(process_vm_readv(child, &mine, 1, &theirs, 1, 0) ==
				     (ssize_t)r->size
			     ? 0
			     : -1,
		     "process_vm_readv");
		now = duo_now();
		if (now - begin < DUO_WARM_NS)
			first = n;
	}
	duo_verify(to, 0, r->size);
	free(to);
	must_sys(write(r->ring[0], &one, sizeof(one)), "write");
	return (double)(n - first) * 1e9 / (double)r->ns;
}

static void bells(struct raw *r)
{
	int fds[2];

	for (int i = 0; i < 2; i++) {
		r->bell[i] = r->ring[i] =
			(int)must_sys(eventfd(0, EFD_CLOEXEC), "eventfd");
	}
	if (r->mode != SOCKET)
		return;
	must_sys(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
	for (int i = 0; i < 2; i++) {
		r->bell[i] = fds[i];
		r->ring[i] = fds[1 - i];
	}
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "poll",   "eventfd", "futex",
					     "socket", "epoll",	  "copy" };
	struct raw r = { .mode = POLL };
	pid_t child;

	while (argc == 4 && r.mode <= COPY && strcmp(argv[1], modes[r.mode]))
		r.mode++;
	if (argc != 4 || r.mode > COPY) {
		fprintf(stderr, "usage: raw_shm "
				"poll|eventfd|futex|socket|epoll|copy "
				"SIZE MS\n");
		return 2;
	}
	r.size = strtoul(argv[2], NULL, 0);
	r.ns = strtoull(argv[3], NULL, 0) * 1000000;
	must(r.size && (r.size <= SIZE_MAX_ || r.mode == COPY) ? 0 : -1,
	     "SIZE");
	r.way = duo_shared(2 * sizeof(*r.way));
	bells(&r);
	if (r.mode == COPY)
		r.memory = duo_buffer(DUO_BUFFERS * r.size);
	child = duo_fork(r.mode == COPY ? owner : server, &r);
	printf("%.3f\n", r.mode == COPY ? copies(&r, child) : client(&r));
	free(r.memory);
	duo_wait(child);
	return 0;
}
