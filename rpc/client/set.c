/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/set.h"

#include <string.h>

#include "rpc/client/client.h"
#include "rpc/client/fetch.h"
#include "rpc/client/imports.h"

/* What a set of servers has as the limits of its queue is not that of the
 * clients that it has for them: rpc/replicas/set.c. */
static void tell(const struct ulrpc_client *c, struct client_set *set)
{
	const uint64_t now[CLIENT_SET_ITEMS] = {
		[CLIENT_SET_inflight_max] = c->inflight_max,
		[CLIENT_SET_queue_max] = c->of_set ? 0 : c->backlog.calls_max,
		[CLIENT_SET_queue_bytes] = c->of_set ? 0 : c->backlog.bytes_max,
		[CLIENT_SET_reply_limit] = fetch_limit(
			c->rpc, client_limit(c, atomic_load(&c->reply_limit))),
	};

	set->clients++;
	client_set_tell(set, now);
}

static void set_window(struct ulrpc_client *c, uint32_t most)
{
	c->inflight_max = most;
	window_grant(&c->window,
		     c->server_window ? MIN(c->server_window, most) : most);
	c->window.left = MIN(c->window.left, c->window.limit);
	if (c->nqueued && c->fsm.state == CLIENT_OPEN && import_is_up(c->imp))
		client_kick(c);
}

static void set_queue(struct ulrpc_client *c, const struct client_set *set)
{
	if (c->of_set)
		return;
	if (client_set_has(set, CLIENT_SET_queue_max))
		c->backlog.calls_max =
			(uint32_t)set->values[CLIENT_SET_queue_max];
	if (client_set_has(set, CLIENT_SET_queue_bytes))
		c->backlog.bytes_max = set->values[CLIENT_SET_queue_bytes];
}

static void change(struct ulrpc_client *c, const struct client_set *set)
{
	uint32_t limit = (uint32_t)set->values[CLIENT_SET_reply_limit];

	if (client_set_has(set, CLIENT_SET_inflight_max))
		set_window(c, (uint32_t)set->values[CLIENT_SET_inflight_max]);
	if (client_set_has(set, CLIENT_SET_reply_limit))
		client_limit_replies(c, fetch_limit_needed(c->rpc, limit));
	set_queue(c, set);
	client_look(c);
}

void clients_set(struct shard *s, struct client_set *set)
{
	struct ulrpc_client *c;
	struct import *imp;

	if (!s->imports)
		return;
	list_for_each_entry (imp, &s->imports->all, link)
		list_for_each_entry (c, &imp->clients, link) {
			if (client_marks(c) & CLIENT_CLOSED ||
			    strcmp(c->service, set->service))
				continue;
			change(c, set);
			tell(c, set);
		}
}
