/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings that two nodes share: frames, wake-ups, and peers that write
 * nonsense or die. */
#include "lnd/shmlnd/ring.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lnd/shmlnd/loan.h"

#define SIZE SHM_RING_MIN

/* Both sides of one memory, each with its own mapping. */
struct two {
	int fd;
	struct shm_ring side[2];
};

static void two_open(struct two *t, uint32_t size)
{
	t->fd = shm_ring_create(size);
	cr_assert(t->fd >= 0);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(shm_ring_map(&t->side[i], t->fd, size, i), 0);
}

static void two_close(struct two *t)
{
	shm_ring_unmap(&t->side[0]);
	shm_ring_unmap(&t->side[1]);
	close(t->fd);
}

/* Writes a frame whose bytes are all @fill, if there is room. */
static bool put(struct shm_ring *r, uint32_t length, uint8_t fill)
{
	if (shm_frame_space(length) > shm_ring_room(r))
		cr_assert_eq(shm_ring_look_room(r), 0);
	if (shm_frame_space(length) > shm_ring_room(r))
		return false;
	memset(shm_ring_body(r), fill, length);
	shm_ring_commit(r, fill, length);
	return true;
}

/* Reads the next frame; -1: there is none, or an error. */
static int64_t take(struct shm_ring *r, uint8_t *fill)
{
	struct shm_frame f;

	if (shm_ring_look(r) || shm_ring_next(r, &f) != 1)
		return -1;
	for (uint32_t i = 0; i < f.length; i++)
		cr_assert_eq(f.body[i], f.type);
	*fill = (uint8_t)f.type;
	shm_ring_took(r, &f);
	return f.length;
}

Test(ring, size)
{
	cr_expect_eq(shm_ring_size(0), SHM_RING_MIN);
	cr_expect_eq(shm_ring_size(32768), 32768);
	cr_expect_eq(shm_ring_size(65535), 32768);
	cr_expect_eq(shm_ring_size(UINT64_MAX), SHM_RING_MAX);
}

/* In both directions, of all lengths, and over the end of the ring. */
Test(ring, frames)
{
	uint8_t fill, next[2] = { 0, 0 };
	struct two t;

	two_open(&t, SIZE);
	for (uint32_t n = 0; n < 5000; n++) {
		struct shm_ring *from = &t.side[n % 2];
		struct shm_ring *to = &t.side[1 - n % 2];
		uint32_t length = n * 37 % 3000;

		cr_assert(put(from, length, next[n % 2]));
		cr_assert_eq(take(to, &fill), -1, "seen before it should be");
		shm_ring_publish(from);
		cr_assert_eq(take(to, &fill), length);
		cr_assert_eq(fill, next[n % 2]++);
		shm_ring_give(to);
	}
	two_close(&t);
}

/* All of the ring can be used, and not a byte more. */
Test(ring, room)
{
	struct two t;
	uint8_t fill;

	two_open(&t, SIZE);
	for (unsigned int lap = 0; lap < 100; lap++) {
		unsigned int n = 0;

		while (put(&t.side[0], 100 + lap, (uint8_t)n))
			n++;
		cr_assert_eq(n, SIZE / shm_frame_space(100 + lap));
		shm_ring_publish(&t.side[0]);
		for (unsigned int i = 0; i < n; i++) {
			cr_assert_eq(take(&t.side[1], &fill), 100 + lap);
			cr_assert_eq(fill, (uint8_t)i);
		}
		cr_assert_eq(take(&t.side[1], &fill), -1);
		cr_assert_not(put(&t.side[0], SIZE - 8, 0));
		shm_ring_give(&t.side[1]);
		cr_assert(put(&t.side[0], SIZE - 8, 9));
		shm_ring_publish(&t.side[0]);
		cr_assert_eq(take(&t.side[1], &fill), SIZE - 8);
		shm_ring_give(&t.side[1]);
	}
	two_close(&t);
}

/* ---- wake-ups ---- */

