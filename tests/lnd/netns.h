/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network of a test's own: it may have any address there, and any port.
 */
#ifndef TESTS_LND_NETNS_H
#define TESTS_LND_NETNS_H

#include <netinet/in.h>
#include "base/util.h"

/*
 * The process goes into a new network namespace, with a user namespace if it
 * needs one for that, and never comes back. One thread only. 0; -EPERM and the
 * like: this machine does not let it.
 */
int netns_enter(void) must_check;

/* One more address of the loopback interface, which comes up with the first; it
 * may have it already. 0 or a negative errno. */
int netns_add_addr(struct in_addr addr) must_check;

/* What the system has counted since the network was made as @name, a counter of
 * TCP in /proc/net/netstat; 0 if it does not count that. */
unsigned long netns_counter(const char *name);

#endif
