/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/attack/victims.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ulnet/service.h"

/* us: of a call, which then ends well or not; of the last calls, when the
 * attacker does nothing any more, and which have to end well. */
#define DEADLINE      (10 * UINT64_C(1000000))
#define LAST_DEADLINE (300 * UINT64_C(1000000))
#define INFLIGHT      12
#define LAST	      16 /* calls */

#define BODY_MAX 400u
#define LONG	 2500u /* a reply that is fetched */
#define SEGMENTS 3u
#define BULK_MAX (SEGMENTS * 9000u)

static void check_ok(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

/* ---- what is right ---- */

enum what { BODY = 1, REPLY, SOURCE, SINK };

/* Of whom something is, at the beginning of a body, and of what number. */
struct label {
	uint32_t client, number;
};

/* Each byte is known from the call, and no two calls have the same. */
static void fill(uint8_t *p, size_t n, struct label l, enum what what)
{
	uint32_t x = l.number * 2654435761u + l.client * 40503u + what;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (uint8_t)(x >> 24);
	}
	if (n >= sizeof(l) + sizeof(MARKER))
		memcpy(p + n - sizeof(MARKER), MARKER, sizeof(MARKER));
	if (what == BODY)
		memcpy(p, &l, sizeof(l));
}

static bool is_right(const void *p, size_t n, struct label l, enum what what)
{
	uint8_t *right = malloc(n ? n : 1);
	bool is;

	BUG_ON(!right);
	fill(right, n, l, what);
	is = !memcmp(p, right, n);
	free(right);
	return is;
}

enum method { PLAIN, FETCHED, MOVED, METHODS };

static const char *const method_names[METHODS] = { "plain", "fetched",
						   "moved" };

static enum method method_of(uint32_t number)
{
	return number % 8 == 7 ? FETCHED : number % 4 == 1 ? MOVED : PLAIN;
}

static uint32_t body_length(uint32_t number)
{
	return sizeof(struct label) + sizeof(MARKER) + number * 7 % 300;
}

static uint32_t segment_of(uint32_t number)
{
	return number % 32 == 1 ? 9000 : 700;
}

/* ---- a node ---- */

static struct lnet *node_up(const struct victims *v, unsigned int i)
{
	static const struct ulnet_tunable tunables[] = {
		{ "min_reconnectms", 1 },
		{ "max_reconnectms", 20 },
		{ "conns_per_peer", 1 },
		{ "tls", 1 },
	};
	struct ulnet_ni_conf ni = { .tunables = tunables };
	struct ulnet_conf conf;
	struct lnet *node;
	char nid[LNET_NIDSTR_SIZE];
	bool server = i == CLIENTS;
	unsigned int last = server ? SERVER : v->address[i];

	lnet_conf_init(&conf);
	/* What LNet tells without TLS, anybody can change: peers would be lost
	 * for as long as the attacker likes. */
	conf.discovery = v->tls ? LNET_DISCOVERY_ON : LNET_DISCOVERY_OFF;
	conf.port = server ? v->behind : v->at;
	conf.accept = server ? LNET_ACCEPT_ALL : LNET_ACCEPT_NONE;
	conf.cpts = server ? 2 : 1;
	conf.keys = v->tls ? v->keys[i] : NULL;
	ni.ntunables = ARRAY_SIZE(tunables) - !v->tls;
	snprintf(nid, sizeof(nid), "127.0.0.%u@tcp", last);
	check_ok(lnet_nid_parse(nid, &ni.nid), nid);
	check_ok(lnet_open(&conf, &node), "node");
	check_ok(lnet_ni_add(node, &ni), nid);
	return node;
}

static struct ulrpc *rpc_up(const struct victims *v, unsigned int i,
			    struct lnet *node)
{
	struct ulrpc_conf conf;
	struct ulrpc *rpc;

	ulrpc_conf_init(&conf);
	if (v->flavour != ULRPC_FLAVOUR_NONE)
		conf.keys = v->keys[i];
	check_ok(ulrpc_open(node, &conf, &rpc), "RPC");
	return rpc;
}

static void count(void *arg, const struct ulrpc_counter *c)
{
	uint64_t *n = arg;

	if (!c->service && (!strcmp(c->name, "seals_broken") ||
			    !strcmp(c->name, "seals_repeated")))
		*n += c->value;
}

static void count_seals(struct victims *v, struct ulrpc *rpc)
{
	uint64_t n = 0;

	check_ok(ulrpc_counters(rpc, count, &n), "counters");
	atomic_fetch_add(&v->tally->seals, (unsigned int)n);
}

