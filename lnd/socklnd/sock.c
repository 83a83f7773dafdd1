/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fork.h"
#include "lnd/silence.h"
#include "lnd/socklnd/socklnd.h"

#define PORT_HIGHEST 1023
#define PORT_LOWEST  512

uint16_t sock_port_of(const union netif_addr *a)
{
	return ntohs(a->any.sa_family == AF_INET ? a->v4.sin_port
						 : a->v6.sin6_port);
}

char *sock_addr_format(const union netif_addr *a, char *buf, size_t size)
{
	bool v4 = a->any.sa_family == AF_INET;
	const void *bytes =
		v4 ? (const void *)&a->v4.sin_addr : &a->v6.sin6_addr;
	char addr[INET6_ADDRSTRLEN];

	inet_ntop(a->any.sa_family, bytes, addr, sizeof(addr));
	snprintf(buf, size, v4 ? "%s:%u" : "[%s]:%u", addr, sock_port_of(a));
	return buf;
}

static socklen_t addr_len(const union netif_addr *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

static int set_int(int fd, int level, int option, int64_t value)
{
	int v = (int)value;

	return setsockopt(fd, level, option, &v, sizeof(v)) ? -errno : 0;
}

static int new_socket(const union netif_addr *a)
{
	int fd;

	fork_hold();
	fd = fork_fd_made(socket(a->any.sa_family,
				 SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
				 0));
	return fd < 0 ? -errno : fd;
}

int sock_listen(const union netif_addr *at, unsigned int backlog)
{
	int fd = new_socket(at), rc;

	if (fd < 0)
		return fd;
	rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!rc && bind(fd, &at->any, addr_len(at)))
		rc = -errno;
	if (!rc && listen(fd, (int)backlog))
		rc = -errno;
	if (!rc)
		return fd;
	fork_fd_close(fd);
	return rc;
}

int sock_accept(int listener, union netif_addr *from)
{
	socklen_t len = sizeof(*from);
	int fd;

	fork_hold();
	fd = fork_fd_made(accept4(listener, &from->any, &len,
				  SOCK_NONBLOCK | SOCK_CLOEXEC));
	return fd < 0 ? -errno : fd;
}

int sock_options(int fd, const struct ulnet_nid *nid, const int64_t *t)
{
	const int64_t idle = t[SOCK_keepalive_idle];
	const int64_t intvl = t[SOCK_keepalive_intvl];
	const int64_t count = t[SOCK_keepalive_count];
	const int64_t sndbuf = t[SOCK_tx_buffer_size];
	const int64_t rcvbuf = t[SOCK_rx_buffer_size];
	const bool probe = idle && intvl && count;
	const bool v4 = lnet_nid_is_nid4(nid);
	const struct {
		bool is_set;
		int level, option;
		int64_t value;
	} options[] = {
		{ true, IPPROTO_TCP, TCP_NODELAY, !t[SOCK_nagle] },
		/* With little under way, TCP makes its first few
		 * retransmissions at a constant pace, and so recovers fast from
		 * a short outage. */
		{ true, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1 },
		{ sndbuf, SOL_SOCKET, SO_SNDBUF, sndbuf },
		{ rcvbuf, SOL_SOCKET, SO_RCVBUF, rcvbuf },
		{ t[SOCK_tos] >= 0, v4 ? IPPROTO_IP : IPPROTO_IPV6,
		  v4 ? IP_TOS : IPV6_TCLASS, t[SOCK_tos] },
		{ probe, IPPROTO_TCP, TCP_KEEPIDLE, idle },
		{ probe, IPPROTO_TCP, TCP_KEEPINTVL, intvl },
		{ probe, IPPROTO_TCP, TCP_KEEPCNT, count },
		{ probe, SOL_SOCKET, SO_KEEPALIVE, 1 },
	};
	int rc = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(options) && !rc; i++)
		if (options[i].is_set)
			rc = set_int(fd, options[i].level, options[i].option,
				     options[i].value);
	return rc;
}

/* Begins to connect from @from_port; 0: the system chooses the port. Sets
 * *@taken if that port is in use. */
