/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that connect: their ports, of which some are privileged, and
 * options. */
#include "lnd/socklnd/sock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lnd/socklnd/tunable.h"

#define PORTS	512	    /* 512..1023 */
#define FROM	0x7f070707u /* 127.7.7.7: nobody else's */
#define TO	0x7f070708u
#define NOWHERE 0xc0000201u /* 192.0.2.1: no address of this machine */

/* The C library's, for this program; each test is a process of its own. */
static unsigned int sockets;

int socket(int domain, int type, int protocol)
{
	sockets++;
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static const int64_t tunables[SOCK_TUNABLES] = { [SOCK_tos] = -1 };

/* A port that somebody listens on. */
static uint16_t called(uint32_t addr)
{
	struct sockaddr_in a = sock_addr(addr, 0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert(fd >= 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&a, len), 0);
	cr_assert_eq(listen(fd, PORTS), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	sockets = 0;
	return ntohs(a.sin_port);
}

/* An address that is not ours is so from each port: one attempt is enough. */
Test(sock, address_is_gone)
{
	uint16_t port = called(TO);
	int rc = sock_connect(NOWHERE, TO, port, true, tunables);

	/* Without the privilege that comes first. */
	cr_assert(rc == -EADDRNOTAVAIL || rc == -EACCES);
	cr_assert_eq(sockets, 1);
	cr_assert_eq(sock_connect(NOWHERE, TO, port, false, tunables),
		     -EADDRNOTAVAIL);
	cr_assert_eq(sockets, 2);
}

Test(sock, bad_options)
{
	int64_t bad[SOCK_TUNABLES] = { [SOCK_tos] = -1,
				       [SOCK_keepalive_idle] = 32767 + 1,
				       [SOCK_keepalive_intvl] = 1,
				       [SOCK_keepalive_count] = 1 };
	uint16_t port = called(TO);
	int rc = sock_connect(FROM, TO, port, true, bad);

	cr_assert(rc == -EINVAL || rc == -EACCES);
	cr_assert_eq(sockets, 1);
}

/* How often TCP repeats what is not acknowledged does not double at once. */
Test(sock, repeats_soon)
{
	int fd = sock_connect(FROM, TO, called(TO), false, tunables), on = 0;
	socklen_t len = sizeof(on);

	cr_assert(fd >= 0);
	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on,
				&len),
		     0);
	cr_assert_eq(on, 1);
}

/* Each port serves for one connection between two addresses and ports, till
 * there are none. */
Test(sock, ports_are_taken)
{
	uint16_t port = called(TO);
	unsigned int n = 0;
	int fd;

	while ((fd = sock_connect(FROM, TO, port, true, tunables)) >= 0) {
		struct sockaddr_in a;
		socklen_t len = sizeof(a);

		cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
		cr_assert(sock_port_is_privileged(sock_port_of(&a)));
		n++;
	}
	if (n == 0 && fd == -EACCES) {
		cr_assert_eq(sockets, 1);
		cr_skip_test("takes the right to ports below 1024");
	}
	cr_assert_eq(fd, -EADDRINUSE, "%d", fd);
	/* Somebody may listen on some of them, on all addresses. */
	cr_assert(n > PORTS / 2 && n <= PORTS, "%u", n);
	/* They are free for any other pair. */
	cr_assert(sock_connect(FROM, TO, called(TO), true, tunables) >= 0);
}
