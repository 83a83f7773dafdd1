/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/raw_tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "secure/stream.h"
#include "tests/lnd/raw_peer.h"

#define PIECE 16384

struct pump {
	struct pump *next;
	const struct raw_peer *owner;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	bool ended;
	int tcp, inner;
	int outer; /* the test's socket, which may be closed */
	struct stream *tls;
	/* what the test has still to get, and what TLS has still to take */
	uint8_t in[PIECE], out[PIECE];
	size_t nin, in_at, nout, out_at;
	bool net_over; /* the node says no more */
	bool in_over;  /* nor does TLS; the test has been told so */
	bool out_over; /* the test says no more */
	bool fin;      /* the node has been told so */
	bool gone;     /* the test has closed its socket */
	bool unread;   /* and has not read all */
	bool broken;   /* the connection has failed */
};

static struct pump *pumps; /* of the thread that runs the test */

/* ---- each returns whether something was done ---- */

static bool net_read(struct pump *p)
{
	size_t room = MIN(stream_room(p->tls), (size_t)PIECE);
	uint8_t buf[PIECE];
	ssize_t n;

	if (p->net_over || p->broken || p->nin || !room)
		return false;
	n = recv(p->tcp, buf, room, MSG_DONTWAIT);
	if (n < 0) {
		p->broken = errno != EAGAIN && errno != EINTR;
		return p->broken;
	}
	p->net_over = n == 0;
	if (n == 0)
		stream_end(p->tls);
	else if (stream_take(p->tls, buf, (size_t)n))
		p->broken = true;
	return true;
}

static bool tls_read(struct pump *p)
{
	ssize_t n;

	if (p->nin || p->in_over)
		return false;
	n = stream_read(p->tls, p->in, PIECE);
	if (n == -EAGAIN && !p->broken)
		return false;
	if (n <= 0) {
		p->in_over = true;
		shutdown(p->inner, SHUT_WR);
	} else {
		p->nin = (size_t)n;
		p->in_at = 0;
	}
	return true;
}

static bool test_write(struct pump *p)
{
	ssize_t n;

	if (!p->nin || p->gone)
		return false;
	n = send(p->inner, p->in + p->in_at, p->nin,
		 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n <= 0)
		return false;
	p->in_at += (size_t)n;
	p->nin -= (size_t)n;
	return true;
}

static size_t waits(const struct pump *p)
{
	size_t n;

	stream_bytes(p->tls, &n);
	return p->broken ? 0 : n;
}

