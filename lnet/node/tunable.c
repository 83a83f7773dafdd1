/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said about an LND's tunables without an NI of it. */
#include <errno.h>

#include "lnd/lnd.h"
#include "lnet/node/nis.h"

int lnet_tunables(struct lnet *node, uint32_t net,
		  struct ulnet_tunable_info *infos, unsigned int n)
{
	const struct lnd *lnd = node_lnd(node, (int)LNET_NET_TYPE(net));

	if (!lnd)
		return -EPROTONOSUPPORT;
	for (unsigned int i = 0; i < n && i < lnd->ntunables; i++) {
		const struct lnd_tunable *t = &lnd->tunables[i];

		infos[i] = (struct ulnet_tunable_info){
			.name = t->name,
			.unit = t->unit,
			.help = t->help,
			.min = t->min,
			.max = t->max,
			.def = t->def,
		};
	}
	return (int)lnd->ntunables;
}
