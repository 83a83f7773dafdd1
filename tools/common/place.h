/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a program listens for TCP: "[ADDRESS:]PORT", in numbers, with the
 * address in brackets if it has colons; without one 127.0.0.1. */
#ifndef TOOLS_PLACE_H
#define TOOLS_PLACE_H

struct addrinfo;

/* *@info is to be given to freeaddrinfo(). -EINVAL: not such a text. */
int place_resolve(const char *address, struct addrinfo **info);

/* 0, or -EINVAL. */
int place_check(const char *address);

#endif
