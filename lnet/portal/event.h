/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues. No event is lost: an operation begins only after a slot was
 * reserved for each event that it may deliver.
 *
 * The queues of a node share a lock, because any thread may poll them. Handlers
 * need no lock, and are faster.
 */
#ifndef LNET_EVENT_H
#define LNET_EVENT_H

#include <pthread.h>
#include "base/cond.h"
#include "base/id.h"
#include "base/list.h"
#include "ulnet/lnet.h"

struct eq {
	uint64_t cookie;
	uint32_t size;
	uint32_t head;	   /* index of the oldest event */
	uint32_t count;	   /* events in the queue */
	uint32_t reserved; /* slots for events to come */
	uint32_t mds;	   /* MDs that use it */
	struct ulnet_event ring[];
};

/* All queues of a node. */
struct eqs {
	pthread_mutex_t lock;
	struct cond filled;
	struct id_table table;
};

int eqs_init(struct eqs *q) must_check;
void eqs_fini(struct eqs *q);

/* For an MD that uses the queue @cookie: reserves @slots, and keeps the queue
 * from being freed until the MD ends (@last below). Returns 0 and the queue;
 * -ENOENT: there is none; -ENOBUFS: it has not as many free slots. */
int eq_use(struct eqs *q, uint64_t cookie, uint32_t slots,
	   struct eq **eq_p) must_check;
/* Returns false if there are not as many free slots. */
bool eq_reserve(struct eqs *q, struct eq *eq, uint32_t slots);
/* Gives back @slots. @last: the MD ends. */
void eq_unreserve(struct eqs *q, struct eq *eq, uint32_t slots, bool last);
/* Adds an event, for which a slot must be reserved. @last: the MD ends. */
void eq_push(struct eqs *q, struct eq *eq, const struct ulnet_event *ev,
	     bool last);

#endif
