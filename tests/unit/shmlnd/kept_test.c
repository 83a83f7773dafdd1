/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that keep what is over, and come again: the memory of connections that
 * have ended, their own ends of those, or a queue in front of a CPT. No page
 * that they keep was made by the node, and what they keep is in their share.
 */
#include "tests/unit/shmlnd/rig.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "ulnet/loop.h"

/* What a peer keeps of a connection. */
struct kept {
	int fd, memory; /* fd < 0: its end is closed */
};

static int64_t pages_of(int memory)
{
	struct stat st;

	cr_assert_eq(fstat(memory, &st), 0);
	return st.st_blocks * 512 / sysconf(_SC_PAGESIZE);
}

/* Waits until @memory has no pages. The node empties it a moment after the peer
 * has closed its end. */
static void await_empty(int memory)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	while (pages_of(memory) && time(NULL) < end)
		sched_yield();
	cr_assert_eq(pages_of(memory), 0);
}

/* Keeps the memory of @raw, and its end of the socket. */
static struct kept keep(struct raw *raw)
{
	shm_ring_unmap(&raw->ring);
	return (struct kept){ raw->fd, raw->memory };
}

static void close_end(struct kept *k)
{
	fork_fd_close(k->fd);
	k->fd = -1;
}

static unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Returns how many mappings this process has of rings. */
static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	char line[512];

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "/memfd:ulnet-shm") != NULL;
	fclose(f);
	return n;
}

/* Waits until there are no more than @files and @maps. There may have been one
 * too many when they were counted, which was about to be closed. */
static void await_as_before(unsigned int files, unsigned int maps)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	while ((open_files() > files || mappings() > maps) && time(NULL) < end)
		sched_yield();
	cr_expect_leq(open_files(), files);
	cr_expect_leq(mappings(), maps);
}

/* The node connects to whose NID it is each time that somebody says HELLO, and
 * the system queues only so many. */
static void drop_callers(const struct rig *r)
{
	struct pollfd p = { .fd = r->name, .events = POLLIN };

	while (poll(&p, 1, 0) == 1) {
		int fd;

		fork_hold();
		fd = fork_fd_made(accept4(r->name, NULL, NULL, SOCK_CLOEXEC));
		cr_assert(fd >= 0);
		fork_fd_close(fd);
	}
}

/* The peer has a lower NID than the node, so whatever it opens counts. */
static void get_lower_nid(struct rig *r)
{
	char name[LNET_INTERFACE_SIZE];

	fork_fd_close(r->name);
	while (lnet_nid_cmp(&r->nid, &r->bad_nid) < 0)
		cr_assert_eq(shm_resolve("auto", &r->bad_nid, name), 0);
	r->name = shm_name_own(0, &r->bad_nid);
	cr_assert(r->name >= 0);
}

/* ---- pages ---- */

/* A payload that the peer has not written: it is the node that makes these
 * pages, by reading them. */
static void send_hole(const struct rig *r, struct raw *raw)
{
	const uint32_t payload = 4096;

	put_header(r, shm_ring_body(&raw->ring), payload);
	shm_ring_commit(&raw->ring, SHM_MESSAGE, LNET_HDR_SIZE + payload);
	shm_ring_publish(&raw->ring);
	bell(raw);
}

#define KEPT 200u

/* A peer that keeps the memory of all of its connections, and comes again and
 * again. */
Test(kept, pages)
{
	unsigned int rounds = getenv("ULNET_LONG") ? 10000 : 1000;
	unsigned int files, maps;
	struct kept kept[KEPT];
	struct raw raw;
	struct rig r;

	rig_up(&r);
	get_lower_nid(&r);
	take_puts(&r);
	others_are_well(&r);
	files = open_files();
	maps = mappings();
	for (unsigned int i = 0; i < rounds; i++) {
		struct kept *k = &kept[i % KEPT];

		raw_connect(&r, &raw);
		drop_callers(&r);
		cr_assert_eq(raw.hello.status, 0);
		send_hole(&r, &raw);
		await_puts(i + 1);
		/* the page with the cursors, and the payload */
		cr_assert(pages_of(raw.memory) >= 2);
		if (i >= KEPT) {
			await_empty(k->memory);
			close(k->memory);
		}
		*k = keep(&raw);
		close_end(k);
	}
	for (unsigned int i = 0; i < KEPT; i++) {
		await_empty(kept[i].memory);
		close(kept[i].memory);
	}
	await_as_before(files, maps);
	rig_down(&r);
}

/* ---- ends ---- */

static _Atomic bool not_connected;

static void on_log(int level, const char *line, void *arg)
{
	(void)arg;
	(void)level;
	if (strstr(line, "not connected to for now"))
		atomic_store(&not_connected, true);
}

static void on_any_ping(void *arg, int status,
			const struct ulnet_ping_info *info)
{
	(void)arg;
	(void)status;
	(void)info;
}

