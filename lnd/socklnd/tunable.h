/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers that users may set for an NI: socklnd(7). The names are those of
 * the kernel's module parameters. */
#ifndef LND_SOCKLND_TUNABLE_H
#define LND_SOCKLND_TUNABLE_H

#include "lnd/lnd.h"

enum sock_tunable {
#define TUNABLE(name, unit, min, max, def, help) SOCK_##name,
#include "lnd/socklnd/tunable.def"
#undef TUNABLE
	SOCK_TUNABLES
};

extern const struct lnd_tunable sock_tunables[SOCK_TUNABLES];

#endif
