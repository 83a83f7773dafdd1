/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parcel: one message with calls of one client, and the memory where their
 * replies land. One attempt of each of its calls; its match value is never used
 * again, so what comes late finds nothing, or a parcel that is waiting for
 * nothing.
 *
 * Ends when none of its calls waits any more; its memory is free when LNet has
 * told the end of everything it was given.
 */
#ifndef RPC_PARCEL_H
#define RPC_PARCEL_H

#include "base/list.h"
#include "rpc/rpc.h"

struct parcel;
struct ulrpc_call;
struct ulrpc_client;
struct import;

/* Sends up to @n calls from the client's queues; takes as many as fit. Returns
 * how many went, or cannot go (now) and are out of the way; 0: there are none. */
unsigned int parcel_send(struct ulrpc_client *c, unsigned int n);
/* A call of it has ended, or goes its own way. */
void parcel_forget(struct parcel *p, struct ulrpc_call *call);
uint32_t parcel_epoch(const struct parcel *p);
/* ns: when it was given to LNet. */
uint64_t parcel_sent(const struct parcel *p);
/* How many numbers may be given to calls of this import now, so that the server
 * still remembers those that LNet is sending: see import.sending. */
uint32_t parcel_span(const struct import *imp);
/* What is on its way to this import's server is given up, if it can be. */
void parcels_abort(struct import *imp);
/* After a crash. */
void parcels_gone(struct shard *s);

#endif