Test(ring, wake_ups)
{
	struct shm_ring *a, *b;
	struct two t;
	uint8_t fill;

	two_open(&t, SIZE);
	a = &t.side[0];
	b = &t.side[1];
	put(a, 8, 1);
	shm_ring_publish(a);
	cr_expect_not(shm_ring_must_wake(a, SHM_WANTS_FRAMES), "it polls");
	cr_expect(shm_ring_has_news(b, SHM_WANTS_FRAMES));
	cr_expect_not(shm_ring_has_news(b, SHM_WANTS_ROOM), "not of that");
	cr_expect_not(shm_ring_has_news(b, 0));
	cr_expect_not(shm_ring_sleep(b, SHM_WANTS_FRAMES), "there is a frame");
	put(a, 8, 1);
	shm_ring_publish(a);
	cr_expect_not(shm_ring_must_wake(a, SHM_WANTS_FRAMES), "it polls");
	take(b, &fill);
	take(b, &fill);
	cr_expect_not(shm_ring_has_news(b, SHM_WANTS_FRAMES), "all is read");
	cr_expect(shm_ring_sleep(b, SHM_WANTS_FRAMES));
	cr_expect_not(shm_ring_must_wake(a, SHM_WANTS_ROOM), "not for that");
	put(a, 8, 1);
	shm_ring_publish(a);
	cr_expect(shm_ring_must_wake(a, SHM_WANTS_FRAMES));
	cr_expect_not(shm_ring_must_wake(a, SHM_WANTS_FRAMES), "only once");
	take(b, &fill);
	cr_expect(shm_ring_sleep(a, SHM_WANTS_ROOM | SHM_WANTS_FRAMES));
	cr_expect_not(shm_ring_has_news(a, SHM_WANTS_ROOM));
	shm_ring_give(b);
	cr_expect(shm_ring_has_news(a, SHM_WANTS_ROOM));
	cr_expect(shm_ring_must_wake(b, SHM_WANTS_ROOM));
	cr_expect_not(shm_ring_sleep(a, SHM_WANTS_ROOM), "there is room");
	two_close(&t);
}

/* The same for answers to loans. */
Test(ring, answers)
{
	const uint32_t loan = 3 * SHM_LOANS + 5;
	struct shm_ring *a, *b;
	struct two t;

	two_open(&t, SIZE);
	a = &t.side[0];
	b = &t.side[1];
	shm_ring_lend(a, loan);
	cr_expect(shm_ring_is_lent(b, loan));
	cr_expect_not(shm_ring_is_lent(b, loan + SHM_LOANS));
	cr_expect(shm_ring_sleep(a, SHM_WANTS_ANSWERS));
	cr_expect_not(shm_ring_has_news(a, SHM_WANTS_ANSWERS));
	shm_ring_answer(b, loan, SHM_COPIED);
	cr_expect(shm_ring_has_news(a, SHM_WANTS_ANSWERS));
	cr_expect_not(shm_ring_has_news(a, SHM_WANTS_ROOM));
	cr_expect_not(shm_ring_must_wake(b, SHM_WANTS_ROOM));
	cr_expect(shm_ring_must_wake(b, SHM_WANTS_ANSWERS));
	cr_expect_not(shm_ring_sleep(a, SHM_WANTS_ANSWERS));
	cr_expect_eq(shm_ring_answer_to(a, loan), SHM_COPIED);
	cr_expect_eq(shm_ring_answer_to(a, loan + SHM_LOANS), 0);
	cr_expect(shm_ring_look_answers(a));
	cr_expect_not(shm_ring_look_answers(a));
	cr_expect(shm_ring_sleep(a, SHM_WANTS_ANSWERS));
	shm_ring_call_back(a, loan);
	cr_expect_not(shm_ring_is_lent(b, loan));
	two_close(&t);
}

/* ---- memory that is not as it should be ---- */

