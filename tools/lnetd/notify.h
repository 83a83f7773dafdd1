/* SPDX-License-Identifier: BSD-3-Clause */
/* What a service manager wants to be told, as sd_notify(3) has it: one datagram
 * to the socket in $NOTIFY_SOCKET. */
#ifndef TOOLS_NOTIFY_H
#define TOOLS_NOTIFY_H

#include <stdbool.h>

/* Does somebody want to be told? */
bool notify_wanted(void);
/* @state: "READY=1", lines. 0 also if nobody wants it; -EAFNOSUPPORT: the
 * socket is not of a kind known here; -errno. */
int notify_send(const char *state);

#endif
