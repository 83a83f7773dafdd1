/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers that sleep for a request (ulrpc_request_sleep(3)), until a time or
 * until it is canceled: those of a service, who wake together when one of its
 * requests is canceled (cancel.c), and go on sleeping if it is not theirs.
 */
#ifndef RPC_SLEEP_H
#define RPC_SLEEP_H

#include <stdatomic.h>
#include "ulnet/thread.h"

struct sleepers {
	pthread_mutex_t lock;
	struct ulnet_cond woken;
	atomic_uint n;
};

/* -errno. */
int sleepers_init(struct sleepers *s);
/* Nobody sleeps. */
void sleepers_fini(struct sleepers *s);

#endif
