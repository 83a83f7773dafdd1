/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for network interfaces and addresses that the system does not have
 * yet. */
#ifndef TOOLS_LNETD_WAITING_H
#define TOOLS_LNETD_WAITING_H

#include <stdint.h>

/* Returns a descriptor that becomes readable when a link or an address changes,
 * to be closed; -1: the system does not tell. */
int waiting_open(void);

/* Waits until a link or an address has changed since the last call, or since
 * waiting_open(). With @fd -1 it waits for a second instead. Ends at the time
 * @at of clock_ns(), or with a signal (signals_open()). Returns the number of
 * the signal; 0: none has come. */
int waiting_wait(int fd, int signals, uint64_t at);

#endif
