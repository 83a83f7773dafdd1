/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that do over shared memory what no peer should. The test itself is such
 * a peer, or several: it has a NID, and owns the memory. Whatever it does, the
 * node closes that connection, goes on serving others, and keeps nothing of it.
 */
#include "tests/unit/shmlnd/rig.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"

/* ---- HELLO ---- */

enum { NO_FD = 1, FILE_FD = 2, MANY_FDS = 4, SHORT = 8 };

static const struct wrong_hello {
	size_t at;
	uint32_t value;
	int how;
	int status; /* in the answer; 0: there is none */
} wrong_hellos[] = {
	{ offsetof(struct shm_hello, magic), 1, 0, 0 },
	{ offsetof(struct shm_hello, version), 99, 0, -EPROTONOSUPPORT },
	{ offsetof(struct shm_hello, net), 5, 0, 0 },
	{ offsetof(struct shm_hello, dst), 1, 0, 0 },
	{ offsetof(struct shm_hello, src), 0, 0, 0 },
	{ offsetof(struct shm_hello, src), 1, 0, -EACCES },
	{ offsetof(struct shm_hello, src_pid), LNET_PID_ANY, 0, 0 },
	{ offsetof(struct shm_hello, ring_size), 0, 0, 0 },
	{ offsetof(struct shm_hello, ring_size), SIZE + 8, 0, 0 },
	{ offsetof(struct shm_hello, ring_size), 2 * SIZE, 0, 0 },
	{ offsetof(struct shm_hello, ring_size), 1u << 24, 0, -EMSGSIZE },
	{ offsetof(struct shm_hello, ring_size), UINT32_MAX, 0, -EMSGSIZE },
	{ offsetof(struct shm_hello, status), 0, NO_FD, 0 },
	{ offsetof(struct shm_hello, status), 0, FILE_FD, 0 },
	{ offsetof(struct shm_hello, status), 0, SHORT, 0 },
};

static unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Are there no more files open than @n? The node closes its own a moment after
 * the peer has seen the end; and when @n were counted, a thread may have been
 * reading a file of the system. */
static bool files_are_at_most(unsigned int n)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	unsigned int waited;

	for (waited = 0; open_files() > n && waited < PATIENCE; waited++)
		nanosleep(&ms, NULL);
	return waited < PATIENCE;
}

Test(hostile, hello)
{
	struct rig r;

	rig_up(&r);
	others_are_well(&r);
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong_hellos); i++) {
		const struct wrong_hello *w = &wrong_hellos[i];
		struct shm_hello h = hello_of(&r), answer = { .status = 0 };
		int fd = shm_name_connect(0, &r.nid), memory;

		memory = w->how & FILE_FD ? dup(r.name) : shm_ring_create(SIZE);
		memcpy((char *)&h + w->at, &w->value, sizeof(w->value));
		send_hello(fd, &h, sizeof(h) - (w->how & SHORT), &memory,
			   !(w->how & NO_FD));
		await(fd);
		(void)!recv(fd, &answer, sizeof(answer), 0);
		cr_expect_eq(answer.status, w->status, "%u: %d", i,
			     answer.status);
		await_end(fd);
		fork_fd_close(fd);
		close(memory);
	}
	others_are_well(&r);
	rig_down(&r);
}

/* A process that gives the NID of another one. */
Test(hostile, other_process)
{
	struct shm_hello h, answer = { .status = 0 };
	struct ulnet_nid its = lnet_nid_make(LNET_NET(LNET_TYPE_SHM, 0), 0);
	char name[LNET_INTERFACE_SIZE], byte;
	int ready[2], fd, memory, status;
	struct rig r;
	pid_t pid;

	rig_up(&r);
	cr_assert_eq(shm_resolve("auto", &its, name), 0);
	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		byte = shm_name_own(0, &its) >= 0;
		(void)!write(ready[1], &byte, 1);
		pause();
	}
	cr_assert(read(ready[0], &byte, 1) == 1 && byte == 1);
	h = hello_of(&r);
	h.src = (uint32_t)lnet_nid_to_nid4(&its);
	fd = shm_name_connect(0, &r.nid);
	memory = shm_ring_create(SIZE);
	send_hello(fd, &h, sizeof(h), &memory, 1);
	await(fd);
	(void)!recv(fd, &answer, sizeof(answer), 0);
	cr_expect_eq(answer.status, -EACCES);
	await_end(fd);
	fork_fd_close(fd);
	close(memory);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert(waitpid(pid, &status, 0) == pid);
	close(ready[0]);
	close(ready[1]);
	rig_down(&r);
}