static bool test_read(struct pump *p)
{
	ssize_t n;

	if (p->out_over || p->nout || waits(p))
		return false;
	n = recv(p->inner, p->out, PIECE, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	p->unread = p->unread || n < 0;
	if (n > 0) {
		p->nout = (size_t)n;
		p->out_at = 0;
	} else {
		p->out_over = true;
		stream_close(p->tls);
	}
	return true;
}

static bool tls_write(struct pump *p)
{
	ssize_t n;

	if (!p->nout)
		return false;
	n = stream_write(p->tls, p->out + p->out_at, p->nout);
	if (n == -EAGAIN && !p->broken)
		return false;
	if (n < 0) /* nobody will get it */
		n = (ssize_t)p->nout;
	p->out_at += (size_t)n;
	p->nout -= (size_t)n;
	return true;
}

static bool net_write(struct pump *p)
{
	const uint8_t *bytes;
	ssize_t did;
	size_t n;

	bytes = stream_bytes(p->tls, &n);
	if (n && !p->broken) {
		did = send(p->tcp, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (did > 0)
			stream_sent(p->tls, (size_t)did);
		/* What the node has said before can still be read. */
		else if (errno != EAGAIN && errno != EINTR)
			stream_sent(p->tls, n);
		return did > 0;
	}
	if (!p->out_over || p->nout || p->fin)
		return false;
	p->fin = true;
	shutdown(p->tcp, SHUT_WR);
	return true;
}

static void pump_all(struct pump *p)
{
	bool did;

	do {
		did = net_read(p);
		did |= tls_read(p);
		did |= test_write(p);
		did |= test_read(p);
		did |= tls_write(p);
		did |= net_write(p);
	} while (did);
}

/* ---- the thread ---- */

static void look_at_test(struct pump *p)
{
	struct pollfd f = { .fd = p->inner };
	socklen_t len = sizeof(int);
	int err = 0;

	if (p->gone || poll(&f, 1, 0) <= 0 || !(f.revents & POLLHUP))
		return;
	p->gone = true;
	getsockopt(p->inner, SOL_SOCKET, SO_ERROR, &err, &len);
	p->unread = p->unread || err || p->nin;
}

static bool has_more(int fd)
{
	uint8_t c;

	return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Is there nothing more to do? */
static bool is_over(struct pump *p)
{
	if (p->broken && !p->nin)
		return true;
	if (!p->gone)
		return false;
	/* A socket that is closed with something unread resets. */
	if (p->unread || has_more(p->tcp)) {
		struct linger now = { .l_onoff = 1 };

		setsockopt(p->tcp, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		return true;
	}
	return p->broken || (p->fin && !waits(p));
}

static void pump_wait(const struct pump *p, struct pollfd f[2])
{
	bool takes = !p->net_over && !p->nin && stream_room(p->tls);

	f[0] = (struct pollfd){ .fd = p->tcp };
	f[0].events = (short)((takes ? POLLIN : 0) | (waits(p) ? POLLOUT : 0));
	if (!f[0].events)
		f[0].fd = -1;
	f[1] = (struct pollfd){ .fd = p->gone ? -1 : p->inner };
	f[1].events =
		(short)((p->out_over || p->nout || waits(p) ? 0 : POLLIN) |
			(p->nin ? POLLOUT : 0));
}

static void *pump_run(void *arg)
{
	struct pump *p = arg;
	struct pollfd f[2];
	bool over;

	do {
		pthread_mutex_lock(&p->lock);
		pump_all(p);
		look_at_test(p);
		pump_all(p);
		over = is_over(p);
		if (over) {
			stream_free(p->tls);
			close(p->tcp);
			close(p->inner);
			p->ended = true;
		} else {
			pump_wait(p, f);
		}
		pthread_mutex_unlock(&p->lock);
	} while (!over && (poll(f, 2, -1) >= 0 || errno == EINTR));
	return NULL;
}

/* ---- for the test ---- */

/* The handshake, on the test's thread. 0 or -errno. */
static int shake(struct stream *tls, int tcp)
{
	for (;;) {
		uint8_t buf[PIECE];
		const uint8_t *bytes;
		ssize_t n;
		size_t len;

		bytes = stream_bytes(tls, &len);
		while (len) {
			n = TEMP_FAILURE_RETRY(
				send(tcp, bytes, len, MSG_NOSIGNAL));
			if (n < 0)
				return -errno;
			stream_sent(tls, (size_t)n);
			bytes = stream_bytes(tls, &len);
		}
		if (stream_is_up(tls))
			return 0;
		n = TEMP_FAILURE_RETRY(
			recv(tcp, buf, MIN(stream_room(tls), sizeof(buf)), 0));
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		if (stream_take(tls, buf, (size_t)n))
			return -EKEYREJECTED;
	}
}

static void pump_free(struct pump *p)
{
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static bool has_ended(struct pump *p)
{
	bool ended;

	pthread_mutex_lock(&p->lock);
	ended = p->ended;
	pthread_mutex_unlock(&p->lock);
	return ended;
}

/* Joins the pumps that have ended, and waits for those of @owner (NULL:
 * nobody). */
static void join(const struct raw_peer *owner)
{
	for (struct pump **at = &pumps; *at;) {
		struct pump *p = *at;

		if (p->owner != owner && !has_ended(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		pump_free(p);
	}
}

void raw_tls_join(const struct raw_peer *owner)
{
	join(owner);
}

static int pump_new(const struct raw_peer *owner, struct stream *tls, int tcp)
{
	struct timeval patience;
	socklen_t len = sizeof(patience);
	struct pump *p = calloc(1, sizeof(*p));
	int pair[2];

	BUG_ON(!p || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	/* The test waits as long for its end as it would for the connection. */
	getsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &patience, &len);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, len);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, len);
	pthread_mutex_init(&p->lock, NULL);
	p->owner = owner;
	p->tcp = tcp;
	p->tls = tls;
	p->outer = pair[0];
	p->inner = pair[1];
	p->next = pumps;
	pumps = p;
	BUG_ON(pthread_create(&p->thread, NULL, pump_run, p));
	return pair[0];
}

int raw_tls_begin(const struct raw_peer *owner, int tcp, bool server)
{
	struct stream *tls =
		stream_new(server ? HANDSHAKE_SERVER : HANDSHAKE_CLIENT,
			   (struct keys *)owner->keys);
	int rc, one = 1;

	BUG_ON(!tls);
	/* or each handshake would wait for a delayed acknowledgement */
	setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	join(NULL);
	rc = shake(tls, tcp);
	if (!rc)
		return pump_new(owner, tls, tcp);
	stream_free(tls);
	close(tcp);
	return rc;
}

void raw_tls_sync(int fd)
{
	for (struct pump *p = pumps; p; p = p->next) {
		bool found;

		pthread_mutex_lock(&p->lock);
		found = p->outer == fd;
		if (found && !p->ended)
			pump_all(p);
		pthread_mutex_unlock(&p->lock);
		/* The pumps of earlier sockets with this number are behind. */
		if (found)
			return;
	}
}
