/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: proxy ADDRESS PORT TO_ADDRESS TO_PORT
 * Passes TCP connections on from the first address to the second, with the
 * caller's own address, and does harm as stdin says, a line for each, which it
 * answers with "ok":
 *
 *	cut		resets all connections
 *	cut after N	resets each connection after N more bytes, in either
 *			direction, now and later; 0: no more
 *	delay N		keeps all bytes for N ms
 *	hold		passes nothing on until "go"; connections stay
 *	go
 *	swallow		throws away what comes on the connections there are
 *	refuse		accepts no more, until "accept"
 *	accept
 *	count		answers with the number of connections accepted so far
 *
 * Knows nothing of what it passes on. Ends at the end of stdin. "ready" on
 * stdout says that it listens.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 256
#define CHUNK	  65536
#define HELD_MAX  (4u << 20) /* bytes under way in one direction */

/* Bytes that were read, and are written at @due. */
struct chunk {
	struct chunk *next;
	uint64_t due; /* us */
	size_t begin, end;
	uint8_t bytes[CHUNK];
};

/* One direction of a connection. */
struct way {
	int from, to;
	struct chunk *first, **last;
	size_t held;
	bool ended; /* its source has closed */
};

struct link {
	struct way there, back;
	uint64_t left; /* bytes until it is cut; UINT64_MAX: never */
	bool swallows;
	bool used;
};

static struct link links[LINKS_MAX];
static struct sockaddr_in target;
static int listener;
static unsigned int accepted;
static uint64_t delay; /* us */
static uint64_t cut_after = UINT64_MAX;
static bool holding, refusing;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static struct sockaddr_in address_of(const char *host, const char *port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };

	sa.sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, host, &sa.sin_addr) != 1)
		errx(2, "%s: an IPv4 address is expected", host);
	return sa;
}

/* ---- connections ---- */

static void way_init(struct way *w, int from, int to)
{
	*w = (struct way){ .from = from, .to = to };
	w->last = &w->first;
}

static void way_fini(struct way *w)
{
	struct chunk *c;

	while ((c = w->first)) {
		w->first = c->next;
		free(c);
	}
}

static void link_reset(struct link *l)
{
	struct linger abort = { .l_onoff = 1 };
	int fds[] = { l->there.from, l->there.to };

	for (int i = 0; i < 2; i++) {
		setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &abort,
			   sizeof(abort));
		close(fds[i]);
	}
	way_fini(&l->there);
	way_fini(&l->back);
	l->used = false;
}

static void link_new(void)
{
	struct sockaddr_in caller;
	socklen_t size = sizeof(caller);
	int one = 1, to;
	int from = accept4(listener, (struct sockaddr *)&caller, &size,
			   SOCK_CLOEXEC);
	struct link *l = links;

	if (from < 0)
		return;
	while (l < links + LINKS_MAX && l->used)
		l++;
	if (l == links + LINKS_MAX)
		errx(1, "more than %d connections", LINKS_MAX);
	to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (to < 0)
		err(1, "socket");
	accepted++;
	/* The second connection comes from the caller's own address. This can
	 * block, but all is on this host, where nobody lets connections wait
	 * for long. */
	caller.sin_port = 0;
	if (bind(to, (struct sockaddr *)&caller, sizeof(caller)) ||
	    connect(to, (struct sockaddr *)&target, sizeof(target))) {
		close(from);
		close(to);
		return;
	}
	setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*l = (struct link){ .left = cut_after, .used = true };
	way_init(&l->there, from, to);
	way_init(&l->back, to, from);
}

/* ---- bytes; false: the connection is to be reset ---- */

static bool way_read(struct link *l, struct way *w)
{
	struct chunk *c = malloc(sizeof(*c));
	size_t most = l->left < CHUNK ? (size_t)l->left : CHUNK;
	ssize_t n;

	if (!c)
		errx(1, "no memory");
	n = recv(w->from, c->bytes, most ? most : 1, MSG_DONTWAIT);
	if (n <= 0 || l->swallows || !most) {
		free(c);
		w->ended = n == 0;
		return n > 0 ? l->swallows
			     : n == 0 || errno == EAGAIN || errno == EINTR;
	}
	if (l->left != UINT64_MAX)
		l->left -= (uint64_t)n;
	c->next = NULL;
	c->due = now_us() + delay;
	c->begin = 0;
	c->end = (size_t)n;
	*w->last = c;
	w->last = &c->next;
	w->held += c->end;
	return true;
}

