/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/identity.h"

#include <errno.h>

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
	/* Whoever has such a key is any of the cluster, whose key may have
	 * been replaced by one of another name. */
	return a->kind == IDENTITY_CLUSTER_KEY ||
	       (!strcmp(a->name, b->name) && !strcmp(a->issuer, b->issuer));
}

int identity_digest(const struct identity *id, const void *bytes, size_t n,
		    uint8_t digest[DIGEST_SIZE])
{
	bool named = id->kind != IDENTITY_CLUSTER_KEY;
	size_t nname = named ? strlen(id->name) + 1 : 0;
	size_t nissuer = named ? strlen(id->issuer) + 1 : 0;
	uint8_t *all = malloc(n + 1 + nname + nissuer);
	int rc;

	if (!all)
		return -ENOMEM;
	memcpy(all, bytes, n);
	all[n] = (uint8_t)id->kind;
	memcpy(all + n + 1, id->name, nname);
	memcpy(all + n + 1 + nname, id->issuer, nissuer);
	rc = digest_make(all, n + 1 + nname + nissuer, digest);
	free(all);
	return rc;
}
