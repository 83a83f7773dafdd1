/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids by which servers know the imports of this process. For a server an id
 * is one client with one connection, so no two imports have the same. Each is
 * computed with the process's own id as the key: a server that has been told
 * one of them cannot tell those that other servers know.
 *
 * An id that is to outlive the process is that of the target, the set of NIDs
 * that its clients name, and so is the same in the next process. While there is
 * another import to that target already, which may be on another CPT, as NIDs
 * move between them, an import is the target's second one, or third.
 *
 * Any thread.
 */
#ifndef RPC_CLIENT_NAMES_H
#define RPC_CLIENT_NAMES_H

#include <pthread.h>

#include "base/hash.h"
#include "rpc/rpc.h"

struct import;

/* Of an import. */
struct import_name {
	struct hash_node by_target;
	bool listed;
	uint32_t number; /* among those of its target, from 0 */
	uint8_t id[RPC_ID_SIZE];
};

struct import_names {
	pthread_mutex_t lock;
	struct hash by_target;
};

int names_open(struct ulrpc *rpc) must_check;
void names_free(struct ulrpc *rpc);

/* @imp, which has a handle, gets its name. -ENOMEM. */
int name_give(struct import *imp) must_check;
/* ... and gives it back, if it has one. */
void name_drop(struct import *imp);

#endif
