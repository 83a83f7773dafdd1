/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/pair.h"

struct real_net pair_net = {
	.nids = { "127.0.0.5@tcp", "127.0.0.6@tcp" },
	.absent = "127.0.0.99@tcp",
	.run = LNET_RUN_THREADS,
	.cpts = 1,
	.port = true,
};

struct lnd_rig pair = {
	.name = "pair", .can = RIG_THREADS, .ops = &real_ops, .arg = &pair_net
};

bool pair_up(struct fx *fx, const struct ulnet_tunable *tunables,
	     unsigned int n)
{
	*fx = (struct fx){ .lock = PTHREAD_MUTEX_INITIALIZER };
	pair_net.tunables = tunables;
	pair_net.ntunables = n;
	return expect(fx, fx_up(fx, &pair) == 0);
}

int pair_down(struct fx *fx)
{
	fx_down(fx);
	return fx->failures ? 1 : 0;
}
