/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two processes get out of ulnet over TCP on the loopback interface.
 * bench/tcp.sh calls it, and bench/raw_tcp for the bounds. Built a second time
 * it is bench/shm, over shared memory, and bench/raw_shm has its bounds.
 *
 *	tcp [shared] [NAME=VALUE] WHAT MODE SIZE DEPTH CREDITS AMOUNT
 *
 * prints one number. WHAT:
 *	echo	a PUT of SIZE goes and comes back as a PUT, no ACKs: median, us
 *	flood	PUTs of SIZE without ACK, up to DEPTH more than the receiver has
 *		confirmed; it confirms each DEPTH / 4 of them: PUTs/s
 *	put	PUTs of SIZE with ACK, DEPTH outstanding: PUTs/s
 *	get	GETs of SIZE, DEPTH outstanding: GETs/s
 *	rpc	what an RPC does with LNet: a match entry and memory for the
 *		reply, a PUT of two fragments to a buffer that takes many, a
 *		PUT back to the entry, which then goes; no ACKs: median, us
 *	calls	the same, DEPTH outstanding: 1/s
 * MODE:
 *	poll	both processes spin in lnet_poll(node, 0)
 *	block	both wait in lnet_poll()
 *	threads	the library runs the loop; the client is a plain thread with an
 *		event queue, on the same core (not flood, rpc, calls)
 *	lo	one process sends to itself on 0@lo, spinning
 * CREDITS: messages that may be given to the LND at once; 0: the library's
 * default. AMOUNT: milliseconds, or with an "n" behind it operations.
 * NAME=VALUE: a tunable of both nodes' interfaces, copy_min=0 for example.
 * shared: what is sent lies in memory of lnet_mem_alloc(3).
 */
#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ulnet/lnet.h>

#include "bench/duo.h"

#ifndef OVER_SHM
#define OVER_SHM 0
#endif

#define BITS	UINT64_C(0x62656e6368)
#define TIMEOUT 20000000 /* us, of each operation */
/* turns of the loop between two readings of the clock */
#define TURNS 8
/* Flag in a message's number: all before it have come. (While connections are
 * being opened, messages may overtake each other.) */
#define IN_ORDER (UINT64_C(1) << 63)

enum portal {
	PORTAL_ECHO = 10, /* server: PUTs each message back */
	PORTAL_FLOOD,	  /* server: counts PUTs */
	PORTAL_SINK,	  /* server: destination of PUTs */
	PORTAL_SOURCE,	  /* server: source of GETs */
	PORTAL_QUIT,	  /* server: a PUT ends the measurement */
	/* server: requests, many in a buffer, which are answered */
	PORTAL_REQUESTS,
	PORTAL_BACK,	/* client: echoes, and counts of FLOOD */
	PORTAL_REPLIES, /* client: replies, with an entry for each */
};

/* RPCs: bytes of the first fragment of a request; bytes of the longest request;
 * bytes of a server's buffer, and number of such buffers. */
#define RPC_HEAD    16
#define RPC_MAX	    UINT32_C(65536)
#define RPC_BUFFER  (64 * RPC_MAX)
#define RPC_BUFFERS 2

enum mode { MODE_POLL, MODE_BLOCK, MODE_THREADS, MODE_LO };

/* One process; with MODE_LO the client and the server. */
struct side {
	const struct what *what;
	enum mode mode;
	uint32_t size, credits;
	uint64_t depth;
	/* ns: length of the measurement; or number of messages */
	uint64_t ns, count;
	uint16_t port;
	struct ulnet_tunable tunable;
	unsigned int ntunables;
	bool shared;

	struct lnet *node;
	unsigned char *out, *in; /* memory for DUO_BUFFERS messages of size */
	/* client: one for each buffer */
	struct ulnet_md_handle md[DUO_BUFFERS];

	/* server: the MD of its answers */
	struct ulnet_md_handle reply_md;
	unsigned char *requests; /* server: RPC_BUFFERS of RPC_BUFFER bytes */
	uint64_t got;

	/* both: the PUT that ends the measurement came, or was sent */
	sem_t quit;
	bool quitting;

