/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What came to another CPT than the one that knows its connection: a copy of it
 * goes there, and comes back when it is done with, for who passed it on to
 * count how many are under way. Knows nothing of what it says.
 */
#ifndef RPC_STRAY_H
#define RPC_STRAY_H

#include "ulnet/loop.h"

struct shard;
struct stray;

typedef void (*stray_fn)(struct stray *stray);

struct stray {
	struct ulnet_work work;
	struct shard *from, *to;
	stray_fn there, back;
	void *arg; /* the sender's */
	struct ulnet_event ev;
	size_t length;
	_Alignas(uint64_t) uint8_t payload[];
};

/* With a copy of @ev and @payload, which may be NULL: then to be filled. NULL:
 * no memory. Owner of @from. */
struct stray *stray_new(struct shard *from, unsigned int cpt,
			const struct ulnet_event *ev, const void *payload,
			size_t length);
/* Calls @there on its CPT, and then @back on the sender's, neither if the node
 * has crashed, and frees it. Owner of its sender. */
void stray_send(struct stray *stray, stray_fn there, stray_fn back, void *arg);

#endif
