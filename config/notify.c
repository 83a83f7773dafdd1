/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells a service manager the state of the program. Knows no node. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ulnet/control.h"

/* Sets *@to to the socket with the name @path. Returns its length, or
 * -errno. */
static int notify_address(const char *path, struct sockaddr_un *to)
{
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (*path != '/' && *path != '@')
		return -EAFNOSUPPORT;
	if (strlen(path) >= sizeof(to->sun_path))
		return -ENAMETOOLONG;
	memcpy(to->sun_path, path, strlen(path));
	/* "@" stands for the 0 that abstract names begin with. */
	if (*path == '@')
		to->sun_path[0] = 0;
	return (int)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
}

int lnet_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to;
	int fd, length, rc = 0;

	if (!path || !*path)
		return 0;
	length = notify_address(path, &to);
	if (length < 0)
		return length;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		   (struct sockaddr *)&to, (socklen_t)length) < 0)
		rc = -errno;
	close(fd);
	return rc;
}
