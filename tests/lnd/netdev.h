/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes to the network devices of a test's own namespace (netns.h). A change
 * returns 0 or a negative errno, and is in effect when it returns.
 */
#ifndef TESTS_LND_NETDEV_H
#define TESTS_LND_NETDEV_H

#include "base/util.h"

/* Sets a device up or down. */
int netdev_set(const char *name, bool up) must_check;
/* Gives a device that is down another name. */
int netdev_rename(const char *name, const char *to) must_check;
/* Adds an address, such as "10.0.0.1" or "fd77::1", whose network is this host
 * alone (/32, /128). */
int netdev_add_addr(const char *name, const char *addr) must_check;
int netdev_del_addr(const char *name, const char *addr) must_check;
/* Adds a pair of joined devices (veth): each has a carrier while the other is
 * up. -EOPNOTSUPP: this system has no such devices. */
int netdev_add_pair(const char *name, const char *other) must_check;
/* Removes a device; with one of a pair, also the other. */
int netdev_del(const char *name) must_check;

/* Opens a netlink socket that receives changes of IPv4 addresses, as the LND's
 * does. Returns the socket, or a negative errno. */
int netdev_listen(void) must_check;
/* Did more changes arrive than the socket of netdev_listen() can hold, so that
 * some were lost? */
bool netdev_has_lost(int fd);

#endif