/* ---- what the node lacks ---- */

static _Atomic bool blamed;
static _Atomic unsigned int version_lines;

static void on_log(int level, const char *line, void *arg)
{
	(void)arg;
	(void)level;
	if (strstr(line, ": refused: "))
		atomic_store(&blamed, true);
	if (strstr(line, "it speaks version 1, this node 2"))
		atomic_fetch_add(&version_lines, 1);
}

/* Says HELLO while this process can have @spare more descriptors. Returns the
 * status of the answer. */
static int hello_with_spare(const struct rig *r, unsigned int spare)
{
	struct shm_hello h = hello_of(r), answer = { .status = 0 };
	int filler[512], memory = shm_ring_create(SIZE), fd;
	unsigned int n = 0, files = open_files();
	struct rlimit before, few;

	cr_assert(!getrlimit(RLIMIT_NOFILE, &before));
	few = before;
	few.rlim_cur = 512;
	cr_assert(!setrlimit(RLIMIT_NOFILE, &few));
	fd = shm_name_connect(0, &r->nid);
	/* until the node has accepted the connection */
	while (open_files() < files + 2)
		sched_yield();
	while ((filler[n] = dup(memory)) >= 0)
		n++;
	for (unsigned int i = 0; i < spare; i++)
		close(filler[--n]);
	send_hello(fd, &h, sizeof(h), &memory, 1);
	await(fd);
	cr_assert_eq(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	await_end(fd);
	fork_fd_close(fd);
	close(memory);
	while (n)
		close(filler[--n]);
	cr_assert(!setrlimit(RLIMIT_NOFILE, &before));
	return answer.status;
}

/* A node without descriptors, for the memory or for its questions, says that it
 * is the one that lacks something: the peer is asked to try again. */
Test(hostile, lack)
{
	struct raw raw;
	struct rig r;

	rig_up(&r);
	others_are_well(&r);
	lnet_log_set(LNET_LOG_WARN, on_log, NULL);
	for (unsigned int spare = 0; spare < 2; spare++)
		cr_expect_eq(hello_with_spare(&r, spare), -EALREADY, "%u",
			     spare);
	cr_expect_not(atomic_load(&blamed), "the peer is blamed");
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	raw_connect(&r, &raw);
	cr_expect_eq(raw.hello.status, 0);
	raw_close(&raw);
	rig_down(&r);
}

/* ---- shares ---- */

/* A peer that sends many descriptors, or says nothing, keeps none open. */
Test(hostile, descriptors)
{
	unsigned int before;
	struct rig r;
	int silent[40];

	rig_up_hasty(&r);
	others_are_well(&r);
	before = open_files();
	for (unsigned int i = 0; i < 20; i++) {
		struct shm_hello h = hello_of(&r);
		int fds[16], fd = shm_name_connect(0, &r.nid);

		for (unsigned int k = 0; k < 16; k++)
			fds[k] = shm_ring_create(SIZE);
		h.dst = 1;
		send_hello(fd, &h, sizeof(h), fds, 16);
		await_end(fd);
		fork_fd_close(fd);
		for (unsigned int k = 0; k < 16; k++)
			close(fds[k]);
	}
	for (unsigned int i = 0; i < 40; i++)
		silent[i] = shm_name_connect(0, &r.nid);
	others_are_well(&r);
	for (unsigned int i = 0; i < 40; i++) {
		await_end(silent[i]);
		fork_fd_close(silent[i]);
	}
	cr_expect(files_are_at_most(before));
	rig_down(&r);
}

/* A process has its share of connections, whatever NIDs it gives itself.
 * They are random, and so is the CPT of each; each CPT has half of max_conns.
 * There are so many of them that each CPT gets more than that. */
Test(hostile, share)
{
	struct raw raw[32];
	unsigned int held = 0;
	struct rig r;

	rig_up_few(&r);
	for (unsigned int i = 0; i < ARRAY_SIZE(raw); i++) {
		char name[LNET_INTERFACE_SIZE];

		fork_fd_close(r.name);
		cr_assert_eq(shm_resolve("auto", &r.bad_nid, name), 0);
		r.name = shm_name_own(0, &r.bad_nid);
		raw_connect(&r, &raw[i]);
		cr_expect(raw[i].hello.status == 0 ||
			  raw[i].hello.status == -EALREADY);
		held += !raw[i].hello.status;
	}
	/* Of 4 at a CPT, a process gets 3, or 2 if its other node has one. */
	cr_expect(held >= 4 && held <= 6, "%u", held);
	for (unsigned int i = 0; i < ARRAY_SIZE(raw); i++)
		raw_close(&raw[i]);
	rig_down(&r);
}

/* ---- frames ---- */

static const struct wrong_frame {
	const char *what;
	uint32_t type, length; /* of the frame */
	uint32_t payload;      /* as its header announces */
	uint32_t then;	       /* type of a second frame; 0: none */
	uint32_t then_length;
} wrong_frames[] = {
	{ "unknown type", 99, 0, 0, 0, 0 },
	{ "type 0", 0, LNET_HDR_SIZE, 0, 0, 0 },
	{ "no header", SHM_MESSAGE, LNET_HDR_SIZE - 1, 0, 0, 0 },
	{ "empty", SHM_MESSAGE, 0, 0, 0, 0 },
	{ "short large header", SHM_LARGE_MESSAGE, LNET_HDR_SIZE, 0, 0, 0 },
	{ "more than announced", SHM_MESSAGE, LNET_HDR_SIZE + 8, 7, 0, 0 },
	{ "too long", SHM_MESSAGE, LNET_HDR_SIZE, 1u << 30, 0, 0 },
	{ "more of nothing", SHM_MORE, 8, 0, 0, 0 },
	{ "end of nothing", SHM_ABORT, 0, 0, 0, 0 },
	{ "more than is left", SHM_MESSAGE, LNET_HDR_SIZE, 100, SHM_MORE, 101 },
	{ "nothing more", SHM_MESSAGE, LNET_HDR_SIZE, 100, SHM_MORE, 0 },
	{ "two at once", SHM_MESSAGE, LNET_HDR_SIZE, 100, SHM_MESSAGE,
	  LNET_HDR_SIZE },
	{ "long end", SHM_MESSAGE, LNET_HDR_SIZE, 100, SHM_ABORT, 8 },
	/* stall_timeout */
	{ "half a message", SHM_MESSAGE, LNET_HDR_SIZE + 8, 100, 0, 0 },
};

Test(hostile, frames)
{
	struct rig r;

	rig_up(&r);
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong_frames); i++) {
		const struct wrong_frame *w = &wrong_frames[i];
		uint8_t body[1024] = { 0 };
		struct raw raw;

		put_header(&r, body, w->payload);
		raw_connect(&r, &raw);
		cr_assert_eq(raw.hello.status, 0, "%s", w->what);
		frame(&raw, w->type, body, w->length);
		if (w->then)
			frame(&raw, w->then, body, w->then_length);
		await_end(raw.fd);
		others_are_well(&r);
		raw_close(&raw);
	}
	rig_down(&r);
}