static int try_map(int fd, uint32_t size)
{
	struct shm_ring r;
	int rc = shm_ring_map(&r, fd, size, 1);

	shm_ring_unmap(&r);
	close(fd);
	return rc;
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int memory(off_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert(fd >= 0 && !ftruncate(fd, size));
	cr_assert(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

Test(ring, other_memory)
{
	off_t right = sysconf(_SC_PAGESIZE) + 2 * SIZE;
	char path[] = "/tmp/ulnet-ring-XXXXXX";
	int file = mkstemp(path), fd = shm_ring_create(SIZE);
	struct shm_ring r;

	unlink(path);
	cr_assert(!ftruncate(file, right));
	cr_expect_eq(try_map(file, SIZE), -EPROTO, "a file");
	cr_expect_eq(try_map(memory(right, 0), SIZE), -EPROTO, "no seals");
	cr_expect_eq(try_map(memory(right, F_SEAL_GROW), SIZE), -EPROTO);
	cr_expect_eq(try_map(memory(right, F_SEAL_SHRINK), SIZE), -EPROTO);
	cr_expect_eq(try_map(memory(right, F_SEAL_SHRINK | F_SEAL_GROW), SIZE),
		     -EPROTO, "more seals may come");
	cr_expect_eq(try_map(memory(right - 1, SEALS), SIZE), -EPROTO);
	cr_expect_eq(try_map(memory(right, SEALS | F_SEAL_WRITE), SIZE),
		     -EPROTO);
	cr_expect_eq(try_map(memory(right, SEALS | F_SEAL_FUTURE_WRITE), SIZE),
		     -EPROTO, "it cannot be emptied");
	cr_expect_eq(try_map(memory(right, SEALS), SIZE), 0);
	cr_expect_eq(shm_ring_map(&r, fd, SIZE + 4096, 0), -EPROTO);
	cr_expect_eq(shm_ring_map(&r, fd, 2 * SIZE, 0), -EPROTO);
	cr_expect_eq(shm_ring_map(&r, fd, 0, 0), -EPROTO);
	cr_expect_eq(shm_ring_map(&r, fd, UINT32_MAX, 0), -EPROTO);
	cr_expect_lt(ftruncate(fd, 0), 0, "it can be truncated");
	cr_expect_lt(ftruncate(fd, 1 << 20), 0);
	close(fd);
}

static int64_t blocks_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st.st_blocks;
}

/* No page is left of a memory, although somebody keeps it, and whoever has
 * written or locked a page. */
Test(ring, emptied)
{
	uint8_t fill;
	struct two t;

	for (unsigned int i = 0; i < 4; i++) {
		two_open(&t, SIZE);
		for (unsigned int k = 0; k < 2; k++)
			while (put(&t.side[k], 1000, 7))
				shm_ring_publish(&t.side[k]);
		if (i & 2)
			(void)!mlock(t.side[i % 2].map, t.side[i % 2].map_size);
		/* more if its pages are huge */
		cr_expect_geq(blocks_of(t.fd) * 512,
			      2 * SIZE + sysconf(_SC_PAGESIZE));
		shm_ring_empty(&t.side[i % 2]);
		cr_expect_eq(blocks_of(t.fd), 0, "%u", i);
		cr_expect_eq(take(&t.side[1 - i % 2], &fill), -1);
		shm_ring_unmap(&t.side[i % 2]);
		shm_ring_empty(&t.side[i % 2]);
		cr_expect_neq(blocks_of(t.fd), 0, "what it makes is its own");
		two_close(&t);
	}
}

/* ---- children ---- */

struct mapper {
	int fd;
	_Atomic bool ends;
};

static void *map_again_and_again(void *arg)
{
	struct mapper *m = arg;
	struct shm_ring r;

	while (!atomic_load(&m->ends)) {
		cr_assert_eq(shm_ring_map(&r, m->fd, SIZE, 0), 0);
		shm_ring_unmap(&r);
	}
	return NULL;
}

/* Has this process, which is a child, any of the memory? */
static bool has_memory(void)
{
	static char maps[1 << 20];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t got = 0;
	ssize_t n;

	while ((n = read(fd, maps + got, sizeof(maps) - got)) > 0)
		got += (size_t)n;
	return fd < 0 || n < 0 || memmem(maps, got, "ulnet-shm", 9);
}

/* A child has none of the memory, whenever it was made. */
Test(ring, forked)
{
	struct mapper m = { .fd = shm_ring_create(SIZE) };
	unsigned int bad = 0;
	pthread_t thread;
	int status;

	cr_assert_eq(pthread_create(&thread, NULL, map_again_and_again, &m), 0);
	for (unsigned int i = 0; i < 500; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(has_memory());
		cr_assert(waitpid(pid, &status, 0) == pid);
		bad += status != 0;
	}
	atomic_store(&m.ends, true);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(bad, 0, "%u", bad);
	close(m.fd);
}

/* ---- a peer that writes nonsense ---- */

/* What the peer does to its words in the page, after it has written three
 * frames of 100 bytes, of which one was read; and what comes of it. */
static const struct nonsense {
	uint32_t tail, head; /* what it adds to them */
	bool reader, writer; /* who notices */
} nonsense[] = {
	{ 0, 0, false, false },	      { 0 - 112, 0, true, false },
	{ 0 - 1, 0, true, false },    { 4, 0, true, false },
	{ SIZE, 0, true, false },     { UINT32_MAX / 2, 0, true, false },
	{ 0, 1, false, true },	      { 0, UINT32_MAX, false, true },
	{ 0, 1u << 31, false, true },
};

/* Reads until there is nothing more. Returns 0 or -EPROTO. */
static int read_all(struct shm_ring *r)
{
	struct shm_frame f;
	int rc = shm_ring_look(r);
	unsigned int n = 0;

	while (!rc) {
		int got = shm_ring_next(r, &f);

		if (got <= 0)
			return got;
		cr_assert(n++ < SIZE / SHM_FRAME_HDR);
		cr_assert(f.body >= r->in &&
			  f.body + f.length <= r->in + 2 * (size_t)r->size);
		shm_ring_took(r, &f);
	}
	return rc;
}

Test(ring, cursors)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(nonsense); i++) {
		const struct nonsense *n = &nonsense[i];
		struct shm_ring *a, *b;
		struct two t;
		uint8_t fill;

		two_open(&t, SIZE);
		a = &t.side[0];
		b = &t.side[1];
		for (unsigned int k = 0; k < 3; k++)
			put(a, 100, 1);
		shm_ring_publish(a);
		take(b, &fill);
		cr_assert_eq(shm_ring_look(b), 0);
		atomic_fetch_add(&b->theirs->tail, n->tail);
		atomic_fetch_add(&b->theirs->head, n->head);
		cr_expect_eq(read_all(b), n->reader ? -EPROTO : 0, "%u", i);
		cr_expect_eq(!b->why, !n->reader);
		cr_expect_eq(shm_ring_look_room(b), n->writer ? -EPROTO : 0,
			     "%u", i);
		two_close(&t);
	}
}

