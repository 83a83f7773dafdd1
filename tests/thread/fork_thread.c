/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with nodes calls fork(): in the child every function fails at once,
 * nothing is sent, and closing returns; the parent, its calls and its
 * connections notice nothing. lnet_is_forked(3).
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/util.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/control.h"
#include "ulnet/fault.h"
#include "ulnet/loop.h"
#include "ulnet/path.h"
#include "ulnet/policy.h"
#include "ulnet/route.h"
#include "ulnet/service.h"
#include "ulnet/thread.h"

#define CALLS 200
/* us */
#define DEADLINE UINT64_C(600000000)
/* s: in a child, after which it counts as hanging */
#define LIMIT 120
/* sockets: more than two nodes have */
#define MANY 64

/* Two nodes of one process, a client and a server, over TCP. */
struct rig {
	struct ulnet_nid nid[2];
	struct lnet *node[2];
	struct ulrpc *rpc[2];
	struct ulrpc_client *client;
	struct ulrpc_service *service;
	struct ulrpc_set *set;
	struct ulrpc_bulk *bulk;
	struct lnet_control *control;
	struct lnet_ctl *ctl;
	struct ulnet_thread *thread;
	struct ulnet_eq_handle eq;
	struct ulnet_md_handle md;
	struct ulnet_me_handle me;
	unsigned int sockets; /* of the process, before there were nodes */
	/* those of the nodes, once a call was made */
	unsigned long inodes[MANY];
	unsigned int ninodes;
	char path[64];
	char memory[4096];
	/* what the handler "fork" does in the child */
	void (*in_child)(struct rig *rig, struct ulrpc_request *r);
	int status; /* of that child */
};

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

/* Returns the status of @pid at its end. */
static int end_of(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static pid_t fork_child(void)
{
	pid_t pid = fork();

	must(pid < 0 ? -errno : 0, "fork");
	if (pid == 0)
		alarm(LIMIT);
	return pid;
}

/* How many sockets does this process have? The first @max have their inodes in
 * @inodes. They are read as the names of links, "socket:[INODE]": other threads
 * open and close descriptors meanwhile, which fstat() would race with. */
static unsigned int sockets_list(unsigned long *inodes, unsigned int max)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned int n = 0;

	BUG_ON(!dir);
	while ((entry = readdir(dir))) {
		unsigned long inode;
		char name[64];
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, name,
					    sizeof(name) - 1);

		if (length < 0)
			continue;
		name[length] = '\0';
		if (sscanf(name, "socket:[%lu]", &inode) != 1)
			continue;
		if (n < max)
			inodes[n] = inode;
		n++;
	}
	closedir(dir);
	return n;
}

static unsigned int sockets(void)
{
	return sockets_list(NULL, 0);
}

/* ---- the parent ---- */

static void on_echo(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
}

static void on_fork(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct rig *rig = arg;
	pid_t pid = fork_child();

	(void)body;
	(void)length;
	if (pid == 0) {
		rig->in_child(rig, r);
		return;
	}
	rig->status = end_of(pid);
	ulrpc_reply(r, NULL, 0);
}

static void nodes_up(struct rig *rig)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.port = free_port();
	if (!conf.port) {
		printf("no TCP on the loopback interface\n");
		exit(77);
	}
	rig->sockets = sockets();
	conf.cpts = 2;
	for (unsigned int i = 0; i < 2; i++) {
		struct ulnet_ni_conf ni = { 0 };
		char nid[32];

		snprintf(nid, sizeof(nid), "127.0.0.%u@tcp", 50 + i);
		must(lnet_nid_parse(nid, &rig->nid[i]), "NID");
		ni.nid = rig->nid[i];
		must(lnet_open(&conf, &rig->node[i]), "node");
		must(lnet_ni_add(rig->node[i], &ni), "NI");
		must(ulrpc_open(rig->node[i], NULL, &rig->rpc[i]), "RPC");
	}
}

