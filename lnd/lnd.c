/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/lnd.h"

extern const struct lnd lolnd;
extern const struct lnd socklnd;
extern const struct lnd o2iblnd;

/* Every LND that nets are configured by; one line each. */
static const struct lnd *const lnds[] = {
	&lolnd,
	&socklnd,
	&o2iblnd,
};

const struct lnd *lnd_find(int type)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(lnds); i++)
		if (lnds[i]->type == type)
			return lnds[i];
	return NULL;
}

_Static_assert(ARRAY_SIZE(lnds) <= LND_COUNT_MAX, "LND_COUNT_MAX");

int lnd_index(const struct lnd *lnd)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(lnds); i++)
		if (lnds[i] == lnd)
			return (int)i;
	return -1;
}
