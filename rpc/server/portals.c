/* SPDX-License-Identifier: BSD-3-Clause */
/* Which service has which name and which portal. */
#include "rpc/server/portals.h"

#include <errno.h>
#include <string.h>

#include "rpc/server/serve/service.h"
#include "rpc/server/service_conf.h"

static struct ulrpc_service *portals_find(struct services *all,
					  unsigned int portal)
{
	struct ulrpc_service *svc;

	list_for_each_entry (svc, &all->all, link)
		if (svc->portal == portal)
			return svc;
	return NULL;
}

/* Returns the portal that a service named @name had before; 0: there is none,
 * or another service has it. */
static unsigned int portal_former(struct services *all, const char *name)
{
	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		if (!strcmp(all->former[i], name) && !portals_find(all, i))
			return i;
	return 0;
}

/* Sets *@portal_p to the portal that a service named @name had before, because
 * clients may still send there; else to the one that has been free for the
 * longest time, so that late messages for its former service are not likely to
 * arrive. Returns 0; -ENOSPC: no portal is free. */
static int portal_choose(struct services *all, const char *name,
			 unsigned int *portal_p)
{
	unsigned int n = ULRPC_PORTAL_LAST - ULRPC_PORTAL_FIRST + 1;

	*portal_p = portal_former(all, name);
	if (*portal_p)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		unsigned int portal =
			ULRPC_PORTAL_FIRST + (all->next_portal + i) % n;

		if (portals_find(all, portal))
			continue;
		all->next_portal = (all->next_portal + i + 1) % n;
		*portal_p = portal;
		return 0;
	}
	return -ENOSPC;
}

int portals_claim(struct services *all, struct ulrpc_service *svc,
		  const struct ulrpc_service_conf *c)
{
	struct ulrpc_service *other;

	list_for_each_entry (other, &all->all, link)
		if (!strcmp(other->name, svc->name))
			return service_refuse(
				c, -EEXIST, "name: '%s' is in use", svc->name);
	svc->portal = svc->conf.portal;
	other = svc->portal ? portals_find(all, svc->portal) : NULL;
	if (other)
		return service_refuse(c, -EEXIST,
				      "portal: %u is that of service %s",
				      svc->portal, other->name);
	if (!svc->portal && portal_choose(all, svc->name, &svc->portal))
		return service_refuse(c, -ENOSPC,
				      "portal: none from %d to %d is left",
				      ULRPC_PORTAL_FIRST, ULRPC_PORTAL_LAST);
	list_add_tail(&all->all, &svc->link);
	all->former[svc->portal][0] = 0;
	return 0;
}

void portals_release(struct ulrpc_service *svc)
{
	struct services *all = svc->rpc->services;

	pthread_mutex_lock(&svc->rpc->wait.lock);
	list_del(&svc->link);
	if (svc->started)
		text_copy(all->former[svc->portal], ULRPC_SERVICE_NAME,
			  svc->name);
	pthread_mutex_unlock(&svc->rpc->wait.lock);
}