/* ---- the server ---- */

static void complain(struct victims *v, const char *what, struct label l)
{
	atomic_fetch_add(&v->tally->forged, 1);
	if (v->flavour != ULRPC_FLAVOUR_NONE || v->tls)
		fprintf(stderr, "call %u of client %u: %s\n", l.number,
			l.client, what);
}

/* Is the request one that a client has made, as it is, and this client? */
static bool is_genuine(struct victims *v, struct ulrpc_request *r,
		       const void *body, size_t length, struct label *l)
{
	struct ulrpc_request_info info;
	struct ulrpc_peer peer;

	*l = (struct label){ 0 };
	if (length >= sizeof(*l))
		memcpy(l, body, sizeof(*l));
	ulrpc_request_info(r, &info);
	ulrpc_request_peer(r, &peer);
	if (l->client >= CLIENTS || l->number >= CALLS_MAX ||
	    length != body_length(l->number) ||
	    !is_right(body, length, *l, BODY) ||
	    strcmp(info.method_name, method_names[method_of(l->number)]))
		complain(v, "a request that nobody has made", *l);
	else if (v->flavour != ULRPC_FLAVOUR_NONE &&
		 (peer.flavour < v->flavour ||
		  strcmp(peer.name, v->name[l->client])))
		complain(v, "a request of another", *l);
	else
		return true;
	ulrpc_fail(r, -EBADMSG);
	return false;
}

static void executes(struct victims *v, struct label l)
{
	if (atomic_fetch_add(&v->tally->client[l.client].executed[l.number], 1))
		complain(v, "executed again", l);
}

static void on_call(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct victims *v = arg;
	uint8_t reply[LONG];
	struct label l;

	if (!is_genuine(v, r, body, length, &l))
		return;
	executes(v, l);
	if (method_of(l.number) == FETCHED)
		length = LONG;
	fill(reply, length, l, REPLY);
	ulrpc_reply(r, reply, length);
}

/* Gets a source, and puts a sink. */
static void on_move(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	static _Thread_local uint8_t memory[BULK_MAX];
	struct victims *v = arg;
	struct iovec iov = { memory, 0 };
	uint8_t reply[BODY_MAX];
	struct label l;
	int rc;

	if (!is_genuine(v, r, body, length, &l))
		return;
	executes(v, l);
	iov.iov_len = SEGMENTS * segment_of(l.number);
	rc = ulrpc_bulk_get_wait(r, 0, 0, &iov, 1);
	if (!rc && !is_right(memory, iov.iov_len, l, SOURCE))
		complain(v, "bulk that was altered, at the server", l);
	fill(memory, iov.iov_len, l, SINK);
	if (!rc)
		rc = ulrpc_bulk_put_wait(r, 1, 0, &iov, 1);
	fill(reply, length, l, REPLY);
	if (rc)
		ulrpc_fail(r, rc);
	else
		ulrpc_reply(r, reply, length);
}

static void service_up(struct victims *v, struct ulrpc *rpc)
{
	struct ulrpc_method_conf methods[METHODS] = {
		[PLAIN] = { .handler = on_call, .run = ULRPC_RUN_INLINE },
		[FETCHED] = { .handler = on_call },
		[MOVED] = { .handler = on_move },
	};
	struct ulrpc_service_conf conf;

	for (unsigned int i = 0; i < METHODS; i++) {
		methods[i].name = method_names[i];
		methods[i].arg = v;
	}
	ulrpc_service_conf_init(&conf);
	conf.name = "victim";
	conf.methods = methods;
	conf.nmethods = METHODS;
	conf.workers_min = conf.workers_max = 2 * INFLIGHT;
	conf.flavour = v->flavour;
	check_ok(ulrpc_service_start(rpc, &conf, NULL), "service");
}

/* @end: the test lets go of its end of the pipe. */
static int server_run(struct victims *v, int ready, int end)
{
	struct lnet *node = node_up(v, CLIENTS);
	struct ulrpc *rpc = rpc_up(v, CLIENTS, node);
	char byte;

	service_up(v, rpc);
	for (unsigned int i = 1; i < ADDRESSES; i++) {
		struct ulnet_nid nid;
		char text[LNET_NIDSTR_SIZE];

		snprintf(text, sizeof(text), "127.0.0.%u@tcp", i);
		check_ok(lnet_nid_parse(text, &nid), text);
		v->tally->cpt[i] = (uint8_t)lnet_cpt_of(node, &nid);
	}
	BUG_ON(write(ready, "", 1) != 1);
	while (read(end, &byte, 1) < 0)
		;
	count_seals(v, rpc);
	lnet_close(node);
	return 0;
}

