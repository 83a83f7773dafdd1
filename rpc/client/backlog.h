/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a client, or a set of servers, has too many calls that have not
 * ended, or too long ones: then further calls are refused before they take any
 * memory. The share is the program's own: no peer can use it up.
 *
 * Calls that are made on other threads than the owner's count when they come to
 * it: until then there may be more of them.
 */
#ifndef RPC_CLIENT_BACKLOG_H
#define RPC_CLIENT_BACKLOG_H

#include "rpc/rpc.h"
#include "rpc/stats/stat.h"

/* usual limits */
#define BACKLOG_CALLS (UINT32_C(1) << 20)
#define BACKLOG_BYTES (UINT64_C(1) << 30)

struct backlog {
	/* owner: the limits, and bytes of the bodies of all calls that have not
	 * ended */
	uint32_t calls_max;
	uint64_t bytes_max;
	uint64_t bytes;
	/* written by the owner, read by any thread */
	atomic_bool full;
	/* any thread: refused calls that are not counted in the statistics yet
	 */
	_Atomic uint32_t refused;
};

/* @calls, @bytes: the limits; 0: the usual ones. */
static inline void backlog_init(struct backlog *b, uint32_t calls,
				uint64_t bytes)
{
	b->calls_max = calls ? calls : BACKLOG_CALLS;
	b->bytes_max = bytes ? bytes : BACKLOG_BYTES;
	b->bytes = 0;
	atomic_init(&b->full, false);
	atomic_init(&b->refused, 0);
}

/* Any thread. */
static inline bool backlog_is_full(const struct backlog *b)
{
	return atomic_load_explicit(&b->full, memory_order_relaxed);
}

/* A call is refused. Returns -EAGAIN. Any thread. */
static inline int backlog_refuse(struct backlog *b)
{
	atomic_fetch_add_explicit(&b->refused, 1, memory_order_relaxed);
	return -EAGAIN;
}

/* Are there too many calls, or too long ones? @calls: how many have not ended.
 */
static inline bool backlog_is_over(const struct backlog *b, uint32_t calls)
{
	return calls >= b->calls_max || b->bytes >= b->bytes_max;
}

/* Are further calls refused from now on? @calls: how many have not ended. @s:
 * the owner. Returns whether they are, and were not before. */
static inline bool backlog_look(struct backlog *b, uint32_t calls,
				struct shard *s)
{
	bool full = backlog_is_over(b, calls);

	if (likely(full == backlog_is_full(b)))
		return false;
	atomic_store_explicit(&b->full, full, memory_order_relaxed);
	if (!full)
		stat_now(s, RPC_STAT_calls_unqueued,
			 atomic_exchange_explicit(&b->refused, 0,
						  memory_order_relaxed));
	return full;
}

/* Called before the caller is told that a call of @bytes has ended, so that its
 * callback may make another one. @calls: how many others have not ended. */
static inline void backlog_left(struct backlog *b, uint64_t bytes,
				uint32_t calls, struct shard *s)
{
	b->bytes -= bytes;
	if (unlikely(backlog_is_full(b)))
		backlog_look(b, calls, s);
}

#endif
