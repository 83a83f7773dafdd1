/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/raw_peer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lnd/socklnd/sock.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/conformance.h"
#include "tests/lnd/raw_tls.h"

/* s: the timeout of sockets. System calls with a timeout fail with EINTR when
 * the process was stopped and goes on, as under a debugger. */
#define PATIENCE 20
#define SINK	 272

void raw_peer_init(struct raw_peer *s, struct fx *fx, const char *nid)
{
	const struct real_net *net = fx->rig->arg;

	*s = (struct raw_peer){ .keys = net->raw_keys ? net->raw_keys() : NULL,
				.to = fx->rig->nid[0],
				.port = fx->rig->port,
				.pid = LNET_PID_LUSTRE,
				.version = 3,
				.incarnation = 1000,
				.listener = -1,
				.call = -1 };
	BUG_ON(lnet_nid_parse(nid, &s->nid));
	s->buf = malloc(FRAME_MAX);
	BUG_ON(!s->buf);
}

static void forget_call(struct raw_peer *s)
{
	if (s->call >= 0)
		close(s->call);
	s->call = -1;
}

void raw_peer_fini(struct raw_peer *s)
{
	forget_call(s);
	if (s->listener >= 0)
		close(s->listener);
	if (s->keys)
		raw_tls_join(s);
	free(s->buf);
}

