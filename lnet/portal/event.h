/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues. No event is lost: before an operation begins, it reserves a
 * slot for each event that it may deliver.
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
	uint32_t count;	   /* number of events in the queue */
	uint32_t reserved; /* number of slots reserved for later events */
	uint32_t mds;	   /* number of MDs that use the queue */
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
/* How many queues there are. Any thread. */
uint32_t eqs_count(struct eqs *q);

/* For an MD that is to use the queue @cookie: reserves @slots, and keeps the
 * queue from being freed until the MD ends (@last below). Returns 0 and the
 * queue; -ENOENT: there is no such queue; -ENOBUFS: it has too few free slots.
 */
int eq_use(struct eqs *q, uint64_t cookie, uint32_t slots,
	   struct eq **eq_p) must_check;
/* Returns false if the queue has too few free slots. */
bool eq_reserve(struct eqs *q, struct eq *eq, uint32_t slots);
/* Gives back @slots. @last: the MD has ended. */
void eq_unreserve(struct eqs *q, struct eq *eq, uint32_t slots, bool last);
/* Adds an event, for which a slot must have been reserved. @last: the MD has
 * ended. */
void eq_push(struct eqs *q, struct eq *eq, const struct ulnet_event *ev,
	     bool last);

#endif
