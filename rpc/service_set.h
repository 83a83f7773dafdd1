/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a service may be changed while it runs. A change has any number of
 * items, and is made whole, or not at all. rpc/stats has the request for it,
 * rpc/server/set.c makes it.
 */
#ifndef RPC_SERVICE_SET_H
#define RPC_SERVICE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, least, most, of_workers): the items that are numbers, as in struct
 * ulrpc_service_conf; of_workers: only services with workers have it. */
#define SERVICE_SETS(X)                             \
	X(workers_min, 1, 4096, true)               \
	X(workers_max, 1, 4096, true)               \
	X(high_ratio, 1, UINT32_MAX, true)          \
	X(queue_max, 1, UINT32_MAX, false)          \
	X(queue_bytes_max, 1, INT64_MAX / 8, false) \
	X(window, 1, UINT32_MAX, false)             \
	X(segments, 1, UINT32_MAX, false)           \
	X(retry_after, 1, UINT32_MAX, false)

#define SERVICE_SET_ENUM(name, least, most, of_workers) SERVICE_SET_##name,
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
	char why[256];
};

#endif
