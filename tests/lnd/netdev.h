/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network devices of a test's own network (netns.h): what an administrator, or
 * somebody who trips over a cable, does to them. All return 0 or a negative
 * errno, and what they did is in effect then.
 */
#ifndef TESTS_LND_NETDEV_H
#define TESTS_LND_NETDEV_H

#include "base/util.h"

/* Sets a device up or down. */
int netdev_set(const char *name, bool up) must_check;
/* Adds an address, such as "10.0.0.1" or "fd77::1", with no network but this
 * host (/32, /128). */
int netdev_add_addr(const char *name, const char *addr) must_check;
int netdev_del_addr(const char *name, const char *addr) must_check;
/* Adds two devices joined by a cable (veth): each has a carrier while the other
 * is up. -EOPNOTSUPP: this system has no such devices. */
int netdev_add_pair(const char *name, const char *other) must_check;
/* Removes a device, and with one of a pair the other as well. */
int netdev_del(const char *name) must_check;

/* Opens a socket that is told of changes of addresses, as the LND's is. Returns
 * it, or a negative errno. */
int netdev_listen(void) must_check;
/* Did more arrive than the socket of netdev_listen() holds, so that some was
 * lost? */
bool netdev_has_lost(int fd);

#endif