	/* client */
	struct ulnet_id server;
	struct ulnet_eq_handle eq; /* MODE_THREADS */
	uint64_t begun, done;	   /* operations */
	uint64_t order;		   /* IN_ORDER, or 0 */
	uint64_t end;		   /* ns: when the measurement ends */
	bool enough;		   /* no more messages may begin */
	uint64_t began;		   /* ns: begin of the last echo */
	struct duo_times *times;   /* NULL: nothing is timed */
};

struct what {
	const char *name;
	/* Sends the first messages. */
	void (*start)(struct side *s);
	/* Runs in a plain thread, until s->end. */
	void (*threads)(struct side *s);
	ulnet_handler_fn on_active; /* the handler for events of operations */
	/* one operation at a time, which is timed */
	bool timed;
	bool is_rpc;
};

static void flood_begin(struct side *s);

/* Is this the event of a message? (Otherwise the MD of an idle side has ended.)
 */
static bool check_event(const struct ulnet_event *ev)
{
	if (!ev->status)
		return ev->type != LNET_EVENT_UNLINK;
	fprintf(stderr, "tcp: %s: %s (%s)\n", lnet_event_name(ev->type),
		strerror(-ev->status), lnet_cause_name(ev->cause));
	exit(1);
}

/* ---- memory ---- */

static struct ulnet_md_handle attach(struct side *s, enum portal portal,
				     void *start, uint32_t length,
				     unsigned int options, ulnet_handler_fn fn)
{
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_me_handle me;
	struct ulnet_md_handle h;
	struct ulnet_md md = { .start = start,
			       .length = length,
			       .threshold = LNET_MD_THRESH_INF,
			       .options = options | LNET_MD_MANAGE_REMOTE,
			       .user_ptr = s,
			       .handler = fn };

	if (s->eq.node && portal == PORTAL_BACK) {
		md.handler = NULL;
		md.eq = s->eq;
	}
	must(LNetMEAttach(s->node, portal, any, BITS, 0, LNET_RETAIN,
			  LNET_INS_AFTER, &me),
	     "LNetMEAttach");
	must(LNetMDAttach(me, &md, LNET_RETAIN, &h), "LNetMDAttach");
	return h;
}

static struct ulnet_md_handle bind_md(struct side *s, void *start,
				      uint32_t length, ulnet_handler_fn fn)
{
	struct ulnet_md_handle h;
	struct ulnet_md md = { .start = start,
			       .length = length,
			       .threshold = LNET_MD_THRESH_INF,
			       .user_ptr = s,
			       .handler = fn,
			       .timeout = TIMEOUT };

	if (s->eq.node) {
		md.handler = NULL;
		md.eq = s->eq;
	}
	must(LNetMDBind(s->node, &md, LNET_RETAIN, &h), "LNetMDBind");
	return h;
}

static void put(struct ulnet_md_handle md, struct ulnet_id to,
		enum portal portal, enum ulnet_ack_req ack, uint32_t offset,
		uint64_t data)
{
	must(LNetPut(LNET_NID_ANY, md, ack, to, portal, BITS, offset, data),
	     "LNetPut");
}

/* ---- server ---- */

static void on_sent(const struct ulnet_event *ev)
{
	check_event(ev);
}

static void on_echo(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	if (!check_event(ev))
		return;
	put(s->reply_md, ev->initiator, PORTAL_BACK, LNET_NOACK_REQ, 0,
	    ev->hdr_data);
}

/* FLOOD: returns after how many PUTs the server confirms them. */
static uint64_t confirmed(const struct side *s)
{
	return s->depth < 4 ? 1 : s->depth / 4;
}

static void on_flood(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	if (!check_event(ev))
		return;
	if (ev->hdr_data & IN_ORDER && (ev->hdr_data & ~IN_ORDER) != s->got)
		must(-EBADMSG, "order of PUTs");
	s->got++;
	if (s->got % confirmed(s) == 0)
		put(s->reply_md, ev->initiator, PORTAL_BACK, LNET_NOACK_REQ, 0,
		    s->got);
}

/* RPC: a full buffer is unlinked, and attached again as the last one. */
static void on_request(const struct ulnet_event *ev);

