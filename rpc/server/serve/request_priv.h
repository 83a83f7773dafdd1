/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of requests share: their arrival (request.c), their end
 * (request_end.c), and what handlers ask (handler.c).
 */
#ifndef RPC_REQUEST_PRIV_H
#define RPC_REQUEST_PRIV_H

#include "rpc/server/session/record.h"
#include "rpc/server/serve/request.h"

static inline unsigned int request_state(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->state, memory_order_acquire);
}

/* ns: when its handler was called; 0: not yet. */
static inline uint64_t request_started(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->started, memory_order_relaxed);
}

/* False: somebody else has moved it from @from. */
static inline bool request_move(struct ulrpc_request *r,
				enum request_state from, enum request_state to)
{
	uint8_t was = from;

	BUG_ON(!(request_states[from].next & FSM_TO(to)));
	return atomic_compare_exchange_strong(&r->state, &was, to);
}

/* Gives back @r's reference to where its reply goes; the caller sets another
 * one, or frees @r. */
static inline void request_answer_put(struct ulrpc_request *r)
{
	if (unlikely(r->answer != r->origin))
		origin_unref(r->answer);
}

/* Gives back what a request holds besides its own memory. */
void request_drop(struct ulrpc_request *r);
/* Its bulk is waited for: then it is finished, or lost. */
void request_wait_bulk(struct ulrpc_request *r);
/* ulrpc_request.work: a reply has come to the CPT of its request. */
void request_on_replied(struct ulnet_work *w);
/* What its handler has to say: takes @r, on any thread. */
void request_answer(struct ulrpc_request *r, uint32_t status, uint32_t error,
		    const void *body, size_t length);
/* There is nothing in its reply but @status. */
void request_answer_nothing(struct ulrpc_request *r, uint32_t status);
/* Refuses a queued request, whose deadline has passed or whose service stops:
 * the request has not run, and will not. On its CPT; nobody else has the
 * request. */
void request_refuse_queued(struct ulrpc_request *r, uint32_t status);
/* @r, which is lost, counts as having ended as @end; its record does, too. */
void request_record_lost(struct ulrpc_request *r, unsigned int end);

/* The request, which has come as @c, is not answered at once: it counts as
 * under way from now on, with @held bytes. */
void request_activate(struct ulrpc_request *r, const struct wire_call *c,
		      uint64_t held);
/* @r is not under way any more. What is waiting for that is told last. */
void request_deactivate(struct ulrpc_request *r);
/* False: it is not in state @from any more, but replied, or being run. */
bool request_lose(struct ulrpc_request *r, enum request_state from);
/* It is lost, and counts as having ended in this way, which its caller is told:
 * STAT_UNANSWERED as WIRE_DOUBTFUL, or, if it is resent, as
 * WIRE_SHUTTING_DOWN. */
void request_lost(struct ulrpc_request *r, unsigned int end);
/* Its handler is done with it. Any thread; the memory goes with the service. */
void request_lost_end(struct ulrpc_request *r);
/* Waits for the threads that are looking at @r's shard (ulrpc_request.users),
 * before the shard is freed. It is short: those that come after @r was lost see
 * that, and do not look. */
void request_wait_users(const struct ulrpc_request *r);

#endif