static void service_up(struct rig *rig)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "echo", .handler = on_echo, .run = ULRPC_RUN_INLINE },
		{ .name = "fork",
		  .handler = on_fork,
		  .arg = rig,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "fork worker", .handler = on_fork, .arg = rig },
	};
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "fork";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	must(ulrpc_service_start(rig->rpc[1], &conf, &rig->service), "service");
}

static void idle(void *arg)
{
	struct rig *rig = arg;
	struct ulrpc_result result;

	check(ulrpc_set_wait(rig->set, 1, DEADLINE) == 1);
	check(ulrpc_set_next(rig->set, &result) == 0);
	free(result.reply);
}

static void rig_up(struct rig *rig)
{
	struct ulnet_control_conf control = { .path = rig->path };
	struct ulrpc_client_conf conf = { .service = "fork",
					  .nids = &rig->nid[1],
					  .nnids = 1 };
	struct iovec iov = { rig->memory, sizeof(rig->memory) };
	struct ulrpc_bulk_conf bulk = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulnet_md md = { .start = rig->memory, .length = 16 };
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };

	nodes_up(rig);
	service_up(rig);
	must(ulrpc_client_open(rig->rpc[0], &conf, &rig->client), "client");
	must(ulrpc_set_new(rig->rpc[0], &rig->set), "set");
	must(ulrpc_bulk_new(rig->rpc[0], &bulk, &rig->bulk), "bulk");
	must(LNetEQAlloc(rig->node[0], 4, &rig->eq), "EQ");
	must(LNetMEAttach(rig->node[0], 50, any, 1, 0, LNET_RETAIN,
			  LNET_INS_AFTER, &rig->me),
	     "ME");
	md.eq = rig->eq;
	md.threshold = LNET_MD_THRESH_INF;
	must(LNetMDBind(rig->node[0], &md, LNET_RETAIN, &rig->md), "MD");
	snprintf(rig->path, sizeof(rig->path), "./fork-%d.sock", getpid());
	must(lnet_control_start(rig->node[0], &control, &rig->control),
	     "control");
	must(lnet_ctl_connect(rig->path, DEADLINE, &rig->ctl), "connect");
	must(lnet_thread_start(rig->node[0], idle, rig, &rig->thread),
	     "thread");
}

static void call(struct rig *rig, const char *method)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	struct ulrpc_outcome o;
	char reply[16];
	size_t length;

	must(ulrpc_call_wait(rig->client, ulrpc_method(method), "some bytes",
			     10, &conf, reply, sizeof(reply), &length, &o),
	     method);
	check(o.status == 0);
	check(strcmp(method, "echo") != 0 ||
	      (length == 10 && !memcmp(reply, "some bytes", 10)));
}

static void sockets_remember(struct rig *rig)
{
	rig->ninodes = sockets_list(rig->inodes, MANY);
	check(rig->ninodes > rig->sockets && rig->ninodes <= MANY);
}

/* No connection that there was then was lost. (That calls need one attempt only
 * would not show it: on a busy machine an attempt may take too long.) */
static void sockets_are_there(struct rig *rig)
{
	unsigned long now[MANY];
	unsigned int n = sockets_list(now, MANY);

	check(n <= MANY);
	for (unsigned int i = 0; i < rig->ninodes; i++) {
		unsigned int k = 0;

		while (k < n && now[k] != rig->inodes[i])
			k++;
		check(k < n);
	}
}

static void rig_down(struct rig *rig)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	char *answer;

	/* Nothing has been taken from the connections of the parent. */
	must(lnet_ctl_request(rig->ctl, "net show:\n", DEADLINE, &answer),
	     "request");
	check(strstr(answer, "127.0.0.50@tcp") != NULL);
	free(answer);
	must(ulrpc_set_call(rig->set, rig->client, ulrpc_method("echo"), "x", 1,
			    &conf, NULL, NULL),
	     "set");
	lnet_thread_join(rig->thread);
	check(access(rig->path, F_OK) == 0);
	lnet_ctl_close(rig->ctl);
	lnet_control_stop(rig->control);
	ulrpc_set_free(rig->set);
	ulrpc_bulk_close(rig->bulk, NULL, NULL);
	ulrpc_client_close(rig->client);
	check(ulrpc_service_stop(rig->service, DEADLINE) == 0);
	for (unsigned int i = 0; i < 2; i++) {
		check(ulrpc_close(rig->rpc[i]) == 0);
		lnet_close(rig->node[i]);
	}
}

