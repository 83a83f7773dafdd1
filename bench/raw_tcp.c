/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two processes can get out of TCP over the loopback interface with
 * nothing between them and the system calls: what bench/tcp is compared with.
 * bench/tcp.sh calls it.
 *
 *	raw_tcp WHAT MODE SIZE DEPTH CHUNK MS
 *
 * prints one number. WHAT:
 *	echo	a message of SIZE goes and comes back: median, us
 *	echo2	the same, but it comes back on a second connection, as LNet's
 *		bulk does: TCP's own ACKs then find nothing to ride on
 *	batch	DEPTH messages go in one send() and come back: messages/s
 *	bounce	DEPTH messages go to and fro, what has come at once goes back in
 *		send()s of up to CHUNK bytes, at least a message: messages/s
 *	write	messages of SIZE go, each is answered by a token, DEPTH of them
 *		are outstanding; CHUNK bytes (0: all) for each send(): bytes/s
 *	read	a token asks for each message, which comes back: bytes/s
 *	connect	SIZE connections are made, and accepted: ms
 * MODE:
 *	poll	both processes spin
 *	epoll	epoll_wait(), as an event loop does
 *	block	recv() waits (echo, batch, bounce)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/duo.h"

#define TOKEN 16 /* bytes */

enum mode { MODE_POLL, MODE_EPOLL, MODE_BLOCK };

struct raw {
	const char *what;
	enum mode mode;
	size_t size, depth, chunk;
	uint64_t ns; /* length of the measurement */
	struct sockaddr_in server;
	int in, out; /* the same connection, or one for each direction */
	int epfd, listener;
};

/* ---- sockets ---- */

static bool is_echo(const struct raw *r)
{
	return !strncmp(r->what, "echo", 4) || !strcmp(r->what, "batch") ||
	       !strcmp(r->what, "bounce");
}

static int raw_socket(struct raw *r, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int one = 1;

	if (!is_echo(r))
		ev.events |= EPOLLOUT;
	must_sys(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)),
		 "TCP_NODELAY");
	must_sys(epoll_ctl(r->epfd, EPOLL_CTL_ADD, fd, &ev), "epoll_ctl");
	return fd;
}

static void raw_wait(struct raw *r)
{
	struct epoll_event ev;

	if (r->mode == MODE_EPOLL)
		must_sys(epoll_wait(r->epfd, &ev, 1, -1), "epoll_wait");
}

/* Returns the number of bytes received; 0: none now; -1: the other end has
 * closed. */
static ssize_t raw_recv(struct raw *r, void *buf, size_t size)
{
	ssize_t n = recv(r->in, buf, size,
			 r->mode == MODE_BLOCK ? 0 : MSG_DONTWAIT);

	if (n > 0)
		return n;
	if (n == 0 || errno == ECONNRESET)
		return -1;
	if (errno != EAGAIN)
		must_sys(n, "recv");
	return 0;
}

static ssize_t raw_send(struct raw *r, const void *buf, size_t size)
{
	ssize_t n =
		send(r->out, buf, size,
		     MSG_NOSIGNAL | (r->mode == MODE_BLOCK ? 0 : MSG_DONTWAIT));

	if (n >= 0)
		return n;
	if (errno == ECONNRESET || errno == EPIPE)
		return -1;
	if (errno != EAGAIN)
		must_sys(n, "send");
	return 0;
}

/* Sends all bytes. Returns false if the other end has closed. */
static bool raw_send_all(struct raw *r, const unsigned char *buf, size_t size)
{
	while (size) {
		ssize_t n = raw_send(r, buf, size);

		if (n < 0)
			return false;
		buf += n;
		size -= (size_t)n;
	}
	return true;
}

/* ---- there and back ---- */

/* Waits before it reads, as an event loop does. */
static bool recv_exactly(struct raw *r, unsigned char *buf, size_t size)
{
	while (size) {
		ssize_t n;

		raw_wait(r);
		n = raw_recv(r, buf, size);
		if (n < 0)
			return false;
		buf += n;
		size -= (size_t)n;
	}
	return true;
}

static void echo_server(struct raw *r)
{
	size_t size = r->size * r->depth;
	unsigned char *buf = duo_buffer(size);
	ssize_t n;

	for (;;) {
		raw_wait(r);
		n = raw_recv(r, buf, size);
		if (n < 0 || !raw_send_all(r, buf, (size_t)n))
			break;
	}
	free(buf);
}

static void echo_once(struct raw *r, unsigned char *out, unsigned char *in)
{
	size_t size = r->size * r->depth;

	/* each message has another stamp */
	++*(uint64_t *)(void *)out;
	if (!raw_send_all(r, out, size) || !recv_exactly(r, in, size))
		must(-EPIPE, "the server");
	if (memcmp(out, in, sizeof(uint64_t)) != 0)
		must(-EBADMSG, "echo");
}

