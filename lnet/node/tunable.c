/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said about an LND's tunables without an NI of it. */
#include "lnet/node/node.h"

#include <errno.h>

#include "lnd/lnd.h"

int lnet_tunables(struct lnet *node, uint32_t net,
		  struct ulnet_tunable_info *infos, unsigned int n)
{
	int type = (int)LNET_NET_TYPE(net);
	const struct lnd *lnd = lnd_find(type);

	if (whole_node(node)->lnd && type != LNET_TYPE_LO)
		lnd = whole_node(node)->lnd;
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
