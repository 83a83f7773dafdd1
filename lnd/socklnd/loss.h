/* SPDX-License-Identifier: BSD-3-Clause */
/* Why messages end that could not be sent over TCP: what the errors of sockets,
 * of handshakes and of connections are in LNet's words (lnd.h). */
#ifndef LND_SOCKLND_LOSS_H
#define LND_SOCKLND_LOSS_H

#include "lnd/lnd.h"

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
