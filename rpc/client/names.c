/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/names.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "rpc/client/import.h"

/* What an id is computed from. */
struct name_text {
	uint64_t what; /* the target, or the import's handle; little endian */
	uint32_t number;
	uint32_t is_target;
};

/* Does not depend on the order of the NIDs. */
static uint64_t target_of(const struct import *imp)
{
	const uint8_t *key = imp->shard->rpc->client_id;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < imp->nnids; i++) {
		uint8_t out[SIPHASH_SIZE];
		uint64_t part;

		siphash(key, &imp->nids[i], sizeof(imp->nids[i]), out);
		memcpy(&part, out, sizeof(part));
		sum += le64toh(part);
	}
	return sum + imp->pid;
}

static void name_compute(struct import *imp, uint64_t what, bool is_target)
{
	const struct name_text text = {
		.what = htole64(what),
		.number = htole32(imp->name.number),
		.is_target = htole32(is_target),
	};

	_Static_assert(RPC_ID_SIZE == SIPHASH_SIZE, "an id is one result");
	siphash(imp->shard->rpc->client_id, &text, sizeof(text), imp->name.id);
}

/* The lock is held. */
static bool is_taken(const struct import_names *names, uint64_t target,
		     uint32_t number)
{
	struct hash_node *n = hash_first(&names->by_target, target);

	for (; n; n = hash_next(n))
		if (container_of(n, struct import_name, by_target)->number ==
		    number)
			return true;
	return false;
}

static int name_list(struct import_names *names, struct import_name *name,
		     uint64_t target)
{
	int rc;

	pthread_mutex_lock(&names->lock);
	while (is_taken(names, target, name->number))
		name->number++;
	rc = hash_add(&names->by_target, &name->by_target, target);
	pthread_mutex_unlock(&names->lock);
	name->listed = !rc;
	return rc;
}

int name_give(struct import *imp)
{
	const struct ulrpc *rpc = imp->shard->rpc;
	uint64_t target;
	int rc;

	if (!rpc_id_is_set(rpc->conf.client_id)) {
		name_compute(imp, imp->handle, false);
		return 0;
	}
	target = target_of(imp);
	rc = name_list(rpc->names, &imp->name, target);
	if (rc)
		return rc;
	name_compute(imp, target, true);
	return 0;
}

void name_drop(struct import *imp)
{
	struct import_names *names = imp->shard->rpc->names;

	if (!imp->name.listed)
		return;
	pthread_mutex_lock(&names->lock);
	hash_del(&names->by_target, &imp->name.by_target);
	pthread_mutex_unlock(&names->lock);
	imp->name.listed = false;
}

int names_open(struct ulrpc *rpc)
{
	rpc->names = malloc(sizeof(*rpc->names));
	if (!rpc->names)
		return -ENOMEM;
	pthread_mutex_init(&rpc->names->lock, NULL);
	hash_init(&rpc->names->by_target);
	return 0;
}

void names_free(struct ulrpc *rpc)
{
	if (!rpc->names)
		return;
	hash_fini(&rpc->names->by_target);
	pthread_mutex_destroy(&rpc->names->lock);
	free(rpc->names);
	rpc->names = NULL;
}
