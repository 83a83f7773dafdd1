/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket's file: made so that at no time somebody else may use it, and
 * removed again. */
#ifndef CONFIG_SOCKET_H
#define CONFIG_SOCKET_H

#include <sys/stat.h>
#include "base/util.h"

struct control_socket {
	int fd; /* listens; -1: closed */
	char *path;
	dev_t dev; /* of the file */
	ino_t ino;
};

/*
 * Makes the socket and listens on it. A file on which nobody listens is
 * replaced. -EADDRINUSE: somebody does; -ENOTSOCK: the file is no socket;
 * -ENAMETOOLONG; -EINVAL: there is no such group, or no path; what the file
 * system says.
 */
int socket_open(struct control_socket *s, const char *path,
		const char *group) must_check;
/* Closes the socket. Removes the file, too, if it is still the socket's own. */
void socket_close(struct control_socket *s);

#endif