/* A message that is given up half-way is no reason to close a connection. */
Test(hostile, given_up)
{
	uint8_t body[LNET_HDR_SIZE + 8] = { 0 };
	struct raw raw;
	struct rig r;

	rig_up(&r);
	raw_connect(&r, &raw);
	put_header(&r, body, 100);
	for (unsigned int i = 0; i < 500; i++) {
		uint32_t room = 2 * shm_frame_space(sizeof(body));

		while (shm_ring_room(&raw.ring) < room)
			cr_assert(!shm_ring_look_room(&raw.ring));
		frame(&raw, SHM_MESSAGE, body, sizeof(body));
		frame(&raw, SHM_ABORT, NULL, 0);
	}
	while (raw.ring.freed != raw.ring.tail)
		cr_assert(!shm_ring_look_room(&raw.ring));
	frame(&raw, 99, NULL, 0);
	await_end(raw.fd);
	raw_close(&raw);
	rig_down(&r);
}

/* ---- a peer that comes again ---- */

/* Writes @n messages, which the node is not woken for. */
static void write_puts(const struct rig *r, struct raw *raw, unsigned int n)
{
	for (; n; n--) {
		put_header(r, shm_ring_body(&raw->ring), 8);
		shm_ring_commit(&raw->ring, SHM_MESSAGE, LNET_HDR_SIZE + 8);
	}
	shm_ring_publish(&raw->ring);
}

