/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans of calls and requests, for a collector of OpenTelemetry. Conventions as
 * in ulnet/rpc.h. Manual: ulrpc_spans_start(3).
 */
#ifndef ULNET_SPANS_H
#define ULNET_SPANS_H

#include "ulnet/rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ulrpc_spans;

struct ulrpc_spans_conf {
	/* a file, to which lines are appended; "unix:PATH": a socket of a
	 * stream */
	const char *path;
	/* attribute service.name of this process; NULL: its program's name */
	const char *name;
	/* how many of a million calls that have no trace get one, and are
	 * sampled; 0: none */
	uint32_t share;
	/* spans of a CPT that wait to be written; further ones are dropped. 0 =
	 * 4096 */
	uint32_t queue;
};

struct ulrpc_spans_stats {
	uint64_t written; /* spans */
	uint64_t dropped; /* as the queue was full, or could not be written */
};

/* From now on the calls that this node makes, and the requests that it serves,
 * whose trace says that it is sampled, become spans. 0; -EINVAL; -EALREADY: RPC
 * has spans already; -ENOMEM; another -errno: the file or socket cannot be
 * opened. On no thread of a CPT. In virtual time, each is written at once. */
ULNET_EXPORT int ulrpc_spans_start(struct ulrpc *rpc,
				   const struct ulrpc_spans_conf *conf,
				   struct ulrpc_spans **spans_p);
/* The file is opened again soon, as it was moved away. Any thread. */
ULNET_EXPORT void ulrpc_spans_reopen(struct ulrpc_spans *spans);
ULNET_EXPORT void ulrpc_spans_stats(struct ulrpc_spans *spans,
				    struct ulrpc_spans_stats *stats);
/* Writes what there is, which it waits for, and frees @spans. If RPC is closed
 * before, that writes, and this only frees. On no thread of a CPT. NULL is
 * fine. */
ULNET_EXPORT void ulrpc_spans_stop(struct ulrpc_spans *spans);

#ifdef __cplusplus
}
#endif

#endif
