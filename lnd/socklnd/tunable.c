/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/tunable.h"

const struct lnd_tunable sock_tunables[SOCK_TUNABLES] = {
#define TUNABLE(name_, unit_, min_, max_, def_, help_) \
	[SOCK_##name_] = {                             \
		.name = #name_,                        \
		.unit = unit_,                         \
		.help = help_,                         \
		.min = min_,                           \
		.max = max_,                           \
		.def = def_,                           \
	},
#include "lnd/socklnd/tunable.def"
#undef TUNABLE
};