/* Lengths that no frame can have: never is anything read outside. */
Test(ring, lengths)
{
	static const uint32_t lengths[] = { 97,	       104,
					    105,       SIZE,
					    SIZE - 8,  SIZE * 2,
					    1u << 31,  UINT32_MAX - 7,
					    UINT32_MAX };
	struct two t;

	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint8_t *hdr;

		two_open(&t, SIZE);
		hdr = shm_ring_body(&t.side[0]) - SHM_FRAME_HDR;
		put(&t.side[0], 96, 1);
		shm_ring_publish(&t.side[0]);
		memcpy(hdr, &lengths[i], sizeof(lengths[i]));
		cr_expect_eq(read_all(&t.side[1]), -EPROTO, "%u", lengths[i]);
		two_close(&t);
	}
}

/* Anything at all in the page and in the ring. */
Test(ring, noise)
{
	uint32_t x = 1;
	struct two t;

	for (unsigned int i = 0; i < 3000; i++) {
		two_open(&t, SIZE);
		for (unsigned int k = 0; k < 4096; k++) {
			x = x * 1664525 + 1013904223;
			t.side[0].out[k] = (uint8_t)(x >> (k % 4 ? 30 : 22));
		}
		atomic_store(&t.side[0].mine->tail, i % 2 ? x : x % 4096);
		atomic_store(&t.side[0].mine->head, i % 3 ? x : 0);
		atomic_store(&t.side[0].mine->wants, x);
		cr_assert_leq(read_all(&t.side[1]), 0);
		cr_assert_leq(shm_ring_look_room(&t.side[1]), 0);
		cr_assert_eq(shm_ring_must_wake(&t.side[1], 3), (x & 3) != 0);
		two_close(&t);
	}
}

