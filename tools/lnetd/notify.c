/* SPDX-License-Identifier: BSD-3-Clause */
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool notify_wanted(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	return path && *path;
}

int notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	socklen_t length;
	int fd, rc = 0;

	if (!path || !*path)
		return 0;
	if (*path != '/' && *path != '@')
		return -EAFNOSUPPORT;
	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path));
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			     strlen(path));
	/* An abstract name begins with a 0, and its length ends it. */
	if (*path == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		   (struct sockaddr *)&to, length) < 0)
		rc = -errno;
	close(fd);
	return rc;
}
