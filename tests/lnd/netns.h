/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives a test a network namespace of its own, in which it may have any
 * address, and any port.
 */
#ifndef TESTS_LND_NETNS_H
#define TESTS_LND_NETNS_H

#include <netinet/in.h>
#include "base/util.h"

/*
 * Moves the process into a new network namespace for good, with a user
 * namespace if it needs one for that. The process must have one thread only.
 * Returns 0; -EPERM or a similar errno if this machine does not allow it.
 */
int netns_enter(void) must_check;

/* Adds an address to the loopback interface, and brings that up. It is no error
 * if the address is there. Returns 0 or a negative errno. */
int netns_add_addr(struct in_addr addr) must_check;

/* Returns @name, a counter of TCP in /proc/net/netstat, since the namespace was
 * made; 0 if the system does not have it. */
unsigned long netns_counter(const char *name);

#endif
