/* SPDX-License-Identifier: BSD-3-Clause */
/* Bridges of this host, as the kernel knows them (rtnetlink(7)). Any thread. */
#ifndef LNET_TEXT_BRIDGE_H
#define LNET_TEXT_BRIDGE_H

#include <stdbool.h>

/* Is the interface @name a bridge that has no port? Nobody is reached by such a
 * bridge, but until its first port comes, Linux says that it has a carrier.
 * False also if the kernel cannot be asked. */
bool bridge_is_empty(const char *name);

#endif