static int connect_from(const struct ulnet_nid *from, uint16_t from_port,
			const union netif_addr *to, const int64_t *tunables,
			bool *taken)
{
	union netif_addr local = netif_addr(from, from_port);
	int fd = new_socket(&local), rc;

	*taken = false;
	if (fd < 0)
		return fd;
	/* @from_port needs to be free for this pair of addresses only. */
	rc = from_port ? set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1)
		       : set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	if (!rc && bind(fd, &local.any, addr_len(&local))) {
		rc = -errno;
		*taken = rc == -EADDRINUSE;
	}
	if (!rc)
		rc = sock_options(fd, from, tunables);
	if (!rc && connect(fd, &to->any, addr_len(to)) &&
	    errno != EINPROGRESS) {
		rc = -errno;
		*taken = rc == -EADDRINUSE || rc == -EADDRNOTAVAIL;
	}
	if (!rc)
		return fd;
	fork_fd_close(fd);
	return rc;
}

int sock_connect(const struct ulnet_nid *from, const struct ulnet_nid *to,
		 uint16_t port, bool privileged, const int64_t *tunables)
{
	union netif_addr a = netif_addr(to, port);
	bool taken;
	int rc = 0;

	if (!privileged)
		return connect_from(from, 0, &a, tunables, &taken);
	for (unsigned int p = PORT_HIGHEST; p >= PORT_LOWEST; p--) {
		rc = connect_from(from, (uint16_t)p, &a, tunables, &taken);
		if (!taken)
			return rc;
	}
	return -EADDRINUSE;
}

int sock_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return -error;
}

uint64_t sock_files_max(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) ? 0 : files.rlim_cur;
}

unsigned int sock_unacked(int fd)
{
	int n = 0;

	return ioctl(fd, SIOCOUTQ, &n) || n < 0 ? 0 : (unsigned int)n;
}

bool sock_is_connected_tcp(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state == TCP_ESTABLISHED;
}

void sock_tcp_look(int fd, struct silence_acks *tcp)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	*tcp = (struct silence_acks){ 0 };
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return;
	/* A single window probe may only just have been sent, so it does not
	 * count. */
	tcp->in_flight = info.tcpi_unacked || info.tcpi_probes > 1;
	tcp->srtt = info.tcpi_rtt * NSEC_PER_USEC;
	tcp->rttvar = info.tcpi_rttvar * NSEC_PER_USEC;
	tcp->ack_age = info.tcpi_last_ack_recv * NSEC_PER_MSEC;
}

void sock_readable_from(int fd, unsigned int bytes)
{
	(void)set_int(fd, SOL_SOCKET, SO_RCVLOWAT, bytes);
}

/* ---- causes ---- */

/* Unlike here, a kernel node reports ETIMEDOUT as NETWORK_TIMEOUT, which does
 * not promise that nothing was delivered. */
enum ulnet_cause sock_loss_unconnected(int status)
{
	switch (status) {
	case 0:
		return LNET_CAUSE_OK;
	case -ENETUNREACH:
	case -ENETDOWN:
	case -EADDRNOTAVAIL: /* the local address, to connect from, has gone */
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
	case -EALREADY:
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EKEYREJECTED: /* one side has not proved who it is */
		return LNET_CAUSE_REMOTE_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_DROPPED;
	}
}

enum ulnet_cause sock_loss_begun(int status)
{
	switch (status) {
	case -ESHUTDOWN:
		return LNET_CAUSE_SHUTDOWN;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
		return LNET_CAUSE_NETWORK_TIMEOUT;
	case -ECONNRESET:
	case -ECONNREFUSED:
	case -EPIPE:
	case -EPROTO:
	case -EIO:
	case -EKEYREJECTED:
		return LNET_CAUSE_REMOTE_ERROR;
	default:
		return LNET_CAUSE_LOCAL_ERROR;
	}
}

enum ulnet_cause sock_loss_queued(int status)
{
	switch (sock_loss_begun(status)) {
	case LNET_CAUSE_SHUTDOWN:
		return LNET_CAUSE_LOCAL_ABORTED;
	case LNET_CAUSE_LOCAL_ERROR:
		return status == -ENETDOWN ? LNET_CAUSE_LOCAL_NO_ROUTE
					   : LNET_CAUSE_LOCAL_DROPPED;
	default:
		return LNET_CAUSE_REMOTE_DROPPED;
	}
}
