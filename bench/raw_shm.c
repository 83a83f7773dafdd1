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
 *	socket	each waits in recv() of a UNIX socket, for one byte
 *	epoll	each waits in epoll_wait() for its eventfd, and reads that, as
 *		an event loop does
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/duo.h"

#define SIZE_MAX_ 4096

/* One direction. */
struct way {
	_Alignas(128) _Atomic uint64_t sent; /* number of messages */
	_Alignas(128) unsigned char bytes[SIZE_MAX_];
};

struct raw {
	enum { POLL, EVENTFD, SOCKET, EPOLL } mode;
	size_t size;
	uint64_t ns;
	struct way *way; /* [0] to the server, [1] back */
	int bell[2];	 /* by direction: what its receiver waits for */
	int ring[2];	 /* by direction: what its sender writes to */
	int epfd;
};

static void ring_bell(struct raw *r, int way)
{
	const uint64_t one = 1;

	if (r->mode == POLL)
		return;
	if (r->mode == SOCKET)
		must_sys(send(r->ring[way], &one, 1, MSG_DONTWAIT), "send");
	else
		must_sys(write(r->ring[way], &one, sizeof(one)), "write");
}

static void await_bell(struct raw *r, int way, uint64_t n)
{
	struct epoll_event e;
	uint64_t rung;

	while (r->mode == POLL && atomic_load_explicit(&r->way[way].sent,
						       memory_order_acquire) !=
					  n)
		;
	if (r->mode == EPOLL)
		must_sys(epoll_wait(r->epfd, &e, 1, -1), "epoll_wait");
	if (r->mode != POLL)
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
	static const char *const modes[] = { "poll", "eventfd", "socket",
					     "epoll" };
	struct raw r = { .mode = POLL };
	pid_t child;

	while (argc == 4 && r.mode <= EPOLL && strcmp(argv[1], modes[r.mode]))
		r.mode++;
	if (argc != 4 || r.mode > EPOLL) {
		fprintf(stderr, "usage: raw_shm poll|eventfd|socket|epoll "
				"SIZE MS\n");
		return 2;
	}
	r.size = strtoul(argv[2], NULL, 0);
	r.ns = strtoull(argv[3], NULL, 0) * 1000000;
	must(r.size && r.size <= SIZE_MAX_ ? 0 : -1, "SIZE");
	r.way = duo_shared(2 * sizeof(*r.way));
	bells(&r);
	child = duo_fork(server, &r);
	printf("%.3f\n", client(&r));
	duo_wait(child);
	return 0;
}