static double echo_client(struct raw *r)
{
	size_t size = r->size * r->depth;
	unsigned char *out = duo_buffer(size), *in = duo_buffer(size);
	struct duo_times *times = duo_buffer(sizeof(*times));
	uint64_t begin, now, n = 0;
	double v;

	duo_fill(out, size);
	for (begin = duo_now(); duo_now() - begin < DUO_WARM_NS;)
		echo_once(r, out, in);
	begin = now = duo_now();
	while (now - begin < r->ns) {
		uint64_t before = now;

		echo_once(r, out, in);
		now = duo_now();
		duo_times_add(times, now - before);
		n += r->depth;
	}
	duo_verify(in, sizeof(uint64_t), size);
	v = strcmp(r->what, "batch") ? duo_times_median(times)
				     : (double)n * 1e9 / (double)(now - begin);
	free(times);
	free(in);
	free(out);
	return v;
}

/* ---- to and fro, without waiting for all of them ---- */

struct bouncer {
	unsigned char *buf; /* memory of DEPTH messages */
	size_t have;	    /* bytes */
	bool counting;	    /* on the client, messages are numbered */
	uint64_t bounced;   /* messages that came back */
};

/* Checks the numbers of messages that came back, which go on from b->bounced,
 * and adds DEPTH to each, under which the message is sent again. */
static void renumber(struct raw *r, struct bouncer *b, unsigned char *p,
		     size_t size)
{
	for (; size; size -= r->size, p += r->size) {
		uint64_t number;

		memcpy(&number, p, sizeof(number));
		if (number != b->bounced++)
			must(-EBADMSG, "message");
		number += r->depth;
		memcpy(p, &number, sizeof(number));
	}
}

/* Sends back what has come. Returns 1: something had come; 0: nothing; -1: the
 * other end has closed. */
static int bouncer_turn(struct raw *r, struct bouncer *b)
{
	unsigned char *p = b->buf;
	ssize_t n = raw_recv(r, p + b->have, r->size * r->depth - b->have);
	size_t size;

	if (n <= 0)
		return (int)n;
	for (b->have += (size_t)n; b->have >= r->size; b->have -= size) {
		size = b->have < r->chunk ? b->have : r->chunk;
		size -= size % r->size;
		if (b->counting)
			renumber(r, b, p, size);
		if (!raw_send_all(r, p, size))
			return -1;
		p += size;
	}
	memmove(b->buf, p, b->have);
	return 1;
}

static void bounce_server(struct raw *r)
{
	struct bouncer b = { .buf = duo_buffer(r->size * r->depth) };
	int did;

	while ((did = bouncer_turn(r, &b)) >= 0)
		if (!did)
			raw_wait(r);
	free(b.buf);
}

static void bounce_begin(struct raw *r)
{
	unsigned char *message = duo_buffer(r->size);

	duo_fill(message, r->size);
	for (uint64_t i = 0; i < r->depth; i++) {
		memcpy(message, &i, sizeof(i));
		if (!raw_send_all(r, message, r->size))
			must(-EPIPE, "the server");
	}
	free(message);
}

/* ---- one way, with tokens the other way ---- */

struct writer {
	unsigned char *bufs;
	uint64_t allowed, sent; /* messages */
	size_t pos;		/* bytes sent of the message in progress */
	size_t token_bytes;
};

struct reader {
	unsigned char *bufs;
	uint64_t received; /* messages */
	size_t pos;
};

/* Returns the buffer for message @number, of those that are used in turn. */
static unsigned char *place(struct raw *r, unsigned char *bufs, uint64_t number)
{
	return bufs + number % DUO_BUFFERS * r->size;
}

/* Sends what can be sent now, without waiting. Returns 1: something was sent;
 * 0: nothing; -1: the other end has closed. */
static int writer_send(struct raw *r, struct writer *w)
{
	int did = 0;

	while (w->sent < w->allowed) {
		unsigned char *p = place(r, w->bufs, w->sent);
		size_t rest = r->size - w->pos;
		ssize_t n;

		if (!w->pos)
			memcpy(p, &w->sent, sizeof(w->sent));
		n = raw_send(r, p + w->pos, rest < r->chunk ? rest : r->chunk);
		if (n <= 0)
			return n < 0 ? -1 : did;
		did = 1;
		w->pos += (size_t)n;
		if (w->pos == r->size) {
			w->pos = 0;
			w->sent++;
		}
		/* with small pieces, read tokens now and then */
		if (!w->pos)
			break;
	}
	return did;
}