/* What it had sent before is read, although its new connection comes first. */
Test(hostile, comes_again)
{
	struct raw old, raw;
	struct rig r;

	rig_up(&r);
	take_puts(&r);
	raw_connect(&r, &old);
	write_puts(&r, &old, 20);
	raw_connect(&r, &raw);
	cr_assert_eq(raw.hello.status, 0);
	await_end(old.fd);
	await_puts(20);
	raw_close(&old);
	raw_close(&raw);
	rig_down(&r);
}

/* Likewise while LNet does not know where its messages go: of two such
 * connections the older one ends. */
Test(hostile, comes_again_early)
{
	struct raw oldest, old, raw;
	struct rig r;

	rig_up(&r);
	cr_assert_eq(LNetSetLazyPortal(r.node, PORTAL), 0);
	raw_connect(&r, &oldest);
	/* Some are held by LNet, some are left in the ring. */
	write_puts(&r, &oldest, 150);
	bell(&oldest);
	raw_connect(&r, &old);
	cr_assert_eq(old.hello.status, 0);
	write_puts(&r, &old, 20);
	/* The node may be asleep by now. */
	bell(&old);
	take_puts(&r);
	await_puts(170);
	await_end(oldest.fd);
	raw_connect(&r, &raw);
	await_end(old.fd);
	raw_close(&oldest);
	raw_close(&old);
	raw_close(&raw);
	rig_down(&r);
}

/* ---- both sides connect ---- */

