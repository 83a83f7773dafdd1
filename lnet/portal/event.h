/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues. No event is ever lost: before an operation begins that may have
 * to deliver an event, a place for the event is reserved; if there is none, the
 * operation does not begin.
 *
 * The queues of a node share a lock, because any thread may poll them. Users
 * who want speed take handlers, which know no lock.
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
	uint32_t head;	   /* oldest */
	uint32_t count;	   /* events in it */
	uint32_t reserved; /* places promised */
	uint32_t mds;	   /* that name it */
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

/* An MD that names the queue: 0 and the queue, which then cannot be freed, with
 * @places reserved; -ENOENT; -ENOBUFS. */
int eq_use(struct eqs *q, uint64_t cookie, uint32_t places,
	   struct eq **eq_p) must_check;
/* The end of such an MD: gives back the places that it has left. */
void eq_unuse(struct eqs *q, struct eq *eq, uint32_t places);
bool eq_reserve(struct eqs *q, struct eq *eq, uint32_t places);
void eq_unreserve(struct eqs *q, struct eq *eq, uint32_t places);
/* Uses up one reserved place. @last: also does what eq_unuse() does. */
void eq_push(struct eqs *q, struct eq *eq, const struct ulnet_event *ev,
	     bool last);

#endif
