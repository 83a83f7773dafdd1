/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One server and many clients, each a node with an address of its own, over TCP
 * on the loopback interface: what grows with their number, and what does not.
 *
 *	growth CLIENTS SECONDS OUTAGE
 *
 * All clients make their first call at once; then each has one call of 64 bytes
 * under way for SECONDS; then all are idle for SECONDS; then the server is
 * killed, while they go on calling, and started again after OUTAGE seconds.
 * Prints:
 *
 *	storm-median N, storm-last N	ms until a client had its first reply
 *	rate N				calls per second, of all clients
 *	server-ns N, client-ns N	ns of processor time for each call
 *	idle N				percent of a core that the server uses
 *	server-bytes N, client-bytes N	resident memory for each client
 *	recovery-median N, recovery-last N
 *		ms from when the server was there again to a client's next reply
 *
 * The server is a process, and so are up to NODES clients each; they share the
 * memory in which the results are.
 */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/duo.h"
#include "bench/node.h"

#define NODES	    1000
#define CLIENTS_MAX 65536
#define SIZE	    64
#define DEADLINE    UINT64_C(1000000) /* us, of a call */
#define TICK	    0.005	      /* s, between two checks of the phase */
#define PATIENCE    300		      /* s, that a phase may take */

enum phase { OPENING, STORM, LOAD, IDLE, OUTAGE, END };

/* Shared by all processes. */
struct shared {
	_Atomic enum phase phase;
	_Atomic unsigned int open, served, recovered; /* numbers of clients */
	_Atomic uint64_t calls;
	/* ns: when the server was up again; 0: it is not */
	_Atomic uint64_t back;
	uint16_t port;
	unsigned int n;
	double first[CLIENTS_MAX], again[CLIENTS_MAX]; /* ms, for each client */
	/* ns: when the first calls began */
	uint64_t since;
};

struct client {
	struct crowd *crowd;
	unsigned int index;
	bool under_way, served, recovered;
	struct lnet *node;
	struct ulrpc_client *service;
};

/* The clients of one process. */
struct crowd {
	struct shared *s;
	struct ev_loop *loop;
	struct ev_timer tick;
	enum phase phase;
	unsigned int n;
	struct client clients[NODES];
};

/* ---- clients ---- */

static void on_reply(void *arg, const struct ulrpc_outcome *outcome,
		     const void *reply, size_t length);

static void call(struct client *c)
{
	static const unsigned char body[SIZE];
	struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					.reply_max = SIZE };

	c->under_way = true;
	must(ulrpc_call(c->service, ulrpc_method("load"), body, SIZE, &conf,
			on_reply, c, NULL),
	     "ulrpc_call");
}

static void on_reply(void *arg, const struct ulrpc_outcome *outcome,
		     const void *reply, size_t length)
{
	struct client *c = arg;
	struct shared *s = c->crowd->s;
	enum phase phase = s->phase;

	(void)reply;
	(void)length;
	c->under_way = false;
	if (outcome->status)
		return; /* the next tick makes another call */
	if (!c->served) {
		c->served = true;
		s->first[c->index] = (double)(duo_now() - s->since) / 1e6;
		s->served++;
	}
	if (phase == LOAD) {
		s->calls++;
		call(c);
	}
	if (phase == OUTAGE && s->back && !c->recovered) {
		c->recovered = true;
		s->again[c->index] = (double)(duo_now() - s->back) / 1e6;
		s->recovered++;
	}
}

/* Does the client need a call under way, and have none? */
static bool wants(const struct client *c, enum phase phase)
{
	if (c->under_way)
		return false;
	if (phase == STORM)
		return !c->served;
	if (phase == OUTAGE)
		return !c->recovered;
	return phase == LOAD;
}

static void on_tick(struct ev_loop *loop, struct ev_timer *tick, int revents)
{
	struct crowd *crowd = tick->data;
	enum phase phase = crowd->s->phase;

	(void)revents;
	for (unsigned int i = 0; i < crowd->n; i++)
		if (wants(&crowd->clients[i], phase))
			call(&crowd->clients[i]);
	if (phase == END)
		ev_break(loop, EVBREAK_ALL);
}

/* Clients have loopback addresses from 127.1.0.1 on. */
static void open_client(struct crowd *crowd, unsigned int i, unsigned int first)
{
	struct client *c = &crowd->clients[i];
	unsigned int n = first + i;
	char nid[64];

	c->crowd = crowd;
	c->index = n;
	snprintf(nid, sizeof(nid), "127.1.%u.%u@tcp", n / 250, 1 + n % 250);
	c->service = bench_client(
		bench_node_on(crowd->loop, nid, crowd->s->port, &c->node),
		DUO_SERVER "@tcp");
	crowd->s->open++;
}

static void clients(struct shared *s, unsigned int first, unsigned int n)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	if (!crowd)
		give_up(-ENOMEM, "clients");
	crowd->s = s;
	crowd->n = n;
	crowd->loop = ev_loop_new(EVFLAG_AUTO);
	for (unsigned int i = 0; i < n; i++)
		open_client(crowd, i, first);
	ev_timer_init(&crowd->tick, on_tick, TICK, TICK);
	crowd->tick.data = crowd;
	ev_timer_start(crowd->loop, &crowd->tick);
	ev_run(crowd->loop, 0);
	_exit(0);
}