static void post_buffer(struct side *s, unsigned char *start)
{
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_me_handle me;
	struct ulnet_md_handle h;
	struct ulnet_md md = { .start = start,
			       .length = RPC_BUFFER,
			       .threshold = LNET_MD_THRESH_INF,
			       .max_size = RPC_MAX,
			       .options = LNET_MD_OP_PUT | LNET_MD_MAX_SIZE,
			       .user_ptr = s,
			       .handler = on_request };

	must(LNetMEAttach(s->node, PORTAL_REQUESTS, any, 0, ~UINT64_C(0),
			  LNET_UNLINK, LNET_INS_AFTER, &me),
	     "LNetMEAttach");
	must(LNetMDAttach(me, &md, LNET_UNLINK, &h), "LNetMDAttach");
}

static void on_request(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;
	struct ulnet_md_handle h;
	struct ulnet_md md = { .start = (char *)ev->md_start + ev->offset,
			       .length = ev->mlength,
			       .threshold = 1,
			       .handler = on_sent };

	if (!check_event(ev))
		return;
	must(LNetMDBind(s->node, &md, LNET_UNLINK, &h), "LNetMDBind");
	must(LNetPut(ev->target.nid, h, LNET_NOACK_REQ, ev->initiator,
		     PORTAL_REPLIES, ev->match_bits, 0, ev->hdr_data),
	     "LNetPut");
	if (ev->unlinked)
		post_buffer(s, ev->md_start);
}

static void on_quit(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	if (!check_event(ev))
		return;
	s->quitting = true;
	sem_post(&s->quit);
}

static void serve(struct side *s)
{
	unsigned char *in = s->in, *out = s->out;
	uint32_t all = s->size * DUO_BUFFERS;
	uint32_t reply = s->what->start == flood_begin ? 0 : s->size;

	s->reply_md = bind_md(s, in, reply, on_sent);
	attach(s, PORTAL_ECHO, in, all, LNET_MD_OP_PUT, on_echo);
	attach(s, PORTAL_FLOOD, in, all, LNET_MD_OP_PUT, on_flood);
	attach(s, PORTAL_SINK, in, all, LNET_MD_OP_PUT, on_sent);
	attach(s, PORTAL_SOURCE, out, all, LNET_MD_OP_GET, on_sent);
	attach(s, PORTAL_QUIT, in, 0, LNET_MD_OP_PUT, on_quit);
	for (uint32_t i = 0; s->what->is_rpc && i < RPC_BUFFERS; i++)
		post_buffer(s, s->requests + i * RPC_BUFFER);
}

/* ---- client: what is measured ---- */

/* Returns the offset of the buffer for message @number: large messages use
 * several in turn. */
static uint32_t place(const struct side *s, uint64_t number)
{
	return (uint32_t)(number % DUO_BUFFERS) * s->size;
}

static bool may_begin(struct side *s)
{
	/* on 0@lo a turn lasts as long as each event begins another operation
	 */
	if (s->mode == MODE_LO && duo_now() >= s->end)
		s->enough = true;
	return !s->enough && s->begun < s->count &&
	       s->begun - s->done < s->depth;
}

/* Returns the MD of the next operation: large ones use the buffers in turn. */
static struct ulnet_md_handle md_of(const struct side *s)
{
	return s->md[s->begun % DUO_BUFFERS];
}

static void echo_begin(struct side *s)
{
	if (!may_begin(s))
		return;
	s->began = duo_now();
	put(md_of(s), s->server, PORTAL_ECHO, LNET_NOACK_REQ, 0, s->begun);
	s->begun++;
}

static void flood_begin(struct side *s)
{
	while (may_begin(s) || s->begun % confirmed(s)) {
		put(md_of(s), s->server, PORTAL_FLOOD, LNET_NOACK_REQ, 0,
		    s->begun | s->order);
		s->begun++;
	}
}

static void put_begin(struct side *s)
{
	while (may_begin(s)) {
		put(md_of(s), s->server, PORTAL_SINK, LNET_ACK_REQ,
		    place(s, s->begun), s->begun);
		s->begun++;
	}
}

static void get_begin(struct side *s)
{
	while (may_begin(s)) {
		must(LNetGet(LNET_NID_ANY, md_of(s), s->server, PORTAL_SOURCE,
			     BITS, place(s, s->begun)),
		     "LNetGet");
		s->begun++;
	}
}

static void on_reply(const struct ulnet_event *ev);