/* ---- a peer that dies ---- */

#define FRAMES 3

/* Writes frames, as an LND does. */
static void write_frames(struct shm_ring *r)
{
	for (uint8_t i = 1; i <= FRAMES; i++) {
		memset(shm_ring_body(r), i, 24);
		shm_ring_commit(r, i, 24);
		shm_ring_publish(r);
		if (shm_ring_must_wake(r, SHM_WANTS_FRAMES))
			break;
	}
}

/* What a reader would find if the writer was dead now: whole frames, in order.
 * Returns how many. */
static unsigned int whole_frames(const struct shm_ring *reader)
{
	struct shm_ring r = *reader;
	struct shm_frame f;
	unsigned int n = 0;
	int rc;

	cr_assert_eq(shm_ring_look(&r), 0);
	while ((rc = shm_ring_next(&r, &f)) > 0) {
		n++;
		cr_assert_eq(f.type, n);
		cr_assert_eq(f.length, 24);
		for (unsigned int i = 0; i < 24; i++)
			cr_assert_eq(f.body[i], n);
		shm_ring_took(&r, &f);
	}
	cr_assert_eq(rc, 0);
	return n;
}

/* A side of @t, which is stopped after each of its instructions, as if it had
 * died or had been stopped there; then the other side looks. Returns how many
 * instructions there were; 0: stopping is not allowed here. */