static bool has_ended(int fd)
{
	char bytes[256];
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

/* Says HELLO, and gives the attempt up at once: on the thread of the node that
 * takes connections, which cannot do so in between. Returns the descriptor. */
static int give_up(void *rig)
{
	struct shm_hello h = hello_of(rig);
	int memory = shm_ring_create(SIZE);
	int fd = shm_name_connect(0, &((struct rig *)rig)->nid);

	send_hello(fd, &h, sizeof(h), &memory, 1);
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	close(memory);
	return fd;
}

/* An attempt that the peer has given up since, for another one, comes late: the
 * other one stays. */
Test(hostile, given_up_attempt)
{
	struct raw raw;
	struct rig r;
	int fd;

	rig_up(&r);
	take_puts(&r);
	raw_connect(&r, &raw);
	write_puts(&r, &raw, 20);
	fd = lnet_call(r.node, 0, give_up, &r);
	await_end(fd);
	cr_assert_not(has_ended(raw.fd));
	write_puts(&r, &raw, 20);
	bell(&raw);
	await_puts(40);
	fork_fd_close(fd);
	raw_close(&raw);
	rig_down(&r);
}

/* Accepts what the node opens, and reads its HELLO. */
static int raw_accept(const struct rig *r)
{
	struct shm_hello h;
	int fd;

	do {
		struct pollfd p = { .fd = r->name, .events = POLLIN };

		cr_assert_eq(poll(&p, 1, PATIENCE), 1);
		fork_hold();
		fd = fork_fd_made(accept4(r->name, NULL, NULL, SOCK_CLOEXEC));
		await(fd);
		/* Who has only asked whose name it is says nothing. */
	} while (recv(fd, &h, sizeof(h), 0) == 0);
	return fd;
}

/* Both sides say which versions they speak if one that speaks another one
 * connects, and if the node connects to it. */
Test(hostile, version)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	int fd, memory = shm_ring_create(SIZE), status;
	time_t end = time(NULL) + PATIENCE / 1000;
	struct shm_hello h, answer;
	struct pinged p;
	struct rig r;

	rig_up(&r);
	lnet_log_set(LNET_LOG_WARN, on_log, NULL);
	h = hello_of(&r);
	h.version = 1;
	fd = shm_name_connect(0, &r.nid);
	send_hello(fd, &h, sizeof(h), &memory, 1);
	await(fd);
	cr_assert_eq(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	cr_expect_eq(answer.magic, SHM_MAGIC);
	cr_expect_eq(answer.version, SHM_VERSION);
	cr_expect_eq(answer.status, -EPROTONOSUPPORT);
	await_end(fd);
	fork_fd_close(fd);
	cr_expect_eq(atomic_load(&version_lines), 1);
	to.nid = r.bad_nid;
	cr_assert_eq(pipe(p.pipe), 0);
	cr_assert_eq(
		lnet_ping(r.node, to, PATIENCE * UINT64_C(1000), on_ping, &p),
		0);
	fd = raw_accept(&r);
	send_hello(fd, &h, sizeof(h), NULL, 0);
	/* The ping may have ended before, if this has taken long. */
	while (atomic_load(&version_lines) < 2 && time(NULL) < end)
		sched_yield();
	cr_expect_eq(atomic_load(&version_lines), 2);
	cr_assert(read(p.pipe[0], &status, sizeof(status)) == sizeof(status));
	cr_expect_lt(status, 0);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	fork_fd_close(fd);
	close(memory);
	rig_down(&r);
}

/* Whatever a peer that is there answers, it does not look as if nobody
 * listened; except that this is what one answers which only calls. */
Test(hostile, answers)
{
	static const struct {
		int answer, status;
	} rows[] = {
		{ -EIO, -ECONNRESET },
		{ -ENOMEM, -ECONNRESET },
		{ -ECONNREFUSED, -ECONNREFUSED },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
		struct shm_hello h;
		struct pinged p;
		struct rig r;
		int fd, status;

		rig_up(&r);
		h = hello_of(&r);
		h.status = rows[i].answer;
		to.nid = r.bad_nid;
		cr_assert_eq(pipe(p.pipe), 0);
		cr_assert_eq(lnet_ping(r.node, to, PATIENCE * UINT64_C(1000),
				       on_ping, &p),
			     0);
		fd = raw_accept(&r);
		send_hello(fd, &h, sizeof(h), NULL, 0);
		cr_assert(read(p.pipe[0], &status, sizeof(status)) ==
			  sizeof(status));
		cr_expect_eq(status, rows[i].status, "%d", status);
		fork_fd_close(fd);
		rig_down(&r);
	}
}

/* The node's attempt, until it is answered; and whether it had ended when the
 * node answered another one. */
static _Atomic int attempt_fd;
static _Atomic bool had_ended;

static void node_answers(void)
{
	int fd = atomic_exchange(&attempt_fd, 0);

	if (fd)
		atomic_store(&had_ended, has_ended(fd));
}

/* The node's own attempt ends before it says that the peer's counts. */
Test(hostile, yields)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	char name[LNET_INTERFACE_SIZE];
	struct pinged p;
	struct raw raw;
	struct rig r;
	int fd, status;

	rig_up(&r);
	/* Of two attempts that of the lower NID counts. */
	fork_fd_close(r.name);
	while (lnet_nid_cmp(&r.nid, &r.bad_nid) < 0)
		cr_assert_eq(shm_resolve("auto", &r.bad_nid, name), 0);
	r.name = shm_name_own(0, &r.bad_nid);
	to.nid = r.bad_nid;
	cr_assert_eq(pipe(p.pipe), 0);
	cr_assert_eq(lnet_ping(r.node, to, 100000, on_ping, &p), 0);
	fd = raw_accept(&r);
	atomic_store(&attempt_fd, fd);
	raw_connect(&r, &raw);
	cr_expect_eq(raw.hello.status, 0);
	cr_expect(atomic_load(&had_ended));
	raw_close(&raw);
	fork_fd_close(fd);
	cr_assert(read(p.pipe[0], &status, sizeof(status)) == sizeof(status));
	rig_down(&r);
}

/* ---- cursors, memory, wake-ups ---- */

/* Changes the words in the page, the peer's own and the node's. */
static void scribble(struct raw *raw, uint32_t x, unsigned int how)
{
	struct shm_side *s = how & 1 ? raw->ring.mine : raw->ring.theirs;

	if (how & 2)
		atomic_store(&s->tail, how & 4 ? x : raw->ring.tail + 4);
	if (how & 8)
		atomic_store(&s->head, x);
	if (how & 16)
		atomic_store(&s->wants, x);
}

