/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/context/intercept.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int list_check(const void *list, unsigned int n, const char *field,
		      struct conf_owner owner)
{
	if (n && !list)
		return conf_refuse(owner, -EINVAL, "%s: there are none", field);
	if (n > ULRPC_INTERCEPTORS_MAX)
		return conf_refuse(owner, -EINVAL, "n%s: %u is more than %d",
				   field, n, ULRPC_INTERCEPTORS_MAX);
	return 0;
}

static int idle_refuse(const char *field, unsigned int i,
		       struct conf_owner owner)
{
	return conf_refuse(owner, -EINVAL,
			   "%s: number %u has neither begin nor end", field,
			   i + 1);
}

int call_interceptors_check(const struct ulrpc_call_interceptor *list,
			    unsigned int n, const char *field,
			    struct conf_owner owner)
{
	int rc = list_check(list, n, field, owner);

	for (unsigned int i = 0; i < n && !rc; i++)
		if (!list[i].begin && !list[i].end)
			rc = idle_refuse(field, i, owner);
	return rc;
}

int request_interceptors_check(const struct ulrpc_request_interceptor *list,
			       unsigned int n, const char *field,
			       struct conf_owner owner)
{
	int rc = list_check(list, n, field, owner);

	for (unsigned int i = 0; i < n && !rc; i++)
		if (!list[i].begin && !list[i].end)
			rc = idle_refuse(field, i, owner);
	return rc;
}

/* Returns memory for a list of @na entries of @a and @nb of @b, of @size bytes
 * each, behind @head bytes; NULL: no memory. */
static void *chain_alloc(size_t head, size_t size, const void *a,
			 unsigned int na, const void *b, unsigned int nb)
{
	uint8_t *chain = malloc(head + (na + nb) * size);

	if (chain && na)
		memcpy(chain + head, a, na * size);
	if (chain && nb)
		memcpy(chain + head + na * size, b, nb * size);
	return chain;
}

_Static_assert(offsetof(struct call_chain, list) == sizeof(struct call_chain) &&
		       offsetof(struct request_chain, list) ==
			       sizeof(struct request_chain),
	       "lists begin where chain_alloc() puts them");

int call_chain_new(const struct ulrpc_call_interceptor *a, unsigned int na,
		   const struct ulrpc_call_interceptor *b, unsigned int nb,
		   struct call_chain **chain_p)
{
	struct call_chain *c = NULL;

	if (na + nb) {
		c = chain_alloc(sizeof(*c), sizeof(c->list[0]), a, na, b, nb);
		if (!c)
			return -ENOMEM;
		atomic_init(&c->refs, 1);
		c->n = na + nb;
	}
	*chain_p = c;
	return 0;
}

int request_chain_new(const struct ulrpc_request_interceptor *a,
		      unsigned int na,
		      const struct ulrpc_request_interceptor *b,
		      unsigned int nb, struct request_chain **chain_p)
{
	struct request_chain *c = NULL;

	if (na + nb) {
		c = chain_alloc(sizeof(*c), sizeof(c->list[0]), a, na, b, nb);
		if (!c)
			return -ENOMEM;
		atomic_init(&c->refs, 1);
		c->n = na + nb;
	}
	*chain_p = c;
	return 0;
}

void call_chain_put(struct call_chain *c)
{
	if (c && atomic_fetch_sub(&c->refs, 1) == 1)
		free(c);
}

void request_chain_put(struct request_chain *c)
{
	if (c && atomic_fetch_sub(&c->refs, 1) == 1)
		free(c);
}
