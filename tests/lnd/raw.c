/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int socket_at(const union netif_addr *at, int *fd_p)
{
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    one = 1, rc;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
	    bind(fd, &at->any, sizeof(*at)) == 0) {
		*fd_p = fd;
		return 0;
	}
	rc = -errno;
	close(fd);
	return rc;
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno
								       : 0;
}

static int conn_of(int fd, struct raw_conn *c)
{
	int rc = set_nonblocking(fd);

	if (rc) {
		close(fd);
		return rc;
	}
	*c = (struct raw_conn){ .fd = fd };
	return 0;
}

int raw_listen(const union netif_addr *at, int *fd_p)
{
	int fd = -1, rc = socket_at(at, &fd);

	if (rc)
		return rc;
	if (listen(fd, 16) != 0)
		rc = -errno;
	if (!rc)
		rc = set_nonblocking(fd);
	if (rc) {
		close(fd);
		return rc;
	}
	*fd_p = fd;
	return 0;
}

int raw_accept(int listen_fd, struct raw_conn *c, union netif_addr *from)
{
	socklen_t len = sizeof(*from);
	int fd = accept4(listen_fd, &from->any, &len, SOCK_CLOEXEC);

	return fd < 0 ? -errno : conn_of(fd, c);
}

/* connect() blocks, but not for long: the other end is on this machine */
int raw_connect(const union netif_addr *from, const union netif_addr *to,
		struct raw_conn *c)
{
	int fd = -1, rc = socket_at(from, &fd);

	if (rc)
		return rc;
	if (connect(fd, &to->any, sizeof(*to)) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return conn_of(fd, c);
}

void raw_close(struct raw_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->in);
	*c = (struct raw_conn){ .fd = -1 };
}

int raw_send(struct raw_conn *c, const void *buf, size_t len, size_t *sent)
{
	const uint8_t *p = buf;

	while (*sent < len) {
		ssize_t n = send(c->fd, p + *sent, len - *sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		*sent += (size_t)n;
	}
	return 0;
}

static int make_room(struct raw_conn *c)
{
	size_t room = c->room ? 2 * c->room : 65536;
	uint8_t *in;

	if (c->have < c->room)
		return 0;
	in = realloc(c->in, room);
	if (!in)
		return -ENOMEM;
	c->in = in;
	c->room = room;
	return 0;
}

int raw_fill(struct raw_conn *c)
{
	while (!c->eof) {
		int rc = make_room(c);
		ssize_t n;

		if (rc)
			return rc;
		n = recv(c->fd, c->in + c->have, c->room - c->have, 0);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno != ECONNRESET)
			return -errno;
		if (n <= 0)
			c->eof = true;
		else
			c->have += (size_t)n;
	}
	return 0;
}

bool raw_take(struct raw_conn *c, void *buf, size_t len)
{
	if (c->have < len)
		return false;
	memcpy(buf, c->in, len);
	memmove(c->in, c->in + len, c->have - len);
	c->have -= len;
	return true;
}