/* ---- a client ---- */

/* A call that may be in flight, with the memory that it lends. */
struct slot {
	struct caller *caller;
	struct label label;
	struct ulrpc_bulk *bulk[2];
	uint8_t memory[2][BULK_MAX];
	sem_t mine; /* the memory is not lent */
};

struct caller {
	struct victims *v;
	unsigned int me;
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	struct ulrpc_set *set;
	uint32_t next; /* number of the next call */
	struct slot slots[INFLIGHT];
	bool last; /* the attacker has gone */
	unsigned int bad;
};

static void on_released(void *arg)
{
	struct slot *s = arg;

	sem_post(&s->mine);
}

static void lend(struct slot *s)
{
	uint32_t segment = segment_of(s->label.number);

	for (unsigned int i = 0; i < 2; i++) {
		struct iovec iov = { s->memory[i], SEGMENTS * segment };
		const struct ulrpc_bulk_conf conf = {
			.iov = &iov,
			.niov = 1,
			.access = i ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE,
			.flags = ULRPC_BULK_CHECKSUM,
			.segment = segment,
		};

		sem_wait(&s->mine);
		fill(s->memory[i], iov.iov_len, s->label, SOURCE);
		check_ok(ulrpc_bulk_new(s->caller->rpc, &conf, &s->bulk[i]),
			 "bulk");
	}
}

static void take_back(struct slot *s)
{
	for (unsigned int i = 0; i < 2; i++)
		ulrpc_bulk_close(s->bulk[i], on_released, s);
}

static void call(struct slot *s)
{
	struct caller *c = s->caller;
	struct ulrpc_call_conf conf = { .deadline = c->last ? LAST_DEADLINE
							    : DEADLINE };
	enum method method;
	uint8_t body[BODY_MAX];
	uint32_t n;

	if (c->next == CALLS_MAX) {
		fprintf(stderr, "client %u: no number is left\n", c->me);
		exit(1);
	}
	s->label = (struct label){ c->me, c->next++ };
	method = method_of(s->label.number);
	n = body_length(s->label.number);
	fill(body, n, s->label, BODY);
	conf.reply_max = method == FETCHED ? 100 : BODY_MAX;
	if (method == MOVED) {
		lend(s);
		conf.bulks = s->bulk;
		conf.nbulks = 2;
	}
	check_ok(ulrpc_set_call(c->set, c->client,
				ulrpc_method(method_names[method]), body, n,
				&conf, s, NULL),
		 "call");
	atomic_fetch_add(&c->v->tally->client[c->me].made, 1);
}

/* A call has ended well: is the reply its own? */
static void check_reply(struct slot *s, const struct ulrpc_result *r)
{
	struct victims *v = s->caller->v;
	enum method method = method_of(s->label.number);
	size_t n = method == FETCHED ? LONG : body_length(s->label.number);

	if (r->length != n || !is_right(r->reply, n, s->label, REPLY))
		complain(v, "a reply that was altered", s->label);
	if (method == MOVED &&
	    !is_right(s->memory[1], SEGMENTS * segment_of(s->label.number),
		      s->label, SINK))
		complain(v, "bulk that was altered, at the client", s->label);
	atomic_fetch_add(&v->tally->client[s->caller->me].good, 1);
}

/* Takes a result, and gives its slot back. */
static struct slot *hear(struct caller *c)
{
	struct ulrpc_result r;
	struct slot *s;
	bool good;

	check_ok(MIN(0, ulrpc_set_wait(c->set, 1, ULRPC_NEVER)), "wait");
	check_ok(ulrpc_set_next(c->set, &r), "result");
	s = r.arg;
	good = r.outcome.cause == ULRPC_CAUSE_OK;
	if (good)
		check_reply(s, &r);
	c->v->tally->client[c->me].told[s->label.number] =
		good ? TOLD_GOOD : (uint8_t)(1 + r.outcome.execution);
	if (!good && c->last) {
		fprintf(stderr,
			"client %u: the attacker has gone, but: %s %s\n", c->me,
			ulrpc_cause_name(r.outcome.cause), r.outcome.text);
		c->bad++;
	}
	if (method_of(s->label.number) == MOVED)
		take_back(s);
	free(r.reply);
	return s;
}

