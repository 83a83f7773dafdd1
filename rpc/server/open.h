/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_SERVER_OPEN_H
#define RPC_SERVER_OPEN_H

#include "rpc/server/session/export.h"
#include "rpc/wire/wire.h"

/* Answers @in of @e's client in @out, in which the status, and the flavour that
 * the client offers, are set before. Owner. */
void service_opened(struct shard *s, const struct wire_open *in,
		    struct export *e, struct wire_opened *out);

#endif