static int writer_turn(struct raw *r, struct writer *w)
{
	unsigned char tokens[TOKEN * 64];
	int did = writer_send(r, w);
	ssize_t n = did < 0 ? -1 : raw_recv(r, tokens, sizeof(tokens));

	if (n < 0)
		return -1;
	w->token_bytes += (size_t)n;
	w->allowed += w->token_bytes / TOKEN;
	w->token_bytes %= TOKEN;
	return did || n;
}

static int reader_turn(struct raw *r, struct reader *d)
{
	static const unsigned char token[TOKEN];
	unsigned char *p = place(r, d->bufs, d->received);
	ssize_t n = raw_recv(r, p + d->pos, r->size - d->pos);

	if (n <= 0)
		return (int)n;
	d->pos += (size_t)n;
	if (d->pos < r->size)
		return 1;
	if (memcmp(p, &d->received, sizeof(d->received)) != 0)
		must(-EBADMSG, "message");
	d->pos = 0;
	d->received++;
	return raw_send_all(r, token, TOKEN) ? 1 : -1;
}

static void writer_init(struct raw *r, struct writer *w, uint64_t allowed)
{
	*w = (struct writer){ .bufs = duo_buffer(r->size * DUO_BUFFERS),
			      .allowed = allowed };
	for (uint64_t i = 0; i < DUO_BUFFERS; i++)
		duo_fill(place(r, w->bufs, i), r->size);
}

static void reader_init(struct raw *r, struct reader *d)
{
	*d = (struct reader){ .bufs = duo_buffer(r->size * DUO_BUFFERS) };
}

static void reader_fini(struct raw *r, struct reader *d)
{
	for (uint64_t i = 0; i < DUO_BUFFERS && i < d->received; i++)
		if (i != d->received % DUO_BUFFERS)
			duo_verify(place(r, d->bufs, i), sizeof(uint64_t),
				   r->size);
	free(d->bufs);
}

static void write_server(struct raw *r)
{
	struct reader d;
	int did;

	reader_init(r, &d);
	while ((did = reader_turn(r, &d)) >= 0)
		if (!did)
			raw_wait(r);
	reader_fini(r, &d);
}

static void read_server(struct raw *r)
{
	struct writer w;
	int did;

	writer_init(r, &w, 0);
	while ((did = writer_turn(r, &w)) >= 0)
		if (!did)
			raw_wait(r);
	free(w.bufs);
}

/* Runs turn() for @ns. */
#define RUN_FOR(r, turn, state, ns)                         \
	do {                                                \
		uint64_t begin_ = duo_now();                \
		int did_;                                   \
                                                            \
		do {                                        \
			did_ = turn(r, state);              \
			if (did_ < 0)                       \
				must(-EPIPE, "the server"); \
			if (!did_)                          \
				raw_wait(r);                \
		} while (duo_now() - begin_ < (ns));        \
	} while (0)

static double bounce_client(struct raw *r)
{
	struct bouncer b = { .buf = duo_buffer(r->size * r->depth),
			     .counting = true };
	uint64_t begin, had;
	double v;

	bounce_begin(r);
	RUN_FOR(r, bouncer_turn, &b, DUO_WARM_NS);
	had = b.bounced;
	begin = duo_now();
	RUN_FOR(r, bouncer_turn, &b, r->ns);
	v = (double)(b.bounced - had) * 1e9 / (double)(duo_now() - begin);
	free(b.buf);
	return v;
}

static double write_client(struct raw *r)
{
	struct writer w;
	uint64_t begin, had;

	writer_init(r, &w, r->depth);
	RUN_FOR(r, writer_turn, &w, DUO_WARM_NS);
	had = w.allowed;
	begin = duo_now();
	RUN_FOR(r, writer_turn, &w, r->ns);
	free(w.bufs);
	return (double)(w.allowed - had) * (double)r->size * 1e9 /
	       (double)(duo_now() - begin);
}

static double read_client(struct raw *r)
{
	unsigned char *tokens = duo_buffer(TOKEN * r->depth);
	struct reader d;
	uint64_t begin, had;
	double v;

	reader_init(r, &d);
	raw_send_all(r, tokens, TOKEN * r->depth);
	RUN_FOR(r, reader_turn, &d, DUO_WARM_NS);
	had = d.received;
	begin = duo_now();
	RUN_FOR(r, reader_turn, &d, r->ns);
	v = (double)(d.received - had) * (double)r->size * 1e9 /
	    (double)(duo_now() - begin);
	reader_fini(r, &d);
	free(tokens);
	return v;
}

/* ---- many connections ---- */

static void allow_files(size_t n)
{
	struct rlimit l;

	must_sys(getrlimit(RLIMIT_NOFILE, &l), "getrlimit");
	l.rlim_cur = l.rlim_max < n + 64 ? l.rlim_max : n + 64;
	must_sys(setrlimit(RLIMIT_NOFILE, &l), "setrlimit");
}

