/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that connect: their ports, of which some are privileged, and
 * options. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lnd/socklnd/sock.h"
#include "lnd/socklnd/socklnd.h"

#define PORTS	512 /* 512..1023 */
#define FROM	&own
#define TO	&other
#define NOWHERE &nowhere

static const struct ulnet_nid own = {
	0, LNET_TYPE_SOCK, { 0 }, { 127, 7, 7, 7 }
}; /* no other socket uses it */
static const struct ulnet_nid other = {
	0, LNET_TYPE_SOCK, { 0 }, { 127, 7, 7, 8 }
};
/* Not an address of this machine. */
static const struct ulnet_nid nowhere = {
	0, LNET_TYPE_SOCK, { 0 }, { 192, 0, 2, 1 }
};
static const struct ulnet_nid loopback6 = {
	LNET_NID_IPV6_SIZE, LNET_TYPE_SOCK, { 0 }, { [15] = 1 }
};

/* Replaces the C library's socket(), to count calls; each test is a process of
 * its own. */
static unsigned int sockets;

int socket(int domain, int type, int protocol)
{
	sockets++;
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static const int64_t tunables[SOCK_TUNABLES] = { [SOCK_tos] = -1 };

/* Listens on a port, and returns it. */
static uint16_t listening_port(const struct ulnet_nid *nid)
{
	union netif_addr a = netif_addr(nid, 0);
	socklen_t len = sizeof(a);
	int fd = socket(a.any.sa_family, SOCK_STREAM, 0);

	cr_assert(fd >= 0);
	cr_assert_eq(bind(fd, &a.any, len), 0);
	cr_assert_eq(listen(fd, PORTS), 0);
	cr_assert_eq(getsockname(fd, &a.any, &len), 0);
	sockets = 0;
	return sock_port_of(&a);
}

/* With an address that is not ours, one attempt is enough: other ports would
 * not help. */
Test(sock, address_is_gone)
{
	uint16_t port = listening_port(TO);
	int rc = sock_connect(NOWHERE, TO, port, true, tunables);

	/* Without the privilege for low ports, -EACCES comes first. */
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
	uint16_t port = listening_port(TO);
	int rc = sock_connect(FROM, TO, port, true, bad);

	cr_assert(rc == -EINVAL || rc == -EACCES);
	cr_assert_eq(sockets, 1);
}

/* TCP's first retransmissions come at a constant pace. */
Test(sock, retransmits_soon)
{
	int fd = sock_connect(FROM, TO, listening_port(TO), false, tunables),
	    on = 0;
	socklen_t len = sizeof(on);

	cr_assert(fd >= 0);
	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on,
				&len),
		     0);
	cr_assert_eq(on, 1);
}

/* Each privileged port serves one connection to the same destination, until
 * none is left. */
Test(sock, ports_are_taken)
{
	uint16_t port = listening_port(TO);
	unsigned int n = 0;
	int fd;

	while ((fd = sock_connect(FROM, TO, port, true, tunables)) >= 0) {
		union netif_addr a;
		socklen_t len = sizeof(a);

		cr_assert_eq(getsockname(fd, &a.any, &len), 0);
		cr_assert(sock_port_is_privileged(sock_port_of(&a)));
		n++;
	}
	if (n == 0 && fd == -EACCES) {
		cr_assert_eq(sockets, 1);
		cr_skip_test("takes the right to ports below 1024");
	}
	cr_assert_eq(fd, -EADDRINUSE, "%d", fd);
	/* Other programs may be using some of them. */
	cr_assert(n > PORTS / 2 && n <= PORTS, "%u", n);
	/* All of them are free for another destination. */
	cr_assert(sock_connect(FROM, TO, listening_port(TO), true, tunables) >=
		  0);
}

