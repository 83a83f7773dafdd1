/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls at one of three servers, of which one is killed while 16 calls are
 * under way: how many are lost, and how long the longest one takes. The calls
 * are idempotent, of 64 bytes, over TCP. Prints "NAME VALUE" lines; times are
 * us: calls, lost, moved (calls that went on to another server), longest
 * (of those that the kill may have met), quiet (the longest before it).
 *
 * "replicas first TARGET" prints the time until the first reply of a server to
 * which there is no connection yet, the second one, by any text that names it.
 * In etcd, it is registered under that name before.
 *
 * And the balance of calls over servers of unequal speed: each executes one
 * call at a time, which takes 4 ms at the first one, 8 ms at the second one and
 * 16 ms at the third one; 16 calls are under way for 3 s. For each choice
 * (least, turns): how many calls were answered, in percent of what the servers
 * can do together (least), and which part of these each server has answered, in
 * percent (least.1).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/duo.h"
#include "ulnet/etcd.h"
#include "ulnet/names.h"
#include "ulnet/replicas.h"
#include "ulnet/service.h"

#define SERVERS	 3
#define DEPTH	 16
#define SIZE	 64
#define DEADLINE UINT64_C(10000000)	/* us */
#define QUIET	 UINT64_C(1000000000) /* ns: before the kill, and after it */

static const char *const nids[SERVERS] = { "127.0.25.1@tcp", "127.0.25.2@tcp",
					   "127.0.25.3@tcp" };

/* us that a call of "work" takes at each server */
static const unsigned int work_us[SERVERS] = { 4000, 8000, 16000 };
#define BALANCE UINT64_C(3000000000) /* ns */

static struct ulnet_nid all[SERVERS];
static uint16_t port;
static int own; /* which server this is */

static struct ulrpc *open_rpc(struct lnet **node_p, const char *nid)
{
	struct ulnet_conf conf;
	struct ulnet_ni_conf ni = { 0 };
	struct ulrpc *rpc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = port;
	conf.accept = LNET_ACCEPT_ALL;
	must(lnet_open(&conf, node_p), "lnet_open");
	must(lnet_nid_parse(nid, &ni.nid), nid);
	must(lnet_ni_add(*node_p, &ni), "lnet_ni_add");
	must(ulrpc_open(*node_p, NULL, &rpc), "ulrpc_open");
	return rpc;
}

/* ---- servers ---- */

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void work(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	usleep(work_us[own]);
	ulrpc_reply(request, body, length);
}

static void server(void *arg, int ready)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "echo",
		  .handler = echo,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "work",
		  .handler = work,
		  .run = ULRPC_RUN_WORKER,
		  .semantics = ULRPC_IDEMPOTENT },
	};
	struct ulrpc_service_conf conf;
	struct lnet *node;
	struct ulrpc *rpc = open_rpc(&node, nids[own]);

	(void)arg;
	ulrpc_service_conf_init(&conf);
	conf.name = "bench";
	conf.methods = methods;
	conf.nmethods = 2;
	conf.workers_min = 1;
	must(ulrpc_service_start(rpc, &conf, NULL), "service");
	duo_ready(ready);
	for (;;)
		must(lnet_poll(node, UINT64_MAX), "lnet_poll");
}

/* ---- the client ---- */

static struct {
	struct ulrpc_replicas *servers;
	const char *method;
	uint64_t at[SERVERS]; /* calls that each server has answered */
	uint64_t killed; /* ns; 0: not yet */
	bool over;	 /* no more calls begin */
	unsigned int under_way;
	uint64_t calls, lost, moved;
	uint64_t longest, quiet; /* ns */
} b;

struct one {
	uint64_t began;
};

static void begin(struct one *one);

static void on_end(void *arg, const struct ulrpc_replicas_outcome *o,
		   const void *reply, size_t length)
{
	struct one *one = arg;
	uint64_t now = duo_now(), took = now - one->began;

	(void)reply;
	b.under_way--;
	b.calls++;
	b.lost += o->call.cause != ULRPC_CAUSE_OK || length != SIZE;
	b.moved += o->moves > 0;
	for (int i = 0; i < SERVERS; i++)
		b.at[i] += lnet_nid_eq(&o->server, &all[i]);
	if (b.killed && took > b.longest)
		b.longest = took;
	else if (!b.killed && took > b.quiet)
		b.quiet = took;
	if (!b.over)
		begin(one);
}

static void begin(struct one *one)
{
	static const char body[SIZE];
	struct ulrpc_replicas_call_conf conf;

	ulrpc_replicas_call_conf_init(&conf);
	conf.call.deadline = DEADLINE;
	conf.call.semantics = ULRPC_IDEMPOTENT;
	one->began = duo_now();
	b.under_way++;
	must(ulrpc_replicas_call(b.servers, ulrpc_method(b.method), body, SIZE,
				 &conf, on_end, one, NULL),
	     "ulrpc_replicas_call");
}

static void turn(struct lnet *node)
{
	long rc = lnet_poll(node, 1000);

	if (rc != -EAGAIN)
		must(rc, "lnet_poll");
}

static void on_first(void *arg, const struct ulrpc_replicas_outcome *o,
		     const void *reply, size_t length)
{
	(void)reply;
	(void)length;
	must(o->call.status, "the first call");
	*(bool *)arg = true;
}

