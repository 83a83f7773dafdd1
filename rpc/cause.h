/* SPDX-License-Identifier: BSD-3-Clause */
/* The causes of outcomes: their names, and what status each stands for. */
#ifndef RPC_CAUSE_H
#define RPC_CAUSE_H

#include "ulnet/rpc.h"

struct cause {
	const char *name;
	int status; /* 0 or a negative errno */
};
extern const struct cause causes[ULRPC_CAUSE_COUNT];

static inline int cause_status(enum ulrpc_cause cause)
{
	return cause == ULRPC_CAUSE_OK ? 0 : causes[cause].status;
}

#endif
