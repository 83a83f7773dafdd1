/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network devices of a test's own network (netns.h): what an administrator, or
 * somebody who trips over a cable, does to them. All return 0 or a negative
 * errno, and what they did is in effect then.
 */
#ifndef TESTS_LND_NETDEV_H
#define TESTS_LND_NETDEV_H

#include "base/util.h"

/* Takes it up or down. */
int netdev_set(const char *name, bool up) must_check;
/* An address, as in "10.0.0.1" or "fd77::1", of a network of this host alone
 * (/32, /128). */
int netdev_add_addr(const char *name, const char *addr) must_check;
int netdev_del_addr(const char *name, const char *addr) must_check;
/* Two that are each other's cable: the carrier of one is that the other is up.
 * -EOPNOTSUPP: this system knows no such. */
int netdev_add_pair(const char *name, const char *other) must_check;
/* One of a pair takes the other one with it. */
int netdev_del(const char *name) must_check;

/* A socket that hears of changes of addresses, as the LND's does, or a negative
 * errno. */
int netdev_listen(void) must_check;
/* Has there been more than it holds, so that some was lost? */
bool netdev_has_lost(int fd);

#endif
