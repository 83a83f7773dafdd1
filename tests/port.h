/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_PORT_H
#define TESTS_PORT_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/util.h"

/* A TCP port, from 1024 up, that nobody listens on now; 0: none. */
static inline uint16_t free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool good = fd >= 0 && !bind(fd, (struct sockaddr *)&a, len) &&
		    !getsockname(fd, (struct sockaddr *)&a, &len);

	if (fd >= 0)
		close(fd);
	return good ? ntohs(a.sin_port) : 0;
}

#endif
