/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/identity.h"

struct identity *identity_new(enum identity_kind kind, const char *name,
			      const char *issuer)
{
	size_t n = strlen(name) + 1, nissuer = strlen(issuer) + 1;
	struct identity *id = calloc(1, sizeof(*id) + n + nissuer);

	if (!id)
		return NULL;
	id->refs = 1;
	id->kind = kind;
	id->name = memcpy(id->texts, name, n);
	id->issuer = memcpy(id->texts + n, issuer, nissuer);
	return id;
}

void identity_put(struct identity *id)
{
	if (!id || atomic_fetch_sub(&id->refs, 1) > 1)
		return;
	free(id->nids);
	free(id);
}

bool identity_same(const struct identity *a, const struct identity *b)
{
	if (!a || !b)
		return a == b;
	if (a->kind != b->kind)
		return false;
	return a->kind == IDENTITY_CLUSTER_KEY ||
	       (!strcmp(a->name, b->name) && !strcmp(a->issuer, b->issuer));
}
