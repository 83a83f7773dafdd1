/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scope of a request: the calls that its handler makes for it, by contexts
 * that are under the request. They end no later than it, have its trace, and
 * are canceled when it is; and so are, at their servers, the calls that are
 * made for them.
 *
 * A scope is there as long as the request, a context or a call refers to it:
 * any of them may end first. When the request has been replied to, nothing
 * cancels the scope any more. Any thread.
 */
#ifndef RPC_SCOPE_H
#define RPC_SCOPE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

#define SCOPE_TRACE 26u /* bytes: TRACE_LENGTH of rpc/text.h */

struct scope {
	_Atomic unsigned int refs;
	uint64_t deadline; /* ns: of the request; TIME_NEVER: none */
	bool traced;	   /* trace is set */
	uint8_t trace[SCOPE_TRACE];
	pthread_mutex_t lock; /* of what follows */
	bool canceled;
	struct list links; /* scope_link.link */
};

/* A call in a scope. */
struct scope_link {
	struct scope *scope; /* a reference; NULL: in no scope */
	struct list link;
	/* Cancels the call. Called with the lock held, on any thread, while the
	 * call is in the scope. */
	void (*cancel)(struct scope_link *l);
};

/* @trace: SCOPE_TRACE bytes, or NULL. NULL: no memory. */
struct scope *scope_new(uint64_t deadline, const uint8_t *trace);
void scope_get(struct scope *s);
void scope_put(struct scope *s);
/* Cancels all calls in @s, and refuses further ones. */
void scope_cancel(struct scope *s);
/* @l is in @s until scope_leave(). Returns 0; -ECANCELED: @s is canceled. */
int scope_enter(struct scope *s, struct scope_link *l);
/* Does nothing if @l is in no scope. */
void scope_leave(struct scope_link *l);

#endif
