/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/replicas/set.h"

#include <string.h>

#include "rpc/client/fetch.h"
#include "rpc/replicas/replicas.h"
#include "rpc/stream/streams.h"

static void tell(const struct ulrpc_replicas *rs, struct client_set *set)
{
	const struct credit window = streams_window(&rs->streams);
	const uint64_t now[CLIENT_SET_ITEMS] = {
		[CLIENT_SET_window_messages] = window.messages,
		[CLIENT_SET_window_bytes] = window.bytes,
		[CLIENT_SET_patience] = atomic_load(&rs->patience),
		[CLIENT_SET_inflight_max] = rs->conf.inflight_max,
		[CLIENT_SET_queue_max] = rs->backlog.calls_max,
		[CLIENT_SET_queue_bytes] = rs->backlog.bytes_max,
		[CLIENT_SET_reply_limit] =
			fetch_limit(rs->rpc, rs->conf.reply_limit),
	};

	set->sets++;
	set->streams++;
	client_set_tell(set, now);
}

/* For servers at which no stream was opened yet; the others are in
 * streams_node.callers. */
static void change_streams(struct ulrpc_replicas *rs,
			   const struct client_set *set)
{
	const uint64_t *v = set->values;

	if (client_set_has(set, CLIENT_SET_window_messages))
		rs->streams.window_messages =
			(uint32_t)v[CLIENT_SET_window_messages];
	if (client_set_has(set, CLIENT_SET_window_bytes))
		rs->streams.window_bytes = (uint32_t)v[CLIENT_SET_window_bytes];
	if (client_set_has(set, CLIENT_SET_patience))
		rs->streams.patience = v[CLIENT_SET_patience];
	atomic_store(&rs->patience, streams_patience(&rs->streams));
}

static void change(struct ulrpc_replicas *rs, const struct client_set *set)
{
	const uint64_t *v = set->values;

	/* for servers that are added from now on */
	if (client_set_has(set, CLIENT_SET_inflight_max))
		rs->conf.inflight_max = (uint32_t)v[CLIENT_SET_inflight_max];
	if (client_set_has(set, CLIENT_SET_reply_limit))
		rs->conf.reply_limit = fetch_limit_needed(
			rs->rpc, (uint32_t)v[CLIENT_SET_reply_limit]);
	if (client_set_has(set, CLIENT_SET_queue_max))
		rs->backlog.calls_max = (uint32_t)v[CLIENT_SET_queue_max];
	if (client_set_has(set, CLIENT_SET_queue_bytes))
		rs->backlog.bytes_max = v[CLIENT_SET_queue_bytes];
	change_streams(rs, set);
	backlog_look(&rs->backlog, rs->ncalls, rs->shard);
}

void replicas_set(struct shard *s, struct client_set *set)
{
	struct ulrpc_replicas *rs;

	if (!s->replicas)
		return;
	list_for_each_entry (rs, &s->replicas->sets, link) {
		if (rs->closed || strcmp(rs->service, set->service))
			continue;
		change(rs, set);
		tell(rs, set);
	}
}
