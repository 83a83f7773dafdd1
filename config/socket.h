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
 * Makes it and listens. A file that nobody listens on is replaced. -EADDRINUSE:
 * somebody does; -ENOTSOCK: the file is none; -ENAMETOOLONG; -EINVAL: no such
 * group, or no path; what the file system says.
 */
int socket_open(struct control_socket *s, const char *path,
		const char *group) must_check;
/* The file goes, too, if it is still this one. */
void socket_close(struct control_socket *s);

#endif
