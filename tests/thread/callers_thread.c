/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many client processes on the address of the server that they call: all are
 * connected at the same time, and each gets its own answers (requirement I7).
 * The number of processes can be given.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/util.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/service.h"

#define ADDRESS "127.0.0.40@tcp"
#define CALLS	20
/* Processes, and with ULNET_LONG. ThreadSanitizer makes each ten times as slow.
 * Five crowds of 500 at once are more than a processor with other work can run.
 */
#ifdef __SANITIZE_THREAD__
#define CROWD 25
#define MANY  25
#else
#define CROWD 100
#define MANY  500
#endif
/* us: for a call, a connection request instead of 5 s, and a message instead of
 * 50 s. It is far longer than they take, even on one processor that others use,
 * too. With less, processes that wait for a slow server would give up their
 * connections before it sees to them, and connect anew, which makes it slower.
 */
#define DEADLINE UINT64_C(600000000)

/* The pipes that keep the processes in step. A phase begins when the parent
 * closes the phase's pipe; a process that has finished a phase writes a byte.
 */
struct crowd {
	unsigned int n;
	uint16_t port;
	int begin[2][2], through[2];
};

static void check_ok(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

static struct lnet *node_up(const struct crowd *c, enum ulnet_accept accept,
			    struct ulrpc **rpc_p)
{
	struct ulnet_ni_conf ni = { 0 };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.port = c->port;
	conf.accept = accept;
	conf.accept_timeout = DEADLINE;
	conf.transaction_timeout = DEADLINE;
	check_ok(lnet_nid_parse(ADDRESS, &ni.nid), "NID");
	check_ok(lnet_open(&conf, &node), "node");
	check_ok(lnet_ni_add(node, &ni), "NI");
	check_ok(ulrpc_open(node, NULL, rpc_p), "RPC");
	return node;
}

/* ---- a client process ---- */

/* Returns when the parent has closed the pipe of the phase. */
static void wait_for(const struct crowd *c, unsigned int phase)
{
	char byte;

	BUG_ON(read(c->begin[phase][0], &byte, 1) != 0);
}

static void call(struct ulrpc_client *client, unsigned int me, unsigned int i)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	unsigned int sent[2] = { me, i }, got[2] = { 0, 0 };
	struct ulrpc_outcome o;
	size_t length = 0;

	check_ok(ulrpc_call_wait(client, ulrpc_method("echo"), sent,
				 sizeof(sent), &conf, got, sizeof(got), &length,
				 &o),
		 "call");
	check_ok(o.status, ulrpc_cause_name(o.cause));
	check(length == sizeof(got) && !memcmp(sent, got, sizeof(got)));
}

static int client_run(const struct crowd *c, unsigned int me)
{
	struct ulnet_nid to;
	struct ulrpc_client_conf conf = { .service = "callers",
					  .nids = &to,
					  .nnids = 1 };
	struct ulrpc_client *client;
	struct ulrpc *rpc;
	struct lnet *node;

	close(c->begin[0][1]);
	close(c->begin[1][1]);
	wait_for(c, 0);
	BUG_ON(lnet_nid_parse(ADDRESS, &to));
	node = node_up(c, LNET_ACCEPT_NONE, &rpc);
	check_ok(ulrpc_client_open(rpc, &conf, &client), "client");
	call(client, me, 0);
	BUG_ON(write(c->through[1], "", 1) != 1);
	close(c->through[1]);
	wait_for(c, 1);
	for (unsigned int i = 1; i < CALLS; i++)
		call(client, me, i);
	lnet_close(node);
	return atomic_load(&failures) ? 1 : 0;
}

/* ---- the server ---- */

static atomic_uint calls;

static void on_echo(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	atomic_fetch_add(&calls, 1);
	ulrpc_reply(r, body, length);
}

static void service_up(struct ulrpc *rpc)
{
	static const struct ulrpc_method_conf methods[] = {
		{ .name = "echo", .handler = on_echo, .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "callers";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	check_ok(ulrpc_service_start(rpc, &conf, &service), "service");
}

/* To be called before there are threads. */
static void crowd_fork(struct crowd *c)
{
	BUG_ON(pipe(c->begin[0]) || pipe(c->begin[1]) || pipe(c->through));
	for (unsigned int i = 0; i < c->n; i++) {
		pid_t pid = fork();

		check_ok(pid < 0 ? -errno : 0, "fork");
		if (pid == 0)
			exit(client_run(c, i));
	}
	close(c->through[1]);
}

/* Are all processes connected? A process that is not has ended, so that its end
 * of the pipe is closed. */
static bool crowd_is_there(const struct crowd *c)
{
	unsigned int n = 0;
	char byte;

	while (n < c->n && read(c->through[0], &byte, 1) == 1)
		n++;
	return n == c->n;
}

static unsigned int crowd_end(const struct crowd *c)
{
	unsigned int good = 0;
	int status;

	for (unsigned int i = 0; i < c->n; i++)
		good += wait(&status) > 0 && WIFEXITED(status) &&
			WEXITSTATUS(status) == 0;
	return good;
}

static void many_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
	struct crowd c = { .n = getenv("ULNET_LONG") ? MANY : CROWD,
			   .port = free_port() };
	struct ulrpc *rpc;
	struct lnet *node;

	if (argc > 1)
		c.n = (unsigned int)atoi(argv[1]);
	if (!c.port) {
		printf("no TCP on the loopback interface\n");
		return 77;
	}
	crowd_fork(&c);
	many_files();
	node = node_up(&c, LNET_ACCEPT_ALL, &rpc);
	service_up(rpc);
	close(c.begin[0][1]);
	check(crowd_is_there(&c));
	check(atomic_load(&calls) >= c.n);
	close(c.begin[1][1]);
	check(crowd_end(&c) == c.n);
	check(atomic_load(&calls) == c.n * CALLS);
	lnet_close(node);
	printf("%u processes on %s, %d calls each\n", c.n, ADDRESS, CALLS);
	return atomic_load(&failures) ? 1 : 0;
}
