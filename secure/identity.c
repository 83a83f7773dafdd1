/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/identity.h"

struct identity *identity_new(enum identity_kind kind)
{
	struct identity *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->refs = 1;
	id->kind = kind;
	return id;
}

void identity_put(struct identity *id)
{
	if (!id || atomic_fetch_sub(&id->refs, 1) > 1)
		return;
	free(id->nids);
	free(id);
}