/* ---- in a child ---- */

#define GONE(call)                                                          \
	do {                                                                \
		int rc = (call);                                            \
		if (rc != -ESHUTDOWN) {                                     \
			fprintf(stderr, "in a child: %s: %d\n", #call, rc); \
			_exit(1);                                           \
		}                                                           \
	} while (0)

static int never(void *arg)
{
	(void)arg;
	_exit(1);
}

static void never_run(void *arg)
{
	(void)arg;
	_exit(1);
}

static void never_worked(struct ulnet_work *work)
{
	never(work);
}

static void never_done(void *arg, const struct ulrpc_outcome *outcome,
		       const void *reply, size_t length)
{
	(void)outcome;
	(void)reply;
	(void)length;
	never(arg);
}

static void never_pinged(void *arg, int status,
			 const struct ulnet_ping_info *ping)
{
	(void)status;
	(void)ping;
	never(arg);
}

static void never_discovered(void *arg, int status)
{
	(void)status;
	never(arg);
}

static void lnet_fails(struct rig *rig)
{
	static struct ulnet_work work = { .fn = never_worked };
	struct ulnet_id to = { rig->nid[1], 12345 };
	struct ulnet_ni_conf ni = { .nid = rig->nid[1] };
	struct ulnet_md md = { .start = rig->memory, .length = 16 };
	struct lnet *node = rig->node[0];
	struct ulnet_peer_info peer;
	struct ulnet_ni_info info;
	struct ulnet_eq_handle eq;
	struct ulnet_md_handle mdh;
	struct ulnet_me_handle me;
	struct ulnet_routing routing;
	struct ulnet_thread *thread;
	struct ulnet_fault fault;
	struct ulnet_event event;
	struct ulnet_path path;
	struct ulnet_route route = { LNET_NET(LNET_TYPE_SOCK, 7), rig->nid[1],
				     1, 0 };
	struct ulnet_nid nid;
	void *shared;
	int which;

	GONE(LNetPut(rig->nid[0], rig->md, LNET_ACK_REQ, to, 50, 1, 0, 0));
	GONE(LNetGet(rig->nid[0], rig->md, to, 50, 1, 0));
	GONE(LNetMDBind(node, &md, LNET_RETAIN, &mdh));
	GONE(LNetMDAttach(rig->me, &md, LNET_RETAIN, &mdh));
	GONE(LNetMEAttach(node, 51, to, 1, 0, LNET_RETAIN, LNET_INS_AFTER,
			  &me));
	GONE(LNetMEUnlink(rig->me));
	GONE(LNetMDUnlink(rig->md));
	GONE(LNetEQAlloc(node, 4, &eq));
	GONE(LNetEQGet(rig->eq, &event));
	GONE(LNetEQPoll(&rig->eq, 1, UINT64_MAX, &event, &which));
	GONE(LNetEQFree(rig->eq));
	GONE(LNetClearLazyPortal(node, 50));
	GONE(LNetGetId(node, 0, &to));
	GONE(lnet_ping(node, to, 0, never_pinged, NULL));
	GONE(lnet_discover(node, &rig->nid[1], 0, never_discovered, NULL));
	GONE(lnet_poll(node, UINT64_MAX));
	GONE(lnet_fd(node));
	GONE(lnet_call(node, 1, never, NULL));
	GONE(lnet_ni_add(node, &ni));
	GONE(lnet_ni_del(node, &rig->nid[0]));
	GONE(lnet_ni_info(node, 0, &info));
	GONE(lnet_ni_set_health(node, NULL, 1000));
	GONE(lnet_peer_set_health(node, NULL, 1000));
	GONE(lnet_peer_set_health(node, &rig->nid[1], 1000));
	GONE(lnet_peer_info(node, &rig->nid[1], &peer));
	GONE(lnet_peers(node, &peer, 1));
	GONE(lnet_peer_add(node, &rig->nid[1], 1, true));
	GONE(lnet_peer_del(node, &rig->nid[1], NULL, 0));
	GONE(lnet_primary(node, &rig->nid[1], &nid));
	GONE(lnet_route_add(node, &route));
	GONE(lnet_route_del(node, route.net, &route.gateway));
	GONE(lnet_routes(node, NULL, 0));
	lnet_routing(node, &routing);
	GONE(lnet_routing_set(node, &routing));
	GONE(lnet_policies(node, NULL, 0));
	GONE(lnet_policy_del(node, 0));
	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 2;
	GONE(lnet_fault_add(node, &fault));
	GONE(lnet_fault_list(node, LNET_FAULT_DROP, NULL, 0));
	GONE(lnet_fault_reset(node, LNET_FAULT_DROP));
	GONE(lnet_path_explain(node, NULL, &rig->nid[1], &path, NULL, 0));
	GONE(lnet_mem_register(node, rig->memory, sizeof(rig->memory)));
	GONE(lnet_mem_alloc(node, 1, &shared));
	GONE(lnet_mem_free(node, rig->memory));
	GONE(lnet_setting_set(node, "retry_count", 3));
	GONE(lnet_stats_reset(node));
	GONE(lnet_thread_start(node, never_run, NULL, &thread));
	lnet_post(node, 1, &work);
	check(lnet_cpt_of(node, &rig->nid[1]) == -1);
	check(!lnet_cpt_owned(node, 0) && lnet_cpt_current(node) == -1);
	lnet_thread_join(rig->thread);
}

static void rpc_fails(struct rig *rig)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	struct ulrpc_client_conf client = { .service = "fork",
					    .nids = &rig->nid[1],
					    .nnids = 1 };
	uint32_t method = ulrpc_method("echo");
	const struct ulrpc_method_conf method_conf = { .name = "echo",
						       .handler = on_echo };
	struct ulrpc_service_conf service;
	struct ulrpc_result result;
	struct ulrpc_service *svc;
	struct ulrpc_outcome o;
	struct ulrpc_client *c;
	struct ulrpc *rpc;
	char *yaml;

	ulrpc_service_conf_init(&service);
	service.name = "another";
	service.methods = &method_conf;
	service.nmethods = 1;
	GONE(ulrpc_call(rig->client, method, "x", 1, &conf, never_done, NULL,
			NULL));
	GONE(ulrpc_call_wait(rig->client, method, "x", 1, &conf, NULL, 0, NULL,
			     &o));
	GONE(ulrpc_set_call(rig->set, rig->client, method, "x", 1, &conf, NULL,
			    NULL));
	GONE(ulrpc_set_wait(rig->set, ULRPC_SET_ALL, UINT64_MAX));
	GONE(ulrpc_set_next(rig->set, &result));
	GONE(ulrpc_set_fd(rig->set));
	GONE(ulrpc_client_open(rig->rpc[0], &client, &c));
	GONE(ulrpc_open(rig->node[0], NULL, &rpc));
	GONE(ulrpc_shutdown(rig->rpc[1], 0, NULL, NULL));
	GONE(ulrpc_stats(rig->rpc[0], &yaml));
	GONE(ulrpc_stats_reset(rig->rpc[0]));
	GONE(ulrpc_method_declare(rig->rpc[0], "m"));
	GONE(ulrpc_control(rig->rpc[0], rig->control));
	GONE(ulrpc_service_start(rig->rpc[1], &service, &svc));
}