Test(hostile, noise)
{
	uint32_t x = 7;
	struct rig r;

	rig_up(&r);
	for (unsigned int i = 0; i < 200; i++) {
		struct raw raw;

		raw_connect(&r, &raw);
		cr_assert_eq(raw.hello.status, 0);
		for (unsigned int k = 0; k < SIZE; k++) {
			x = x * 1664525 + 1013904223;
			raw.ring.out[k] = (uint8_t)(x >> (k % 4 ? 30 : 24));
		}
		for (unsigned int k = 0; k < 20; k++) {
			x = x * 1664525 + 1013904223;
			scribble(&raw, x, x >> 20);
			bell(&raw);
		}
		/* It may take all that for empty frames: this it cannot. */
		atomic_store(&raw.ring.mine->tail, 0x80000001u);
		bell(&raw);
		await_end(raw.fd);
		raw_close(&raw);
	}
	rig_down(&r);
}

/* The memory is emptied behind the node's back: that reads as zeros. */
Test(hostile, hole)
{
	struct raw raw;
	struct rig r;

	rig_up(&r);
	raw_connect(&r, &raw);
	raw.ring.tail = 4096;
	shm_ring_publish(&raw.ring);
	cr_expect_lt(ftruncate(raw.memory, 0), 0);
	(void)!fallocate(raw.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 sysconf(_SC_PAGESIZE), 2 * SIZE);
	bell(&raw);
	await_end(raw.fd);
	raw_close(&raw);
	rig_down(&r);
}

/* Wake-ups without end, and bytes with descriptors. */
Test(hostile, flood)
{
	char bytes[4096] = { 0 };
	unsigned int before;
	struct raw raw;
	struct rig r;

	rig_up(&r);
	others_are_well(&r);
	before = open_files();
	raw_connect(&r, &raw);
	for (unsigned int i = 0; i < 2000; i++) {
		(void)!send(raw.fd, bytes, sizeof(bytes),
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (i % 500 == 0)
			others_are_well(&r);
	}
	for (unsigned int i = 0; i < 50; i++) {
		struct pollfd p = { .fd = raw.fd, .events = POLLOUT };

		cr_assert_eq(poll(&p, 1, PATIENCE), 1);
		send_hello(raw.fd, bytes, 1, &raw.memory, 1);
	}
	frame(&raw, 99, NULL, 0);
	await_end(raw.fd);
	raw_close(&raw);
	others_are_well(&r);
	cr_expect(files_are_at_most(before));
	rig_down(&r);
}

/* How many more wake-ups the system has no memory for. */
static _Atomic unsigned int lost_wake_ups;

/* in the place of libc's */
ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	if (n == sizeof(struct shm_hello))
		node_answers();
	if (n == 1 && atomic_load(&lost_wake_ups)) {
		atomic_fetch_sub(&lost_wake_ups, 1);
		errno = ENOBUFS;
		return -1;
	}
	return sendto(fd, buf, n, flags, NULL, 0);
}

/* A peer that sleeps is woken, although the system has refused to a few
 * times. */
Test(hostile, no_memory_to_wake)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	struct pinged p;
	struct raw raw;
	char byte = 1;
	int status;
	struct rig r;

	rig_up(&r);
	raw_connect(&r, &raw);
	to.nid = r.bad_nid;
	cr_assert_eq(pipe(p.pipe), 0);
	cr_assert(shm_ring_sleep(&raw.ring, SHM_WANTS_FRAMES));
	atomic_store(&lost_wake_ups, 3);
	/* It is sent at once; there will be no answer. */
	cr_assert_eq(lnet_ping(r.node, to, 100000, on_ping, &p), 0);
	await(raw.fd);
	cr_expect_eq(atomic_load(&lost_wake_ups), 0);
	cr_expect_eq(recv(raw.fd, &byte, 1, 0), 1);
	cr_expect_eq(byte, 0);
	raw_close(&raw);
	cr_assert(read(p.pipe[0], &status, sizeof(status)) == sizeof(status));
	rig_down(&r);
}

/* A peer that never reads: messages to it end, the connection too. */
Test(hostile, never_reads)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	struct pinged p;
	struct raw raw;
	int status;
	struct rig r;

	rig_up(&r);
	raw_connect(&r, &raw);
	to.nid = r.bad_nid;
	cr_assert_eq(pipe(p.pipe), 0);
	for (unsigned int i = 0; i < 400; i++)
		cr_assert_eq(lnet_ping(r.node, to, 3000000, on_ping, &p), 0);
	others_are_well(&r);
	for (unsigned int i = 0; i < 400; i++) {
		cr_assert(read(p.pipe[0], &status, sizeof(status)) ==
			  sizeof(status));
		cr_assert_lt(status, 0);
	}
	raw_close(&raw);
	rig_down(&r);
}