static void connect_server(struct raw *r, int listener)
{
	for (size_t i = 0; i < r->size; i++)
		r->in = (int)must_sys(
			accept4(listener, NULL, NULL, SOCK_NONBLOCK),
			"accept4");
	must_sys(write(r->in, "", 1), "write");
}

static double connect_client(struct raw *r)
{
	uint64_t begin = duo_now();
	char byte;

	for (size_t i = 0; i < r->size; i++) {
		r->in = (int)must_sys(socket(AF_INET, SOCK_STREAM, 0),
				      "socket");
		must_sys(connect(r->in, (struct sockaddr *)&r->server,
				 sizeof(r->server)),
			 "connect");
	}
	must_sys(read(r->in, &byte, 1), "read");
	r->out = r->in;
	return (double)(duo_now() - begin) / 1e6;
}

/* ---- what can be measured ---- */

static const struct what {
	const char *name;
	void (*server)(struct raw *r);
	double (*client)(struct raw *r);
} whats[] = {
	{ "echo", echo_server, echo_client },
	{ "echo2", echo_server, echo_client },
	{ "batch", echo_server, echo_client },
	{ "bounce", bounce_server, bounce_client },
	{ "write", write_server, write_client },
	{ "read", read_server, read_client },
	{ "connect", NULL, connect_client },
};

static const struct what *what_of(const char *name)
{
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
		if (!strcmp(whats[i].name, name))
			return &whats[i];
	return NULL;
}

static int raw_accept(struct raw *r, int listener)
{
	return raw_socket(
		r, (int)must_sys(accept(listener, NULL, NULL), "accept"));
}

static int raw_connect(struct raw *r)
{
	struct sockaddr_in self = duo_address(DUO_CLIENT, 0);
	int fd = (int)must_sys(socket(AF_INET, SOCK_STREAM, 0), "socket");

	must_sys(bind(fd, (struct sockaddr *)&self, sizeof(self)), "bind");
	must_sys(connect(fd, (struct sockaddr *)&r->server, sizeof(r->server)),
		 "connect");
	return raw_socket(r, fd);
}

static int listener_of(struct raw *r)
{
	int fd = (int)must_sys(socket(AF_INET, SOCK_STREAM, 0), "socket");
	socklen_t len = sizeof(r->server);

	r->server = duo_address(DUO_SERVER, 0);
	must_sys(bind(fd, (struct sockaddr *)&r->server, len), "bind");
	must_sys(getsockname(fd, (struct sockaddr *)&r->server, &len),
		 "getsockname");
	must_sys(listen(fd, 4096), "listen");
	return fd;
}

static void server(void *arg, int ready)
{
	struct raw *r = arg;
	int listener = r->listener;

	duo_ready(ready);
	if (!what_of(r->what)->server) {
		connect_server(r, listener);
		return;
	}
	r->epfd = (int)must_sys(epoll_create1(0), "epoll_create1");
	r->in = r->out = raw_accept(r, listener);
	if (!strcmp(r->what, "echo2"))
		r->out = raw_accept(r, listener);
	what_of(r->what)->server(r);
}

static double client(struct raw *r)
{
	double v;

	if (what_of(r->what)->server) {
		r->epfd = (int)must_sys(epoll_create1(0), "epoll_create1");
		r->in = r->out = raw_connect(r);
		if (!strcmp(r->what, "echo2"))
			r->in = raw_connect(r);
	}
	v = what_of(r->what)->client(r);
	close(r->in);
	if (r->out != r->in)
		close(r->out);
	return v;
}

static int usage(void)
{
	fprintf(stderr, "usage: raw_tcp echo|echo2|batch|bounce|write|read|"
			"connect poll|epoll|block SIZE DEPTH CHUNK MS\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "poll", "epoll", "block" };
	struct raw r = { 0 };
	pid_t child;

	if (argc != 7 || !what_of(argv[1]))
		return usage();
	r.what = argv[1];
	while (r.mode <= MODE_BLOCK && strcmp(argv[2], modes[r.mode]) != 0)
		r.mode++;
	r.size = strtoull(argv[3], NULL, 0);
	r.depth = strtoull(argv[4], NULL, 0);
	r.chunk = strtoull(argv[5], NULL, 0);
	r.ns = strtoull(argv[6], NULL, 0) * 1000000;
	if (r.mode > MODE_BLOCK || !r.depth || r.size < sizeof(uint64_t))
		return usage();
	r.chunk = r.chunk ? r.chunk : r.size;
	if (r.chunk < r.size && !strcmp(r.what, "bounce"))
		return usage();
	if (!what_of(r.what)->server)
		allow_files(r.size);
	r.listener = listener_of(&r);
	child = duo_fork(server, &r);
	printf("%.3f\n", client(&r));
	duo_wait(child);
	return 0;
}