static void rpc_begin(struct side *s)
{
	while (may_begin(s)) {
		uint64_t bits = BITS + s->begun;
		uint32_t head = s->size < RPC_HEAD ? s->size : RPC_HEAD;
		struct iovec iov[] = { { s->out, head },
				       { s->out + head, s->size - head } };
		struct ulnet_me_handle me;
		struct ulnet_md_handle h;
		struct ulnet_md reply = { .start = s->in + place(s, s->begun),
					  .length = s->size,
					  .threshold = LNET_MD_THRESH_INF,
					  .options = LNET_MD_OP_PUT,
					  .user_ptr = s,
					  .handler = on_reply };
		struct ulnet_md request = { .start = iov,
					    .length = 2,
					    .threshold = 1,
					    .options = LNET_MD_IOVEC,
					    .timeout = TIMEOUT,
					    .handler = on_sent };

		s->began = s->times ? duo_now() : 0;
		must(LNetMEAttach(s->node, PORTAL_REPLIES, s->server, bits, 0,
				  LNET_UNLINK, LNET_INS_AFTER, &me),
		     "LNetMEAttach");
		must(LNetMDAttach(me, &reply, LNET_RETAIN, &h), "LNetMDAttach");
		must(LNetMDBind(s->node, &request, LNET_UNLINK, &h),
		     "LNetMDBind");
		must(LNetPut(LNET_NID_ANY, h, LNET_NOACK_REQ, s->server,
			     PORTAL_REQUESTS, bits, 0, s->begun),
		     "LNetPut");
		s->begun++;
	}
}

static void on_reply(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	if (!check_event(ev))
		return;
	must(LNetMDUnlink(ev->md), "LNetMDUnlink");
	if (ev->mlength != s->size || ev->match_bits - BITS != ev->hdr_data)
		must(-EBADMSG, "reply");
	if (s->times)
		duo_times_add(s->times, duo_now() - s->began);
	s->done++;
	rpc_begin(s);
}

static void echo_back(struct side *s, const struct ulnet_event *ev)
{
	if (s->times)
		duo_times_add(s->times, duo_now() - s->began);
	if (ev->hdr_data != s->done++ || ev->mlength != s->size)
		must(-EBADMSG, "echo");
}

static void on_back(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	if (!check_event(ev))
		return;
	if (s->what->start == flood_begin)
		s->done = ev->hdr_data;
	else
		echo_back(s, ev);
	s->what->start(s);
}

static bool counts(const struct side *s, const struct ulnet_event *ev)
{
	if (!check_event(ev) || !ev->terminal)
		return false;
	if (ev->outcome != LNET_OUTCOME_DELIVERED || ev->mlength != s->size)
		must(-EBADMSG, "outcome");
	return true;
}

static void on_operation(const struct ulnet_event *ev)
{
	struct side *s = ev->user_ptr;

	if (!counts(s, ev))
		return;
	s->done++;
	s->what->start(s);
}

/* Waits for the next event, in a plain thread. */

static void next_event(struct side *s, struct ulnet_event *ev)
{
	int rc = LNetEQPoll(&s->eq, 1, TIMEOUT, ev, NULL);

	must(rc ? rc : -ETIMEDOUT, "LNetEQPoll");
	check_event(ev);
}

static void threads_echo(struct side *s)
{
	struct ulnet_event ev;

	while (duo_now() < s->end && s->begun < s->count) {
		echo_begin(s);
		do {
			next_event(s, &ev);
		} while (ev.type != LNET_EVENT_PUT);
		echo_back(s, &ev);
	}
}

static void threads_operations(struct side *s)
{
	struct ulnet_event ev;

	for (;;) {
		s->enough = duo_now() >= s->end;
		s->what->start(s);
		if (s->done == s->begun)
			break;
		next_event(s, &ev);
		s->done += counts(s, &ev);
	}
	s->enough = false;
}

static const struct what whats[] = {
	{ "echo", echo_begin, threads_echo, on_sent, true, false },
	{ "flood", flood_begin, NULL, on_sent, false, false },
	{ "put", put_begin, threads_operations, on_operation, false, false },
	{ "get", get_begin, threads_operations, on_operation, false, false },
	{ "rpc", rpc_begin, NULL, on_sent, true, true },
	{ "calls", rpc_begin, NULL, on_sent, false, true },
};

/* ---- nodes ---- */

#define NID_SIZE 64

