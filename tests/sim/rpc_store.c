/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores of durable services, which survive their nodes, and the
 * transactions of handlers, which do not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/rpc_run.h"

struct stored {
	struct stored *next;
	uint8_t key[ULRPC_RECORD_KEY];
	uint64_t until; /* ns: when the record may go */
	size_t length;
	uint8_t value[];
};

/* ---- the store ---- */

void store_free(struct store *s)
{
	while (s->first) {
		struct stored *x = s->first;

		s->first = x->next;
		free(x);
	}
}

void store_make(const struct member *m, struct store *s)
{
	struct run *r = m->run;

	store_free(s);
	s->sim = r->sim;
	s->owner = m;
	s->number = ++r->nstores;
	for (unsigned int i = 0; i < sizeof(s->incarnation); i++)
		s->incarnation[i] = (uint8_t)rnd(r, 256);
	s->incarnation[0] |= 1;
}

static struct stored **store_find(const struct store *s, const void *key)
{
	struct stored **at = (struct stored **)&s->first;

	while (*at && memcmp((*at)->key, key, ULRPC_RECORD_KEY) != 0)
		at = &(*at)->next;
	return at;
}

static void store_put(struct store *s, const struct ulrpc_record *record,
		      uint64_t until)
{
	struct stored *x = malloc(sizeof(*x) + record->length), **at;

	if (!x)
		abort();
	memcpy(x->key, record->key, ULRPC_RECORD_KEY);
	memcpy(x->value, record->value, record->length);
	x->length = record->length;
	x->until = until;
	at = store_find(s, x->key);
	x->next = *at ? (*at)->next : NULL;
	free(*at);
	*at = x;
}

int store_lookup(void *arg, const void *key, void **value_p, size_t *length_p)
{
	const struct store *s = arg;
	const struct stored *x = *store_find(s, key);

	audit_lookup(s->owner, key);
	if (!x || x->until < lnet_sim_now(s->sim))
		return -ENOENT;
	*value_p = malloc(x->length);
	if (!*value_p)
		abort();
	memcpy(*value_p, x->value, x->length);
	*length_p = x->length;
	return 0;
}

/* ---- transactions ---- */

static struct store *store_of(const struct job *j)
{
	return &j->m->stores[j->body.service];
}

/* Is the process that began the transaction still there, with RPC open? */
static bool process_lives(const struct job *j)
{
	return !j->dead && j->m->rpc && j->m->life == j->life &&
	       lnet_sim_node(j->m->run->sim, j->m->index);
}

static void store_fails(struct job *j, int status)
{
	j->store = STORE_ABORTED;
	j->body.status = status;
}

void store_begin(struct job *j)
{
	const struct test_body *b = &j->body;
	struct lnet_sim *sim = j->m->run->sim;
	uint32_t length = b->status ? 0 : b->reply_length;
	char *reply = lnet_sim_buf(sim, length + 1);
	int rc;

	pattern_fill(reply, length, reply_pattern(b->id));
	j->store = STORE_BEGUN;
	j->store_number = store_of(j)->number;
	rc = ulrpc_request_record(j->request, b->status, reply, length,
				  &j->record);
	lnet_sim_buf_retire(sim, reply);
	if (rc && rc != -EMSGSIZE)
		lnet_sim_fail(sim, "node %u: call %lu cannot be recorded: %d",
			      j->m->index, (unsigned long)b->id, rc);
	if (!rc && j->record.keep != ULRPC_NEVER)
		j->store_until = lnet_sim_now(sim) + j->record.keep * US;
	else
		j->store_until = UINT64_MAX;
	if (rc || b->disk_full)
		store_fails(j, rc ? rc : -ENOSPC);
	else if (b->stores_first)
		store_commit(j);
}

void store_commit(struct job *j)
{
	if (!process_lives(j)) {
		tally_count(j->m->run, COMMIT_IS_LOST);
		store_fails(j, -EIO);
		return;
	}
	j->store = STORE_COMMITTED;
	execute(j->m->run->calls[j->body.id - 1], j->m);
	/* If its service has ended, and the next one has another store, the
	 * record is lost. */
	if (store_of(j)->number == j->store_number)
		store_put(store_of(j), &j->record, j->store_until);
}

int store_end(struct job *j, int status)
{
	if (j->store == STORE_COMMITTED)
		return 0;
	if (j->store == STORE_BEGUN && !status)
		store_commit(j);
	if (j->store == STORE_COMMITTED)
		return 0;
	j->m->run->calls[j->body.id - 1]->vain++;
	return status;
}