static void ping_the_bad(const struct rig *r)
{
	const struct ulnet_id to = { r->bad_nid, LNET_PID_LUSTRE };

	cr_assert_eq(lnet_ping(r->node, to, PATIENCE * UINT64_C(1000),
			       on_any_ping, NULL),
		     0);
}

static void await_frame(struct raw *raw, struct shm_frame *f)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	int rc;

	do {
		cr_assert(!shm_ring_look(&raw->ring));
		rc = shm_ring_next(&raw->ring, f);
	} while (!rc && time(NULL) < end && !sched_yield());
	cr_assert_eq(rc, 1);
}

/* Says HELLO until the node takes the connection: it hears a moment later than
 * the peer that others have ended. */
static void connect_until_taken(const struct rig *r, struct raw *raw)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	for (raw_connect(r, raw); raw->hello.status && time(NULL) < end;
	     raw_connect(r, raw)) {
		cr_assert_eq(raw->hello.status, -EALREADY);
		raw_close(raw);
		drop_callers(r);
		sched_yield();
	}
	cr_assert_eq(raw->hello.status, 0);
}

/* A peer whose connections the node ends, and which does not close its own ends
 * of them: it gets no more until it does. Until then its memory is as it was,
 * since it might read what was sent to it. */
Test(kept, ends)
{
	struct kept kept[CPTS * FEW];
	unsigned int n;
	struct shm_frame f;
	struct raw raw;
	struct rig r;

	rig_up_few(&r);
	get_lower_nid(&r);
	others_are_well(&r);
	for (n = 0; n < ARRAY_SIZE(kept); n++) {
		raw_connect(&r, &raw);
		if (raw.hello.status)
			break;
		ping_the_bad(&r);
		await_frame(&raw, &f);
		frame(&raw, 99, NULL, 0);
		await_end(raw.fd);
		cr_expect_eq(f.type, SHM_MESSAGE);
		await_frame(&raw, &f);
		cr_expect_eq(f.type, SHM_MESSAGE);
		kept[n] = keep(&raw);
	}
	cr_expect_eq(raw.hello.status, -EALREADY);
	cr_expect(n && n < FEW, "%u", n);
	raw_close(&raw);
	for (unsigned int i = 0; i < n; i++) {
		cr_expect(pages_of(kept[i].memory) >= 2);
		/* more than is read in a turn */
		(void)!send(kept[i].fd, puts_buffer, 65536,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		close_end(&kept[i]);
	}
	connect_until_taken(&r, &raw);
	raw_close(&raw);
	for (unsigned int i = 0; i < n; i++) {
		await_empty(kept[i].memory);
		close(kept[i].memory);
	}
	rig_down(&r);
}

/* Nor does one get more that keeps each connection when it opens the next. */
Test(kept, all)
{
	struct kept kept[CPTS * FEW];
	struct raw raw;
	unsigned int n;
	struct rig r;

	rig_up_few(&r);
	for (n = 0; n < ARRAY_SIZE(kept); n++) {
		raw_connect(&r, &raw);
		if (raw.hello.status)
			break;
		kept[n] = keep(&raw);
	}
	cr_expect_eq(raw.hello.status, -EALREADY);
	cr_expect(n && n < FEW, "%u", n);
	raw_close(&raw);
	for (unsigned int i = 0; i < n; i++) {
		close_end(&kept[i]);
		await_empty(kept[i].memory);
		close(kept[i].memory);
	}
	rig_down(&r);
}

/* Accepts a connection of the node, if there is one. Returns its descriptor, or
 * -1. */
static int accept_one(const struct rig *r)
{
	struct pollfd p = { .fd = r->name, .events = POLLIN };

	if (poll(&p, 1, 1) != 1)
		return -1;
	fork_hold();
	return fork_fd_made(accept4(r->name, NULL, NULL, SOCK_CLOEXEC));
}

/* Waits for HELLO of the node, and answers it. Returns false: the node does not
 * connect, or, if @or_says, says why it does not. */
static bool raw_accept(const struct rig *r, struct raw *raw, bool or_says)
{
	struct shm_hello h = hello_of(r), its;
	time_t end = time(NULL) + PATIENCE / 1000;

	while (!(or_says && atomic_load(&not_connected)) && time(NULL) < end) {
		raw->fd = accept_one(r);
		if (raw->fd < 0)
			continue;
		await(raw->fd);
		/* Who only looks whose name it is says nothing. */
		if (shm_take(raw->fd, &its, sizeof(its), &raw->memory) <= 0) {
			fork_fd_close(raw->fd);
			continue;
		}
		cr_assert_eq(
			shm_ring_map(&raw->ring, raw->memory, its.ring_size, 1),
			0);
		send_hello(raw->fd, &h, sizeof(h), NULL, 0);
		return true;
	}
	return false;
}

/* Has the node end @raw, and keeps it. */
static struct kept have_ended(struct raw *raw)
{
	frame(raw, 99, NULL, 0);
	await_end(raw->fd);
	return keep(raw);
}

/* The same if the node connects, of which the peer lets it do as many as it
 * likes. Others, who have none, are connected to. */
Test(kept, ends_of_the_nodes)
{
	struct kept kept[CPTS * FEW];
	unsigned int n = 0;
	struct raw raw;
	struct rig r;

	rig_up_few(&r);
	lnet_log_set(LNET_LOG_WARN, on_log, NULL);
	for (ping_the_bad(&r);
	     n < ARRAY_SIZE(kept) && raw_accept(&r, &raw, true);
	     ping_the_bad(&r))
		kept[n++] = have_ended(&raw);
	cr_assert(n && n < FEW, "%u", n);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	while (n < FEW + 1) {
		atomic_store(&other_pid, 1000000 + (int)n);
		atomic_store(&other_user, 1 + (int)n);
		ping_the_bad(&r);
		cr_assert(raw_accept(&r, &raw, false), "%u", n);
		kept[n++] = have_ended(&raw);
	}
	atomic_store(&other_pid, 0);
	for (unsigned int i = 0; i < n; i++)
		close_end(&kept[i]);
	for (unsigned int i = 0; i < n; i++) {
		await_empty(kept[i].memory);
		fork_fd_close(kept[i].memory);
	}
	ping_the_bad(&r);
	cr_assert(raw_accept(&r, &raw, false));
	kept[0] = keep(&raw);
	close_end(&kept[0]);
	fork_fd_close(kept[0].memory);
	rig_down(&r);
}

/* ---- users ---- */

/* Another user has one share, however many processes it makes. */
Test(kept, by_a_user)
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
		atomic_store(&other_pid, 1000000 + (int)i);
		raw_connect(&r, &raw[i]);
		held += !raw[i].hello.status;
	}
	atomic_store(&other_pid, 0);
	/* Of FEW at a CPT, it gets 3, or 2 where another one is connected. */
	cr_expect(held >= 4 && held <= 6, "%u", held);
	for (unsigned int i = 0; i < ARRAY_SIZE(raw); i++)
		raw_close(&raw[i]);
	rig_down(&r);
}

