/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many processes of one host, all with all: each asks each, all at once. None
 * is left without an answer, and in the end each pair has one memory, which is
 * no larger than shmlnd(7) says.
 */
#include "tests/unit/shmlnd/rig.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY 256u
#define RING 32768u /* the default of ring_size */

struct crowd {
	unsigned int n;
	struct ulnet_nid nid[MANY];
	/* Processes write a 0 to the first one for each step that is done. The
	 * others are closed when all may ask, look, and leave. */
	int done[2], ask[2], look[2], leave[2];
};

/* us: many processes may take long on few processors */
#define LONG (10 * PATIENCE * UINT64_C(1000))

static int says; /* crowd.done[1] */

/* In processes: what does not work ends them. */
static void must(bool ok, int line)
{
	if (ok)
		return;
	fprintf(stderr, "crowd_test.c:%d: fails in a process\n", line);
	(void)!write(says, "1", 1);
	_exit(1);
}
#define MUST(what) must(what, __LINE__)

static struct lnet *open_node(const struct ulnet_nid *nid)
{
	struct ulnet_ni_conf ni = { .nid = *nid };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.transaction_timeout = conf.accept_timeout = LONG;
	MUST(!lnet_open(&conf, &node));
	MUST(!lnet_ni_add(node, &ni));
	return node;
}

static void ask_all(const struct crowd *c, unsigned int me, struct lnet *node)
{
	struct pinged p;
	int status;

	MUST(!pipe(p.pipe));
	for (unsigned int i = 0; i < c->n; i++) {
		const struct ulnet_id id = { c->nid[i], LNET_PID_LUSTRE };

		MUST(i == me || !lnet_ping(node, id, LONG, on_ping, &p));
	}
	for (unsigned int i = 1; i < c->n; i++) {
		MUST(read(p.pipe[0], &status, sizeof(status)) ==
		     sizeof(status));
		MUST(!status);
	}
}

/* Returns how many memories of pairs this process has; none is too large. */
static unsigned int count_memories(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	uint64_t known[2 * MANY], start, end, offset, inode;
	unsigned int n = 0, i;
	char line[512];

	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/memfd:ulnet-shm"))
			continue;
		MUST(sscanf(line,
			    "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64
			    " %*s %" SCNu64,
			    &start, &end, &offset, &inode) == 4);
		MUST(offset + (end - start) <=
		     2 * RING + (uint64_t)sysconf(_SC_PAGESIZE));
		for (i = 0; i < n && known[i] != inode; i++)
			;
		MUST(i < ARRAY_SIZE(known));
		if (i == n)
			known[n++] = inode;
	}
	fclose(f);
	return n;
}

/* Of two that connect to each other at the same time one gives up, a little
 * later perhaps. */
static void await_memories(unsigned int n)
{
	time_t end = time(NULL) + LONG / 1000000;
	unsigned int have;

	while ((have = count_memories()) != n && time(NULL) < end)
		sched_yield();
	MUST(have == n);
}

static void await_closed(int fd)
{
	char byte;

	MUST(read(fd, &byte, 1) == 0);
}

static void tell(const struct crowd *c)
{
	MUST(write(c->done[1], "", 1) == 1);
}

_Noreturn static void take_part(const struct crowd *c, unsigned int me)
{
	struct lnet *node;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	says = c->done[1];
	close(c->ask[1]);
	close(c->look[1]);
	close(c->leave[1]);
	node = open_node(&c->nid[me]);
	tell(c);
	await_closed(c->ask[0]);
	ask_all(c, me, node);
	tell(c);
	await_closed(c->look[0]);
	await_memories(c->n - 1);
	tell(c);
	await_closed(c->leave[0]);
	lnet_close(node);
	_exit(0);
}

/* Waits until all processes have done the next step. */
static void await_all(const struct crowd *c)
{
	char byte;

	for (unsigned int i = 0; i < c->n; i++)
		cr_assert(read(c->done[0], &byte, 1) == 1 && !byte);
}

Test(crowd, all_with_all)
{
	struct crowd c = { .n = getenv("ULNET_LONG") ? MANY : 24 };
	char name[LNET_INTERFACE_SIZE];
	int status;

	cr_assert(!pipe(c.done) && !pipe(c.ask) && !pipe(c.look) &&
		  !pipe(c.leave));
	for (unsigned int i = 0; i < c.n; i++) {
		c.nid[i] = lnet_nid_make(LNET_NET(LNET_TYPE_SHM, 0), 0);
		cr_assert_eq(shm_resolve("auto", &c.nid[i], name), 0);
	}
	for (unsigned int i = 0; i < c.n; i++) {
		pid_t pid = fork();

		cr_assert(pid >= 0);
		if (!pid)
			take_part(&c, i);
	}
	await_all(&c);
	close(c.ask[1]);
	await_all(&c);
	close(c.look[1]);
	await_all(&c);
	close(c.leave[1]);
	for (unsigned int i = 0; i < c.n; i++) {
		cr_assert(wait(&status) > 0);
		cr_expect_eq(status, 0);
	}
}
