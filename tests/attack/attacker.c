/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/attack/attacker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "rpc/wire/wire.h"
#include "tests/slice.h"

#define REQUEST_SIZE 16
#define HELLO_SIZE   56
#define NOOP	     0xc0
#define TLS_HEAD     5
#define TLS_HELLO    22 /* a record's type: of a handshake */
#define CHUNK	     65536
/* s: nothing of this takes so long, on any machine. */
#define PATIENCE 600

uint32_t attacker_random(struct attacker *a)
{
	uint64_t x = a->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x >> 32);
}

/* ---- frames ---- */

static struct frame *frame_new(const uint8_t *bytes, size_t n)
{
	struct frame *f = malloc(sizeof(*f) + n);

	BUG_ON(!f);
	*f = (struct frame){ .n = n };
	memcpy(f->bytes, bytes, n);
	return f;
}

struct frame *frame_copy(const struct frame *f)
{
	struct frame *copy = frame_new(f->bytes, f->n);
	struct frame head = *f;

	head.next = NULL;
	memcpy(copy, &head, sizeof(head));
	return copy;
}

void frame_readdress(struct attacker *a, struct frame *f, unsigned int peer)
{
	unsigned int nid = f->back ? AT_DEST : AT_SRC;
	unsigned int pid = f->back ? AT_DEST_PID : AT_SRC_PID;

	f->peer = peer;
	f->bytes[nid] = a->victims->address[peer];
	memcpy(f->bytes + pid, a->client_pid[peer], 4);
}

/* Bytes of the frame that begins at w->in; 0: that is not known yet. */
static size_t frame_length(const struct way *w)
{
	if (w->tls)
		return w->have < TLS_HEAD
			       ? 0
			       : TLS_HEAD + (size_t)(w->in[3] << 8 | w->in[4]);
	if (!w->greeted)
		return w->back ? HELLO_SIZE : REQUEST_SIZE + HELLO_SIZE;
	if (w->have < 4)
		return 0;
	if (load_le32(w->in + AT_TYPE) == NOOP)
		return AT_DEST;
	return w->have < AT_PAYLOAD
		       ? 0
		       : AT_PAYLOAD + (size_t)load_le32(w->in + AT_LENGTH);
}

static enum kind put_kind(const struct frame *f)
{
	bool sealed = wire_is_sealed(load_le64(f->bytes + AT_HDR_DATA));
	uint32_t portal = load_le32(f->bytes + AT_PORTAL);

	if (portal == ULRPC_PORTAL_CONTROL)
		return sealed ? CONTROL : SHAKES;
	if (portal == ULRPC_PORTAL_BULK)
		return PUT;
	if (portal == ULRPC_PORTAL_REPLY)
		return REPLIES;
	return portal >= ULRPC_PORTAL_FIRST && portal <= ULRPC_PORTAL_LAST
		       ? REQUESTS
		       : OTHER;
}

static enum kind kind_of(const struct way *w, const struct frame *f)
{
	if (w->tls)
		return f->bytes[0] == TLS_HELLO || w->records < 6 ? TLS_SHAKE
								  : TLS_DATA;
	if (!w->greeted)
		return GREETING;
	if (f->n < AT_PAYLOAD)
		return OTHER;
	switch (load_le32(f->bytes + AT_LNET_TYPE)) {
	case LNET_MSG_PUT:
		return put_kind(f);
	case LNET_MSG_REPLY:
		return f->n == AT_PAYLOAD ? OTHER : w->back ? HELD : GOT;
	default:
		return OTHER;
	}
}

static void catch_frame(struct attacker *a, const struct frame *f)
{
	struct frame **at = &a->caught[a->ncaught++ % CAUGHT];

	free(*at);
	*at = frame_copy(f);
	a->has_marker = a->has_marker ||
			memmem(f->bytes, f->n, MARKER, sizeof(MARKER) - 1);
	if (frame_is_lnet(f) && !f->back)
		memcpy(a->client_pid[f->peer], f->bytes + AT_SRC_PID, 4);
}

/* ---- what goes on ---- */

static void send_on(struct way *w, const void *bytes, size_t n)
{
	if (!n)
		return;
	if (w->begin == w->end)
		w->begin = w->end = 0;
	if (w->end + n > w->out_room) {
		w->out_room = 2 * (w->end + n);
		w->out = realloc(w->out, w->out_room);
		BUG_ON(!w->out);
	}
	memcpy(w->out + w->end, bytes, n);
	w->end += n;
}

static void release(struct way *w, bool all)
{
	struct frame **at = &w->held, *f;

	while ((f = *at)) {
		if (!all && --f->wait) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		send_on(w, f->bytes, f->n);
		free(f);
	}
}

void attacker_pass(struct way *w, struct frame *f)
{
	send_on(w, f->bytes, f->n);
	free(f);
	release(w, false);
}

void attacker_hold(struct way *w, struct frame *f, unsigned int n)
{
	f->wait = n;
	f->next = w->held;
	w->held = f;
}

