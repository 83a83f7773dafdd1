/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/stray.h"

#include <string.h>

#include "rpc/rpc.h"

struct stray *stray_new(struct shard *from, unsigned int cpt,
			const struct ulnet_event *ev, const void *payload,
			size_t length)
{
	struct stray *stray = malloc(sizeof(*stray) + length);

	if (!stray)
		return NULL;
	stray->from = from;
	stray->to = rpc_shard_of(from->rpc, cpt);
	stray->ev = *ev;
	stray->length = length;
	if (payload)
		memcpy(stray->payload, payload, length);
	return stray;
}

static void on_back(struct ulnet_work *w)
{
	struct stray *stray = container_of(w, struct stray, work);
	struct shard *s = stray->from;

	if (!s->crashed)
		stray->back(stray);
	free(stray);
	shard_taken(s);
}

static void on_there(struct ulnet_work *w)
{
	struct stray *stray = container_of(w, struct stray, work);
	struct shard *s = stray->to;

	if (!s->crashed)
		stray->there(stray);
	stray->work.fn = on_back;
	shard_give(stray->from, w);
	shard_taken(s);
}

void stray_send(struct stray *stray, stray_fn there, stray_fn back, void *arg)
{
	stray->there = there;
	stray->back = back;
	stray->arg = arg;
	stray->work.fn = on_there;
	shard_give(stray->to, &stray->work);
}