static void be_patient(int fd)
{
	struct timeval patience = { .tv_sec = PATIENCE };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* Makes a socket that is bound to @nid, whose address this host may get later.
 */
static int bound_socket(const struct ulnet_nid *nid, uint16_t port)
{
	union netif_addr at = netif_addr(nid, port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
	if (bind(fd, &at.any, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -errno;
}

int raw_peer_connect(struct raw_peer *s)
{
	union netif_addr to = netif_addr(&s->to, s->port);
	int fd = bound_socket(&s->nid, 0);

	if (fd < 0)
		return fd;
	if (connect(fd, &to.any, sizeof(to)) == 0) {
		be_patient(fd);
		return s->keys ? raw_tls_begin(s, fd, false) : fd;
	}
	close(fd);
	return -errno;
}

int raw_peer_listen(struct raw_peer *s)
{
	forget_call(s);
	s->listener = bound_socket(&s->nid, s->port);
	if (s->listener < 0)
		return s->listener;
	be_patient(s->listener);
	return listen(s->listener, 100) ? -errno : 0;
}

/* Accepts the next connection, and waits for its first byte. -ENOMSG: it ended
 * without one. */
static int accept_next(struct raw_peer *s)
{
	int fd = (int)TEMP_FAILURE_RETRY(
		accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
	uint8_t first;

	if (fd < 0)
		return -errno;
	be_patient(fd);
	if (TEMP_FAILURE_RETRY(recv(fd, &first, 1, MSG_PEEK)) != 1) {
		close(fd);
		return -ENOMSG;
	}
	if (!s->keys)
		return fd;
	fd = raw_tls_begin(s, fd, true);
	return fd < 0 ? -ENOMSG : fd;
}

int raw_peer_accept(struct raw_peer *s)
{
	int fd = s->call;

	s->call = -1;
	if (fd >= 0)
		return fd;
	do {
		fd = accept_next(s);
	} while (fd == -ENOMSG);
	return fd;
}

static bool has_something(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

bool raw_peer_is_called(struct raw_peer *s)
{
	while (s->call < 0 && has_something(s->listener))
		s->call = accept_next(s);
	return s->call >= 0;
}

bool is_silent(int fd)
{
	raw_tls_sync(fd);
	return !has_something(fd);
}

/* ---- bytes ---- */

bool say(int fd, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	while (len) {
		ssize_t n = TEMP_FAILURE_RETRY(send(fd, p, len, MSG_NOSIGNAL));

		if (n < 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

int hear(int fd, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = TEMP_FAILURE_RETRY(recv(fd, p, len, 0));

		if (n < 0 && errno == EAGAIN)
			return -ETIMEDOUT;
		if (n <= 0)
			return -ECONNRESET;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

bool hear_end(int fd)
{
	uint8_t any[4096];
	ssize_t n;

	do {
		n = TEMP_FAILURE_RETRY(recv(fd, any, sizeof(any), 0));
	} while (n > 0);
	return n == 0 || errno != EAGAIN;
}

bool hear_ends(const int *fd, unsigned int n)
{
	bool all = true;

	for (unsigned int i = 0; i < n; i++)
		all = hear_end(fd[i]) && all;
	return all;
}

void raw_peer_number(const struct raw_peer *s, uint8_t *at, unsigned int width,
		     uint64_t value)
{
	/* little-endian, unless the peer has the other byte order */
	for (unsigned int i = 0; i < width; i++)
		at[s->swap ? width - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

/* Swaps the bytes of @n numbers that were written in little-endian order, if
 * the peer has the other one. */
static void turn(const struct raw_peer *s, uint8_t *p, unsigned int n,
		 unsigned int width)
{
	for (; s->swap && n; n--, p += width)
		for (unsigned int i = 0; i < width / 2; i++) {
			uint8_t b = p[i];

			p[i] = p[width - 1 - i];
			p[width - 1 - i] = b;
		}
}

size_t raw_peer_request(const struct raw_peer *s, uint8_t *buf)
{
	size_t n = sock_request_encode(&s->to, buf);

	turn(s, buf, 2, 4);
	turn(s, buf + 8, 1, 8);
	return n;
}

size_t raw_peer_hello(const struct raw_peer *s, enum sock_type type,
		      uint8_t *buf)
{
	struct sock_hello hello = { .version = s->version,
				    .src_nid = s->nid,
				    .dst_nid = s->to,
				    .src_pid = s->pid,
				    .src_incarnation = s->incarnation,
				    .type = type };
	size_t n = sock_hello_encode(&hello, buf), nids = n - 56 ? 0 : 2;

	turn(s, buf, 2, 4);
	/* large NIDs are never swapped */
	turn(s, buf + 8, (unsigned int)nids, 8);
	turn(s, buf + n - 32, 2, 4);
	turn(s, buf + n - 24, 2, 8);
	turn(s, buf + n - 8, 2, 4);
	return n;
}

size_t raw_peer_hdr(const struct raw_peer *s, const struct sock_hdr *hdr,
		    const struct lnet_hdr *lnet, uint8_t *buf)
{
	size_t n = s->version < 4 ? LNET_HDR_SIZE : LNET_HDR_LARGE_SIZE;

	sock_hdr_encode(hdr, buf);
	turn(s, buf, 2, 4);
	turn(s, buf + 8, 2, 8);
	if (hdr->type != SOCK_MSG_LNET)
		return SOCK_HDR_SIZE;
	hdr_encode(lnet, buf + SOCK_HDR_SIZE, n);
	return SOCK_HDR_SIZE + n;
}

/* ---- handshake ---- */

int hear_request(int fd, struct ulnet_nid *target)
{
	uint8_t buf[SOCK_REQUEST_LARGE_SIZE];
	int rc = hear(fd, buf, SOCK_START_SIZE), n;

	if (rc)
		return rc;
	n = sock_request_size(buf);
	if (n < 0)
		return n;
	rc = hear(fd, buf + SOCK_START_SIZE, (size_t)n - SOCK_START_SIZE);
	return rc ? rc : sock_request_decode(buf, (size_t)n, target);
}

int hear_hello(int fd, struct sock_hello *hello)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	int rc = hear(fd, buf, SOCK_START_SIZE), n;

	if (rc)
		return rc;
	n = sock_hello_size(hello, buf);
	if (n < 0)
		return n;
	rc = hear(fd, buf + SOCK_START_SIZE, (size_t)n - SOCK_START_SIZE);
	return rc ? rc : sock_hello_decode(hello, buf, (size_t)n);
}

int raw_peer_open(struct raw_peer *s, enum sock_type type)
{
	uint8_t buf[SOCK_REQUEST_LARGE_SIZE + SOCK_HELLO_LARGE_SIZE];
	int fd = raw_peer_connect(s), rc;
	struct sock_hello h = { 0 };
	size_t n;

	if (fd < 0)
		return fd;
	n = raw_peer_request(s, buf);
	n += raw_peer_hello(s, type, buf + n);
	say(fd, buf, n);
	rc = hear_hello(fd, &h);
	if (!rc && h.type == SOCK_NONE)
		rc = -EALREADY;
	if (!rc &&
	    (!lnet_nid_eq(&h.src_nid, &s->to) || h.version != s->version ||
	     sock_type_invert(h.type) != type))
		rc = -EPROTO;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

bool raw_peer_open_all(struct fx *fx, struct raw_peer *s, int fd[3])
{
	bool good = true;

	for (int i = 0; i < 3; i++) {
		fd[i] = raw_peer_open(s, SOCK_CONTROL + i);
		good = expect(fx, fd[i] >= 0) && good;
	}
	return good;
}

int raw_peer_answer(struct raw_peer *s, enum sock_type *type)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	int fd = raw_peer_accept(s), rc;
	struct ulnet_nid target;
	struct sock_hello h = { 0 };

	if (fd < 0)
		return fd;
	rc = hear_request(fd, &target);
	if (!rc)
		rc = hear_hello(fd, &h);
	if (!rc && !lnet_nid_eq(&target, &s->nid))
		rc = -EPROTO;
	if (!rc) {
		*type = sock_type_invert(h.type);
		say(fd, buf, raw_peer_hello(s, *type, buf));
		return fd;
	}
	close(fd);
	return rc;
}

void close_all(int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

bool raw_peer_has_conns(struct fx *fx, const struct raw_peer *s, unsigned int n)
{
	return census_wait(fx, fx->rig->node[0], &s->nid, census_conns_are, n);
}

/* ---- a visit ---- */

bool visit_begin(struct fx *fx, struct bystander *bystander, struct raw_peer *s)
{
	raw_peer_init(s, fx, "127.0.0.7@tcp");
	return bystander_begin(fx, bystander);
}

void visit_end(struct fx *fx, const struct bystander *bystander,
	       struct raw_peer *s)
{
	raw_peer_fini(s);
	bystander_check(fx, bystander);
}

/* ---- messages ---- */

struct lnet_hdr raw_peer_put_hdr(const struct raw_peer *s, unsigned int portal,
				 uint64_t bits, uint64_t hdr_data,
				 uint32_t length)
{
	return (struct lnet_hdr){ .dest_nid = s->to,
				  .src_nid = s->nid,
				  .dest_pid = LNET_PID_LUSTRE,
				  .src_pid = LNET_PID_LUSTRE,
				  .type = LNET_MSG_PUT,
				  .payload_length = length,
				  .wmd = { 4711, 4712 },
				  .match_bits = bits,
				  .hdr_data = hdr_data,
				  .portal = portal };
}

bool raw_peer_say(struct raw_peer *s, int fd, const struct frame *f)
{
	uint8_t hdr[SOCK_HDR_SIZE + LNET_HDR_LARGE_SIZE];

	if (!say(fd, hdr, raw_peer_hdr(s, &f->hdr, &f->lnet, hdr)))
		return false;
	return !f->payload || say(fd, f->payload, f->lnet.payload_length);
}

int raw_peer_hear(struct raw_peer *s, int fd, struct frame *f)
{
	size_t n = s->version < 4 ? LNET_HDR_SIZE : LNET_HDR_LARGE_SIZE;
	uint8_t buf[SOCK_HDR_SIZE + LNET_HDR_LARGE_SIZE];
	int rc = hear(fd, buf, SOCK_HDR_SIZE);

	if (!rc)
		rc = sock_hdr_decode(&f->hdr, buf, false);
	if (rc || f->hdr.type == SOCK_MSG_NOOP)
		return rc;
	rc = hear(fd, buf, n);
	if (!rc)
		rc = hdr_decode(&f->lnet, buf, n);
	if (!rc)
		rc = hear(fd, s->buf, f->lnet.payload_length);
	f->payload = s->buf;
	return rc;
}

bool raw_peer_ack(struct raw_peer *s, int fd, uint64_t c0, uint64_t c1)
{
	return raw_peer_say(s, fd,
			    &(struct frame){ .hdr = { .type = SOCK_MSG_NOOP,
						      .cookie = { c0, c1 } } });
}

bool raw_peer_pings(struct fx *fx, struct raw_peer *s, int fd)
{
	struct frame f = { .hdr.type = SOCK_MSG_LNET };
	static const uint8_t magic[] = { 'g', 'n', 'i', 'p' };

	f.lnet = raw_peer_put_hdr(s, 0, PING_BITS, 0, 0);
	f.lnet.type = LNET_MSG_GET;
	f.lnet.length = SINK;
	if (!expect(fx, raw_peer_say(s, fd, &f)))
		return false;
	/* Skips pings of the node: if it could not reach the peer's NID before,
	 * it asks whether the NID is up again. */
	do {
		if (!expect(fx, raw_peer_hear(s, fd, &f) == 0))
			return false;
	} while (f.lnet.type == LNET_MSG_GET);
	return expect(fx, f.lnet.type == LNET_MSG_REPLY) &&
	       expect(fx,
		      f.lnet.wmd.node == 4711 && f.lnet.wmd.object == 4712) &&
	       expect(fx, f.lnet.payload_length >= 32) &&
	       expect(fx, memcmp(f.payload, magic, sizeof(magic)) == 0);
}

bool raw_peer_puts(struct fx *fx, struct raw_peer *s, int fd, uint32_t size)
{
	struct box *dst = box_new(fx, size, CUT_NONE);
	struct box *src = box_new(fx, size, CUT_NONE);
	struct frame f = { .hdr.type = SOCK_MSG_LNET,
			   .payload = src->iov[0].iov_base };

	box_fill(src, 33);
	if (!box_post(dst, &(struct post){ .portal = PORTAL,
					   .bits = 33,
					   .options = LNET_MD_OP_PUT }))
		return false;
	f.lnet = raw_peer_put_hdr(s, PORTAL, 33, HDR(33, 0), size);
	f.lnet.wmd = LNET_WIRE_NONE;
	return expect(fx, raw_peer_say(s, fd, &f)) &&
	       expect(fx, fx_wait(fx, &dst->unlinked, 1)) &&
	       expect(fx, dst->n[LNET_EVENT_PUT] == 1);
}
