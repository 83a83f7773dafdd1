/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies: packed to one message for each message of requests and turn, and
 * sent. A message that was certainly not delivered is sent again, after a
 * random time of at most 10 ms, 20 ms, .. 0.5 s, until the latest deadline of
 * its calls. A message with replies of calls that may not be executed twice
 * stays after that, as long as their records have it (record.h), whatever
 * became of its delivery.
 *
 * Clients that do not take replies, or do not acknowledge them, cannot fill the
 * memory. The bytes of replies count as held by the service and by the client,
 * so that fewer requests of this client are taken (struct share). A request is
 * taken only if there is room for the longest reply that it may have, so the
 * reply of a request that was executed is never given up for want of room.
 * Refusals of requests for which there was no room have a limit of their own,
 * so that they take no room from replies: queue_bytes_max on each CPT, of which
 * each host has its share, whether it is connected or not. Refusals beyond that
 * are given up, and counted.
 *
 * Owner: CPT.
 */
#ifndef RPC_REPLY_H
#define RPC_REPLY_H

#include "rpc/server/session/record.h"
#include "rpc/server/serve/request.h"
#include "rpc/wire/wire.h"

/* Bytes of memory that a reply with a body of @length bytes takes, by
 * itself. */
uint64_t reply_size(uint32_t length);
/* Adds a reply to the call of @o; @r->length bytes of @body are copied. It is
 * sent by reply_flush(), or at the end of this turn. @owed: room for it was
 * reserved until now. @keep: the record that keeps the reply, and becomes LOST
 * if there is no memory; NULL: no record keeps it. */
void reply_add(struct origin *o, const struct wire_reply *r, const void *body,
	       bool owed, struct record *keep);
/* A call of @o gets no reply. */
void reply_skip(struct origin *o);
/* Answers an attempt of @o with the kept reply of @rec, which is RECORD_KEPT.
 * False: no memory, or @o is of another service. */
bool reply_again_to(struct origin *o, const struct record *rec);
/* record_ops.let_go */
void reply_let_go(struct record_reply *kept);
/* Sends what is packed. */
void reply_flush(struct origin *o);

/* service_cpt.flush_work */
void replies_flush(struct ulnet_work *w);

/* Of @sc, at its beginning. */
void replies_init(struct service_cpt *sc);
/* The service ends: no reply is kept any more. */
void replies_lose(struct service_cpt *sc);
/* Nothing is sent again any more. */
void replies_abort(struct service_cpt *sc);
/* Unlinks what LNet has. */
void replies_stop(struct service_cpt *sc);

#endif