static bool way_write(struct way *w)
{
	struct chunk *c = w->first;
	ssize_t n = send(w->to, c->bytes + c->begin, c->end - c->begin,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->begin += (size_t)n;
	w->held -= (size_t)n;
	if (c->begin < c->end)
		return true;
	w->first = c->next;
	if (!w->first)
		w->last = &w->first;
	free(c);
	return true;
}

/* Has everything been passed on, and has the source closed? */
static bool way_is_over(const struct way *w)
{
	return w->ended && !w->first;
}

/* ---- what stdin says ---- */

static void cut_all(void)
{
	for (struct link *l = links; l < links + LINKS_MAX; l++)
		if (l->used)
			link_reset(l);
}

static void set_cut_after(uint64_t bytes)
{
	cut_after = bytes ? bytes : UINT64_MAX;
	for (struct link *l = links; l < links + LINKS_MAX; l++)
		l->left = cut_after;
}

static void obey(char *line)
{
	unsigned long n;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "cut after %lu", &n) == 1)
		set_cut_after(n);
	else if (strcmp(line, "cut") == 0)
		cut_all();
	else if (sscanf(line, "delay %lu", &n) == 1)
		delay = n * 1000;
	else if (strcmp(line, "hold") == 0 || strcmp(line, "go") == 0)
		holding = *line == 'h';
	else if (strcmp(line, "refuse") == 0 || strcmp(line, "accept") == 0)
		refusing = *line == 'r';
	else if (strcmp(line, "swallow") == 0)
		for (struct link *l = links; l < links + LINKS_MAX; l++)
			l->swallows = true;
	else if (strcmp(line, "count") != 0)
		errx(2, "%s: no such command", line);
	if (strcmp(line, "count") == 0)
		printf("%u\n", accepted);
	else
		puts("ok");
	fflush(stdout);
}

/* ---- the loop ---- */

struct polled {
	struct pollfd fds[2 + 4 * LINKS_MAX];
	struct way *ways[2 + 4 * LINKS_MAX];
	struct link *links[2 + 4 * LINKS_MAX];
	nfds_t n;
	uint64_t next; /* us: when the next bytes are due */
};

static void poll_for(struct polled *p, int fd, short events, struct link *l,
		     struct way *w)
{
	p->fds[p->n] = (struct pollfd){ fd, events, 0 };
	p->links[p->n] = l;
	p->ways[p->n++] = w;
}

static void poll_way(struct polled *p, struct link *l, struct way *w,
		     uint64_t now)
{
	if (!w->ended && !holding && w->held < HELD_MAX)
		poll_for(p, w->from, POLLIN, l, w);
	if (!w->first || holding)
		return;
	if (w->first->due <= now)
		poll_for(p, w->to, POLLOUT, l, w);
	else if (w->first->due < p->next)
		p->next = w->first->due;
}

static void prepare(struct polled *p)
{
	uint64_t now = now_us();

	p->n = 0;
	p->next = UINT64_MAX;
	poll_for(p, STDIN_FILENO, POLLIN, NULL, NULL);
	poll_for(p, listener, refusing ? 0 : POLLIN, NULL, NULL);
	for (struct link *l = links; l < links + LINKS_MAX; l++) {
		if (!l->used)
			continue;
		poll_way(p, l, &l->there, now);
		poll_way(p, l, &l->back, now);
	}
}

static int timeout_of(const struct polled *p)
{
	uint64_t now = now_us();

	if (p->next == UINT64_MAX)
		return -1;
	return p->next > now ? (int)((p->next - now + 999) / 1000) : 0;
}

static void serve(const struct polled *p)
{
	for (nfds_t i = 2; i < p->n; i++) {
		struct link *l = p->links[i];
		struct way *w = p->ways[i];
		bool good = true;

		if (!l->used || !p->fds[i].revents)
			continue;
		if (p->fds[i].events & POLLIN)
			good = way_read(l, w);
		else if (w->first)
			good = way_write(w);
		if (good && way_is_over(w))
			shutdown(w->to, SHUT_WR);
		if (!good || (way_is_over(&l->there) && way_is_over(&l->back)))
			link_reset(l);
	}
}

int main(int argc, char **argv)
{
	static struct polled p;
	struct sockaddr_in at;
	char line[64];
	int one = 1;

	if (argc != 5)
		errx(2, "usage: proxy ADDRESS PORT TO_ADDRESS TO_PORT");
	at = address_of(argv[1], argv[2]);
	target = address_of(argv[3], argv[4]);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 128))
		err(1, "%s:%s", argv[1], argv[2]);
	setvbuf(stdin, NULL, _IONBF, 0);
	puts("ready");
	fflush(stdout);
	for (;;) {
		prepare(&p);
		if (poll(p.fds, p.n, timeout_of(&p)) < 0 && errno != EINTR)
			err(1, "poll");
		serve(&p);
		if (p.fds[1].revents & POLLIN)
			link_new();
		if (!p.fds[0].revents)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		obey(line);
	}
}