/* Writes the NID of the node that has @address on TCP. */
static void nid_of(const struct side *s, const char *address,
		   char nid[NID_SIZE])
{
	/* The port is free, so nobody else's numbers come from it. */
	if (OVER_SHM)
		snprintf(nid, NID_SIZE, "%u@shm",
			 2u * s->port + !strcmp(address, DUO_SERVER));
	else
		snprintf(nid, NID_SIZE, "%s@tcp", address);
}

/* Memory for what is sent: zeroed and present, as that of duo_buffer(). */
static void *out_buffer(const struct side *s, size_t size)
{
	void *p;

	if (!s->shared)
		return duo_buffer(size);
	must(lnet_mem_alloc(s->node, size, &p), "lnet_mem_alloc");
	return memset(p, 0, size);
}

static void open_node(struct side *s, const char *address)
{
	static const enum ulnet_run runs[] = { LNET_RUN_POLL, LNET_RUN_POLL,
					       LNET_RUN_THREADS,
					       LNET_RUN_POLL };
	struct ulnet_ni_conf ni = { .credits = s->credits,
				    .peer_credits = s->credits,
				    .tunables = &s->tunable,
				    .ntunables = s->ntunables };
	struct ulnet_conf conf;
	char nid[NID_SIZE];

	lnet_conf_init(&conf);
	conf.run = runs[s->mode];
	conf.port = s->port;
	must(lnet_open(&conf, &s->node), "lnet_open");
	s->out = out_buffer(s, (size_t)s->size * DUO_BUFFERS);
	s->in = duo_buffer((size_t)s->size * DUO_BUFFERS);
	if (s->what->is_rpc)
		s->requests = duo_buffer((size_t)RPC_BUFFERS * RPC_BUFFER);
	for (uint64_t i = 0; i < DUO_BUFFERS; i++)
		duo_fill(s->out + place(s, i), s->size);
	if (s->mode == MODE_LO)
		return;
	nid_of(s, address, nid);
	must(lnet_nid_parse(nid, &ni.nid), nid);
	must(lnet_ni_add(s->node, &ni), nid);
}

static void close_node(struct side *s)
{
	lnet_close(s->node);
	if (!s->shared)
		free(s->out);
	free(s->in);
	free(s->requests);
}

static void turns(struct side *s)
{
	if (s->mode == MODE_BLOCK)
		must(lnet_poll(s->node, 1000000), "lnet_poll");
	for (int i = 0; i < TURNS && s->mode != MODE_BLOCK; i++)
		must(lnet_poll(s->node, 0), "lnet_poll");
}

/* Waits until the PUT that ends the measurement has come, or was sent. */
static void await_quit(struct side *s)
{
	if (s->mode == MODE_THREADS)
		while (sem_wait(&s->quit))
			;
	while (s->mode != MODE_THREADS && !s->quitting)
		turns(s);
}

static void drain(struct side *s)
{
	while (s->mode != MODE_THREADS && s->begun != s->done)
		turns(s);
}

static void server(void *arg, int ready)
{
	struct side *s = arg;

	open_node(s, DUO_SERVER);
	serve(s);
	duo_ready(ready);
	await_quit(s);
	if (s->what->is_rpc)
		duo_verify(s->requests, 0, s->size);
	else if (s->what->start != get_begin)
		duo_verify(s->in, 0, s->size);
	close_node(s);
}

static int drive_start(void *arg)
{
	struct side *s = arg;

	s->what->start(s);
	return 0;
}

/* Measures for @ns. Then waits until nothing is under way. */
static void drive(struct side *s, uint64_t ns, uint64_t *done, uint64_t *took)
{
	uint64_t begin = duo_now(), had = s->done;

	s->enough = false;
	s->end = ns > UINT64_MAX - begin ? UINT64_MAX : begin + ns;
	if (s->mode == MODE_THREADS) {
		s->what->threads(s);
	} else {
		must(lnet_call(s->node, 0, drive_start, s), "lnet_call");
		while (duo_now() < s->end &&
		       (s->begun < s->count || s->begun != s->done))
			turns(s);
	}
	*done = s->done - had;
	*took = duo_now() - begin;
	s->enough = true;
}

static void client_quit(struct side *s)
{
	struct ulnet_md_handle md;

	drain(s);
	s->eq = LNET_EQ_NONE;
	md = bind_md(s, s->out, 0, on_quit);
	put(md, s->server, PORTAL_QUIT, LNET_NOACK_REQ, 0, 0);
	await_quit(s);
}