/* ---- peers that do one thing, and not the other ---- */

static _Atomic unsigned int asked, answered;

static void on_any_ping(void *arg, int status,
			const struct ulnet_ping_info *info)
{
	(void)arg;
	(void)status;
	(void)info;
	atomic_fetch_add(&answered, 1);
}

/* The node has @n messages for the peer that is not correct, each for @us. */
static void ping_the_bad(const struct rig *r, unsigned int n, uint64_t us)
{
	const struct ulnet_id to = { r->bad_nid, LNET_PID_LUSTRE };

	for (; n && atomic_load(&asked) - atomic_load(&answered) < 1000; n--) {
		cr_assert_eq(lnet_ping(r->node, to, us, on_any_ping, NULL), 0);
		atomic_fetch_add(&asked, 1);
	}
}

/* Is the connection closed, although the peer goes on with @go_on? Messages to
 * it end after @us. */
static bool ends_while(struct rig *r, struct raw *raw, uint64_t us,
		       void (*go_on)(struct raw *raw))
{
	time_t end = time(NULL) + PATIENCE / 1000;
	bool ended = false;

	atomic_store(&asked, 0);
	atomic_store(&answered, 0);
	while (!ended && time(NULL) < end) {
		ping_the_bad(r, 100, us);
		go_on(raw);
		ended = has_ended(raw->fd);
	}
	raw_close(raw);
	while (atomic_load(&asked) != atomic_load(&answered))
		sched_yield();
	return ended;
}

static void read_everything(struct raw *raw)
{
	struct shm_frame f;

	cr_assert(!shm_ring_look(&raw->ring));
	while (shm_ring_next(&raw->ring, &f) == 1)
		shm_ring_took(&raw->ring, &f);
	shm_ring_give(&raw->ring);
	if (shm_ring_must_wake(&raw->ring, SHM_WANTS_ROOM))
		bell(raw);
}

/* A peer that reads does not for that go on with the message that it has
 * begun. */
Test(hostile, reads_only)
{
	uint8_t body[LNET_HDR_SIZE] = { 0 };
	struct raw raw;
	struct rig r;

	rig_up(&r);
	raw_connect(&r, &raw);
	put_header(&r, body, 100);
	frame(&raw, SHM_MESSAGE, body, sizeof(body));
	cr_expect(ends_while(&r, &raw, 100000, read_everything));
	rig_down(&r);
}

static void write_a_byte(struct raw *raw)
{
	cr_assert(!shm_ring_look_room(&raw->ring));
	if (shm_ring_room(&raw->ring) >= SIZE / 2)
		frame(raw, SHM_MORE, "", 1);
}

/* Nor does one that goes on with its message make room. */
Test(hostile, writes_only)
{
	uint8_t body[LNET_HDR_SIZE] = { 0 };
	struct raw raw;
	struct rig r;

	rig_up(&r);
	raw_connect(&r, &raw);
	put_header(&r, body, 1u << 20);
	frame(&raw, SHM_MESSAGE, body, sizeof(body));
	cr_expect(ends_while(&r, &raw, 2000000, write_a_byte));
	rig_down(&r);
}

/* A peer that is killed with everything open: its NID is free at once. */
Test(hostile, killed)
{
	struct rig r;

	rig_up(&r);
	for (unsigned int i = 0; i < 5; i++) {
		int ready[2], status;
		char byte;
		pid_t pid;

		fork_fd_close(r.name);
		cr_assert_eq(pipe(ready), 0);
		pid = fork();
		if (!pid) {
			struct raw raw;

			r.name = shm_name_own(0, &r.bad_nid);
			raw_connect(&r, &raw);
			raw.ring.tail = 4;
			byte = raw.hello.status == 0;
			(void)!write(ready[1], &byte, 1);
			pause();
		}
		cr_assert(read(ready[0], &byte, 1) == 1 && byte == 1);
		cr_assert_eq(kill(pid, SIGKILL), 0);
		cr_assert(waitpid(pid, &status, 0) == pid);
		close(ready[0]);
		close(ready[1]);
		r.name = shm_name_own(0, &r.bad_nid);
		cr_assert(r.name >= 0);
		others_are_well(&r);
	}
	rig_down(&r);
}
