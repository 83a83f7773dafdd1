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

/* At p->due, or soon after, the server is asked about those calls of @p that
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

/* A query about @call is being made, as the entry @index of @p: makes @p->due
 * earlier, if this query is to be answered earlier. @random: 64 bits, the same
 * for all calls of @p. */
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
/* ... the attempt may have been executed, by somebody who does not know any
 * more: sends it again if it may be repeated, or if the service can look
 * it up, and ends it otherwise. */
void call_unsettle(struct ulrpc_call *call);
/* ... an answer has come. True: it says that the call is to be sent again, at
 * once or later, which is done. */
bool attempt_is_refused(struct ulrpc_call *call, const struct wire_reply *r);

/* FETCH: nobody holds the reply any more: as call_unsettle(). */
void call_fetch_lost(struct ulrpc_call *call);

/* The query of @p was not delivered, or the attempt. */
void attempt_undelivered(struct ulrpc_call *call, const struct batch *p);

/* @r is the answer to a query about @call. If it shows that the attempt, or the
 * answer to it, was lost, LNet is told that its rail loses messages. */
void attempt_look_back(const struct ulrpc_call *call,
		       const struct wire_reply *r);
/* The connection was made again, with the same server: whatever was sent before
 * may be lost, or its reply. @s: a rail has failed: the same for calls that
 * were sent by it, and whose messages LNet is done with; or NULL. */
void attempts_ask(struct import *imp, const struct severed *s);
/* The server is another one, or has forgotten us: ends the calls of @c that are
 * out, or sends them again. */
void attempts_unsettle(struct ulrpc_client *c);
/* The service of @c has no store, or another one than before: ends calls that
 * perhaps have been executed, and were to be looked up there; those that are
 * out never will be. */
void attempts_forsake(struct ulrpc_client *c);
/* Ends calls whose slots are not granted any more: by another server, which has
 * fewer. */
void attempts_without_slot(struct import *imp);

/* Extensions: the server of @imp says that calls take longer than it had let
 * expect, and are still being served. So what is slow is not asked about. @ev:
 * the message's. */
void attempts_on_extend(struct import *imp, const struct ulnet_event *ev,
			const struct wire_extend *m);

/* Moves the calls of @c that are out from the lists that they are on to
 * @calls. */
void attempts_list(const struct ulrpc_client *c, struct list *calls);

#endif
