/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of the system, all of them non-blocking and close-on-exec, and the
 * causes that LNet is given for their errors. */
#ifndef LND_SOCKLND_SOCK_H
#define LND_SOCKLND_SOCK_H

#include "base/util.h"
#include "lnd/lnd.h"
#include "lnd/netif.h"
#include "ulnet/nid.h"

#define SOCK_ADDRSTR_SIZE 64 /* bytes of a text such as "[fd77::1]:988" */

/* TCP's least retransmission time-out. */
#define SOCK_RTO_MIN (200 * NSEC_PER_MSEC)

char *sock_addr_format(const union netif_addr *a, char *buf, size_t size);
uint16_t sock_port_of(const union netif_addr *a);

/* Is @port one that only privileged programs may use? */
static inline bool sock_port_is_privileged(uint16_t port)
{
	return port < 1024;
}

/* Returns a socket that listens at @at, or -errno. */
int sock_listen(const union netif_addr *at, unsigned int backlog);

/* Returns the socket of the next connection, and sets *@from to its source.
 * -EAGAIN: there is none; or another negative errno. */
int sock_accept(int listener, union netif_addr *from);

/* Begins to connect from @from to @to. Returns the socket, which has the
 * options of @tunables, or -errno. @privileged: from a privileged port, as
 * peers with accept=secure demand, trying 1023 first and then lower ones;
 * -EACCES: this program may not use them. */
int sock_connect(const struct ulnet_nid *from, const struct ulnet_nid *to,
		 uint16_t port, bool privileged, const int64_t *tunables);

/* Sets the options of @tunables on a socket of @nid's family. Returns 0 or
 * -errno. */
int sock_options(int fd, const struct ulnet_nid *nid, const int64_t *tunables);

/* Returns the pending error of @fd, such as the result of connecting: 0 or
 * -errno. */
int sock_error(int fd);

/* Returns how many files this process may have open now (RLIMIT_NOFILE). */
uint64_t sock_files_max(void);

/* Returns how many bytes the other end's TCP has not acknowledged yet. */
unsigned int sock_unacked(int fd);
/* Has TCP connected the socket, whether or not the loop has noticed? */
bool sock_is_connected_tcp(int fd);
/* Reads TCP's measurements of what is unacknowledged. If the system does not
 * provide them, *@tcp says that nothing is in flight. */
struct silence_acks;
void sock_tcp_look(int fd, struct silence_acks *tcp);

/* Makes @fd readable only once @bytes have come, or as many as its buffer
 * holds. No effect if the system does not allow it. */
void sock_readable_from(int fd, unsigned int bytes);

/* ---- causes (lnd.h) for negative errnos ---- */

/* Returns the cause for messages that have waited for a connection which could
 * not be made because of @status. It promises that nothing was delivered. */
enum ulnet_cause sock_loss_unconnected(int status);

/* Returns the cause for messages that were under way, in either direction, on a
 * connection that has ended with @status. */
enum ulnet_cause sock_loss_begun(int status);
/* Returns the cause for messages that were queued on a connection that has
 * ended with @status, and of which nothing had been sent. It promises that
 * nothing was delivered. */
enum ulnet_cause sock_loss_queued(int status);

#endif
