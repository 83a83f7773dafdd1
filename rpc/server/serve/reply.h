/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies. The replies that are given in one turn to the calls of one message
 * are packed into one message. A message that was certainly not delivered is
 * sent again until the latest deadline of its calls, after random pauses: of at
 * most 10 ms, then 20 ms, and so on up to 0.5 s. A message with replies of
 * calls that may not be executed twice is kept after it was sent, as long as
 * records need it (record.h).
 *
 * The memory that clients can make the server use by not taking or not
 * acknowledging replies is bounded: it is charged to the client's share, so
 * that fewer requests of this client are taken. A request is taken only with
 * room for the longest reply that it may have, so the reply of a request that
 * was executed is never dropped for want of room. Refusals have a limit of
 * their own, so that they take no room from replies: queue_bytes_max on each
 * CPT, of which each host has its share, connected or not. Refusals beyond that
 * are dropped, and counted.
 *
 * Owner: CPT.
 */
#ifndef RPC_REPLY_H
#define RPC_REPLY_H

#include "rpc/body_proof.h"
#include "rpc/server/session/record.h"
#include "rpc/server/serve/request.h"
#include "rpc/wire/wire.h"

/* Returns how many bytes of memory a message with one reply of @length bytes
 * takes. */
uint64_t reply_size(uint32_t length);
/* Packs the reply @r to a call of @b; copies r->length bytes of @body. It is
 * sent by reply_flush(), at the latest at the end of this turn. @owed: the
 * request was charged for this reply, so it may not be dropped. @keep: the
 * record that is to keep the reply, and becomes LOST if there is no memory for
 * it; NULL: the reply is not kept. */
void reply_add(struct request_batch *b, const struct wire_reply *r,
	       const void *body, bool owed, struct record *keep);
/* Called when a call of @b gets no reply. */
void reply_skip(struct request_batch *b);
/* Answers an attempt of @b with the kept reply of @rec, which is RECORD_KEPT.
 * Returns false if there is no memory, or it is the reply of another service
 * that has not ended. */
bool reply_again_to(struct request_batch *b, const struct record *rec);
/* What record_ops.let_go calls. */
void reply_let_go(struct record_reply *kept);
/* Sends the replies of @b that are packed. */
void reply_flush(struct request_batch *b);
/* What service_cpt.flush_work calls: does reply_flush() for all batches that
 * wait for the end of the turn. */
void replies_flush(struct ulnet_work *w);

void replies_init(struct service_cpt *sc);
/* Called when the service stops: leaves the kept replies to the tombstone or
 * service that has its portal next (kept.h). */
void replies_lose(struct service_cpt *sc);
/* Gives up all messages that wait to be sent again. */
void replies_abort(struct service_cpt *sc);
/* Unlinks the messages that LNet is sending. */
void replies_stop(struct service_cpt *sc);

/* ---- long replies (long_reply.c) ---- */

/*
 * A reply is long if its caller has no room for it. The server holds the body
 * on the bulk portal, and tells the caller its match value (WIRE_HELD). The
 * caller makes room and fetches the body by GET.
 *
 * The record of the call owns the body (record.h). It keeps the short reply
 * that tells the match value, even if the method may be executed again. The
 * body is charged to the client's share, and held until
 * - the client sends an empty PUT to the match value: it has the body, or does
 *   not want it;
 * - or the call is over for the client: acknowledged, canceled, or replaced in
 *   its slot;
 * - or the caller's deadline;
 * - or the connection ends, or the service stops. A service that stops waits
 *   for bodies that nobody has got yet, as it does for replies. Until then the
 *   client may GET the body any number of times, because a GET or its REPLY may
 *   be lost. The memory is freed when no REPLY is being sent from it.
 */

/* What the client is told of a body that is held, or of one that is not. */
struct held_reply {
	uint64_t match;	   /* match value of the body */
	uint64_t checksum; /* as on the wire; 0: none is wanted */
	/* The body of the short reply, of @n bytes: what proves the held one to
	 * a client that wants it proved (body_proof.h); or a text that says why
	 * the body is not held. */
	uint32_t n;
	union {
		uint8_t bytes[BODY_PROOF_MAX];
		char text[100];
	};
};

typedef void long_reply_proved_fn(struct ulrpc_request *r);

/* Called when the reply to @r, of r->reply_length bytes at r->reply, which is
 * from malloc(), is long. Makes its proof, a piece in each turn, and calls
 * @proved. Returns false if there is nothing to be made, or no memory: then
 * long_reply_hold() makes it. */
bool long_reply_prove(struct ulrpc_request *r,
		      long_reply_proved_fn *proved) must_check;
/* Holds @body, the reply to @r: a copy; or, if long_reply_prove() was called,
 * @body itself, and then *r->kept becomes NULL. The caller keeps the short
 * reply in the record of @r; when the body is let go, that record's state
 * becomes @then. Returns true, and *@held is set; false: there is no room, or
 * no client to fetch it. */
bool long_reply_hold(struct ulrpc_request *r, const void *body, uint32_t length,
		     enum record_state then,
		     struct held_reply *held) must_check;
/* What record_ops.body_let_go calls. */
void long_reply_let_go(struct record_body *body);
/* What export_users.reach calls. */
void long_reply_reach(struct record_body *body, const struct ulnet_nid *nid);

/* Lets all bodies of @sc go. */
void long_replies_abort(struct service_cpt *sc);

#endif
