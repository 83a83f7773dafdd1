/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/tunable.h"

const struct lnd_tunable ib_tunables[IB_TUNABLES] = {
#define TUNABLE(name_, unit_, min_, max_, def_, help_) \
	[IB_TUNE_##name_] = {                          \
		.name = #name_,                        \
		.unit = unit_,                         \
		.help = help_,                         \
		.min = min_,                           \
		.max = max_,                           \
		.def = def_,                           \
	},
#include "lnd/o2iblnd/tunable.def"
#undef TUNABLE
};
