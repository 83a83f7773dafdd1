/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG	   64
#define GROUP_SIZE 65536 /* of what the system knows of a group */

static int find_group(const char *group, gid_t *gid_p)
{
	struct group g, *found = NULL;
	char *end, *buf;
	unsigned long n;
	int rc;

	errno = 0;
	n = strtoul(group, &end, 10);
	if (*group >= '0' && *group <= '9' && !*end && !errno &&
	    n < (gid_t)-1) {
		*gid_p = (gid_t)n;
		return 0;
	}
	buf = malloc(GROUP_SIZE);
	if (!buf)
		return -ENOMEM;
	rc = getgrnam_r(group, &g, buf, GROUP_SIZE, &found) || !found ? -EINVAL
								      : 0;
	if (!rc)
		*gid_p = g.gr_gid;
	free(buf);
	return rc;
}

/* Of two nodes that start at the same time, one waits here for the other: what
 * is looked at stays as it is until the socket listens. */
static int lock_directory(const char *path)
{
	char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
	const char *dir = slash == copy ? "/" : slash ? copy : ".";
	int fd, rc;

	if (!copy)
		return -ENOMEM;
	if (slash)
		*slash = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 ? -errno : 0;
	free(copy);
	while (!rc && flock(fd, LOCK_EX) && (rc = -errno) == -EINTR)
		rc = 0;
	if (rc && fd >= 0)
		close(fd);
	return rc ? rc : fd;
}

/* Does somebody listen there? Removes the file of one who did. */
static int remove_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, rc;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno
								       : 0;
	close(fd);
	if (rc == -ECONNREFUSED)
		return unlink(addr->sun_path) ? -errno : 0;
	/* The queue of the socket is full: somebody listens. */
	return rc == -EAGAIN || !rc ? -EADDRINUSE : rc;
}

static int make(struct control_socket *s, const struct sockaddr_un *addr,
		const gid_t *gid)
{
	struct stat st;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	/* The file is born with the mode of its socket. */
	if (fchmod(s->fd, 0600) ||
	    bind(s->fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return -errno;
	if (lstat(addr->sun_path, &st))
		return -errno;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->path = strdup(addr->sun_path);
	if (!s->path)
		return -ENOMEM;
	if (gid && (lchown(s->path, (uid_t)-1, *gid) || chmod(s->path, 0660)))
		return -errno;
	return listen(s->fd, BACKLOG) ? -errno : 0;
}

int socket_open(struct control_socket *s, const char *path, const char *group)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int dir, rc;
	gid_t gid;

	*s = (struct control_socket){ .fd = -1 };
	if (!*path)
		return -EINVAL;
	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	text_copy(addr.sun_path, sizeof(addr.sun_path), path);
	rc = group ? find_group(group, &gid) : 0;
	if (rc)
		return rc;
	dir = lock_directory(path);
	if (dir < 0)
		return dir;
	rc = remove_stale(&addr);
	if (!rc)
		rc = make(s, &addr, group ? &gid : NULL);
	if (rc)
		socket_close(s);
	close(dir);
	return rc;
}

void socket_close(struct control_socket *s)
{
	struct stat st;

	if (s->path && !lstat(s->path, &st) && st.st_dev == s->dev &&
	    st.st_ino == s->ino)
		unlink(s->path);
	free(s->path);
	s->path = NULL;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
