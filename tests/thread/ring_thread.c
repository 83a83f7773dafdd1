/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two sides of a shared ring in two threads: every frame arrives, once and
 * whole, and nobody sleeps for ever, however the threads run against each
 * other. Both threads use one mapping, so that the thread sanitizer sees what
 * they do to the same bytes.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lnd/shmlnd/ring.h"
#include "tests/thread/check.h"

#define FRAMES 200000u

struct end {
	struct shm_ring ring;
	int bell;	/* rung by the other end */
	int ring_other; /* rings the other one's bell */
	unsigned int slept, woken;
};

static void ring_bell(int fd)
{
	uint64_t one = 1;

	check(write(fd, &one, sizeof(one)) == sizeof(one));
}

/* Sleeps until there is something of @what; a minute is for ever. */
static void sleep_for(struct end *e, uint32_t what)
{
	struct pollfd p = { .fd = e->bell, .events = POLLIN };
	uint64_t n;

	if (!shm_ring_sleep(&e->ring, what))
		return;
	e->slept++;
	check(poll(&p, 1, 60000) == 1);
	check(read(e->bell, &n, sizeof(n)) == sizeof(n));
	e->woken++;
	shm_ring_awake(&e->ring);
}

static uint32_t length_of(uint32_t i)
{
	return 4 + i * 2654435761u % 900;
}

static bool is_nearly_full(const struct shm_ring *r)
{
	return shm_ring_room(r) < shm_frame_space(904);
}

static void *write_all(void *arg)
{
	struct end *e = arg;
	struct shm_ring *r = &e->ring;

	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t length = length_of(i);

		while (shm_frame_space(length) > shm_ring_room(r)) {
			uint32_t before = r->freed;

			check(!shm_ring_look_room(r));
			if (r->freed == before)
				sleep_for(e, SHM_WANTS_ROOM);
		}
		memset(shm_ring_body(r), (uint8_t)i, length);
		memcpy(shm_ring_body(r), &i, sizeof(i));
		shm_ring_commit(r, i, length);
		shm_ring_publish(r);
		/* Not after each frame, as a turn may write several; but before
		 * it may sleep itself. */
		if ((i % 3 == 0 || i == FRAMES - 1 || is_nearly_full(r)) &&
		    shm_ring_must_wake(r, SHM_WANTS_FRAMES))
			ring_bell(e->ring_other);
	}
	return NULL;
}

static void *read_all(void *arg)
{
	struct end *e = arg;
	struct shm_ring *r = &e->ring;
	struct shm_frame f;

	for (uint32_t i = 0; i < FRAMES;) {
		uint32_t n;

		check(!shm_ring_look(r));
		while (shm_ring_next(r, &f) == 1) {
			memcpy(&n, f.body, sizeof(n));
			check(f.type == i && n == i &&
			      f.length == length_of(i));
			check(f.body[f.length - 1] == (uint8_t)i ||
			      f.length == 4);
			shm_ring_took(r, &f);
			i++;
		}
		shm_ring_give(r);
		if (shm_ring_must_wake(r, SHM_WANTS_ROOM))
			ring_bell(e->ring_other);
		if (i < FRAMES)
			sleep_for(e, SHM_WANTS_FRAMES);
	}
	return NULL;
}

/* The other side's view of the memory that @r has mapped. */
static struct shm_ring other_view(struct shm_ring *r)
{
	struct shm_ring v = *r;

	check(!mprotect((void *)r->in, 2 * (size_t)r->size,
			PROT_READ | PROT_WRITE));
	v.mine = r->theirs;
	v.theirs = r->mine;
	v.out = (uint8_t *)r->in;
	v.in = r->out;
	return v;
}

int main(void)
{
	int fd = shm_ring_create(SHM_RING_MIN);
	struct end w = { .bell = eventfd(0, EFD_CLOEXEC) };
	struct end r = { .bell = eventfd(0, EFD_CLOEXEC) };
	pthread_t threads[2];

	if (fd < 0 || shm_ring_map(&w.ring, fd, SHM_RING_MIN, 0)) {
		printf("no shared memory here\n");
		return 77;
	}
	r.ring = other_view(&w.ring);
	w.ring_other = r.bell;
	r.ring_other = w.bell;
	check(!pthread_create(&threads[0], NULL, write_all, &w));
	check(!pthread_create(&threads[1], NULL, read_all, &r));
	for (unsigned int i = 0; i < 2; i++)
		check(!pthread_join(threads[i], NULL));
	printf("writer slept %u times, reader %u\n", w.slept, r.slept);
	check(w.woken == w.slept && r.woken == r.slept);
	shm_ring_unmap(&w.ring);
	close(w.bell);
	close(r.bell);
	close(fd);
	return atomic_load(&failures) != 0;
}