static unsigned int step_through(struct two *t, void (*act)(struct shm_ring *r),
				 void (*look)(const struct shm_ring *other))
{
	unsigned int steps = 0;
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct shm_ring mine;

		if (shm_ring_map(&mine, t->fd, SIZE, 0) ||
		    ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		act(&mine);
		_exit(0);
	}
	cr_assert(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 0;
	while (WIFSTOPPED(status)) {
		look(&t->side[1]);
		steps++;
		cr_assert_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		cr_assert(waitpid(pid, &status, 0) == pid);
	}
	return steps;
}

static unsigned int seen;

static void look_at_frames(const struct shm_ring *reader)
{
	unsigned int n = whole_frames(reader);

	cr_assert(n == seen || n == seen + 1);
	seen = n;
}

Test(ring, stepped)
{
	unsigned int steps;
	struct two t;

	two_open(&t, SIZE);
	seen = 0;
	steps = step_through(&t, write_frames, look_at_frames);
	two_close(&t);
	if (!steps)
		cr_skip_test("ptrace() is not allowed here");
	cr_expect_eq(seen, FRAMES);
	cr_expect_gt(steps, 50);
}

/* Reads all frames, and answers a loan after each, as an LND does. */
static void read_and_answer(struct shm_ring *r)
{
	struct shm_frame f;
	uint32_t loan = 0;

	if (shm_ring_look(r))
		_exit(1);
	while (shm_ring_next(r, &f) > 0) {
		shm_ring_took(r, &f);
		shm_ring_give(r);
		(void)!shm_ring_must_wake(r, SHM_WANTS_ROOM);
		shm_ring_answer(r, SHM_LOANS + loan++, SHM_COPIED);
		(void)!shm_ring_must_wake(r, SHM_WANTS_ANSWERS);
	}
}

static unsigned int answered;

/* What the writer finds: room for whole frames, and whole answers, in order. An
 * answer that was announced is there. */
static void look_at_room(const struct shm_ring *writer)
{
	struct shm_ring w = *writer;
	unsigned int n = 0;
	uint32_t freed;

	cr_assert_eq(shm_ring_look_room(&w), 0);
	freed = w.freed / shm_frame_space(24);
	cr_assert_eq(w.freed % shm_frame_space(24), 0);
	cr_assert(freed == seen || freed == seen + 1);
	seen = freed;
	(void)shm_ring_look_answers(&w);
	while (n < FRAMES &&
	       shm_ring_answer_to(&w, SHM_LOANS + n) == SHM_COPIED)
		n++;
	for (unsigned int i = n; i < FRAMES; i++)
		cr_assert_eq(shm_ring_answer_to(&w, SHM_LOANS + i), 0);
	cr_assert(n == answered || n == answered + 1);
	cr_assert(n == w.heard || n == w.heard + 1);
	cr_assert_leq(n, freed);
	answered = n;
}

Test(ring, stepped_reader)
{
	unsigned int steps;
	struct shm_ring *b;
	struct two t;

	two_open(&t, SIZE);
	b = &t.side[1];
	for (unsigned int i = 0; i < FRAMES; i++) {
		cr_assert(put(b, 24, 1));
		shm_ring_lend(b, SHM_LOANS + i);
	}
	shm_ring_publish(b);
	seen = answered = 0;
	steps = step_through(&t, read_and_answer, look_at_room);
	two_close(&t);
	if (!steps)
		cr_skip_test("ptrace() is not allowed here");
	cr_expect_eq(seen, FRAMES);
	cr_expect_eq(answered, FRAMES);
	cr_expect_gt(steps, 100);
}

/* ---- a side that finds out by itself ---- */

/* Reads what there is, and tells that there is room, again and again. */
static void make_room(int fd, _Atomic bool *woken)
{
	struct shm_ring r;

	if (shm_ring_map(&r, fd, SIZE, 0) ||
	    ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	for (;;) {
		raise(SIGSTOP);
		if (read_all(&r))
			_exit(1);
		shm_ring_give(&r);
		raise(SIGSTOP);
		atomic_store(woken, shm_ring_must_wake(&r, SHM_WANTS_ROOM));
	}
}

/* Lets @pid go on as @how says. Returns the signal that has stopped it. */
static int go_on(pid_t pid, enum __ptrace_request how)
{
	int status;

	cr_assert_eq(ptrace(how, pid, NULL, NULL), 0);
	cr_assert(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	return WSTOPSIG(status);
}

/* @b sleeps until there is room or a frame. When @pid has made @steps of its
 * steps to tell that there is room, @b sees that by itself, and sleeps on for
 * frames only. Returns false: @pid had ended before. */
static bool sees_room_after(struct shm_ring *b, pid_t pid, unsigned int steps)
{
	bool goes_on = true;

	cr_assert(put(b, 8, 8));
	shm_ring_publish(b);
	cr_assert(shm_ring_sleep(b, SHM_WANTS_FRAMES | SHM_WANTS_ROOM));
	cr_assert_eq(go_on(pid, PTRACE_CONT), SIGSTOP);
	for (unsigned int i = 0; i < steps && goes_on; i++)
		goes_on = go_on(pid, PTRACE_SINGLESTEP) == SIGTRAP;
	cr_assert_eq(shm_ring_look_room(b), 0);
	cr_assert(shm_ring_sleep(b, SHM_WANTS_FRAMES));
	if (goes_on)
		cr_assert_eq(go_on(pid, PTRACE_CONT), SIGSTOP);
	return goes_on;
}

/* Who sleeps is woken for frames, or has been woken: whatever else it wanted
 * before, at each instruction of the other side. */
Test(ring, wants_less)
{
	_Atomic bool *woken = mmap(NULL, sizeof(*woken), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int steps = 0, slept = 0;
	struct shm_ring *b;
	struct two t;
	int status;
	pid_t pid;

	two_open(&t, SIZE);
	b = &t.side[1];
	pid = fork();
	if (!pid)
		make_room(t.fd, woken);
	cr_assert(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		cr_skip_test("ptrace() is not allowed here");
	while (sees_room_after(b, pid, steps)) {
		bool wants = atomic_load(&b->mine->wants) == SHM_WANTS_FRAMES;

		cr_expect(wants || atomic_load(woken), "%u", steps);
		slept += !atomic_load(woken);
		steps++;
	}
	cr_expect_gt(slept, 0, "it was never early enough");
	cr_expect_gt(steps, slept, "it was never late enough");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	munmap((void *)woken, sizeof(*woken));
	two_close(&t);
}