static double client(struct side *s)
{
	bool get = s->what->start == get_begin;
	bool timed = s->what->timed;
	char nid[NID_SIZE];
	uint64_t done, took;

	if (s->mode == MODE_LO)
		snprintf(nid, sizeof(nid), "0@lo");
	else
		nid_of(s, DUO_SERVER, nid);
	must(lnet_nid_parse(nid, &s->server.nid), "NID");
	s->server.pid = LNET_PID_LUSTRE;
	if (s->mode == MODE_THREADS)
		must(LNetEQAlloc(s->node, (uint32_t)s->depth * 4 + 64, &s->eq),
		     "LNetEQAlloc");
	attach(s, PORTAL_BACK, s->in, s->size, LNET_MD_OP_PUT, on_back);
	for (uint64_t i = 0; i < DUO_BUFFERS; i++)
		s->md[i] = bind_md(s, (get ? s->in : s->out) + place(s, i),
				   s->size, s->what->on_active);
	/* A measurement with a count has no warm-up: each operation is counted.
	 */
	if (s->count == UINT64_MAX) {
		drive(s, DUO_WARM_NS, &done, &took);
		drain(s);
		s->order = IN_ORDER;
	}
	if (timed)
		s->times = duo_buffer(sizeof(*s->times));
	drive(s, s->ns, &done, &took);
	if (get || timed || s->what->is_rpc)
		duo_verify(s->in, 0, s->size);
	return timed ? duo_times_median(s->times)
		     : (double)done * 1e9 / (double)took;
}

static double measure(struct side *s)
{
	pid_t child = 0;
	double v;

	sem_init(&s->quit, 0, 0);
	if (s->mode != MODE_LO) {
		s->port = duo_free_port();
		child = duo_fork(server, s);
	}
	open_node(s, DUO_CLIENT);
	if (s->mode == MODE_LO)
		serve(s);
	v = client(s);
	client_quit(s);
	if (child)
		duo_wait(child);
	close_node(s);
	free(s->times);
	return v;
}

/* ---- arguments ---- */

static int usage(void)
{
	fprintf(stderr, "usage: tcp [shared] [TUNABLE=VALUE] "
			"echo|flood|put|get|rpc|calls poll|block|threads|lo "
			"SIZE DEPTH CREDITS MS|NUMBERn\n");
	return 2;
}

static bool parse(struct side *s, char **argv)
{
	static const char *const modes[] = { "poll", "block", "threads", "lo" };
	char *end;

	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
		if (!strcmp(argv[1], whats[i].name))
			s->what = &whats[i];
	while (s->mode <= MODE_LO && strcmp(argv[2], modes[s->mode]) != 0)
		s->mode++;
	s->size = (uint32_t)strtoul(argv[3], NULL, 0);
	s->depth = strtoull(argv[4], NULL, 0);
	s->credits = (uint32_t)strtoul(argv[5], NULL, 0);
	s->ns = strtoull(argv[6], &end, 0) * 1000000;
	s->count = UINT64_MAX;
	if (*end == 'n') {
		s->count = s->ns / 1000000;
		s->ns = UINT64_MAX;
	}
	return s->what && s->mode <= MODE_LO && s->depth && s->size &&
	       s->size <= LNET_MTU && (!s->what->timed || s->depth == 1) &&
	       (!s->what->is_rpc || s->size <= RPC_MAX) &&
	       (s->mode != MODE_THREADS || s->what->threads);
}

/* @text may be NAME=VALUE, which then is cut there, and has to stay. */
static bool parse_tunable(struct side *s, char *text)
{
	char *end, *value = text ? strchr(text, '=') : NULL;

	if (!value)
		return false;
	*value++ = '\0';
	s->tunable.name = text;
	s->tunable.value = strtoll(value, &end, 0);
	s->ntunables = 1;
	return end != value && !*end;
}

int main(int argc, char **argv)
{
	struct side s = { .eq = { NULL, 0 } };

	if (argc > 1 && !strcmp(argv[1], "shared")) {
		s.shared = true;
		argc--;
		argv++;
	}
	if (parse_tunable(&s, argv[1])) {
		argc--;
		argv++;
	}
	if (argc != 7 || !parse(&s, argv))
		return usage();
	printf("%.3f\n", measure(&s));
	return 0;
}
