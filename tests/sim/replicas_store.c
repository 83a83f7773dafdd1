/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores of servers that execute calls exactly once. They survive their
 * nodes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/replicas_run.h"

struct record {
	struct record *next; /* in server.records */
	uint8_t key[ULRPC_RECORD_KEY];
	size_t length;
	uint8_t value[];
};

static struct record **store_find(struct server *s, const void *key)
{
	struct record **at = &s->records;

	while (*at && memcmp((*at)->key, key, ULRPC_RECORD_KEY) != 0)
		at = &(*at)->next;
	return at;
}

static int store_lookup(void *arg, const void *key, void **value_p,
			size_t *length_p)
{
	struct server *s = arg;
	const struct record *x = *store_find(s, key);

	if (!x)
		return -ENOENT;
	*value_p = malloc(x->length);
	if (!*value_p)
		abort();
	memcpy(*value_p, x->value, x->length);
	*length_p = x->length;
	s->r->replays++;
	return 0;
}

void store_conf(struct server *s, struct ulrpc_durable *durable)
{
	*durable = (struct ulrpc_durable){ .lookup = store_lookup, .arg = s };
	durable->incarnation[0] = (uint8_t)(1 + s->index);
	memcpy(durable->incarnation + 1, &s->stores, sizeof(s->stores));
}

void store_put(struct server *s, const struct ulrpc_record *record)
{
	struct record *x = malloc(sizeof(*x) + record->length);
	struct record **at = store_find(s, record->key);

	if (!x)
		abort();
	memcpy(x->key, record->key, ULRPC_RECORD_KEY);
	memcpy(x->value, record->value, record->length);
	x->length = record->length;
	x->next = *at ? (*at)->next : NULL;
	free(*at);
	*at = x;
}

void store_free(struct server *s)
{
	s->stores++;
	while (s->records) {
		struct record *x = s->records;

		s->records = x->next;
		free(x);
	}
}
