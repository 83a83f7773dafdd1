/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a service, and of this node's clients of one, may be changed while it
 * runs. A change has any number of items, and is made whole, or not at all.
 * rpc/stats has the request for it, rpc/server/set.c and rpc/client/set.c make
 * it.
 */
#ifndef RPC_SERVICE_SET_H
#define RPC_SERVICE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

/* Who has an item: all; services with workers only; those with streams only. */
enum set_of { SET_OF_ALL, SET_OF_WORKERS, SET_OF_STREAMS };

/* X(name, least, most, of): the items that are numbers, as in struct
 * ulrpc_service_conf and ulrpc_stream_service_conf. */
#define SERVICE_SETS(X)                                   \
	X(workers_min, 1, 4096, SET_OF_WORKERS)           \
	X(workers_max, 1, 4096, SET_OF_WORKERS)           \
	X(high_ratio, 1, UINT32_MAX, SET_OF_WORKERS)      \
	X(queue_max, 1, UINT32_MAX, SET_OF_ALL)           \
	X(queue_bytes_max, 1, INT64_MAX / 8, SET_OF_ALL)  \
	X(request_limit, 1, UINT32_MAX, SET_OF_ALL)       \
	X(reply_limit, 1, UINT32_MAX, SET_OF_ALL)         \
	X(window, 1, UINT32_MAX, SET_OF_ALL)              \
	X(segments, 1, UINT32_MAX, SET_OF_ALL)            \
	X(retry_after, 1, UINT32_MAX, SET_OF_ALL)         \
	X(window_messages, 1, UINT32_MAX, SET_OF_STREAMS) \
	X(window_bytes, 1, UINT32_MAX, SET_OF_STREAMS)    \
	X(streams_max, 1, UINT32_MAX, SET_OF_STREAMS)

#define SERVICE_SET_ENUM(name, least, most, of) SERVICE_SET_##name,
enum service_set_item { SERVICE_SETS(SERVICE_SET_ENUM) SERVICE_SET_ITEMS };

struct service_set {
	const char *service; /* its name */
	uint32_t given;	     /* bit i: values[i] is to be set */
	uint64_t values[SERVICE_SET_ITEMS];
	const char *policy; /* NULL: it stays */
	/* Afterwards: values[] and policy_now are those of the service, the
	 * latter to be freed by the caller. has_workers: some of its methods
	 * run on workers. After an error why[] tells it. */
	char *policy_now;
	bool has_workers;
	/* Before: some of its methods are streams, and values[] has what these
	 * have, but for what is to be set. */
	bool has_streams;
	char why[256];
};

/* X(name, least, most, of): the items of clients, as in struct
 * ulrpc_client_conf, and of clients that open streams, as in struct
 * ulrpc_streams_conf */
#define CLIENT_SETS(X)                                    \
	X(inflight_max, 1, UINT32_MAX, SET_OF_ALL)        \
	X(queue_max, 1, UINT32_MAX, SET_OF_ALL)           \
	X(queue_bytes, 1, INT64_MAX, SET_OF_ALL)          \
	X(reply_limit, 1, UINT32_MAX, SET_OF_ALL)         \
	X(window_messages, 1, UINT32_MAX, SET_OF_STREAMS) \
	X(window_bytes, 1, UINT32_MAX, SET_OF_STREAMS)    \
	X(patience, 1, INT64_MAX, SET_OF_STREAMS)

#define CLIENT_SET_ENUM(name, least, most, of) CLIENT_SET_##name,
enum client_set_item { CLIENT_SETS(CLIENT_SET_ENUM) CLIENT_SET_ITEMS };

/* Changes all clients of a service, and its sets of servers, on each CPT. */
struct client_set {
	const char *service; /* its name */
	uint32_t given;	     /* bit i: values[i] is to be set */
	uint64_t values[CLIENT_SET_ITEMS];
	/* Afterwards: how many clients there are, with those that the sets have
	 * for their servers, how many sets, how many of both may open streams,
	 * and the greatest value that one of them has. */
	unsigned int clients, sets, streams;
	uint64_t now[CLIENT_SET_ITEMS];
};

static inline bool client_set_has(const struct client_set *set,
				  enum client_set_item i)
{
	return set->given & 1u << i;
}

/* Adds what a client, or a set, has @now. */
static inline void client_set_tell(struct client_set *set, const uint64_t *now)
{
	for (unsigned int i = 0; i < CLIENT_SET_ITEMS; i++)
		set->now[i] = MAX(set->now[i], now[i]);
}

#endif