/* Addresses as text, and compared with NIDs. */
Test(sock, address)
{
	static const struct {
		const char *nid;
		uint16_t port;
		const char *text;
	} cases[] = {
		{ "127.7.7.7@tcp", 988, "127.7.7.7:988" },
		{ "255.255.255.254@tcp3", 65535, "255.255.255.254:65535" },
		{ "::1@tcp", 988, "[::1]:988" },
		{ "fd77:1234:5678:9abc:def0:1234:5678:9abc@tcp", 65535,
		  "[fd77:1234:5678:9abc:def0:1234:5678:9abc]:65535" },
	};
	struct ulnet_nid nid[ARRAY_SIZE(cases)];
	char text[SOCK_ADDRSTR_SIZE];

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_eq(lnet_nid_parse(cases[i].nid, &nid[i]), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		union netif_addr a = netif_addr(&nid[i], cases[i].port);

		cr_expect_str_eq(sock_addr_format(&a, text, sizeof(text)),
				 cases[i].text);
		cr_expect_eq(sock_port_of(&a), cases[i].port);
		for (unsigned int k = 0; k < ARRAY_SIZE(cases); k++)
			cr_expect_eq(netif_addr_is(&a, &nid[k]), i == k);
	}
}

/* The options work for IPv6, too. */
Test(sock, ipv6)
{
	int64_t t[SOCK_TUNABLES] = { [SOCK_tos] = 0x28,
				     [SOCK_keepalive_idle] = 30,
				     [SOCK_keepalive_intvl] = 5,
				     [SOCK_keepalive_count] = 10 };
	union netif_addr at = netif_addr(&loopback6, 0);
	int listener = sock_listen(&at, 1), fd, class = 0;
	socklen_t len = sizeof(at);

	if (listener == -EAFNOSUPPORT || listener == -EADDRNOTAVAIL)
		cr_skip_test("no IPv6 here");
	cr_assert(listener >= 0, "%d", listener);
	cr_assert_eq(getsockname(listener, &at.any, &len), 0);
	fd = sock_connect(&loopback6, &loopback6, sock_port_of(&at), false, t);
	cr_assert(fd >= 0, "%d", fd);
	len = sizeof(class);
	cr_assert_eq(getsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &class, &len),
		     0);
	cr_assert_eq(class, 0x28);
	cr_assert_eq(sock_error(fd), 0);
	fd = sock_accept(listener, &at);
	cr_assert(fd >= 0, "%d", fd);
	cr_assert(netif_addr_is(&at, &loopback6));
}

/* ---- errors in LNet's words ---- */

static const struct {
	int status;
	enum ulnet_cause unconnected, begun, queued;
	enum lnd_blame blame; /* if it had not been begun */
} cases[] = {
	{ -ECONNREFUSED, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -ECONNRESET, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -EPIPE, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -EPROTO, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_NETWORK_TIMEOUT,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -EHOSTUNREACH, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_NETWORK_TIMEOUT,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -ENETDOWN, LNET_CAUSE_LOCAL_NO_ROUTE, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_NO_ROUTE, LND_BLAME_NOBODY },
	{ -ENOMEM, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_NOBODY },
	{ -EMFILE, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_NOBODY },
	{ -EACCES, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_LOCAL },
	{ -ESHUTDOWN, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_SHUTDOWN,
	  LNET_CAUSE_LOCAL_ABORTED, LND_BLAME_NOBODY },
};

Test(loss, causes)
{
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = cases[i].status;

		cr_expect_eq(sock_loss_unconnected(status),
			     cases[i].unconnected, "%d", status);
		cr_expect_eq(sock_loss_begun(status), cases[i].begun, "%d",
			     status);
		cr_expect_eq(sock_loss_queued(status), cases[i].queued, "%d",
			     status);
	}
}

/* A message that was not begun may be sent again; one that was may not. */
Test(loss, promises)
{
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = cases[i].status;
		struct lnd_verdict waited =
			lnd_judge(status, sock_loss_unconnected(status));
		struct lnd_verdict queued =
			lnd_judge(status, sock_loss_queued(status));

		cr_expect(waited.not_delivered && queued.not_delivered);
		cr_expect_eq(waited.blame, cases[i].blame, "%d", status);
		cr_expect_eq(queued.blame, cases[i].blame, "%d", status);
		cr_expect_not(lnd_judge(status, sock_loss_begun(status))
				      .not_delivered);
	}
	cr_expect_eq(sock_loss_unconnected(0), LNET_CAUSE_OK);
}
