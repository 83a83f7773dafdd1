/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers that users may set for an NI: o2iblnd(7). The names are those of
 * the kernel's module parameters. */
#ifndef LND_O2IBLND_TUNABLE_H
#define LND_O2IBLND_TUNABLE_H

#include "lnd/lnd.h"

enum ib_tunable {
#define TUNABLE(name, unit, min, max, def, help) IB_TUNE_##name,
#include "lnd/o2iblnd/tunable.def"
#undef TUNABLE
	IB_TUNABLES
};

extern const struct lnd_tunable ib_tunables[IB_TUNABLES];

#endif
