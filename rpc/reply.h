/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies: packed to one message for each message of requests and turn, and
 * sent. What was certainly not delivered is sent again, after a random time of at
 * most 10 ms, 20 ms, .. 5 s, until the latest deadline of its calls.
 *
 * What clients do not take fills no memory: the bytes count as held by the
 * service, and by the client: as struct share says, it is refused when they are
 * too many, and with more its replies are given up, and counted.
 *
 * Owner: CPT.
 */
#ifndef RPC_REPLY_H
#define RPC_REPLY_H

#include "rpc/request.h"
#include "rpc/wire.h"

/* Adds a reply to the call of @o; @r->length bytes of @body are copied. It goes
 * by reply_flush(), or at the end of this turn. */
void reply_add(struct origin *o, const struct wire_reply *r, const void *body);
/* Sends what is packed. */
void reply_flush(struct origin *o);

/* service_cpt.flush_work */
void replies_flush(struct ulnet_work *w);

void replies_init(struct service_cpt *sc);
/* None is left. */
void replies_fini(struct service_cpt *sc);
/* Nothing is sent again any more. */
void replies_abort(struct service_cpt *sc);
/* What LNet has is unlinked. */
void replies_stop(struct service_cpt *sc);
/* The node has crashed, and then is gone. */
void replies_crash(struct service_cpt *sc);
void replies_gone(struct service_cpt *sc);

#endif