/* ---- a queue ---- */

static sem_t begun, goes_on;

static void be_busy(struct ulnet_work *w)
{
	(void)w;
	sem_post(&begun);
	sem_wait(&goes_on);
}

#define CALLERS (ACCEPT_MAX + 8)

static bool is_answered(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Says HELLO, and waits until the node has answered, or has taken the memory.
 * Returns the descriptor. */
static int queue_up(const struct rig *r)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	int fd = shm_name_connect(0, &r->nid), memory = shm_ring_create(SIZE);
	struct shm_hello h = hello_of(r);
	unsigned int maps = mappings();

	send_hello(fd, &h, sizeof(h), &memory, 1);
	while (!is_answered(fd) && mappings() == maps && time(NULL) < end)
		sched_yield();
	close(memory);
	return fd;
}

/* Returns how many of @fd are asked to come again, as soon as @n are. */
static unsigned int count_asked(const int *fd, unsigned int n)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	unsigned int asked = 0;

	do {
		for (unsigned int i = 0; i < CALLERS; i++) {
			struct shm_hello answer = { .status = 0 };

			(void)!recv(fd[i], &answer, sizeof(answer),
				    MSG_DONTWAIT);
			asked += answer.status == -EALREADY;
		}
	} while (asked < n && time(NULL) < end && !sched_yield());
	return asked;
}

/* Connections for a CPT that is busy: what is more than accept_max is asked to
 * come again. */
Test(kept, queue)
{
	struct ulnet_work busy = { .fn = be_busy };
	char name[LNET_INTERFACE_SIZE];
	unsigned int files, maps, asked;
	int fd[CALLERS];
	struct rig r;

	rig_up(&r);
	fork_fd_close(r.name);
	while (lnet_cpt_of(r.node, &r.bad_nid) != 1)
		cr_assert_eq(shm_resolve("auto", &r.bad_nid, name), 0);
	r.name = shm_name_own(0, &r.bad_nid);
	others_are_well(&r);
	sem_init(&begun, 0, 0);
	sem_init(&goes_on, 0, 0);
	files = open_files();
	maps = mappings();
	lnet_post(r.node, 1, &busy);
	sem_wait(&begun);
	for (unsigned int i = 0; i < CALLERS; i++)
		fd[i] = queue_up(&r);
	asked = count_asked(fd, CALLERS - ACCEPT_MAX);
	cr_expect_eq(asked, CALLERS - ACCEPT_MAX, "%u", asked);
	sem_post(&goes_on);
	for (unsigned int i = 0; i < CALLERS; i++)
		fork_fd_close(fd[i]);
	others_are_well(&r);
	await_as_before(files, maps);
	rig_down(&r);
}
