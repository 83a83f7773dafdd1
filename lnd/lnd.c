/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/lnd.h"

const struct lnd *lnd_find(const struct lnd *const *lnds, int type)
{
	for (unsigned int i = 0; lnds[i]; i++)
		if (lnds[i]->type == type)
			return lnds[i];
	return NULL;
}

int lnd_index(const struct lnd *const *lnds, const struct lnd *lnd)
{
	for (unsigned int i = 0; lnds[i]; i++) {
		if (lnds[i] != lnd)
			continue;
		BUG_ON(i >= LND_COUNT_MAX);
		return (int)i;
	}
	return -1;
}