/* ---- the server ---- */

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void server(struct shared *s, int ready)
{
	struct lnet *node;

	bench_serve(bench_node(DUO_SERVER "@tcp", s->port, &node), on_request,
		    NULL);
	duo_ready(ready);
	for (;;)
		must(lnet_poll(node, UINT64_MAX), "lnet_poll");
}

/* ---- who measures ---- */

static pid_t fork_child(void)
{
	pid_t child = fork();

	must_sys(child, "fork");
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

static pid_t start_server(struct shared *s)
{
	int fds[2];
	pid_t child;
	char byte;

	must_sys(pipe(fds), "pipe");
	child = fork_child();
	if (!child)
		server(s, fds[1]);
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		must(-EPIPE, "the server");
	close(fds[0]);
	return child;
}

/* Returns number @field of /proc/@pid/@file, counted from 0; the first two
 * fields of "stat" are not counted. */
static unsigned long proc(pid_t pid, const char *file, int field)
{
	char path[64], text[1024], *p;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "r");
	if (!f)
		give_up(-errno, path);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	p = strrchr(text, ')');
	p = strtok(p ? p + 2 : text, " ");
	while (p && field--)
		p = strtok(NULL, " ");
	return p ? strtoul(p, NULL, 10) : 0;
}

static double cpu(pid_t pid) /* Returns the processor time of a process, s. */
{
	return (double)(proc(pid, "stat", 11) + proc(pid, "stat", 12)) /
	       (double)sysconf(_SC_CLK_TCK);
}

/* Returns the resident memory of a process, bytes. */
static double resident(pid_t pid)
{
	return (double)proc(pid, "statm", 1) * (double)sysconf(_SC_PAGESIZE);
}

static double sum(double (*of)(pid_t pid), const pid_t *pids, unsigned int n)
{
	double all = 0;

	for (unsigned int i = 0; i < n; i++)
		all += of(pids[i]);
	return all;
}

static void await(_Atomic unsigned int *count, unsigned int n, const char *what)
{
	uint64_t until = duo_now() + PATIENCE * UINT64_C(1000000000);

	while (*count < n) {
		if (duo_now() > until)
			must(-ETIMEDOUT, what);
		usleep(2000);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_times(const char *what, double *ms, unsigned int n)
{
	qsort(ms, n, sizeof(*ms), compare);
	printf("%s-median %.1f\n%s-last %.1f\n", what, ms[n / 2], what,
	       ms[n - 1]);
}

int main(int argc, char **argv)
{
	struct shared *s = duo_shared(sizeof(*s));
	pid_t crowds[CLIENTS_MAX / NODES + 1], serving;
	double used, used_clients, bytes, bytes_clients;
	unsigned int seconds, outage, ncrowds = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: growth CLIENTS SECONDS OUTAGE\n");
		return 2;
	}
	s->n = (unsigned int)strtoul(argv[1], NULL, 10);
	seconds = (unsigned int)strtoul(argv[2], NULL, 10);
	outage = (unsigned int)strtoul(argv[3], NULL, 10);
	if (!s->n || s->n > CLIENTS_MAX - 1000 || !seconds)
		must(-EINVAL, "arguments");
	duo_more_files();
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	s->port = duo_free_port();
	serving = start_server(s);
	bytes = resident(serving);
	for (unsigned int i = 0; i < s->n; i += NODES) {
		crowds[ncrowds] = fork_child();
		if (!crowds[ncrowds++])
			clients(s, i, s->n - i < NODES ? s->n - i : NODES);
	}
	await(&s->open, s->n, "opening clients");

	s->since = duo_now();
	s->phase = STORM;
	await(&s->served, s->n, "first calls");
	bytes = (resident(serving) - bytes) / s->n;
	bytes_clients = sum(resident, crowds, ncrowds) / s->n;

	used = cpu(serving);
	used_clients = sum(cpu, crowds, ncrowds);
	s->phase = LOAD;
	sleep(seconds);
	used = (cpu(serving) - used) / (double)s->calls;
	used_clients =
		(sum(cpu, crowds, ncrowds) - used_clients) / (double)s->calls;
	print_times("storm", s->first, s->n);
	printf("rate %.0f\n", (double)s->calls / seconds);
	printf("server-ns %.0f\nclient-ns %.0f\n", used * 1e9,
	       used_clients * 1e9);

	s->phase = IDLE;
	sleep(1); /* until calls that are under way have ended */
	used = cpu(serving);
	sleep(seconds);
	printf("idle %.2f\n", 100 * (cpu(serving) - used) / seconds);
	printf("server-bytes %.0f\nclient-bytes %.0f\n", bytes, bytes_clients);

	s->phase = OUTAGE;
	must_sys(kill(serving, SIGKILL), "kill");
	must_sys(waitpid(serving, NULL, 0), "waitpid");
	sleep(outage);
	serving = start_server(s);
	s->back = duo_now();
	await(&s->recovered, s->n, "recovery");
	print_times("recovery", s->again, s->n);

	s->phase = END;
	for (unsigned int i = 0; i < ncrowds; i++)
		must_sys(waitpid(crowds[i], NULL, 0), "waitpid");
	kill(serving, SIGKILL);
	waitpid(serving, NULL, 0);
	return 0;
}
