/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets: how they are made, and with which options. All are non-blocking and
 * close-on-exec. */
#ifndef LND_SOCKLND_SOCK_H
#define LND_SOCKLND_SOCK_H

#include "base/util.h"
#include "lnd/lnd.h"
#include "lnd/netif.h"
#include "ulnet/nid.h"

#define SOCK_ADDRSTR_SIZE 64 /* "[fd77::1]:988" */

/* The least time after which TCP repeats what was not acknowledged. */
#define SOCK_RTO_MIN (200 * NSEC_PER_MSEC)

char *sock_addr_format(const union netif_addr *a, char *buf, size_t size);
uint16_t sock_port_of(const union netif_addr *a);

/* Is @port one of those that only privileged programs can have (for LNet: up to
 * 1023)? */
static inline bool sock_port_is_privileged(uint16_t port)
{
	return port < 1024;
}

/* The socket, or -errno. */
int sock_listen(const union netif_addr *at, unsigned int backlog);

/* The next connection and where it is from, or -errno; -EAGAIN: none now. */
int sock_accept(int listener, union netif_addr *from);

/*
 * Begins to connect, from @from, with the options of @tunables. @privileged: a
 * port that only privileged programs can have, 1023 first and downwards from
 * there, since that is what peers with accept=secure want; -EACCES when this
 * program may not. The socket, or -errno.
 */
int sock_connect(const struct ulnet_nid *from, const struct ulnet_nid *to,
		 uint16_t port, bool privileged, const int64_t *tunables);

/* Sets the options that @tunables say on a socket of @nid's family. 0 or
 * -errno. */
int sock_options(int fd, const struct ulnet_nid *nid, const int64_t *tunables);

/* How the attempt to connect has ended: 0 or -errno. Also for the error that
 * waits on any socket. */
int sock_error(int fd);

/* How many files this process may have open (RLIMIT_NOFILE), now. */
uint64_t sock_files_max(void);

/* Bytes that the other end's TCP has not acknowledged yet. */
unsigned int sock_unacked(int fd);

/* @fd is readable once @bytes have come, or as many as its buffer takes well.
 * It is as it was if the system does not want that. */
void sock_readable_from(int fd, unsigned int bytes);

/* When @fd is closed, the other end is told at once, and what is still to be
 * sent is thrown away. */
void sock_reset_on_close(int fd);

/* What the system knows of those bytes. One that does not tell leaves @tcp with
 * nothing in flight. */
struct silence_acks;
void sock_tcp_look(int fd, struct silence_acks *tcp);

/* ---- errors in LNet's words ---- */

/* Why messages end that could not be sent over TCP: what the errors of sockets,
 * of handshakes and of connections are in LNet's words (lnd.h). */

/* No connection could be made, because of @status: the cause for what has
 * waited for it. Promises that nothing was delivered. */
enum ulnet_cause sock_loss_unconnected(int status);

/* A connection has ended with @status, a negative errno: the cause for what was
 * under way on it, either way. */
enum ulnet_cause sock_loss_begun(int status);
/* ... and for what was to go out on it, and had not begun. Promises that
 * nothing was delivered. */
enum ulnet_cause sock_loss_queued(int status);

#endif
