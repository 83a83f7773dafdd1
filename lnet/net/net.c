/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/net/net.h"

struct lnet_ni *config_ni(const struct lnet_config *c,
			  const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		if (lnet_nid_eq(&c->ni[i]->lnd.nid, nid))
			return c->ni[i];
	return NULL;
}

bool config_has_net(const struct lnet_config *c, uint32_t net)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		if (ni_net(c->ni[i]) == net)
			return true;
	return false;
}

struct lnet_ni *config_only(const struct lnet_config *c, uint32_t net)
{
	struct lnet_ni *only = NULL;

	for (unsigned int i = 0; i < c->nnis; i++) {
		if (ni_net(c->ni[i]) != net)
			continue;
		if (only)
			return NULL;
		only = c->ni[i];
	}
	return only;
}
