/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extensions: the server says that calls take longer than it had let expect,
 * and are still being served. So what is slow is not asked about.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_EXTEND_H
#define RPC_CLIENT_EXTEND_H

#include "rpc/client/import.h"
#include "rpc/wire/wire.h"

/* @ev: the message's. */
void extend_on_message(struct import *imp, const struct ulnet_event *ev,
		       const struct wire_extend *m);

#endif
