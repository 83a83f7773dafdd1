/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue between loops: many threads put, the owner takes everything at
 * once. Items are embedded in what they carry, so posting allocates nothing and
 * cannot fail. The length is bounded by the number of things that can be in
 * flight. A thread that runs no loop could post without end: it waits for the
 * answer to what it has posted before it posts again.
 */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <stdatomic.h>
#include "base/util.h"

struct work;
typedef void (*work_fn)(struct work *w);

/* One thing to do on a loop. Must not be posted again before it has run. */
struct work {
	struct work *next;
	work_fn fn;
};

struct mailbox {
	_Atomic(struct work *) head; /* newest first */
};

void mailbox_init(struct mailbox *m);

/* Any thread. Returns true when the mailbox was empty: then, and only then, the
 * owner must be woken, so a burst costs one wake-up. */
bool mailbox_put(struct mailbox *m, struct work *w);

/* Owner. Takes everything, oldest first; NULL when empty. */
struct work *mailbox_take(struct mailbox *m);

/* Owner. A hint for "may I sleep?". */
static inline bool mailbox_empty(struct mailbox *m)
{
	return atomic_load_explicit(&m->head, memory_order_acquire) == NULL;
}

#endif
