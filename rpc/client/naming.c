/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/client/client.h"

#define SETS_MAX 16u
/* Sets that are remembered by their hashes, because they were seen once. */
#define SEEN 32u
/* Calls with metadata for which no set is defined after the server did not know
 * one: these, doubled for each further one, up to PAUSE_MAX times. */
#define PAUSE	  16u
#define PAUSE_MAX 8u
/* A body within these bytes of what the service or a message takes is sent as
 * it is, since a definition makes it longer. */
#define NEAR_REQUEST_MAX 64u
#define NEAR_MESSAGE_MAX 4096u

struct named {
	uint32_t number; /* 0: this place is free */
	uint32_t hash, length;
	bool known; /* the server has executed a call that defines it */
	uint64_t used;
	uint8_t *pairs;
};

struct naming {
	uint32_t n;	   /* how many sets the server remembers */
	uint32_t last;	   /* the highest number that was given */
	unsigned int hint; /* the set that was used last */
	uint64_t used;	   /* how often sets were looked for */
	uint32_t unknown;  /* failures in a row */
	uint64_t resume;   /* no set is defined until so many were looked for */
	uint32_t seen[SEEN];
	unsigned int nseen; /* the place of the next one */
	/* what naming_chosen() is to note, if @is_new */
	uint32_t chosen;
	bool is_new;
	struct named sets[SETS_MAX];
};

/* ---- which set ---- */

static bool is_set(const struct named *s, struct wire_view pairs)
{
	size_t length = view_length(pairs);

	return s->number && s->length == length &&
	       !memcmp(s->pairs, pairs.p, length);
}

/* Was a set with this hash seen before? It is noted by naming_chosen(). */
static bool was_seen(struct naming *ns, uint32_t hash)
{
	for (unsigned int i = 0; i < SEEN; i++)
		if (ns->seen[i] == hash)
			return true;
	ns->chosen = hash;
	ns->is_new = true;
	return false;
}

static void named_clear(struct named *s)
{
	free(s->pairs);
	*s = (struct named){ 0 };
}

/* Returns the place that was not used for the longest time. */
static unsigned int place_of_oldest(const struct naming *ns)
{
	unsigned int at = 0;

	for (unsigned int i = 1; i < ns->n; i++)
		if (ns->sets[i].used < ns->sets[at].used)
			at = i;
	return at;
}

/* Returns the next number whose place is @at; 0: numbers have run out. */
static uint32_t next_number(const struct naming *ns, unsigned int at)
{
	uint64_t number = ns->last - ns->last % ns->n + at;

	if (number <= ns->last)
		number += ns->n;
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static struct named *named_new(struct naming *ns, struct wire_view pairs,
			       uint32_t hash)
{
	unsigned int at = place_of_oldest(ns);
	uint32_t number = next_number(ns, at);
	struct named *s = &ns->sets[at];
	size_t length = view_length(pairs);
	uint8_t *copy = number ? malloc(length) : NULL;

	if (!copy)
		return NULL;
	named_clear(s);
	ns->last = number;
	*s = (struct named){ .number = number,
			     .hash = hash,
			     .length = (uint32_t)length,
			     .pairs = memcpy(copy, pairs.p, length) };
	return s;
}

static struct named *named_find(struct naming *ns, struct wire_view pairs)
{
	uint32_t hash;

	if (is_set(&ns->sets[ns->hint], pairs))
		return &ns->sets[ns->hint];
	hash = crc32c(0, pairs.p, view_length(pairs));
	for (unsigned int i = 0; i < ns->n; i++)
		if (ns->sets[i].hash == hash && is_set(&ns->sets[i], pairs))
			return &ns->sets[i];
	return ns->used >= ns->resume && was_seen(ns, hash)
		       ? named_new(ns, pairs, hash)
		       : NULL;
}

/* ---- calls ---- */

static bool has_room(const struct ulrpc_call *call)
{
	const struct ulrpc_client *c = call->client;

	return call->length + NEAR_REQUEST_MAX <= c->request_max &&
	       call->length + NEAR_MESSAGE_MAX <= c->message_max;
}

/* Returns NULL if the server remembers no sets, or there is no memory. */
static struct naming *naming_get(struct import *imp)
{
	if (!imp->naming && imp->sets) {
		imp->naming = calloc(1, sizeof(*imp->naming));
		if (imp->naming)
			imp->naming->n = imp->sets;
	}
	return imp->sets ? imp->naming : NULL;
}

void naming_choose(struct import *imp, struct ulrpc_call *call)
{
	struct naming *ns;
	uint8_t *body = call_body(call);
	struct wire_view pairs;
	struct named *s;

	call->flags &= (uint8_t)~CALL_NAMED;
	ns = naming_get(imp);
	if (!ns)
		return;
	ns->is_new = false;
	if (call->slot != SLOT_NONE || !has_room(call))
		return;
	pairs = annex_pairs(body, call->length);
	s = named_find(ns, pairs);
	if (!s)
		return;
	s->used = ns->used;
	ns->hint = (unsigned int)(s - ns->sets);
	annex_name_make(&call_context(call)->name, s->number, s->known, body,
			pairs);
	call->flags |= CALL_NAMED;
}

void naming_chosen(struct import *imp, const struct ulrpc_call *call)
{
	struct naming *ns = imp->naming;

	if (!ns || call->slot != SLOT_NONE || call->flags & CALL_LENT)
		return;
	ns->used++;
	if (ns->is_new)
		ns->seen[ns->nseen++ % SEEN] = ns->chosen;
	ns->is_new = false;
}

static struct named *named_by_number(struct import *imp, uint32_t number)
{
	struct naming *ns = imp->naming;
	struct named *s = ns && ns->n ? &ns->sets[number % ns->n] : NULL;

	return s && s->number == number ? s : NULL;
}

void naming_done(struct import *imp, const struct call_context *x)
{
	struct named *s = named_by_number(imp, x->name.number);

	if (!s)
		return;
	s->known = true;
	if (x->name.refers)
		imp->naming->unknown = 0;
}

void naming_unknown(struct import *imp, const struct call_context *x)
{
	struct named *s = named_by_number(imp, x->name.number);
	struct naming *ns = imp->naming;

	/* Of calls that have referred to one set, the first one counts. */
	if (!s)
		return;
	named_clear(s);
	ns->resume = ns->used + (PAUSE << ns->unknown);
	ns->unknown += ns->unknown < PAUSE_MAX;
}

/* ---- connections ---- */

static void naming_clear(struct naming *ns)
{
	for (unsigned int i = 0; i < SETS_MAX; i++)
		named_clear(&ns->sets[i]);
}

void naming_reset(struct import *imp, uint32_t n)
{
	struct naming *ns = imp->naming;

	imp->sets = MIN(n, SETS_MAX);
	if (!ns)
		return;
	naming_clear(ns);
	ns->n = imp->sets;
	ns->hint = 0;
	ns->unknown = 0;
	ns->resume = 0;
}

void naming_free(struct import *imp)
{
	if (!imp->naming)
		return;
	naming_clear(imp->naming);
	free(imp->naming);
}
