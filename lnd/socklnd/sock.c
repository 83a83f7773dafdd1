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

#include "lnd/socklnd/silence.h"
#include "lnd/socklnd/tunable.h"

#define PORT_HIGHEST 1023
#define PORT_LOWEST  512

struct sockaddr_in sock_addr(uint32_t addr, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(addr),
	};
}

char *sock_addr_format(const struct sockaddr_in *a, char *buf, size_t size)
{
	char addr[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &a->sin_addr, addr, sizeof(addr));
	snprintf(buf, size, "%s:%u", addr, ntohs(a->sin_port));
	return buf;
}

static int set_int(int fd, int level, int option, int64_t value)
{
	int v = (int)value;

	return setsockopt(fd, level, option, &v, sizeof(v)) ? -errno : 0;
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int sock_listen(uint32_t addr, uint16_t port, unsigned int backlog)
{
	struct sockaddr_in a = sock_addr(addr, port);
	int fd = new_socket(), rc;

	if (fd < 0)
		return fd;
	rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!rc && bind(fd, (struct sockaddr *)&a, sizeof(a)))
		rc = -errno;
	if (!rc && listen(fd, (int)backlog))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int sock_accept(int listener, struct sockaddr_in *from)
{
	socklen_t len = sizeof(*from);
	int fd = accept4(listener, (struct sockaddr *)from, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int keepalive_options(int fd, const int64_t *t)
{
	int rc;

	if (!t[SOCK_keepalive_idle] || !t[SOCK_keepalive_intvl] ||
	    !t[SOCK_keepalive_count])
		return 0;
	rc = set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, t[SOCK_keepalive_idle]);
	if (!rc)
		rc = set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL,
			     t[SOCK_keepalive_intvl]);
	if (!rc)
		rc = set_int(fd, IPPROTO_TCP, TCP_KEEPCNT,
			     t[SOCK_keepalive_count]);
	return rc ? rc : set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int sock_options(int fd, const int64_t *t)
{
	int rc = set_int(fd, IPPROTO_TCP, TCP_NODELAY, !t[SOCK_nagle]);

	/* What little is on its way when the network is cut for a moment comes
	 * soon after that: TCP repeats it at the same pace for the first few
	 * times, rather than less and less often. */
	if (!rc)
		rc = set_int(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
	if (!rc && t[SOCK_tx_buffer_size])
		rc = set_int(fd, SOL_SOCKET, SO_SNDBUF, t[SOCK_tx_buffer_size]);
	if (!rc && t[SOCK_rx_buffer_size])
		rc = set_int(fd, SOL_SOCKET, SO_RCVBUF, t[SOCK_rx_buffer_size]);
	if (!rc && t[SOCK_tos] >= 0)
		rc = set_int(fd, IPPROTO_IP, IP_TOS, t[SOCK_tos]);
	return rc ? rc : keepalive_options(fd, t);
}

/* One attempt from one port (0: the system chooses). *@taken: it is in use. */
static int connect_from(uint32_t from, uint16_t from_port,
			const struct sockaddr_in *to, const int64_t *tunables,
			bool *taken)
{
	struct sockaddr_in local = sock_addr(from, from_port);
	int fd = new_socket(), rc;

	*taken = false;
	if (fd < 0)
		return fd;
	/* A port has to be free for this pair of addresses only. */
	rc = from_port ? set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1)
		       : set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	if (!rc && bind(fd, (struct sockaddr *)&local, sizeof(local))) {
		rc = -errno;
		*taken = rc == -EADDRINUSE;
	}
	if (!rc)
		rc = sock_options(fd, tunables);
	if (!rc && connect(fd, (const struct sockaddr *)to, sizeof(*to)) &&
	    errno != EINPROGRESS) {
		rc = -errno;
		*taken = rc == -EADDRINUSE || rc == -EADDRNOTAVAIL;
	}
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int sock_connect(uint32_t from, uint32_t to, uint16_t port, bool privileged,
		 const int64_t *tunables)
{
	struct sockaddr_in a = sock_addr(to, port);
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

void sock_tcp_look(int fd, struct silence_tcp *tcp)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	*tcp = (struct silence_tcp){ 0 };
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return;
	/* Questions for room come less and less often, so one that was just
	 * asked says nothing of the one before. */
	tcp->in_flight = info.tcpi_unacked || info.tcpi_probes > 1;
	tcp->srtt = info.tcpi_rtt * NSEC_PER_USEC;
	tcp->rttvar = info.tcpi_rttvar * NSEC_PER_USEC;
	tcp->ack_age = info.tcpi_last_ack_recv * NSEC_PER_MSEC;
}

void sock_readable_from(int fd, unsigned int bytes)
{
	(void)set_int(fd, SOL_SOCKET, SO_RCVLOWAT, bytes);
}

void sock_reset_on_close(int fd)
{
	struct linger none = { .l_onoff = 1 };

	(void)!setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}