static void control_fails(struct rig *rig)
{
	struct lnet_control *control;
	char *answer;

	GONE(lnet_ctl_request(rig->ctl, "net show:\n", 0, &answer));
	GONE(lnet_control_request(rig->control, "net show:\n", &answer));
	GONE(lnet_control_remember(rig->control, NULL));
	GONE(lnet_control_del(rig->control, "x"));
	GONE(lnet_control_start(rig->node[0], NULL, &control));
}

static void all_close(struct rig *rig)
{
	lnet_ctl_close(rig->ctl);
	check(sockets() == rig->sockets);
	lnet_control_stop(rig->control);
	ulrpc_set_free(rig->set);
	ulrpc_bulk_close(rig->bulk, NULL, NULL);
	ulrpc_client_close(rig->client);
	check(ulrpc_service_stop(rig->service, UINT64_MAX) == 0);
	for (unsigned int i = 0; i < 2; i++) {
		check(ulrpc_close(rig->rpc[i]) == 0);
		lnet_close(rig->node[i]);
	}
}

/* A node of the child's own works. (ThreadSanitizer ends a child that starts
 * threads.) */
static void own_node(void)
{
#ifndef __SANITIZE_THREAD__
	struct ulnet_conf conf;
	struct ulrpc *rpc;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.accept = LNET_ACCEPT_NONE;
	must(lnet_open(&conf, &node), "node of a child");
	check(!lnet_is_forked(node));
	must(ulrpc_open(node, NULL, &rpc), "RPC of a child");
	check(ulrpc_close(rpc) == 0);
	lnet_close(node);
#endif
}

