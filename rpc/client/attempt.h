/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attempts of calls: how long each has, and what follows when one ends without
 * an answer that ends its call.
 *
 * The answer to an attempt, or an extension by the server, is awaited for T
 * (rpc/client/client.h) and a round trip. The server is asked what became of
 * the call when that time has passed, when LNet does not know what became of
 * the message, or when a connection was lost (the import's, or the LND's). A
 * call that the server does not know is sent again, with the same number and
 * slot, so that a late copy of an earlier attempt is recognized. Queries that
 * are not answered are repeated at growing intervals, and make the import probe
 * the server.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_ATTEMPT_H
#define RPC_CLIENT_ATTEMPT_H

#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/batch.h"

/* Returns T, in ns, of an attempt that begins at @now (ns). Each retry doubles
 * T, unless it repeats an attempt that was lost. */
uint64_t attempt_time(const struct ulrpc_call *call, uint64_t now);
/* Returns when (ns) the server is asked about an attempt that begins at @now
 * (ns) and has T = @time (ns). */
uint64_t attempt_due(const struct ulrpc_call *call, uint64_t time,
		     uint64_t now);

/* The slow path of attempt_watch(), for when @p is due before another batch, or
 * client.watch_timer has to be set. */
void attempt_watch_rare(struct ulrpc_client *c, struct batch *p);
/* Schedules queries, at p->due or soon after, about those calls of @p that are
 * neither answered nor extended by then. */
static inline void attempt_watch(struct ulrpc_client *c, struct batch *p)
{
	if (unlikely(p->due < c->watch_at || list_empty(&c->watched) ||
		     list_entry(c->watched.prev, struct batch, of_watch)->due >
			     p->due))
		attempt_watch_rare(c, p);
	else
		list_add_tail(&c->watched, &p->of_watch);
}
/* What client.watch_timer calls. */
void attempt_on_watch(struct ulnet_timer *timer);

/* Notes that entry @index of @p, a batch that is being filled, is a query about
 * @call. Moves p->due to the time when this query is late, if that is earlier.
 * @random: 64 bits, the same for all calls of @p. */
void attempt_on_asked(struct ulrpc_call *call, struct batch *p, uint32_t index,
		      uint64_t random);
/* Called when @p, with a query about @call and perhaps about other calls, was
 * sent. */
void attempts_asked(const struct ulrpc_call *call, const struct batch *p);

/* Asks the server what became of @call, which is in flight. */
void call_ask(struct ulrpc_call *call);
/* Ends the attempt of @call, which is in flight: takes no more replies to it,
 * and detaches its bulks. The caller moves the call to another state. */
void attempt_end(struct ulrpc_call *call);
/* Called when the server no longer knows the attempt of @call, which is in
 * flight, and may have executed it. Sends the call again if it may be executed
 * twice, or if the service can look it up; otherwise ends it with @cause. */
void call_on_forgotten(struct ulrpc_call *call, enum ulrpc_cause cause);
/* Does what call_on_forgotten() does for a call in FETCH, whose reply the
 * server no longer has. */
void call_fetch_lost(struct ulrpc_call *call, enum ulrpc_cause cause);
/* Called when the reply @r has come for @call, which is in flight. Returns true
 * if @r ends the attempt only, and the call goes on. */
bool attempt_is_refused(struct ulrpc_call *call, const struct wire_reply *r);
/* Called when @p, which has an attempt of @call or a query about it, was
 * certainly not delivered. */
void attempt_undelivered(struct ulrpc_call *call, const struct batch *p);
/* Called when the answer @r has come while there is a back-off: reduces it if
 * the server is not slow. */
void attempt_on_prompt(const struct ulrpc_call *call,
		       const struct wire_reply *r, uint64_t now);
/* Called when @r has come for a call about which the server was asked. If @r
 * shows that the attempt or its answer was lost, tells LNet that the attempt's
 * rail loses messages. */
void attempt_judge_rail(const struct ulrpc_call *call,
			const struct wire_reply *r);

/* Asks about calls of @imp that are in flight. @s: the loss of an LND's
 * connection: only calls whose last message was sent, and perhaps lost with
 * that connection. NULL: all calls, because the import has connected again to
 * the same server. */
void attempts_ask(struct import *imp, const struct conn_loss *s);
/* Called when the server has answered what was sent to it at @sent (ns), from
 * @local by @hop. Queries that were sent more than a round trip before that,
 * and are not answered, are lost: asks again. */
void attempts_overtaken(struct import *imp, uint64_t sent,
			const struct ulnet_nid *local,
			const struct ulnet_nid *hop);
/* Called when the server has restarted, or has forgotten this client: calls
 * call_on_forgotten() for the calls of @c that are in flight. But those from
 * import.unexecuted on are sent again, whatever their semantics. */
void attempts_on_forgotten(struct ulrpc_client *c);
/* Called when the service of @c has no store, or another one than before. Ends
 * calls that wait to be looked up in the old store, and marks those in flight
 * as orphaned. */
void attempts_orphan(struct ulrpc_client *c);
/* Ends calls in slots that the server, which is now another one, does not
 * grant. */
void attempts_without_slot(struct import *imp);

/* Called when the server of @imp has sent extensions: it still serves the calls
 * that @m names, and takes longer. @ev: the event of the message. */
void attempts_on_extend(struct import *imp, const struct ulnet_event *ev,
			const struct wire_extend *m);

/* Ends @call, because its caller makes it at another server instead. Does so if
 * @call certainly was not executed here, and never will be; with @sent, also if
 * it may have been. Returns whether it has ended @call. */
bool call_withdraw(struct ulrpc_call *call, bool sent, enum ulrpc_cause cause);
/* Ends @call with @cause, because its server is gone, if it may have been
 * executed there. */
void call_lose(struct ulrpc_call *call, enum ulrpc_cause cause);
/* Moves the calls of @c that are in flight from their lists to @calls. */
void attempts_list(const struct ulrpc_client *c, struct list *calls);

#endif
