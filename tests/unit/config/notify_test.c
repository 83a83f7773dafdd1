/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "ulnet/control.h"

/* Checks that a service manager with a socket of that name receives what
 * lnet_notify() sends. */
static void check_told(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				       strlen(name));
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char got[64];
	ssize_t n;

	strcpy(at.sun_path, name);
	if (*name == '@')
		at.sun_path[0] = 0;
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, length), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	cr_assert_eq(lnet_notify("READY=1\n"), 0);
	n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
	cr_assert_eq(n, 8);
	cr_assert_eq(memcmp(got, "READY=1\n", 8), 0);
	close(fd);
}

Test(notify, path)
{
	char dir[] = "/tmp/ulnet-notify-XXXXXX", path[64];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	check_told(path);
	cr_assert_eq(lnet_notify("READY=1\n"), -ECONNREFUSED);
	unlink(path);
	cr_assert_eq(lnet_notify("READY=1\n"), -ENOENT);
	rmdir(dir);
}

Test(notify, abstract)
{
	char name[64];

	snprintf(name, sizeof(name), "@ulnet-notify-test-%ld", (long)getpid());
	check_told(name);
	cr_assert_eq(lnet_notify("READY=1\n"), -ECONNREFUSED);
}

Test(notify, no_manager_or_bad_address)
{
	char longer[200];

	unsetenv("NOTIFY_SOCKET");
	cr_assert_eq(lnet_notify("READY=1\n"), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	cr_assert_eq(lnet_notify("READY=1\n"), 0);
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	cr_assert_eq(lnet_notify("READY=1\n"), -EAFNOSUPPORT);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = 0;
	setenv("NOTIFY_SOCKET", longer, 1);
	cr_assert_eq(lnet_notify("READY=1\n"), -ENAMETOOLONG);
}