/* ---- connections ---- */

struct link *attacker_link(struct attacker *a, unsigned int peer,
			   unsigned int type)
{
	struct link *found = NULL;

	for (struct link *l = a->links; l < a->links + LINKS; l++) {
		if (!l->used || l->broken || l->peer != peer ||
		    !(l->there.greeted && l->back.greeted))
			continue;
		if (l->type == type)
			return l;
		found = l;
	}
	return found;
}

void attacker_cut(struct link *l)
{
	l->broken = true;
}

static void way_fini(struct way *w)
{
	struct frame *f;

	while ((f = w->held)) {
		w->held = f->next;
		free(f);
	}
	free(w->in);
	free(w->out);
}

static void link_end(struct link *l)
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

static struct sockaddr_in address(unsigned int last, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	sa.sin_addr.s_addr = htonl(0x7f000000 + last);
	return sa;
}

/* Connects to the server, from the address of a client. Returns -1 while there
 * is none. */
static int connect_to(const struct victims *v, unsigned int from)
{
	struct sockaddr_in to = address(SERVER, v->behind),
			   at = address(from, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	BUG_ON(fd < 0);
	/* This can block, but all is on this host. */
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static struct link *link_free(struct attacker *a)
{
	for (struct link *l = a->links; l < a->links + LINKS; l++)
		if (!l->used)
			return l;
	BUG_ON(true);
	return NULL;
}

static void link_new(struct attacker *a)
{
	struct sockaddr_in caller;
	socklen_t size = sizeof(caller);
	int from = accept4(a->listener, (struct sockaddr *)&caller, &size,
			   SOCK_CLOEXEC),
	    one = 1, to;
	struct link *l = link_free(a);
	unsigned int last;

	if (from < 0)
		return;
	last = ntohl(caller.sin_addr.s_addr) & 0xff;
	to = connect_to(a->victims, last);
	if (to < 0) {
		close(from);
		return;
	}
	setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*l = (struct link){ .used = true, .serial = a->serial++ };
	l->peer = last != a->victims->address[0];
	l->there = (struct way){ .from = from, .to = to };
	l->back = (struct way){ .from = to, .to = from, .back = true };
}

void attacker_connect(struct attacker *a, const void *bytes, size_t n)
{
	struct timeval patience = { .tv_sec = PATIENCE };
	int fd = connect_to(a->victims, a->victims->address[0]);
	uint8_t any[4096];

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n)
		shutdown(fd, SHUT_WR);
	while (recv(fd, any, sizeof(any), 0) > 0)
		;
	BUG_ON(errno == EAGAIN);
	close(fd);
}

/* ---- bytes ---- */

static void on_frame(struct attacker *a, struct link *l, struct way *w,
		     struct frame *f)
{
	const struct harm *h = a->harm;
	bool due = h && h->kinds & 1u << f->kind && a->done < a->wanted &&
		   attacker_random(a) % h->one_in == 0;

	if (!due)
		attacker_pass(w, f);
	else if (h->harm(a, l, w, f))
		a->done++;
}

/* The first byte of a connection says whether it is TLS. */
static void look_at_first(struct link *l, const struct way *w)
{
	if (!w->back && !w->came)
		l->there.tls = l->back.tls = w->in[0] == TLS_HELLO;
}

static void cut_into_frames(struct attacker *a, struct link *l, struct way *w)
{
	size_t n;

	while (w->have && (n = frame_length(w)) && n <= w->have) {
		struct frame *f = frame_new(w->in, n);

		f->kind = kind_of(w, f);
		f->back = w->back;
		f->peer = l->peer;
		if (f->kind == GREETING && !w->back)
			l->type = f->bytes[REQUEST_SIZE + 48];
		f->type = l->type;
		f->serial = l->serial;
		w->records++;
		w->greeted = !w->tls || w->records > 6;
		w->came += n;
		w->have -= n;
		memmove(w->in, w->in + n, w->have);
		catch_frame(a, f);
		on_frame(a, l, w, f);
	}
}

/* Both return false if the connection has to be reset. */

static bool way_read(struct attacker *a, struct link *l, struct way *w)
{
	ssize_t n;

	if (w->have + CHUNK > w->room) {
		w->room = w->have + 2 * CHUNK;
		w->in = realloc(w->in, w->room);
		BUG_ON(!w->in);
	}
	n = recv(w->from, w->in + w->have, CHUNK, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	w->ended = n == 0;
	if (w->ended) {
		release(w, true);
		send_on(w, w->in, w->have);
		w->have = 0;
		return true;
	}
	if (!w->have)
		look_at_first(l, w);
	w->have += (size_t)n;
	cut_into_frames(a, l, w);
	return true;
}

static bool way_write(struct way *w)
{
	ssize_t n = send(w->to, w->out + w->begin, w->end - w->begin,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	w->begin += (size_t)n;
	return true;
}

static bool way_is_over(const struct way *w)
{
	return w->ended && w->begin == w->end;
}

/* ---- the loop ---- */

static bool link_is_over(const struct link *l)
{
	bool sent =
		l->there.begin == l->there.end && l->back.begin == l->back.end;

	return l->broken ? sent
			 : way_is_over(&l->there) && way_is_over(&l->back);
}

struct polled {
	struct pollfd fds[1 + CLIENTS + 2 * LINKS];
	struct link *links[1 + CLIENTS + 2 * LINKS];
	nfds_t n;
};

static void poll_for(struct polled *p, int fd, int events, struct link *l)
{
	p->fds[p->n] = (struct pollfd){ fd, (short)events, 0 };
	p->links[p->n++] = l;
}

static void prepare(struct polled *p, struct attacker *a)
{
	p->n = 0;
	poll_for(p, a->listener, POLLIN, NULL);
	for (unsigned int i = 0; i < CLIENTS; i++)
		poll_for(p, a->victims->life[i], 0, NULL);
	for (struct link *l = a->links; l < a->links + LINKS; l++) {
		const struct way *t = &l->there, *b = &l->back;

		if (l->used && link_is_over(l))
			link_end(l);
		if (!l->used)
			continue;
		poll_for(p, t->from,
			 (t->ended || l->broken ? 0 : POLLIN) |
				 (b->begin < b->end ? POLLOUT : 0),
			 l);
		poll_for(p, b->from,
			 (b->ended || l->broken ? 0 : POLLIN) |
				 (t->begin < t->end ? POLLOUT : 0),
			 l);
	}
}

/* What has come at one end of a connection, and what goes there. */
static bool serve_end(struct attacker *a, struct link *l, struct way *in,
		      struct way *out, short events)
{
	bool good = true;

	if (events & (POLLIN | POLLHUP | POLLERR) && !in->ended && !l->broken)
		good = way_read(a, l, in);
	if (good && out->begin < out->end)
		good = way_write(out);
	return good;
}

static void serve_link(struct attacker *a, struct link *l, struct way *in,
		       struct way *out, short events)
{
	if (!serve_end(a, l, in, out, events) || link_is_over(l) ||
	    (events & POLLERR)) {
		link_end(l);
		return;
	}
	if (way_is_over(out))
		shutdown(out->to, SHUT_WR);
	if (way_is_over(in))
		shutdown(in->to, SHUT_WR);
}

static void serve(struct attacker *a, const struct polled *p)
{
	for (nfds_t i = 1 + CLIENTS; i < p->n; i++) {
		struct link *l = p->links[i];
		bool there = p->fds[i].fd == l->there.from;

		if (l->used && p->fds[i].revents)
			serve_link(a, l, there ? &l->there : &l->back,
				   there ? &l->back : &l->there,
				   p->fds[i].revents);
	}
	if (p->fds[0].revents & POLLIN)
		link_new(a);
}

/* ---- plays ---- */

void attacker_begin(struct attacker *a, struct victims *v, uint64_t seed)
{
	struct sockaddr_in at = address(SERVER, v->at);
	int one = 1;

	*a = (struct attacker){ .victims = v, .random = seed };
	a->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(a->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	BUG_ON(bind(a->listener, (struct sockaddr *)&at, sizeof(at)) ||
	       listen(a->listener, 128));
}

static unsigned int ended(const struct polled *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < CLIENTS; i++)
		n += (p->fds[1 + i].revents & POLLHUP) != 0;
	return n;
}

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

static void stop_waiting(struct attacker *a)
{
	for (struct link *l = a->links; l < a->links + LINKS; l++)
		if (l->used) {
			release(&l->there, true);
			release(&l->back, true);
		}
}

bool attacker_play(struct attacker *a, const struct harm *harm)
{
	struct polled p;
	uint64_t begun = now_s();

	if (harm && harm->restart) {
		victims_kill_server(a->victims);
		victims_serve(a->victims);
	}
	a->harm = harm;
	a->done = 0;
	a->wanted = harm ? slice_of(harm->all, harm->slice) : 1;
	atomic_store(&a->victims->tally->session,
		     harm && harm->session ? harm->session : 400);
	memset(a->sweep, 0, sizeof(a->sweep));
	while (a->done < a->wanted) {
		prepare(&p, a);
		BUG_ON(poll(p.fds, p.n, 1000) < 0 && errno != EINTR);
		serve(a, &p);
		if (ended(&p) && harm)
			return false;
		if (ended(&p) == CLIENTS)
			break;
		if (now_s() - begun > PATIENCE) {
			printf("%s: it hangs\n", harm ? harm->name : "the end");
			return false;
		}
	}
	stop_waiting(a);
	return true;
}

void attacker_cut_all(struct attacker *a)
{
	for (struct link *l = a->links; l < a->links + LINKS; l++)
		if (l->used)
			link_end(l);
}

void attacker_end(struct attacker *a)
{
	attacker_cut_all(a);
	for (unsigned int i = 0; i < CAUGHT; i++)
		free(a->caught[i]);
	close(a->listener);
}