/* Returns the ns from opening the servers of @client to the first reply. */
static uint64_t first_reply(struct lnet *node, struct ulrpc *rpc,
			    const struct ulrpc_client_conf *client)
{
	struct ulrpc_replicas_conf conf;
	struct ulrpc_replicas_call_conf how;
	struct ulrpc_replicas *servers;
	uint64_t from = duo_now();
	bool ended = false;

	ulrpc_replicas_conf_init(&conf);
	conf.client = *client;
	conf.client.service = "bench";
	must(ulrpc_replicas_open(rpc, &conf, &servers), "ulrpc_replicas_open");
	ulrpc_replicas_call_conf_init(&how);
	how.call.deadline = DEADLINE;
	must(ulrpc_replicas_call(servers, ulrpc_method("echo"), "x", 1, &how,
				 on_first, &ended, NULL),
	     "ulrpc_replicas_call");
	while (!ended)
		turn(node);
	from = duo_now() - from;
	ulrpc_replicas_close(servers);
	return from;
}

static void open_set(struct ulrpc *rpc, enum ulrpc_choice choice)
{
	struct ulrpc_replicas_conf conf;

	ulrpc_replicas_conf_init(&conf);
	conf.client.nids = all;
	conf.client.nnids = SERVERS;
	conf.client.service = "bench";
	conf.choice = choice;
	must(ulrpc_replicas_open(rpc, &conf, &b.servers),
	     "ulrpc_replicas_open");
}

/* Begins the calls of "method". */
static void begin_all(struct one calls[DEPTH], const char *method)
{
	b.method = method;
	b.over = false;
	b.calls = b.lost = b.moved = 0;
	memset(b.at, 0, sizeof(b.at));
	for (int i = 0; i < DEPTH; i++)
		begin(&calls[i]);
}

static void end_all(struct lnet *node)
{
	b.over = true;
	while (b.under_way)
		turn(node);
	ulrpc_replicas_close(b.servers);
}

/* Prints how calls are balanced over the servers by @choice. */
static void balance(struct lnet *node, struct ulrpc *rpc,
		    enum ulrpc_choice choice, const char *name)
{
	struct one calls[DEPTH];
	double could = 0;
	uint64_t from;

	open_set(rpc, choice);
	begin_all(calls, "work");
	/* Connections are made, and queues fill, first. */
	from = duo_now();
	while (duo_now() - from < QUIET / 2)
		turn(node);
	b.calls = 0;
	memset(b.at, 0, sizeof(b.at));
	from = duo_now();
	while (duo_now() - from < BALANCE)
		turn(node);
	for (int i = 0; i < SERVERS; i++)
		could += (double)(duo_now() - from) / 1000 / work_us[i];
	printf("%s %.1f\n", name, 100 * (double)b.calls / could);
	for (int i = 0; i < SERVERS; i++)
		printf("%s.%d %.1f\n", name, i + 1,
		       100 * (double)b.at[i] / (double)b.calls);
	end_all(node);
}

/* Makes calls for a while, kills @victim, and makes calls for a while. */
static void run(struct lnet *node, pid_t victim)
{
	struct one calls[DEPTH];
	uint64_t from = duo_now();

	begin_all(calls, "echo");
	/* Connections are made first. */
	while (duo_now() - from < QUIET / 2)
		turn(node);
	b.quiet = 0;
	while (duo_now() - from < QUIET)
		turn(node);
	b.killed = duo_now();
	must_sys(kill(victim, SIGKILL), "kill");
	while (duo_now() - b.killed < QUIET)
		turn(node);
	end_all(node);
}

/* Registers the second server in etcd, if @target is a name there. Returns what
 * is to be withdrawn, or NULL. */
static struct ulnet_etcd_entry *announce(struct lnet *node, const char *target)
{
	const struct ulnet_address address = { .nid = all[1] };
	struct ulnet_etcd_entry *entry;

	if (strncmp(target, "etcd://", 7) != 0)
		return NULL;
	must(lnet_etcd_open(node), "lnet_etcd_open");
	must(lnet_etcd_register(node, target, &address, 10, &entry, NULL),
	     target);
	must(lnet_etcd_wait(entry, DEADLINE), target);
	return entry;
}

/* Prints the time until the first reply of the second server, by @target. */
static int first_of(const char *target)
{
	struct ulrpc_client_conf client = { .target = target };
	struct ulnet_etcd_entry *entry;
	struct lnet *node;
	struct ulrpc *rpc;
	pid_t pid;

	port = duo_free_port();
	own = 1;
	pid = duo_fork(server, NULL);
	must(lnet_nid_parse(nids[own], &all[own]), nids[own]);
	rpc = open_rpc(&node, "127.0.25.9@tcp");
	must(lnet_names_open(node), "lnet_names_open");
	entry = announce(node, target);
	printf("first %.0f\n", (double)first_reply(node, rpc, &client) / 1000);
	lnet_etcd_withdraw(entry);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pids[SERVERS];
	struct ulrpc *rpc;
	struct lnet *node;

	if (argc == 3 && !strcmp(argv[1], "first"))
		return first_of(argv[2]);
	port = duo_free_port();
	for (int i = 0; i < SERVERS; i++) {
		own = i;
		pids[i] = duo_fork(server, NULL);
		must(lnet_nid_parse(nids[i], &all[i]), nids[i]);
	}
	rpc = open_rpc(&node, "127.0.25.9@tcp");
	balance(node, rpc, ULRPC_CHOOSE_LEAST, "least");
	balance(node, rpc, ULRPC_CHOOSE_TURNS, "turns");
	open_set(rpc, ULRPC_CHOOSE_LEAST);
	run(node, pids[0]);
	for (int i = 0; i < SERVERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	printf("calls %llu\nlost %llu\nmoved %llu\nlongest %.0f\nquiet %.0f\n",
	       (unsigned long long)b.calls, (unsigned long long)b.lost,
	       (unsigned long long)b.moved, (double)b.longest / 1000,
	       (double)b.quiet / 1000);
	return 0;
}
