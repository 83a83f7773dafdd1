/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/known.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/server/session/export.h"

struct known_set {
	struct quota *quota; /* is charged with the whole structure */
	uint32_t number, length;
	uint8_t bytes[];
};

struct known_sets {
	struct quota *quota;		    /* is charged with this structure */
	struct known_set *sets[KNOWN_SETS]; /* NULL: none */
};

static uint32_t set_size(uint32_t length)
{
	return (uint32_t)sizeof(struct known_set) + length;
}

/* Returns memory that is charged to @e in *@quota_p; NULL: there is no room. */
static void *known_alloc(struct exports *x, const struct export *e,
			 uint32_t size, struct quota **quota_p)
{
	void *p;

	*quota_p = quota_take(&x->sets, export_source(e), size,
			      shard_now(x->shard));
	if (!*quota_p)
		return NULL;
	p = calloc(1, size);
	if (!p)
		quota_put(&x->sets, *quota_p, size);
	return p;
}

static struct known_sets *known_get(struct exports *x, struct export *e)
{
	struct quota *quota;

	if (e->known_sets)
		return e->known_sets;
	e->known_sets = known_alloc(x, e, sizeof(struct known_sets), &quota);
	if (e->known_sets)
		e->known_sets->quota = quota;
	return e->known_sets;
}

static void set_free(struct exports *x, struct known_set *s)
{
	if (!s)
		return;
	quota_put(&x->sets, s->quota, set_size(s->length));
	free(s);
}

void known_add(struct exports *x, struct export *e, uint32_t number,
	       struct wire_view pairs)
{
	uint32_t length = (uint32_t)view_length(pairs);
	struct known_sets *known = known_get(x, e);
	struct known_set **at, *s;
	struct quota *quota;

	if (!known)
		return;
	at = &known->sets[number % KNOWN_SETS];
	if (*at && (*at)->number >= number)
		return;
	set_free(x, *at);
	*at = s = known_alloc(x, e, set_size(length), &quota);
	if (!s)
		return;
	s->quota = quota;
	s->number = number;
	s->length = length;
	memcpy(s->bytes, pairs.p, length);
}

bool known_find(const struct export *e, uint32_t number,
		struct wire_view *pairs)
{
	const struct known_set *s =
		e->known_sets ? e->known_sets->sets[number % KNOWN_SETS] : NULL;

	if (!s || s->number != number)
		return false;
	*pairs = (struct wire_view){ s->bytes, s->bytes + s->length };
	return true;
}

void known_drop(struct exports *x, struct export *e)
{
	struct known_sets *known = e->known_sets;

	if (!known)
		return;
	for (unsigned int i = 0; i < KNOWN_SETS; i++)
		set_free(x, known->sets[i]);
	quota_put(&x->sets, known->quota, sizeof(*known));
	free(known);
	e->known_sets = NULL;
}
