/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/shmlnd.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fork.h"

union control {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int shm_pass(int sock, const void *bytes, size_t n, int fd)
{
	union control control = { { 0 } };
	struct iovec iov = { (void *)bytes, n };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	ssize_t sent;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	sent = sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? -errno : (size_t)sent == n ? 0 : -EPROTO;
}

ssize_t shm_take(int sock, void *bytes, size_t n, int *fd_p)
{
	union control control;
	struct iovec iov = { bytes, n };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    /* the padding would have room for a second one */
			    .msg_controllen = CMSG_LEN(sizeof(int)) };
	const struct cmsghdr *c;
	ssize_t got;

	*fd_p = -1;
	fork_hold();
	got = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		got = -errno;
	c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(fd_p, CMSG_DATA(c), sizeof(int));
	else if (got > 0 && m.msg_flags & MSG_CTRUNC)
		*fd_p = -EMFILE;
	/* More than one is lost in the system. */
	fork_fd_made(*fd_p);
	return got;
}