static void session_begin(struct caller *c)
{
	struct ulnet_nid server;
	struct ulrpc_client_conf conf;

	ulrpc_client_conf_init(&conf);
	check_ok(lnet_nid_parse("127.0.0.2@tcp", &server), "NID");
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = "victim";
	conf.batch_max = 2;
	conf.flavour = c->v->flavour;
	c->rpc = rpc_up(c->v, c->me, c->node);
	check_ok(ulrpc_client_open(c->rpc, &conf, &c->client), "client");
	check_ok(ulrpc_set_new(c->rpc, &c->set), "set");
}

static void session_end(struct caller *c)
{
	count_seals(c->v, c->rpc);
	ulrpc_set_free(c->set);
	ulrpc_client_close(c->client);
	check_ok(ulrpc_close(c->rpc), "close");
}

/* Makes @n calls, or fewer when all is over. */
static void session(struct caller *c, unsigned int n)
{
	unsigned int under_way = 0, made = 0;

	session_begin(c);
	for (; made < MIN(n, (unsigned int)INFLIGHT); made++, under_way++)
		call(&c->slots[made]);
	while (under_way) {
		struct slot *s = hear(c);

		under_way--;
		if (made == n || (!c->last && atomic_load(&c->v->tally->over)))
			continue;
		call(s);
		made++;
		under_way++;
	}
	session_end(c);
}

static int client_run(struct victims *v, unsigned int me)
{
	struct caller *c = calloc(1, sizeof(*c));

	BUG_ON(!c);
	c->v = v;
	c->me = me;
	c->node = node_up(v, me);
	for (unsigned int i = 0; i < INFLIGHT; i++) {
		c->slots[i].caller = c;
		BUG_ON(sem_init(&c->slots[i].mine, 0, 2));
	}
	while (!atomic_load(&v->tally->over))
		session(c, atomic_load(&v->tally->session));
	c->last = true;
	session(c, LAST);
	lnet_close(c->node);
	me = c->bad;
	free(c);
	return me ? 1 : 0;
}

/* ---- processes ---- */

/* Files of the test's, such as its connections, must end when it closes them.
 */
static void keep_only(int a, int b)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fd != a && fd != b)
			close(fd);
}

/* Returns 0 in the new process, with its ends of two pipes. */
static pid_t begin(struct victims *v, unsigned int i, int ready[2], int end[2])
{
	pid_t pid;

	BUG_ON(pipe(ready) || pipe(end));
	fflush(NULL);
	pid = fork();
	BUG_ON(pid < 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		keep_only(ready[1], end[0]);
		lnet_log_set(LNET_LOG_ERR, NULL, NULL);
		return 0;
	}
	close(ready[1]);
	close(end[0]);
	v->pid[i] = pid;
	v->life[i] = ready[0];
	return pid;
}

static int server_end = -1;

void victims_serve(struct victims *v)
{
	int ready[2], end[2];
	char byte;

	if (!begin(v, CLIENTS, ready, end))
		exit(server_run(v, ready[1], end[0]));
	server_end = end[1];
	if (read(ready[0], &byte, 1) != 1) {
		fprintf(stderr, "the server does not begin\n");
		exit(1);
	}
}

void victims_call(struct victims *v, unsigned int client)
{
	int ready[2], end[2];

	if (!begin(v, client, ready, end))
		exit(client_run(v, client));
	close(end[1]);
}

void victims_kill_server(struct victims *v)
{
	kill(v->pid[CLIENTS], SIGKILL);
	victims_end(v, CLIENTS);
}

bool victims_end(struct victims *v, unsigned int i)
{
	int status;

	if (i == CLIENTS)
		close(server_end);
	BUG_ON(waitpid(v->pid[i], &status, 0) != v->pid[i]);
	v->pid[i] = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		printf("  a process has died: %s\n",
		       strsignal(WTERMSIG(status)));
	close(v->life[i]);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- the audit ---- */

static const char *wrong(unsigned int executed, unsigned int told)
{
	if (executed > 1)
		return "was executed more than once";
	if (told == TOLD_NOTHING)
		return "has no outcome";
	if (executed && told == 1 + ULRPC_NOT_EXECUTED)
		return "was executed, and its caller told that it was not";
	if (!executed && (told == TOLD_GOOD || told == 1 + ULRPC_EXECUTED))
		return "was not executed, and its caller told that it was";
	return NULL;
}

unsigned int victims_audit(const struct tally *t)
{
	unsigned int bad = 0;

	for (unsigned int c = 0; c < CLIENTS; c++)
		for (unsigned int i = 0; i < t->client[c].made; i++) {
			const char *why = wrong(t->client[c].executed[i],
						t->client[c].told[i]);

			if (!why)
				continue;
			printf("call %u of client %u %s\n", i, c, why);
			bad++;
		}
	return bad;
}
