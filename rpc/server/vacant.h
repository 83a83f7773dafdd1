/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals whose service has gone, or is not there yet again. What comes for it
 * is told that there is no such service, and so is certainly not executed; who
 * hears that may ask for it by its name. Takes little memory for each portal on
 * each CPT, and of each message only what it needs. Of the answers that may be
 * on their way each NID has its share (party.h): who takes none is not answered
 * any more, and everybody else is.
 *
 * Thread: owner (the CPT).
 */
#ifndef RPC_VACANT_H
#define RPC_VACANT_H

#include "rpc/rpc.h"

extern const struct rpc_part vacant_part;

/* Makes @portal vacant on this CPT, until there is a service again, or RPC
 * stops. 0, -ENOMEM, -ESHUTDOWN, or what LNetMEAttach(3) says. */
int vacant_open(struct shard *s, unsigned int portal);
/* A service takes the portal. Nothing happens if it is not vacant. */
void vacant_close(struct shard *s, unsigned int portal);

#endif
