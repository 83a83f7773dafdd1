/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attempts of calls: how long each has, and what follows when one ends without
 * an answer that ends its call.
 *
 * An attempt is to be answered, or extended by the server, within a time that
 * is below the call's: T (rpc/client/timeout.h), and the way there and back.
 * When that time has passed, when LNet does not know what became of the
 * message, or when a connection was lost (the import's, or the LND's:
 * rpc/client/imports.h), the server is asked what became of the call. A call
 * that the server does not know is sent again, with the same number and slot,
 * so that the server can tell that it is the same call. A query that is not
 * answered is repeated ever more seldom, and makes the import look whether the
 * server is there.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_ATTEMPT_H
#define RPC_CLIENT_ATTEMPT_H

#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/batch.h"
#include "rpc/client/timeout.h"

/* T of an attempt that begins at @now, ns: doubles with each retry. */
uint64_t attempt_time(const struct ulrpc_call *call, uint64_t now);
/* When an attempt that has T = @time is to be answered at the latest. */
uint64_t attempt_due(const struct ulrpc_call *call, uint64_t time,
		     uint64_t now);

/* Makes the client ask, at p->due or soon after, about those calls of @p that
 * nothing was heard of. */
void attempt_watch_rare(struct ulrpc_client *c, struct batch *p);
static inline void attempt_watch(struct ulrpc_client *c, struct batch *p)
{
	if (unlikely(p->due < c->watch_at || list_empty(&c->watched) ||
		     list_entry(c->watched.prev, struct batch, of_watch)->due >
			     p->due))
		attempt_watch_rare(c, p);
	else
		list_add_tail(&c->watched, &p->of_watch);
}
/* client.watch_timer */
void attempt_on_watch(struct ulnet_timer *timer);

/* A query about @call becomes entry @index of @p, which is being made: sets
 * p->due to an earlier time if this query is to be answered earlier. @random:
 * 64 bits, the same for all calls of @p. */
void attempt_on_asked(struct ulrpc_call *call, struct batch *p, uint32_t index,
		      uint64_t random);
/* @p, with queries about @call and others, is on its way. */
void attempts_asked(const struct ulrpc_call *call, const struct batch *p);

/* A call is out, and ... */

/* ... the server is to be asked what became of it. */
void call_ask(struct ulrpc_call *call);
/* ... this attempt is over: nothing is to land for it any more. The caller
 * moves the call to another state. */
void attempt_end(struct ulrpc_call *call);
/* ... the attempt may have been executed, by a server that does not know it any
 * more: sends the call again if it may be repeated, or if the service can look
 * it up, and ends it otherwise. */
void call_unsettle(struct ulrpc_call *call);
/* ... an answer has come. True: it says that the call is to be sent again, and
 * this function has seen to that. */
bool attempt_is_refused(struct ulrpc_call *call, const struct wire_reply *r);

/* In state FETCH: nobody holds the reply any more. Does what call_unsettle()
 * does. */
void call_fetch_lost(struct ulrpc_call *call);

/* The query or the attempt in @p was not delivered. */
void attempt_undelivered(struct ulrpc_call *call, const struct batch *p);

/* @r is the answer to a query about @call. If it shows that the attempt, or the
 * answer to it, was lost, LNet is told that its rail loses messages. */
void attempt_look_back(const struct ulrpc_call *call,
		       const struct wire_reply *r);
/* Asks about calls of @imp. @s NULL: the connection was made again with the
 * same server, so what was sent before, or the reply to it, may be lost. Else a
 * rail has failed: only about calls that were sent by it, and whose messages
 * LNet is done with. */
void attempts_ask(struct import *imp, const struct severed *s);
/* The server is another one, or has forgotten us: ends the calls of @c that are
 * out, or sends them again. */
void attempts_unsettle(struct ulrpc_client *c);
/* The service of @c has no store, or another one than before: ends calls that
 * perhaps have been executed, and were to be looked up in the old one. Calls
 * that are out will never be looked up. */
void attempts_forsake(struct ulrpc_client *c);
/* Ends calls whose slots are not granted any more, because the server is
 * another one now, which grants fewer. */
void attempts_without_slot(struct import *imp);

/* Extensions have come: the server of @imp says that calls take longer than
 * expected, and are still being served. So slow calls are not asked about. @ev:
 * the event of the message. */
void attempts_on_extend(struct import *imp, const struct ulnet_event *ev,
			const struct wire_extend *m);

/* Moves the calls of @c that are out from the lists that they are on to
 * @calls. */
void attempts_list(const struct ulrpc_client *c, struct list *calls);

#endif
