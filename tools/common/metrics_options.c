/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics_options.h"

#include <errno.h>

#include "metrics.h"
#include "option.h"
#include "place.h"

void metrics_options_init(struct metrics_options *o)
{
	*o = (struct metrics_options){ .peers = METRICS_PEERS };
}

static int take_address(struct metrics_options *o, const char *who,
			const char *arg)
{
	if (place_check(arg))
		return option_bad(who, "metrics", arg,
				  "[ADDRESS:]PORT is expected, with an "
				  "address in numbers, like 127.0.0.1:9988 or "
				  "[::1]:9988");
	o->address = arg;
	return 0;
}

int metrics_options_take(struct metrics_options *o, const char *who, int option,
			 const char *arg)
{
	switch (option) {
	case 'm':
		return take_address(o, who, arg);
	case METRICS_OPT_PEERS:
		return option_number(who, "metrics-peers", arg, 0,
				     METRICS_PEERS_MAX, &o->peers);
	}
	return -ENOENT;
}