static void child(struct rig *rig)
{
	check(lnet_is_forked(rig->node[0]) && lnet_is_forked(rig->node[1]));
	/* A copy of a socket would hide the end of the parent from its peers.
	 * lnet_ctl_close() closes that of lnet_ctl_connect(). */
	check(sockets() == rig->sockets + 1);
	lnet_fails(rig);
	rpc_fails(rig);
	control_fails(rig);
	all_close(rig);
	own_node();
	_exit(atomic_load(&failures) ? 1 : 0);
}

/* In a handler: what a child may do is the same, and it ends there. */
static void end_there(struct rig *rig, struct ulrpc_request *r)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };

	GONE(ulrpc_call(rig->client, ulrpc_method("echo"), "x", 1, &conf,
			never_done, NULL, NULL));
	GONE(ulrpc_bulk_get_wait(r, 0, 0, NULL, 0));
	ulrpc_reply(r, "from the child", 14);
	_exit(0);
}

/* Or it does not end, which is a mistake. */
static void go_on(struct rig *rig, struct ulrpc_request *r)
{
	(void)rig;
	/* The message is for those who make the mistake unawares. */
	BUG_ON(!freopen("/dev/null", "w", stderr));
	ulrpc_reply(r, "from the child", 14);
}

static void handlers_fork(struct rig *rig)
{
	static const char *const methods[] = { "fork", "fork worker" };

	for (unsigned int i = 0; i < ARRAY_SIZE(methods); i++) {
		rig->in_child = end_there;
		call(rig, methods[i]);
		check(WIFEXITED(rig->status) && WEXITSTATUS(rig->status) == 0);
		rig->in_child = go_on;
		call(rig, methods[i]);
		check(WIFSIGNALED(rig->status) &&
		      WTERMSIG(rig->status) == SIGABRT);
	}
}

int main(void)
{
	static struct rig rig;
	int status;
	pid_t pid;

	rig_up(&rig);
	call(&rig, "echo");
	sockets_remember(&rig);
	for (unsigned int i = 0; i < 3; i++) {
		pid = fork_child();
		if (pid == 0)
			child(&rig);
		for (unsigned int n = 0; n < CALLS; n++)
			call(&rig, "echo");
		status = end_of(pid);
		check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		call(&rig, "echo");
	}
	handlers_fork(&rig);
	sockets_are_there(&rig);
	rig_down(&rig);
	check(!lnet_in_turn());
	return atomic_load(&failures) ? 1 : 0;
}
