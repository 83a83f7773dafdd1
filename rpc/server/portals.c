/* SPDX-License-Identifier: BSD-3-Clause */
/* Which service has which name, portal and number. */
#include "rpc/server/portals.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/server/serve/service.h"
#include "rpc/server/service_conf.h"

/* Numbers to choose from: @n of them, from @first on. */
struct numbers {
	unsigned int first, n;
};

/* portals, and numbers of services that share one */
static const struct numbers own = {
	ULRPC_PORTAL_FIRST, ULRPC_PORTAL_LAST - ULRPC_PORTAL_FIRST + 1
};
static const struct numbers shared = { LNET_PORTALS,
				       SERVICE_NUMBERS - LNET_PORTALS };

static struct ulrpc_service *number_find(struct services *all,
					 unsigned int number)
{
	struct ulrpc_service *svc;

	list_for_each_entry (svc, &all->all, link)
		if (svc->number == number)
			return svc;
	return NULL;
}

/* Returns the number from @begin to @end - 1 that a service named @name had
 * before; 0: there is none, or another service has it. */
static unsigned int number_former(struct services *all, const char *name,
				  unsigned int begin, unsigned int end)
{
	for (unsigned int i = begin; i < end; i++)
		if (!strcmp(all->former[i], name) && !number_find(all, i))
			return i;
	return 0;
}

/* Returns the number of @set that has been free for the longest time, so that
 * late messages for its former service are not likely to arrive. *@next is
 * where to begin, counted from the first number. 0: none is free. */
static unsigned int number_free(struct services *all, const struct numbers *set,
				unsigned int *next)
{
	for (unsigned int i = 0; i < set->n; i++) {
		unsigned int at = (*next + i) % set->n;

		if (number_find(all, set->first + at))
			continue;
		*next = (at + 1) % set->n;
		return set->first + at;
	}
	return 0;
}

static bool portals_are_left(struct services *all, unsigned int n)
{
	for (unsigned int i = 0; i < own.n && n; i++)
		n -= !number_find(all, own.first + i);
	return !n;
}

static int none_left(const struct ulrpc_service_conf *c)
{
	return service_refuse(c, -ENOSPC, "portal: none from %d to %d is left",
			      ULRPC_PORTAL_FIRST, ULRPC_PORTAL_LAST);
}

/* Chooses a number on the shared portal. Returns 0 or -ENOSPC. */
static int number_share(struct services *all, struct ulrpc_service *svc,
			const struct ulrpc_service_conf *c)
{
	unsigned int n =
		number_former(all, svc->name, LNET_PORTALS, SERVICE_NUMBERS);

	if (!n)
		n = number_free(all, &shared, &all->next_number);
	if (!n)
		return service_refuse(c, -ENOSPC,
				      "portal: it is shared by %u services "
				      "already",
				      shared.n);
	svc->number = n;
	svc->portal = all->shared->portal;
	return 0;
}

/* Chooses the portal that a service of this name had before, because clients
 * may still send there, else a free one. The last one is kept for sharing. Once
 * it is shared, portals that become free only go to services that had them: the
 * next one would soon be in their place, and get calls that are late. Returns
 * what portals_claim() returns. */
static int number_choose(struct services *all, struct ulrpc_service *svc,
			 const struct ulrpc_service_conf *c)
{
	unsigned int n = number_former(all, svc->name, 1, LNET_PORTALS);

	if (!n && !all->shared && portals_are_left(all, 2))
		n = number_free(all, &own, &all->next_portal);
	if (n) {
		svc->portal = svc->number = n;
		return 0;
	}
	if (!all->shared && !portals_are_left(all, 1))
		return none_left(c);
	if (!all->shared_up)
		return -EAGAIN;
	return number_share(all, svc, c);
}

static int number_take(struct services *all, struct ulrpc_service *svc,
		       const struct ulrpc_service_conf *c)
{
	const struct ulrpc_service *other = number_find(all, c->portal);

	if (!c->portal)
		return number_choose(all, svc, c);
	if (other && other->shared)
		return service_refuse(c, -EEXIST,
				      "portal: %u is shared by services that "
				      "have not asked for one",
				      c->portal);
	if (other)
		return service_refuse(c, -EEXIST,
				      "portal: %u is that of service %s",
				      c->portal, other->name);
	svc->portal = svc->number = c->portal;
	return 0;
}

/* Returns what services.had is to say of the number of @svc when clients can
 * find @svc. */
static struct number_had had_with(const struct services *all,
				  const struct ulrpc_service *svc)
{
	struct number_had had = all->had[svc->number];
	uint32_t name = crc32c(0, svc->name, strlen(svc->name)) | 1;

	had.times += had.name && had.name != name;
	had.name = name;
	return had;
}

/* Sets what clients of @svc, which has a number, name it by. */
static void mark_set(const struct services *all, struct ulrpc_service *svc)
{
	svc->mark = svc->number + had_with(all, svc).times * SERVICE_NUMBERS;
	if (svc->mark == svc->portal)
		svc->mark = 0;
}

int portals_claim(struct services *all, struct ulrpc_service *svc,
		  const struct ulrpc_service_conf *c)
{
	struct ulrpc_service *other;
	int rc;

	list_for_each_entry (other, &all->all, link)
		if (!other->shared && !strcmp(other->name, svc->name))
			return service_refuse(
				c, -EEXIST, "name: '%s' is in use", svc->name);
	rc = number_take(all, svc, c);
	if (rc)
		return rc;
	list_add_tail(&all->all, &svc->link);
	mark_set(all, svc);
	return 0;
}

int portals_share(struct services *all, struct ulrpc_service *svc,
		  const struct ulrpc_service_conf *c)
{
	unsigned int portal = number_free(all, &own, &all->next_portal);

	if (!portal)
		return none_left(c);
	svc->portal = svc->number = portal;
	list_add_tail(&all->all, &svc->link);
	all->shared = svc;
	return 0;
}

void portals_use(struct ulrpc_service *svc)
{
	struct services *all = svc->rpc->services;

	pthread_mutex_lock(&svc->rpc->wait.lock);
	if (!svc->shared)
		all->had[svc->number] = had_with(all, svc);
	all->former[svc->number][0] = 0;
	pthread_mutex_unlock(&svc->rpc->wait.lock);
}

void portals_release(struct ulrpc_service *svc)
{
	struct services *all = svc->rpc->services;

	pthread_mutex_lock(&svc->rpc->wait.lock);
	list_del(&svc->link);
	if (svc->started)
		text_copy(all->former[svc->number], ULRPC_SERVICE_NAME,
			  svc->name);
	if (svc->shared) {
		all->shared = NULL;
		wait_wake(&svc->rpc->wait);
	}
	pthread_mutex_unlock(&svc->rpc->wait.lock);
}
